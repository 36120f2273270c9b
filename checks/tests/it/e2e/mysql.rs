//! `counterfoil` on MariaDB as its users run it: what `postgres` does, on another server.
//!
//! What does not belong here: what the store promises, which its own tests have.

use counterfoil_store::mysql::trial::Server;

use super::postgres::{PASSWORD, share};

#[test]
fn two_processes_and_an_operator_share_a_database() {
    let database = Server::shared().and_then(|server| server.empty()).expect("MariaDB starts");
    let (port, name) = (database.server().port(), database.name());
    let user =
        format!("CREATE USER shop@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON {name}.* TO shop@'127.0.0.1'");
    database.sql(&user).expect("a user");
    share(
        &format!("mysql://shop:{PASSWORD}@127.0.0.1:{port}/{name}"),
        &format!("mysql://shop@127.0.0.1:{port}/{name}"),
    );
}
