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
        assert_eq!(remember.judge(status, Answerer::Handler, None), handler, "{status}");
        assert_eq!(remember.judge(status, Answerer::Upstream, None), upstream, "{status}");
        assert_eq!(remember.judge(status, Answerer::Upstream, Some(true)), Outcome::Keep, "{status}");
        assert_eq!(remember.judge(status, Answerer::Handler, Some(false)), Outcome::Release, "{status}");
    }
}

#[test]
fn an_operation_may_declare_a_status_not_processed() {
    let remember = Remember { not_processed: vec![503] };
    assert_eq!(remember.judge(503, Answerer::Upstream, None), Outcome::Release);
    assert_eq!(remember.judge(502, Answerer::Upstream, None), Outcome::Doubt);
}
