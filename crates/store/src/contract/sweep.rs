//! Cases of the sweep and of the instants that it goes by: it never changes a decision, and never what it did not
//! choose. What a sweep does while the clock is in doubt is in `lasting`.

use std::sync::Arc;

use counterfoil_core::{Decision, Effect, Expiry, Record, State, decide};
use tokio::task::JoinSet;

use super::kit::{Broken, Held, LEASE, MILLISECOND, Place, REFUSED, RETENTION, Trial, Verdict, claim_of, must};
use crate::seam::{Expected, New, Swapped, Swept};

pub(super) async fn sweep_leaves_unsettled(trial: &mut Trial) -> Held {
    let mut left = Vec::new();
    for (number, effect) in (1..).zip([Effect::Coupled, Effect::KeyedUpstream, Effect::Other]) {
        let place = trial.place(&format!("lapsed-{number}"))?;
        let record = place.claim_as(number, effect).await?;
        left.push((place, record));
    }
    let place = trial.place("unknown")?;
    let running = place.claim(9).await?;
    let why = counterfoil_core::Why::Doubted;
    let state = State::Unknown { since: running.claimed_at, why };
    let unknown = Arc::new(Record { version: 2, state, ..Record::clone(&running) });
    place.write(Expected::record(&running), New::put(unknown.clone())).await?;
    left.push((place, unknown));
    for _ in 0..3 {
        trial.advance(RETENTION * 24 * 365).await?;
        let swept = trial.store().sweep(1_000).await?;
        must!(swept == Swept::default(), "nothing has expired, and a sweep says {swept:?}");
        for (place, record) in &left {
            place.must_stand(Some(record), "a sweep of what is running or unknown").await?;
        }
    }
    Ok(Verdict::Holds)
}

pub(super) async fn retention_ends_at_its_instant(trial: &mut Trial) -> Held {
    let place = trial.place("promised")?;
    let record = place.complete(&*place.claim(1).await?, Expiry::NewAction).await?;
    trial.advance(RETENTION - MILLISECOND).await?;
    let swept = trial.store().sweep(1_000).await?;
    must!(swept == Swept::default(), "one millisecond before expiry a sweep says {swept:?}");
    place.must_stand(Some(&record), "a sweep one millisecond before expiry").await?;
    let decision = place.decision().await?;
    must!(matches!(decision, Decision::Replay { .. }), "one millisecond before expiry: {decision:?}");

    trial.advance(MILLISECOND).await?;
    let decision = place.decision().await?;
    must!(matches!(decision, Decision::Execute), "at the instant of expiry: {decision:?}");
    let swept = trial.store().sweep(1_000).await?;
    must!(swept == Swept { expired: 1, ..Swept::default() }, "at the instant of expiry a sweep says {swept:?}");
    place.must_stand(None, "a sweep at the instant of expiry").await?;
    Ok(Verdict::Holds)
}

pub(super) async fn spent_stays_until_its_time(trial: &mut Trial) -> Held {
    let place = trial.place("refused")?;
    let done = place.complete(&*place.claim(1).await?, Expiry::Refuse(REFUSED)).await?;
    trial.advance(RETENTION).await?;
    let swept = trial.store().sweep(1_000).await?;
    must!(swept.expired == 1, "at the receipt's expiry a sweep says {swept:?}");
    let spent = place.standing().await?;
    must!(matches!(spent.state, State::Spent { .. }), "an expired receipt of a refusing operation became {spent:?}");
    must!(spent.version == done.version + 1, "a swept record went from version {} to {}", done.version, spent.version);
    trial.advance(REFUSED - MILLISECOND).await?;
    let swept = trial.store().sweep(1_000).await?;
    must!(swept == Swept::default(), "one millisecond before the key is free a sweep says {swept:?}");
    place.must_stand(Some(&spent), "a sweep one millisecond before the key is free").await?;
    let decision = place.decision().await?;
    must!(matches!(decision, Decision::Expired { .. }), "one millisecond before the key is free: {decision:?}");
    trial.advance(MILLISECOND).await?;
    let swept = trial.store().sweep(1_000).await?;
    must!(swept == Swept { spent: 1, ..Swept::default() }, "once the key is free a sweep says {swept:?}");
    place.must_stand(None, "a sweep once the key is free").await?;
    Ok(Verdict::Holds)
}

/// What claims of the same and of other parameters are answered.
async fn answers(place: &Place) -> Result<[Decision; 2], Broken> {
    let seen = place.read().await?;
    let same = claim_of(&place.identity, "order")?;
    let other = claim_of(&place.identity, "another order")?;
    Ok([same, other].map(|claim| decide(seen.record.as_deref(), &claim, seen.now).0))
}

pub(super) async fn sweep_changes_no_decision(trial: &mut Trial) -> Held {
    let mut places = Vec::new();
    let endings = [None, Some(Expiry::NewAction), Some(Expiry::Refuse(REFUSED)), Some(Expiry::Refuse(MILLISECOND))];
    for (number, ending) in (1..).zip(endings) {
        for sweeps_miss in 0..2 {
            // Half of them are made later, so that each sweep finds records at different ages.
            let place = trial.place(&format!("age-{number}-{sweeps_miss}"))?;
            let record = place.claim(number).await?;
            if let Some(expiry) = ending {
                place.complete(&record, expiry).await?;
            }
            places.push(place);
        }
        trial.advance(MILLISECOND).await?;
    }
    let steps = [RETENTION - MILLISECOND * 4, MILLISECOND, MILLISECOND, MILLISECOND, MILLISECOND, MILLISECOND * 2];
    let steps = steps.into_iter().chain([REFUSED - MILLISECOND * 6, MILLISECOND, MILLISECOND, MILLISECOND * 9, LEASE]);
    for step in steps {
        trial.advance(step).await?;
        let mut before = Vec::new();
        for place in &places {
            before.push(answers(place).await?);
        }
        trial.sweep_all().await?;
        for (place, before) in places.iter().zip(before) {
            let after = answers(place).await?;
            must!(after == before, "before a sweep the answers were {before:?}, and after it {after:?}");
        }
    }
    Ok(Verdict::Holds)
}

pub(super) async fn sweep_is_bounded(trial: &mut Trial) -> Held {
    let mut places = Vec::new();
    for number in 0..9 {
        let place = trial.place(&format!("due-{number}"))?;
        place.complete(&*place.claim(number).await?, Expiry::NewAction).await?;
        places.push(place);
    }
    trial.advance(RETENTION).await?;
    let (mut gone, mut rounds) = (0, 0);
    loop {
        let swept = trial.store().sweep(4).await?;
        must!(swept.expired + swept.spent <= 4, "a sweep of at most 4 changed {swept:?}");
        must!(!swept.stopped, "a sweep stopped, and nobody touched the clock");
        gone += swept.expired;
        rounds += 1;
        let left = trial.store().about().await?.records;
        must!(left == 9 - gone as u64, "of 9 records {gone} were swept, and {left} are left");
        must!(swept.more == (left > 0), "{left} are due after a sweep that says {swept:?}");
        if !swept.more {
            break;
        }
        must!(rounds < 100, "a sweep says for ever that more is due");
    }
    for place in &places {
        place.must_stand(None, "all sweeps").await?;
    }
    Ok(Verdict::Holds)
}

/// While a sweep is at work, somebody takes over what it may have chosen already.
pub(super) async fn sweep_repeats_its_condition(trial: &mut Trial) -> Held {
    for round in 0..10 {
        let mut places = Vec::new();
        for number in 0..8 {
            let place = trial.place(&format!("reused-{round}-{number}"))?;
            let done = place.complete(&*place.claim(number).await?, Expiry::NewAction).await?;
            places.push((place, done));
        }
        trial.advance(RETENTION).await?;
        let store = trial.store();
        let mut sweeper = JoinSet::new();
        sweeper.spawn(async move { store.sweep(1_000).await });
        tokio::task::yield_now().await;
        let mut takers = JoinSet::new();
        for (number, (place, done)) in (100..).zip(&places) {
            takers.spawn(take(place.clone(), done.clone(), number));
        }
        let mut taken = Vec::new();
        while let Some(took) = takers.join_next().await {
            taken.push(took??);
        }
        while let Some(swept) = sweeper.join_next().await {
            swept??;
        }
        for (place, record) in taken {
            place.must_stand(Some(&record), "a sweep beside a claim that won").await?;
        }
        for (place, _) in places {
            place.delete(&*place.standing().await?).await?;
        }
    }
    Ok(Verdict::Holds)
}

/// A claim that finds an expired receipt, or finds that a sweep was faster.
async fn take(place: Place, done: Arc<Record>, number: u8) -> Result<(Place, Arc<Record>), Broken> {
    let draft = place.draft(number, Effect::Other)?;
    let mut over = draft.clone();
    over.version = done.version + 1;
    let record = match place.send(Expected::record(&done), New::claim(over)).await? {
        Swapped::Won { record, .. } => record,
        Swapped::Lost { stands: None, .. } => place.write(Expected::Absent, New::claim(draft)).await?,
        other => return Err(format!("a claim over an expired receipt: {other:?}").into()),
    };
    record.map(|record| (place, record)).ok_or_else(|| "a claim won without a record".to_owned().into())
}
