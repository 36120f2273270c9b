//! A server's time that only the test moves: `counterfoil.clock()` replaced by a row that the test changes.
//!
//! What does not belong here: the machine's clocks (`clock`).

use std::io;
use std::time::Duration;

use counterfoil_core::Timestamp;

use super::Database;
use crate::clock::TestClock;

/// Replaces the clock; it stands until it is set.
pub(super) const INSTALL: [&str; 3] = [
    "CREATE TABLE counterfoil.test_time (ms bigint NOT NULL)",
    "INSERT INTO counterfoil.test_time VALUES (1750000000000)",
    "CREATE OR REPLACE FUNCTION counterfoil.clock() RETURNS bigint
     LANGUAGE sql VOLATILE RETURN (SELECT ms FROM counterfoil.test_time)",
];

/// When it begins.
const BEGIN: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// The time of one database and of the stores on it.
#[derive(Clone)]
pub struct TestTime {
    database: Database,
    /// What stores on this database take for the machine's clocks, so that they keep the same pace.
    pub clock: TestClock,
}

impl TestTime {
    /// The time of `database`, which was made [with a store](super::Server::with_store).
    #[must_use]
    pub fn of(database: &Database) -> Self {
        Self { database: database.clone(), clock: TestClock::new(BEGIN) }
    }

    /// Time passes, for the server and for those who keep its pace.
    ///
    /// # Errors
    /// The server's own words.
    pub fn advance(&self, by: Duration) -> io::Result<()> {
        let statement = format!("UPDATE counterfoil.test_time SET ms = ms + {}", by.as_millis());
        self.database.psql(&[&statement])?;
        self.clock.advance(by);
        Ok(())
    }
}
