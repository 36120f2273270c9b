//! Problem documents against their golden file. Which decision becomes which belongs to `middleware/reject.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::wire::problem::{Problem, ProblemType};

const GOLDEN: &str = "src/wire/problems.txt";

/// Types, statuses and members are what clients are written against: `COUNTERFOIL_BLESS=1` rewrites the file.
#[test]
#[expect(clippy::disallowed_methods, reason = "whether to rewrite the golden file is asked of the environment")]
fn problem_documents_are_as_published() {
    let lines: String = ProblemType::ALL
        .into_iter()
        .map(|kind| Problem::new(kind, "what happened, and the next step").with_member("identity", "d62506b491e16fc7"))
        .map(|problem| format!("{} {}\n", problem.status, String::from_utf8(problem.to_json()).unwrap()))
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    if std::env::var("COUNTERFOIL_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::write(&path, &lines).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
}

/// The table of DESIGN section 8, and `principal-unavailable`.
#[test]
fn every_type_has_its_name_and_status() {
    let table = "
        missing-key 400
        malformed-key 400
        malformed-path 400
        malformed-body 400
        unauthenticated 401
        forbidden 403
        in-progress 409
        outcome-unknown 409
        result-not-kept 409
        expired-key 410
        too-old 412
        body-too-large 413
        mismatch 422
        too-early 425
        not-supported 501
        upstream-unreachable 502
        principal-unavailable 503
        store-unavailable 503
        too-many-waiting 503
        too-many-running 503
        record-unreadable 503
        store-newer 503
    ";
    let expected: Vec<&str> = table.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found: Vec<String> = ProblemType::ALL.iter().map(|kind| format!("{} {}", kind.name(), kind.status())).collect();
    assert_eq!(found, expected);
    let names: BTreeSet<&str> = ProblemType::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), ProblemType::ALL.len());
}

#[test]
fn a_status_may_be_overridden_and_stands_in_the_document() {
    let problem = Problem::new(ProblemType::OutcomeUnknown, "x").with_status(504);
    let document: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
    assert_eq!(document["status"], 504);
    assert_eq!(document["type"], "urn:counterfoil:problem:outcome-unknown");
    assert_eq!(document["title"], ProblemType::OutcomeUnknown.title());
}

#[test]
fn no_further_member_takes_the_place_of_a_standard_one() {
    let mut problem = Problem::new(ProblemType::Mismatch, "x");
    for name in ["type", "title", "status", "detail", "instance"] {
        problem = problem.with_member(name, "other");
    }
    let document: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
    assert_eq!(document["status"], 422);
    assert_eq!(document["detail"], "x");
    assert_eq!(document["type"], "urn:counterfoil:problem:mismatch");
    assert_eq!(document["instance"], "other", "which occurrence it is, is the caller's to say");
}
