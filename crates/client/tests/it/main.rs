//! The client's contracts from outside: the built-in files, the strict reader, and the golden table of verdicts.
//! Rules of reading are tested in the core.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops there")]

mod files;
mod strict;
mod verdicts;
