//! What is fuzzed: for each target one function that takes any bytes and panics where a property does not hold.
//!
//! What does not belong here: how inputs are found (`tests/fuzz.rs`) or kept (`tests/replay.rs`).

mod fingerprints;
mod keys;
pub(crate) mod listener;
mod paths;
mod records;
pub(crate) mod upstream;

/// Takes any bytes; panics where a property does not hold.
pub(crate) type Check = fn(&[u8]);

/// The targets, by the name of their file and of their folder in `corpus`.
pub(crate) const TARGETS: [(&str, Check); 5] = [
    ("fingerprints", fingerprints::check),
    ("keys", keys::check),
    ("listener", listener::check),
    ("paths", paths::check),
    ("records", records::check),
];

/// An input as a message of a failed property shows it.
fn shown(input: &[u8]) -> String {
    input.escape_ascii().to_string()
}
