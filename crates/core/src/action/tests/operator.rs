//! What an operator's word comes to: every state that can be in doubt at each boundary of its lease and attempt limit.
//! Who may say it, and the history, belong to the store and the command line.

use std::time::Duration;

use crate::action::tests::catalogue::{
    ATTEMPT, Case, FROZEN, MINE, NOW, OTHERS, OVER, doubted, effect_name, ended, receipt, record, states, unheld,
    unknown,
};
use crate::action::tests::tables::{check, written};
use crate::action::{Confirmation, Refused, Verdict, Write, resolve};
use crate::policy::{Effect, Expiry};
use crate::record::tests::{EFFECTS, WHYS};
use crate::record::{Author, LeaseId, State};
use crate::time::Now;

const COLUMNS: [&str; 6] = ["happened", "happened-stopped", "did-not", "did-not-stopped", "anew", "anew-stopped"];
const DAY: Duration = Duration::from_hours(24);
const VERSION: u64 = 7;

fn verdict(column: &str) -> (Verdict, Confirmation) {
    let happened = Verdict::Happened { receipt: receipt(), retention: DAY, expiry: Expiry::NewAction };
    match column {
        "happened" => (happened, Confirmation::None),
        "happened-stopped" => (happened, Confirmation::OwnerStopped),
        "did-not" => (Verdict::DidNotHappen, Confirmation::None),
        "did-not-stopped" => (Verdict::DidNotHappen, Confirmation::OwnerStopped),
        "anew" => (Verdict::SendAnew, Confirmation::None),
        "anew-stopped" => (Verdict::SendAnew, Confirmation::OwnerStopped),
        other => panic!("no column {other}"),
    }
}

fn resolved(state: &Case, column: &str, version: u64, lease: LeaseId, now: Now) -> Result<Write, Refused> {
    let (verdict, confirmed) = verdict(column);
    resolve(state.record.as_ref(), version, lease, verdict, confirmed, now)
}

fn cell(state: &Case, column: &str) -> String {
    match resolved(state, column, VERSION, MINE, Now::at(NOW)) {
        Ok(write) => written(state.record.as_ref(), &write),
        Err(refused) => format!("!{}", refused.as_str()),
    }
}

/// Everything that is or may become in doubt, by the age of its last renewal: a second before and at the end of the
/// lease (30) and of the attempt limit (60). `ended`: the process is known to be gone; `unheld`: the store cannot tell;
/// `doubted`: the owner ended its own lease and may still run.
fn ages() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, record| cases.push(Case { name, record: Some(record) });
    for age in [29, 30, 59, 60] {
        for effect in EFFECTS {
            let name = effect_name(effect);
            add(format!("running.{name}@{age}"), record(effect, State::Running, age));
        }
        for (name, open_for) in [("open", Duration::from_millis(1)), ("closed", Duration::ZERO)] {
            add(format!("{name}.keyed@{age}"), doubted(record(Effect::KeyedUpstream, State::Running, age), open_for));
        }
        let mut doubted = record(Effect::Coupled, State::Running, age);
        doubted.lease.until = NOW.min(doubted.lease.until);
        add(format!("doubted.coupled@{age}"), doubted);
        add(format!("ended.other@{age}"), ended(record(Effect::Other, State::Running, age)));
        add(format!("unheld.other@{age}"), unheld(record(Effect::Other, State::Running, age)));
        for why in WHYS {
            add(format!("{}@{age}", why.as_str()), record(Effect::Other, unknown(why), age));
            add(format!("{}.ended@{age}", why.as_str()), ended(record(Effect::Other, unknown(why), age)));
        }
    }
    cases
}

/// The cells of one age; they are the same for every state of one kind, as PROTOCOL makes no difference between them.
const AGES: &str = "
    state        happened       happened-stopped  did-not             did-not-stopped    anew                anew-stopped
    held@29      !owner-alive   done:operator     !owner-alive        !may-still-arrive  !owner-alive        !may-still-arrive
    held@30      done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    held@59      done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    held@60      done:operator  done:operator     !owner-not-stopped  absent             !owner-not-stopped  !not-keyed
    ended@29     done:operator  done:operator     !may-still-arrive   !may-still-arrive  !may-still-arrive   !may-still-arrive
    ended@30     done:operator  done:operator     !may-still-arrive   !may-still-arrive  !may-still-arrive   !may-still-arrive
    ended@59     done:operator  done:operator     !may-still-arrive   !may-still-arrive  !may-still-arrive   !may-still-arrive
    ended@60     done:operator  done:operator     absent              absent             !not-keyed          !not-keyed
    forgotten@29 done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    forgotten@30 done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    forgotten@59 done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    forgotten@60 done:operator  done:operator     !owner-not-stopped  absent             !owner-not-stopped  !not-keyed
    keyed@29     !owner-alive      done:operator#3   !owner-alive        !may-still-arrive    !owner-alive        !may-still-arrive
    keyed@30     done:operator#3   done:operator#3   !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    keyed@59     done:operator#3   done:operator#3   !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    keyed@60     done:operator#3   done:operator#3   !owner-not-stopped  spent#3?             !owner-not-stopped  spent#4
    open@29      !owner-alive      done:operator#3?  !owner-alive        !may-still-arrive    !owner-alive        !may-still-arrive
    open@30      done:operator#3?  done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    open@59      done:operator#3?  done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    open@60      done:operator#3?  done:operator#3?  !owner-not-stopped  spent#3?             !owner-not-stopped  spent#4
    closed@29    !owner-alive      done:operator#3?  !owner-alive        !may-still-arrive    !owner-alive        !may-still-arrive
    closed@30    done:operator#3?  done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    closed@59    done:operator#3?  done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    closed@60    done:operator#3?  done:operator#3?  !owner-not-stopped  !window-closed       !owner-not-stopped  spent#4
";

#[test]
fn an_operator_s_word_at_every_age_of_what_is_in_doubt() {
    for case in ages() {
        let (name, age) = case.name.split_once('@').unwrap();
        let kind = match name {
            "quarantined.ended" => "forgotten",
            "running.keyed" => "keyed",
            "open.keyed" => "open",
            "closed.keyed" => "closed",
            name if name.contains("ended") => "ended",
            _ => "held",
        };
        let line = AGES.lines().find(|line| line.trim_start().starts_with(&format!("{kind}@{age} "))).unwrap();
        let head = AGES.lines().nth(1).unwrap();
        let line = line.replacen(&format!("{kind}@{age}"), &case.name, 1);
        check(&format!("{head}\n{line}"), &COLUMNS, &[case], cell);
    }
}

const ELSE: &str = "
    state                           happened       happened-stopped  did-not             did-not-stopped    anew                anew-stopped
    absent                          !absent        !absent           !absent             !absent            !absent             !absent
    running.other                   !owner-alive   done:operator     !owner-alive        !may-still-arrive  !owner-alive        !may-still-arrive
    running.coupled                 !owner-alive   done:operator     !owner-alive        !may-still-arrive  !owner-alive        !may-still-arrive
    running.keyed                   !owner-alive   done:operator#3   !owner-alive        !may-still-arrive  !owner-alive        !may-still-arrive
    lapsed.other                    done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    lapsed.coupled                  done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    lapsed.keyed                    done:operator#3 done:operator#3   !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    ended.other                     done:operator  done:operator     !may-still-arrive   !may-still-arrive  !may-still-arrive   !may-still-arrive
    ended.coupled                   done:operator  done:operator     !may-still-arrive   !may-still-arrive  !may-still-arrive   !may-still-arrive
    ended.keyed                     done:operator#3 done:operator#3   !may-still-arrive   !may-still-arrive  !may-still-arrive   !may-still-arrive
    unknown.lapsed                  done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    unknown.doubted                 done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    unknown.answered-without-settle done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    unknown.window-closed           done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    unknown.quarantined             done:operator  done:operator     !owner-not-stopped  !may-still-arrive  !owner-not-stopped  !may-still-arrive
    done.owner                      !done          !done             !done               !done              !done               !done
    done.operator                   !done          !done             !done               !done              !done               !done
    done-refuse.owner               !done          !done             !done               !done              !done               !done
    done-refuse.operator            !done          !done             !done               !done              !done               !done
    over.owner                      !expired       !expired          !expired            !expired           !expired            !expired
    over.operator                   !expired       !expired          !expired            !expired           !expired            !expired
    refused.owner                   !expired       !expired          !expired            !expired           !expired            !expired
    refused.operator                !expired       !expired          !expired            !expired           !expired            !expired
    past.owner                      !expired       !expired          !expired            !expired           !expired            !expired
    past.operator                   !expired       !expired          !expired            !expired           !expired            !expired
    spent                           !expired       !expired          !expired            !expired           !expired            !expired
    spent-past                      !expired       !expired          !expired            !expired           !expired            !expired
    doubted.keyed                   !owner-alive   done:operator#3?  !owner-alive        !may-still-arrive    !owner-alive        !may-still-arrive
    closed.keyed                    !owner-alive   done:operator#3?  !owner-alive        !may-still-arrive    !owner-alive        !may-still-arrive
    lapsed-doubted.keyed            done:operator#3? done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    lapsed-closed.keyed             done:operator#3? done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    unknown-doubted.keyed           done:operator#3? done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    unknown-closed.keyed            done:operator#3? done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    spent-closed.keyed              done:operator#3? done:operator#3?  !owner-not-stopped  !may-still-arrive    !owner-not-stopped  !may-still-arrive
    done.keyed                      !done          !done             !done               !done                !done               !done
    over.keyed                      !expired       !expired          !expired            !expired             !expired            !expired
    refused.keyed                   !expired       !expired          !expired            !expired             !expired            !expired
    past.keyed                      !expired       !expired          !expired            !expired             !expired            !expired
    spent-doubted.keyed             !expired       !expired          !expired            !expired             !expired            !expired
    spent.keyed                     !expired       !expired          !expired            !expired             !expired            !expired
    spent-refused.keyed             !expired       !expired          !expired            !expired             !expired            !expired
    spent-past.keyed                !expired       !expired          !expired            !expired             !expired            !expired
";

#[test]
fn an_operator_s_word_in_every_state() {
    check(ELSE, &COLUMNS, &states(), cell);
}

/// A version restarts after absent, and a lease stands through many versions: neither alone guards.
#[test]
fn a_word_about_what_has_changed_since_is_refused() {
    let everything = states().into_iter().chain(ages());
    for (state, column) in everything.flat_map(|state| COLUMNS.map(|column| (state.record.clone(), column))) {
        let state = Case { name: String::new(), record: state };
        let expected = if state.record.is_none() { Refused::Absent } else { Refused::Changed };
        for (version, lease) in [(VERSION - 1, MINE), (VERSION + 1, MINE), (VERSION, OTHERS), (1, OTHERS)] {
            let found = resolved(&state, column, version, lease, Now::at(NOW));
            assert_eq!(found, Err(expected), "{:?} x {column}", state.record);
        }
    }
}

#[test]
fn a_refusal_says_until_when_to_wait() {
    let state = Case { name: String::new(), record: Some(record(Effect::Other, State::Running, 10)) };
    let renewed_at = NOW.minus(Duration::from_secs(10));
    let alive = resolved(&state, "did-not", VERSION, MINE, Now::at(NOW));
    assert_eq!(alive, Err(Refused::OwnerAlive { until: renewed_at.plus(Duration::from_secs(OVER)) }));
    let sent = resolved(&state, "did-not-stopped", VERSION, MINE, Now::at(NOW));
    assert_eq!(sent, Err(Refused::MayStillArrive { until: renewed_at.plus(ATTEMPT) }));
}

#[test]
fn an_operator_s_receipt_is_promised_from_now_and_keeps_the_lease() {
    let state = Case { name: String::new(), record: Some(record(Effect::Other, State::Running, OVER)) };
    let Ok(Write::Put(after)) = resolved(&state, "happened", VERSION, MINE, FROZEN) else { panic!("not written") };
    assert_eq!(after.lease.id, MINE);
    let State::Done { author, completed_at, expires_at, .. } = after.state else { panic!("not done") };
    assert_eq!((author, completed_at, expires_at), (Author::Operator, NOW, NOW.plus(DAY)));
}
