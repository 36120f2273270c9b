//! A run from its settings to its result: what is chosen, what it may cost, controls first, budgets kept.
//!
//! What does not belong here: how one round is sent (`round.rs`), and how it is judged (`judge.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::arrivals::{self, Late};
use crate::case::{Case, Step};
use crate::catalogue::Catalogue;
use crate::error::ProbeError;
use crate::exchange::{Exchange, overlapped};
use crate::fact::{Round, Seen, Value, id_of, look};
use crate::judge::{Evidence, Judgement, judge, tally};
use crate::observer;
use crate::redact::Redaction;
use crate::round::{Runner, Stop};
use crate::run::{CaseResult, FORMAT, Run};
use crate::settings::Settings;
use crate::target::Target;
use crate::verdict::Verdict;
use crate::wire::Wire;

/// The most effects that a run risks where nothing is said.
const EFFECTS_MAX: u32 = 500;
/// The most requests where nothing is said.
const REQUESTS_MAX: u32 = 2_000;
/// How long new cases are begun where nothing is said.
const BEGIN_WITHIN: Duration = Duration::from_mins(10);
/// The most requests in a second to another machine where nothing is said.
const POLITE_RATE: u32 = 5;
/// How long an answer may take where nothing is said.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long effects may take to be counted where nothing is said.
const SETTLE: Duration = Duration::from_millis(20);
/// How long "still under way" is borne where nothing is said.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a run would do, told before it does it. A case that lacks something sends nothing, and is in no sum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The target.
    pub target: String,
    /// The ids of the cases, in order.
    pub cases: Vec<String>,
    /// The most requests.
    pub requests: u32,
    /// Effects on a target that keeps its promise.
    pub effects: u32,
    /// Effects on a target that keeps none.
    pub effects_worst: u32,
    /// How effects are seen: 0 answers only, 1 ids, 2 a request, 3 a command.
    pub observer: u8,
    /// How many cases are left out, because flags were not given that they need.
    pub left_out: usize,
    /// Those flags.
    pub flags: BTreeSet<&'static str>,
}

/// What a run may cost.
#[derive(Clone, Copy, Debug)]
struct Budget {
    effects: u32,
    requests: u32,
    time: Duration,
}

/// A run that is ready to begin.
pub struct Probe {
    target: Arc<Target>,
    wire: Wire,
    cases: Vec<Case>,
    left_out: Vec<Case>,
    named: bool,
    budget: Budget,
    pace: Duration,
    settle: Duration,
    patience: Duration,
    url: String,
}

/// The field of the sheet that says whether the key was honoured where it stood.
const REPLAYED: &str = "replay.is";

impl Probe {
    /// Judges the settings and chooses the cases, with those that they depend on.
    ///
    /// # Errors
    /// [`ProbeError::Usage`] where a setting is wrong, no case is named so, or the target is beyond this machine and
    /// `i_own_this_api` does not say that it may be tried.
    pub fn new(settings: &Settings, catalogue: Catalogue) -> Result<Self, ProbeError> {
        let target = Target::of(settings)?;
        let further = target.means.places.values().map(|further| &further.address);
        let elsewhere = std::iter::once(&target.address).chain(further);
        if let Some(address) = elsewhere.filter(|address| !address.is_loopback()).find(|_| !settings.i_own_this_api) {
            let why = "it makes real effects there; say --i-own-this-api if you may";
            return Err(ProbeError::Usage(format!("{} is not this machine, and {why}", address.host)));
        }
        let authorities = settings.ca.as_deref().map(std::fs::read).transpose();
        let authorities =
            authorities.map_err(|error| ProbeError::Usage(format!("the file of authorities: {error}")))?;
        let answer_within = settings.answer_within.map_or(ANSWER_WITHIN, Duration::from_secs);
        let rate = settings.rate.or((!target.address.is_loopback()).then_some(POLITE_RATE));
        // What needs a hook is asked where there is one, or where it is asked for by name.
        let named = !settings.case.is_empty();
        let (cases, left_out): (Vec<Case>, Vec<Case>) = chosen(catalogue, &settings.case)?
            .into_iter()
            .partition(|case| named || target.means.missing(case).is_empty());
        Ok(Self {
            wire: Wire::new(authorities.as_deref(), answer_within)?,
            cases,
            left_out,
            named,
            budget: Budget {
                effects: settings.max_effects.unwrap_or(EFFECTS_MAX),
                requests: settings.max_requests.unwrap_or(REQUESTS_MAX),
                time: settings.max_seconds.map_or(BEGIN_WITHIN, Duration::from_secs),
            },
            pace: rate.filter(|rate| *rate > 0).map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate),
            settle: settings.settle_ms.map_or(SETTLE, Duration::from_millis),
            patience: settings.patience_ms.map_or(PATIENCE, Duration::from_millis),
            url: settings.url.clone().unwrap_or_default(),
            target: Arc::new(target),
        })
    }

    /// What the run would do. Nothing is sent.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let asked: Vec<&Case> = self.cases.iter().filter(|case| self.target.lacks(case).is_none()).collect();
        let sum = |each: fn(&Case) -> u32| asked.iter().map(|case| each(case)).fold(0, u32::saturating_add);
        Plan {
            target: self.url.clone(),
            cases: self.cases.iter().map(|case| case.id.clone()).collect(),
            requests: sum(Case::sends_max),
            effects: sum(|case| case.effects.saturating_mul(case.rounds)),
            effects_worst: sum(effects_worst),
            observer: self.target.observer(),
            left_out: self.left_out.len(),
            flags: self.left_out.iter().flat_map(|case| self.target.means.missing(case)).collect(),
        }
    }

    /// Runs the cases, and tells each result as it comes.
    ///
    /// # Errors
    /// [`ProbeError::Unreachable`] where the target or what counts effects is out of reach from the start.
    pub async fn run(&self, mut tell: impl FnMut(&CaseResult)) -> Result<Run, ProbeError> {
        let before = self.reach().await?;
        let mut runner = Runner {
            target: Arc::clone(&self.target),
            wire: self.wire.clone(),
            began: Instant::now(),
            requests: 0,
            pace: self.pace,
            settle: self.settle,
            patience: self.patience,
            last_sent: None,
            clock_moved: 0,
            late: Late::default(),
            limits: false,
            both: self.wire.offers_both(&self.target.address).await,
        };
        let redaction = Redaction::new(&self.target);
        let mut run = Run {
            format: FORMAT,
            target: self.url.clone(),
            contract: self.target.contract.name().to_owned(),
            began: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            observer: self.target.observer(),
            results: Vec::new(),
            exchanges: Vec::new(),
            effects_left: None,
            ids_left: Vec::new(),
        };
        let (mut voided, mut risked) = (BTreeSet::new(), 0_u32);
        for case in &self.cases {
            let held_back = self.held_back(case, &voided, risked, &runner);
            let (rounds, judgement, facts) = match held_back {
                Some(judgement) => (Vec::new(), judgement, BTreeMap::new()),
                None => self.ask(case, &mut runner).await,
            };
            risked = risked.saturating_add(self.made(&rounds));
            if judgement.verdict.voids() {
                voided.insert(case.id.clone());
            }
            run.ids_left.extend(self.ids(&rounds));
            let result = self.result(case, &rounds, judgement, facts, &redaction);
            tell(&result);
            run.results.push(result);
            run.exchanges.extend(rounds.into_iter().flat_map(|round| round.exchanges));
        }
        for exchange in &mut run.exchanges {
            redaction.clean(exchange);
        }
        run.ids_left.sort();
        run.ids_left.dedup();
        if let (Some(before), Some(counter)) = (before, &self.target.counter) {
            let after = observer::count(counter, &self.target, &self.wire).await;
            run.effects_left = after.ok().map(|after| after.saturating_sub(before));
        }
        Ok(run)
    }

    /// Whether the target takes connections, and the number of effects before the run where they are counted.
    async fn reach(&self) -> Result<Option<u64>, ProbeError> {
        self.wire.reach(&self.target.address).await.map_err(ProbeError::Unreachable)?;
        let arrived = arrivals::count(&self.target, &self.wire).await.map_err(ProbeError::Unreachable)?;
        let made = match &self.target.counter {
            Some(counter) => observer::count(counter, &self.target, &self.wire).await.map(Some),
            None => Ok(None),
        };
        let made = made.map_err(ProbeError::Unreachable)?;
        arrivals::rest(&self.target, &self.wire, arrived).await?;
        Ok(made)
    }

    /// Why a case does not run at all.
    fn held_back(&self, case: &Case, voided: &BTreeSet<String>, risked: u32, runner: &Runner) -> Option<Judgement> {
        if let Some(below) = case.depends_on.iter().find(|id| voided.contains(*id)) {
            return Some(Judgement::new(Verdict::DependsOnFailed, format!("{below} failed")));
        }
        if !case.safe && !self.named {
            return Some(Judgement::new(Verdict::SkippedUnsafe, "it may do harm; name it with --case"));
        }
        let spent = |what: &str| Some(Judgement::new(Verdict::Inconclusive, format!("the budget of {what} is spent")));
        if risked.saturating_add(effects_worst(case)) > self.budget.effects {
            return spent("effects");
        }
        if runner.requests.saturating_add(case.sends_max()) > self.budget.requests {
            return spent("requests");
        }
        if runner.began.elapsed() > self.budget.time {
            return spent("time");
        }
        None
    }

    async fn ask(&self, case: &Case, runner: &mut Runner) -> (Vec<Round>, Judgement, BTreeMap<String, Seen>) {
        let mut rounds = Vec::new();
        let mut evidence = Evidence::default();
        for number in 1..=case.rounds {
            let (round, stop) = runner.round(case, number).await;
            rounds.push(round);
            match stop {
                None => {}
                Some(Stop::Missing(why)) => evidence.missing = Some(why),
                Some(Stop::Unmet(otherwise, why)) => evidence.unmet = Some((otherwise, why)),
                Some(Stop::Disturbed(why)) => evidence.disturbed = Some(why),
                Some(Stop::Harness(error)) => {
                    let judgement = Judgement::new(Verdict::HarnessError, error.to_string());
                    return (rounds, judgement, BTreeMap::new());
                }
            }
            if evidence.missing.is_some() || evidence.unmet.is_some() || evidence.disturbed.is_some() {
                break;
            }
        }
        let id = self.target.id.as_ref();
        evidence.facts = case
            .facts
            .iter()
            .map(|(name, fact)| (name.clone(), all(rounds.iter().map(|round| look(fact, round, id)))))
            .collect();
        let sent = |round: &Round| u64::try_from(round.exchanges.len()).unwrap_or(u64::MAX);
        evidence.retried =
            rounds.iter().any(|round| round.effects(None, None, id).is_ok_and(|made| made > sent(round)));
        evidence.repeated = rounds.iter().find_map(|round| round.repeated.clone());
        let races: Vec<Vec<&Exchange>> =
            race(case).into_iter().flat_map(|name| rounds.iter().map(move |round| round.named(name))).collect();
        evidence.overlapped = (!races.is_empty()).then(|| races.iter().any(|group| overlapped(group)));
        let judgement = judge(case, self.target.contract, &evidence);
        (rounds, judgement, evidence.facts)
    }

    /// How many effects rounds made, at most as many as requests went out.
    fn made(&self, rounds: &[Round]) -> u32 {
        let each = |round: &Round| match round.effects(None, None, self.target.id.as_ref()) {
            Ok(count) => u32::try_from(count).unwrap_or(u32::MAX),
            Err(_) => u32::try_from(round.exchanges.len()).unwrap_or(u32::MAX),
        };
        rounds.iter().map(each).fold(0, u32::saturating_add)
    }

    fn ids(&self, rounds: &[Round]) -> Vec<String> {
        let Some(place) = &self.target.id else { return Vec::new() };
        let answers = rounds.iter().flat_map(|round| &round.exchanges).filter_map(|exchange| exchange.answer.as_ref());
        answers.filter(|answer| answer.is_success()).filter_map(|answer| id_of(answer, place)).collect()
    }

    fn result(
        &self,
        case: &Case,
        rounds: &[Round],
        judgement: Judgement,
        facts: BTreeMap<String, Seen>,
        redaction: &Redaction,
    ) -> CaseResult {
        let told = |seen: &Seen| match seen {
            Seen::Values(values) => tally(values),
            Seen::Unobservable(why) | Seen::NotReached(why) => format!("not seen: {why}"),
        };
        let sheet = case.sheet.iter().filter(|_| judgement.verdict.is_answer());
        let sheet = sheet.filter_map(|(field, fact)| Some((field.clone(), one_value(facts.get(fact)?)?)));
        let mut sheet: BTreeMap<String, Value> = sheet.collect();
        if sheet.contains_key(REPLAYED) {
            sheet.extend(self.target.placed());
        }
        CaseResult {
            id: case.id.clone(),
            row: case.row.clone(),
            asks: case.asks.clone(),
            kind: case.kind_under(self.target.contract).name().to_owned(),
            clause: case.clause.clone(),
            verdict: judgement.verdict,
            why: redaction.text(&judgement.why),
            expected: judgement.expected,
            summary: self.summary(rounds),
            sheet,
            facts: facts.iter().map(|(name, seen)| (name.clone(), redaction.text(&told(seen)))).collect(),
            observations: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
            exchanges: rounds.iter().flat_map(|round| &round.exchanges).map(|exchange| exchange.number).collect(),
        }
    }

    /// `2 sent, 201 ×2, effects 1`.
    fn summary(&self, rounds: &[Round]) -> String {
        let sent: Vec<&Exchange> = rounds.iter().flat_map(|round| &round.exchanges).collect();
        if sent.is_empty() {
            return String::new();
        }
        let status = |exchange: &&Exchange| match &exchange.answer {
            Some(answer) => Value::Number(answer.status.into()),
            None => Value::text("no answer"),
        };
        let mut text = format!("{} sent, {}", sent.len(), tally(&sent.iter().map(status).collect::<Vec<_>>()));
        let counts: Result<Vec<u64>, String> =
            rounds.iter().map(|round| round.effects(None, None, self.target.id.as_ref())).collect();
        if let Ok(counts) = counts {
            text.push_str(&format!(", effects {}", counts.iter().sum::<u64>()));
            if rounds.len() > 1 {
                text.push_str(&format!(" in {} rounds", rounds.len()));
            }
        }
        text
    }
}

/// How many effects a case makes on a target that keeps no promise: a loop ends with the first success.
fn effects_worst(case: &Case) -> u32 {
    let each = |step: &Step| match step {
        Step::Send(_) | Step::Start(_) | Step::Until { .. } => 1,
        Step::Together { sends, times } => u32::try_from(sends.len()).unwrap_or(u32::MAX).saturating_mul(*times),
        Step::Finish { .. } | Step::Await { .. } | Step::Wait { .. } | Step::Mark { .. } | Step::Hook { .. } => 0,
    };
    case.steps.iter().map(each).sum::<u32>().saturating_mul(case.rounds)
}

/// The names of requests that go out at once.
fn race(case: &Case) -> BTreeSet<&str> {
    let each = |step: &'_ Step| match step {
        Step::Together { .. } => true,
        Step::Send(_) | Step::Start(_) | Step::Until { .. } => false,
        Step::Finish { .. } | Step::Await { .. } | Step::Wait { .. } | Step::Mark { .. } | Step::Hook { .. } => false,
    };
    let together = case.steps.iter().filter(|step| each(step));
    let sends = together.flat_map(|step| if let Step::Together { sends, .. } = step { sends.as_slice() } else { &[] });
    sends.map(|send| send.r#as.as_str()).collect()
}

/// A fact over all rounds: every value, and a reason only where no round had one.
fn all(rounds: impl Iterator<Item = Seen>) -> Seen {
    let (mut values, mut other) = (Vec::new(), None);
    for seen in rounds {
        match seen {
            Seen::Values(more) => values.extend(more),
            Seen::Unobservable(_) => return seen,
            Seen::NotReached(_) => other = Some(seen),
        }
    }
    match other {
        Some(other) if values.is_empty() => other,
        Some(_) | None => Seen::Values(values),
    }
}

/// The value for the sheet: one, or all distinct ones as a text.
fn one_value(seen: &Seen) -> Option<Value> {
    let Seen::Values(values) = seen else { return None };
    let distinct: BTreeSet<&Value> = values.iter().collect();
    match distinct.len() {
        0 => None,
        1 => values.first().cloned(),
        _ => Some(Value::Text(distinct.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
    }
}

/// The cases that are asked for, with those that they depend on; all where nothing is asked for.
fn chosen(catalogue: Catalogue, asked: &[String]) -> Result<Vec<Case>, ProbeError> {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for name in asked {
        let named = catalogue.cases.iter().filter(|case| case.is_named(name)).map(|case| case.id.clone());
        let named: Vec<String> = named.collect();
        if named.is_empty() {
            return Err(ProbeError::Usage(format!("no case is called {name:?} or begins so; --list shows all")));
        }
        wanted.extend(named);
    }
    if !asked.is_empty() {
        wanted.extend(catalogue.cases.iter().filter(|case| case.control).map(|case| case.id.clone()));
        // A case stands after those that it depends on, so one way back is enough.
        for case in catalogue.cases.iter().rev() {
            if wanted.contains(&case.id) {
                wanted.extend(case.depends_on.iter().cloned());
            }
        }
    }
    Ok(catalogue.cases.into_iter().filter(|case| asked.is_empty() || wanted.contains(&case.id)).collect())
}
