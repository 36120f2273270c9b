//! The process that crashes: a test that does nothing, unless it was started in a role.
//!
//! What does not belong here: what must hold after the crash.

use super::process::{self, Told};

#[test]
fn in_its_role() {
    let Some(told) = process::told() else { return };
    process::bound();
    let Told { words, directory } = told;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["raw", synchronous] => crate::powerloss::raw::work(&directory, synchronous),
        _ => panic!("nobody knows the role {words:?}"),
    }
}
