//! A server's time that only the test moves: `counterfoil.clock()` replaced by a row that the test changes.
//!
//! What does not belong here: the machine's clocks (`clock`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Timestamp;
use tokio_postgres::{Client, NoTls};

use super::Database;
use crate::clock::TestClock;

/// Replaces the clock; it stands until it is set.
pub(super) const INSTALL: [&str; 3] = [
    "CREATE TABLE counterfoil.test_time (ms bigint NOT NULL)",
    "INSERT INTO counterfoil.test_time VALUES (1750000000000)",
    "CREATE OR REPLACE FUNCTION counterfoil.clock() RETURNS bigint
     LANGUAGE sql VOLATILE RETURN (SELECT ms FROM counterfoil.test_time)",
];

const EMPTY: &str = "DELETE FROM counterfoil.record; DELETE FROM counterfoil.history;
  UPDATE counterfoil.store SET quarantine_before = NULL, longest_ms = 0;
  UPDATE counterfoil.test_time SET ms = 1750000000000";

/// When it begins.
const BEGIN: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// The time of one database and of the stores on it.
#[derive(Clone)]
pub struct TestTime {
    client: Arc<Client>,
    /// What stores on this database take for the machine's clocks, so that they keep the same pace.
    pub clock: TestClock,
}

impl TestTime {
    /// The time of `database`, which was made [with a store](super::Server::with_store).
    ///
    /// # Errors
    /// Where the server cannot be reached.
    pub async fn of(database: &Database) -> io::Result<Self> {
        let url = database.url();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(Self { client: Arc::new(client), clock: TestClock::new(BEGIN) })
    }

    /// Time passes, for the server and for those who keep its pace.
    ///
    /// # Errors
    /// The server's own words.
    pub async fn advance(&self, by: Duration) -> io::Result<()> {
        let statement = format!("UPDATE counterfoil.test_time SET ms = ms + {}", by.as_millis());
        self.client.batch_execute(&statement).await.map_err(io::Error::other)?;
        self.clock.advance(by);
        Ok(())
    }

    /// Empties the store and begins its time again, for stores that are opened from now on. Much faster than another
    /// database.
    ///
    /// # Errors
    /// The server's own words.
    pub async fn anew(&self) -> io::Result<Self> {
        self.client.batch_execute(EMPTY).await.map_err(io::Error::other)?;
        Ok(Self { client: self.client.clone(), clock: TestClock::new(BEGIN) })
    }
}
