//! The rows of the memory store and their indexes: by identity, in order of making, unsettled, and due.
//! Guards, time and locking belong to the parent.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use counterfoil_core::{Identity, Record, State, Timestamp};

use super::places::Places;
use crate::seam::Listed;

/// Every call names an identity together with its hash.
#[derive(Debug, Default)]
pub(super) struct Rows {
    places: Places,
    rows: BTreeMap<u64, Row>,
    /// Stored as Running or Unknown.
    unsettled: BTreeSet<u64>,
    /// What a sweep may change, by the instant from which it may.
    due: BTreeSet<(Timestamp, u64)>,
    last: u64,
    promised_until: Option<Timestamp>,
}

#[derive(Debug)]
struct Row {
    hash: u64,
    identity: Arc<Identity>,
    record: Arc<Record>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    fn position(&self, hash: u64, identity: &Identity) -> Option<u64> {
        self.places.find(hash, |position| self.rows.get(&position).is_some_and(|row| *row.identity == *identity))
    }

    pub(super) fn get(&self, hash: u64, identity: &Identity) -> Option<&Arc<Record>> {
        let position = self.position(hash, identity)?;
        self.rows.get(&position).map(|row| &row.record)
    }

    /// Writes a record in its place, or as the newest row.
    pub(super) fn put(&mut self, hash: u64, identity: Identity, record: Arc<Record>) {
        if let State::Done { expires_at, .. } = &record.state {
            self.promised_until = self.promised_until.max(Some(*expires_at));
        }
        let sweep_at = record.sweep_at();
        let place = self.position(hash, &identity).and_then(|at| self.rows.get_mut(&at).map(|row| (at, row)));
        let (position, before) = match place {
            Some((position, row)) => (position, std::mem::replace(&mut row.record, record).sweep_at()),
            None => {
                self.last = self.last.saturating_add(1);
                self.places.insert(hash, self.last);
                self.rows.insert(self.last, Row { hash, identity: Arc::new(identity), record });
                (self.last, None)
            }
        };
        self.index(position, before, sweep_at);
    }

    pub(super) fn remove(&mut self, hash: u64, identity: &Identity) {
        let Some(position) = self.position(hash, identity) else { return };
        self.places.remove(hash, position);
        self.unsettled.remove(&position);
        if let Some(at) = self.rows.remove(&position).and_then(|row| row.record.sweep_at()) {
            self.due.remove(&(at, position));
        }
    }

    /// A record that no sweep ever changes is an unsettled one.
    fn index(&mut self, position: u64, before: Option<Timestamp>, sweep_at: Option<Timestamp>) {
        if let Some(before) = before
            && Some(before) != sweep_at
        {
            self.due.remove(&(before, position));
        }
        match sweep_at {
            Some(at) => {
                self.unsettled.remove(&position);
                self.due.insert((at, position));
            }
            None => {
                self.unsettled.insert(position);
            }
        }
    }

    /// Rows after a position, in order of making.
    pub(super) fn after(&self, position: u64, unsettled_only: bool) -> Box<dyn Iterator<Item = Listed> + '_> {
        let range = (Excluded(position), Unbounded);
        if unsettled_only {
            let positions = self.unsettled.range(range);
            Box::new(positions.filter_map(|at| self.rows.get(at).map(|row| row.listed(*at))))
        } else {
            Box::new(self.rows.range(range).map(|(at, row)| row.listed(*at)))
        }
    }

    pub(super) fn identities_after(&self, position: u64, limit: usize) -> Vec<(u64, Arc<Identity>)> {
        let rows = self.rows.range((Excluded(position), Unbounded));
        rows.take(limit).map(|(at, row)| (*at, row.identity.clone())).collect()
    }

    pub(super) fn unsettled(&self) -> impl Iterator<Item = (&Arc<Identity>, &Record)> {
        let rows = self.unsettled.iter().filter_map(|position| self.rows.get(position));
        rows.map(|row| (&row.identity, row.record.as_ref()))
    }

    /// Identities that a sweep may change at `now`, longest due first.
    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Vec<(u64, Arc<Identity>)> {
        let due = self.due.range(..=(now, u64::MAX)).filter_map(|(_, position)| self.rows.get(position));
        due.take(limit).map(|row| (row.hash, row.identity.clone())).collect()
    }

    /// When the oldest row was claimed.
    pub(super) fn oldest_at(&self) -> Option<Timestamp> {
        self.rows.values().next().map(|row| row.record.claimed_at)
    }

    /// Until when any receipt that was ever written here is promised.
    pub(super) const fn promised_until(&self) -> Option<Timestamp> {
        self.promised_until
    }

    #[cfg(test)]
    pub(super) fn assert_whole(&self) {
        assert_eq!(self.places.len(), self.rows.len());
        for (position, row) in &self.rows {
            assert_eq!(self.position(row.hash, &row.identity), Some(*position));
        }
        let sweep_at = |at: &u64| self.rows[at].record.sweep_at();
        let unsettled: BTreeSet<u64> = self.rows.keys().copied().filter(|at| sweep_at(at).is_none()).collect();
        assert_eq!(self.unsettled, unsettled);
        let due: BTreeSet<_> = self.rows.keys().filter_map(|at| sweep_at(at).map(|due| (due, *at))).collect();
        assert_eq!(self.due, due);
    }
}

impl Row {
    fn listed(&self, position: u64) -> Listed {
        Listed { position, identity: Identity::clone(&self.identity), record: Ok(Record::clone(&self.record)) }
    }
}
