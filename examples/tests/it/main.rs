//! Runs each example as the process that it is, and checks what its page promises.
//!
//! What does not belong here: the rules behind the promises, which are tested where they stand.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of it is test code; clippy's own exemption covers only functions marked as tests"
)]

mod axum_orders;
mod axum_sqlx;
mod curl;
mod guides;
mod own_transaction;
mod process;
mod python_service;
mod run_once;
