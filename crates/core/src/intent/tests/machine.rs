//! The machine as a table: a script, and where the intent stands after it.
//! The invariants of every step are in the parent.

use super::*;

/// What was said last.
fn word(said: Said) -> String {
    match said {
        Said::Send { attempt, .. } => format!("send {attempt}"),
        Said::Wait { until } => format!("wait {}", (until.as_millis() - START) / 1000),
        Said::InProgress { .. } => "in-progress".to_owned(),
        Said::Overdue { why } => format!("overdue {}", why.as_str()),
        Said::Settled => "settled".to_owned(),
        Said::Ready => "ready".to_owned(),
        Said::Noted => "noted".to_owned(),
        Said::Alarm => "alarm".to_owned(),
        Said::TooEarly { until } => format!("too-early {}", (until.as_millis() - START) / 1000),
        Said::Stale => "stale".to_owned(),
    }
}

/// Runs a script on a window of 20 minutes, whose margin is 5: the last attempt starts at 14 minutes.
fn check(script: &str, wanted: &str) {
    check_window(Promise::Documented(Duration::from_mins(20)), script, wanted);
}

fn check_window(window: Promise, script: &str, wanted: &str) {
    let mut world = World::new(window);
    let mut said = None;
    for step in script.split_whitespace() {
        said = world.step(step).or(said);
    }
    let doubt = if world.intent.doubt.is_some() { ", in doubt" } else { "" };
    let found = format!("{}{doubt}; {}", world.intent.state.as_str(), said.map(word).unwrap_or_default());
    assert_eq!(found, wanted, "{script}");
}

#[test]
fn an_intent_goes_from_ready_to_its_outcome() {
    check("look", "ready; ready");
    check("begin", "sending; send 1");
    check("begin ok", "succeeded; settled");
    check("begin ok?", "succeeded; settled");
    check("begin no", "refused; settled");
    check("begin no?", "refused; settled");
    check("begin again", "waiting; wait 1");
    check("begin unsent", "waiting; wait 1");
    check("begin lost", "uncertain, in doubt; wait 1");
    check("begin maybe", "uncertain, in doubt; wait 1");
    check("begin busy", "uncertain, in doubt; wait 1");
    check("begin stored", "overdue, in doubt; overdue stored-failure");
    check("begin ask", "overdue, in doubt; overdue stored-failure");
    check("begin lost begin", "uncertain, in doubt; wait 1");
    check("begin lost +2s begin", "sending, in doubt; send 2");
    check("begin lost +2s begin lost +2s begin ok", "succeeded; settled");
    check("begin ok begin", "succeeded; settled");
}

#[test]
fn in_doubt_only_the_record_settles() {
    check("begin lost +2s begin no?", "uncertain, in doubt; wait 3");
    check("begin lost +2s begin ok?", "uncertain, in doubt; wait 3");
    check("begin lost +2s begin again", "uncertain, in doubt; wait 3");
    check("begin lost +2s begin unsent", "uncertain, in doubt; wait 3");
    check("begin lost +2s begin no", "refused; settled");
    check("begin lost +2s begin ok", "succeeded; settled");
    check("begin busy +2s begin no?", "uncertain, in doubt; wait 3");
    check("begin again +2s begin no?", "refused; settled");
    check("begin unsent +2s begin ok?", "succeeded; settled");
}

#[test]
fn nothing_starts_past_the_deadline() {
    check("begin lost +14m begin", "sending, in doubt; send 2");
    check("begin lost +841s begin", "overdue, in doubt; overdue window-closed");
    check("begin lost +841s look", "overdue, in doubt; overdue window-closed");
    // What was certainly never done may be refused for good, so that a new action is allowed.
    check("begin again +841s look", "refused; settled");
    // A first attempt that was never sent starts no window.
    check("begin unsent +5h begin", "sending; send 2");
    check("begin unsent +5h begin lost +841s look", "overdue, in doubt; overdue window-closed");
    check("begin again +2s begin unsent +841s look", "refused; settled");
    check_window(Promise::Given(Duration::from_hours(2)), "begin lost +1h begin", "sending, in doubt; send 2");
    check_window(Promise::Assumed, "begin lost +9m begin", "sending, in doubt; send 2");
    check_window(Promise::Assumed, "begin lost +541s begin", "overdue, in doubt; overdue window-closed");
    check_window(Promise::ForEver, "begin lost +9000h begin", "sending, in doubt; send 2");
    // A window shorter than the margin allows one attempt.
    let short = Promise::Documented(Duration::from_mins(3));
    check_window(short, "begin", "sending; send 1");
    check_window(short, "begin lost", "overdue, in doubt; overdue window-closed");
    check_window(short, "begin ok", "succeeded; settled");
}

#[test]
fn a_provider_s_pause_is_kept_but_not_past_the_deadline() {
    check("begin told=60 again", "waiting; wait 60");
    check("begin told=3600 busy", "uncertain, in doubt; wait 840");
    check("begin told=3600 busy +840s begin", "sending, in doubt; send 2");
    check("begin told=3600 unsent", "waiting; wait 3600");
}

#[test]
fn overdue_is_settled_by_a_look_up_or_a_person_and_never_sent() {
    check("begin stored begin", "overdue, in doubt; overdue stored-failure");
    check("begin stored +1h begin", "overdue, in doubt; overdue stored-failure");
    check("begin stored found", "succeeded; settled");
    check("begin stored unclear", "overdue, in doubt; noted");
    check("begin stored absent", "overdue, in doubt; too-early 360");
    check("begin stored +359s absent", "overdue, in doubt; too-early 360");
    check("begin stored +360s absent", "refused; settled");
    check("begin stored +1h asked-early", "overdue, in doubt; too-early 360");
    check("begin stored happened", "succeeded; settled");
    check("begin stored never", "overdue, in doubt; too-early 360");
    check("begin stored +360s never", "refused; settled");
    check("begin stored stale", "overdue, in doubt; stale");
    check("begin stored happened never", "succeeded; settled");
    check("never", "refused; settled");
    check("begin unsent never", "refused; settled");
    check("begin happened", "sending; in-progress");
    check("begin absent", "sending; too-early 360");
    check("begin found", "succeeded; settled");
    check("found", "ready; noted");
}

#[test]
fn a_lapsed_attempt_is_uncertain_and_its_late_answer_counts() {
    check("begin +59s begin", "sending; in-progress");
    check("begin +60s look", "uncertain, in doubt; wait 60");
    check("begin +60s begin", "sending, in doubt; send 2");
    check("begin gone", "uncertain, in doubt; wait 0");
    check("begin gone begin", "sending, in doubt; send 2");
    check("begin ok gone", "succeeded; settled");
    check("begin +60s ok", "succeeded; settled");
    check("begin +60s no?", "uncertain, in doubt; noted");
    check("begin +60s busy", "uncertain, in doubt; noted");
    check("begin +60s stored", "overdue, in doubt; overdue stored-failure");
    check("begin +60s begin 1:ok", "succeeded; settled");
    check("begin +60s begin 1:stored", "sending, in doubt; noted");
    check("begin +60s begin 1:no 2:ok", "refused; alarm");
    check("begin +60s begin 2:ok 1:ok", "succeeded; noted");
    check("begin +60s begin 2:ok 1:no", "succeeded; alarm");
    check("begin +60s begin 2:ok 1:no?", "succeeded; noted");
    check("begin +60s begin 2:no 1:busy", "refused; noted");
    check("begin +60s look +300s never 1:busy", "refused; alarm");
    check("begin +60s look +300s never 1:ok?", "refused; alarm");
    check("begin +60s look +300s never found", "refused; alarm");
    check("begin +60s look happened absent", "succeeded; noted");
    check("begin lost lost", "uncertain, in doubt; noted");
    check("begin lost 7:ok", "uncertain, in doubt; stale");
}

#[test]
fn the_deadline_goes_only_where_every_attempt_is_known_unsent() {
    let check = |script: &str, set: bool| {
        let mut world = World::new(Promise::Documented(Duration::from_mins(20)));
        world.run(script);
        assert_eq!(world.intent.deadline.is_some(), set, "{script}");
    };
    check("look", false);
    check("begin", true);
    check("begin unsent", false);
    check("begin lost", true);
    check("begin again +2s begin unsent", true);
    check("begin +60s begin unsent", true);
    check("begin +60s begin 2:unsent 1:unsent", false);
    check("begin +60s begin 1:unsent", true);
    check("begin unsent +2s begin", true);
}

#[test]
fn the_first_byte_is_asked_about_again() {
    let mut world = World::new(Promise::Documented(Duration::from_mins(20)));
    let lease = LeaseId::from_bytes([1; 16]);
    let check = |world: &World, millis, wanted| {
        assert_eq!(may_send(&world.intent, lease, Now::at(at(millis))), wanted, "{:?} at {millis}", world.intent.state);
    };
    check(&world, 0, false);
    world.step("begin");
    check(&world, 0, true);
    check(&world, 59_999, true);
    check(&world, 60_000, false);
    assert!(!may_send(&world.intent, LeaseId::from_bytes([2; 16]), Now::at(at(0))), "somebody else's lease");
    world.step("lost");
    check(&world, 1, false);
}

#[test]
fn the_same_begin_told_twice_is_one_attempt() {
    let mut world = World::new(Promise::Assumed);
    world.step("begin");
    let again = Event::Begin { lease: LeaseId::from_bytes([1; 16]), holder: Some(HOME) };
    let step = next(&world.intent, &again, Now::at(at(5)));
    assert_eq!(step, Step { write: None, said: Said::Send { attempt: 1, until: at(60_000) } });
}

#[test]
fn history_is_bounded_and_keeps_the_first() {
    let mut world = World::new(Promise::ForEver);
    for number in 1..=200_u32 {
        let mut lease = [0; 16];
        lease[..4].copy_from_slice(&number.to_be_bytes());
        let lease = LeaseId::from_bytes(lease);
        for event in [
            Event::Begin { lease, holder: None },
            Event::Ended { lease, end: End::Uncertain, told: None, jitter: Jitter(0) },
        ] {
            world.now += 2_000;
            world.intent = next(&world.intent, &event, Now::at(at(world.now))).write.unwrap();
        }
    }
    let numbers: Vec<u32> = world.intent.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers.len(), ATTEMPTS_KEPT_MAX);
    assert_eq!((numbers[0], numbers[1], numbers[127]), (1, 74, 200));
    assert_eq!((world.intent.attempted, world.intent.reached), (200, 200));
}

#[test]
fn a_note_is_purged_only_settled_and_past_its_window() {
    let check = |script: &str, wanted: Option<i64>| {
        let mut world = World::new(Promise::Documented(Duration::from_mins(20)));
        world.run(script);
        assert_eq!(world.intent.purge_from(), wanted.map(|seconds| at(seconds * 1000)), "{script}");
    };
    check("look", None);
    check("begin", None);
    check("begin lost", None);
    check("begin stored", None);
    check("begin ok", Some(1200));
    check("begin unsent never", Some(0));
    check("begin stored +2h happened", Some(7200));
}

#[test]
fn a_given_window_fills_in_and_never_stretches() {
    use Promise::{Assumed, Documented, ForEver, Given};
    let hours = Duration::from_hours;
    let check = |documented: Option<Option<Duration>>, given, wanted| {
        let profile = crate::profile::tests::profile(|profile| {
            profile.window = documented.map(|span| crate::profile::Window {
                span,
                from: crate::profile::Basis::Unknown,
                after: crate::profile::AfterWindow::Unknown,
            });
        });
        assert_eq!(Terms::new(&profile, given, hours(1)).window, wanted, "{documented:?}, given {given:?}");
    };
    check(None, None, Assumed);
    check(None, Some(hours(5)), Given(hours(5)));
    check(Some(Some(hours(24))), None, Documented(hours(24)));
    check(Some(Some(hours(24))), Some(hours(5)), Given(hours(5)));
    check(Some(Some(hours(24))), Some(hours(48)), Documented(hours(24)));
    check(Some(None), None, ForEver);
    check(Some(None), Some(hours(5)), Given(hours(5)));
    assert_eq!(terms(Assumed).margin(), MARGIN_MIN);
    let slow = Terms { attempt_limit: Duration::from_mins(20), ..terms(Assumed) };
    assert_eq!(slow.margin(), Duration::from_mins(20));
}
