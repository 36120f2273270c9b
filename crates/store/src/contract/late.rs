//! Calls that come late, through the gate as in life: whatever became of the record meanwhile, they change nothing.
//! Which answer each gets is a rule of core and is tested there.

use counterfoil_core::action::{Confirmation, Verdict as Said};
use counterfoil_core::{Effect, Expiry, Policy, Receipt, Why};

use super::kit::{ATTEMPT, Broken, Held, LEASE, Place, REFUSED, RETENTION, Trial, Verdict, claim_of, must, policy};
use crate::gate::{Begun, Ended, Gate, Permit, Signed};
use crate::seam::{Expected, New};

/// What became of the record while its first owner was away.
#[derive(Clone, Copy, Debug)]
enum End {
    Happened,
    DidNotHappen,
    DidNotHappenThenClaimed,
    Released,
    ReleasedThenClaimed,
    Completed,
    Expired,
    ExpiredThenClaimed,
    Swept,
    SweptThenClaimed,
    SweptToSpent,
    TakenOver,
}

const ENDS: [End; 12] = [
    End::Happened,
    End::DidNotHappen,
    End::DidNotHappenThenClaimed,
    End::Released,
    End::ReleasedThenClaimed,
    End::Completed,
    End::Expired,
    End::ExpiredThenClaimed,
    End::Swept,
    End::SweptThenClaimed,
    End::SweptToSpent,
    End::TakenOver,
];

#[derive(Clone, Copy, Debug)]
enum Call {
    Renew,
    Complete,
    Release,
    Doubt,
}

const CALLS: [Call; 4] = [Call::Renew, Call::Complete, Call::Release, Call::Doubt];

pub(super) async fn late_calls_touch_nobody(trial: &mut Trial) -> Held {
    let gate = Gate::new(trial.store())?;
    for end in ENDS {
        for call in CALLS {
            let what = format!("a late {call:?} after {end:?}");
            let place = trial.place(&format!("{end:?}-{call:?}"))?;
            let mut permit = begin(&gate, &place, &promised(end)).await?;
            bring_about(trial, &gate, &place, end).await?;
            let before = place.record().await?;
            let written = late(&gate, &mut permit, call).await?;
            place.must_stand(before.as_deref(), &what).await?;
            let ours = before.is_some_and(|record| record.lease.id == permit.lease());
            must!(ours || !written, "{what} was told that it had written");
        }
    }
    Ok(Verdict::Holds)
}

fn promised(end: End) -> Policy {
    match end {
        End::SweptToSpent => policy(Effect::Other, Expiry::Refuse(REFUSED)),
        End::TakenOver => policy(Effect::Coupled, Expiry::NewAction),
        End::Happened
        | End::DidNotHappen
        | End::DidNotHappenThenClaimed
        | End::Released
        | End::ReleasedThenClaimed
        | End::Completed
        | End::Expired
        | End::ExpiredThenClaimed
        | End::Swept
        | End::SweptThenClaimed => policy(Effect::Other, Expiry::NewAction),
    }
}

async fn begin(gate: &Gate, place: &Place, policy: &Policy) -> Result<Permit, Broken> {
    match gate.begin(&mut claim_of(&place.identity, "order")?, policy).await? {
        Begun::Execute(permit) => Ok(*permit),
        other => Err(format!("a claim that nothing stands in the way of: {other:?}").into()),
    }
}

/// The record changes behind the permit's back, as by another process or by a copy whose reply was lost.
async fn bring_about(trial: &Trial, gate: &Gate, place: &Place, end: End) -> Result<(), Broken> {
    let running = place.standing().await?;
    match end {
        End::Happened => {
            let verdict =
                Said::Happened { receipt: Receipt::new(201, "made"), retention: RETENTION, expiry: Expiry::NewAction };
            resolve(trial, gate, place, &verdict).await?;
        }
        End::DidNotHappen | End::DidNotHappenThenClaimed => resolve(trial, gate, place, &Said::DidNotHappen).await?,
        End::Released | End::ReleasedThenClaimed => place.delete(&running).await?,
        End::Completed => drop(place.complete(&running, Expiry::NewAction).await?),
        End::Expired | End::ExpiredThenClaimed | End::Swept | End::SweptThenClaimed => {
            place.complete(&running, Expiry::NewAction).await?;
            trial.advance(RETENTION).await?;
        }
        End::SweptToSpent => {
            place.complete(&running, Expiry::Refuse(REFUSED)).await?;
            trial.advance(RETENTION).await?;
        }
        End::TakenOver => {
            trial.advance(LEASE).await?;
            let mut draft = place.draft(9, Effect::Coupled)?;
            draft.version = running.version + 1;
            place.write(Expected::record(&running), New::claim(draft)).await?;
        }
    }
    if matches!(end, End::Swept | End::SweptThenClaimed | End::SweptToSpent) {
        trial.sweep_all().await?;
    }
    if matches!(end, End::DidNotHappenThenClaimed | End::ReleasedThenClaimed | End::SweptThenClaimed) {
        place.claim(9).await?;
    }
    if matches!(end, End::ExpiredThenClaimed) {
        let expired = place.standing().await?;
        let mut draft = place.draft(9, Effect::Other)?;
        draft.version = expired.version + 1;
        place.write(Expected::record(&expired), New::claim(draft)).await?;
    }
    Ok(())
}

async fn resolve(trial: &Trial, gate: &Gate, place: &Place, verdict: &Said) -> Result<(), Broken> {
    trial.advance(ATTEMPT.max(LEASE)).await?;
    let seen = Expected::record(&*place.standing().await?);
    let by = Signed { who: "operator".to_owned(), why: "looked it up".to_owned() };
    let resolved = gate.resolve(&place.identity, seen, verdict, Confirmation::OwnerStopped, &by).await?;
    must!(resolved.is_ok(), "an operator's word was refused: {resolved:?}");
    Ok(())
}

/// Whether the call was told that it had written.
async fn late(gate: &Gate, permit: &mut Permit, call: Call) -> Result<bool, Broken> {
    let ended = match call {
        Call::Renew => return Ok(gate.renew(permit).await?.is_ok()),
        Call::Complete => gate.complete(permit, &Receipt::new(500, "late")).await?,
        Call::Release => gate.release(permit).await?,
        Call::Doubt => gate.doubt(permit, Why::Doubted).await?,
    };
    Ok(matches!(ended, Ended::Written { .. }))
}
