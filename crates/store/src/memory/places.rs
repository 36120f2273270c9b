//! Where each identity's row is, by a hash that is made once for each call. Two identities may share a hash; which of
//! them a row is belongs to the caller.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use counterfoil_core::Identity;

/// How identities are hashed: keyed afresh for each store, so that no client can choose keys that collide.
#[derive(Debug, Default)]
pub(super) struct Hashing {
    state: RandomState,
    /// A test keeps only these bits of a hash.
    #[cfg(test)]
    pub(super) bits: Option<u64>,
}

impl Hashing {
    pub(super) fn of(&self, identity: &Identity) -> u64 {
        let hash = self.state.hash_one(identity);
        #[cfg(test)]
        let hash = hash & self.bits.unwrap_or(u64::MAX);
        hash
    }
}

#[derive(Debug, Default)]
pub(super) struct Places {
    first: HashMap<u64, u64, BuildHasherDefault<AsIs>>,
    /// Rows whose hash another row had first: hardly ever any.
    others: Vec<(u64, u64)>,
}

impl Places {
    /// The position under `hash` of which `is_it` holds.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u64) -> bool) -> Option<u64> {
        let first = self.first.get(&hash).copied();
        let others = self.others.iter().filter(|(other, _)| *other == hash).map(|(_, position)| *position);
        first.into_iter().chain(others).find(|position| is_it(*position))
    }

    pub(super) fn insert(&mut self, hash: u64, position: u64) {
        match self.first.entry(hash) {
            Entry::Vacant(free) => {
                free.insert(position);
            }
            Entry::Occupied(_) => self.others.push((hash, position)),
        }
    }

    pub(super) fn remove(&mut self, hash: u64, position: u64) {
        if self.first.get(&hash) == Some(&position) {
            self.first.remove(&hash);
        } else {
            self.others.retain(|other| *other != (hash, position));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.others.len()
    }
}

/// Hashes a hash as itself.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
