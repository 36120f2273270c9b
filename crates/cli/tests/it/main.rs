//! Tests of the built command: arguments, exit codes, and what operators see and settle.
//! A serving process that is killed, and everything over HTTP, belongs to `checks`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops there")]

mod command;
mod config;
mod demo;
mod fixture;
mod golden;
mod listing;
mod operator;
mod probe;
mod profiles;
mod reference;
mod sending;
mod settling;
mod usage;
