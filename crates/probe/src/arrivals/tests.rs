//! When more requests arrived than were sent, and when one is only late.

use super::Late;
use crate::exchange::{Answer, Exchange};

#[test]
fn a_late_request_is_no_repetition_and_is_forgiven_once() {
    let answer = Some(Answer { status: 201, headers: Vec::new(), body: String::new(), whole: true });
    let answered = Exchange { answer, ..Exchange::default() };
    let open = Exchange::default();
    let check = |rounds: &[(&[&Exchange], u64, bool)]| {
        let mut late = Late::default();
        for (number, (exchanges, arrived, repeated)) in rounds.iter().enumerate() {
            let exchanges: Vec<Exchange> = exchanges.iter().map(|one| (*one).clone()).collect();
            assert_eq!(late.judge(*arrived, &exchanges).is_some(), *repeated, "round {number} of {rounds:?}");
        }
    };
    check(&[(&[&answered, &answered], 2, false), (&[&answered], 2, true)]);
    // A cache in front answers the second one: that one does not come later.
    check(&[(&[&answered, &answered], 1, false), (&[&answered], 2, true)]);
    check(&[(&[&answered, &open], 1, false), (&[&answered], 2, false), (&[&answered], 2, true)]);
    check(&[(&[&open], 0, false), (&[&answered], 1, false), (&[&answered], 1, false), (&[&answered], 2, true)]);
    check(&[(&[&open], 1, false), (&[&answered], 2, true)]);
}
