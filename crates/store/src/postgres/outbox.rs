//! What applications leave behind in transactions of their own: intents, and letters (the rows of
//! `counterfoil.record_intent`) of which a relay makes intents.
//!
//! Nothing here is durable before the application's COMMIT. What does not belong here: which key an intent has and which
//! other one is the same (core), and sending (the client).

use bytes::Bytes;
use counterfoil_core::intent::{self, Draft, Header, Intent, Name, Outbound, ProfileRef, Recorded, Value};
use counterfoil_core::profile::Profile;
use counterfoil_core::{Error, Identity, Timestamp};
use http::Method;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::Intent as Access;
use super::intents::{select, stored};
use super::pool::Param;
use super::rows::{self, get};
use super::transaction::CallersTransaction;
use super::{Inner, PostgresStore};
use crate::error::{ErrorKind, StoreError};
use crate::intents::{INTENTS_MAX, Letter};

const DOING: &str = "the intent could not be left behind";

/// Only in the store that it is meant for.
const LEAVE: &str = "INSERT INTO counterfoil.intent (name, version, due_at, intent) SELECT $1, $2, $3, $4
  FROM counterfoil.store AS s, (SELECT counterfoil.be_durable()) AS durable WHERE s.id = $5
  ON CONFLICT (name) DO NOTHING RETURNING version";
const STANDS: &str = "SELECT s.id, i.version, i.intent FROM counterfoil.store AS s
  LEFT JOIN counterfoil.intent AS i ON i.name = $1";

/// Headers as two arrays, so that nobody parses JSON here.
macro_rules! letters {
    ($where:literal) => {
        concat!(
            "SELECT o.id, o.name, o.scope, o.operation, o.key, o.method, o.url, o.body, o.profile, o.refused,
              ARRAY(SELECT h ->> 0 FROM jsonb_array_elements(o.headers) WITH ORDINALITY AS e (h, n) ORDER BY n),
              ARRAY(SELECT h ->> 1 FROM jsonb_array_elements(o.headers) WITH ORDINALITY AS e (h, n) ORDER BY n)
              FROM counterfoil.outbox AS o WHERE ",
            $where,
            " ORDER BY o.id LIMIT $1"
        )
    };
}
const LETTERS: &str = letters!("o.refused IS NULL");
const LETTERS_AGAIN: &str = letters!("o.id > $2");

/// The letter goes with the commit that its intent comes with.
const OPEN: &str = "WITH letter AS (
    SELECT o.id, o.asked FROM counterfoil.outbox AS o, (SELECT counterfoil.be_durable()) AS durable WHERE o.id = $1
    FOR UPDATE OF o SKIP LOCKED
  ), made AS (
    INSERT INTO counterfoil.intent (name, version, due_at, intent, asked) SELECT $2, $3, $4, $5, l.asked FROM letter AS l
    ON CONFLICT (name) DO NOTHING RETURNING version
  )
  DELETE FROM counterfoil.outbox AS o WHERE o.id = $1 AND EXISTS (SELECT FROM made) RETURNING o.id";
const DROP: &str =
    "DELETE FROM counterfoil.outbox AS o USING (SELECT counterfoil.be_durable()) AS durable WHERE o.id = $1";
const REFUSE: &str = "UPDATE counterfoil.outbox AS o SET refused = $2 WHERE o.id = $1";

impl PostgresStore {
    /// Leaves an intent behind inside `tx`, which commits it together with what else it does, or nothing of it. A relay
    /// sends it then. The same intent again is found and not written twice; a name that stands for another one is told.
    ///
    /// `tx` is as in [`PostgresStore::begin_in`], and needs the rights to read and insert in `counterfoil.intent` and to read `counterfoil.store`.
    /// `synchronous_commit` is raised to `on` for this transaction where it is weaker.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] for a request that cannot be kept (it says what to change), and where `tx` is on another
    /// database. [`ErrorKind::Busy`] at an isolation level stricter than READ COMMITTED where somebody else was faster.
    /// Whatever the error, roll `tx` back.
    pub async fn record_in(
        &self,
        tx: impl CallersTransaction,
        outbound: &Outbound,
        profile: &Profile,
    ) -> Result<Recorded, StoreError> {
        let id = &self.inner.id;
        let intent = outbound.freeze(id, profile, self.inner.pace.now().at)?;
        let columns = Columns::of(&intent)?;
        let mut tx = tx;
        let mut parameters = columns.parameters();
        parameters.push((id, Type::TEXT));
        if !tx.rows(LEAVE, &parameters).await?.is_empty() {
            return Ok(Recorded::Written);
        }
        let found = tx.rows(STANDS, &[(&columns.name, Type::TEXT)]).await?;
        let here = match found.first() {
            Some(row) => (get::<&str>(row, 0)? == id).then_some(row),
            None => None,
        };
        let Some(row) = here else {
            let detail = "the transaction is on another database than the store: connect to the same one";
            return Err(StoreError::not_applied(ErrorKind::Misuse, detail));
        };
        match get::<Option<i64>>(row, 1)? {
            Some(_) => Ok(outbound.compared(&stored(row, 1, &intent.request.name)?, id)?),
            None => Err(StoreError::not_applied(
                ErrorKind::Busy,
                "the intent's name changed hands while it was left behind: roll back and try again",
            )),
        }
    }
}

/// An intent as columns.
struct Columns<'a> {
    name: &'a str,
    version: i64,
    due_at: Option<i64>,
    bytes: Vec<u8>,
}

impl<'a> Columns<'a> {
    fn of(intent: &'a Intent) -> Result<Self, StoreError> {
        Ok(Self {
            name: intent.request.name.as_str(),
            version: rows::version(intent.version)?,
            due_at: intent.due_at().map(Timestamp::as_millis),
            bytes: intent::encode(intent),
        })
    }

    fn parameters(&self) -> Vec<Param<'_>> {
        vec![
            (&self.name, Type::TEXT),
            (&self.version, Type::INT8),
            (&self.due_at, Type::INT8),
            (&self.bytes, Type::BYTEA),
        ]
    }
}

impl Inner {
    pub(super) async fn letters(&self, again: Option<u64>, limit: usize) -> Result<Vec<Letter>, StoreError> {
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let limit = i64::try_from(limit.min(INTENTS_MAX)).unwrap_or(i64::MAX);
        let doing = "what was left behind could not be read";
        let after = i64::try_from(again.unwrap_or_default()).unwrap_or(i64::MAX);
        let parameters: [Param<'_>; 2] = [(&limit, Type::INT8), (&after, Type::INT8)];
        let rows = match again {
            Some(_) => lent.query(Access::Reads, doing, LETTERS_AGAIN, &parameters, deadline).await?,
            None => {
                lent.query(Access::Reads, doing, LETTERS, parameters.get(..1).unwrap_or_default(), deadline).await?
            }
        };
        rows.iter().map(letter).collect()
    }

    pub(super) async fn open_letter(
        &self,
        letter: u64,
        outbound: &Outbound,
        profile: &Profile,
    ) -> Result<Recorded, StoreError> {
        let deadline = Instant::now() + self.options.call_timeout;
        let intent = outbound.freeze(&self.id, profile, self.pace.now().at)?;
        let letter = rows::version(letter)?;
        let columns = Columns::of(&intent)?;
        let mut lent = self.lend(deadline).await?;
        let mut parameters: Vec<Param<'_>> = vec![(&letter, Type::INT8)];
        parameters.extend(columns.parameters());
        if !lent.query(Access::Writes, DOING, OPEN, &parameters, deadline).await?.is_empty() {
            return Ok(Recorded::Written);
        }
        // Somebody else is at it, or has opened it, or the name is taken.
        let Some(stands) = select(&mut lent, &intent.request.name, deadline).await? else {
            return Ok(Recorded::Stands);
        };
        let compared = outbound.compared(&stands, &self.id)?;
        if compared == Recorded::Stands {
            lent.query(Access::Writes, DOING, DROP, &[(&letter, Type::INT8)], deadline).await?;
        }
        Ok(compared)
    }

    pub(super) async fn refuse_letter(&self, letter: u64, why: &str) -> Result<(), StoreError> {
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let letter = rows::version(letter)?;
        let parameters: [Param<'_>; 2] = [(&letter, Type::INT8), (&why, Type::TEXT)];
        lent.query(Access::Writes, DOING, REFUSE, &parameters, deadline).await.map(drop)
    }
}

fn letter(row: &Row) -> Result<Letter, StoreError> {
    let id: i64 = get(row, 0)?;
    Ok(Letter { id: u64::try_from(id).unwrap_or(0), name: get(row, 1)?, asks: asks(row)?, refused: get(row, 9)? })
}

/// The outer error: the row cannot be read.
fn asks(row: &Row) -> Result<Result<(Draft, Option<Identity>), Error>, StoreError> {
    let parent = match get::<Option<&[u8]>>(row, 2)? {
        None => None,
        Some(_) => match rows::identity(row, 2) {
            Ok(parent) => Some(parent),
            Err(_) => return Ok(Err(Error::Request("the action that it is a step of cannot be read"))),
        },
    };
    let profile = ProfileRef { id: get(row, 8)?, version: 1 };
    let (names, values): (Vec<String>, Vec<String>) = (get(row, 10)?, get(row, 11)?);
    let headers = names.into_iter().zip(values);
    let headers =
        headers.map(|(name, value)| Header { name: name.to_ascii_lowercase(), value: Value::read(value.as_bytes()) });
    let Ok(method) = Method::from_bytes(get::<&str>(row, 5)?.as_bytes()) else {
        return Ok(Err(Error::Request("its method is none")));
    };
    Ok(Name::new(get::<&str>(row, 1)?).and_then(|name| {
        let body = Bytes::copy_from_slice(row.try_get(7).map_err(|_| Error::Request("its body cannot be read"))?);
        let url = row.try_get(6).map_err(|_| Error::Request("its URL cannot be read"))?;
        let headers = headers.collect();
        Ok((Draft { name, method, url, headers, body, scope: None, profile }, parent))
    }))
}
