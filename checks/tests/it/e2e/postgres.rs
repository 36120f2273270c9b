//! `counterfoil` on PostgreSQL as its users run it: `migrate`, two serving processes, and an operator beside them.
//!
//! What does not belong here: what the store promises, which its own tests have.

use std::fs;

use counterfoil_store::postgres::trial::Server;

use super::{
    curl::post,
    served::{Served, run},
    upstream::Upstream,
};

pub(super) const PASSWORD: &str = "s3cret-of-the-database";

#[test]
fn two_processes_and_an_operator_share_a_database() {
    let database = Server::shared().and_then(|server| server.empty()).expect("PostgreSQL starts");
    // The server asks for no password, and takes any: it must not show anywhere all the same.
    let url = database.url().replace("postgres@", &format!("postgres:{PASSWORD}@"));
    let shown = format!("postgres://postgres@127.0.0.1:{}/{}", database.server().port(), database.name());
    share(&url, &shown);
}

/// Two serving processes and an operator on the empty database at `url`, which is shown as `shown`.
pub(super) fn share(url: &str, shown: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let config = home.path().join("counterfoil.toml");
    let text = format!("upstream = \"{}\"\nstore = \"{url}\"\n\n[principal]\nfrom = \"none\"\n", upstream.url());
    fs::write(&config, text).expect("a file");
    let config = config.to_str().expect("a path of text");
    let mut said = String::new();
    let mut tell = |arguments: &[&str], succeeds: bool| {
        let output = run(arguments, home.path());
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.success(), succeeds, "{arguments:?}: {all}");
        said.push_str(&all);
        (out, all)
    };

    let early = ["serve", "--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    assert!(tell(&early, false).1.contains("counterfoil migrate"), "a store that a file names is not made by serving");
    assert!(tell(&["migrate", "--config", config], true).1.contains("made"));
    assert!(tell(&["migrate", "--config", config], true).1.contains("already up to date"));
    assert!(tell(&["config", "print", "--config", config], true).0.contains(shown));

    let servers = [Served::with(&["--config", config], None), Served::with(&["--config", config], None)];
    post(&servers[0].url("/orders"), "k-1").is(201, "false");
    post(&servers[1].url("/orders"), "k-1").is(201, "true");
    assert_eq!(upstream.calls(), 1);
    let listed = tell(&["receipts", "list", "--json", "--show-key", "--config", config], true).0;
    assert!(listed.contains("k-1") && listed.contains("done"), "{listed}");
    assert!(tell(&["receipts", "show", "k-1", "--config", config], true).1.contains("201"));
    tell(&["receipts", "sweep", "--config", config], true);
    let clock = tell(&["receipts", "clock", "accept", "--config", config], false).1;
    assert!(clock.contains("clock of its own"), "{clock}");
    for server in servers {
        said.push_str(&server.process.log());
        server.stop();
    }
    assert!(!said.contains(PASSWORD), "the password is shown:\n{said}");
}
