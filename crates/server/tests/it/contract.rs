//! The published contract over HTTP: on unless it is switched off, the same as on its reference page, and without what
//! is nobody's business. What it says of each setting is tested with the layer.

use crate::caller::ask;
use crate::running::Running;
use crate::upstream::{Play, Upstream};

const PATH: &str = "/.well-known/idempotency";
const OWN: Play = Play::Send("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nown");

#[tokio::test]
async fn it_is_published_unless_the_path_is_the_upstreams() {
    let upstream = Upstream::start(OWN).await;
    let running = Running::start(upstream.address, "").await;
    let get = ask(running.proxy, &format!("GET {PATH}"), &[], "").await;
    assert_eq!((get.status(), get.header("content-type")), (200, Some("application/json")), "{get:?}");
    let document: serde_json::Value = serde_json::from_str(&get.body).unwrap();
    assert_eq!((&document["contract"], &document["unlisted"]["guarded"]), (&1.into(), &true.into()), "{document}");

    let head = ask(running.proxy, &format!("HEAD {PATH}"), &[], "").await;
    assert_eq!((head.status(), head.body.as_str()), (200, ""), "{head:?}");
    for name in ["content-type", "content-length", "etag", "cache-control"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    let known = format!("if-none-match: {}", get.header("etag").unwrap());
    let again = ask(running.proxy, &format!("GET {PATH}"), &[&known], "").await;
    assert_eq!((again.status(), again.body.as_str(), again.header("content-type")), (304, "", None), "{again:?}");
    assert_eq!(again.header("etag"), get.header("etag"));
    assert!(upstream.seen().is_empty(), "the upstream was asked");

    let running = Running::start(upstream.address, "publish_contract = false").await;
    let own = ask(running.proxy, &format!("GET {PATH}"), &[], "").await;
    assert_eq!((own.status(), own.body.as_str()), (200, "own"), "{own:?}");
    assert_eq!(upstream.seen().len(), 1);
}

/// Nobody is named who may name callers, nor how, nor where anything is.
#[tokio::test]
async fn it_tells_nothing_of_the_inside() {
    let upstream = Upstream::start(OWN).await;
    let more = "[principal]\nfrom = \"header\"\nheader = \"x-inner-user\"\npeers = [\"10.20.30.40\"]\n";
    let running = Running::start(upstream.address, more).await;
    // This caller comes from no believed peer, and needs to be nobody.
    let answer = ask(running.proxy, &format!("GET {PATH}"), &["x-inner-user: ann"], "").await;
    assert_eq!(answer.status(), 200, "{answer:?}");
    let document: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(document["unlisted"]["scope"], serde_json::json!(["principal"]));
    let address = upstream.address.to_string();
    for inside in ["x-inner-user", "ann", "10.20.30.40", "127.0.0.1", "memory", address.as_str()] {
        assert!(!answer.body.contains(inside), "{inside} is told");
    }
}

/// The fenced blocks of this language on a page.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let open = format!("```{language}\n");
    page.split(&open).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// `docs/reference/contract.md` shows a configuration and what is published under it; `COUNTERFOIL_BLESS=1` writes the
/// document and its headers there anew.
#[tokio::test]
async fn the_page_shows_what_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/contract.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (file, shown) = (blocks(&page, "toml"), blocks(&page, "json"));
    let (Some(file), Some(shown)) = (file.first(), shown.first()) else { panic!("the page shows no such blocks") };
    let upstream = Upstream::start(Play::Close).await;
    let running = Running::start(upstream.address, file).await;
    let answer = ask(running.proxy, &format!("GET {PATH}"), &[], "").await;
    let mut served = page.replacen(shown, &answer.body, 1);
    for name in ["etag", "content-length"] {
        let told = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let told = told.unwrap_or_else(|| panic!("the page shows no {name}"));
        served = served.replace(told, answer.header(name).unwrap());
    }
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        std::fs::write(path, served).unwrap();
        return;
    }
    assert_eq!(page, served, "COUNTERFOIL_BLESS=1 writes the page anew");
}
