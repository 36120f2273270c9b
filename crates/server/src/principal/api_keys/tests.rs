//! Which keys name whom, by table. The digests are what `printf %s KEY | sha256sum` printed.

use http::Request;

use super::KeyedCallers;
use crate::config::{Config, Flags, PrincipalSource};

const ALICE: &str = "[[principal.keys]]\nprincipal = \"alice\"\n\
                     sha256 = \"a42ac5108869b599bcbac21069f63fb47f07452fcc4b87e89b3c06a945612d0b\"\n";
const ALICE_TOO: &str = "[[principal.keys]]\nprincipal = \"alice\"\n\
                         sha256 = \"E9969EB8667D15372C967CFE5402B12ECB4B64A8C563088CA80237FF5ECF83D5\"\n";
const BOB: &str = "[[principal.keys]]\nprincipal = \"bob\"\nclaims = { mode = \"test\" }\n\
                   sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n";

fn callers(header: &str, keys: &str) -> KeyedCallers {
    let file = format!("upstream = \"http://127.0.0.1:9000\"\n[principal]\nfrom = \"api-keys\"\n{header}{keys}");
    let config = Config::read(Some(&file), &|_| None, &Flags::default()).unwrap();
    let PrincipalSource::ApiKeys(keys) = config.principal.value else { panic!("another source") };
    KeyedCallers::new(&keys)
}

#[track_caller]
fn check(callers: &KeyedCallers, line: (&str, &str), expected: Result<&str, &str>) {
    let request = Request::builder().header(line.0, line.1).body(()).unwrap();
    let found = callers.find(&request.into_parts().0);
    let found = found.map(|caller| caller.name).map_err(|fault| fault.to_string());
    assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{line:?}");
}

#[test]
fn keys() {
    let unknown = Err("the key is not known");
    let all = callers("", &format!("{BOB}{ALICE}{ALICE_TOO}"));
    check(&all, ("authorization", "Bearer alice-1"), Ok("alice"));
    check(&all, ("authorization", "Bearer alice-2"), Ok("alice"));
    check(&all, ("authorization", "Bearer alice-3"), unknown);
    check(&all, ("authorization", "Bearer alice-"), unknown);
    check(&all, ("authorization", "Bearer ALICE-1"), unknown);
    check(&all, ("x-api-key", "alice-1"), Err("send a credential in the header authorization"));
    // A digest is no key.
    check(&all, ("authorization", &format!("Bearer {}", "0".repeat(64))), unknown);

    let revoked = callers("", &format!("{BOB}{ALICE_TOO}"));
    check(&revoked, ("authorization", "Bearer alice-1"), unknown);
    check(&revoked, ("authorization", "Bearer alice-2"), Ok("alice"));

    let elsewhere = callers("header = \"X-Api-Key\"\n", ALICE);
    check(&elsewhere, ("x-api-key", "alice-1"), Ok("alice"));
    check(&elsewhere, ("authorization", "Bearer alice-1"), Err("send a credential in the header x-api-key"));
}

/// The table is compared whole, so a key's place in it must not matter.
#[test]
fn every_place_in_the_table() {
    let row = |index: usize| {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(format!("key-{index}"));
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[principal.keys]]\nprincipal = \"caller-{index}\"\nsha256 = \"{digits}\"\n")
    };
    let all = callers("", &(0..50).map(row).collect::<String>());
    for index in 0..50 {
        check(&all, ("authorization", &format!("Bearer key-{index}")), Ok(&format!("caller-{index}")));
    }
    check(&all, ("authorization", "Bearer key-50"), Err("the key is not known"));
}
