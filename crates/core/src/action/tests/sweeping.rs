//! What a sweep makes of every state, and that it never changes a decision. When to sweep belongs to the store.

use proptest::prelude::*;

use crate::action::tests::catalogue::{DIFFERENT, FROZEN, NOW, SAME, claim, learned, states};
use crate::action::tests::tables::{check, written};
use crate::action::{Write, decide, sweep};
use crate::record::State;
use crate::record::tests::{at, records};
use crate::time::Now;

const SWEEPS: &str = "
    state                           in-time   clock-in-doubt
    absent                          -         -
    running.other                   -         -
    running.coupled                 -         -
    running.keyed                   -         -
    lapsed.other                    -         -
    lapsed.coupled                  -         -
    lapsed.keyed                    -         -
    ended.other                     -         -
    ended.coupled                   -         -
    ended.keyed                     -         -
    unknown.lapsed                  -         -
    unknown.doubted                 -         -
    unknown.answered-without-settle -         -
    unknown.window-closed           -         -
    unknown.quarantined             -         -
    done.owner                      -         -
    done.operator                   -         -
    done-refuse.owner               -         -
    done-refuse.operator            -         -
    over.owner                      absent    -
    over.operator                   absent    -
    refused.owner                   spent     -
    refused.operator                spent     -
    past.owner                      absent    -
    past.operator                   absent    -
    spent                           -         -
    spent-past                      absent    -
    doubted.keyed                   -         -
    lapsed-doubted.keyed            -         -
    unknown-doubted.keyed           -         -
    closed.keyed                    -         -
    lapsed-closed.keyed             -         -
    unknown-closed.keyed            -         -
    done.keyed                      -         -
    over.keyed                      spent#4   -
    refused.keyed                   spent#4   -
    past.keyed                      spent#4   -
    spent-doubted.keyed             -         -
    spent-closed.keyed              -         -
    spent.keyed                     -         -
    spent-refused.keyed             -         -
    spent-past.keyed                -         -
";

#[test]
fn a_sweep_in_every_state() {
    check(SWEEPS, &["in-time", "clock-in-doubt"], &states(), |state, column| {
        let now = if column == "in-time" { Now::at(NOW) } else { FROZEN };
        let write = state.record.as_ref().and_then(|record| sweep(record, now));
        write.map_or("-".to_owned(), |write| written(state.record.as_ref(), &write))
    });
}

/// However late the sweep comes, the refusal ends when the receipt said.
#[test]
fn a_refusal_is_counted_from_the_receipt_and_not_from_the_sweep() {
    let refused = states().into_iter().find(|state| state.name == "refused.owner").unwrap().record.unwrap();
    let State::Done { refuse_until: Some(expected), .. } = refused.state else { panic!("no refusal") };
    let Some(Write::Put(spent)) = sweep(&refused, Now::at(NOW)) else { panic!("not spent") };
    assert_eq!(spent.state, State::Spent { until: expected });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn sweeping_never_changes_a_decision(
        record in records((0..12_i64).prop_map(at), prop::sample::select(vec![
            claim("json", SAME).fingerprint().clone(),
            claim("bytes", SAME).fingerprint().clone(),
            claim("json;ignore=/sent_at", SAME).fingerprint().clone(),
        ])),
        asks in prop::sample::select(vec![claim("json", SAME), claim("json", DIFFERENT), learned(SAME), learned(DIFFERENT)]),
        now in 0..12_i64,
        behind in prop_oneof![Just(0_i64), 0..12_i64],
    ) {
        let now = Now { at: at(now), expiry_at: at(now - behind) };
        let (before, _) = decide(Some(&record), &asks, now);
        match sweep(&record, now) {
            None => {}
            Some(Write::Put(swept)) => {
                prop_assert_eq!(decide(Some(&swept), &asks, now).0, before);
                prop_assert_eq!(sweep(&swept, now), None, "one sweep is enough");
            }
            Some(Write::Delete) => prop_assert_eq!(decide(None, &asks, now).0, before),
            Some(Write::Claim { .. }) => prop_assert!(false, "a sweep claims nothing"),
        }
    }
}
