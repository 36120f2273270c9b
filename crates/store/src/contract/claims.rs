//! Cases of the one conditional write: who wins, who loses, and what is known of it.
//! Calls that come late through the gate are in `late`.

use counterfoil_core::{Effect, Expiry, State};
use tokio::task::JoinSet;

use super::kit::{ATTEMPT, Held, LEASE, MILLISECOND, Place, Trial, Verdict, lease, must};
use crate::contract::kit::Broken;
use crate::seam::{Expected, New, Swapped};

const RACERS: u8 = 8;
const RACES: u8 = 12;

/// Lets racers claim one place at once, and checks that one of them has it.
async fn race(place: &Place, expected: Expected, version: u64) -> Result<(), Broken> {
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(usize::from(RACERS)));
    let mut racers = JoinSet::new();
    for number in 1..=RACERS {
        let (place, start) = (place.clone(), start.clone());
        let mut draft = place.draft(number, Effect::Coupled)?;
        draft.version = version;
        racers.spawn(async move {
            start.wait().await;
            place.send(expected, New::claim(draft)).await
        });
    }
    let (mut winners, mut told) = (Vec::new(), Vec::new());
    while let Some(swapped) = racers.join_next().await {
        match swapped?? {
            Swapped::Won { record, .. } => winners.push(record),
            Swapped::Lost { stands, .. } => told.push(stands),
            // The winner's transaction was open: a loser that was told no more than that.
            Swapped::Held { .. } => {}
            Swapped::TooLate { now } => return Err(format!("a claim without a limit was too late at {now:?}").into()),
        }
    }
    let stands = place.record().await?;
    must!(winners.len() == 1, "of {RACERS} racing claims {} won: {winners:?}", winners.len());
    must!(
        stands.is_some() && winners[0] == stands,
        "the winner was told {:?}, and there stands {stands:?}",
        winners[0]
    );
    must!(told.iter().all(|lost_to| *lost_to == stands), "{stands:?} stands, and losers were told of {told:?}");
    Ok(())
}

pub(super) async fn insert_wins_once(trial: &mut Trial) -> Held {
    for number in 0..RACES {
        race(&trial.place(&format!("race-{number}"))?, Expected::Absent, 1).await?;
    }
    Ok(Verdict::Holds)
}

pub(super) async fn take_over_wins_once(trial: &mut Trial) -> Held {
    for number in 0..RACES {
        let place = trial.place(&format!("race-{number}"))?;
        let lapsed = place.claim_as(100, Effect::Coupled).await?;
        trial.advance(LEASE).await?;
        race(&place, Expected::record(&lapsed), 2).await?;
    }
    Ok(Verdict::Holds)
}

pub(super) async fn version_or_lease_alone_never_wins(trial: &mut Trial) -> Held {
    let place = trial.place("guarded")?;
    let first = place.claim(1).await?;
    let second = place.done(&first, Expiry::NewAction).await?;
    for new in [New::put(second.clone()), New::Delete, New::claim(place.draft(3, Effect::Other)?)] {
        let other_lease = Expected::Record { version: first.version, lease: lease(2) };
        place.must_lose(other_lease, new.clone(), "a write that knows only the version").await?;
        for version in [first.version + 1, first.version - 1] {
            let other_version = Expected::Record { version, lease: first.lease.id };
            place.must_lose(other_version, new.clone(), "a write that knows only the lease").await?;
        }
        place.must_lose(Expected::Absent, new.clone(), "a write that expects nothing").await?;
        let nowhere = trial.place("nowhere")?;
        nowhere.must_lose(Expected::record(&first), new, "a write over what is absent").await?;
    }
    place.write(Expected::record(&first), New::put(second.clone())).await?;
    place.must_stand(Some(&second), "a write that knows both").await?;
    Ok(Verdict::Holds)
}

pub(super) async fn version_restarts_after_absent(trial: &mut Trial) -> Held {
    let place = trial.place("again")?;
    let old = place.claim(1).await?;
    place.delete(&old).await?;
    place.must_stand(None, "a deletion").await?;
    let new = place.claim(2).await?;
    must!(old.version == 1 && new.version == 1, "first claims have versions {} and {}", old.version, new.version);
    let late = place.done(&old, Expiry::NewAction).await?;
    place.must_lose(Expected::record(&old), New::put(late), "a completion by the lease before").await?;
    place.must_lose(Expected::record(&old), New::Delete, "a release by the lease before").await?;
    place.must_stand(Some(&new), "late calls").await?;
    Ok(Verdict::Holds)
}

pub(super) async fn too_late_writes_nothing(trial: &mut Trial) -> Held {
    let place = trial.place("late")?;
    let limit = place.read().await?.now.at;
    let mut swap = place.swap(Expected::Absent, New::claim(place.draft(1, Effect::Other)?));
    swap.not_after = Some(limit);
    trial.advance(MILLISECOND).await?;
    let late = place.store.swap(swap.clone()).await?;
    must!(matches!(late, Swapped::TooLate { .. }), "a claim one millisecond after its limit: {late:?}");
    place.must_stand(None, "a claim that was too late").await?;

    swap.not_after = Some(place.read().await?.now.at);
    let first = place.write(Expected::Absent, swap.new.clone()).await?;
    let Some(first) = first else { return Err("a claim won without a record".to_owned().into()) };
    place.delete(&first).await?;
    let timely = place.store.swap(swap.clone()).await?;
    must!(matches!(timely, Swapped::Won { .. }), "a claim at its limit: {timely:?}");

    trial.advance(MILLISECOND).await?;
    let running = place.standing().await?;
    for new in [New::put(place.done(&running, Expiry::NewAction).await?), New::Delete] {
        let mut write = place.swap(Expected::record(&running), new);
        write.not_after = swap.not_after;
        let late = place.store.swap(write).await?;
        must!(matches!(late, Swapped::TooLate { .. }), "a write one millisecond after its limit: {late:?}");
        place.must_stand(Some(&running), "a write that was too late").await?;
    }
    Ok(Verdict::Holds)
}

pub(super) async fn draft_times_are_spans(trial: &mut Trial) -> Held {
    for number in 1..=2 {
        trial.advance(LEASE).await?;
        let place = trial.place(&format!("times-{number}"))?;
        let draft = place.draft(number, Effect::KeyedUpstream)?;
        let (record, now) = match place.send(Expected::Absent, New::claim(draft.clone())).await? {
            Swapped::Won { record: Some(record), now } => (record, now.at),
            other => return Err(format!("a first claim: {other:?}").into()),
        };
        must!(*record == draft.at(now, None), "a claim at {now} made {record:?}");
        must!(record.lease.until == now.plus(LEASE), "a lease of {LEASE:?} from {now} ends at {}", record.lease.until);
        must!(
            record.lease.attempt_until == now.plus(ATTEMPT),
            "a run of {ATTEMPT:?} from {now} ends at {}",
            record.lease.attempt_until
        );
        let seen = place.read().await?;
        must!(seen.now.at == now, "a write at {now} and a read at {}, and no time has passed", seen.now.at);
        must!(seen.record.as_ref() == Some(&record), "{record:?} was written and {:?} was read", seen.record);
    }
    Ok(Verdict::Holds)
}

pub(super) async fn repeated_write_finds_itself(trial: &mut Trial) -> Held {
    let place = trial.place("repeated")?;
    let claim = New::claim(place.draft(1, Effect::Other)?);
    let Some(running) = place.write(Expected::Absent, claim.clone()).await? else {
        return Err("a claim won without a record".to_owned().into());
    };
    trial.advance(MILLISECOND).await?;
    match place.send(Expected::Absent, claim).await? {
        Swapped::Lost { stands: Some(stands), .. } => {
            must!(stands == running, "a repeated claim found {stands:?} in the place of its own {running:?}");
        }
        other => return Err(format!("a repeated claim: {other:?}").into()),
    }
    let done = place.done(&running, Expiry::NewAction).await?;
    must!(matches!(done.state, State::Done { .. }), "the suite's own completion is {done:?}");
    for new in [New::put(done.clone()), New::Delete] {
        let stands = place.standing().await?;
        let after = place.write(Expected::record(&stands), new.clone()).await?;
        place.must_lose(Expected::record(&stands), new, "a repeated write").await?;
        place.must_stand(after.as_deref(), "a repeated write").await?;
    }
    Ok(Verdict::Holds)
}
