//! The fuzzer's program: one target, named by `COUNTERFOIL_FUZZ_TARGET`, searched by libFuzzer. `fuzz/run` starts it.
//!
//! What does not belong here: the properties, which are in `targets`.
#![no_main]
#![allow(clippy::expect_used, clippy::panic, reason = "a property that does not hold is a panic, here as in a test")]

use std::sync::LazyLock;

#[path = "../targets/mod.rs"]
mod targets;

static TARGET: LazyLock<targets::Check> = LazyLock::new(|| {
    let name = std::env::var("COUNTERFOIL_FUZZ_TARGET").expect("COUNTERFOIL_FUZZ_TARGET names a target");
    let found = targets::TARGETS.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("COUNTERFOIL_FUZZ_TARGET: no target is named {name}")).1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET(input));
