//! Runs the steps of a case once: sends, waits and counts as the case says, and keeps every exchange.
//!
//! What does not belong here: which cases run (`probe.rs`), and what the exchanges show (`fact.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use crate::case::{Case, Hook, Loss, Otherwise, Request, State, Step, To, Wanted};
use crate::error::ProbeError;
use crate::exchange::Exchange;
use crate::fact::{Mark, Round, Value};
use crate::hook;
use crate::lack::Lack;
use crate::observer;
use crate::target::{Address, Prepared, Sent, Target};
use crate::wire::{Carried, Connection, NO_TWO, Wire};

/// Why a round ended before its last step.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A step cannot be done.
    Lack(Lack),
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
    /// How many requests of the target one count is itself.
    pub(crate) own_counts: u64,
    pub(crate) last_sent: Option<Instant>,
}

/// One request before it is sent.
struct Ready {
    address: Address,
    prepared: Prepared,
    exchange: Exchange,
}

type Came = (Carried, Option<Connection>);

/// What a round has begun.
struct Open<'a> {
    case: &'a Case,
    number: u32,
    /// Whether the case is about refusals for the rate.
    limits: bool,
    keys: BTreeMap<String, String>,
    kept: Option<Connection>,
    started: BTreeMap<String, (usize, JoinHandle<Came>)>,
    round: Round,
}

impl Runner {
    /// Runs all steps. What was exchanged comes back also where it stopped early.
    pub(crate) async fn round(&mut self, case: &Case, number: u32) -> (Round, Option<Stop>) {
        let limits = case.hooks().any(|hook| hook == Hook::State { to: State::Limited });
        let (keys, started) = (BTreeMap::new(), BTreeMap::new());
        let mut open = Open { case, number, limits, keys, kept: None, started, round: Round::default() };
        // What was not given is known before anything is sent, and costs no effect.
        let before = Sent { key: Some("key"), made: None };
        let lack = case.sends().find_map(|send| self.target.request(send, before).err());
        let lack = lack.or_else(|| case.hooks().find_map(|hook| self.target.hooks.call(hook).err()));
        if let Some(lack) = lack {
            return (open.round, Some(Stop::Lack(lack)));
        }
        let mut stop = self.mark(&mut open, "").await.err();
        for step in &case.steps {
            if stop.is_some() {
                break;
            }
            stop = self.step(&mut open, step).await.err();
        }
        for (_, (_, task)) in std::mem::take(&mut open.started) {
            task.abort();
        }
        // Also a round that stopped says what it left behind.
        let end = self.mark(&mut open, "").await.err();
        stop = stop.or(end);
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
            Step::Finish { of } => {
                let Some((at, task)) = open.started.remove(of) else { return Ok(()) };
                let (carried, _) = task.await.map_err(|error| harness(&error))?;
                match open.round.exchanges.get_mut(at) {
                    Some(exchange) => self.finish(exchange, carried, open.limits),
                    None => Ok(()),
                }
            }
            Step::Await { of } => {
                let patience = self.patience;
                let Some((_, task)) = open.started.get_mut(of) else { return Ok(()) };
                // Whether it came is for `finish` to see.
                let watch = async {
                    while !task.is_finished() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                let _ = tokio::time::timeout(patience, watch).await;
                Ok(())
            }
            Step::Hook(hook) => self.hook(*hook).await,
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
        }
    }

    /// A state that the command does not know is a question that cannot be put; the rest is a setup that failed.
    async fn hook(&self, hook: Hook) -> Result<(), Stop> {
        let call = self.target.hooks.call(hook).map_err(Stop::Lack)?;
        let done = hook::run(&call).await;
        done.map_err(|why| match hook {
            Hook::State { .. } => Stop::Lack(Lack::Missing(why)),
            Hook::Restart | Hook::Kill | Hook::Clock { .. } => Stop::Unmet(Otherwise::SetupFailed, why),
        })
    }

    async fn send(&mut self, open: &mut Open<'_>, send: &Request) -> Result<(), Stop> {
        let Ready { address, prepared, mut exchange } = self.ready(open, send).await?;
        let kept = if send.keep { open.kept.take() } else { None };
        let (carried, connection) = self.wire.carry(&address, &prepared.outgoing(), None, kept).await;
        open.kept = if send.keep { connection } else { open.kept.take() };
        let outcome = self.finish(&mut exchange, carried, open.limits);
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
            outcome = outcome.and(self.finish(&mut exchange, carried, open.limits));
            open.round.exchanges.push(exchange);
        }
        outcome
    }

    /// Prepares a request, no sooner than the pace allows.
    async fn ready(&mut self, open: &mut Open<'_>, send: &Request) -> Result<Ready, Stop> {
        let key = match send.key.as_str() {
            "none" => None,
            name => Some(open.key(name)?),
        };
        let made = send.of.as_deref().and_then(|name| open.round.exchanges.iter().find(|earlier| earlier.name == name));
        let sent = Sent { key: key.as_deref(), made: made.and_then(|earlier| earlier.answer.as_ref()) };
        if send.to == To::Item && sent.made.is_none() {
            return Err(Stop::Lack("nothing was made".into()));
        }
        let (address, prepared) = self.target.request(send, sent).map_err(Stop::Lack)?;
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
            path: prepared.path.clone(),
            protocol: prepared.protocol().to_owned(),
            headers: prepared.headers.clone(),
            body: String::from_utf8_lossy(&prepared.body).into_owned(),
            key_bytes: prepared.key.as_ref().map_or(0, String::len),
            key: prepared.key.clone(),
            lost: lost(send.lose).map(str::to_owned),
            ..Exchange::default()
        };
        Ok(Ready { address, prepared, exchange })
    }

    /// Writes down what came of a request; 429 disturbs unless it is what the case is about.
    fn finish(&self, exchange: &mut Exchange, carried: Carried, limits: bool) -> Result<(), Stop> {
        let micros = |at: Instant| u64::try_from((at - self.began).as_micros()).unwrap_or(u64::MAX);
        exchange.sent_at = micros(carried.sent_at);
        exchange.sent_whole_at = carried.sent_whole_at.map(micros);
        exchange.first_byte_at = carried.first_byte_at.map(micros);
        exchange.ended_at = micros(Instant::now());
        exchange.answer = carried.answer;
        exchange.fault = carried.fault;
        // Whether the target speaks HTTP/2 shows only in the handshake.
        if let Some(fault) = exchange.fault.as_ref().filter(|fault| fault.ends_with(NO_TWO)) {
            return Err(Stop::Lack(Lack::Missing(fault.clone())));
        }
        let unreachable = exchange.fault.as_ref().filter(|fault| fault.contains("cannot be reached"));
        let limited = exchange.answer.as_ref().is_some_and(|answer| answer.status == 429 && !limits);
        match (unreachable, limited) {
            (Some(fault), _) => Err(Stop::Disturbed(fault.clone())),
            (None, true) => Err(Stop::Disturbed("the target refuses for the rate (429); use --rate".to_owned())),
            (None, false) => Ok(()),
        }
    }

    async fn mark(&mut self, open: &mut Open<'_>, name: &str) -> Result<(), Stop> {
        let counters = [&self.target.counter, &self.target.requests];
        if !open.round.exchanges.is_empty() && counters.iter().any(|counter| counter.is_some()) {
            tokio::time::sleep(self.settle).await;
        }
        let counted = observer::both(&self.target, &self.wire).await.map_err(Stop::Disturbed)?;
        let exchanges = open.round.exchanges.len();
        open.round.marks.push(Mark {
            name: name.to_owned(),
            exchanges,
            count: counted.effects,
            requests: counted.requests,
        });
        Ok(())
    }
}

impl Open<'_> {
    /// The key of a name: the same within a round, never used in another.
    fn key(&mut self, name: &str) -> Result<String, Stop> {
        if let Some(key) = self.keys.get(name) {
            return Ok(key.clone());
        }
        let key = new_key().map_err(Stop::Harness)?;
        self.keys.insert(name.to_owned(), key.clone());
        Ok(key)
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

const fn lost(loss: Loss) -> Option<&'static str> {
    match loss {
        Loss::Nothing => None,
        Loss::Reply => Some("the answer"),
        Loss::ReplyMidway => Some("the answer, from the middle of its body on"),
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
