//! The table of sends: requests under an intent that is durable first, beside the same requests without one.
//!
//! The provider is the bare server of the table over HTTP, as a process of its own. Callers are tasks of the measuring
//! process, as they are in a service. What a client does belongs to its crate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use counterfoil_client::{Client, Heard, Http, Outcome, Outgoing, Transport as _, Wish};
use counterfoil_core::intent::{ATTEMPT_LIMIT, Draft, Header, Name, ProfileRef, Value};
use counterfoil_core::profile::Profile;
use counterfoil_store::intents::Put;
use counterfoil_store::sqlite::Options as StoreOptions;
use counterfoil_store::{IntentStore, RecordStore as _, SqliteStore};
use http::{HeaderMap, HeaderValue, Method};
use tokio::time::Instant;

use crate::Fault;
use crate::http::child::Child;
use crate::keys::{Keys, Order};
use crate::load::{self, Did, Load, Usage, Window};
use crate::machine;
use crate::options::Options;
use crate::sample::Sample;
use crate::table::{Row, Table};

const PLAIN: &str = "without a journal";
const JOURNALLED: &str = "journalled";
const PICKED: &str = "what is due, among 100,000 that wait";

/// Callers at once.
const CALLERS: [usize; 3] = [1, 8, 64];
/// Intents that wait while others are picked.
const WAITING: usize = 100_000;
/// How many are picked at once.
const PICK: usize = 64;
/// The most that a process may keep in memory with them, in KiB.
const RESIDENT_MAX: u64 = 128 * 1024;
const BODY: &str = r#"{"item":"copper kettle","quantity":2,"gift":0}"#;

pub(crate) fn table() -> Table {
    let mut rows = Vec::new();
    for callers in CALLERS {
        rows.push(Row::new(PLAIN, callers, move |options| plain(options, callers)));
        let row = Row::new(JOURNALLED, callers, move |options| journalled(options, callers));
        rows.push(match callers {
            64 => row.at_least(0.5, PLAIN, callers),
            _ => row.beside(PLAIN, callers),
        });
    }
    rows.push(Row::new(PICKED, 1, picked));
    Table {
        title: "Sends",
        about:
            "POST of 46 bytes of JSON to a bare axum service on loopback, each attempt on a connection of its own. A \
                journalled send is an intent in a SQLite file (`synchronous=FULL`), durable before its first byte, and \
                its outcome, durable before it is answered."
                .into(),
        rows,
        checks: Vec::new(),
    }
}

fn plain(options: &Options, callers: usize) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let server = Child::start("bare", dir.path())?;
    let url: http::Uri = format!("http://{}/orders", server.address()).parse()?;
    let http = Http::new()?;
    let window = Window::begin(options);
    let caller = || {
        let (http, url) = (http.clone(), url.clone());
        let mut keys = Keys::new(Order::Time);
        load::calls(window, move |_| {
            let (http, request) = (http.clone(), outgoing(&url, keys.next().to_string()));
            async move { heard(http.send(request, Instant::now() + ATTEMPT_LIMIT).await) }
        })
    };
    let load = load::runtime()?.block_on(load::tasks(callers, window, Usage::own, caller))?;
    server.stop()?;
    told(load)
}

fn outgoing(url: &http::Uri, key: String) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Ok(key) = HeaderValue::try_from(key) {
        headers.insert("idempotency-key", key);
    }
    Outgoing { method: Method::POST, url: url.clone(), headers, body: Bytes::from_static(BODY.as_bytes()) }
}

fn heard(heard: Heard) -> Did {
    match heard {
        Heard::Answered(answer) if answer.status == 201 => Did::Done,
        other => Did::Failed(format!("{other:?}")),
    }
}

fn journalled(options: &Options, callers: usize) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let server = Child::start("bare", dir.path())?;
    let url = format!("http://{}/orders", server.address());
    let store = journal(dir.path())?;
    let client = Client::new(store.clone(), Arc::new(Http::new()?));
    let window = Window::begin(options);
    let caller = || {
        let (client, url) = (client.clone(), url.clone());
        let mut names = Keys::new(Order::Time);
        load::calls(window, move |_| {
            let (client, wish) = (client.clone(), draft(&names.next().to_string(), &url).map(Wish::new));
            async move {
                match wish {
                    Ok(wish) => outcome(client.send(&wish, Duration::ZERO).await.map_err(Into::into)),
                    Err(fault) => Did::Failed(fault.to_string()),
                }
            }
        })
    };
    let usage = || Ok(Usage { commits: Some(store.batches()), ..Usage::own()? });
    let load = load::runtime()?.block_on(load::tasks(callers, window, usage, caller))?;
    server.stop()?;
    told(load)
}

fn outcome(outcome: Result<Outcome, Fault>) -> Did {
    match outcome {
        Ok(Outcome::Succeeded { .. }) => Did::Done,
        Ok(other) => Did::Failed(format!("{other:?}")),
        Err(fault) => Did::Failed(fault.to_string()),
    }
}

fn journal(dir: &Path) -> Result<Arc<SqliteStore>, Fault> {
    Ok(SqliteStore::open(dir.join("journal.db"), StoreOptions::default())?)
}

fn draft(name: &str, url: &str) -> Result<Draft, Fault> {
    let value = Value::Plain(Bytes::from_static(b"application/json"));
    Ok(Draft {
        name: Name::new(name)?,
        method: Method::POST,
        url: url.to_owned(),
        headers: vec![Header { name: "content-type".to_owned(), value }],
        body: Bytes::from_static(BODY.as_bytes()),
        scope: None,
        profile: ProfileRef { id: "ietf".to_owned(), version: 1 },
    })
}

fn told(load: Load) -> Result<Sample, Fault> {
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na send failed: {why}");
    }
    Ok(load.into())
}

/// Looks for what is due; every intent waits since it was written down.
fn picked(options: &Options) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let store = journal(dir.path())?;
    let profile = counterfoil_client::profiles::builtin("ietf").ok_or("there is no profile `ietf`")?;
    let runtime = load::runtime()?;
    runtime.block_on(fill(&store, profile))?;
    let resident = machine::resident(std::process::id())?;
    if resident > RESIDENT_MAX {
        return Err(format!("{resident} KiB are kept in memory, more than {RESIDENT_MAX}").into());
    }
    let window = Window::begin(options);
    let caller = || {
        let store = store.clone();
        load::calls(window, move |_| {
            let store = store.clone();
            async move {
                match store.due(None, PICK).await {
                    Ok(due) if due.intents.len() == PICK => Did::Done,
                    Ok(due) => Did::Failed(format!("{} were due", due.intents.len())),
                    Err(error) => Did::Failed(error.to_string()),
                }
            }
        })
    };
    told(runtime.block_on(load::tasks(1, window, Usage::own, caller))?)
}

async fn fill(store: &Arc<SqliteStore>, profile: &Profile) -> Result<(), Fault> {
    let mut running = tokio::task::JoinSet::new();
    for part in 0..PICK {
        let (store, profile) = (store.clone(), profile.clone());
        running.spawn(async move {
            let mut keys = Keys::new(Order::Time);
            for _ in (part..WAITING).step_by(PICK) {
                let key = keys.next();
                let draft = draft(&key.to_string(), "http://127.0.0.1:9/orders")?;
                let linted = profile.key.lint(&key.to_string())?;
                let intent = draft.intent(&linted, &profile, None, ATTEMPT_LIMIT, store.now().at)?;
                match store.put(None, intent).await? {
                    Put::Won => {}
                    Put::Lost(_) => return Err("a fresh name was taken".into()),
                }
            }
            Ok::<_, Fault>(())
        });
    }
    while let Some(part) = running.join_next().await {
        part??;
    }
    Ok(())
}
