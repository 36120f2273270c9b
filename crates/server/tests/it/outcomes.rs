//! Every outcome of "what the upstream did × what the store did", a row each: what the first caller, the next one and a
//! later one with the same key are answered, what stands, and how often the effect happened. What must hold in every
//! row is said in code; the rest is in the golden file.

mod stores;
mod upstreams;

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Body, Timestamp, record::Standing};
use counterfoil_server::Store;
use counterfoil_store::clock::TestClock;
use counterfoil_store::faulty::Faulty as FaultyStore;
use counterfoil_store::seam::Query;
use counterfoil_store::{MemoryStore, RecordStore as _};
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::stores::{Behaviour, Stage};
use self::upstreams::{Kind, Place};
use crate::caller::{Answer, order};
use crate::faulty::Faulty;
use crate::golden;
use crate::running::{Running, config_before};

/// Rows that are tried at once.
const AT_ONCE: usize = 64;
/// More than a lease, on the store's clock.
const LEASE_OVER: Duration = Duration::from_secs(31);

const INTRODUCTION: &str = "\
# One block for each thing that a store does, one row for each thing that an upstream does with the first request that
# reaches it. Columns: the answer to the first caller, what stands then; the answer to the next caller with the same
# key, what stands then; the answer to a later caller of a server started anew on the same store, a lease later, and
# what stands then. After each, the effects that the upstream has really made. Problems are named by their type.
";

/// A caller's answer, and what was true after it.
#[derive(Debug)]
struct Asked {
    answer: Answer,
    standing: String,
    /// The connection, from 0, on which each effect so far was asked for.
    effects: Vec<usize>,
    connections: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome() {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut rows = JoinSet::new();
    let kinds = upstreams::all();
    for (block, behaviour) in Behaviour::ALL.into_iter().enumerate() {
        for (line, kind) in kinds.iter().filter(|kind| behaviour.meets(kind.name)).cloned().enumerate() {
            let places = places.clone();
            rows.spawn(async move {
                let place = places.acquire_owned().await.unwrap();
                let asked = row(&kind, behaviour).await;
                drop(place);
                ((block, line), kind.name, asked)
            });
        }
    }
    let mut rows = rows.join_all().await;
    rows.sort_by_key(|(place, ..)| *place);
    let mut text = INTRODUCTION.to_owned();
    let (mut begun, mut wrong) = (None, Vec::new());
    for ((block, _), kind, asked) in &rows {
        let title = Behaviour::ALL[*block].title();
        if begun.replace(*block) != Some(*block) {
            text.push_str(&format!("\n## the store {title}\n"));
        }
        let row = written(kind, asked);
        wrong.extend(broken(asked).into_iter().map(|what| format!("{what}: the store {title}: {row}")));
        text.push_str(&row);
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
    golden::check("outcomes.txt", &text);
}

/// Three requests with one key, each once the one before it is answered.
async fn row(kind: &Kind, behaviour: Behaviour) -> [Asked; 3] {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let place = match kind.place {
        Place::Here | Place::Later => format!("http://{address}"),
        Place::Nameless => "http://nobody.invalid".to_owned(),
        Place::Tls => format!("https://{address}"),
    };
    let limits = if kind.more.contains("[limits]\n") { "" } else { "[limits]\n" };
    let config = config_before(&place, "127.0.0.1:0", &format!("{}{limits}drain = \"1s\"\n", kind.more));
    let clock = TestClock::new(Timestamp::from_millis(1_700_000_000_000));
    let store = Arc::new(FaultyStore::new(MemoryStore::with_clock(Arc::new(clock.clone()))));

    let mut socket = Some(socket);
    let mut listen = || socket.take().map(|socket| Faulty::on(socket.listen(16).unwrap(), kind.scripts.clone()));
    let mut upstream = if kind.place == Place::Later { None } else { listen() };
    let mut running = Running::on(Store::of(store.clone()), config.clone()).await;
    let stage = Stage::set(behaviour, &store);

    let answer = order(running.proxy, "k", "{}").await;
    stage.before_next().await;
    match behaviour {
        Behaviour::ClaimNeverAnswered => settled(&store, |standing| standing == "absent").await,
        // Where the run was given back, the copy found the key free: it must not keep it.
        Behaviour::ClaimCopied => settled(&store, |standing| standing != "running").await,
        _ => {}
    }
    let first = seen(answer, &store, upstream.as_ref()).await;
    if upstream.is_none() {
        upstream = listen();
    }
    let next = seen(order(running.proxy, "k", "{}").await, &store, upstream.as_ref()).await;
    stage.after_next().await;
    running.stop();
    running.ended().await;
    stage.after_stop();
    clock.advance(LEASE_OVER);
    let running = Running::on(Store::of(store.clone()), config).await;
    let later = seen(order(running.proxy, "k", "{}").await, &store, upstream.as_ref()).await;
    [first, next, later]
}

/// Waits until what stands is as it must be soon.
async fn settled(store: &FaultyStore<MemoryStore>, is_so: impl Fn(&str) -> bool) {
    let soon = async {
        while !is_so(&standing(store).await) {
            tokio::task::yield_now().await;
        }
    };
    // What is never so is seen in the row itself.
    let _ = tokio::time::timeout(Duration::from_secs(10), soon).await;
}

async fn seen(answer: Answer, store: &FaultyStore<MemoryStore>, upstream: Option<&Faulty>) -> Asked {
    if let Some(upstream) = upstream {
        upstream.rested().await;
    }
    let standing = standing(store).await;
    let (effects, connections) = upstream.map(|it| (it.effects(), it.counts().0)).unwrap_or_default();
    Asked { answer, standing, effects, connections }
}

/// What stands in the store, which keeps one record at most.
async fn standing(store: &FaultyStore<MemoryStore>) -> String {
    let page = store.inner().list(Query { limit: 2, ..Query::default() }).await.unwrap();
    let Some(listed) = page.rows.first() else { return "absent".to_owned() };
    match listed.record.as_ref().unwrap().standing(page.now) {
        Standing::Absent => "expired".to_owned(),
        Standing::Running { .. } => "running".to_owned(),
        Standing::Lapsed => "lapsed".to_owned(),
        Standing::Unknown { why, .. } => format!("unknown ({})", why.as_str()),
        Standing::Done { receipt, .. } if receipt.body == Body::NotKept => format!("done {}, no body", receipt.status),
        Standing::Done { receipt, .. } => format!("done {}", receipt.status),
        Standing::Expired { .. } => "spent".to_owned(),
    }
}

fn written(kind: &str, asked: &[Asked; 3]) -> String {
    let mut line = format!("{kind:<43}");
    for asked in asked {
        let effects = format!("{}x", asked.effects.len());
        line.push_str(&format!(" | {:<32} {:<17} {effects}", shown(&asked.answer), asked.standing));
    }
    line.push('\n');
    line
}

/// Status, problem or body, and what the headers say.
fn shown(answer: &Answer) -> String {
    let mut text = format!("{} {}", answer.status(), said(answer));
    if is_cut(answer) {
        text.push_str(", cut");
    }
    if answer.header("idempotent-replayed") == Some("true") {
        text.push_str(", replayed");
    }
    if let Some(status) = answer.header("idempotency-status") {
        text.push_str(&format!(", {status}"));
    }
    text
}

/// The problem's type, or which answer of the upstream it is.
fn said(answer: &Answer) -> String {
    let problem = answer.problem();
    if !problem.is_empty() {
        return problem;
    }
    ["first", "second"].into_iter().find(|body| answer.body.contains(body)).unwrap_or("-").to_owned()
}

fn is_cut(answer: &Answer) -> bool {
    match answer.header("content-length").map(str::parse::<usize>) {
        Some(length) => answer.body.len() < length.unwrap(),
        None => answer.header("transfer-encoding").is_some() && !answer.body.ends_with("0\r\n\r\n"),
    }
}

/// What must hold in every row, whatever the golden file says, and does not.
fn broken(asked: &[Asked; 3]) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what| {
        if !holds {
            wrong.push(what);
        }
    };
    let mut in_doubt = false;
    let mut connections = 0;
    for (place, now) in asked.iter().enumerate() {
        let (answer, effects) = (&now.answer, now.effects.len());
        let header = |name| answer.header(name);
        let sent = now.connections > connections;
        connections = now.connections;
        must(effects <= 1, "the effect happened again");
        must(effects == 0 || now.standing != "absent", "an effect was forgotten");
        must(!(in_doubt && sent), "what is in doubt was sent again");
        must(matches!(header("idempotent-replayed"), Some("true" | "false")), "it does not say whether it is replayed");
        let replayed = header("idempotent-replayed") == Some("true");
        must(!(replayed && sent), "what is replayed was sent again");
        must(!replayed || is_what_was_first(asked, place), "what is replayed is not the first result");
        let stored =
            now.standing.starts_with("done") && answer.problem().is_empty() && header("idempotency-status").is_none();
        must(header("idempotency-expires").is_some() == stored, "a receipt and its time do not come together");
        let problem = answer.problem();
        let open = ["outcome-unknown", "in-progress", "store-unavailable"].contains(&problem.as_str());
        must(!in_doubt || open, "what was in doubt has a result from nowhere");
        in_doubt |= problem == "outcome-unknown" || now.standing.starts_with("unknown");
    }
    wrong
}

/// A replayed answer is the one of the request that had the effect, or else of the first that was answered.
fn is_what_was_first(asked: &[Asked; 3], place: usize) -> bool {
    let now = &asked[place];
    let expected = match now.effects.first() {
        Some(0) => Some("first".to_owned()),
        Some(_) => Some("second".to_owned()),
        None => {
            asked[..place].iter().find(|before| before.answer.problem().is_empty()).map(|before| said(&before.answer))
        }
    };
    now.answer.status() == 204 || expected == Some(said(&now.answer))
}
