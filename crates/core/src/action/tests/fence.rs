//! What a permit's hold and settle come to in every state, and what is concluded of a run from what stands and what was
//! heard. That PostgreSQL judges the same is tested in the store.

use std::time::Duration;

use crate::action::tests::catalogue::{Case, MINE, NOW, OTHERS, receipt, states};
use crate::action::tests::tables::{check, written};
use crate::action::{Concluded, Heard, Write, conclude, hold, settle};
use crate::policy::{Expiry, Hold};
use crate::record::{LeaseId, State};

const DAY: Duration = Duration::from_hours(24);

fn shown(state: &Case, lease: LeaseId, column: &str) -> String {
    let record = state.record.as_ref();
    match column {
        "hold" => match hold(record, lease) {
            Ok(held) => {
                assert_eq!(Some(held), record);
                "held".to_owned()
            }
            Err(refused) => format!("!{}", refused.as_str()),
        },
        "settle" => match settle(record, lease, receipt(), DAY, Expiry::NewAction, NOW) {
            Ok(record) => written(state.record.as_ref(), &Write::Put(record)),
            Err(refused) => format!("!{}", refused.as_str()),
        },
        other => panic!("no call {other}"),
    }
}

const SHOWN: &str = "
    state                           hold                  settle
    absent                          !absent               !absent
    running.other                   held                  done
    running.coupled                 held                  done
    running.keyed                   held                  done#3
    lapsed.other                    held                  done
    lapsed.coupled                  held                  done
    lapsed.keyed                    held                  done#3
    ended.other                     held                  done
    ended.coupled                   held                  done
    ended.keyed                     held                  done#3
    unknown.lapsed                  !unknown              !unknown
    unknown.doubted                 !unknown              !unknown
    unknown.answered-without-settle held                  done
    unknown.window-closed           !unknown              !unknown
    unknown.quarantined             !unknown              !unknown
    done.owner                      !done                 !done
    done.operator                   !settled-by-operator  !settled-by-operator
    done-refuse.owner               !done                 !done
    done-refuse.operator            !settled-by-operator  !settled-by-operator
    over.owner                      !done                 !done
    over.operator                   !settled-by-operator  !settled-by-operator
    refused.owner                   !done                 !done
    refused.operator                !settled-by-operator  !settled-by-operator
    past.owner                      !done                 !done
    past.operator                   !settled-by-operator  !settled-by-operator
    spent                           !expired              !expired
    spent-past                      !expired              !expired
    doubted.keyed                   held                  done#3?
    lapsed-doubted.keyed            held                  done#3?
    closed.keyed                    held                  done#3?
    lapsed-closed.keyed             held                  done#3?
    unknown-doubted.keyed           !unknown              !unknown
    unknown-closed.keyed            !unknown              !unknown
    done.keyed                      !done                 !done
    over.keyed                      !done                 !done
    refused.keyed                   !done                 !done
    past.keyed                      !done                 !done
    spent-doubted.keyed             !expired              !expired
    spent-closed.keyed              !expired              !expired
    spent.keyed                     !expired              !expired
    spent-refused.keyed             !expired              !expired
    spent-past.keyed                !expired              !expired
";

#[test]
fn a_permit_in_every_state() {
    check(SHOWN, &["hold", "settle"], &states(), |state, column| shown(state, MINE, column));
    for state in states().iter().filter(|state| state.record.is_some()) {
        for column in ["hold", "settle"] {
            assert_eq!(shown(state, OTHERS, column), "!other-lease", "{} x {column}", state.name);
        }
    }
}

fn concluded(state: &Case, lease: LeaseId, column: &str) -> String {
    let (heard, hold) = match column {
        "success" => (Heard::Success, Hold::Optional),
        "success-always" => (Heard::Success, Hold::Always),
        "failure" => (Heard::Failure, Hold::Optional),
        "nothing" => (Heard::Nothing, Hold::Optional),
        "not-sent" => (Heard::NotSent, Hold::Optional),
        other => panic!("heard {other}"),
    };
    let (concluded, write) = conclude(state.record.as_ref(), lease, heard, hold, NOW);
    if hold == Hold::Optional && heard != Heard::Success {
        // What an operation declares says nothing of other answers.
        let always = conclude(state.record.as_ref(), lease, heard, Hold::Always, NOW);
        assert_eq!(always, (concluded.clone(), write.clone()));
    }
    let word = match concluded {
        Concluded::Done { receipt, .. } => {
            let kept = state.record.as_ref().map(|record| &record.state);
            assert!(matches!(kept, Some(State::Done { receipt: kept, .. }) if *kept == receipt));
            "done"
        }
        Concluded::Superseded => "superseded",
        Concluded::InDoubt => "in-doubt",
        Concluded::WithoutSettle => "without-settle",
        Concluded::Released => "released",
        Concluded::Ended => "ended",
    };
    match write {
        None => word.to_owned(),
        Some(write) => {
            if let Write::Put(after) = &write {
                assert!(after.state != State::Running || after.lease.until <= NOW, "only a lease that ends: {after:?}");
            }
            format!("{word}+{}", written(state.record.as_ref(), &write))
        }
    }
}

/// `running` here is a lease that is over.
const CONCLUDED: &str = "
    state                           success                                         success-always         failure          nothing        not-sent
    absent                          in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    running.coupled                 without-settle+unknown:answered-without-settle  without-settle+running released+absent  ended+running  released+absent
    lapsed.coupled                  without-settle+unknown:answered-without-settle  without-settle+running released+absent  ended+running  released+absent
    ended.coupled                   without-settle+unknown:answered-without-settle  without-settle+running released+absent  ended+running  released+absent
    unknown.lapsed                  in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    unknown.doubted                 in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    unknown.answered-without-settle in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    unknown.window-closed           in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    unknown.quarantined             in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    done.owner                      done                                            done                   done             done           done
    done.operator                   done                                            done                   done             done           done
    done-refuse.owner               done                                            done                   done             done           done
    done-refuse.operator            done                                            done                   done             done           done
    over.owner                      done                                            done                   done             done           done
    over.operator                   done                                            done                   done             done           done
    refused.owner                   done                                            done                   done             done           done
    refused.operator                done                                            done                   done             done           done
    past.owner                      done                                            done                   done             done           done
    past.operator                   done                                            done                   done             done           done
    spent                           in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
    spent-past                      in-doubt                                        in-doubt               in-doubt         in-doubt       in-doubt
";

#[test]
fn a_run_is_concluded_from_what_stands_and_what_was_heard() {
    let columns = ["success", "success-always", "failure", "nothing", "not-sent"];
    // Runs of other effects carry no permit.
    let coupled = |state: &Case| !state.name.ends_with(".other") && !state.name.ends_with(".keyed");
    let states: Vec<Case> = states().into_iter().filter(coupled).collect();
    check(CONCLUDED, &columns, &states, |state, column| concluded(state, MINE, column));
    for state in states.iter().filter(|state| state.record.is_some()) {
        for column in columns {
            assert_eq!(concluded(state, OTHERS, column), "superseded", "{} x {column}", state.name);
        }
    }
}
