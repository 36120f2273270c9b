//! The store's time through the store: steps of the wall clock, restarts, and an accepted clock that other processes
//! learn of.
//! How a mark moves stands with the clock itself.

use std::time::Duration;

use counterfoil_core::{Policy, Why};
use counterfoil_store::ErrorKind;
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::{Executed, Origin};

use super::{Place, claim, claimed, order, origin, record, refused};

const TWO_DAYS: i64 = 48 * 3600 * 1000;

#[tokio::test]
async fn a_step_of_the_wall_clock_forgets_no_receipt_and_leases_still_lapse() {
    for step in [TWO_DAYS, -TWO_DAYS] {
        let place = Place::new();
        let store = place.with_orders();
        store.execute(claim("done"), &Policy::default(), order("1")).await.unwrap();
        claimed(&store, "runs", 1).await;
        place.clock.step_wall(step);
        refused(store.health(), ErrorKind::Unavailable, "clock accept");
        assert!(store.clock_doubt().is_some());
        let swept = store.sweep(10).await.unwrap();
        assert_eq!((swept.stopped, swept.expired), (true, 0), "{step}");
        assert_eq!(
            origin(store.execute(claim("done"), &Policy::default(), order("2")).await),
            Origin::Replayed,
            "{step}"
        );
        let running = store.execute(claim("runs"), &Policy::default(), order("2")).await.unwrap();
        assert!(matches!(running, Executed::InProgress { .. }), "{step}: {running:?}");
        place.clock.advance(Duration::from_secs(31));
        let lapsed = store.execute(claim("runs"), &Policy::default(), order("2")).await.unwrap();
        assert!(matches!(lapsed, Executed::Unknown { why: Why::Lapsed, .. }), "{step}: {lapsed:?}");
        // A restart within the boot settles nothing: the mark was persisted.
        drop(store);
        let store = place.open();
        assert!(store.clock_doubt().is_some(), "{step}: a restart forgot the doubt");
        assert_eq!(
            origin(store.execute(claim("done"), &Policy::default(), order("2")).await),
            Origin::Replayed,
            "{step}"
        );
        assert_eq!(place.orders(), 1);
    }
}

#[tokio::test]
async fn a_killed_process_s_mark_is_at_most_a_second_old() {
    let place = Place::new();
    let store = place.open();
    claimed(&store, "a", 1).await;
    place.clock.advance(Duration::from_secs(100));
    claimed(&store, "b", 1).await;
    let mark = mark(&place);
    assert!(mark.contains(&format!(" {} ", super::BEGIN.plus(Duration::from_secs(100)).as_millis())), "{mark}");
    // What is younger than a second is not worth a page.
    place.clock.advance(Duration::from_millis(500));
    claimed(&store, "c", 1).await;
    assert_eq!(self::mark(&place), mark);
}

fn mark(place: &Place) -> String {
    place.outside().query_row("SELECT mark FROM counterfoil_store", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn time_goes_on_over_a_restart_and_never_back() {
    let place = Place::new();
    let store = place.open();
    claimed(&store, "a", 1).await;
    place.clock.advance(Duration::from_secs(5));
    let before = store.now();
    drop(store);
    place.clock.step_wall(-60_000);
    let store = place.open();
    assert_eq!(store.now(), before, "within the boot the time keeps its pace");
    drop(store);
    place.clock.reboot(Duration::from_secs(3600));
    let store = place.open();
    assert!(store.now().at >= before.at);
    assert!(store.clock_doubt().is_none(), "the gap of a reboot is believed");
}

#[tokio::test]
async fn an_accepted_clock_is_learned_by_processes_that_run() {
    let place = Place::new();
    let serving = place.with_orders();
    let reading = place.open();
    serving.execute(claim("a"), &Policy::default(), order("1")).await.unwrap();
    record(&reading, "a").await.unwrap();
    place.clock.step_wall(TWO_DAYS);
    assert!(serving.clock_doubt().is_some() && reading.clock_doubt().is_some());
    // An operator's process, as `counterfoil receipts clock accept` is one.
    let operator = place.open();
    let accepted = operator.clock_accept().await.unwrap();
    assert!(operator.clock_doubt().is_none());
    drop(operator);
    // A write learns it in its own batch.
    claimed(&serving, "b", 1).await;
    assert!(serving.clock_doubt().is_none(), "a writing process did not learn it");
    assert!(serving.now().at >= accepted.at);
    serving.health().unwrap();
    // Retention is judged by the accepted clock.
    assert_eq!(origin(serving.execute(claim("a"), &Policy::default(), order("2")).await), Origin::Fresh);
    // Its own mark, persisted later, does not take it back.
    place.clock.advance(Duration::from_secs(5));
    claimed(&serving, "c", 1).await;
    assert!(place.open().clock_doubt().is_none());
    drop(reading);
}
