//! Every sequence of a few events, and long random ones: the invariants of the parent hold after each step.

use proptest::prelude::*;

use super::*;

const WORDS: [&str; 24] = [
    "begin",
    "lost",
    "unsent",
    "ok",
    "ok?",
    "no",
    "no?",
    "again",
    "busy",
    "stored",
    "1:ok",
    "1:unsent",
    "1:no",
    "found",
    "absent",
    "asked-early",
    "happened",
    "never",
    "stale",
    "gone",
    "look",
    "+1m",
    "+6m",
    "+20m",
];

/// Sequences that differ only in events after which nothing changed are walked once.
fn walk(world: &World, depth: usize, seen: &mut usize) {
    if depth == 0 {
        return;
    }
    for word in WORDS {
        let mut after = world.copy();
        let changed = after.step(word).is_none() || after.intent != world.intent;
        *seen += 1;
        if changed {
            walk(&after, depth - 1, seen);
        }
    }
}

impl World {
    fn copy(&self) -> Self {
        let Self { intent, now, leases, told, may_have_reached } = self;
        Self {
            intent: intent.clone(),
            now: *now,
            leases: *leases,
            told: *told,
            may_have_reached: may_have_reached.clone(),
        }
    }
}

#[test]
fn the_invariants_hold_after_every_short_sequence() {
    let documented = Promise::Documented(Duration::from_mins(20));
    let mut seen = 0;
    for (window, opening, depth) in [
        (documented, "", 4),
        (documented, "begin lost +1m", 3),
        (documented, "begin +1m begin", 3),
        (documented, "begin again +1m begin +1m", 3),
        (documented, "begin lost +13m", 3),
        (Promise::Assumed, "begin", 3),
        (Promise::Documented(Duration::ZERO), "", 3),
        (Promise::ForEver, "begin", 3),
    ] {
        let mut world = World::new(window);
        world.run(opening);
        walk(&world, depth, &mut seen);
    }
    assert!(seen > 30_000, "the walk goes somewhere: {seen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_invariants_hold_after_long_sequences(
        minutes in 0_u64..200,
        words in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 1..60),
    ) {
        let mut world = World::new(Promise::Given(Duration::from_mins(minutes)));
        for word in words {
            world.step(word);
        }
        prop_assert_eq!(decode(&encode(&world.intent)), Ok(world.intent));
    }
}
