//! The layer as its users see it: requests in, answers out, and what the store holds after them.
//! Rules of single files are tested beside them; stores are tested in their crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops there")]

mod child_keys;
mod contract;
mod counted;
mod coupled;
#[cfg(feature = "postgres")]
mod coupled_postgres;
mod doubts;
mod drain;
mod duplicates;
mod edges;
mod kit;
mod limits;
mod methods;
mod order;
mod outage;
mod permit;
mod remembered;
mod revoked;
mod routes;
mod runs;
mod schema;
mod store;
