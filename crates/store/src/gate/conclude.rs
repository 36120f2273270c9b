//! The end of a run that was forwarded with its permit: what the application committed decides, whatever it answered
//! (PROTOCOL section 6, row 2). The rule is `core::action::conclude`.
//!
//! What does not belong here: what is answered (`middleware`), and how an application settles (the PostgreSQL store).

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Hold;
use counterfoil_core::action::{Concluded, Heard, Write, conclude};
use tokio::time::Instant;

use crate::error::{ErrorKind, StoreError};
use crate::gate::{Gate, Patience, Permit, ROUNDS_MAX};
use crate::seam::{Expected, New, Swap, Swapped};

/// How long a record that the application's transaction has locked is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The pause between two looks at a locked record.
const LOOK_PAUSE: Duration = Duration::from_millis(25);

/// What a forwarded run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Conclusion {
    /// This, and it is written.
    Concluded(Concluded),
    /// The application's transaction still has the record locked: renew the lease, and conclude again with what was heard
    /// first.
    Locked,
}

impl Gate {
    /// Concludes the permit's run from what was `heard` and what stands, once the application's transaction lets go of the
    /// record, at most 2 s from now. Stop and await the [renewal](crate::gate::Renewal) first: while the record is locked
    /// nobody takes it over.
    ///
    /// Reading and writing are one step: the write wins only where the record is still the one that was judged, and takes
    /// its lock.
    ///
    /// # Errors
    /// [`StoreError`] where the store gave no answer: conclude again with what was heard first, and renew until then.
    pub async fn conclude(&self, permit: &mut Permit, heard: Heard, hold: Hold) -> Result<Conclusion, StoreError> {
        let until = Instant::now() + LOCK_WAIT;
        let mut lost = 0;
        let mut released = false;
        while lost < ROUNDS_MAX {
            let seen = self.store().read(permit.identity()).await?;
            let (concluded, write) = conclude(seen.record.as_deref(), permit.lease(), heard, hold, seen.now.at);
            // Our own deletion, whose reply was lost.
            if released && concluded == Concluded::InDoubt && seen.record.is_none() {
                return Ok(Conclusion::Concluded(Concluded::Released));
            }
            let new = match write {
                None => return Ok(Conclusion::Concluded(concluded)),
                Some(Write::Put(record)) => New::Put(Arc::new(record)),
                Some(Write::Delete | Write::Claim { .. }) => New::Delete,
            };
            let deletes = new == New::Delete;
            let expected = seen.record.as_deref().map_or(Expected::Absent, Expected::record);
            let swap = Swap { identity: permit.identity().clone(), expected, new, not_after: None, note: None };
            let mut doubtful = false;
            match self.send_by(swap, &mut doubtful, Patience::Passes).await? {
                Swapped::Won { record, .. } => {
                    if let Some(record) = record {
                        permit.moved(record);
                    }
                    if deletes && let Some(lasting) = permit.copies_for() {
                        self.abandon(permit.identity().clone(), vec![permit.lease()], lasting);
                    }
                    return Ok(Conclusion::Concluded(concluded));
                }
                Swapped::Lost { .. } | Swapped::TooLate { .. } => lost += 1,
                Swapped::Held { .. } if Instant::now() >= until => return Ok(Conclusion::Locked),
                Swapped::Held { .. } => tokio::time::sleep(LOOK_PAUSE).await,
            }
            released |= deletes && doubtful;
        }
        Err(StoreError::not_applied(ErrorKind::Busy, "the record changed too often while its run was concluded"))
    }
}
