//! A transaction that the caller owns, of either driver: it sends a statement and gives the rows. Parameters and columns
//! cross as the bytes of the protocol, so both drivers share every statement and all that reads its answer.
//!
//! What does not belong here: what is sent (`caller`).

use std::error::Error;

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::fault::{self, Intent};
use super::pool::Param;
use crate::error::StoreError;

/// An open transaction of the caller's own: `&tokio_postgres::Transaction`, or with the feature `sqlx`
/// `&mut sqlx::Transaction<Postgres>`. Nobody else can implement it.
pub trait CallersTransaction: Sends {}

impl<T: Sends> CallersTransaction for T {}

/// What a driver's transaction does for us.
pub trait Sends: Send {
    /// A row of its answers.
    type Row: Cells + Send + Sync;

    /// Sends one statement, unnamed and typed, so that a pooler may stand between.
    fn rows(
        &mut self,
        statement: &'static str,
        parameters: &[Param<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;
}

/// A row's columns.
pub trait Cells {
    /// The value of the column at that position.
    fn cell<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, Box<dyn Error + Send + Sync>>;
}

impl Cells for Row {
    fn cell<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, Box<dyn Error + Send + Sync>> {
        self.try_get(column).map_err(Into::into)
    }
}

impl Sends for &tokio_postgres::Transaction<'_> {
    type Row = Row;

    async fn rows(&mut self, statement: &'static str, parameters: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        // Nothing of an open transaction is applied before its COMMIT, however a statement of it fails.
        self.query_typed(statement, parameters).await.map_err(|error| fault::failed(error, Intent::Reads, DOING))
    }
}

/// What fails, in whichever driver.
pub(super) const DOING: &str = "the caller's transaction could not be written to";
