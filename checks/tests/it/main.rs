//! One binary for all checks from outside; a module for each kind.
//!
//! What does not belong here: any code. Helpers stand in the module that needs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of it is test code; clippy's own exemption covers only functions marked as tests"
)]

mod crash;
mod e2e;
mod house;
mod powerloss;
mod seeds;
