//! `demo --once` shows what the demo promises: a created order, its replay, a conflict, and a settled doubt.

use crate::command::run;

#[test]
fn the_tour() {
    let folder = tempfile::tempdir().unwrap();
    let tour = run(folder.path(), &["demo", "--once"]);
    assert_eq!((tour.code, tour.out.as_str()), (0, ""), "{tour:?}");
    let statuses: Vec<&str> = tour.err.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    assert_eq!(
        statuses,
        [
            "HTTP/1.1 201 Created",
            "HTTP/1.1 201 Created",
            "HTTP/1.1 422 Unprocessable Entity",
            "HTTP/1.1 504 Gateway Timeout",
            "HTTP/1.1 409 Conflict",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 201 Created",
            "HTTP/1.1 200 OK",
        ],
        "{tour:?}"
    );
    assert_eq!(tour.err.matches("idempotent-replayed: true").count(), 2);
    let orders = r#"[{"id":1,"product":"tea","quantity":2},{"id":2,"product":"slow","quantity":1}]"#;
    assert_eq!(tour.err.matches(orders).count(), 2, "each effect happened once: {}", tour.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it leaves nothing where it was started");
}
