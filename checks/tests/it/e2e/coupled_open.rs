//! Transactions of an application that are open while the proxy gives up waiting, dies, or stands still: nobody runs the
//! action beside them, and whoever is superseded commits nothing.
//! What goes wrong in a transaction itself stands in `coupled`.

use std::thread;

use rustix::process::Signal;

use super::coupled::World;
use super::curl::Answer;
use super::served::Served;

const SHORT: &str = "lease = \"1s\"\nhandler = \"30s\"";

/// Asks until the answer is no problem about an attempt under way.
fn until_settled(world: &World, proxy: &Served, case: &str, how: &str) -> Answer {
    loop {
        let answer = world.ask(proxy, case, how);
        let waits = answer.header("content-type") == "application/problem+json"
            && answer.status == 409
            && answer.member("type").ends_with("in-progress");
        if !waits {
            return answer;
        }
    }
}

#[test]
fn a_commit_after_the_answer() {
    let world = World::start();
    let proxy = world.proxy("");
    // Held: the proxy waits for the open transaction, and answers what it committed.
    thread::scope(|scope| {
        let asked = scope.spawn(|| world.ask(&proxy, "commit-after-answer", "hold"));
        world.says("waits commit-after-answer-hold");
        world.open("commit-after-answer-hold");
        let first = asked.join().expect("an answer");
        assert!(matches!(first.status, 201 | 504), "{first:?}");
    });
    world.says("committed commit-after-answer-hold");
    until_settled(&world, &proxy, "commit-after-answer", "hold").is(201, "true");
    assert_eq!(world.effects("commit-after-answer-hold"), 1);
    // Not held: nobody knows, until the commit that comes late settles it.
    world.ask(&proxy, "commit-after-answer", "bare").is_problem(502, "outcome-unknown");
    world.ask(&proxy, "commit-after-answer", "bare").is_problem(409, "outcome-unknown");
    world.open("commit-after-answer-bare");
    world.says("committed commit-after-answer-bare");
    world.ask(&proxy, "commit-after-answer", "bare").is(201, "true");
    assert_eq!(world.effects("commit-after-answer-bare"), 1);
    proxy.stop();
}

#[test]
fn a_transaction_that_outlasts_the_proxy_s_patience() {
    let world = World::start();
    let proxy = world.proxy("lease = \"1s\"\nhandler = \"2s\"");
    world.ask(&proxy, "open-once", "hold").is_problem(504, "outcome-unknown");
    world.ask(&proxy, "open-once", "hold").is_problem(409, "in-progress");
    world.open("open-once-hold");
    until_settled(&world, &proxy, "open-once", "hold").is(201, "true");
    assert_eq!(world.effects("open-once-hold"), 1);
    // Without hold nothing is locked: the lease ends, and a retry takes over; the old attempt commits nothing.
    world.ask(&proxy, "open-once", "bare").is_problem(504, "outcome-unknown");
    world.ask(&proxy, "open-once", "bare").is(201, "false");
    world.open("open-once-bare");
    world.says("ended open-once-bare 1");
    world.ask(&proxy, "open-once", "bare").is(201, "true");
    assert_eq!(world.effects("open-once-bare"), 1);
    proxy.stop();
}

#[test]
fn a_proxy_that_is_killed_while_the_application_works() {
    let world = World::start();
    let other = world.proxy(SHORT);
    for (case, how) in
        [("open-once", "hold"), ("open-once", "bare"), ("begins-late-once", "hold"), ("forgotten-waits-once", "hold")]
    {
        let key = format!("{case}-{how}");
        let mut dying = world.proxy(SHORT);
        thread::scope(|scope| {
            let url = dying.url(&format!("/{case}/{how}"));
            let (body, key) = (format!("{{\"key\": \"{key}\"}}"), key.clone());
            let asked = scope.spawn(move || {
                let sent = super::curl::Sent { key: &key, body: &body, headers: &[] };
                super::curl::try_curl("POST", &url, sent)
            });
            world.says(&format!("waits {case}-{how}"));
            dying.process.kill();
            assert!(asked.join().expect("it ends").is_err(), "nobody was there to answer");
        });
        if how == "hold" && case != "begins-late-once" {
            // Locked: nobody runs it beside the open transaction, however long the lease has been over.
            world.ask(&other, case, how).is_problem(409, "in-progress");
            world.open(&key);
            let settled = until_settled(&world, &other, case, how);
            // Committed by the first attempt, or refused at its COMMIT and run again.
            let replayed = if case == "open-once" { "true" } else { "false" };
            settled.is(201, replayed);
        } else {
            // Nothing is locked: the lapsed lease is taken over, and the first attempt rolls back when it goes on.
            until_settled(&world, &other, case, how).is(201, "false");
            world.open(&key);
        }
        if case != "open-once" || how != "hold" {
            world.says(&format!("ended {key} 1"));
        }
        world.ask(&other, case, how).is(201, "true");
        assert_eq!(world.effects(&key), 1, "{key}");
    }
    other.stop();
}

#[test]
fn a_superseded_attempt_that_answers_500_releases_nothing() {
    let world = World::start();
    let (first, second) = (world.proxy(SHORT), world.proxy(SHORT));
    thread::scope(|scope| {
        let asked = scope.spawn(|| world.ask(&first, "begins-late-once", "hold"));
        world.says("waits begins-late-once-hold");
        // It stands still for longer than its lease.
        first.process.signal(Signal::STOP);
        until_settled(&world, &second, "begins-late-once", "hold").is(201, "false");
        world.open("begins-late-once-hold");
        first.process.signal(Signal::CONT);
        // Its application was not let hold and said so; what the other attempt committed is the answer.
        asked.join().expect("an answer").is(201, "true");
    });
    world.ask(&second, "begins-late-once", "hold").is(201, "true");
    assert_eq!(world.effects("begins-late-once-hold"), 1);
    first.stop();
    second.stop();
}
