//! Tests of the store crate from outside: the contract on every store, and what only one of them promises.
//! Tests of private parts are beside them in `src`.

// A helper of a test says what it saw by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(all(feature = "contract", any(feature = "postgres", feature = "mysql")))]
mod callers;
#[cfg(feature = "contract")]
mod child_keys;
#[cfg(feature = "contract")]
mod contract;
#[cfg(feature = "contract")]
mod faulty;
#[cfg(feature = "contract")]
mod gate;
mod intents;
#[cfg(all(feature = "contract", feature = "mysql"))]
mod mysql;
#[cfg(all(feature = "contract", feature = "postgres"))]
mod postgres;
mod sqlite;
