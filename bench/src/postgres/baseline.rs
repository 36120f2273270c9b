//! What people write without us: a receipt in a table of their own, by hand, with prepared statements.
//!
//! This package stands outside `crates/`, so it may hold SQL: the baselines share no line with what they measure.

use std::time::Instant;

use counterfoil_store::postgres::tokio_postgres::types::ToSql;
use counterfoil_store::postgres::tokio_postgres::{Client, Error, NoTls, Statement};
use counterfoil_store::postgres::trial::Database;

use super::{REPLAYED, Shared, each, judged};
use crate::Fault;
use crate::keys::{Keys, Order};
use crate::load::{self, Did, Tally, Window};
use crate::options::Options;
use crate::sample::Sample;
use crate::seed::{OPERATION, TENANT};

/// The business table, which ours uses too, and receipts as people keep them.
pub(super) const TABLES: [&str; 2] = [
    "CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL,
       operation text NOT NULL, quantity integer NOT NULL CHECK (quantity > 0))",
    "CREATE TABLE receipts (tenant text NOT NULL, operation text NOT NULL, request_key text NOT NULL,
       fingerprint text NOT NULL, result text NOT NULL, expires_at bigint NOT NULL,
       PRIMARY KEY (tenant, operation, request_key))",
];

pub(super) const EFFECT: &str = "INSERT INTO effects (tenant, operation, quantity) VALUES ($1, $2, $3) RETURNING id";
pub(super) const EFFECT_VALUES: [&(dyn ToSql + Sync); 3] = [&TENANT, &OPERATION, &2_i32];

/// The effect with its receipt, for a store that runs it as one statement.
pub(super) const APPLIED: &str = "WITH made AS (
  INSERT INTO effects (tenant, operation, quantity)
  VALUES ($1->>'tenant', $1->>'operation', ($1->>'quantity')::integer) RETURNING id, quantity)
  SELECT 201, NULL, json_build_object('effect_id', id, 'quantity', quantity)::text FROM made";

/// What it is given.
pub(super) fn argument() -> String {
    format!("{{\"tenant\": \"{TENANT}\", \"operation\": \"{OPERATION}\", \"quantity\": 2}}")
}

const LOOK: &str = "SELECT fingerprint, result, expires_at FROM receipts
  WHERE tenant = $1 AND operation = $2 AND request_key = $3";
const RECEIPT: &str = "INSERT INTO receipts (tenant, operation, request_key, fingerprint, result, expires_at)
  VALUES ($1, $2, $3, '{\"quantity\":2}', $4, 1900000000000)";

/// A connection, driven on the runtime that is entered.
pub(super) async fn connect(url: &str) -> Result<Client, Fault> {
    let (client, connection) = counterfoil_store::postgres::tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

pub(super) async fn clients(database: &Database, count: usize) -> Result<Vec<Client>, Fault> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(connect(&database.url()).await?);
    }
    Ok(clients)
}

/// The effect as a prepared statement.
pub(super) async fn effect(client: &Client) -> Result<Statement, Error> {
    client.prepare(EFFECT).await
}

/// What one connection has prepared.
struct Statements {
    look: Statement,
    effect: Statement,
    receipt: Statement,
}

impl Statements {
    async fn of(client: &Client) -> Result<Self, Error> {
        let (look, receipt) = (client.prepare(LOOK).await?, client.prepare(RECEIPT).await?);
        Ok(Self { look, effect: effect(client).await?, receipt })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Textbook,
    Select,
}

/// A receipt and nothing else.
pub(super) fn bare(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    run(options, shared, callers, Way::Bare)
}

/// Look, effect and receipt in one transaction of five round trips.
pub(super) fn textbook(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    run(options, shared, callers, Way::Textbook)
}

/// A receipt, read.
pub(super) fn select(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    run(options, shared, callers, Way::Select)
}

fn run(options: &Options, shared: &Shared, callers: usize, way: Way) -> Result<Sample, Fault> {
    let database = shared.database()?;
    let load = load::runtime()?.block_on(async {
        let keys = if way == Way::Select { filled(&database).await? } else { Vec::new() };
        let clients = clients(&database, callers).await?;
        let window = Window::begin(options);
        each(window, clients, |client| caller(client, window, way, keys.clone())).await
    })?;
    match way {
        Way::Bare => judged(&database, "receipts", load),
        Way::Textbook => judged(&database, "effects", load),
        Way::Select => Ok(load.into()),
    }
}

/// The keys of receipts that are there.
async fn filled(database: &Database) -> Result<Vec<String>, Fault> {
    let client = connect(&database.url()).await?;
    let (statements, mut source) = (Statements::of(&client).await?, Keys::new(Order::Time));
    let keys: Vec<String> = (0..REPLAYED).map(|_| source.next().to_string()).collect();
    for key in &keys {
        client.execute(&statements.receipt, &[&TENANT, &OPERATION, key, &"made"]).await?;
    }
    Ok(keys)
}

async fn caller(mut client: Client, window: Window, way: Way, known: Vec<String>) -> Tally {
    let (mut tally, mut keys) = (Tally::default(), Keys::new(Order::Time));
    let statements = match Statements::of(&client).await {
        Ok(statements) => statements,
        Err(error) => {
            tally.note(&window, Instant::now(), Did::Failed(error.to_string()));
            return tally;
        }
    };
    while window.open() {
        let begun = Instant::now();
        let done = match way {
            Way::Bare => {
                let key = keys.next().to_string();
                client.execute(&statements.receipt, &[&TENANT, &OPERATION, &key, &"made"]).await.map(drop)
            }
            Way::Textbook => by_hand(&mut client, &statements, &keys.next().to_string()).await,
            Way::Select => {
                let key = &known[keys.below(known.len())];
                client.query_one(&statements.look, &[&TENANT, &OPERATION, key]).await.map(drop)
            }
        };
        let did = done.map_or_else(|error| Did::Failed(error.to_string()), |()| Did::Done);
        tally.note(&window, begun, did);
    }
    tally
}

async fn by_hand(client: &mut Client, statements: &Statements, key: &str) -> Result<(), Error> {
    let tx = client.transaction().await?;
    if tx.query_opt(&statements.look, &[&TENANT, &OPERATION, &key]).await?.is_some() {
        return tx.commit().await;
    }
    let id: i64 = tx.query_one(&statements.effect, &EFFECT_VALUES).await?.get(0);
    let result = format!("{{\"effect_id\":{id},\"quantity\":2}}");
    tx.execute(&statements.receipt, &[&TENANT, &OPERATION, &key, &result]).await?;
    tx.commit().await
}
