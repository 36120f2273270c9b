//! The estimate of the server's clock.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Timestamp;

use super::Pace;
use crate::clock::TestClock;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[test]
fn it_follows_the_server_at_this_machines_pace() {
    let clock = TestClock::new(at(5));
    let pace = Pace::new(Arc::new(clock.clone()), at(100_000));
    assert_eq!(pace.now().at, at(100_000));
    clock.advance(Duration::from_millis(250));
    assert_eq!(pace.now().at, at(100_250));
    // The wall clock of this machine does not matter.
    clock.step_wall(-9_000_000);
    assert_eq!(pace.now().at, at(100_250));
    // An answer that was long under way does not set it back, one that is ahead moves it.
    pace.learn(at(100_100));
    assert_eq!(pace.now().at, at(100_250));
    pace.learn(at(100_300));
    assert_eq!(pace.now().at, at(100_300));
    // A server that was set back is believed: its clock is the one that records are judged by.
    pace.learn(at(90_000));
    assert_eq!(pace.now().at, at(90_000));
}
