//! The client as its users see it: its contracts (the built-in files, the strict reader, the golden table of verdicts),
//! and what it may say of an attempt. Rules of reading are tested in the core.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops there")]

mod doors;
mod files;
mod intents;
mod peer;
mod played;
mod provider;
mod relay;
mod sheets;
mod strict;
mod through_reqwest;
mod transport;
mod verdicts;
