//! What is remembered, as a table over every status.

use super::*;

#[test]
fn every_status_has_its_outcome() {
    let remember = Remember::default();
    for status in 100..=599_u16 {
        let handler = match status {
            100..=199 => Outcome::Doubt,
            400 | 401 | 403 | 405..=408 | 411 | 413..=417 | 421 | 422 | 425 | 426 | 428 | 429 | 431 => Outcome::Release,
            _ => Outcome::Keep,
        };
        let upstream = if matches!(status, 502..=504) { Outcome::Doubt } else { handler };
        assert_eq!(remember.judge(status, None, Answerer::Handler, None), handler, "{status}");
        assert_eq!(remember.judge(status, None, Answerer::Upstream, None), upstream, "{status}");
        assert_eq!(remember.judge(status, None, Answerer::Upstream, Some(true)), Outcome::Keep, "{status}");
        assert_eq!(remember.judge(status, None, Answerer::Handler, Some(false)), Outcome::Release, "{status}");
    }
}

#[test]
fn an_operation_may_declare_a_status_not_processed() {
    let remember = Remember { not_processed: vec![503], ..Remember::default() };
    assert_eq!(remember.judge(503, None, Answerer::Upstream, None), Outcome::Release);
    assert_eq!(remember.judge(502, None, Answerer::Upstream, None), Outcome::Doubt);
}

const BUSY: &str = "https://upstream.example/problems/busy";

/// "Still running" is doubt, before everything that the answer says of itself.
#[test]
fn still_running_is_doubt_and_never_a_result() {
    let in_progress = StillRunning { statuses: vec![409, 429], problems: vec![BUSY.to_owned()] };
    let remember = Remember { not_processed: vec![409], in_progress };
    let rows = [
        (409, None, None, Outcome::Doubt),
        (409, None, Some(true), Outcome::Doubt),
        (429, None, Some(false), Outcome::Doubt),
        (422, Some(BUSY), None, Outcome::Doubt),
        (200, Some(BUSY), Some(true), Outcome::Doubt),
        (422, Some("https://upstream.example/problems/other"), None, Outcome::Release),
        (404, None, None, Outcome::Keep),
    ];
    for (status, problem, said, expected) in rows {
        for answerer in [Answerer::Handler, Answerer::Upstream] {
            assert_eq!(remember.judge(status, problem, answerer, said), expected, "{status} {problem:?} {said:?}");
        }
    }
    assert!(!remember.in_progress.is_empty() && StillRunning::default().is_empty());
}
