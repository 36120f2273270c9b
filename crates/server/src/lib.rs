//! The reverse proxy that guards an API in any language: the middleware over a forwarding service, and the admin
//! listener beside it.
//!
//! [`config`] reads what is wanted, [`Server`] does it. What does not belong here: when a key may run again (core),
//! what a decision is answered with (middleware), and printing (the command line).

pub mod config;

mod admin;
mod answer;
mod error;
mod guard;
mod listener;
mod numbers;
mod principal;
mod proxy;
mod reload;
mod serve;
mod store;
mod stream;
mod sweep;
mod tls;

pub use counterfoil_middleware::Drained;
pub use counterfoil_store::sqlite::Missing;

pub use self::error::ServerError;
pub use self::guard::check;
pub use self::reload::Reload;
pub use self::serve::Server;
pub use self::store::Store;
