//! The table of a PostgreSQL server: claims, receipts and replays beside what people write by hand, on a private server
//! that this program starts (under the directory for temporary files, which must be a real disk).
//!
//! What the baselines do belongs to `baseline`, the application behind the proxy to `application`, filled stores to
//! `filled`.

pub(crate) mod application;
mod baseline;
mod filled;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use counterfoil_core::Receipt;
use counterfoil_store::postgres::tokio_postgres::Client;
use counterfoil_store::postgres::trial::{Database, Server};
use counterfoil_store::postgres::{Options as StoreOptions, PostgresStore, Statement};
use counterfoil_store::sqlite::Executed;
use counterfoil_store::{Begun, Ended, Gate};

use self::filled::Filled;
use crate::keys::{Keys, Order};
use crate::load::{self, Did, Load, Tally, Usage, Window};
use crate::options::Options;
use crate::ours::{self, Claims};
use crate::sample::Sample;
use crate::table::{Row, Table};
use crate::{Fault, growth, proxy};

const CALLERS: usize = 64;
const MANY_CALLERS: usize = 256;
/// Keys that are replayed, in no order.
const REPLAYED: usize = 1000;
/// Receipts of the small store.
const FEW: u64 = 10_000;

const BARE: &str = "one INSERT of a receipt, a connection each";
const TEXTBOOK: &str = "BEGIN, SELECT, INSERT, INSERT, COMMIT";
const APPLY: &str = "ours, claim, effect and receipt as one statement";
const INSIDE: &str = "ours, claim inside the caller's transaction";
const CLAIMS: &str = "ours, claims";
const COUPLED: &str = "ours, through the proxy, application with hold and settle";
const SELECT: &str = "one SELECT of a receipt, a connection each";
const REPLAY: &str = "ours, replay";
const SMALL: &str = "ours, claim and completion, few receipts";
const LARGE: &str = "ours, claim and completion, many";
const SWEPT: &str = "ours, claim and completion, many, sweeper at work";

/// Checkpoints and vacuums come when they are asked for, and nothing else writes to the log.
const SETTINGS: [&str; 7] = [
    "shared_buffers = '1GB'",
    "max_wal_size = '16GB'",
    "checkpoint_timeout = '1h'",
    "autovacuum = off",
    "wal_level = minimal",
    "max_wal_senders = 0",
    "max_connections = 400",
];

pub(crate) fn table(options: &Options) -> Table {
    let (server, many) = (Shared::default(), options.receipts_many);
    let row = |name: &'static str, callers: usize, run: fn(&Options, &Shared, usize) -> Result<Sample, Fault>| {
        let server = server.clone();
        Row::new(name, callers, move |options| run(options, &server, callers))
    };
    let filled = |name: &'static str, receipts: u64, swept: bool| {
        let store = Filled::new(server.clone(), receipts, swept);
        Row::new(name, CALLERS, move |options| store.measured(options, CALLERS))
    };
    Table {
        title: "PostgreSQL",
        about: format!(
            "A server of this program's own with fsync on; nothing vacuums by itself. Fresh UUIDv7 keys, {REPLAYED} keys \
             replayed; in the last three rows UUIDv4, {FEW} receipts are few and {many} are many, plus half as many that \
             have expired, and times are of the claim alone. Our stores have 10 connections, baselines one for each caller. \
             A replay that writes a byte to the log ends the run. CPU is of the callers' process alone."
        ),
        rows: vec![
            row(BARE, CALLERS, baseline::bare),
            row(TEXTBOOK, CALLERS, baseline::textbook),
            row(APPLY, CALLERS, apply).at_least(1.5, TEXTBOOK, CALLERS),
            row(INSIDE, CALLERS, inside).beside(TEXTBOOK, CALLERS),
            row(CLAIMS, CALLERS, claims).at_least(0.9, BARE, CALLERS),
            row(CLAIMS, MANY_CALLERS, claims).beside(BARE, CALLERS),
            row(COUPLED, CALLERS, coupled).beside(TEXTBOOK, CALLERS),
            row(SELECT, CALLERS, baseline::select),
            row(REPLAY, CALLERS, replay).at_least(0.6, SELECT, CALLERS),
            filled(SMALL, FEW, false),
            filled(LARGE, many, false).at_least(0.75, SMALL, CALLERS),
            filled(SWEPT, many, true).beside(LARGE, CALLERS),
        ],
        checks: Vec::new(),
    }
}

/// A server that is started when it is first needed, and lasts as long as the table.
#[derive(Clone, Default)]
struct Shared(Rc<OnceCell<Arc<Server>>>);

impl Shared {
    fn server(&self) -> Result<Arc<Server>, Fault> {
        if let Some(server) = self.0.get() {
            return Ok(server.clone());
        }
        let started = Arc::new(Server::start(&SETTINGS)?);
        Ok(self.0.get_or_init(|| started).clone())
    }

    /// A database with an empty store and the tables of the baselines.
    fn database(&self) -> Result<Database, Fault> {
        let database = self.server()?.empty()?;
        load::runtime()?.block_on(PostgresStore::migrate(&database.url()))?;
        database.psql(&baseline::TABLES)?;
        Ok(database)
    }
}

async fn open(database: &Database) -> Result<Arc<PostgresStore>, Fault> {
    Ok(PostgresStore::open(&database.url(), StoreOptions::default()).await?)
}

/// Runs a caller for each of `clients`.
async fn each<Caller>(window: Window, clients: Vec<Client>, make: impl Fn(Client) -> Caller) -> Result<Load, Fault>
where
    Caller: Future<Output = Tally> + Send + 'static,
{
    let count = clients.len();
    let clients = std::cell::RefCell::new(clients);
    let make = || {
        let caller = clients.borrow_mut().pop().map(&make);
        async move {
            match caller {
                Some(caller) => caller.await,
                None => Tally::default(),
            }
        }
    };
    load::tasks(count, window, Usage::own, make).await
}

/// What was answered, where at least so many rows of `table` bear it out.
fn judged(database: &Database, table: &str, load: Load) -> Result<Sample, Fault> {
    let rows: u64 = database.psql(&[&format!("SELECT count(*) FROM {table}")])?.parse()?;
    if rows < load.tally.done {
        return Err(format!("{} calls were answered, and {table} holds {rows} rows", load.tally.done).into());
    }
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na call failed: {why}");
    }
    Ok(load.into())
}

/// Claim, effect and receipt in the caller's own transaction; effect and receipt go to the server together.
fn inside(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    let database = shared.database()?;
    let load = load::runtime()?.block_on(async {
        let (store, clients) = (open(&database).await?, baseline::clients(&database, callers).await?);
        let window = Window::begin(options);
        each(window, clients, |client| inside_caller(store.clone(), client, window)).await
    })?;
    judged(&database, "effects", load)
}

async fn inside_caller(store: Arc<PostgresStore>, mut client: Client, window: Window) -> Tally {
    let (mut tally, mut keys) = (Tally::default(), Keys::new(Order::Time));
    let prepared = async {
        let (claims, effect) = (Claims::new()?, baseline::effect(&client).await?);
        Ok::<_, Fault>((claims, effect))
    };
    let (claims, effect) = match prepared.await {
        Ok(prepared) => prepared,
        Err(fault) => {
            tally.note(&window, Instant::now(), Did::Failed(fault.to_string()));
            return tally;
        }
    };
    let receipt = Receipt::new(201, "{\"quantity\":2}");
    while window.open() {
        let begun = Instant::now();
        let done = async {
            let mut claim = claims.claim(&keys.next().to_string())?;
            let tx = client.transaction().await?;
            let Begun::Execute(mut permit) = store.begin_in(&tx, &mut claim, &claims.policy).await? else {
                return Err("a fresh claim was not granted".into());
            };
            let made = tx.execute(&effect, &baseline::EFFECT_VALUES);
            let (made, ended) = tokio::join!(made, store.complete_in(&tx, &mut permit, &receipt));
            made?;
            match ended? {
                Ended::Written { .. } => Ok::<_, Fault>(tx.commit().await?),
                Ended::Refused(why) => Err(format!("refused: {why:?}").into()),
            }
        };
        let did = match done.await {
            Ok(()) => Did::Done,
            Err(fault) => Did::Failed(fault.to_string()),
        };
        tally.note(&window, begun, did);
    }
    tally
}

/// Effect and receipt by one statement of the store's; what waits goes together.
fn apply(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    let database = shared.database()?;
    let load = load::runtime()?.block_on(async {
        let store = open(&database).await?;
        let window = Window::begin(options);
        let caller = || {
            let (store, claims, mut keys) = (store.clone(), Claims::new(), Keys::new(Order::Time));
            let (text, argument): (Arc<str>, String) = (baseline::APPLIED.into(), baseline::argument());
            load::calls(window, move |_| {
                let claim = claims.as_ref().map_err(ToString::to_string);
                let claim = claim.and_then(|claims| {
                    let claim = claims.claim(&keys.next().to_string()).map_err(|fault| fault.to_string())?;
                    Ok((claim, claims.policy.clone()))
                });
                let (store, statement) = (store.clone(), Statement::new(text.clone(), argument.clone()));
                async move {
                    let (claim, policy) = match claim {
                        Ok(claim) => claim,
                        Err(why) => return Did::Failed(why),
                    };
                    match store.apply(claim, &policy, statement).await {
                        Ok(Executed::Done { .. }) => Did::Done,
                        Ok(other) => Did::Failed(format!("a fresh action was answered {other:?}")),
                        Err(error) => ours::refused(&error),
                    }
                }
            })
        };
        load::tasks(callers, window, Usage::own, caller).await
    })?;
    judged(&database, "effects", load)
}

/// Claims alone, as they come: what waits goes together.
fn claims(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    let database = shared.database()?;
    let load = load::runtime()?.block_on(async {
        let gate = Gate::new(open(&database).await?)?;
        let window = Window::begin(options);
        let caller = || {
            let (gate, claims, mut keys) = (gate.clone(), Claims::new(), Keys::new(Order::Time));
            load::calls(window, move |_| {
                let claim = claims.as_ref().map_err(ToString::to_string);
                let claim = claim.and_then(|claims| {
                    let claim = claims.claim(&keys.next().to_string()).map_err(|fault| fault.to_string())?;
                    Ok((claim, claims.policy.clone()))
                });
                let gate = gate.clone();
                async move {
                    let (mut claim, policy) = match claim {
                        Ok(claim) => claim,
                        Err(why) => return Did::Failed(why),
                    };
                    match gate.begin(&mut claim, &policy).await {
                        Ok(Begun::Execute(_)) => Did::Done,
                        Ok(other) => Did::Failed(format!("a fresh claim was answered {other:?}")),
                        Err(error) => ours::refused(&error),
                    }
                }
            })
        };
        load::tasks(callers, window, Usage::own, caller).await
    })?;
    judged(&database, "counterfoil.record", load)
}

/// Receipts given again, and not a byte written for it.
fn replay(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    let database = shared.database()?;
    let log = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    let (load, written) = load::runtime()?.block_on(async {
        let gate = Gate::new(open(&database).await?)?;
        let keys: Arc<[String]> = remembered(&gate).await?.into();
        database.psql(&["VACUUM (ANALYZE) counterfoil.record", "CHECKPOINT"])?;
        let before: u64 = database.psql(&[log])?.parse()?;
        let window = Window::begin(options);
        let caller = || {
            let (gate, keys, claims, mut source) =
                (gate.clone(), keys.clone(), Claims::new(), Keys::new(Order::Random));
            async move {
                let claims = match claims {
                    Ok(claims) => claims,
                    Err(fault) => {
                        let mut tally = Tally::default();
                        tally.note(&window, Instant::now(), Did::Failed(fault.to_string()));
                        return tally;
                    }
                };
                load::calls(window, |_| again(&gate, &claims, &keys[source.below(keys.len())])).await
            }
        };
        let load = load::tasks(callers, window, Usage::own, caller).await?;
        let after: u64 = database.psql(&[log])?.parse()?;
        Ok::<_, Fault>((load, after - before))
    })?;
    if written != 0 {
        return Err(format!("{written} bytes of the log were written beside replays").into());
    }
    Ok(load.into())
}

async fn again(gate: &Gate, claims: &Claims, key: &str) -> Did {
    let mut claim = match claims.claim(key) {
        Ok(claim) => claim,
        Err(fault) => return Did::Failed(fault.to_string()),
    };
    match gate.begin(&mut claim, &claims.policy).await {
        Ok(Begun::Replay { .. }) => Did::Done,
        Ok(other) => Did::Failed(format!("what is done was answered {other:?}")),
        Err(error) => ours::refused(&error),
    }
}

async fn remembered(gate: &Gate) -> Result<Vec<String>, Fault> {
    let (claims, mut source, receipt) = (Claims::new()?, Keys::new(Order::Time), crate::filling::receipt());
    let keys: Vec<String> = (0..REPLAYED).map(|_| source.next().to_string()).collect();
    for key in &keys {
        let Begun::Execute(mut permit) = gate.begin(&mut claims.claim(key)?, &claims.policy).await? else {
            return Err("a first run was not granted".into());
        };
        gate.complete(&mut permit, &receipt).await?;
    }
    Ok(keys)
}

/// Row 2: the proxy, and an application that commits the receipt itself, each a process of its own.
fn coupled(options: &Options, shared: &Shared, callers: usize) -> Result<Sample, Fault> {
    let database = shared.database()?;
    let load = proxy::coupled(options, &database.url(), callers)?;
    judged(&database, "effects", load)
}

/// A claim and its completion on a store that is filled already.
async fn claimed_and_completed(gate: Gate, window: Window, callers: usize) -> Result<Load, Fault> {
    let caller = || growth::begin_and_complete(gate.clone(), window, Order::Random);
    load::tasks(callers, window, Usage::own, caller).await
}
