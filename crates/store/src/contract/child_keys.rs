//! Cases of actions that run by child keys: what says which one comes next is never forgotten, and never in anybody's way.
//! Which one may be sent is a rule of core and is tested there.

use std::sync::Arc;

use counterfoil_core::action::Sending;
use counterfoil_core::{Effect, Expiry, Keyed, Policy, Receipt, Record, State, Why};

use super::kit::{Broken, Held, LEASE, Place, REFUSED, RETENTION, Trial, Verdict, WINDOW, claim_of, must, policy};
use crate::gate::{Begun, Ended, Gate, Permit};
use crate::seam::{Expected, New, Query, Swept};

async fn begin(gate: &Gate, place: &Place, policy: &Policy) -> Result<Begun, Broken> {
    Ok(gate.begin(&mut claim_of(&place.identity, "order")?, policy).await?)
}

async fn run(gate: &Gate, place: &Place) -> Result<Permit, Broken> {
    match begin(gate, place, &policy(Effect::KeyedUpstream, Expiry::NewAction)).await? {
        Begun::Execute(permit) => Ok(*permit),
        other => Err(format!("a claim that nothing stands in the way of: {other:?}").into()),
    }
}

/// What stands must be what the permit was granted, of this generation and with this doubt.
async fn must_run(place: &Place, permit: &Permit, generation: u32, doubt: bool) -> Result<Arc<Record>, Broken> {
    place.must_stand(Some(permit.record()), "a granted claim").await?;
    let record = place.standing().await?;
    let found = record.keyed.map(|keyed| (keyed.generation, keyed.doubt));
    must!(found == Some((generation, doubt)), "generation {generation}, doubt {doubt} became {:?}", record.keyed);
    Ok(record)
}

/// A row that is spent, of this generation.
async fn must_be_spent(place: &Place, generation: u32) -> Result<Arc<Record>, Broken> {
    let spent = place.standing().await?;
    let found = spent.keyed.map(|keyed| keyed.generation);
    let is_spent = matches!(spent.state, State::Spent { .. });
    must!(is_spent && found == Some(generation), "spent generation {generation} is {spent:?}");
    Ok(spent)
}

pub(super) async fn generations_are_kept_for_ever(trial: &mut Trial) -> Held {
    let gate = Gate::new(trial.store())?;
    for (name, expiry) in [("new-action", Expiry::NewAction), ("refused", Expiry::Refuse(REFUSED))] {
        let place = trial.place(name)?;
        let promised = policy(Effect::KeyedUpstream, expiry);
        for generation in 0..3 {
            let Begun::Execute(mut permit) = begin(&gate, &place, &promised).await? else {
                return Err(format!("generation {generation} does not run").into());
            };
            must_run(&place, &permit, generation, false).await?;
            gate.complete(&mut permit, &Receipt::new(201, "made")).await?;
            trial.advance(RETENTION).await?;
            let swept = trial.store().sweep(1_000).await?;
            must!(swept == Swept { expired: 1, ..Swept::default() }, "an expired receipt was swept as {swept:?}");
            let spent = must_be_spent(&place, generation + 1).await?;
            trial.advance(REFUSED).await?;
            for _ in 0..2 {
                let swept = trial.store().sweep(1_000).await?;
                must!(swept == Swept::default(), "a sweep of what is kept for ever says {swept:?}");
                place.must_stand(Some(&spent), "a sweep of what is kept for ever").await?;
                trial.advance(RETENTION * 24 * 365 * 10).await?;
            }
        }
    }
    let about = trial.store().about().await?;
    let counted = (about.records, about.unknown, about.running);
    must!(counted == (2, 0, 0), "two rows that are kept for ever count as {counted:?}");
    let promised = about.promised_until.is_none_or(|until| until <= about.now.at);
    must!(promised, "rows that promise nothing are promised until {:?}", about.promised_until);
    let unsettled = trial.store().list(Query { unsettled_only: true, after: 0, limit: 100 }).await?.rows;
    must!(unsettled.is_empty(), "rows that are kept for ever are listed as unsettled: {unsettled:?}");
    Ok(Verdict::Holds)
}

pub(super) async fn generations_survive_their_ends(trial: &mut Trial) -> Held {
    let gate = Gate::new(trial.store())?;
    let place = trial.place("ends")?;
    let mut first = run(&gate, &place).await?;
    gate.release(&mut first).await?;
    must_be_spent(&place, 0).await?;
    trial.advance(LEASE).await?;

    let mut second = run(&gate, &place).await?;
    let since = must_run(&place, &second, 0, false).await?.claimed_at;
    must!(since == place.read().await?.now.at, "after a release a first run began at {since}");
    gate.doubt(&mut second, Why::Doubted).await?;
    for round in 0..2 {
        let mut again = run(&gate, &place).await?;
        let record = must_run(&place, &again, 0, true).await?;
        must!(record.claimed_at == since, "a take-over moved the first run from {since} to {}", record.claimed_at);
        let wire = gate.wire(&mut again).may_send();
        must!(wire == Sending::Go, "a run whose window is open may send: {wire:?}");
        if round == 0 {
            // Left to lapse.
            trial.advance(LEASE).await?;
            continue;
        }
        let ended = gate.release(&mut again).await?;
        must!(matches!(ended, Ended::Written { .. }), "a release behind a doubt: {ended:?}");
        let ended = place.standing().await?;
        must!(ended.state == State::Running, "a release behind a doubt made {ended:?}");
    }
    let late = gate.complete(&mut second, &Receipt::new(500, "late")).await?;
    must!(matches!(late, Ended::Refused(_)), "a completion by a lease that was taken over: {late:?}");

    trial.advance(WINDOW).await?;
    let closed = begin(&gate, &place, &policy(Effect::KeyedUpstream, Expiry::NewAction)).await?;
    must!(matches!(closed, Begun::Unknown { why: Why::WindowClosed, .. }), "behind a closed window: {closed:?}");
    let shown = place.standing().await?;
    let is_shown = matches!(shown.state, State::Unknown { why: Why::WindowClosed, .. });
    must!(is_shown, "a closed window is not shown by {shown:?}");
    Ok(Verdict::Holds)
}

/// Every part at its limits.
pub(super) async fn child_keys_survive(trial: &mut Trial) -> Held {
    let place = trial.place("limits")?;
    let running = place.claim_as(1, Effect::KeyedUpstream).await?;
    for doubt in [true, false] {
        let stands = place.standing().await?;
        let keyed = Keyed { generation: u32::MAX, window: WINDOW * 365, attempt_limit: LEASE, doubt };
        let record = Record { version: stands.version + 1, keyed: Some(keyed), ..Record::clone(&running) };
        place.write(Expected::record(&stands), New::put(record.clone())).await?;
        place.must_stand(Some(&record), "a record with child keys").await?;
    }
    Ok(Verdict::Holds)
}
