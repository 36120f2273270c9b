//! What an operation promises, as `[defaults]` and each `[[operation]]` spell it, with the value of each where nobody
//! said otherwise. `docs/reference/config.md` gives the reasons.

use std::collections::BTreeMap;
use std::time::Duration;

use counterfoil_core::policy::StillRunning;
use counterfoil_core::wire::ProblemType;
use counterfoil_core::{Effect, Expiry, Hold, Keyed, Rule};
use counterfoil_middleware::{ChildKeyHeader, Duplicates};
use http::{HeaderName, header};
use toml::Value;

use super::quantity::{SPAN_ACCEPTED, parse_span};
use super::reader::{Section, shown, text};
use super::setting::Setting;

const EXPIRED_ACCEPTED: &str = "\"new-action\" or \"refuse <span>\" like \"refuse 30d\"";
const DUPLICATES_ACCEPTED: &str = "\"refuse\" or \"wait <span>\" like \"wait 5s\"";
const MAX_AGE_ACCEPTED: &str = "\"any\" or a span like \"24h\", not longer than the retention";
const EFFECT_ACCEPTED: &str = "\"other\", \"keyed-upstream\", or \"coupled\" with a store on PostgreSQL";
const HOLD_ACCEPTED: &str = "\"optional\" or \"always\"";
const WINDOW_ACCEPTED: &str = "\"none\" or a span like \"24h\"";
const IN_PROGRESS_ACCEPTED: &str = "a status from 200 to 599, or the type of a problem document";
const CHILD_KEY_ACCEPTED: &str = "\"bare <header>\" or \"quoted <header>\" like \"quoted Idempotency-Key\"";
const STATUS_ACCEPTED: &str = "a status from 400 to 599";

/// The most items of a list in the file.
const ITEMS_MAX: usize = 64;

/// What an operation promises.
#[derive(Clone, PartialEq, Debug)]
pub struct Terms {
    /// How long a receipt is promised.
    pub retention: Setting<Duration>,
    /// What answers after that.
    pub expired: Setting<Expiry>,
    /// What a duplicate does while the action runs.
    pub duplicates: Setting<Duplicates>,
    /// Where the effect lives: elsewhere, in an upstream that has it once for each key, or in the store's own PostgreSQL.
    pub effect: Setting<Effect>,
    /// How long that upstream remembers a key; `None`: nobody said.
    pub window: Setting<Option<Duration>>,
    /// How that upstream says "still running".
    pub in_progress: Setting<StillRunning>,
    /// How that upstream wants its key.
    pub child_key: Setting<ChildKeyHeader>,
    /// Whether a coupled application always takes `counterfoil.hold` first.
    pub hold: Setting<Hold>,
    /// How requests are compared.
    pub fingerprint: Setting<Rule>,
    /// How old an action may be when it is first run; `None`: any.
    pub max_age: Setting<Option<Duration>>,
    /// How long a claim lasts without a renewal.
    pub lease: Setting<Duration>,
    /// How long the upstream may take.
    pub handler: Setting<Duration>,
    /// Further statuses that say "not processed".
    pub not_processed: Setting<Vec<u16>>,
    /// Other statuses for problem documents.
    pub statuses: Setting<BTreeMap<ProblemType, u16>>,
}

/// What a section says; what it does not say is `None`.
struct Said {
    effect: Option<Effect>,
    window: Option<Option<Duration>>,
    in_progress: Option<StillRunning>,
    child_key: Option<ChildKeyHeader>,
    hold: Option<Hold>,
    retention: Option<Duration>,
    expired: Option<Expiry>,
    duplicates: Option<Duplicates>,
    fingerprint: Option<Rule>,
    max_age: Option<Option<Duration>>,
    lease: Option<Duration>,
    handler: Option<Duration>,
    not_processed: Option<Vec<u16>>,
    statuses: Option<BTreeMap<ProblemType, u16>>,
}

impl Said {
    fn read(section: &Section<'_>) -> Self {
        Self {
            effect: section.text("effect", EFFECT_ACCEPTED, parse_effect),
            window: section.text("window", WINDOW_ACCEPTED, parse_window),
            in_progress: bounded(section, "in_progress", IN_PROGRESS_ACCEPTED, parse_in_progress).map(still_running),
            child_key: section.text("child_key", CHILD_KEY_ACCEPTED, parse_child_key),
            hold: section.text("hold", HOLD_ACCEPTED, parse_hold),
            retention: span(section, "retention", 1, 36_500 * 86_400),
            expired: section.text("expired", EXPIRED_ACCEPTED, parse_expired),
            duplicates: section.text("duplicates", DUPLICATES_ACCEPTED, parse_duplicates),
            fingerprint: section.table("fingerprint").and_then(parse_fingerprint),
            max_age: section.text("max_age", MAX_AGE_ACCEPTED, parse_max_age),
            lease: span(section, "lease", 1, 3600),
            handler: span(section, "handler", 1, 86_400),
            not_processed: bounded(section, "not_processed", STATUS_ACCEPTED, parse_status),
            statuses: section.table("statuses").map(parse_statuses),
        }
    }
}

impl Terms {
    /// Reads `[defaults]`; an absent section says nothing.
    pub(crate) fn defaults(section: Option<Section<'_>>, empty: &Section<'_>) -> Self {
        let said = Said::read(section.as_ref().unwrap_or(empty));
        let terms = Self {
            retention: Setting::or(said.retention, Duration::from_hours(24)),
            expired: Setting::or(said.expired, Expiry::NewAction),
            duplicates: Setting::or(said.duplicates, Duplicates::Refuse),
            effect: Setting::or(said.effect, Effect::Other),
            window: Setting::or(said.window, None),
            in_progress: Setting::or(said.in_progress, StillRunning::default()),
            child_key: Setting::or(said.child_key, ChildKeyHeader::default()),
            hold: Setting::or(said.hold, Hold::Optional),
            fingerprint: Setting::or(said.fingerprint, Rule::auto()),
            max_age: Setting::or(said.max_age, None),
            lease: Setting::or(said.lease, Duration::from_secs(30)),
            handler: Setting::or(said.handler, Duration::from_mins(1)),
            not_processed: Setting::or(said.not_processed, Vec::new()),
            statuses: Setting::or(said.statuses, BTreeMap::new()),
        };
        let section = section.inspect(|section| terms.judge(section));
        if let Some(section) = section {
            section.finish();
        }
        terms
    }

    /// Reads what an operation says beside its own settings; the caller finishes the section.
    pub(crate) fn of_operation(section: &Section<'_>, defaults: &Self) -> Self {
        let said = Said::read(section);
        let terms = Self {
            retention: Setting::or_inherited(said.retention, &defaults.retention),
            expired: Setting::or_inherited(said.expired, &defaults.expired),
            duplicates: Setting::or_inherited(said.duplicates, &defaults.duplicates),
            effect: Setting::or_inherited(said.effect, &defaults.effect),
            window: Setting::or_inherited(said.window, &defaults.window),
            in_progress: Setting::or_inherited(said.in_progress, &defaults.in_progress),
            child_key: Setting::or_inherited(said.child_key, &defaults.child_key),
            hold: Setting::or_inherited(said.hold, &defaults.hold),
            fingerprint: Setting::or_inherited(said.fingerprint, &defaults.fingerprint),
            max_age: Setting::or_inherited(said.max_age, &defaults.max_age),
            lease: Setting::or_inherited(said.lease, &defaults.lease),
            handler: Setting::or_inherited(said.handler, &defaults.handler),
            not_processed: Setting::or_inherited(said.not_processed, &defaults.not_processed),
            statuses: Setting::or_inherited(said.statuses, &defaults.statuses),
        };
        let said_here = [
            terms.retention.origin,
            terms.lease.origin,
            terms.max_age.origin,
            terms.hold.origin,
            terms.effect.origin,
            terms.window.origin,
            terms.in_progress.origin,
            terms.handler.origin,
        ];
        if said_here.contains(&super::setting::Origin::File) {
            terms.judge(section);
        }
        terms
    }

    /// What only two settings together can get wrong.
    fn judge(&self, section: &Section<'_>) {
        if self.retention.value < self.lease.value {
            let fault = "shorter than the lease: a receipt would be forgotten before a retry can ask for it";
            section.complain("retention", fault, "a span not shorter than the lease");
        }
        if self.hold.value == Hold::Always && self.effect.value != Effect::Coupled {
            let fault = "without effect = \"coupled\" there is no permit to hold";
            section.complain("hold", fault, "effect = \"coupled\" beside it");
        }
        if self.max_age.value.is_some_and(|max_age| max_age > self.retention.value) {
            let fault = "longer than the retention: a retry could be younger than what forgot it";
            section.complain("max_age", fault, "a span not longer than the retention");
        }
        self.judge_upstream(section);
    }

    /// What an upstream that has the effect by key must be known to do.
    fn judge_upstream(&self, section: &Section<'_>) {
        if self.effect.value != Effect::KeyedUpstream {
            let here = super::setting::Origin::File;
            let window = self.window.origin == here && self.window.value.is_some();
            let in_progress = self.in_progress.origin == here && !self.in_progress.value.is_empty();
            for (key, is_said) in [("window", window), ("in_progress", in_progress)] {
                if is_said {
                    let fault = "without effect = \"keyed-upstream\" no key is sent that could be remembered";
                    section.complain(key, fault, "effect = \"keyed-upstream\" beside it");
                }
            }
            return;
        }
        let accepted = "how long the upstream remembers a key, longer than one run and a margin of 5m or one run";
        match self.window.value {
            None => section.complain("window", "missing beside effect = \"keyed-upstream\"", accepted),
            Some(window) => {
                let attempt_limit = self.handler.value;
                if (Keyed { generation: 0, window, attempt_limit, doubt: false }).sends_for().is_zero() {
                    section.complain("window", "too short: no run could ever be sent again", accepted);
                }
            }
        }
        if self.in_progress.value.is_empty() {
            let accepted = "what the upstream answers while it still works on the same key, like [409]";
            section.complain("in_progress", "missing beside effect = \"keyed-upstream\"", accepted);
        }
    }
}

/// A span between two bounds, in seconds.
pub(crate) fn span(section: &Section<'_>, key: &'static str, least_s: u64, most_s: u64) -> Option<Duration> {
    section.text(key, SPAN_ACCEPTED, |text| {
        let span = parse_span(text)?;
        let (least, most) = (Duration::from_secs(least_s), Duration::from_secs(most_s));
        if span < least || span > most {
            let (least, most) = (super::quantity::print_span(least), super::quantity::print_span(most));
            return Err(format!("{text:?} is not between {least} and {most}"));
        }
        Ok(span)
    })
}

/// A list of at most 64 items.
pub(crate) fn bounded<T>(
    section: &Section<'_>,
    key: &'static str,
    accepted: &str,
    parse: impl Fn(&Value) -> Result<T, String>,
) -> Option<Vec<T>> {
    let items = section.list(key, accepted, parse)?;
    if items.len() > ITEMS_MAX {
        section.complain(key, format!("it has {} items", items.len()), format!("at most {ITEMS_MAX}"));
    }
    Some(items)
}

fn parse_max_age(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "any" => Ok(None),
        span => match parse_span(span)? {
            Duration::ZERO => Err("the span is zero".to_owned()),
            span => Ok(Some(span)),
        },
    }
}

fn parse_effect(text: &str) -> Result<Effect, String> {
    match text {
        "other" => Ok(Effect::Other),
        "coupled" => Ok(Effect::Coupled),
        "keyed-upstream" => Ok(Effect::KeyedUpstream),
        _ => Err(format!("{text:?} is no effect")),
    }
}

fn parse_window(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "none" => Ok(None),
        span => match parse_span(span)? {
            Duration::ZERO => Err("the span is zero".to_owned()),
            span => Ok(Some(span)),
        },
    }
}

/// The longest type of a problem document, in bytes.
const PROBLEM_TYPE_BYTES_MAX: usize = 1024;

/// A way to say "still running": by a status, or by a problem.
enum StillSaid {
    Status(u16),
    Problem(String),
}

fn parse_in_progress(value: &Value) -> Result<StillSaid, String> {
    let status = value.as_integer().and_then(|status| u16::try_from(status).ok());
    if let Some(status) = status.filter(|status| (200..=599).contains(status)) {
        return Ok(StillSaid::Status(status));
    }
    let plain = |text: &&str| {
        (1..=PROBLEM_TYPE_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let problem = value.as_str().filter(plain);
    problem.map(|problem| StillSaid::Problem(problem.to_owned())).ok_or_else(|| format!("{} is neither", shown(value)))
}

fn still_running(said: Vec<StillSaid>) -> StillRunning {
    let mut running = StillRunning::default();
    for said in said {
        match said {
            StillSaid::Status(status) => running.statuses.push(status),
            StillSaid::Problem(problem) => running.problems.push(problem),
        }
    }
    running
}

fn parse_child_key(text: &str) -> Result<ChildKeyHeader, String> {
    let (quoted, name) = match text.split_once(' ') {
        Some(("bare", name)) => (false, name),
        Some(("quoted", name)) => (true, name),
        None | Some(_) => return Err(format!("{text:?} says nothing about a key")),
    };
    let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header name"))?;
    if [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING].contains(&name) {
        return Err(format!("{name} is needed for something else"));
    }
    Ok(ChildKeyHeader { name, quoted })
}

fn parse_hold(text: &str) -> Result<Hold, String> {
    match text {
        "optional" => Ok(Hold::Optional),
        "always" => Ok(Hold::Always),
        _ => Err(format!("{text:?} is neither")),
    }
}

fn parse_expired(text: &str) -> Result<Expiry, String> {
    match text.split_once(' ') {
        None if text == "new-action" => Ok(Expiry::NewAction),
        Some(("refuse", span)) => match parse_span(span)? {
            Duration::ZERO => Err("the span is zero".to_owned()),
            span => Ok(Expiry::Refuse(span)),
        },
        None | Some(_) => Err(format!("{text:?} says nothing about expired keys")),
    }
}

/// The longest wait: connections in between rarely live longer.
const WAIT_MAX: Duration = Duration::from_mins(5);

fn parse_duplicates(text: &str) -> Result<Duplicates, String> {
    match text.split_once(' ') {
        None if text == "refuse" => Ok(Duplicates::Refuse),
        Some(("wait", span)) => match parse_span(span)? {
            Duration::ZERO => Err("the span is zero".to_owned()),
            span if span > WAIT_MAX => Err(format!("{text:?} is longer than 5m")),
            span => Ok(Duplicates::Wait(span)),
        },
        None | Some(_) => Err(format!("{text:?} says nothing about duplicates")),
    }
}

fn parse_fingerprint(section: Section<'_>) -> Option<Rule> {
    let kind = section.text("body", "\"auto\", \"bytes\", \"json\", \"form\" or \"multipart\"", |text| match text {
        "auto" => Ok(Rule::auto()),
        "bytes" => Ok(Rule::bytes()),
        "json" => Ok(Rule::json()),
        "form" => Ok(Rule::form()),
        "multipart" => Ok(Rule::multipart()),
        _ => Err(format!("{text:?} is no way to compare bodies")),
    });
    let item = |value: &Value| text(value).map(str::to_owned);
    let pointer = "a json pointer like \"/sent_at\"";
    let ignore = section.list("ignore", pointer, item).unwrap_or_default();
    let choose = section.list("choose", pointer, item).unwrap_or_default();
    let headers = section.list("headers", "a header name", item).unwrap_or_default();
    let rule = kind.unwrap_or_else(Rule::auto);
    let made = rule.ignoring(ignore).and_then(|rule| rule.choosing(choose)).and_then(|rule| rule.with_headers(headers));
    let made = match made {
        Ok(rule) => Some(rule),
        Err(error) => {
            section.complain_here(error.to_string(), "{ body, ignore or choose, headers } that fit each other");
            None
        }
    };
    section.finish();
    made
}

fn parse_status(value: &Value) -> Result<u16, String> {
    let status = value.as_integer().and_then(|status| u16::try_from(status).ok());
    let status = status.filter(|status| (400..=599).contains(status));
    status.ok_or_else(|| format!("{} is no such status", shown(value)))
}

fn parse_statuses(section: Section<'_>) -> BTreeMap<ProblemType, u16> {
    let mut statuses = BTreeMap::new();
    for (name, value) in section.entries() {
        let kind = ProblemType::ALL.into_iter().find(|kind| kind.name() == name);
        match (kind, parse_status(value)) {
            (Some(kind), Ok(status)) => {
                statuses.insert(kind, status);
            }
            (Some(_), Err(fault)) => section.complain(name, fault, STATUS_ACCEPTED),
            (None, _) => {
                let names = ProblemType::ALL.map(ProblemType::name).join(", ");
                section.complain(name, "unknown problem type", format!("one of {names}"));
            }
        }
    }
    statuses
}
