//! Cases of what is read: single records, lists, searches and figures.
//! Reading after a restart or damage is in `lasting`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use counterfoil_core::{Effect, Expiry, Identity, Key, Operation, Receipt, Record, Scope, State, Why, action};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::kit::{Broken, Held, LEASE, MILLISECOND, Place, Trial, Verdict, done, identity, lease, must};
use crate::seam::{Expected, Listed, New, Query, Swapped};

const WRITES: u8 = 40;

pub(super) async fn reads_see_what_was_answered(trial: &mut Trial) -> Held {
    let place = trial.place("answered")?;
    let mut stands = place.claim(1).await?;
    place.must_stand(Some(&stands), "a claim that was answered").await?;
    let ended = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..3 {
        readers.spawn(versions_rise(place.clone(), ended.clone()));
    }
    for _ in 0..WRITES {
        trial.advance(MILLISECOND).await?;
        let now = place.read().await?.now.at;
        let renewed = action::renew(Some(&stands), stands.lease.id, LEASE, now)
            .map(Arc::new)
            .map_err(|refused| format!("the suite's own renewal was refused: {refused:?}"))?;
        place.write(Expected::record(&stands), New::put(renewed.clone())).await?;
        place.must_stand(Some(&renewed), "a write that was answered").await?;
        stands = renewed;
    }
    ended.store(true, Ordering::Release);
    while let Some(read) = readers.join_next().await {
        read??;
    }
    place.delete(&stands).await?;
    place.must_stand(None, "a deletion that was answered").await?;
    Ok(Verdict::Holds)
}

async fn versions_rise(place: Place, ended: Arc<AtomicBool>) -> Result<(), Broken> {
    let mut newest = 0;
    while !ended.load(Ordering::Acquire) {
        let Some(record) = place.record().await? else { return Ok(()) };
        must!(record.version >= newest, "version {newest} was read, and after it version {}", record.version);
        must!(
            record.lease.until == record.lease.renewed_at.plus(record.lease.span),
            "a record was read that is half one write and half another: {record:?}"
        );
        newest = record.version;
        tokio::task::yield_now().await;
    }
    Ok(())
}

pub(super) async fn losing_writes_are_never_seen(trial: &mut Trial) -> Held {
    let place = trial.place("losing")?;
    let first = place.claim(1).await?;
    let now = place.read().await?.now.at;
    let marked = done(&first, Receipt::new(599, "lost"), Expiry::NewAction, now)?;
    let ended = Arc::new(AtomicBool::new(false));
    let start = Arc::new(Barrier::new(4));
    let mut readers = JoinSet::new();
    for _ in 0..3 {
        let (place, first, ended, start) = (place.clone(), first.clone(), ended.clone(), start.clone());
        readers.spawn(async move {
            start.wait().await;
            while !ended.load(Ordering::Acquire) {
                place.must_stand(Some(&first), "nothing but losing writes").await?;
                tokio::task::yield_now().await;
            }
            Ok::<(), Broken>(())
        });
    }
    start.wait().await;
    for number in 2..WRITES {
        let expected = Expected::Record { version: first.version, lease: lease(number) };
        let lost = place.send(expected, New::put(marked.clone())).await?;
        must!(matches!(lost, Swapped::Lost { .. }), "a write with another lease: {lost:?}");
    }
    ended.store(true, Ordering::Release);
    while let Some(read) = readers.join_next().await {
        read??;
    }
    Ok(Verdict::Holds)
}

/// Pages through everything, with something happening after each page.
async fn walk(trial: &Trial, unsettled_only: bool, mut between: Vec<(Place, Change)>) -> Result<Vec<Listed>, Broken> {
    let store = trial.store();
    let mut rows: Vec<Listed> = Vec::new();
    for _ in 0..100 {
        let after = rows.last().map_or(0, |row| row.position);
        let page = store.list(Query { unsettled_only, after, limit: 4 }).await?;
        must!(page.rows.len() <= 4, "a page of at most 4 rows has {}", page.rows.len());
        must!(!page.rows.is_empty() || !page.more, "an empty page says that more follows");
        for row in page.rows {
            let last = rows.last().map_or(0, |row| row.position);
            must!(row.position > last, "position {} follows position {last}", row.position);
            rows.push(row);
        }
        if !page.more {
            return Ok(rows);
        }
        if let Some((place, change)) = between.pop() {
            change.make(&place).await?;
        }
    }
    Err("a list says for ever that more follows".to_owned().into())
}

enum Change {
    Complete,
    Delete,
    Claim,
}

impl Change {
    async fn make(&self, place: &Place) -> Result<(), Broken> {
        match self {
            Self::Complete => drop(place.complete(&*place.standing().await?, Expiry::NewAction).await?),
            Self::Delete => place.delete(&*place.standing().await?).await?,
            Self::Claim => drop(place.claim(200).await?),
        }
        Ok(())
    }
}

pub(super) async fn list_is_complete_and_stable(trial: &mut Trial) -> Held {
    let mut places = Vec::new();
    for number in 0..21u8 {
        // The order of names is not the order of making.
        let place = trial.place(&format!("row-{:03}", u16::from(number) * 37 % 100))?;
        let record = place.claim(number).await?;
        if number % 3 == 0 {
            place.complete(&record, Expiry::NewAction).await?;
        }
        places.push(place);
    }
    let identities = |rows: &[Listed]| rows.iter().map(|row| row.identity.clone()).collect::<Vec<Identity>>();
    let made: Vec<Identity> = places.iter().map(|place| place.identity.clone()).collect();
    let rows = walk(trial, false, Vec::new()).await?;
    must!(identities(&rows) == made, "21 records were made, and listed in this order: {:?}", identities(&rows));
    for (row, place) in rows.iter().zip(&places) {
        let stands = place.record().await?;
        must!(row.record.as_ref().ok() == stands.as_deref(), "{:?} is listed, and {stands:?} stands", row.record);
    }
    let unsettled: Vec<Identity> = (0..21).filter(|number| number % 3 != 0).map(|at| made[at].clone()).collect();
    let rows = walk(trial, true, Vec::new()).await?;
    must!(identities(&rows) == unsettled, "14 records are unsettled, and {} are listed", rows.len());

    let between = vec![
        (places[19].clone(), Change::Complete),
        (places[1].clone(), Change::Complete),
        (trial.place("row-new")?, Change::Claim),
        (places[20].clone(), Change::Delete),
        (places[2].clone(), Change::Delete),
    ];
    let rows = walk(trial, false, between).await?;
    let stayed = |identity: &Identity| made[..20].contains(identity) && *identity != made[2];
    let seen: Vec<Identity> = identities(&rows).into_iter().filter(stayed).collect();
    let want: Vec<Identity> = made.iter().filter(|identity| stayed(identity)).cloned().collect();
    must!(
        seen == want,
        "{} records stood all the time, and {} of them were listed once and in order",
        want.len(),
        seen.len()
    );
    Ok(Verdict::Holds)
}

pub(super) async fn find_by_key_and_digest(trial: &mut Trial) -> Held {
    let of = |principal: &str, operation: &str, key: &str| -> Result<Identity, Broken> {
        Ok(Identity::new(Scope::principal(principal)?, Operation::new(operation)?, Key::new(key)?))
    };
    let mut all = vec![of("acme", "pay", "a_c")?, of("other", "refund", "a_c")?, of("acme", "pay", "abc")?];
    all.extend([of("acme", "pay", "a%")?, of("acme", "pay", "A_C")?, of("acme", "pay", "a_c ")?]);
    for number in 0..20 {
        all.push(identity(&format!("many-{number}"))?);
    }
    for (number, identity) in (0..).zip(&all) {
        trial.place_of(identity.clone())?.claim(number).await?;
    }
    let digits = all[0].digest().to_hex();
    let texts = ["a_c", "abc", "a%", "%", "a", "0", "ff", "many", "many-1", &digits[..16], &digits[..5], &digits];
    for text in texts {
        let hit = |identity: &&Identity| identity.key.as_str() == text || identity.digest().to_hex().starts_with(text);
        let want: BTreeSet<Identity> = all.iter().filter(hit).cloned().collect();
        let found = trial.store().find(text, 100).await?;
        must!(found.iter().all(|row| row.record.is_ok()), "a search for {text:?} found what cannot be decoded");
        let found: Vec<Identity> = found.into_iter().map(|row| row.identity).collect();
        must!(found.len() == want.len(), "a search for {text:?} found {} of {}", found.len(), want.len());
        must!(found.into_iter().collect::<BTreeSet<_>>() == want, "a search for {text:?} found others");
    }
    let bounded = trial.store().find("a_c", 1).await?;
    must!(bounded.len() == 1, "a search for at most one found {}", bounded.len());
    Ok(Verdict::Holds)
}

pub(super) async fn about_counts(trial: &mut Trial) -> Held {
    let empty = trial.store().about().await?;
    must!(!empty.id.is_empty(), "a store has no id");
    must!(
        (empty.records, empty.running, empty.unknown) == (0, 0, 0)
            && empty.oldest_at.is_none()
            && empty.oldest_unknown.is_none()
            && empty.quarantine_before.is_none(),
        "an empty store says {empty:?}"
    );
    let lapsed = trial.place("lapsed")?;
    let first = lapsed.claim(1).await?;
    trial.place("healed-by-take-over")?.claim_as(5, Effect::Coupled).await?;
    trial.advance(LEASE + LEASE).await?;
    let doubted = trial.place("doubted")?;
    let running = doubted.claim(2).await?;
    let unknown = in_doubt(&running, running.lease.renewed_at)?;
    doubted.write(Expected::record(&running), New::put(unknown)).await?;
    trial.place("running")?.claim(3).await?;
    let receipted = trial.place("done")?;
    let done = receipted.complete(&*receipted.claim(4).await?, Expiry::NewAction).await?;
    let about = trial.store().about().await?;
    let counts = (about.records, about.running, about.unknown);
    must!(counts == (5, 1, 2), "of 5 records 1 runs and 2 are in doubt, and the store says {counts:?}");
    must!(about.oldest_at == Some(first.claimed_at), "the oldest is of {:?}", about.oldest_at);
    let oldest = Some((lapsed.identity.digest(), first.lease.until));
    must!(
        about.oldest_unknown == oldest,
        "{oldest:?} is longest in doubt, and the store says {:?}",
        about.oldest_unknown
    );
    must!(about.promised_until == done.sweep_at(), "receipts are promised until {:?}", about.promised_until);
    must!(about.id == empty.id && about.born_at == empty.born_at, "id or birth changed from {empty:?} to {about:?}");
    Ok(Verdict::Holds)
}

fn in_doubt(record: &Record, since: counterfoil_core::Timestamp) -> Result<Record, Broken> {
    match action::doubt(Some(record), record.lease.id, Why::Doubted, since) {
        Ok(Some(unknown)) if matches!(unknown.state, State::Unknown { .. }) => Ok(unknown),
        other => Err(format!("the suite's own doubt was refused: {other:?}").into()),
    }
}
