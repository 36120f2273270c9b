//! Cases of what is kept: it comes back as it was given, byte for byte, and under its own identity.

use counterfoil_core::action::sweep;
use counterfoil_core::record::Author;
use counterfoil_core::{
    Body, Effect, Expiry, Holder, Identity, Key, Lease, Now, Operation, Receipt, Record, Scope, State, Timestamp, Why,
    Write,
};

use super::kit::{Held, MILLISECOND, Place, REFUSED, RETENTION, Trial, Verdict, done, must};
use crate::contract::kit::Broken;
use crate::seam::{Expected, New, Query};

/// Everything from single reads must come back from lists and searches too.
async fn must_come_back(place: &Place, record: &Record, what: &str) -> Result<(), Broken> {
    place.must_stand(Some(record), what).await?;
    let key = place.identity.key.as_str();
    let found = place.store.find(key, 100).await?;
    let found = found.into_iter().find(|row| row.identity == place.identity).and_then(|row| row.record.ok());
    must!(found.as_ref() == Some(record), "{what}: {record:?} was written, and {found:?} was found");
    let rows = place.store.list(Query { unsettled_only: false, after: 0, limit: 1_000 }).await?.rows;
    let listed = rows.into_iter().find(|row| row.identity == place.identity).and_then(|row| row.record.ok());
    must!(listed.as_ref() == Some(record), "{what}: {record:?} was written, and {listed:?} was listed");
    Ok(())
}

async fn must_keep(place: &Place, receipt: Receipt, what: &str) -> Result<(), Broken> {
    let running = place.claim(1).await?;
    let now = place.read().await?.now.at;
    let record = done(&running, receipt, Expiry::NewAction, now)?;
    place.write(Expected::record(&running), New::put(record.clone())).await?;
    must_come_back(place, &record, what).await
}

pub(super) async fn bytes_survive(trial: &mut Trial) -> Held {
    let every: Vec<u8> = (0..=255).collect();
    let receipt = Receipt::new(200, every.clone())
        .with_header("set", "a")
        .with_header("X-Set", "b\0\n")
        .with_header("set", every.clone())
        .with_header("empty", "");
    must_keep(&trial.place("every-byte")?, receipt, "a receipt with every byte").await?;
    must_keep(&trial.place("empty")?, Receipt::new(204, ""), "a receipt with an empty body").await?;
    let not_kept =
        Receipt { status: 200, headers: std::sync::Arc::default(), body: Body::NotKept }.with_header("location", "/1");
    must_keep(&trial.place("not-kept")?, not_kept, "a receipt whose body was not kept").await?;
    must_keep(&trial.place("status")?, Receipt::new(u16::MAX, "{\"a\": '%s'}"), "a receipt with the largest status")
        .await?;
    Ok(Verdict::Holds)
}

pub(super) async fn large_bodies_survive(trial: &mut Trial) -> Held {
    let large: Vec<u8> = (0..1_048_576u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    must_keep(&trial.place("large")?, Receipt::new(200, large), "a receipt of 1 MiB").await?;
    Ok(Verdict::Holds)
}

/// Every state that a record can be in, its parts at their limits.
fn states(now: Timestamp) -> Vec<State> {
    let (expires_at, later) = (now.plus(RETENTION), now.plus(RETENTION + REFUSED));
    let mut states = vec![State::Running, State::Spent { until: later }];
    for why in [Why::Lapsed, Why::Doubted, Why::AnsweredWithoutSettle, Why::WindowClosed, Why::Quarantined] {
        states.push(State::Unknown { since: now, why });
    }
    for (author, refuse_until) in [(Author::Owner, None), (Author::Operator, Some(later))] {
        let receipt = Receipt::new(200, "made");
        states.push(State::Done { receipt, author, completed_at: now, expires_at, refuse_until });
    }
    states
}

pub(super) async fn states_survive(trial: &mut Trial) -> Held {
    let first = trial.place("first")?;
    let claimed = first.claim(1).await?;
    let now = first.read().await?.now.at;
    let effects = [Effect::Coupled, Effect::KeyedUpstream, Effect::Other];
    let holders = [None, Some(Holder::from_bytes([0xff; 16]))];
    for (number, state) in states(now).into_iter().enumerate() {
        let place = trial.place(&format!("state-{number}"))?;
        let effect = effects[number % 3];
        let running = place.claim_as(2, effect).await?;
        let lease = Lease { holder: holders[number % 2], until: now.plus(MILLISECOND), ..running.lease.clone() };
        let record = Record { version: u64::from(u32::MAX) + 7, lease, state, ..Record::clone(&running) };
        place.write(Expected::record(&running), New::put(record.clone())).await?;
        must_come_back(&place, &record, "a record in any state").await?;
        if let Some(Write::Put(spent)) = sweep(&record, Now::at(now.plus(RETENTION))) {
            place.write(Expected::record(&record), New::put(spent.clone())).await?;
            must_come_back(&place, &spent, "a record that became Spent").await?;
        }
    }
    first.must_stand(Some(&claimed), "other records").await?;
    Ok(Verdict::Holds)
}

/// Identities that are apart, and that look alike to a store that joins, folds or trims.
fn alike() -> Result<Vec<Identity>, Broken> {
    let of = |parts: &[(&str, &str)], operation: &str, key: &str| -> Result<Identity, Broken> {
        let parts = parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ok(Identity::new(Scope::from_parts(parts)?, Operation::new(operation)?, Key::new(key)?))
    };
    let long = "k".repeat(255);
    Ok(vec![
        of(&[("principal", "a")], "bc", "d")?,
        of(&[("principal", "ab")], "c", "d")?,
        of(&[("principal", "a")], "b", "cd")?,
        of(&[("principal", "a")], "b", "CD")?,
        of(&[("principal", "A")], "b", "cd")?,
        of(&[("principal", "a")], "B", "cd")?,
        of(&[("principal", "a")], "b", "cd ")?,
        of(&[("principal", "a")], "b", " cd")?,
        of(&[("principal", "a ")], "b", "cd")?,
        of(&[("principal", "a")], "b\0c", "d")?,
        of(&[("principal", "a\0b")], "c", "d")?,
        of(&[("principal", "a/b")], "c", "d")?,
        of(&[("principal", "a")], "b/c", "d")?,
        of(&[("principal", "a|b")], "c", "d")?,
        of(&[("principal", "a")], "b|c", "d")?,
        of(&[("principal", "a:b")], "c", "d")?,
        of(&[("principal", "a")], "b:c", "d")?,
        of(&[("principal", "a"), ("region", "b")], "c", "d")?,
        of(&[("region", "b"), ("mode", "a")], "c", "d")?,
        of(&[("principal", "a=b")], "c", "d")?,
        of(&[("principal", "\u{e9}")], "c", "d")?,
        of(&[("principal", "e\u{301}")], "c", "d")?,
        of(&[("principal", "\u{df}")], "c", "d")?,
        of(&[("principal", "ss")], "c", "d")?,
        of(&[("principal", "a")], "b", "1")?,
        of(&[("principal", "a")], "b", "01")?,
        of(&[("principal", "a")], "b", "1.0")?,
        of(&[("principal", "a")], "b", &long)?,
        of(&[("principal", "a")], "b", &long[1..])?,
    ])
}

pub(super) async fn identity_parts_are_apart(trial: &mut Trial) -> Held {
    let mut made = Vec::new();
    for (number, identity) in (1..).zip(alike()?) {
        let place = trial.place_of(identity)?;
        let record = place.claim(number).await?;
        made.push((place, record));
    }
    for (place, record) in &made {
        must_come_back(place, record, "claims of others that look alike").await?;
    }
    Ok(Verdict::Holds)
}
