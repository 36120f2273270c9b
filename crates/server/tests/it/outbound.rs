//! How requests are carried: each version and door of the upstream, what it is told, and what it is asked for once.

use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use tokio::net::TcpStream;

use crate::authority::Authority;
use crate::caller::{ask, order};
use crate::polite::Polite;
use crate::running::Running;
use crate::two::{Two, Unsized};

/// A new action, its retry, and an unguarded request; `version` is what the upstream should have been spoken to.
async fn check(name: &str, running: &Running, upstream: &Polite, version: &str) {
    let first = order(running.proxy, "k", "{}").await;
    assert_eq!(first.status(), 201, "{name}: {first:?}");
    assert!(first.body.lines().next().unwrap().ends_with(version), "{name}: {first:?}");
    assert!(first.body.ends_with("\n{}\n"), "{name}: {first:?}");
    let second = order(running.proxy, "k", "{}").await;
    assert_eq!((second.header("idempotent-replayed"), &second.body), (Some("true"), &first.body), "{name}");
    let passed = ask(running.proxy, "PUT /a/b?c=d", &["x-a: b"], "text").await;
    let line = passed.body.lines().next().unwrap();
    assert!(line.starts_with("PUT ") && line.contains("/a/b?c=d ") && line.ends_with(version), "{name}: {passed:?}");
    assert!(passed.body.contains("x-a: b\n") && passed.body.contains("\n\ntext\n"), "{name}: {passed:?}");
    assert_eq!(upstream.asked(), 2, "{name}");
}

#[tokio::test]
async fn in_clear() {
    for (http, two, version) in [("auto", false, "HTTP/1.1"), ("1.1", false, "HTTP/1.1"), ("2", true, "HTTP/2.0")] {
        let upstream = Polite::tcp(two).await;
        let more = format!("[forward]\nhttp = \"{http}\"\n");
        let running = Running::before(&format!("http://{}", upstream.authority), &more).await;
        check(http, &running, &upstream, version).await;
    }
}

#[tokio::test]
async fn through_a_unix_socket() {
    for (http, two, version) in [("auto", false, "HTTP/1.1"), ("2", true, "HTTP/2.0")] {
        let folder = tempfile::tempdir().unwrap();
        let upstream = Polite::unix(&folder.path().join("orders.sock"), two);
        let more = format!("[forward]\nhttp = \"{http}\"\n");
        let running = Running::before(&format!("unix:{}/orders.sock", folder.path().display()), &more).await;
        check(http, &running, &upstream, version).await;
    }
}

#[tokio::test]
async fn over_tls() {
    let authority = Authority::new(&["127.0.0.1", "localhost"]);
    let (both, one, two) = (&["h2", "http/1.1"][..], &["http/1.1"][..], &["h2"][..]);
    for (http, offered, version) in [
        ("auto", both, "HTTP/2.0"),
        ("auto", one, "HTTP/1.1"),
        ("auto", &[], "HTTP/1.1"),
        ("1.1", both, "HTTP/1.1"),
        ("2", both, "HTTP/2.0"),
        ("2", two, "HTTP/2.0"),
    ] {
        let upstream = Polite::tls(authority.acceptor(offered)).await;
        let more = format!("[forward]\nhttp = \"{http}\"\nroots = \"{}\"\n", authority.roots().display());
        for host in ["127.0.0.1", "localhost"] {
            let before = upstream.asked();
            let port = upstream.authority.rsplit(':').next().unwrap();
            let running = Running::before(&format!("https://{host}:{port}"), &more).await;
            if before == 0 {
                check(&format!("{http} before {offered:?}"), &running, &upstream, version).await;
            } else {
                assert_eq!(order(running.proxy, "k", "{}").await.status(), 201, "{host}");
            }
        }
    }
}

/// Certificates that are not believed, and versions that are not agreed on: nothing was sent.
#[tokio::test]
async fn tls_that_is_not_believed() {
    let (mine, other) = (Authority::new(&["127.0.0.1"]), Authority::new(&["127.0.0.1"]));
    let elsewhere = Authority::new(&["orders.example"]);
    let roots = |authority: &Authority| format!("[forward]\nroots = \"{}\"\n", authority.roots().display());
    let rows = [
        ("another authority", &mine, roots(&other), &["h2", "http/1.1"][..]),
        ("another name", &elsewhere, roots(&elsewhere), &["h2", "http/1.1"]),
        ("no HTTP/2", &mine, format!("{}http = \"2\"\n", roots(&mine)), &["http/1.1"]),
        ("no HTTP/2 and no word", &mine, format!("{}http = \"2\"\n", roots(&mine)), &[]),
        ("no HTTP/1.1", &mine, format!("{}http = \"1.1\"\n", roots(&mine)), &["h2"]),
    ];
    for (name, authority, more, offered) in rows {
        let upstream = Polite::tls(authority.acceptor(offered)).await;
        let running = Running::before(&format!("https://{}", upstream.authority), &more).await;
        for _ in 0..2 {
            let answer = order(running.proxy, "k", "{}").await;
            assert_eq!(
                (answer.status(), answer.problem().as_str()),
                (502, "upstream-unreachable"),
                "{name}: {answer:?}"
            );
        }
        assert_eq!(upstream.asked(), 0, "{name}");
    }
}

#[tokio::test]
async fn the_host_that_is_told() {
    for (two, line) in [(false, "\nhost: api.example\n"), (true, " http://api.example/ HTTP/2.0\n")] {
        let upstream = Polite::tcp(two).await;
        let more = format!("[forward]\nhost = \"caller\"\nhttp = \"{}\"\n", if two { "2" } else { "1.1" });
        let running = Running::before(&format!("http://{}", upstream.authority), &more).await;
        let text = "GET / HTTP/1.1\r\nhost: api.example\r\nconnection: close\r\n\r\n";
        let answer = crate::caller::raw(running.proxy, text).await;
        assert!(answer.body.contains(line), "{answer:?}");
        // The target's own host outranks the header.
        let text = "GET http://api.example/ HTTP/1.1\r\nhost: other.example\r\nconnection: close\r\n\r\n";
        let answer = crate::caller::raw(running.proxy, text).await;
        assert!(answer.body.contains(line), "{answer:?}");
    }
}

/// What a caller says about who asked is believed from a named peer only.
#[tokio::test]
async fn whose_word_is_taken() {
    let lies = [
        "x-forwarded-for: 203.0.113.9",
        "x-forwarded-proto: https",
        "x-forwarded-host: shop.example",
        "forwarded: for=203.0.113.9",
    ];
    for (trusted, chain, proto) in [
        ("[]", "127.0.0.1", "http"),
        ("[\"10.0.0.0/8\", \"unix\"]", "127.0.0.1", "http"),
        ("[\"10.0.0.0/8\", \"127.0.0.0/8\"]", "203.0.113.9, 127.0.0.1", "https"),
    ] {
        let upstream = Polite::tcp(false).await;
        let more = format!("[forward]\ntrusted = {trusted}\n");
        let running = Running::before(&format!("http://{}", upstream.authority), &more).await;
        let answer = ask(running.proxy, "GET /", &lies, "").await;
        let host = if proto == "https" { "shop.example".to_owned() } else { running.proxy.to_string() };
        let elements = chain.split(", ").map(|node| match node {
            "127.0.0.1" => format!("for=127.0.0.1;proto=http;host=\"{}\"", running.proxy),
            other => format!("for={other}"),
        });
        let forwarded = elements.collect::<Vec<_>>().join(", ");
        for line in [
            format!("\nx-forwarded-for: {chain}\n"),
            format!("\nx-forwarded-proto: {proto}\n"),
            format!("\nx-forwarded-host: {host}\n"),
            format!("\nforwarded: {forwarded}\n"),
        ] {
            assert!(answer.body.contains(&line), "{line:?} in {answer:?}");
        }
    }
}

/// Trailers go through unguarded in both directions, and `TE` says so at each hop.
#[tokio::test]
async fn trailers_pass_unguarded() {
    for two in [false, true] {
        let upstream = Polite::tcp(two).await;
        let more = format!("[forward]\nhttp = \"{}\"\n", if two { "2" } else { "1.1" });
        let running = Running::before(&format!("http://{}", upstream.authority), &more).await;
        let mut caller = Two::open(TcpStream::connect(running.proxy).await.unwrap()).await;
        let mut check = HeaderMap::new();
        check.insert("x-check", "1".parse().unwrap());
        let body = Full::new(bytes::Bytes::from_static(b"text"));
        let body = body
            .with_trailers(std::future::ready(Some(Ok(check))))
            .map_err(|never: std::convert::Infallible| match never {});
        let request = Request::post("http://api.example/rpc").header("te", "trailers").header("trailer", "x-check");
        let answer = caller.ask(request.body(Unsized(body).boxed_unsync()).unwrap()).await;
        assert!(answer.body.contains("\nte: trailers\n"), "{answer:?}");
        assert!(answer.body.ends_with("\ntext\nx-check: 1\n"), "{answer:?}");
        assert_eq!(answer.trailers.get("x-sum").map(|sum| sum.as_bytes()), Some(&b"7"[..]), "{answer:?}");
        let none = ask(running.proxy, "GET /", &["te: gzip"], "").await;
        assert!(!none.body.contains("\nte:"), "{none:?}");
    }
}
