//! Calls APIs under idempotency keys and keeps the promise behind them: one key for one action, whatever happens.
//!
//! What providers promise is data in `profiles/*.toml`, read by [`profiles`] into the types of `core::profile`. What does
//! not belong here: the rules of an intent's life (`core::intent`) and how it is kept (`store`).

#![forbid(unsafe_code)]

pub mod profiles;
