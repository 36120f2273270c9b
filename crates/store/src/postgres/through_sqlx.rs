//! A caller's transaction of sqlx: parameters and columns as the bytes that tokio-postgres writes and reads.
//!
//! What does not belong here: a pool or a connection of sqlx, and what is sent (`caller`).

use std::error::Error;

use bytes::BytesMut;
use sqlx::encode::IsNull;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgDatabaseError, PgRow, PgSeverity, PgTypeInfo};
use sqlx::{Arguments as _, Encode, Postgres, Row as _, Transaction, ValueRef as _};
use tokio_postgres::types::{FromSql, Type};

use super::fault::{self, Intent};
use super::pool::Param;
use super::transaction::{Cells, DOING, Sends};
use crate::error::{ErrorKind, StoreError};

impl Sends for &mut Transaction<'_, Postgres> {
    type Row = PgRow;

    async fn rows(&mut self, statement: &'static str, parameters: &[Param<'_>]) -> Result<Vec<PgRow>, StoreError> {
        let arguments = arguments(parameters).map_err(|_| {
            StoreError::not_applied(ErrorKind::Misuse, format!("{DOING}: a value is too large for the protocol"))
        })?;
        let query = sqlx::query_with(statement, arguments).persistent(false);
        query.fetch_all(&mut ***self).await.map_err(failed)
    }
}

fn arguments(parameters: &[Param<'_>]) -> Result<PgArguments, Box<dyn Error + Send + Sync>> {
    let mut arguments = PgArguments::default();
    for (value, of) in parameters {
        let mut bytes = BytesMut::new();
        let null = value.to_sql_checked(of, &mut bytes)?;
        let bytes = matches!(null, tokio_postgres::types::IsNull::No).then_some(bytes);
        arguments.add(Encoded { bytes, of: PgTypeInfo::with_oid(Oid(of.oid())) })?;
    }
    Ok(arguments)
}

/// A parameter in the protocol's binary form.
struct Encoded {
    bytes: Option<BytesMut>,
    of: PgTypeInfo,
}

impl sqlx::Type<Postgres> for Encoded {
    fn type_info() -> PgTypeInfo {
        // Every value brings its own.
        PgTypeInfo::with_oid(Oid(Type::UNKNOWN.oid()))
    }
}

impl Encode<'_, Postgres> for Encoded {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
        match &self.bytes {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                buffer.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(self.of.clone())
    }

    fn size_hint(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }
}

impl Cells for PgRow {
    fn cell<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, Box<dyn Error + Send + Sync>> {
        let value = self.try_get_raw(column)?;
        let of = value.type_info().oid().and_then(|oid| Type::from_oid(oid.0));
        let of = of.filter(T::accepts).ok_or("a column is of another type")?;
        if value.is_null() { T::from_sql_null(&of) } else { T::from_sql(&of, value.as_bytes()?) }
    }
}

/// Nothing of an open transaction is applied before its COMMIT, however a statement of it fails.
fn failed(error: sqlx::Error) -> StoreError {
    let told = match &error {
        sqlx::Error::Database(told) => told.try_downcast_ref::<PgDatabaseError>(),
        _ => None,
    };
    match told {
        Some(told) if matches!(told.severity(), PgSeverity::Error) => fault::undone(told.code(), told.message(), DOING),
        Some(told) => fault::ended(told.code(), Intent::Reads, DOING),
        None => fault::lost(Intent::Reads, DOING).caused_by(error),
    }
}
