//! Runs the steps of a case once: sends, waits and counts as the case says, and keeps every exchange.
//!
//! What does not belong here: which cases run (`probe.rs`), and what the exchanges show (`fact.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Barrier;
use tokio::task::{JoinError, JoinHandle};

use crate::address::Address;
use crate::arrivals::{self, Late};
use crate::case::{Case, Loss, Otherwise, Request, Step, Wanted};
use crate::error::ProbeError;
use crate::exchange::Exchange;
use crate::fact::{Mark, Round, Value, id_of};
use crate::hook::Hook;
use crate::http2;
use crate::observer;
use crate::target::{Known, Prepared, Target};
use crate::wire::{Carried, Connection, Wire};

mod hooked;

/// Why a round ended before its last step.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something that the step needs was not given.
    Missing(String),
    /// A request that prepares was not answered as it must be.
    Unmet(Otherwise, String),
    /// The target or what counts effects is out of reach.
    Disturbed(String),
    /// The probe itself failed.
    Harness(ProbeError),
}

/// What has been sent so far, and what the next request needs.
pub(crate) struct Runner {
    pub(crate) target: Arc<Target>,
    pub(crate) wire: Wire,
    pub(crate) began: Instant,
    pub(crate) requests: u32,
    /// The shortest time between two requests.
    pub(crate) pace: Duration,
    pub(crate) settle: Duration,
    /// How long "still under way" is borne.
    pub(crate) patience: Duration,
    pub(crate) last_sent: Option<Instant>,
    /// By how many seconds hooks have moved the target's clock.
    pub(crate) clock_moved: u64,
    pub(crate) late: Late,
    /// Whether the case has the target refuse for the rate.
    pub(crate) limits: bool,
    /// Whether the target offers HTTP/1.1 and HTTP/2.
    pub(crate) both: bool,
}

/// One request before it is sent.
struct Ready {
    address: Address,
    prepared: Prepared,
    exchange: Exchange,
}

type Sent = (Carried, Option<Connection>);

/// What a round has begun.
struct Open<'a> {
    case: &'a Case,
    number: u32,
    /// Keys by name, each with the time of its first use on the target's clock.
    keys: BTreeMap<String, (String, Timestamp)>,
    kept: Option<Connection>,
    started: BTreeMap<String, (usize, JoinHandle<Sent>)>,
    /// Whether a hook lasts that nothing has healed.
    ill: bool,
    round: Round,
}

impl Runner {
    /// Runs all steps. What was exchanged comes back also where it stopped early.
    pub(crate) async fn round(&mut self, case: &Case, number: u32) -> (Round, Option<Stop>) {
        let key_name = self.target.key_name().to_ascii_lowercase();
        let round = Round { key_name, hides_effects: case.observer >= 2, ..Round::default() };
        let (keys, started) = (BTreeMap::new(), BTreeMap::new());
        let mut open = Open { case, number, keys, kept: None, started, ill: false, round };
        // What was not given is known before anything is sent, and costs no effect.
        if let Some(missing) = self.target.lacks(case) {
            return (open.round, Some(Stop::Missing(missing)));
        }
        self.limits = case.runs(Hook::Limit);
        let mut stop = self.mark(&mut open, "").await.err();
        let before = self.arrived().await;
        for step in &case.steps {
            if stop.is_some() {
                break;
            }
            stop = self.step(&mut open, step).await.err();
        }
        // Nor does a round that stopped leave the target ill.
        let healed = if open.ill { self.hook(&mut open, Hook::Heal, None, None).await.err() } else { None };
        stop = stop.or(healed);
        for (_, (_, task)) in std::mem::take(&mut open.started) {
            task.abort();
        }
        // Also a round that stopped says what it left behind.
        let end = self.mark(&mut open, "").await.err();
        stop = stop.or(end);
        match (before, self.arrived().await) {
            (Ok(Some(before)), Ok(Some(after))) => {
                open.round.repeated = self.late.judge(after.saturating_sub(before), &open.round.exchanges);
            }
            (Err(error), _) | (_, Err(error)) => stop = stop.or(Some(error)),
            (Ok(_), Ok(_)) => {}
        }
        (open.round, stop)
    }

    async fn step(&mut self, open: &mut Open<'_>, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Send(send) => self.send(open, send).await,
            Step::Start(send) => {
                let ready = self.ready(open, send).await?;
                let wire = self.wire.clone();
                let (address, outgoing) = (ready.address, ready.prepared.outgoing());
                let task = tokio::spawn(async move { wire.carry(&address, &outgoing, None, None).await });
                open.started.insert(send.r#as.clone(), (open.round.exchanges.len(), task));
                open.round.exchanges.push(ready.exchange);
                Ok(())
            }
            Step::Finish { of } => match open.started.remove(of) {
                Some((at, task)) => self.finished(open, at, task.await),
                None => Ok(()),
            },
            Step::Await { of } => {
                let Some((at, mut task)) = open.started.remove(of) else { return Ok(()) };
                match tokio::time::timeout(self.patience, &mut task).await {
                    Ok(done) => self.finished(open, at, done),
                    Err(_) => {
                        open.started.insert(of.clone(), (at, task));
                        Ok(())
                    }
                }
            }
            Step::Together { sends, times } => self.together(open, sends, *times).await,
            Step::Until { send, not, tries } => {
                for attempt in 0..*tries {
                    if attempt > 0 {
                        tokio::time::sleep(self.patience / *tries).await;
                    }
                    self.send(open, send).await?;
                    let last = open.round.exchanges.last().and_then(|exchange| exchange.answer.as_ref());
                    if last.is_some_and(|answer| !not.contains(&answer.status)) {
                        // What was told to wait is no answer yet: the facts look at the last one only.
                        break;
                    }
                    if attempt + 1 < *tries
                        && let Some(exchange) = open.round.exchanges.last_mut()
                    {
                        exchange.name = format!("{} (not yet)", send.r#as);
                    }
                }
                Ok(())
            }
            Step::Wait { ms } => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                Ok(())
            }
            Step::Mark { r#as } => self.mark(open, r#as).await,
            Step::Hook { run, seconds, during } => self.hook(open, *run, *seconds, during.as_deref()).await,
        }
    }

    /// Writes down what came of the request that was started as exchange `at`.
    fn finished(&self, open: &mut Open<'_>, at: usize, done: Result<Sent, JoinError>) -> Result<(), Stop> {
        let (carried, _) = done.map_err(|error| harness(&error))?;
        match open.round.exchanges.get_mut(at) {
            Some(exchange) => self.finish(exchange, carried),
            None => Ok(()),
        }
    }

    async fn send(&mut self, open: &mut Open<'_>, send: &Request) -> Result<(), Stop> {
        let Ready { address, prepared, mut exchange } = self.ready(open, send).await?;
        let kept = if send.keep { open.kept.take() } else { None };
        let (carried, connection) = self.wire.carry(&address, &prepared.outgoing(), None, kept).await;
        open.kept = if send.keep { connection } else { open.kept.take() };
        let outcome = self.finish(&mut exchange, carried);
        let unmet = unmet(send, &exchange);
        open.round.exchanges.push(exchange);
        outcome?;
        unmet.map_or(Ok(()), Err)
    }

    async fn together(&mut self, open: &mut Open<'_>, sends: &[Request], times: u32) -> Result<(), Stop> {
        let mut all = Vec::new();
        for _ in 0..times {
            for send in sends {
                all.push(self.ready(open, send).await?);
            }
        }
        let barrier = Arc::new(Barrier::new(all.len()));
        let mut tasks = Vec::new();
        for Ready { address, prepared, exchange } in all {
            let (wire, barrier) = (self.wire.clone(), Arc::clone(&barrier));
            let carrying = async move { wire.carry(&address, &prepared.outgoing(), Some(&barrier), None).await };
            tasks.push((exchange, tokio::spawn(carrying)));
        }
        let mut outcome = Ok(());
        for (mut exchange, task) in tasks {
            let (carried, _) = task.await.map_err(|error| harness(&error))?;
            outcome = outcome.and(self.finish(&mut exchange, carried));
            open.round.exchanges.push(exchange);
        }
        outcome
    }

    /// Prepares a request, no sooner than the pace allows.
    async fn ready(&mut self, open: &mut Open<'_>, send: &Request) -> Result<Ready, Stop> {
        let now = Timestamp::now();
        let now = now.saturating_add(SignedDuration::from_secs(self.clock_moved.cast_signed())).unwrap_or(now);
        let (key, first_used) = match send.key.as_str() {
            "none" => (None, now),
            name => open.key(name, now).map(|(key, first_used)| (Some(key), first_used))?,
        };
        let made = self.target.id.as_ref().and_then(|place| {
            let answers = open.round.exchanges.iter().filter_map(|exchange| exchange.answer.as_ref());
            answers.filter(|answer| answer.is_success()).find_map(|answer| id_of(answer, place))
        });
        let known = Known { key: key.as_deref(), first_used, id: made.as_deref() };
        let (mut address, prepared) = self.target.request(send, &known).map_err(Stop::Missing)?;
        if send.other_version && self.both {
            address.http2 = !address.http2;
        }
        if let Some(last) = self.last_sent {
            tokio::time::sleep(self.pace.saturating_sub(last.elapsed())).await;
        }
        self.last_sent = Some(Instant::now());
        self.requests += 1;
        let exchange = Exchange {
            number: self.requests,
            case: open.case.id.clone(),
            round: open.number,
            name: send.r#as.clone(),
            method: prepared.method.clone(),
            version: address.version().to_owned(),
            path: prepared.path.clone(),
            headers: if address.http2 { http2::told(&prepared.headers) } else { prepared.headers.clone() },
            body: String::from_utf8_lossy(&prepared.body).into_owned(),
            key_bytes: prepared.key.as_ref().map_or(0, String::len),
            key: prepared.key.clone(),
            lost: lost(send.lose, address.http2).map(str::to_owned),
            ..Exchange::default()
        };
        Ok(Ready { address, prepared, exchange })
    }

    /// Writes down what came of a request; a refusal for the rate says nothing, except where the case asks for it.
    fn finish(&self, exchange: &mut Exchange, carried: Carried) -> Result<(), Stop> {
        let micros = |at: Instant| u64::try_from((at - self.began).as_micros()).unwrap_or(u64::MAX);
        exchange.sent_at = micros(carried.sent_at);
        exchange.sent_whole_at = carried.sent_whole_at.map(micros);
        exchange.first_byte_at = carried.first_byte_at.map(micros);
        exchange.ended_at = micros(Instant::now());
        exchange.answer = carried.answer;
        exchange.fault = carried.fault;
        let unreachable = exchange.fault.as_ref().filter(|fault| fault.contains("cannot be reached"));
        let limited = exchange.answer.as_ref().is_some_and(|answer| answer.status == 429);
        match (unreachable, limited) {
            (Some(fault), _) => Err(Stop::Disturbed(fault.clone())),
            (None, true) if !self.limits => {
                Err(Stop::Disturbed("the target refuses for the rate (429); use --rate".to_owned()))
            }
            (None, _) => Ok(()),
        }
    }

    async fn arrived(&self) -> Result<Option<u64>, Stop> {
        arrivals::count(&self.target, &self.wire).await.map_err(Stop::Disturbed)
    }

    async fn mark(&mut self, open: &mut Open<'_>, name: &str) -> Result<(), Stop> {
        let seen = self.target.counter.is_some() || self.target.arrivals.is_some();
        if seen && !open.round.exchanges.is_empty() {
            tokio::time::sleep(self.settle).await;
        }
        let count = self.counted().await?;
        open.round.marks.push(Mark { name: name.to_owned(), exchanges: open.round.exchanges.len(), count });
        Ok(())
    }

    /// The number of effects as of now; nothing where only answers tell.
    async fn counted(&self) -> Result<Option<u64>, Stop> {
        let Some(counter) = &self.target.counter else { return Ok(None) };
        observer::count(counter, &self.target, &self.wire).await.map(Some).map_err(Stop::Disturbed)
    }
}

impl Open<'_> {
    /// The key of a name: the same within a round, never used in another.
    fn key(&mut self, name: &str, now: Timestamp) -> Result<(String, Timestamp), Stop> {
        if let Some(known) = self.keys.get(name) {
            return Ok(known.clone());
        }
        let known = (new_key().map_err(Stop::Harness)?, now);
        self.keys.insert(name.to_owned(), known.clone());
        Ok(known)
    }
}

/// A UUID version 4 that holds letters, so that its capitals are another text.
fn new_key() -> Result<String, ProbeError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| ProbeError::Harness(format!("no randomness for keys: {error}")))?;
    let mut hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.replace_range(..1, "c");
    hex.replace_range(12..13, "4");
    hex.replace_range(16..17, "a");
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    Ok(format!("{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)))
}

fn harness(error: &dyn std::error::Error) -> Stop {
    Stop::Harness(ProbeError::Harness(format!("a task of the probe failed: {error}")))
}

const fn lost(loss: Loss, http2: bool) -> Option<&'static str> {
    match loss {
        Loss::Nothing => None,
        Loss::Reply => Some("the answer"),
        Loss::ReplyMidway => Some("the answer, from the middle of its body on"),
        Loss::RequestHead if http2 => Some("the request, from its body on"),
        Loss::RequestHead => Some("the request, from the middle of its head on"),
        Loss::RequestBody => Some("the request, from the middle of its body on"),
        Loss::Caller => Some("the caller, right after its request"),
    }
}

fn unmet(send: &Request, exchange: &Exchange) -> Option<Stop> {
    let met = |status: u16| send.want.iter().any(|wanted| Value::Number(status.into()).is(wanted));
    let found = match &exchange.answer {
        _ if send.want.is_empty() => return None,
        Some(answer) if met(answer.status) => return None,
        Some(answer) => answer.status.to_string(),
        None => exchange.fault.clone().unwrap_or_else(|| "no answer".to_owned()),
    };
    let wanted: Vec<String> = send.want.iter().map(wanted).collect();
    let why = format!("{:?} needs {}, and got {found}", exchange.name, wanted.join(" or "));
    Some(Stop::Unmet(send.otherwise, why))
}

fn wanted(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Number(number) => number.to_string(),
        Wanted::Truth(truth) => truth.to_string(),
        Wanted::Text(text) => text.clone(),
    }
}
