//! Callers that call as fast as they are answered, for a span, and what is counted of them.
//!
//! What is called belongs to the tables; how figures are put together to `table`.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::Fault;
use crate::machine;
use crate::options::Options;

/// When answers count: after the warm-up, for the span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    from: Instant,
    until: Instant,
}

impl Window {
    /// A window that opens when the warm-up that begins now is over.
    pub(crate) fn begin(options: &Options) -> Self {
        let from = Instant::now() + options.warm_up;
        Self { from, until: from + options.span }
    }

    /// Whether another call may begin.
    pub(crate) fn open(&self) -> bool {
        Instant::now() < self.until
    }
}

/// What a call came to.
#[derive(Debug)]
pub(crate) enum Did {
    /// It was answered as it should be.
    Done,
    /// It was refused as it should be: an answer, and no effect.
    Refused,
    /// The store said that it is busy.
    Busy,
    /// Anything else.
    Failed(String),
}

/// What callers got.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Calls that were done, warm-up and late ones included.
    pub(crate) done: u64,
    /// Microseconds of each answer inside the window.
    pub(crate) micros: Vec<u32>,
    pub(crate) busy: u64,
    pub(crate) failed: u64,
    pub(crate) first_failure: Option<String>,
}

impl Tally {
    /// Counts one call. `begun` is when it was made.
    pub(crate) fn note(&mut self, window: &Window, begun: Instant, did: Did) {
        match did {
            Did::Done | Did::Refused => {
                let ended = Instant::now();
                self.done += u64::from(matches!(did, Did::Done));
                if window.from <= ended && ended < window.until {
                    self.micros.push(u32::try_from((ended - begun).as_micros()).unwrap_or(u32::MAX));
                }
            }
            Did::Busy => self.busy += 1,
            Did::Failed(why) => {
                self.failed += 1;
                self.first_failure.get_or_insert(why);
            }
        }
    }

    /// Both together.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.done += other.done;
        self.micros.append(&mut other.micros);
        self.busy += other.busy;
        self.failed += other.failed;
        self.first_failure = self.first_failure.or(other.first_failure);
        self
    }
}

/// What was used so far by whoever is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Transactions that the store has committed; `None` where nobody counts them.
    pub(crate) commits: Option<u64>,
}

impl Usage {
    /// This process's, which commits once for every call or does not count.
    pub(crate) fn own() -> Result<Self, Fault> {
        Ok(Self { cpu: machine::cpu(), commits: None })
    }
}

/// A load that was run: what the callers got, and what was used between the window's ends.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) tally: Tally,
    pub(crate) span: Duration,
    pub(crate) cpu: Duration,
    pub(crate) commits: Option<u64>,
}

impl Load {
    fn new(tally: Tally, span: Duration, before: Usage, after: Usage) -> Self {
        let commits = before.commits.zip(after.commits).map(|(before, after)| after.saturating_sub(before));
        Self { tally, span, cpu: after.cpu.saturating_sub(before.cpu), commits }
    }
}

/// Runs `callers` threads, each with a call of its own from `make`.
pub(crate) fn threads<Call>(
    callers: usize,
    window: Window,
    usage: impl Fn() -> Result<Usage, Fault>,
    make: impl Fn() -> Call,
) -> Result<Load, Fault>
where
    Call: FnMut() -> Did + Send,
{
    thread::scope(|scope| {
        let start = |mut call: Call| {
            scope.spawn(move || {
                let mut tally = Tally::default();
                while window.open() {
                    let begun = Instant::now();
                    let did = call();
                    tally.note(&window, begun, did);
                }
                tally
            })
        };
        let running: Vec<_> = (0..callers).map(|_| start(make())).collect();
        thread::sleep(window.from.saturating_duration_since(Instant::now()));
        let before = usage();
        thread::sleep(window.until.saturating_duration_since(Instant::now()));
        let after = usage();
        let mut tally = Tally::default();
        for caller in running {
            tally = tally.and(caller.join().map_err(|_| "a caller panicked")?);
        }
        Ok(Load::new(tally, window.until - window.from, before?, after?))
    })
}

/// Runs `callers` tasks on the runtime that is entered, each of them made by `make`; a task calls until the window
/// closes and answers its tally.
pub(crate) async fn tasks<Caller>(
    callers: usize,
    window: Window,
    usage: impl Fn() -> Result<Usage, Fault>,
    make: impl Fn() -> Caller,
) -> Result<Load, Fault>
where
    Caller: Future<Output = Tally> + Send + 'static,
{
    let mut running = JoinSet::new();
    for _ in 0..callers {
        running.spawn(make());
    }
    tokio::time::sleep_until(window.from.into()).await;
    let before = usage()?;
    tokio::time::sleep_until(window.until.into()).await;
    let after = usage()?;
    let mut tally = Tally::default();
    while let Some(caller) = running.join_next().await {
        tally = tally.and(caller?);
    }
    Ok(Load::new(tally, window.until - window.from, before, after))
}

/// One caller: the next call begins when the last was answered, until the window closes. `call` gets the number of the
/// call.
pub(crate) async fn calls<Answer>(window: Window, mut call: impl FnMut(u64) -> Answer) -> Tally
where
    Answer: Future<Output = Did>,
{
    let mut tally = Tally::default();
    let mut number = 0;
    while window.open() {
        number += 1;
        let begun = Instant::now();
        let did = call(number).await;
        tally.note(&window, begun, did);
        // A call that was answered without waiting would otherwise keep the thread from all other callers.
        tokio::task::yield_now().await;
    }
    tally
}

/// The runtime that async callers and servers run on: tokio's own default.
pub(crate) fn runtime() -> Result<Runtime, Fault> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}
