//! Tests of the server from outside: configurations, the proxy and the admin listener on loopback.
//! What is true only of the built command belongs to the command line's tests and to `checks`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops there")]

mod admin;
mod answers;
mod authority;
mod caller;
mod child_keys;
mod config;
mod config_principal;
mod contract;
mod faults;
mod faulty;
mod golden;
mod inbound;
#[path = "../../src/principal/tests/kit.rs"]
mod issuer;
mod outbound;
mod outcomes;
mod polite;
mod principals;
mod proxy;
mod reference;
mod reload;
mod reuse;
mod revoked;
mod running;
mod smuggling;
mod stop;
mod streams;
mod two;
mod upgrade;
mod upstream;
mod walk;
