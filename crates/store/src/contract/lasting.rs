//! Cases of what a store lives through: a restart, a damaged record, a stepped clock. A backend that cannot be put
//! through one is reported so.

use counterfoil_core::{Decision, Effect, Expiry, State};

use super::kit::{Held, LEASE, MILLISECOND, RETENTION, Trial, Verdict, must};
use crate::contract::kit::Broken;
use crate::error::ErrorKind;
use crate::seam::{Expected, New, Note, NoteKind, Query, Swapped};

const TWO_DAYS: i64 = 48 * 3_600_000;

pub(super) async fn reopened_store_remembers(trial: &mut Trial) -> Held {
    let done = {
        let place = trial.place("done")?;
        place.complete(&*place.claim(1).await?, Expiry::NewAction).await?
    };
    let running = trial.place("running")?.claim(2).await?;
    let told = {
        let place = trial.place("running")?;
        let (identity, at, kind) = (place.identity.clone(), running.claimed_at, NoteKind::LateCompletion);
        let note = Note { identity, at, kind, lease: running.lease.id, who: "o".to_owned(), why: "w".to_owned() };
        place.store.note(note.clone()).await?;
        vec![note]
    };
    let before = trial.store().read(&trial.place("done")?.identity).await?.now.at;
    trial.store().set_quarantine(Some(before)).await?;
    let about = trial.store().about().await?;
    let Some(reopened) = trial.subject.reopen() else {
        return Ok(Verdict::NotApplicable("nothing survives a restart"));
    };
    reopened.await?;

    let after = trial.store().about().await?;
    must!((&after.id, after.born_at) == (&about.id, about.born_at), "{about:?} became {after:?}");
    must!(after.records == 2, "two records were kept, and {} came back", after.records);
    must!(after.quarantine_before == Some(before), "a quarantine became {:?}", after.quarantine_before);
    trial.place("done")?.must_stand(Some(&done), "a restart").await?;
    let place = trial.place("running")?;
    let history = place.store.history(&place.identity).await?;
    must!(history == told, "the history was {told:?}, and is {history:?}");
    let stands = place.standing().await?;
    must!(
        stands.lease.id == running.lease.id && stands.state == State::Running,
        "{running:?} stood before a restart, and {stands:?} after it"
    );
    let decision = place.decision().await?;
    must!(!matches!(decision, Decision::Execute), "a restart lets a second run begin beside {stands:?}");
    let late = place.complete(&stands, Expiry::NewAction).await?;
    place.must_stand(Some(&late), "a late completion after a restart").await?;
    trial.advance(RETENTION).await?;
    trial.sweep_all().await?;
    must!(trial.store().about().await?.records == 0, "expired records outlive a sweep after a restart");
    Ok(Verdict::Holds)
}

pub(super) async fn damage_is_no_absence(trial: &mut Trial) -> Held {
    let (place, whole) = (trial.place("damaged")?, trial.place("whole")?);
    place.complete(&*place.claim(1).await?, Expiry::NewAction).await?;
    let kept = whole.claim(2).await?;
    let Some(damaged) = trial.subject.damage(&place.identity) else {
        return Ok(Verdict::NotApplicable("it keeps no bytes that could be damaged"));
    };
    damaged.await?;
    for _ in 0..2 {
        match place.store.read(&place.identity).await {
            Err(error) if error.kind == ErrorKind::Corrupt => {}
            other => return Err(format!("a damaged record was read as {other:?}").into()),
        }
        let claim = place.swap(Expected::Absent, New::claim(place.draft(3, Effect::Other)?));
        match place.store.swap(claim).await {
            Err(error) if error.kind == ErrorKind::Corrupt => {}
            other => return Err(format!("a claim over a damaged record: {other:?}").into()),
        }
        trial.advance(RETENTION * 2).await?;
        trial.sweep_all().await?;
    }
    whole.must_stand(Some(&kept), "damage to another record").await?;
    let page = trial.store().list(Query { unsettled_only: false, after: 0, limit: 10 }).await?;
    let damaged: Vec<bool> = page.rows.iter().map(|row| row.record.is_err()).collect();
    must!(damaged == [true, false], "a damaged and a whole record are listed as damaged: {damaged:?}");
    Ok(Verdict::Holds)
}

pub(super) async fn doubted_clock_forgets_nothing(trial: &mut Trial) -> Held {
    let place = trial.place("receipt")?;
    place.complete(&*place.claim(1).await?, Expiry::NewAction).await?;
    let lapsing = trial.place("lapsing")?;
    lapsing.claim_as(2, Effect::Coupled).await?;
    let Some(stepped) = trial.subject.step_wall(TWO_DAYS) else {
        return Ok(Verdict::NotApplicable("its clock is a server's own"));
    };
    stepped.await?;
    must_wait(trial).await?;
    let decision = lapsing.decision().await?;
    must!(matches!(decision, Decision::InProgress { .. }), "a step of the clock ended a lease: {decision:?}");
    trial.advance(LEASE).await?;
    let decision = lapsing.decision().await?;
    must!(matches!(decision, Decision::Execute), "a lease outlives its time while the clock is in doubt: {decision:?}");
    for step in [-TWO_DAYS, -TWO_DAYS] {
        // Right again, then two days behind.
        if let Some(stepped) = trial.subject.step_wall(step) {
            stepped.await?;
        }
        let decision = place.decision().await?;
        must!(matches!(decision, Decision::Replay { .. }), "a step of {step} ms made a live receipt {decision:?}");
    }
    trial.advance(RETENTION).await?;
    must_wait(trial).await?;
    if let Some(stepped) = trial.subject.step_wall(TWO_DAYS) {
        stepped.await?;
    }
    let decision = place.decision().await?;
    must!(matches!(decision, Decision::Execute), "the clock is right again and the receipt expired: {decision:?}");
    let swept = trial.store().sweep(1_000).await?;
    must!(swept.expired == 1 && !swept.stopped, "the clock is right again, and a sweep says {swept:?}");
    trial.advance(MILLISECOND).await?;
    Ok(Verdict::Holds)
}

/// While the clock is in doubt, the receipt stays, and a sweep says that it stopped.
async fn must_wait(trial: &Trial) -> Result<(), Broken> {
    let place = trial.place("receipt")?;
    let decision = place.decision().await?;
    must!(matches!(decision, Decision::Replay { .. }), "the clock is in doubt, and a receipt is answered {decision:?}");
    let swept = place.store.sweep(1_000).await?;
    must!(swept.stopped, "the clock is in doubt, and a sweep says {swept:?}");
    must!(swept.expired + swept.spent == 0, "the clock is in doubt, and a sweep says {swept:?}");
    place.standing().await?;
    // A completion still wins.
    let other = trial.place("beside")?;
    if other.record().await?.is_none() {
        let running = other.claim(9).await?;
        let done = other.done(&running, Expiry::NewAction).await?;
        let swapped = other.send(Expected::record(&running), New::put(done)).await?;
        must!(matches!(swapped, Swapped::Won { .. }), "a completion while the clock is in doubt: {swapped:?}");
        other.delete(&*other.standing().await?).await?;
    }
    Ok(())
}
