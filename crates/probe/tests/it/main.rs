//! The probe against servers of ours on loopback: a right one, and one for each fault that a server can have.
//! What a single part promises is tested beside that part.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops there")]

mod fault;
mod faults;
mod flaws;
mod forms;
mod http2;
mod intermediary;
mod orders;
mod reports;
mod right;
mod safety;
mod schema;
mod shop;
mod tls;
