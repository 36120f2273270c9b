//! An action runs once, and a retry gets its receipt.
//!
//! A client writes down a key before its first attempt and sends it with every attempt. This crate is the service's
//! half: it claims the key, runs the action, keeps the result as a receipt, and answers every later attempt from the
//! receipt. Where nobody can know whether an action happened, the answer is *unknown*: it is not run again, and it is
//! not forgotten, until the late result arrives or an operator settles it.
//!
//! # What can be promised
//!
//! That depends on where the effect lives, and nothing else:
//!
//! | effect | how | after a crash at any point |
//! |---|---|---|
//! | in the store's database ([`Effect::Coupled`]) | [`SqliteStore::execute`], [`Coupled`] inside a guarded handler, or [`SqliteStore::execute_in`] in a transaction of your own: claim, effect and receipt commit together | nothing or everything; a retry runs it safely |
//! | anywhere else ([`Effect::Other`], the default) | [`Gate`] or [`GuardLayer`]: claim, run, complete | at most once; in doubt it is *unknown* until a late completion or an operator settles it |
//!
//! A receipt is kept for its retention and then forgotten, so it is no lasting rule of your business. Where an order
//! must never exist twice, the table of orders needs a unique key of its own.
//!
//! # Around a function
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use counterfoil::{Asked, Claim, Executed, Identity, Key, Operation, Origin, Policy, Receipt, Rule, Scope, SqliteStore};
//! use counterfoil::store::sqlite::Options;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let path = home.path().join("counterfoil.db");
//! let store = SqliteStore::open(path, Options::default())?;
//! let identity = Identity::new(Scope::single_tenant(), Operation::new("grant-credit")?, Key::new("2025-07/anna")?);
//! let claim = Claim::new(identity, Asked::bytes("10.00 EUR"), &Rule::bytes())?;
//! let policy = Policy { retention: Duration::from_hours(24 * 90), ..Policy::default() };
//!
//! let mut origins = Vec::new();
//! for _attempt in 0..2 {
//!     let done = store.execute_blocking(claim.clone(), &policy, |_tables| {
//!         // Statements on `_tables` commit together with the receipt.
//!         Ok::<_, Infallible>(Receipt::new(200, "granted"))
//!     })?;
//!     let Executed::Done { receipt, origin, .. } = done else { return Err("it did not run".into()) };
//!     assert_eq!(receipt, Receipt::new(200, "granted"));
//!     origins.push(origin);
//! }
//! assert_eq!(origins, [Origin::Fresh, Origin::Replayed]);
//! # Ok(())
//! # }
//! ```
//!
//! # Around a service
//!
//! [`GuardLayer`] is a tower layer. Here it guards every POST and PATCH that carries an `Idempotency-Key`; operations
//! with names, terms and required keys are listed in [`Settings::operations`].
//!
//! ```
//! use std::sync::Arc;
//! use axum::{Router, body::Body, http::Request, routing::post};
//! use counterfoil::{Gate, GuardLayer, MemoryStore, Settings, SingleTenant};
//! use tower::{Layer as _, ServiceExt as _};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A memory forgets with its process; `SqliteStore` does not.
//! let gate = Gate::new(Arc::new(MemoryStore::new()))?;
//! let guard = GuardLayer::new(gate, Settings::new(SingleTenant))?;
//! let orders = Router::new().route("/orders", post(|| async { (axum::http::StatusCode::CREATED, "order 1") }));
//! let service = guard.layer(orders);
//!
//! for replayed in ["false", "true"] {
//!     let request = Request::post("/orders").header("Idempotency-Key", "k-1").body(Body::empty())?;
//!     let answer = service.clone().oneshot(request).await?;
//!     assert_eq!(answer.status(), 201);
//!     assert_eq!(answer.headers()["idempotent-replayed"], replayed);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! With [`Settings::publish_contract`] the layer also answers `GET /.well-known/idempotency` with what it promises.
//!
//! # Around a call
//!
//! The caller's half is the module `client`, with the feature of that name: a call is written down before its first attempt,
//! and sent with one key until its outcome is known, through restarts and lost answers.
//!
//! For an API in any other language there is the proxy `counterfoil serve`, in the package `counterfoil-cli`.
//!
//! # Where things are
//!
//! The names at this root are enough for most services. Everything else is in [`rules`] (what may happen next, and
//! nothing happens there), [`store`] (where records are kept) and [`middleware`] (the layer). What does not belong in
//! this crate: any logic.

#[cfg(feature = "client")]
pub use counterfoil_client as client;
pub use counterfoil_core as rules;
pub use counterfoil_middleware as middleware;
pub use counterfoil_store as store;

pub use counterfoil_core::{
    Asked, Claim, Digest, Effect, Expiry, Fingerprint, Identity, Key, Operation, Policy, Receipt, Rule, Scope,
};
pub use counterfoil_middleware::{
    ChildKeys, Coupled, Drain, Duplicates, GuardLayer, Guarded, KeyNeed, OperationRule, Pattern, Principal, Settings,
    SingleTenant, Terms, Unlisted,
};
#[cfg(feature = "mysql")]
pub use counterfoil_store::MysqlStore;
#[cfg(feature = "postgres")]
pub use counterfoil_store::PostgresStore;
pub use counterfoil_store::sqlite::{Executed, Origin};
pub use counterfoil_store::{Gate, MemoryStore, RecordStore, SqliteStore, StoreError};
