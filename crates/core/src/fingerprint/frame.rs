//! How fields are framed: length, colon, bytes; and the hasher that takes them.
//!
//! What does not belong here: which fields there are and in which order (`fingerprint.rs`).

use sha2::{Digest, Sha256};

/// `value` in decimal digits, written to the end of `room`.
fn digits(mut value: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &room[at..];
        }
    }
}

/// Appends a field to a buffer.
pub(super) fn push_field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(digits(bytes.len() as u64, &mut [0; 20]));
    out.push(b':');
    out.extend_from_slice(bytes);
}

/// Appends a number in decimal digits.
pub(super) fn push_number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(digits(value, &mut [0; 20]));
}

/// From this length on a field is hashed where it lies.
const LONG: usize = 1024;

/// SHA-256 over fields and lists. What is short is gathered first: a hash of many small pieces costs more than a copy.
pub(super) struct Hasher {
    sha: Sha256,
    gathered: Vec<u8>,
}

impl Hasher {
    pub(super) fn new() -> Self {
        Self { sha: Sha256::new(), gathered: Vec::with_capacity(256) }
    }

    /// One field.
    pub(super) fn field(&mut self, bytes: &[u8]) {
        if bytes.len() < LONG && self.gathered.len() < LONG {
            return push_field(&mut self.gathered, bytes);
        }
        push_number(&mut self.gathered, bytes.len() as u64);
        self.gathered.push(b':');
        self.sha.update(&self.gathered);
        self.gathered.clear();
        self.sha.update(bytes);
    }

    /// The head of a list: its items follow.
    pub(super) fn count(&mut self, count: usize) {
        push_number(&mut self.gathered, count as u64);
        self.gathered.push(b';');
    }

    /// A list of fields.
    pub(super) fn list<T: AsRef<[u8]>>(&mut self, items: impl ExactSizeIterator<Item = T>) {
        self.count(items.len());
        for item in items {
            self.field(item.as_ref());
        }
    }

    pub(super) fn finish(mut self) -> [u8; 32] {
        self.sha.update(&self.gathered);
        self.sha.finalize().into()
    }
}
