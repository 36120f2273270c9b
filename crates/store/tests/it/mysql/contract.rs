//! The public suite on the MySQL / MariaDB store.
//! What the suite asks for belongs to `counterfoil_store::contract`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Identity;
use counterfoil_store::MysqlStore;
use counterfoil_store::contract::{self, Maker, Subject};
use counterfoil_store::mysql::trial::Server;
use counterfoil_store::seam::{Answer, RecordStore};
use counterfoil_store::{ErrorKind, StoreError};

use super::Place;

struct InMysql {
    /// Emptied for each case.
    place: Place,
}

struct Opened {
    place: Place,
    store: Option<Arc<MysqlStore>>,
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::not_applied(ErrorKind::Unavailable, error.to_string())
}

impl Opened {
    async fn open(&mut self) -> Result<(), StoreError> {
        self.store = Some(MysqlStore::open(&self.place.database.url(), self.place.options()).await?);
        Ok(())
    }
}

impl Maker for InMysql {
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>> {
        Box::pin(async move {
            let place =
                Place { time: self.place.time.anew().await.map_err(failed)?, database: self.place.database.clone() };
            let mut opened = Opened { place, store: None };
            opened.open().await?;
            let subject: Box<dyn Subject> = Box::new(opened);
            Ok(subject)
        })
    }
}

impl Subject for Opened {
    fn store(&self) -> Arc<dyn RecordStore> {
        self.store.clone().unwrap()
    }

    fn advance(&self, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move { self.place.time.advance(by).await.map_err(failed) })
    }

    fn step_wall(&self, _millis: i64) -> Option<Answer<'_, ()>> {
        None
    }

    fn reopen(&mut self) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            if let Some(store) = self.store.take() {
                store.close().await;
            }
            self.open().await
        }))
    }

    fn damage<'a>(&'a self, identity: &'a Identity) -> Option<Answer<'a, ()>> {
        let hexadecimal = identity.digest().to_hex();
        let statement = format!(
            "UPDATE counterfoil_record SET record = CONCAT(LEFT(record, LENGTH(record) - 1), X'00')
             WHERE digest = X'{hexadecimal}'"
        );
        Some(Box::pin(std::future::ready(self.place.database.sql(&statement).map(drop).map_err(failed))))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_holds() {
    let server = Server::shared().unwrap();
    let make = InMysql { place: Place::on(&server).await };
    let report = contract::check(&make).await.unwrap_or_else(|violations| {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"));
    });
    let lacking: Vec<&str> = report.not_applicable.into_iter().map(|(case, _)| case).collect();
    assert_eq!(lacking, ["doubted-clock-forgets-nothing"], "its clock is the server's");
}
