//! A server's time that only the test moves: the view `counterfoil_clock` over a row that the test changes.
//!
//! What does not belong here: the machine's clocks (`clock`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Timestamp;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::sync::Mutex;

use super::Database;
use crate::clock::TestClock;

/// Replaces the clock; it stands until it is set.
pub(super) const INSTALL: [&str; 3] = [
    "CREATE TABLE counterfoil_test_time (ms BIGINT NOT NULL) ENGINE = InnoDB",
    "INSERT INTO counterfoil_test_time VALUES (1750000000000)",
    "CREATE OR REPLACE SQL SECURITY INVOKER VIEW counterfoil_clock AS SELECT ms AS now_ms FROM counterfoil_test_time",
];

const EMPTY: &str = "DELETE FROM counterfoil_record; DELETE FROM counterfoil_history;
  UPDATE counterfoil_quarantine SET before_ms = NULL; UPDATE counterfoil_promise SET longest_ms = 0;
  UPDATE counterfoil_test_time SET ms = 1750000000000";

/// When it begins.
const BEGIN: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// The time of one database and of the stores on it.
#[derive(Clone)]
pub struct TestTime {
    conn: Arc<Mutex<Conn>>,
    /// What stores on this database take for the machine's clocks, so that they keep the same pace.
    pub clock: TestClock,
}

impl TestTime {
    /// The time of `database`, which was made [with a store](super::Server::with_store).
    ///
    /// # Errors
    /// Where the server cannot be reached.
    pub async fn of(database: &Database) -> io::Result<Self> {
        let conn = Conn::from_url(database.url()).await.map_err(io::Error::other)?;
        Ok(Self { conn: Arc::new(Mutex::new(conn)), clock: TestClock::new(BEGIN) })
    }

    /// Time passes, for the server and for those who keep its pace.
    ///
    /// # Errors
    /// The server's own words.
    pub async fn advance(&self, by: Duration) -> io::Result<()> {
        let statement = format!("UPDATE counterfoil_test_time SET ms = ms + {}", by.as_millis());
        self.conn.lock().await.query_drop(statement).await.map_err(io::Error::other)?;
        self.clock.advance(by);
        Ok(())
    }

    /// Empties the store and begins its time again, for stores that are opened from now on. Much faster than another
    /// database.
    ///
    /// # Errors
    /// The server's own words.
    pub async fn anew(&self) -> io::Result<Self> {
        let mut conn = self.conn.lock().await;
        for statement in EMPTY.split(';') {
            conn.query_drop(statement).await.map_err(io::Error::other)?;
        }
        Ok(Self { conn: self.conn.clone(), clock: TestClock::new(BEGIN) })
    }
}
