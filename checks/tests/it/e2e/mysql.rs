//! `counterfoil` on MariaDB as its users run it: what `postgres` does, on another server.
//!
//! What does not belong here: what the store promises, which its own tests have.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use counterfoil_store::mysql::trial::{Database, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::postgres::{PASSWORD, share};
use super::served::counterfoil_alone;

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

/// Certificates for `127.0.0.1` that the server's user may read, in a directory of their own.
fn certificates() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("its own directory");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let certificate = names.signed_by(&key, &issuer).expect("a certificate");
    for (name, text) in
        [("ca.pem", issuer.pem()), ("server.pem", certificate.pem()), ("server.key", key.serialize_pem())]
    {
        std::fs::write(home.path().join(name), text).expect("a file");
    }
    home
}

/// Asked for, TLS is had from a server whose authority the system believes, or the connection is refused.
#[test]
fn tls_is_had_as_asked_or_refused() {
    let home = certificates();
    let file = |name: &str| home.path().join(name).display().to_string();
    let (certificate, key) =
        (format!("--ssl-cert={}", file("server.pem")), format!("--ssl-key={}", file("server.key")));
    let secure = Arc::new(Server::start(&[&certificate, &key]).expect("MariaDB starts"));
    let plain = Server::shared().expect("MariaDB starts");
    let migrate = |database: &Database, options: &str, believed: Option<&str>| {
        let mut command = counterfoil_alone(home.path());
        command.args(["migrate", "--store", &format!("{}{options}", database.url())]);
        // What the program takes for the system's authorities.
        if let Some(believed) = believed {
            command.env("SSL_CERT_FILE", file(believed));
        }
        let output = command.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // Whoever comes in the clear is turned away by the server itself.
    secure.sql("", "ALTER USER tester@'127.0.0.1' REQUIRE SSL").expect("a rule");
    for (what, on, options, believed, expected) in [
        ("its authority is believed", &secure, "?require_ssl=true", Some("ca.pem"), true),
        ("its authority is not believed", &secure, "?require_ssl=true", None, false),
        ("not asked for", &secure, "", Some("ca.pem"), false),
        ("the server has none", &plain, "?require_ssl=true", Some("ca.pem"), false),
    ] {
        let database = on.empty().expect("a database");
        let (made, told) = migrate(&database, options, believed);
        assert_eq!(made, expected, "{what}: {told}");
        assert!(made || !told.contains("panicked"), "{what}: {told}");
    }
}
