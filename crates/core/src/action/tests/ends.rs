//! What renewals, completions, releases, doubts and dead owners' ends come to in every state, of the record's own lease
//! and of any other. What an operator does is in `operator`.

use std::time::Duration;

use crate::action::tests::catalogue::{
    Case, ELSEWHERE, HOME, LEASE, MINE, NOW, OTHERS, OVER, receipt, record, states, unheld, unknown,
};
use crate::action::tests::tables::{check, written};
use crate::action::{Completed, Refused, Write, complete, doubt, end_lease, release, renew};
use crate::policy::{Effect, Expiry};
use crate::record::tests::WHYS;
use crate::record::{LeaseId, State, Why};

const DAY: Duration = Duration::from_hours(24);

fn cell(state: &Case, answer: Result<Option<Write>, Refused>) -> String {
    match answer {
        Ok(Some(write)) => written(state.record.as_ref(), &write),
        Ok(None) => "as-it-is".to_owned(),
        Err(refused) => format!("!{}", refused.as_str()),
    }
}

/// The end of a run named by a column, under `lease`.
fn end(state: &Case, lease: LeaseId, column: &str) -> Result<Option<Write>, Refused> {
    let record = state.record.as_ref();
    match column {
        "renew" => renew(record, lease, LEASE, NOW).map(Write::Put).map(Some),
        "complete" => match complete(record, lease, receipt(), DAY, Expiry::NewAction, NOW)? {
            Completed::Write(record) => Ok(Some(Write::Put(record))),
            Completed::Already => Ok(None),
        },
        "release" => release(record, lease, NOW).map(Some),
        why => {
            let why = WHYS.into_iter().find(|known| known.as_str() == why).unwrap();
            Ok(doubt(record, lease, why, NOW)?.map(Write::Put))
        }
    }
}

const OWN: &str = "
    state                           renew                 complete              release
    absent                          !absent               !absent               !absent
    running.other                   running               done                  absent
    running.coupled                 running               done                  absent
    running.keyed                   running#3             done#3                spent#3
    lapsed.other                    running               done                  absent
    lapsed.coupled                  running               done                  absent
    lapsed.keyed                    running#3             done#3                spent#3
    ended.other                     running               done                  absent
    ended.coupled                   running               done                  absent
    ended.keyed                     running#3             done#3                spent#3
    unknown.lapsed                  running               done                  !unknown
    unknown.doubted                 !unknown              done                  !unknown
    unknown.answered-without-settle !unknown              done                  !unknown
    unknown.window-closed           !unknown              done                  !unknown
    unknown.quarantined             !unknown              done                  !unknown
    done.owner                      !done                 as-it-is              !done
    done.operator                   !settled-by-operator  !settled-by-operator  !settled-by-operator
    done-refuse.owner               !done                 as-it-is              !done
    done-refuse.operator            !settled-by-operator  !settled-by-operator  !settled-by-operator
    over.owner                      !done                 as-it-is              !done
    over.operator                   !settled-by-operator  !settled-by-operator  !settled-by-operator
    refused.owner                   !done                 as-it-is              !done
    refused.operator                !settled-by-operator  !settled-by-operator  !settled-by-operator
    past.owner                      !done                 as-it-is              !done
    past.operator                   !settled-by-operator  !settled-by-operator  !settled-by-operator
    spent                           !expired              !expired              !expired
    spent-past                      !expired              !expired              !expired
    doubted.keyed                   running#3?            done#3?               running#3?
    lapsed-doubted.keyed            running#3?            done#3?               running#3?
    unknown-doubted.keyed           !unknown              done#3?               !unknown
    closed.keyed                    running#3?            done#3?               unknown:window-closed#3?
    lapsed-closed.keyed             running#3?            done#3?               unknown:window-closed#3?
    unknown-closed.keyed            !unknown              done#3?               !unknown
    done.keyed                      !done                 as-it-is              !done
    over.keyed                      !done                 as-it-is              !done
    refused.keyed                   !done                 as-it-is              !done
    past.keyed                      !done                 as-it-is              !done
    spent-doubted.keyed             !expired              !expired              !expired
    spent-closed.keyed              !expired              !expired              !expired
    spent.keyed                     !expired              !expired              !expired
    spent-refused.keyed             !expired              !expired              !expired
    spent-past.keyed                !expired              !expired              !expired
";

#[test]
fn an_end_by_the_owner_in_every_state() {
    check(OWN, &["renew", "complete", "release"], &states(), |state, column| cell(state, end(state, MINE, column)));
}

/// `running` here is a lease that ends now: under `coupled` and `keyed-upstream` a take-over heals what is in doubt.
const DOUBT: &str = "
    state                           lapsed                doubted               answered-without-settle         window-closed         quarantined
    absent                          !absent               !absent               !absent                         !absent               !absent
    running.other                   unknown:lapsed        unknown:doubted       unknown:answered-without-settle unknown:window-closed unknown:quarantined
    running.coupled                 running               running               unknown:answered-without-settle running               running
    running.keyed                   running#3?            running#3?            unknown:answered-without-settle#3 unknown:window-closed#3 running#3?
    lapsed.other                    unknown:lapsed        unknown:doubted       unknown:answered-without-settle unknown:window-closed unknown:quarantined
    lapsed.coupled                  as-it-is              as-it-is              unknown:answered-without-settle as-it-is              as-it-is
    lapsed.keyed                    running#3?            running#3?            unknown:answered-without-settle#3 unknown:window-closed#3 running#3?
    ended.other                     unknown:lapsed        unknown:doubted       unknown:answered-without-settle unknown:window-closed unknown:quarantined
    ended.coupled                   as-it-is              as-it-is              unknown:answered-without-settle as-it-is              as-it-is
    ended.keyed                     running#3?            running#3?            unknown:answered-without-settle#3 unknown:window-closed#3 running#3?
    unknown.lapsed                  as-it-is              unknown:doubted       unknown:answered-without-settle unknown:window-closed unknown:quarantined
    unknown.doubted                 as-it-is              as-it-is              as-it-is                        as-it-is              as-it-is
    unknown.answered-without-settle as-it-is              as-it-is              as-it-is                        as-it-is              as-it-is
    unknown.window-closed           as-it-is              as-it-is              as-it-is                        as-it-is              as-it-is
    unknown.quarantined             as-it-is              as-it-is              as-it-is                        as-it-is              as-it-is
    done.owner                      !done                 !done                 !done                           !done                 !done
    done.operator                   !settled-by-operator  !settled-by-operator  !settled-by-operator            !settled-by-operator  !settled-by-operator
    done-refuse.owner               !done                 !done                 !done                           !done                 !done
    done-refuse.operator            !settled-by-operator  !settled-by-operator  !settled-by-operator            !settled-by-operator  !settled-by-operator
    over.owner                      !done                 !done                 !done                           !done                 !done
    over.operator                   !settled-by-operator  !settled-by-operator  !settled-by-operator            !settled-by-operator  !settled-by-operator
    refused.owner                   !done                 !done                 !done                           !done                 !done
    refused.operator                !settled-by-operator  !settled-by-operator  !settled-by-operator            !settled-by-operator  !settled-by-operator
    past.owner                      !done                 !done                 !done                           !done                 !done
    past.operator                   !settled-by-operator  !settled-by-operator  !settled-by-operator            !settled-by-operator  !settled-by-operator
    spent                           !expired              !expired              !expired                        !expired              !expired
    spent-past                      !expired              !expired              !expired                        !expired              !expired
    doubted.keyed                   running#3?            running#3?            unknown:answered-without-settle#3? unknown:window-closed#3? running#3?
    lapsed-doubted.keyed            as-it-is              as-it-is              unknown:answered-without-settle#3? unknown:window-closed#3? as-it-is
    unknown-doubted.keyed           as-it-is              as-it-is              as-it-is                        as-it-is              as-it-is
    closed.keyed                    running#3?            running#3?            unknown:answered-without-settle#3? unknown:window-closed#3? running#3?
    lapsed-closed.keyed             as-it-is              as-it-is              unknown:answered-without-settle#3? unknown:window-closed#3? as-it-is
    unknown-closed.keyed            as-it-is              as-it-is              as-it-is                        as-it-is              as-it-is
    done.keyed                      !done                 !done                 !done                           !done                 !done
    over.keyed                      !done                 !done                 !done                           !done                 !done
    refused.keyed                   !done                 !done                 !done                           !done                 !done
    past.keyed                      !done                 !done                 !done                           !done                 !done
    spent-doubted.keyed             !expired              !expired              !expired                        !expired              !expired
    spent-closed.keyed              !expired              !expired              !expired                        !expired              !expired
    spent.keyed                     !expired              !expired              !expired                        !expired              !expired
    spent-refused.keyed             !expired              !expired              !expired                        !expired              !expired
    spent-past.keyed                !expired              !expired              !expired                        !expired              !expired
";

#[test]
fn a_doubt_by_the_owner_in_every_state() {
    let columns = WHYS.map(Why::as_str);
    check(DOUBT, &columns, &states(), |state, column| cell(state, end(state, MINE, column)));
}

#[test]
fn no_call_of_another_lease_touches_any_state() {
    let columns = WHYS.map(Why::as_str).into_iter().chain(["renew", "complete", "release"]);
    for (state, column) in states().iter().flat_map(|state| columns.clone().map(move |column| (state, column))) {
        let expected = if state.record.is_none() { Refused::Absent } else { Refused::OtherLease };
        assert_eq!(end(state, OTHERS, column), Err(expected), "{} x {column}", state.name);
    }
}

const ENDED: &str = "
    state                           home                            elsewhere
    absent                          as-it-is                        as-it-is
    running.other                   running                         as-it-is
    running.coupled                 running                         as-it-is
    running.keyed                   running#3                       as-it-is
    lapsed.other                    running                         as-it-is
    lapsed.coupled                  running                         as-it-is
    lapsed.keyed                    running#3                       as-it-is
    ended.other                     as-it-is                        as-it-is
    ended.coupled                   as-it-is                        as-it-is
    ended.keyed                     as-it-is                        as-it-is
    unknown.lapsed                  unknown:lapsed                  as-it-is
    unknown.doubted                 unknown:doubted                 as-it-is
    unknown.answered-without-settle unknown:answered-without-settle as-it-is
    unknown.window-closed           unknown:window-closed           as-it-is
    unknown.quarantined             unknown:quarantined             as-it-is
    done.owner                      as-it-is                        as-it-is
    done.operator                   as-it-is                        as-it-is
    done-refuse.owner               as-it-is                        as-it-is
    done-refuse.operator            as-it-is                        as-it-is
    over.owner                      as-it-is                        as-it-is
    over.operator                   as-it-is                        as-it-is
    refused.owner                   as-it-is                        as-it-is
    refused.operator                as-it-is                        as-it-is
    past.owner                      as-it-is                        as-it-is
    past.operator                   as-it-is                        as-it-is
    spent                           as-it-is                        as-it-is
    spent-past                      as-it-is                        as-it-is
    doubted.keyed                   running#3?                      as-it-is
    lapsed-doubted.keyed            running#3?                      as-it-is
    closed.keyed                    running#3?                      as-it-is
    lapsed-closed.keyed             running#3?                      as-it-is
    unknown-doubted.keyed           unknown:window-closed#3?        as-it-is
    unknown-closed.keyed            unknown:window-closed#3?        as-it-is
    done.keyed                      as-it-is                        as-it-is
    over.keyed                      as-it-is                        as-it-is
    refused.keyed                   as-it-is                        as-it-is
    past.keyed                      as-it-is                        as-it-is
    spent-doubted.keyed             as-it-is                        as-it-is
    spent-closed.keyed              as-it-is                        as-it-is
    spent.keyed                     as-it-is                        as-it-is
    spent-refused.keyed             as-it-is                        as-it-is
    spent-past.keyed                as-it-is                        as-it-is
";

#[test]
fn the_end_of_a_dead_process_s_lease_in_every_state() {
    check(ENDED, &["home", "elsewhere"], &states(), |state, column| {
        let gone = if column == "home" { HOME } else { ELSEWHERE };
        let after = state.record.as_ref().and_then(|record| end_lease(record, gone, NOW));
        if let Some(after) = &after {
            assert!(after.lease.is_ended() && after.lease.until <= NOW, "{after:?}");
        }
        cell(state, Ok(after.map(Write::Put)))
    });
}

#[test]
fn a_lease_that_no_process_holds_is_never_ended() {
    assert_eq!(end_lease(&unheld(record(Effect::Other, State::Running, 1)), HOME, NOW), None);
}

#[test]
fn a_renewal_lasts_one_span_from_now_and_leaves_the_attempt_limit() {
    for state in [State::Running, unknown(Why::Lapsed)] {
        let before = record(Effect::Other, state, OVER + 5);
        let after = renew(Some(&before), MINE, Duration::from_secs(7), NOW).unwrap();
        assert_eq!(after.lease.renewed_at, NOW);
        assert_eq!(after.lease.span, Duration::from_secs(7));
        assert_eq!(after.lease.until, NOW.plus(Duration::from_secs(7)));
        assert_eq!(after.lease.attempt_until, before.lease.attempt_until);
        assert_eq!(after.lease.holder, before.lease.holder);
    }
}

#[test]
fn a_doubt_that_only_ends_the_lease_ends_it_now_and_a_late_completion_still_wins() {
    for effect in [Effect::Coupled, Effect::KeyedUpstream] {
        let before = record(effect, State::Running, 1);
        let after = doubt(Some(&before), MINE, Why::Doubted, NOW).unwrap().unwrap();
        assert_eq!((after.lease.until, after.lease.holder), (NOW, Some(HOME)));
        let late = complete(Some(&after), MINE, receipt(), DAY, Expiry::NewAction, NOW);
        assert!(matches!(late, Ok(Completed::Write(_))), "{late:?}");
    }
}

#[test]
fn a_doubt_after_a_lapse_keeps_its_beginning() {
    let before = record(Effect::Other, unknown(Why::Lapsed), OVER);
    let after = doubt(Some(&before), MINE, Why::Doubted, NOW).unwrap().unwrap();
    assert_eq!(after.state, State::Unknown { since: crate::record::tests::at(990), why: Why::Doubted });
    assert_eq!(renew(Some(&after), MINE, LEASE, NOW), Err(Refused::Unknown), "a stray renewal does not lead back");
}

#[test]
fn retention_counts_from_completion_and_refusal_from_expiry() {
    let running = record(Effect::Other, State::Running, 1);
    for (expiry, expected) in [
        (Expiry::NewAction, None),
        (Expiry::Refuse(LEASE), Some(NOW.plus(DAY).plus(LEASE))),
        (Expiry::Refuse(Duration::ZERO), Some(NOW.plus(DAY))),
    ] {
        let Ok(Completed::Write(after)) = complete(Some(&running), MINE, receipt(), DAY, expiry, NOW) else {
            panic!("not written")
        };
        let State::Done { completed_at, expires_at, refuse_until, receipt: kept, .. } = after.state else {
            panic!("not done")
        };
        assert_eq!((completed_at, expires_at, refuse_until), (NOW, NOW.plus(DAY), expected));
        assert_eq!(kept, receipt());
    }
}
