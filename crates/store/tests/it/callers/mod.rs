//! The promise in a transaction that the caller owns, on a connection of the caller's own: every case on every driver.
//! The store's own transactions stand with each store.

mod cases;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlx")]
mod sqlx;

use std::time::Duration;

use counterfoil_core::{Asked, Claim, Identity, Key, Operation, Policy, Receipt, Rule, Scope};
use counterfoil_store::seam::RecordStore;
use counterfoil_store::{Begun, Ended, Permit, StoreError};

/// How strictly a transaction is kept apart from others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    /// As the server and the driver begin one where nobody says anything.
    Usual,
    ReadCommitted,
    RepeatableRead,
}

/// An application with a table `orders` of its own beside the store, and one driver by which it reaches both.
trait Shop: Sized {
    type Store: RecordStore;
    type Conn;
    type Tx<'c>;

    /// Whether who was slower must roll back at REPEATABLE READ.
    const STRICT: bool;
    /// The statement by which somebody else sets a quarantine.
    const QUARANTINES: &'static str;

    async fn new() -> Self;
    fn store(&self) -> &std::sync::Arc<Self::Store>;
    /// Rows of `orders` that are committed.
    fn orders(&self) -> String;
    /// Runs statements as the administrator.
    fn run(&self, statements: &str);
    async fn advance(&self, by: Duration);
    async fn connect(&self) -> Self::Conn;
    async fn start<'c>(conn: &'c mut Self::Conn, level: Level) -> Self::Tx<'c>;
    async fn sends(tx: &mut Self::Tx<'_>, statement: &'static str);
    async fn commit(tx: Self::Tx<'_>);
    async fn roll_back(tx: Self::Tx<'_>);
    async fn begin(&self, tx: &mut Self::Tx<'_>, claim: &mut Claim) -> Result<Begun, StoreError>;
    async fn complete(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit, with: &Receipt) -> Result<Ended, StoreError>;
    async fn release(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit) -> Result<Ended, StoreError>;
}

/// Each case as a test of its own for one driver.
macro_rules! on {
    ($shop:ty) => {
        $crate::callers::on!($shop:
            effect_and_receipt_are_committed_by_the_caller,
            while_it_is_open_everybody_else_is_told_in_progress,
            a_claim_that_was_committed_without_an_end_is_taken_over_and_superseded,
            a_released_claim_leaves_the_key_free,
            a_stricter_isolation_level_is_busy_or_right_where_somebody_was_faster,
            a_transaction_is_on_the_stores_own_database,
            under_a_quarantine_what_cannot_be_dated_does_not_run,
        );
    };
    ($shop:ty: $($case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::callers::cases::$case::<$shop>().await;
            }
        )*
    };
}
use on;

fn identity(key: &str) -> Identity {
    Identity::new(Scope::principal("acme").unwrap(), Operation::new("create-order").unwrap(), Key::new(key).unwrap())
}

fn claim(key: &str) -> Claim {
    Claim::new(identity(key), Asked::bytes("order"), &Rule::bytes()).unwrap()
}

fn policy() -> Policy {
    Policy::default()
}
