//! Checks of Counterfoil from outside: everything is in `tests/it`, one test binary for the time it takes to link.
//!
//! What does not belong here: tests of one crate's rules, which stand beside those rules.
