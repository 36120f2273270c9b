//! The reverse proxy that guards an API in any language: the middleware over a forwarding service, and the admin
//! listener beside it.
//!
//! [`config`] reads what is wanted, [`serve`](serve()) does it. What does not belong here: when a key may run again
//! (core), what a decision is answered with (middleware), and printing (the command line).

pub mod config;
