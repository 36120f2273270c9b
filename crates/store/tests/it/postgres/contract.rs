//! The public suite on the PostgreSQL store, directly and through PgBouncer.
//! What the suite asks for belongs to `counterfoil_store::contract`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Identity;
use counterfoil_store::PostgresStore;
use counterfoil_store::contract::{self, Maker, Subject};
use counterfoil_store::postgres::trial::{Bouncer, Server};
use counterfoil_store::seam::{Answer, RecordStore};
use counterfoil_store::{ErrorKind, StoreError};

use super::Place;

struct InPostgres {
    /// Emptied for each case.
    place: Place,
    /// Through which port; the server's own or a pooler's.
    port: u16,
}

struct Opened {
    place: Place,
    port: u16,
    store: Option<Arc<PostgresStore>>,
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::not_applied(ErrorKind::Unavailable, error.to_string())
}

impl Opened {
    async fn open(&mut self) -> Result<(), StoreError> {
        let url = self.place.database.url_through(self.port);
        self.store = Some(PostgresStore::open(&url, self.place.options()).await?);
        Ok(())
    }
}

impl Maker for InPostgres {
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>> {
        Box::pin(async move {
            let place =
                Place { time: self.place.time.anew().await.map_err(failed)?, database: self.place.database.clone() };
            let mut opened = Opened { place, port: self.port, store: None };
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
        let hexadecimal: String = identity.key.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
        let statement = format!(
            "UPDATE counterfoil.record SET record = overlay(record PLACING '\\x00' FROM length(record))
             WHERE key = '\\x{hexadecimal}'"
        );
        Some(Box::pin(std::future::ready(self.place.database.psql(&[&statement]).map(drop).map_err(failed))))
    }
}

async fn must_hold(make: &InPostgres) {
    let report = contract::check(make).await.unwrap_or_else(|violations| {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"));
    });
    let lacking: Vec<&str> = report.not_applicable.into_iter().map(|(case, _)| case).collect();
    assert_eq!(lacking, ["doubted-clock-forgets-nothing"], "its clock is the server's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_holds() {
    let server = Server::shared().unwrap();
    must_hold(&InPostgres { port: server.port(), place: Place::on(&server).await }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_holds_through_a_pooler_in_transaction_mode() {
    let server = Server::shared().unwrap();
    let bouncer = Bouncer::start(&server, 4).unwrap();
    must_hold(&InPostgres { port: bouncer.port(), place: Place::on(&server).await }).await;
}
