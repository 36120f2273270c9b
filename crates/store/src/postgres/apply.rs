//! An effect that is one statement: claim, effect and receipt in one round trip (PROTOCOL section 6, row 1), those of many
//! callers in one transaction where they come together.
//!
//! Each is undone alone where it fails. What does not belong here: effects that are code (`coupled`), and what is asked for
//! where something stands already (core).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::claim::Draft;
use counterfoil_core::{Claim, Effect, Expiry, Identity, LeaseId, Policy, Receipt, Record, State, Timestamp};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::{self, Intent};
use super::line::carried;
use super::pool::Param;
use super::queue::{Names, distinct};
use super::rows::{self, Columns, ZERO, get};
use super::settlement::{receipt, settled};
use super::{Inner, PostgresStore, claim, cut_short, put};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::gate::{Begun, HELD_FOR, random};
use crate::sqlite::{Executed, Origin};
use crate::within::{self, Step};

const APPLY: &str = "SELECT * FROM counterfoil.apply($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// The same for one, in a transaction that has claimed by itself.
const CARRY_OUT: &str = "SELECT counterfoil.carry_out($1, $2, counterfoil.clock(), $3, $4)";

const DOING: &str = "effect and receipt could not be committed";

/// Statements that are under way at once. Few, so that effects which wait for a lock leave connections to everybody else.
const LANES_MAX: usize = 2;

/// The most that go together: a server remembers so few savepoints of a transaction without looking them up.
const TOGETHER_MAX: usize = 60;

/// An effect as one statement of SQL, whose one row is the receipt: status (`integer`), headers (`jsonb`,
/// `[["name", "value"], …]`, or null) and body (`text`). Its one parameter `$1` is a JSON value (`jsonb`).
#[derive(Clone)]
pub struct Statement {
    text: Arc<str>,
    argument: String,
}

impl Statement {
    /// `text` with the JSON `argument`; both are judged by the server, when it runs.
    pub fn new(text: impl Into<Arc<str>>, argument: impl Into<String>) -> Self {
        Self { text: text.into(), argument: argument.into() }
    }
}

/// Without the argument, which is the caller's.
impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("text", &self.text).finish_non_exhaustive()
    }
}

/// What the server said of a statement that failed: nothing of it is left.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct StatementFailed {
    /// The SQLSTATE: `23505` where a unique key of the business's own stands already.
    pub code: String,
    /// In the server's words.
    pub message: String,
}

impl PostgresStore {
    /// Runs `statement` at most once for `claim`: claim, effect and receipt are one statement to the server, and those of
    /// callers who come together share a transaction, each undone alone where it fails. For effects that SQL can say,
    /// this is the quickest way; [`PostgresStore::execute`] takes code.
    ///
    /// Keep it short: those that go with it wait for it. A lock that it does not get within the store's `lock_timeout`
    /// fails it. Deferred constraints are checked at once. The policy's `effect` is taken to be
    /// [coupled](counterfoil_core::Effect::Coupled). A statement that was sent goes on where the caller is dropped.
    ///
    /// ```no_run
    /// use counterfoil_core::{Claim, Policy};
    /// use counterfoil_store::postgres::{PostgresStore, Statement};
    /// use counterfoil_store::sqlite::Executed;
    ///
    /// # async fn order(store: &PostgresStore, claim: Claim) -> Result<(), Box<dyn std::error::Error>> {
    /// let made = "WITH made AS (INSERT INTO orders (item) VALUES ($1->>'item') RETURNING id)
    ///     SELECT 201, '[[\"content-type\", \"application/json\"]]'::jsonb, json_build_object('id', id)::text FROM made";
    /// let statement = Statement::new(made, r#"{"item": "pot"}"#);
    /// match store.apply(claim, &Policy::default(), statement).await? {
    ///     Executed::Done { receipt, .. } => drop(receipt),
    ///     Executed::EffectFailed(failed) if failed.code == "23505" => return Err("ordered under another key".into()),
    ///     _ => return Err("not now".into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] after a deadlock, a serialization failure or a lock that was not had: nothing happened, and the
    /// key is free. Where the error says that the write is of unknown fate, the server's answer was lost and could not be
    /// asked for again.
    pub async fn apply(
        &self,
        claim: Claim,
        policy: &Policy,
        statement: Statement,
    ) -> Result<Executed<StatementFailed>, StoreError> {
        let policy = Policy { effect: Effect::Coupled, ..policy.clone() };
        let mut claim = claim;
        if let Some(answer) = self.inner.apply(&mut claim, &policy, &statement).await? {
            return Ok(answer);
        }
        // Something stands that a new run may replace, or a quarantine does.
        let (retention, refusal) = spans(policy.retention, policy.expiry);
        let executed = self.execute(claim, &policy, move |tx| {
            Box::pin(async move {
                let parameters: [Param<'_>; 4] = [
                    (&statement.text.as_ref(), Type::TEXT),
                    (&statement.argument, Type::TEXT),
                    (&retention, Type::INT8),
                    (&refusal, Type::INT8),
                ];
                let rows = tx.query_typed(CARRY_OUT, &parameters).await.map_err(Failure::Server)?;
                carried_out(rows.first()).map_err(Failure::Unread)
            })
        });
        match executed.await? {
            Executed::EffectFailed(Failure::Server(error)) => match error.as_db_error() {
                Some(told) => failed(told.code().code(), told.message()),
                // Its transaction was never committed.
                None => Err(fault::failed(error, Intent::Reads, DOING)),
            },
            Executed::EffectFailed(Failure::Unread(error)) => Err(error),
            Executed::Done { receipt, expires_at, origin } => Ok(Executed::Done { receipt, expires_at, origin }),
            Executed::Mismatch => Ok(Executed::Mismatch),
            Executed::InProgress { until } => Ok(Executed::InProgress { until }),
            Executed::Unknown { since, why } => Ok(Executed::Unknown { since, why }),
            Executed::Expired { until } => Ok(Executed::Expired { until }),
        }
    }
}

/// Why a statement in a transaction of its own came to nothing.
enum Failure {
    Server(tokio_postgres::Error),
    Unread(StoreError),
}

fn carried_out(row: Option<&Row>) -> Result<Receipt, StoreError> {
    let row = row.ok_or_else(|| cut_short(Intent::Reads))?;
    Ok(receipt(get(row, 0)?)?)
}

/// A statement that failed, or a server that could not run it.
fn failed(code: &str, message: &str) -> Result<Executed<StatementFailed>, StoreError> {
    // Rolled back to be tried again, out of a resource, no lock, ended, broken, or no place to write.
    let of_the_server = ["40", "53", "55P03", "57", "58", "XX", "25006"];
    if of_the_server.iter().any(|class| code.starts_with(class)) {
        return Err(fault::undone(code, message, DOING));
    }
    let told = StatementFailed { code: code.to_owned(), message: message.to_owned() };
    Ok(Executed::EffectFailed(told))
}

/// How long a receipt is promised, and refused after that.
fn spans(retention: Duration, expiry: Expiry) -> (i64, Option<i64>) {
    let refusal = match expiry {
        Expiry::NewAction => None,
        Expiry::Refuse(span) => Some(rows::span(span)),
    };
    (rows::span(retention), refusal)
}

/// A statement and who waits for it.
pub(super) struct Applying {
    identity: Identity,
    draft: Draft,
    statement: Statement,
    reply: oneshot::Sender<Result<Came, StoreError>>,
    /// After this it is not sent any more.
    deadline: Instant,
}

impl Names for Applying {
    fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl Applying {
    fn answer(self, answer: Result<Came, StoreError>) {
        // Nobody listens any more where the future was dropped.
        drop(self.reply.send(answer));
    }
}

/// What one call came to.
enum Came {
    Won(Record),
    Failed {
        code: String,
        message: String,
    },
    Lost {
        stands: Option<Record>,
        at: Timestamp,
    },
    Held,
    Quarantined(Option<Timestamp>),
    Busy,
    /// Not tried.
    Again,
}

impl Inner {
    /// `None`: it needs a claim of its own.
    async fn apply(
        self: &Arc<Self>,
        claim: &mut Claim,
        policy: &Policy,
        statement: &Statement,
    ) -> Result<Option<Executed<StatementFailed>>, StoreError> {
        if self.quarantine().is_some() {
            return Ok(None);
        }
        self.know(within::promised(policy)).await?;
        let lease = LeaseId::from_bytes(random()?);
        let draft = Draft::new(claim, policy, lease, None);
        match self.send(claim.identity(), draft, statement).await {
            Ok(Came::Won(record)) => match record.state {
                State::Done { receipt, expires_at, .. } => {
                    Ok(Some(Executed::Done { receipt, expires_at, origin: Origin::Fresh }))
                }
                State::Running | State::Unknown { .. } | State::Spent { .. } => Err(within::changed()),
            },
            Ok(Came::Failed { code, message }) => failed(&code, &message).map(Some),
            Ok(Came::Lost { stands, at }) => {
                match within::judged(claim, stands.as_ref(), counterfoil_core::Now::at(at)) {
                    Step::Answer(begun) => self.told(begun).map(Some),
                    Step::Claim { .. } => Ok(None),
                }
            }
            Ok(Came::Held) => {
                let seen = self.read(claim.identity().clone()).await?;
                let begun = match within::judged(claim, seen.record.as_deref(), seen.now) {
                    Step::Answer(begun) => begun,
                    Step::Claim { .. } => Begun::InProgress { remaining: HELD_FOR },
                };
                self.told(begun).map(Some)
            }
            Ok(Came::Quarantined(before)) => {
                self.set_quarantine_seen(before);
                Ok(None)
            }
            Ok(Came::Busy | Came::Again) => {
                Err(StoreError::not_applied(ErrorKind::Busy, "the quarantine is being changed: try again"))
            }
            Err(error) if error.applied == Applied::Unknown => {
                self.ask_again(claim.identity(), lease, error).await.map(Some)
            }
            Err(error) => Err(error),
        }
    }

    async fn send(
        self: &Arc<Self>,
        identity: &Identity,
        draft: Draft,
        statement: &Statement,
    ) -> Result<Came, StoreError> {
        let (reply, answer) = oneshot::channel();
        let (identity, statement) = (identity.clone(), statement.clone());
        let deadline = Instant::now() + self.options.call_timeout;
        let applying = Applying { identity, draft, statement, reply, deadline };
        if self.applying.enter(applying, &self.options, self.is_closed(), LANES_MAX)? {
            self.runtime.spawn(self.clone().apply_lane());
        }
        let came = answer.await.unwrap_or_else(|_| Err(cut_short(Intent::Writes)));
        self.tell(came.as_ref().err());
        came
    }

    async fn apply_lane(self: Arc<Self>) {
        let most = TOGETHER_MAX.min(self.options.batch_max.max(1));
        while let Some(taken) = self.applying.next(|waiting| distinct(waiting, most)) {
            let now = Instant::now();
            let (late, taken): (Vec<_>, Vec<_>) = taken.into_iter().partition(|entry: &Applying| entry.deadline < now);
            late.into_iter().for_each(|entry| entry.answer(Err(fault::no_room())));
            if !taken.is_empty() {
                carried(self.apply_together(taken)).await;
            }
        }
    }

    async fn apply_together(&self, entries: Vec<Applying>) {
        let rows = match self.sent(&entries).await {
            Ok(rows) => rows,
            // The server is there, and something is wrong with one of them.
            Err(error) if error.applied == Applied::No && entries.len() > 1 => {
                for entry in entries {
                    Box::pin(self.apply_together(vec![entry])).await;
                }
                return;
            }
            Err(error) => return entries.into_iter().for_each(|entry| entry.answer(Err(fault::told(&error)))),
        };
        let mut again = Vec::new();
        for (entry, row) in entries.into_iter().zip(rows) {
            match self.came(&entry, &row) {
                Ok(Came::Again) => again.push(entry),
                came => entry.answer(came),
            }
        }
        self.applying.return_first(again);
    }

    /// Sends them in one statement; one row for each comes back, in their order.
    async fn sent(&self, entries: &[Applying]) -> Result<Vec<Row>, StoreError> {
        let deadline = Instant::now() + self.options.call_timeout;
        let mut arrays = Arrays::default();
        for entry in entries {
            arrays.push(entry)?;
        }
        let mut lent = self.lend(deadline).await?;
        let budget_ms = rows::span(self.options.call_timeout / 4);
        let lock_ms = self.lock_ms();
        let sent = lent.query(Intent::Writes, DOING, APPLY, &arrays.parameters(&lock_ms, &budget_ms), deadline).await?;
        if sent.len() == entries.len() { Ok(sent) } else { Err(cut_short(Intent::Writes)) }
    }

    fn came(&self, entry: &Applying, row: &Row) -> Result<Came, StoreError> {
        let at = rows::time(row, 2)?;
        self.pace.learn(at);
        let named = |error| rows::named(error, &entry.identity);
        Ok(match get::<&str>(row, 1)? {
            "won" => Came::Won(settled(&entry.draft.at(at, None), get(row, 10)?).map_err(|error| named(error.into()))?),
            "failed" => Came::Failed { code: get(row, 11)?, message: get(row, 12)? },
            "lost" => Came::Lost { stands: rows::standing(row, 4).map_err(named)?, at },
            "held" => Came::Held,
            "quarantined" => Came::Quarantined(get::<Option<i64>>(row, 3)?.map(Timestamp::from_millis)),
            "again" => Came::Again,
            _ => Came::Busy,
        })
    }
}

/// The statement's arrays, one place for each call.
#[derive(Default)]
struct Arrays<'e> {
    locks: Vec<i64>,
    scopes: Vec<&'e [u8]>,
    operations: Vec<&'e [u8]>,
    keys: Vec<&'e [u8]>,
    leases: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
    retentions: Vec<i64>,
    refusals: Vec<Option<i64>>,
    statements: Vec<&'e str>,
    arguments: Vec<&'e str>,
}

impl<'e> Arrays<'e> {
    fn push(&mut self, entry: &'e Applying) -> Result<(), StoreError> {
        let (scope, operation, key) = put::parts(&entry.identity);
        let columns = Columns::of(&entry.draft.at(ZERO, None))?;
        self.locks.push(claim::lock(&entry.identity.digest()));
        self.scopes.push(scope);
        self.operations.push(operation);
        self.keys.push(key);
        self.leases.push(columns.lease);
        self.records.push(columns.bytes);
        let (retention, refusal) = spans(entry.draft.retention, entry.draft.expiry);
        self.retentions.push(retention);
        self.refusals.push(refusal);
        self.statements.push(&entry.statement.text);
        self.arguments.push(&entry.statement.argument);
        Ok(())
    }

    fn parameters<'p>(&'p self, lock_ms: &'p i64, budget_ms: &'p i64) -> [Param<'p>; 12] {
        [
            (&self.locks, Type::INT8_ARRAY),
            (&self.scopes, Type::BYTEA_ARRAY),
            (&self.operations, Type::BYTEA_ARRAY),
            (&self.keys, Type::BYTEA_ARRAY),
            (&self.leases, Type::BYTEA_ARRAY),
            (&self.records, Type::BYTEA_ARRAY),
            (&self.retentions, Type::INT8_ARRAY),
            (&self.refusals, Type::INT8_ARRAY),
            (&self.statements, Type::TEXT_ARRAY),
            (&self.arguments, Type::TEXT_ARRAY),
            (lock_ms, Type::INT8),
            (budget_ms, Type::INT8),
        ]
    }
}
