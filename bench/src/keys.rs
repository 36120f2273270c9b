//! Idempotency keys as clients make them: UUIDs of version 7 (in order of time) or 4 (in no order).
//!
//! Drawn from a small generator of our own: it need not be secret, and it must cost less than what is measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, Uuid};

/// In which order keys come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// UUIDv7: beside the newest.
    Time,
    /// UUIDv4: anywhere.
    Random,
}

/// One caller's source of keys that nobody has used.
pub(crate) struct Keys {
    order: Order,
    state: u64,
}

impl Keys {
    /// Another source than all before, in this and other processes.
    pub(crate) fn new(order: Order) -> Self {
        static SOURCES: AtomicU64 = AtomicU64::new(1);
        let source = SOURCES.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Self {
            order,
            state: nanos ^ (u64::from(std::process::id()) << 40) ^ source.wrapping_mul(0xd6e8_feb8_6659_fd93),
        }
    }

    /// The next key.
    pub(crate) fn next(&mut self) -> Uuid {
        let random = (u128::from(self.draw()) << 64) | u128::from(self.draw());
        let bytes = random.to_be_bytes();
        match self.order {
            Order::Random => Builder::from_random_bytes(bytes).into_uuid(),
            Order::Time => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let millis = u64::try_from(now.as_millis()).unwrap_or(0);
                let mut tail = [0; 10];
                tail.copy_from_slice(&bytes[..10]);
                Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
            }
        }
    }

    /// A number in `0..below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        let wide = u128::from(self.draw()) * below as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_their_version_and_never_equal() {
        for (order, version) in [(Order::Time, 7), (Order::Random, 4)] {
            let mut sources = [Keys::new(order), Keys::new(order)];
            let mut seen = std::collections::BTreeSet::new();
            for turn in 0..2000 {
                let key = sources[turn % 2].next();
                assert_eq!(key.get_version_num(), version);
                assert!(seen.insert(key), "{key} came twice");
            }
        }
    }
}
