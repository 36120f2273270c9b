//! What a run is written as: read back, compared, and counted.

use counterfoil_probe::{FailOn, Run, Settings, Value, Verdict, report};

use crate::orders::{Fault, Orders};
use crate::right::{run, settings};

async fn probed(fault: Fault, cases: &[&str]) -> Run {
    let orders = Orders::start(fault).await;
    let case = cases.iter().map(|case| (*case).to_owned()).collect();
    run(&Settings { case, ..settings(&orders) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_summary_and_the_sheet_are_read_back() {
    let found = probed(Fault::None, &["B", "D"]).await;
    assert_eq!(report::read(&report::json(&found).unwrap()).unwrap().results, found.results);
    let sheet = report::Sheet::of(&found);
    let text = sheet.to_toml().unwrap();
    assert_eq!(report::Sheet::parse(&text).unwrap(), sheet);
    assert_eq!(sheet.field["mismatch"]["status"].value, Value::Number(422), "{text}");
    assert_eq!(sheet.field["replay"]["marker"].value, Value::Text("idempotent-replayed: true".to_owned()));
    assert!(report::Sheet::parse(&text.replace("format = 1", "format = 2")).is_err());
    assert!(report::Sheet::parse(&text.replace("source = \"measured\"", "source = \"guessed\"")).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_told_from_what_is_not_known() {
    let sheet = |run: &Run| report::Sheet::of(run);
    let right = sheet(&probed(Fault::None, &["B", "D1"]).await);
    assert!(right.drift(&right).is_empty());
    let other = sheet(&probed(Fault::MismatchConflict, &["B", "D1"]).await);
    let drift = right.drift(&other);
    assert!(drift.len() == 1 && drift[0].field == "mismatch.status" && drift[0].is_change(), "{drift:?}");
    let fewer = sheet(&probed(Fault::None, &["B"]).await);
    let drift = right.drift(&fewer);
    assert!(!drift.is_empty() && drift.iter().all(|drift| !drift.is_change()), "{drift:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn junit_counts_as_the_verdicts_do() {
    let found = probed(Fault::ReplayStatus, &["seq/one", "seq/status", "seq/marker", "E8"]).await;
    let text = report::junit(&found);
    assert!(text.contains("failures=\"1\" errors=\"0\" skipped=\"0\""), "{text}");
    assert!(text.contains("<failure message=\"deviates (minor): same no\">"), "{text}");
    let codes = [FailOn::Any, FailOn::Major, FailOn::Critical].map(|fail_on| found.exit_code(fail_on));
    assert_eq!(codes, [1, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_targets_side_by_side() {
    let runs = [probed(Fault::None, &["D1"]).await, probed(Fault::MismatchPlain, &["D1", "I1"]).await];
    let page = report::page(&runs);
    let cells = page.matches("<details>").count();
    let (asked, unasked) = (runs.iter().map(|run| run.results.len()).sum::<usize>(), page.matches("not asked").count());
    assert_eq!((cells, unasked), (asked, 1), "the second run asks one case more");
    assert!(page.contains("urn:orders:mismatch") && !page.contains("<script") && !page.contains("src="));
}

#[test]
fn exit_codes() {
    let result = |verdict| {
        let row = r#"{"id":"x","row":"A1","asks":"","kind":"check","clause":"","verdict":"conforms","why":"",
            "expected":"","summary":"","facts":{},"sheet":{},"observations":0,"exchanges":[]}"#;
        let mut result: counterfoil_probe::CaseResult = serde_json::from_str(row).unwrap();
        result.verdict = verdict;
        result
    };
    let check = |verdicts: &[Verdict], wanted: u8| {
        let text = r#"{"format":1,"target":"","contract":"ietf","began":"","observer":0,"results":[],"exchanges":[],
            "effects_left":null,"ids_left":[]}"#;
        let mut run = report::read(text).unwrap();
        run.results = verdicts.iter().map(|verdict| result(*verdict)).collect();
        assert_eq!(run.exit_code(FailOn::Any), wanted, "{verdicts:?}");
    };
    use counterfoil_probe::Severity::Minor;
    check(&[Verdict::Conforms, Verdict::Inconclusive], 0);
    check(&[Verdict::Conforms, Verdict::Deviates(Minor)], 1);
    check(&[Verdict::Conforms, Verdict::SetupFailed], 3);
    check(&[Verdict::Conforms, Verdict::IntermediaryRetried], 3);
    check(&[Verdict::Inconclusive, Verdict::Unobservable, Verdict::SkippedUnsafe, Verdict::NotApplicable], 4);
    check(&[], 4);
    check(&[Verdict::Conforms, Verdict::HarnessError], 5);
}
