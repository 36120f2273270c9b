//! The clock's rules as a table of what happens and what the time then is, and as properties over any sequence.
//! What expiry and leases make of the time is tested with the stores.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const BEGIN: i64 = 1_700_000_000_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

#[derive(Clone, Copy, Debug)]
enum Event {
    Pass(i64),
    Step(i64),
    Reboot(i64),
    Accept,
    /// Time is read in between.
    Look,
}

use Event::{Accept, Look, Pass, Reboot, Step};

fn span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap())
}

fn happen(clock: &TestClock, time: &HighWater, event: Event) {
    match event {
        Pass(millis) => clock.advance(span(millis)),
        Step(millis) => clock.step_wall(millis),
        Reboot(gap) => clock.reboot(span(gap)),
        Accept => drop(time.accept()),
        Look => drop(time.now()),
    }
}

fn start() -> (TestClock, HighWater) {
    let clock = TestClock::new(Timestamp::from_millis(BEGIN));
    let time = HighWater::new(Arc::new(clock.clone()), None);
    (clock, time)
}

#[test]
fn what_happens_and_what_the_time_then_is() {
    type Row = (&'static str, &'static [Event], i64, i64, Option<i64>);
    // Events; then the time and the time of expiry, both since the beginning; then how far off the wall clock is.
    #[rustfmt::skip]
    let table: &[Row] = &[
        ("time passes", &[Pass(5)], 5, 5, None),
        ("a small step forward is followed", &[Step(9 * MINUTE)], 9 * MINUTE, 9 * MINUTE, None),
        ("ten minutes are a small step", &[Step(10 * MINUTE)], 10 * MINUTE, 10 * MINUTE, None),
        ("one millisecond more is not", &[Pass(7), Look, Step(10 * MINUTE + 1)], 7, 7, Some(10 * MINUTE + 1)),
        ("a small step back is not followed", &[Step(-9 * MINUTE), Look, Pass(MINUTE)], MINUTE, MINUTE, None),
        ("ten minutes back are small", &[Step(-10 * MINUTE), Pass(1)], 1, 1, None),
        ("more is doubt", &[Pass(7), Look, Step(-10 * MINUTE - 1), Pass(1)], 8, 7, Some(-10 * MINUTE - 1)),
        ("two days ahead: leases lapse, nothing expires",
            &[Pass(MINUTE), Look, Step(48 * HOUR), Pass(HOUR)], HOUR + MINUTE, MINUTE, Some(48 * HOUR)),
        ("two days behind: the same",
            &[Pass(MINUTE), Look, Step(-48 * HOUR), Pass(HOUR)], HOUR + MINUTE, MINUTE, Some(-48 * HOUR)),
        ("doubt heals when the wall comes back",
            &[Step(48 * HOUR), Look, Pass(HOUR), Look, Step(-48 * HOUR)], HOUR, HOUR, None),
        ("ahead, accepted: the wall is adopted",
            &[Step(48 * HOUR), Look, Pass(HOUR), Accept, Pass(1)], 49 * HOUR + 1, 49 * HOUR + 1, None),
        ("behind, accepted: the difference is remembered",
            &[Step(-48 * HOUR), Look, Accept, Pass(HOUR), Step(MINUTE)], HOUR + MINUTE, HOUR + MINUTE, None),
        ("behind, accepted, then set right: doubt again",
            &[Step(-48 * HOUR), Accept, Pass(HOUR), Look, Step(48 * HOUR)], HOUR, HOUR, Some(48 * HOUR)),
        ("and accepted again: no difference is left",
            &[Step(-48 * HOUR), Accept, Pass(HOUR), Step(48 * HOUR), Accept, Pass(1)], HOUR + 1, HOUR + 1, None),
        ("a reboot's gap is believed", &[Pass(HOUR), Look, Reboot(72 * HOUR)], 73 * HOUR, 73 * HOUR, None),
        ("a small step back over a reboot", &[Pass(HOUR), Look, Reboot(0), Step(-MINUTE)], HOUR, HOUR, None),
        ("a wall far behind after a reboot is doubt",
            &[Pass(HOUR), Look, Step(-48 * HOUR), Reboot(0), Look, Pass(5)], HOUR + 5, HOUR, Some(-48 * HOUR)),
        ("a reboot settles no doubt",
            &[Pass(HOUR), Look, Step(48 * HOUR), Look, Reboot(0), Pass(0)], HOUR, HOUR, Some(48 * HOUR)),
        ("but a right wall does",
            &[Pass(HOUR), Look, Step(48 * HOUR), Look, Step(-48 * HOUR), Reboot(MINUTE)], HOUR + MINUTE, HOUR + MINUTE, None),
        ("an accepted difference survives a reboot",
            &[Step(-48 * HOUR), Accept, Pass(HOUR), Look, Reboot(MINUTE)], HOUR + MINUTE, HOUR + MINUTE, None),
        ("a wall set right over a reboot ends the difference",
            &[Step(-48 * HOUR), Accept, Pass(HOUR), Look, Step(48 * HOUR), Reboot(HOUR), Look, Pass(1)],
            2 * HOUR + 1, 2 * HOUR + 1, None),
    ];
    for (name, events, at, expiry_at, off) in table {
        let (clock, time) = start();
        for event in *events {
            happen(&clock, &time, *event);
        }
        let doubt = time.doubt();
        let now = time.now();
        assert_eq!(now.at.as_millis() - BEGIN, *at, "{name}: the time");
        assert_eq!(now.expiry_at.as_millis() - BEGIN, *expiry_at, "{name}: the time of expiry");
        assert_eq!(doubt.map(|doubt| doubt.off_millis), *off, "{name}: {doubt:?}");
    }
}

#[test]
fn many_readings_within_a_millisecond_do_not_stop_the_time() {
    let (clock, time) = start();
    clock.step_wall(48 * HOUR);
    for _ in 0..10_000 {
        clock.advance(Duration::from_micros(100));
        time.now();
    }
    assert_eq!(time.now().at.as_millis() - BEGIN, 1000);
}

#[test]
fn a_mark_read_back_is_the_same_mark_and_anything_else_is_refused() {
    let (clock, time) = start();
    clock.advance(Duration::from_nanos(1_234_567_891));
    let plain = time.mark();
    clock.step_wall(-48 * HOUR);
    let doubted = time.mark();
    let accepted = time.accept();
    for mark in [plain, doubted, accepted] {
        assert_eq!(mark.to_string().parse(), Ok(mark.clone()), "{mark}");
    }
    for text in [
        "",
        "mark1",
        "mark2 1 1 b 0 - 0",
        "mark1 1 1  0 - 0",
        "mark1 1 1 b -1 - 0",
        "mark1 1 1 b 0 2 0",
        "mark1 1 -1 b 0 - 0",
        "mark1 1 1 b 0 - 0 0",
    ] {
        assert_eq!(text.parse::<Mark>(), Err(MarkError), "{text:?}");
    }
}

#[test]
fn what_another_process_accepted_is_accepted_here() {
    for step in [48 * HOUR, -48 * HOUR] {
        let (clock, here) = start();
        let there = HighWater::new(Arc::new(clock.clone()), Some(here.mark()));
        clock.step_wall(step);
        assert!(here.doubt().is_some() && there.doubt().is_some(), "{step}");
        let accepted = there.accept();
        clock.advance(span(5));
        let older = here.mark();
        here.adopt(&accepted);
        assert_eq!(here.doubt(), None, "{step}");
        assert_eq!(here.now(), there.now(), "{step}");
        let before = here.mark();
        here.adopt(&older);
        assert_eq!(here.mark(), before, "{step}: a mark without the acceptance changes nothing");
    }
}

#[test]
fn the_system_clock_moves_and_names_its_boot() {
    let clock = SystemClock::new();
    let (first, second) = (clock.reading(), clock.reading());
    assert!(second.boot >= first.boot && first.boot > Duration::ZERO);
    assert_eq!(first.boot_id, second.boot_id);
    assert!(!first.boot_id.is_empty() && !first.boot_id.contains(char::is_whitespace));
    assert!(first.wall.as_millis() > BEGIN, "this machine's clock is before {BEGIN} ms");
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..HOUR).prop_map(Pass),
        (0..2i64).prop_map(Pass),
        (-60 * HOUR..60 * HOUR).prop_map(Step),
        (-15 * MINUTE..15 * MINUTE).prop_map(Step),
        (0..60 * HOUR).prop_map(Reboot),
        Just(Accept),
        Just(Look),
    ]
}

proptest! {
    /// Two processes, of which each looks at the clock when it likes, and a mark that one of them persisted last.
    #[test]
    fn the_time_never_goes_back(
        events in proptest::collection::vec((event(), 0..2usize, any::<[bool; 3]>()), 0..60),
    ) {
        let clock = TestClock::new(Timestamp::from_millis(BEGIN));
        let processes = [(); 2].map(|()| HighWater::new(Arc::new(clock.clone()), None));
        let mut before = [processes[0].now(), processes[1].now()];
        let mut persisted = processes[0].mark().to_string();
        for (event, who, [adopts, persists, looks]) in events {
            happen(&clock, &processes[who], event);
            if adopts {
                processes[who].adopt(&persisted.parse().unwrap());
            }
            if persists {
                persisted = processes[who].mark().to_string();
            }
            if !looks {
                continue;
            }
            let now = processes[who].now();
            prop_assert!(now.at >= before[who].at, "{event:?}: {:?} then {now:?}", before[who]);
            prop_assert!(now.expiry_at >= before[who].expiry_at, "{event:?}: {:?} then {now:?}", before[who]);
            prop_assert!(now.expiry_at <= now.at, "{event:?}: {now:?}");
            prop_assert_eq!(processes[who].doubt().is_some(), processes[who].mark().doubted_at.is_some());
            before[who] = now;
        }
    }

    #[test]
    fn leases_lapse_at_least_at_the_pace_of_the_boot_clock(events in proptest::collection::vec(event(), 0..40)) {
        let (clock, time) = start();
        for event in events {
            let before = time.now();
            happen(&clock, &time, event);
            if let Pass(millis) = event {
                prop_assert!(time.now().at >= before.at.plus(span(millis)));
            }
        }
    }
}
