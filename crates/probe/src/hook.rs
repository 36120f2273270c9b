//! What the probe has beside one target and one caller: hooks into the target, other credentials, further places, a
//! window; and how a hook's command is run.
//!
//! What does not belong here: when a hook runs (the cases), and what it means for a round (`round/hooked.rs`).

use std::collections::BTreeMap;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{self, StrDeserializer};
use tokio::process::Command;
use tokio::time::timeout;

use crate::case::{Body, Case, Credential, FirstSent, KeyForm, Step};
use crate::error::ProbeError;
use crate::place::{Further, Place};
use crate::settings::Settings;
use crate::target::{header, secret};

/// The place of keys that say when they were used first.
const REPEATABLE: &str = "header:Repeatability-Request-ID";
/// How long a hook's command may take; long enough for a window that is waited for.
const HOOK_WITHIN: Duration = Duration::from_mins(2);
/// The shortest window that can be asked about: the requests themselves take time.
const WINDOW_MIN_SECONDS: u64 = 10;
/// How far from the end of a window is asked, at most.
const MARGIN_MAX_SECONDS: u64 = 60;

/// What is done to the target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Ended in good order, and started again; the command returns when the old one has ended.
    Restart,
    /// Killed without warning, as SIGKILL does, and started again.
    Kill,
    /// Its clock moved on by `PROBE_SECONDS`; `PROBE_SECONDS_TOTAL` is how far it was moved in all.
    Clock,
    /// Its power cut: what was written and not synced is lost; started again.
    PowerCut,
    /// A backup of its store taken.
    Backup,
    /// That backup restored.
    Restore,
    /// From now on a request that would have an effect is held before it has one.
    Hold,
    /// From now on the operation refuses for the rate, with 429.
    Limit,
    /// From now on the operation fails with a 5xx before it has an effect.
    FailBefore,
    /// From now on the operation has its effect, and then fails with a 5xx.
    FailAfter,
    /// From now on what keeps the keys is out of reach.
    StoreDown,
    /// The end of `hold`, `limit`, `fail-before`, `fail-after` or `store-down`, whichever it was.
    Heal,
}

impl Hook {
    const fn flag(self) -> &'static str {
        match self {
            Self::Restart => "--hook restart",
            Self::Kill => "--hook kill",
            Self::Clock => "--hook clock",
            Self::PowerCut => "--hook power-cut",
            Self::Backup => "--hook backup",
            Self::Restore => "--hook restore",
            Self::Hold => "--hook hold",
            Self::Limit => "--hook limit",
            Self::FailBefore => "--hook fail-before",
            Self::FailAfter => "--hook fail-after",
            Self::StoreDown => "--hook store-down",
            Self::Heal => "--hook heal",
        }
    }

    /// Whether it lasts until `heal`.
    pub(crate) const fn lasts(self) -> bool {
        match self {
            Self::Hold | Self::Limit | Self::FailBefore | Self::FailAfter | Self::StoreDown => true,
            Self::Restart | Self::Kill | Self::Clock | Self::PowerCut | Self::Backup | Self::Restore | Self::Heal => {
                false
            }
        }
    }
}

impl FromStr for Hook {
    type Err = String;

    /// By its name in the settings; the error names all.
    fn from_str(name: &str) -> Result<Self, String> {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| error.to_string())
    }
}

/// How far the clock is moved on. The margin is a tenth of the window, and at most a minute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// The window itself.
    Window,
    /// The window without the margin.
    WindowMinus,
    /// The window and the margin.
    WindowPlus,
    /// Twice the margin: from before the window's end to after it.
    AcrossTheEnd,
}

impl Span {
    fn seconds(self, window: u64) -> u64 {
        let margin = (window / 10).clamp(1, MARGIN_MAX_SECONDS);
        match self {
            Self::Window => window,
            Self::WindowMinus => window.saturating_sub(margin),
            Self::WindowPlus => window.saturating_add(margin),
            Self::AcrossTheEnd => margin * 2,
        }
    }
}

/// What was given of all this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Means {
    /// The credential of another principal.
    pub(crate) second: Option<(String, String)>,
    /// Another credential of the same principal.
    pub(crate) same_tenant: Option<(String, String)>,
    /// The credential of a principal whose name goes on where that of the first one ends.
    pub(crate) nested: Option<(String, String)>,
    /// The header that names another account.
    pub(crate) account: Option<(String, String)>,
    pub(crate) places: BTreeMap<Place, Further>,
    hooks: BTreeMap<Hook, String>,
    pub(crate) window: Option<u64>,
    declined: bool,
    /// Whether keys are those of OASIS Repeatable Requests, which say when they were used first.
    repeatable: bool,
}

impl Means {
    /// Judges the settings.
    pub(crate) fn of(settings: &Settings) -> Result<Self, ProbeError> {
        if settings.window.is_some_and(|window| window < WINDOW_MIN_SECONDS) {
            let why =
                format!("a window shorter than {WINDOW_MIN_SECONDS} s cannot be told from the time that requests take");
            return Err(ProbeError::Usage(why));
        }
        Ok(Self {
            second: settings.second_credential.as_deref().map(secret).transpose()?,
            same_tenant: settings.same_tenant_credential.as_deref().map(secret).transpose()?,
            nested: settings.nested_credential.as_deref().map(secret).transpose()?,
            account: settings.account_header.as_deref().map(header).transpose()?,
            places: settings
                .also
                .iter()
                .map(|(place, told)| Ok((*place, Further::parse(*place, told)?)))
                .collect::<Result<_, ProbeError>>()?,
            hooks: settings.hook.clone(),
            window: settings.window,
            declined: settings.declined.is_some(),
            repeatable: settings.key.as_deref().is_some_and(|key| key.eq_ignore_ascii_case(REPEATABLE)),
        })
    }

    /// The flags that a case needs and that were not given.
    pub(crate) fn missing(&self, case: &Case) -> Vec<&'static str> {
        let hooks = case.steps.iter().filter_map(|step| match step {
            Step::Hook { run, seconds, .. } => Some((*run, *seconds)),
            _ => None,
        });
        let (hooks, sends) = (hooks.collect::<Vec<_>>(), case.sends().collect::<Vec<_>>());
        let with = |credential: Credential| sends.iter().any(|send| send.credential == credential);
        let mut flags: Vec<&'static str> =
            hooks.iter().filter(|(run, _)| !self.hooks.contains_key(run)).map(|(run, _)| run.flag()).collect();
        let mut needs =
            |flag: &'static str, needed: bool, given: bool| flags.extend((needed && !given).then_some(flag));
        let spans = hooks.iter().any(|(_, seconds)| seconds.is_some())
            || sends.iter().any(|send| send.first_sent == FirstSent::Old);
        needs("--window", spans, self.window.is_some());
        needs("--second-credential", with(Credential::Second), self.second.is_some());
        needs("--same-tenant-credential", with(Credential::SameTenant), self.same_tenant.is_some());
        let nested = with(Credential::Nested) || sends.iter().any(|send| send.key_form == KeyForm::Nested);
        needs("--nested-credential", nested, self.nested.is_some());
        needs("--account-header", sends.iter().any(|send| send.other_account), self.account.is_some());
        // The other operation is of the plan that needs nothing more: without it the case says so.
        for place in sends.iter().map(|send| send.to).filter(|place| !matches!(place, Place::Target | Place::Other)) {
            needs(place.flag(), true, self.places.contains_key(&place));
        }
        let told = sends.iter().any(|send| send.first_sent != FirstSent::True);
        needs("--key header:Repeatability-Request-ID", told, self.repeatable);
        needs("--declined", sends.iter().any(|send| send.body == Body::Declined), self.declined);
        flags.sort_unstable();
        flags.dedup();
        flags
    }

    /// When the key is said to have been used first, with what a header says it; nothing where keys say no such thing.
    /// `first_used` is on the target's clock.
    pub(crate) fn first_sent(&self, told: FirstSent, first_used: Timestamp) -> Option<(&'static str, String)> {
        let hour = SignedDuration::from_hours(1);
        let window = SignedDuration::from_secs(self.seconds(Some(Span::WindowPlus)).cast_signed());
        let at = match told {
            FirstSent::True => first_used,
            FirstSent::Old => first_used.saturating_sub(window).unwrap_or(first_used),
            FirstSent::Future => first_used.saturating_add(hour).unwrap_or(first_used),
        };
        let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()?;
        self.repeatable.then_some(("repeatability-first-sent", text))
    }

    /// A key for the given credential that, read together with its principal, is `key` of the nested one.
    pub(crate) fn nested_key(&self, given: Option<&(String, String)>, key: &str) -> Result<String, String> {
        let values = given.zip(self.nested.as_ref()).map(|((_, given), (_, nested))| (given, nested));
        let more = values.and_then(|(given, nested)| nested.strip_prefix(given.as_str())).unwrap_or_default();
        let mut letters = more.chars();
        match (letters.next(), letters.as_str()) {
            (Some(mark), rest) if !rest.is_empty() => Ok(format!("{rest}{mark}{key}")),
            _ => Err("--nested-credential must go on where --credential ends, by a mark and a name such as \":b\""
                .to_owned()),
        }
    }

    /// Seconds by which the clock is moved; none without a window.
    pub(crate) fn seconds(&self, span: Option<Span>) -> u64 {
        span.zip(self.window).map_or(0, |(span, window)| span.seconds(window))
    }

    /// Runs a hook; the text of the error says why it did not do its work.
    pub(crate) async fn run(&self, hook: Hook, seconds: u64, total: u64) -> Result<(), String> {
        let flag = hook.flag();
        let command = self.hooks.get(&hook).ok_or_else(|| not_given(&[flag]))?;
        let mut shell = Command::new("sh");
        // A server that the command starts keeps what it was given: a pipe would never end.
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.env("PROBE_SECONDS", seconds.to_string()).env("PROBE_SECONDS_TOTAL", total.to_string());
        match timeout(HOOK_WITHIN, shell.kill_on_drop(true).status()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("the command of {flag} ended with {status}")),
            Ok(Err(error)) => Err(format!("the command of {flag} cannot run: {error}")),
            Err(_) => Err(format!("the command of {flag} took longer than {} s", HOOK_WITHIN.as_secs())),
        }
    }
}

/// The reason of what lacks its flags.
pub(crate) fn not_given(flags: &[&str]) -> String {
    format!("it needs {}", flags.join(" and "))
}

impl Case {
    /// Whether one of its steps is this hook.
    pub(crate) fn runs(&self, hook: Hook) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Hook { run, .. } if *run == hook))
    }

    /// Whether its hooks say what they need, and no more.
    pub(crate) fn check_hooks(&self) -> Result<(), String> {
        let started = |name: &str| self.steps.iter().any(|step| matches!(step, Step::Start(send) if send.r#as == name));
        for step in &self.steps {
            let Step::Hook { run, seconds, during } = step else { continue };
            if seconds.is_some() != (*run == Hook::Clock) {
                return Err("a clock is moved by seconds, and nothing else is".to_owned());
            }
            if run.lasts() && !self.runs(Hook::Heal) {
                return Err(format!("{run:?} lasts, and nothing heals it"));
            }
            if let Some(unknown) = during.as_deref().filter(|name| !started(name)) {
                return Err(format!("a hook runs during {unknown:?}, which is never started"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
