//! Cases of a quarantine: it is judged in the write that would let a claim run, inserts and take-overs alike.

use std::time::Duration;

use std::sync::Arc;

use counterfoil_core::{Decision, Effect, Expiry, Record, State, Timestamp, Why};

use super::kit::{Held, LEASE, MILLISECOND, Place, RETENTION, Trial, Verdict, must};
use crate::contract::kit::Broken;
use crate::seam::{Expected, New};

fn is_quarantined(record: &Record) -> bool {
    matches!(record.state, State::Unknown { why: Why::Quarantined, .. })
}

/// A claim of a key that is known to have been used first at `dated`.
async fn claim_dated(place: &Place, dated: Option<Timestamp>, over: Option<&Record>) -> Result<Arc<Record>, Broken> {
    let mut draft = place.draft(50, Effect::Coupled)?;
    draft.dated = dated;
    draft.version = over.map_or(1, |record| record.version + 1);
    let record = place.write(over.map_or(Expected::Absent, Expected::record), New::claim(draft)).await?;
    record.ok_or_else(|| "a claim won without a record".to_owned().into())
}

async fn must_judge(trial: &Trial, key: &str, dated: Option<Timestamp>, quarantined: bool) -> Result<(), Broken> {
    let place = trial.place(key)?;
    let record = claim_dated(&place, dated, None).await?;
    must!(is_quarantined(&record) == quarantined, "a claim dated {dated:?} became {:?}", record.state);
    place.must_stand(Some(&record), "a claim under quarantine").await?;
    let decision = place.decision().await?;
    let unknown = matches!(decision, Decision::Unknown { why: Why::Quarantined, .. });
    must!(unknown == quarantined, "the next claim of one dated {dated:?} is answered {decision:?}");
    Ok(())
}

pub(super) async fn quarantine_judges_claims(trial: &mut Trial) -> Held {
    let earlier = trial.place("earlier")?;
    let running = claim_dated(&earlier, None, None).await?;
    let before = earlier.read().await?.now.at.plus(Duration::from_secs(10));
    trial.store().set_quarantine(Some(before)).await?;
    let told = trial.store().about().await?.quarantine_before;
    must!(told == Some(before), "a quarantine before {before} was set, and the store tells of {told:?}");

    earlier.must_stand(Some(&running), "a quarantine set later").await?;
    must_judge(trial, "undated", None, true).await?;
    must_judge(trial, "older", Some(before.minus(MILLISECOND)), true).await?;
    must_judge(trial, "younger", Some(before), false).await?;
    let done = earlier.complete(&running, Expiry::NewAction).await?;
    earlier.must_stand(Some(&done), "a completion under quarantine").await?;

    trial.store().set_quarantine(None).await?;
    must!(trial.store().about().await?.quarantine_before.is_none(), "a lifted quarantine is still told of");
    must_judge(trial, "undated-after", None, false).await?;
    Ok(Verdict::Holds)
}

pub(super) async fn quarantine_judges_take_overs(trial: &mut Trial) -> Held {
    let (lapsed, expired) = (trial.place("lapsed")?, trial.place("expired")?);
    let (young, kept) = (trial.place("young")?, trial.place("kept")?);
    let running = lapsed.claim_as(1, Effect::Coupled).await?;
    let running_young = young.claim_as(2, Effect::Coupled).await?;
    let done = expired.complete(&*expired.claim(3).await?, Expiry::NewAction).await?;
    trial.advance(RETENTION).await?;
    let receipt = kept.complete(&*kept.claim(4).await?, Expiry::NewAction).await?;
    trial.advance(LEASE).await?;
    let before = lapsed.read().await?.now.at;
    trial.store().set_quarantine(Some(before)).await?;
    for (place, over) in [(&lapsed, &running), (&expired, &done)] {
        let record = claim_dated(place, None, Some(over)).await?;
        must!(is_quarantined(&record), "an undated claim over {:?} became {:?}", over.state, record.state);
        must!(record.version == over.version + 1, "version {} became {}", over.version, record.version);
    }
    let record = claim_dated(&young, Some(before), Some(&running_young)).await?;
    must!(record.state == State::Running, "a claim dated at the quarantine's end became {:?}", record.state);
    kept.must_stand(Some(&receipt), "a quarantine").await?;
    let decision = kept.decision().await?;
    must!(matches!(decision, Decision::Replay { .. }), "a receipt under quarantine is answered {decision:?}");
    Ok(Verdict::Holds)
}
