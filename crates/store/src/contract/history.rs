//! Cases of the history: what operators and alarms wrote, and that it is written with the record or not at all.

use std::sync::Arc;

use counterfoil_core::action::{self, Confirmation, Verdict as Said};
use counterfoil_core::{Expiry, LeaseId, Receipt, Timestamp, Write};

use super::kit::{ATTEMPT, Held, MILLISECOND, Place, RETENTION, Trial, Verdict, lease, must};
use crate::contract::kit::Broken;
use crate::seam::{Expected, New, Note, NoteKind, Swap, Swapped};

const SHOWN_MAX: usize = 100;

fn note(place: &Place, kind: NoteKind, lease: LeaseId, at: Timestamp, why: &str) -> Note {
    let who = "o'Brien \"ops\" \u{1f511}".to_owned();
    Note { identity: place.identity.clone(), at, kind, lease, who, why: why.to_owned() }
}

async fn must_tell(place: &Place, want: &[Note], after: &str) -> Result<(), Broken> {
    let told = place.store.history(&place.identity).await?;
    must!(told == want, "after {after} the history must be {want:?}, and is {told:?}");
    Ok(())
}

/// An operator's word as the gate writes it.
async fn word(place: &Place, said: Said, why: &str) -> Result<Swap, Broken> {
    let seen = place.read().await?;
    let record = place.standing().await?;
    let kind = match said {
        Said::Happened { .. } => NoteKind::ResolvedHappened,
        Said::DidNotHappen => NoteKind::ResolvedDidNotHappen,
        Said::SendAnew => NoteKind::ResolvedSendAnew,
    };
    let (version, id) = (record.version, record.lease.id);
    let new = match action::resolve(Some(&record), version, id, said, Confirmation::OwnerStopped, seen.now) {
        Ok(Write::Put(record)) => New::put(record),
        Ok(Write::Delete) => New::Delete,
        other => return Err(format!("the suite's own word was refused: {other:?}").into()),
    };
    let note = Some(Arc::new(note(place, kind, id, seen.now.at, why)));
    Ok(Swap { note, ..place.swap(Expected::record(&record), new) })
}

fn happened() -> Said {
    Said::Happened { receipt: Receipt::new(201, "found"), retention: RETENTION, expiry: Expiry::NewAction }
}

pub(super) async fn history_is_in_the_same_write(trial: &mut Trial) -> Held {
    let place = trial.place("settled")?;
    let neighbour = trial.place("neighbour")?;
    neighbour.claim(7).await?;
    place.claim(1).await?;
    trial.advance(ATTEMPT).await?;
    let lost = word(&place, happened(), "lost").await?;
    let won = word(&place, Said::DidNotHappen, "won").await?;
    let mut late = word(&place, Said::DidNotHappen, "too late").await?;
    late.not_after = Some(place.read().await?.now.at);
    trial.advance(MILLISECOND).await?;
    let swapped = place.store.swap(late).await?;
    must!(matches!(swapped, Swapped::TooLate { .. }), "a word after its limit: {swapped:?}");
    must_tell(&place, &[], "a word that came too late").await?;

    let first = won.note.clone();
    let swapped = place.store.swap(won).await?;
    must!(matches!(swapped, Swapped::Won { .. }), "a first word: {swapped:?}");
    let mut told: Vec<Note> = first.as_deref().cloned().into_iter().collect();
    must_tell(&place, &told, "a word that won and deleted its record").await?;
    let swapped = place.store.swap(lost).await?;
    must!(matches!(swapped, Swapped::Lost { .. }), "a second word on the same version: {swapped:?}");
    must_tell(&place, &told, "a word that lost").await?;

    place.claim(2).await?;
    must_tell(&place, &told, "a new claim").await?;
    trial.advance(ATTEMPT).await?;
    let second = word(&place, happened(), "won again").await?;
    told.extend(second.note.as_deref().cloned());
    let swapped = place.store.swap(second).await?;
    must!(matches!(swapped, Swapped::Won { .. }), "a word on the new claim: {swapped:?}");
    must_tell(&place, &told, "a word on a later record of the same identity").await?;
    must_tell(&neighbour, &[], "words about another identity").await?;
    Ok(Verdict::Holds)
}

pub(super) async fn history_is_ordered_and_bounded(trial: &mut Trial) -> Held {
    let place = trial.place("noted")?;
    let record = place.claim(1).await?;
    let mut told = Vec::new();
    for number in 0..SHOWN_MAX + 5 {
        // All at one instant: the order is that of writing.
        let note = note(&place, NoteKind::LateCompletion, lease(9), record.claimed_at, &format!("alarm {number}"));
        place.store.note(note.clone()).await?;
        told.push(note);
    }
    must_tell(&place, &told[5..], "105 alarms").await?;
    place.must_stand(Some(&record), "alarms").await?;
    Ok(Verdict::Holds)
}
