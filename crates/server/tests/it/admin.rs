//! The admin listener over the wire, and what its numbers are called.

use counterfoil_server::Server;
use counterfoil_server::config::Config;

use crate::caller::{ask, order, raw};
use crate::running::{self, Running};
use crate::upstream::{Play, Upstream};

#[tokio::test]
async fn routes() {
    let upstream = Upstream::start(Play::Close).await;
    let running = Running::start(upstream.address, "").await;
    for (line, status, body) in [
        ("GET /healthz", 200, "alive\n"),
        ("GET /readyz", 200, "{\"ready\":true,\"reasons\":[]}\n"),
        ("HEAD /readyz", 200, ""),
        ("POST /healthz", 405, "send GET\n"),
        ("GET /", 404, "there are /healthz, /readyz and /metrics\n"),
        ("GET /metrics/", 404, "there are /healthz, /readyz and /metrics\n"),
    ] {
        let answer = ask(running.admin, line, &[], "").await;
        assert_eq!((answer.status(), answer.body.as_str()), (status, body), "{line}");
    }
    let elsewhere =
        raw(running.admin, "GET /metrics HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n\r\n").await;
    assert_eq!(elsewhere.status(), 421);
}

/// The names are a promise to dashboards.
#[tokio::test]
async fn numbers() {
    let upstream = Upstream::start(Play::Close).await;
    let running = Running::start(upstream.address, "").await;
    order(running.proxy, "k", "{}").await;
    order(running.proxy, "k", "{}").await;
    let text = ask(running.admin, "GET /metrics", &[], "").await.body;
    for (name, kind) in [
        ("counterfoil_decisions_total", "counter"),
        ("counterfoil_ends_total", "counter"),
        ("counterfoil_problems_total", "counter"),
        ("counterfoil_swept_total", "counter"),
        ("counterfoil_running", "gauge"),
        ("counterfoil_records", "gauge"),
        ("counterfoil_records_unknown", "gauge"),
        ("counterfoil_records_running", "gauge"),
        ("counterfoil_oldest_unknown_age_seconds", "gauge"),
        ("counterfoil_clock_in_doubt", "gauge"),
        ("counterfoil_handler_seconds", "histogram"),
    ] {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} {kind} in {text}");
    }
    assert!(!text.contains("orders"), "a path is no label: {text}");
}

fn with_store(store: &std::path::Path, by_flag: bool) -> Config {
    let mut config = running::config("127.0.0.1:9".parse().unwrap(), "");
    let text = format!(
        "store = \"sqlite:{}\"\nupstream = \"http://127.0.0.1:9\"\nprincipal = {{ from = \"none\" }}",
        store.display()
    );
    config.store = Config::read(Some(&text), &|_| None, &counterfoil_server::config::Flags::default()).unwrap().store;
    if by_flag {
        config.store.origin = counterfoil_server::config::Origin::Flag("--store");
    }
    config
}

#[tokio::test]
async fn a_store_that_a_file_names_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipts.db");
    let refused = Server::start(with_store(&path, false)).await.err().unwrap().to_string();
    assert!(refused.contains("counterfoil migrate"), "{refused}");
    assert!(!path.exists());
    drop(Server::start(with_store(&path, true)).await.unwrap());
    assert!(path.exists());
    drop(Server::start(with_store(&path, false)).await.unwrap());
}

/// A store that is taken away makes the server unready, and a guarded request is refused before it runs.
#[tokio::test]
async fn a_store_that_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipts.db");
    let upstream = Upstream::start(Play::Send("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")).await;
    let mut config = with_store(&path, true);
    config.upstream.value =
        counterfoil_server::config::Upstream::parse(&format!("http://{}", upstream.address)).unwrap();
    let server = Server::start(config).await.unwrap();
    let (proxy, admin) = (server.address().socket().unwrap(), server.admin_address().socket().unwrap());
    let task = tokio::spawn(server.run(std::future::pending()));
    assert_eq!(order(proxy, "a", "{}").await.status(), 201);
    std::fs::rename(&path, folder.path().join("elsewhere.db")).unwrap();
    let ready = ask(admin, "GET /readyz", &[], "").await;
    assert_eq!(ready.status(), 503, "{ready:?}");
    let answer = order(proxy, "b", "{}").await;
    assert_eq!((answer.status(), answer.problem().as_str()), (503, "store-unavailable"));
    assert_eq!(upstream.seen().len(), 1);
    task.abort();
}
