//! One order, in a transaction of the application's own, by each driver and in both styles. Run twice: the second answer is
//! the receipt of the first.
//!
//! ```text
//! cargo run -p counterfoil-examples --example own_transaction -- rusqlite shop.db
//! cargo run -p counterfoil-examples --example own_transaction -- sqlx postgres://orders@127.0.0.1/shop
//! ```
//!
//! What does not belong here: HTTP; the layer over sqlx is `axum_sqlx`.

use std::error::Error;
use std::io::Write as _;

use counterfoil::store::mysql::mysql_async::prelude::Queryable as _;
use counterfoil::store::mysql::{self, mysql_async};
use counterfoil::store::postgres::{self, Statement, tokio_postgres};
use counterfoil::store::sqlite::{self, Executed, Origin, rusqlite};
use counterfoil::store::{Begun, Ended};
use counterfoil::{
    Asked, Claim, Effect, Gate, Identity, Key, MysqlStore, Operation, Policy, PostgresStore, Receipt, Rule, Scope,
    SqliteStore,
};
use sqlx::Connection as _;

type Failed = Box<dyn Error + Send + Sync>;

const SCHEMA: &str =
    "CREATE TABLE IF NOT EXISTS item_order (number INTEGER NOT NULL UNIQUE, item VARCHAR(40) NOT NULL)";
const ORDER: &str = "INSERT INTO item_order (number, item) VALUES (7, 'pen')";

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let (Some(driver), Some(place)) = (arguments.next(), arguments.next()) else {
        return Err("say rusqlite, tokio-postgres, sqlx, sqlx-permit, statement or mysql_async, then where".into());
    };
    let identity = Identity::new(Scope::single_tenant(), Operation::new("create-order")?, Key::new(driver.clone())?);
    let mut claim = Claim::new(identity, Asked::bytes("order 7, a pen"), &Rule::bytes())?;
    let told = match driver.as_str() {
        "rusqlite" => with_rusqlite(&place, &mut claim)?,
        "tokio-postgres" => with_tokio_postgres(&place, &mut claim).await?,
        "sqlx" => with_sqlx(&place, &mut claim).await?,
        "sqlx-permit" => with_a_permit(&place, &mut claim).await?,
        "statement" => with_a_statement(&place, claim).await?,
        "mysql_async" => with_mysql_async(&place, &mut claim).await?,
        other => return Err(format!("{other} is none of them").into()),
    };
    writeln!(std::io::stdout(), "{driver}: {told}")?;
    Ok(())
}

/// What was made now, or what stands.
fn told(begun: Begun) -> Result<String, Failed> {
    match begun {
        Begun::Replay { receipt, .. } => Ok(format!("replayed {}", receipt.status)),
        Begun::Mismatch => Err("the key names another order".into()),
        Begun::InProgress { remaining } => Err(format!("somebody is at it: come again in {remaining:?}").into()),
        Begun::Unknown { .. } | Begun::Expired { .. } => Err("an operator must say what became of it".into()),
        Begun::Execute(_) => Err("it was to run".into()),
    }
}

/// Where the receipt is refused, somebody else has the key, and the transaction must not be committed.
fn must_be_written(ended: &Ended) -> Result<(), Failed> {
    match ended {
        Ended::Written { .. } => Ok(()),
        Ended::Refused(why) => Err(format!("superseded, and rolled back: {}", why.as_str()).into()),
    }
}

fn receipt() -> Receipt {
    Receipt::new(201, "order 7 is made")
}

fn with_rusqlite(place: &str, claim: &mut Claim) -> Result<String, Failed> {
    let store = SqliteStore::open(place, sqlite::Options::default())?;
    let mut own = rusqlite::Connection::open(place)?;
    own.execute_batch(&format!("PRAGMA synchronous = FULL; {SCHEMA}"))?;
    let tx = own.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut permit = match store.begin_in(&tx, claim, &Policy::default())? {
        Begun::Execute(permit) => permit,
        other => return told(other),
    };
    tx.execute(ORDER, [])?;
    must_be_written(&store.complete_in(&tx, &mut permit, &receipt())?)?;
    tx.commit()?;
    Ok("made".to_owned())
}

async fn with_tokio_postgres(place: &str, claim: &mut Claim) -> Result<String, Failed> {
    let store = PostgresStore::open(place, postgres::Options::default()).await?;
    let (mut own, connection) = tokio_postgres::connect(place, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    own.batch_execute(SCHEMA).await?;
    let tx = own.transaction().await?;
    let mut permit = match store.begin_in(&tx, claim, &Policy::default()).await? {
        Begun::Execute(permit) => permit,
        other => return told(other),
    };
    tx.execute(ORDER, &[]).await?;
    must_be_written(&store.complete_in(&tx, &mut permit, &receipt()).await?)?;
    tx.commit().await?;
    Ok("made".to_owned())
}

async fn with_sqlx(place: &str, claim: &mut Claim) -> Result<String, Failed> {
    let store = PostgresStore::open(place, postgres::Options::default()).await?;
    let mut own = sqlx::PgConnection::connect(place).await?;
    sqlx::raw_sql(SCHEMA).execute(&mut own).await?;
    let mut tx = own.begin().await?;
    let mut permit = match store.begin_in(&mut tx, claim, &Policy::default()).await? {
        Begun::Execute(permit) => permit,
        other => return told(other),
    };
    sqlx::query(ORDER).execute(&mut *tx).await?;
    must_be_written(&store.complete_in(&mut tx, &mut permit, &receipt()).await?)?;
    tx.commit().await?;
    Ok("made".to_owned())
}

/// No transaction of the application's own: claim, order and receipt are one statement to the server.
async fn with_a_statement(place: &str, claim: Claim) -> Result<String, Failed> {
    let store = PostgresStore::open(place, postgres::Options::default()).await?;
    let (own, connection) = tokio_postgres::connect(place, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    own.batch_execute(SCHEMA).await?;
    let order = "WITH made AS (INSERT INTO item_order (number, item) VALUES (7, $1->>'item') RETURNING number)
      SELECT 201, NULL, 'order ' || number || ' is made' FROM made";
    match store.apply(claim, &Policy::default(), Statement::new(order, r#"{"item": "pen"}"#)).await? {
        Executed::Done { origin: Origin::Fresh, .. } => Ok("made".to_owned()),
        Executed::Done { receipt, .. } => Ok(format!("replayed {}", receipt.status)),
        other => Err(format!("not made: {other:?}").into()),
    }
}

/// The other style: claimed before, by the gate, and ended in the transaction that has the effect.
async fn with_a_permit(place: &str, claim: &mut Claim) -> Result<String, Failed> {
    let store = PostgresStore::open(place, postgres::Options::default()).await?;
    let gate = Gate::new(store.clone())?;
    let mut own = sqlx::PgConnection::connect(place).await?;
    sqlx::raw_sql(SCHEMA).execute(&mut own).await?;
    let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
    let permit = match gate.begin(claim, &policy).await? {
        Begun::Execute(permit) => permit.text(),
        other => return told(other),
    };
    let mut tx = own.begin().await?;
    // First: from here on this transaction commits with a receipt or not at all.
    let (held,): (bool,) = sqlx::query_as("SELECT counterfoil.hold($1)").bind(&permit).fetch_one(&mut *tx).await?;
    if !held {
        return Err("another attempt has this order: rolled back".into());
    }
    sqlx::query(ORDER).execute(&mut *tx).await?;
    // Last: the receipt.
    let settle = "SELECT counterfoil.settle($1, 201, '[]', $2)";
    sqlx::query(settle).bind(&permit).bind(&b"order 7 is made"[..]).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok("made, with a permit".to_owned())
}

async fn with_mysql_async(place: &str, claim: &mut Claim) -> Result<String, Failed> {
    let store = MysqlStore::open(place, mysql::Options::default()).await?;
    let mut own = mysql_async::Conn::from_url(place).await?;
    own.query_drop(SCHEMA).await?;
    let mut tx = own.start_transaction(mysql_async::TxOpts::default()).await?;
    let mut permit = match store.begin_in(&mut tx, claim, &Policy::default()).await? {
        Begun::Execute(permit) => permit,
        other => return told(other),
    };
    tx.query_drop(ORDER).await?;
    must_be_written(&store.complete_in(&mut tx, &mut permit, &receipt()).await?)?;
    tx.commit().await?;
    Ok("made".to_owned())
}
