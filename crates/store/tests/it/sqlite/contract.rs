//! The public suite on the SQLite store.
//! What the suite asks for belongs to `counterfoil_store::contract`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Identity;
use counterfoil_store::SqliteStore;
use counterfoil_store::clock::TestClock;
use counterfoil_store::contract::{self, Maker, Subject};
use counterfoil_store::seam::{Answer, RecordStore};
use counterfoil_store::sqlite::Options;
use counterfoil_store::sqlite::rusqlite::Connection;
use tempfile::TempDir;

struct InSqlite;

struct File {
    directory: TempDir,
    clock: TestClock,
    store: Option<Arc<SqliteStore>>,
}

impl File {
    fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    fn open(&mut self) {
        let mut options = Options::default();
        options.clock = Arc::new(self.clock.clone());
        self.store = Some(SqliteStore::open(self.path(), options).unwrap());
    }
}

impl Maker for InSqlite {
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>> {
        let mut file = File { directory: TempDir::new().unwrap(), clock: TestClock::new(super::BEGIN), store: None };
        file.open();
        let subject: Box<dyn Subject> = Box::new(file);
        Box::pin(std::future::ready(Ok(subject)))
    }
}

impl Subject for File {
    fn store(&self) -> Arc<dyn RecordStore> {
        self.store.clone().unwrap()
    }

    fn advance(&self, by: Duration) -> Answer<'_, ()> {
        self.clock.advance(by);
        Box::pin(std::future::ready(Ok(())))
    }

    fn step_wall(&self, millis: i64) -> Option<Answer<'_, ()>> {
        self.clock.step_wall(millis);
        Some(Box::pin(std::future::ready(Ok(()))))
    }

    fn reopen(&mut self) -> Option<Answer<'_, ()>> {
        if let Some(store) = self.store.take() {
            store.close();
        }
        self.open();
        Some(Box::pin(std::future::ready(Ok(()))))
    }

    fn damage<'a>(&'a self, identity: &'a Identity) -> Option<Answer<'a, ()>> {
        let conn = Connection::open(self.path()).unwrap();
        let damaged = conn
            .execute(
                "UPDATE counterfoil_record SET record = CAST(substr(record, 1, length(record) - 1) || x'00' AS BLOB)
                 WHERE operation = ?1 AND key = ?2",
                (identity.operation.as_str(), identity.key.as_str()),
            )
            .unwrap();
        assert_eq!(damaged, 1);
        Some(Box::pin(std::future::ready(Ok(()))))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_holds() {
    let report = contract::check(&InSqlite).await.unwrap_or_else(|violations| {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"));
    });
    assert!(report.not_applicable.is_empty(), "{:?}", report.not_applicable);
}
