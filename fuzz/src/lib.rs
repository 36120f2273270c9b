//! Fuzzing of Counterfoil: the properties are in `targets`, one file each, and the inputs in `corpus`.
//!
//! `fuzz/run` searches for inputs that break them; `tests/replay.rs` runs those that are kept, with every plain
//! `cargo test`. What does not belong here: tests of one crate's rules, which stand beside those rules. What a fuzzer
//! found gets its test there.
