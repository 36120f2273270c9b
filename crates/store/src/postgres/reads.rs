//! The read that every claim begins with: one that finds a lane free is sent alone and at once; while all are busy, the
//! others gather and go in one statement.
//!
//! What does not belong here: reads for operators (`list`), writes (`queue`), and what a record means (core).

use std::sync::Arc;

use counterfoil_core::{Identity, Now};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::{self, Intent};
use super::line;
use super::pool::{Lent, Param};
use super::put::parts;
use super::rows::{self, columns, get};
use super::{Inner, cut_short};
use crate::error::{ErrorKind, StoreError};
use crate::seam::Seen;

/// One row for each identity, in their order: the time, whether this server may be behind another, and what stands. The
/// inner one is looked up for each, so that no plan reads the table.
pub(super) const READ: &str = concat!(
    "SELECT counterfoil.clock(), pg_is_in_recovery(), ",
    columns!(),
    " FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS w (scope, operation, key, place)
      LEFT JOIN LATERAL (SELECT * FROM counterfoil.record AS s
        WHERE s.scope = w.scope AND s.operation = w.operation AND s.key = w.key LIMIT 1) AS r ON true
      ORDER BY w.place"
);

const DOING: &str = "a record could not be read";

/// Statements of reads that are under way at once. One that hangs leaves the others a way, and more would only make each
/// carry less.
const LANES_MAX: usize = 2;

/// Who waits to be told what stands.
pub(super) struct Asked {
    identity: Identity,
    reply: oneshot::Sender<Result<Seen, StoreError>>,
    /// After this it is not sent any more.
    deadline: Instant,
}

impl Asked {
    fn answer(self, answer: Result<Seen, StoreError>) {
        // Nobody listens any more where the future was dropped.
        drop(self.reply.send(answer));
    }
}

impl Inner {
    /// Reads the newest committed record, on the primary only.
    pub(super) async fn read(self: &Arc<Self>, identity: Identity) -> Result<Seen, StoreError> {
        let (reply, answer) = oneshot::channel();
        let deadline = Instant::now() + self.options.call_timeout;
        if self.reads.enter(Asked { identity, reply, deadline }, &self.options, self.is_closed(), LANES_MAX)? {
            self.runtime.spawn(self.clone().read_lane());
        }
        match timeout_at(deadline, answer).await {
            Ok(answered) => answered.unwrap_or_else(|_| Err(cut_short(Intent::Reads))),
            Err(_) => Err(fault::timed_out(Intent::Reads, DOING)),
        }
    }

    async fn read_lane(self: Arc<Self>) {
        while let Some(asked) = self.reads.next(|waiting| line::first(waiting, self.options.batch_max)) {
            let now = Instant::now();
            let (late, asked): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(|asked| asked.deadline < now);
            late.into_iter().for_each(|asked| asked.answer(Err(fault::no_room())));
            line::carried(self.read_together(asked)).await;
        }
    }

    /// Reads for all of `asked` and answers each.
    async fn read_together(&self, asked: Vec<Asked>) {
        // Each of them stops waiting at its own.
        let Some(deadline) = asked.iter().map(|asked| asked.deadline).max() else { return };
        let read = async {
            let mut lent = self.lend(deadline).await?;
            read_on(&mut lent, asked.iter().map(|asked| &asked.identity), deadline).await
        };
        let read = read.await;
        self.tell(read.as_ref().err());
        match read {
            Ok(rows) => {
                for (asked, row) in asked.into_iter().zip(rows) {
                    let seen = self.seen(&row, &asked.identity);
                    self.tell(seen.as_ref().err());
                    asked.answer(seen);
                }
            }
            Err(error) => asked.into_iter().for_each(|asked| asked.answer(Err(fault::told(&error)))),
        }
    }

    /// The same for one, on a connection that is lent already.
    pub(super) async fn read_by(
        &self,
        lent: &mut Lent,
        identity: &Identity,
        deadline: Instant,
    ) -> Result<Seen, StoreError> {
        let rows = read_on(lent, std::iter::once(identity), deadline).await?;
        self.seen(rows.first().ok_or_else(|| cut_short(Intent::Reads))?, identity)
    }

    fn seen(&self, row: &Row, identity: &Identity) -> Result<Seen, StoreError> {
        if get(row, 1)? {
            let standby = "this server follows another and may be behind: connect to the primary";
            return Err(StoreError::not_applied(ErrorKind::Unavailable, standby));
        }
        let at = rows::time(row, 0)?;
        self.pace.learn(at);
        let record = rows::standing(row, 2).map_err(|error| rows::named(error, identity))?.map(Arc::new);
        Ok(Seen { record, now: Now::at(at) })
    }
}

/// A row for each of `identities`, in their order.
async fn read_on(
    lent: &mut Lent,
    identities: impl Iterator<Item = &Identity>,
    deadline: Instant,
) -> Result<Vec<Row>, StoreError> {
    let (mut scopes, mut operations, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for identity in identities {
        let (scope, operation, key) = parts(identity);
        scopes.push(scope);
        operations.push(operation);
        keys.push(key);
    }
    let parameters: [Param<'_>; 3] =
        [(&scopes, Type::BYTEA_ARRAY), (&operations, Type::BYTEA_ARRAY), (&keys, Type::BYTEA_ARRAY)];
    let rows = lent.query(Intent::Reads, DOING, READ, &parameters, deadline).await?;
    if rows.len() == keys.len() { Ok(rows) } else { Err(cut_short(Intent::Reads)) }
}
