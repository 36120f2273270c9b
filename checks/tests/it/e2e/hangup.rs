//! A server that is told by SIGHUP to read its keys anew, from a configuration that changes under it.
//!
//! What does not belong here: certificates and public keys, which the server's own tests have.

use rustix::process::Signal;

use super::{
    curl::{Answer, Sent, curl},
    served::{Served, place},
    upstream::Upstream,
};

/// What `printf %s old | sha256sum` prints, and `printf %s new | sha256sum`.
const OLD: &str = "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4";
const NEW: &str = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437";

#[test]
fn sighup_takes_good_keys_and_keeps_them_where_the_new_ones_are_bad() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let file = home.path().join("counterfoil.toml");
    let write = |digest: &str| {
        let keys = format!("[[principal.keys]]\nprincipal = \"acme\"\nsha256 = \"{digest}\"\n");
        let text = format!("upstream = \"{}\"\n[principal]\nfrom = \"api-keys\"\n{keys}", upstream.url());
        std::fs::write(&file, text).expect("a file");
    };
    write(OLD);
    let config = file.to_str().expect("a path of text");
    let served = Served::with(&["--config", config, "--store", &place(&home.path().join("counterfoil.db"))], None);
    let url = served.url("/orders");
    let order = |key: &str| -> Answer {
        curl("POST", &url, Sent { key: "k-1", body: "{}", headers: &[&format!("Authorization: Bearer {key}")] })
    };
    order("old").is(201, "false");
    order("new").is_problem(401, "unauthenticated");

    write(NEW);
    order("new").is_problem(401, "unauthenticated");
    served.process.signal(Signal::HUP);
    served.process.logs("read anew what=\"api-keys\"");
    order("old").is_problem(401, "unauthenticated");
    order("new").is(201, "true");

    for bad in ["not hexadecimal", &OLD[1..]] {
        write(bad);
        served.process.signal(Signal::HUP);
        let told = served.process.logs("not read anew, what was in force stays");
        assert!(told.contains("principal.keys[0].sha256") && told.contains("send SIGHUP again"), "{told}");
        order("new").is(201, "true");
    }
    assert_eq!(upstream.calls(), 1);
    served.stop();
}
