//! A shop that can be restarted, killed, moved in time and put into states over its own control paths, with several
//! instances and callers; it keeps keys rightly, or with exactly one flaw.
//!
//! What does not belong here: faults that need no such thing (`orders.rs`), and what the probe says of it.

mod control;
mod keys;
mod wire;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::sync::watch;

pub(crate) use self::wire::CALLERS;

/// For how long a key is kept, in seconds of the shop's clock.
pub(crate) const WINDOW: u64 = 1_000;
/// After how many seconds a lock would be given up by a shop that gives locks up.
const LEASE: u64 = 600;

/// What is wrong with a shop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    None,
    ListTaken,
    FirstOfTwoLines,
    HeaderNameHasCase,
    BeyondAsciiTaken,
    ReplayShowsChange,
    RunsAfterDelete,
    HeldRuns,
    HeldFails,
    InstancesApart,
    LockExpires,
    ComparesAllAndRuns,
    MemberTwiceRuns,
    CallerIgnored,
    CallerIsCredential,
    OperationIgnored,
    AccountIgnored,
    RegionShared,
    NamesJoined,
    LimitRemembered,
    DeclinedRunsLater,
    FailureKept,
    FailureForgotten,
    StoreDownRuns,
    StoreDownFails,
    ExpiresEarly,
    NeverExpires,
    ExpiredStillCompared,
    PurgedRuns,
    PurgedReplays,
    ExpiresWhileRunning,
    RestartForgets,
    KillForgets,
    KillForgetsRunning,
    PowerCutForgets,
    ProtocolsApart,
}

/// An answer before it is written; the number is the result's.
#[derive(Clone, Debug)]
struct Told {
    status: u16,
    id: Option<u64>,
    body: String,
}

fn problem(status: u16, name: &str) -> Told {
    Told { status, id: None, body: json!({"type": format!("urn:shop:{name}")}).to_string() }
}

#[derive(Clone)]
struct Record {
    fingerprint: String,
    /// Nothing while it runs.
    told: Option<Told>,
    at: u64,
    purged: bool,
}

#[derive(Default)]
struct Book {
    effects: u64,
    records: HashMap<String, Record>,
    put_away: HashMap<String, Record>,
    now: u64,
    changed: HashSet<u64>,
    deleted: HashSet<u64>,
    declined: HashSet<String>,
    /// How many requests reached the shop, the counts and controls left out.
    requests: u64,
}

/// What is to be seen by those who are held: the state, how many are held, and how often it was killed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Stage {
    state: String,
    held: u32,
    killed: u32,
}

/// One instance on a port of its own; all instances of a shop share its book.
#[derive(Clone)]
pub(crate) struct Shop {
    flaw: Flaw,
    instance: &'static str,
    book: Arc<Mutex<Book>>,
    stage: Arc<watch::Sender<Stage>>,
    address: std::net::SocketAddr,
}

/// What a request asked for.
struct Asked {
    caller: String,
    account: String,
    /// Whether it came over HTTP/2.
    two: bool,
    operation: String,
    key: Option<String>,
    says: Value,
    fingerprint: String,
    /// Whether a member stands twice in the body.
    twice: bool,
}

/// The process ended before there was an answer.
struct Killed;

impl Shop {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// A request that may have an effect.
    async fn ask(&self, asked: Asked) -> Result<Told, Killed> {
        let state = self.stage.borrow().state.clone();
        let name = self.name(&asked);
        match (state.as_str(), self.flaw) {
            ("limited", flaw) => {
                if let (Flaw::LimitRemembered, Some(name)) = (flaw, &name) {
                    self.keep(name, &asked, Some(problem(429, "limited")));
                }
                return Ok(problem(429, "limited"));
            }
            ("store-down", Flaw::StoreDownRuns) => return Ok(self.run(&asked)),
            ("store-down", Flaw::StoreDownFails) => return Ok(problem(500, "no-store")),
            ("store-down", _) => return Ok(problem(503, "no-store")),
            _ => {}
        }
        let Some(name) = name.filter(|_| !(asked.twice && self.is(Flaw::MemberTwiceRuns))) else {
            return Ok(self.run(&asked));
        };
        if let Some(told) = self.known(&name, &asked) {
            return Ok(told);
        }
        if state == "fail-before" {
            if self.is(Flaw::FailureKept) {
                self.keep(&name, &asked, Some(problem(500, "failed")));
            } else {
                self.book().records.remove(&name);
            }
            return Ok(problem(500, "failed"));
        }
        let told = self.run(&asked);
        if state == "held" {
            self.held().await?;
        }
        match told.status {
            400 => drop(self.book().records.remove(&name)),
            402 if self.is(Flaw::DeclinedRunsLater) => drop(self.book().records.remove(&name)),
            _ => self.keep(&name, &asked, Some(told.clone())),
        }
        if state == "fail-after" {
            match self.flaw {
                Flaw::FailureForgotten => drop(self.book().records.remove(&name)),
                Flaw::FailureKept => self.keep(&name, &asked, Some(problem(500, "failed"))),
                _ => {}
            }
            return Ok(problem(500, "failed"));
        }
        Ok(told)
    }

    /// The name of the record; nothing where there is no key.
    fn name(&self, asked: &Asked) -> Option<String> {
        let key = asked.key.clone()?;
        let caller = if self.is(Flaw::CallerIgnored) { "" } else { &asked.caller };
        if self.is(Flaw::NamesJoined) {
            return Some(format!("{caller}:{key}"));
        }
        let account = if self.is(Flaw::AccountIgnored) { "" } else { &asked.account };
        let operation = if self.is(Flaw::OperationIgnored) { "" } else { &asked.operation };
        let place = match (self.instance, self.flaw) {
            ("region", Flaw::RegionShared) => "",
            ("region", _) => "region",
            (_, Flaw::ProtocolsApart) if asked.two => "two",
            (instance, Flaw::InstancesApart) => instance,
            _ => "",
        };
        Some(format!("{place}|{caller}|{account}|{operation}|{key}"))
    }

    fn keep(&self, name: &str, asked: &Asked, told: Option<Told>) {
        let mut book = self.book();
        let at = book.now;
        let record = Record { fingerprint: asked.fingerprint.clone(), told, at, purged: false };
        book.records.insert(name.to_owned(), record);
    }

    /// The effect itself.
    fn run(&self, asked: &Asked) -> Told {
        let quantity = asked.says.get("quantity").cloned().unwrap_or_default();
        let fine = quantity.is_number() || quantity.get(0).is_some_and(Value::is_number);
        let mut book = self.book();
        if !fine && asked.says.get("quantity[]").is_none() {
            return problem(400, "invalid");
        }
        if asked.says.get("declined").is_some() {
            let again = !book.declined.insert(asked.key.clone().unwrap_or_default());
            if !(again && self.is(Flaw::DeclinedRunsLater)) {
                return problem(402, "declined");
            }
        }
        book.effects += 1;
        let id = book.effects;
        Told { status: 201, id: Some(id), body: json!({"id": id}).to_string() }
    }

    /// Held until the next state; an error where it was killed meanwhile.
    async fn held(&self) -> Result<(), Killed> {
        let before = self.stage.borrow().killed;
        self.stage.send_modify(|stage| stage.held += 1);
        let mut watch = self.stage.subscribe();
        let ends = |stage: &Stage| stage.state != "held" || stage.killed != before;
        let killed = watch.wait_for(ends).await.map_or(true, |stage| stage.killed != before);
        self.stage.send_modify(|stage| stage.held -= 1);
        if killed { Err(Killed) } else { Ok(()) }
    }
}

/// Whether the first name of a JSON object stands twice.
fn names_twice(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    text.matches("\"quantity\"").count() > 1
}
