//! What the probe has beside one target and one caller: hooks into the target, other credentials, a second instance, a
//! window; and how a hook's command is run.
//!
//! What does not belong here: when a hook runs (the cases), and what it means for a round (`round/hooked.rs`).

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

use crate::case::{Case, Credential, Step};
use crate::error::ProbeError;
use crate::settings::Settings;
use crate::target::{Address, secret};

/// How long a hook's command may take; long enough for a window that is waited for.
const HOOK_WITHIN: Duration = Duration::from_mins(2);
/// The shortest window that can be asked about: the requests themselves take time.
const WINDOW_MIN_SECONDS: u64 = 10;
/// How far from the end of a window is asked, at most.
const MARGIN_MAX_SECONDS: u64 = 60;

/// What is done to the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Ended in good order, and started again.
    Restart,
    /// Killed without warning, and started again.
    Kill,
    /// Its clock moved on.
    Clock,
}

impl Hook {
    const fn flag(self) -> &'static str {
        match self {
            Self::Restart => "--restart-command",
            Self::Kill => "--kill-command",
            Self::Clock => "--clock-command",
        }
    }
}

/// How far the clock is moved on. The margin is a tenth of the window, and at most a minute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
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
            Self::WindowMinus => window.saturating_sub(margin),
            Self::WindowPlus => window.saturating_add(margin),
            Self::AcrossTheEnd => margin * 2,
        }
    }
}

/// Which instance of the service a request goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instance {
    /// The target.
    #[default]
    First,
    /// The second one.
    Second,
}

/// What was given of all this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Means {
    /// The credential of another principal.
    pub(crate) second: Option<(String, String)>,
    /// Another credential of the same principal.
    pub(crate) same_tenant: Option<(String, String)>,
    pub(crate) instance: Option<Address>,
    restart: Option<String>,
    kill: Option<String>,
    clock: Option<String>,
    window: Option<u64>,
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
            instance: settings.second_url.as_deref().map(Address::parse).transpose()?,
            restart: settings.restart_command.clone(),
            kill: settings.kill_command.clone(),
            clock: settings.clock_command.clone(),
            window: settings.window,
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
            hooks.iter().filter(|(run, _)| self.command(*run).is_none()).map(|(run, _)| run.flag()).collect();
        let mut needs =
            |flag: &'static str, needed: bool, given: bool| flags.extend((needed && !given).then_some(flag));
        needs("--window", hooks.iter().any(|(_, seconds)| seconds.is_some()), self.window.is_some());
        needs("--second-credential", with(Credential::Second), self.second.is_some());
        needs("--same-tenant-credential", with(Credential::SameTenant), self.same_tenant.is_some());
        needs("--second-url", sends.iter().any(|send| send.at == Instance::Second), self.instance.is_some());
        flags.dedup();
        flags
    }

    fn command(&self, hook: Hook) -> Option<&str> {
        match hook {
            Hook::Restart => self.restart.as_deref(),
            Hook::Kill => self.kill.as_deref(),
            Hook::Clock => self.clock.as_deref(),
        }
    }

    /// Seconds by which the clock is moved; none without a window.
    pub(crate) fn seconds(&self, span: Option<Span>) -> u64 {
        span.zip(self.window).map_or(0, |(span, window)| span.seconds(window))
    }

    /// Runs a hook; the text of the error says why it did not do its work.
    pub(crate) async fn run(&self, hook: Hook, seconds: u64, total: u64) -> Result<(), String> {
        let flag = hook.flag();
        let command = self.command(hook).ok_or_else(|| not_given(&[flag]))?;
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
    /// Whether its hooks say what they need, and no more.
    pub(crate) fn check_hooks(&self) -> Result<(), String> {
        let started = |name: &str| self.steps.iter().any(|step| matches!(step, Step::Start(send) if send.r#as == name));
        for step in &self.steps {
            let Step::Hook { run, seconds, during } = step else { continue };
            if seconds.is_some() != (*run == Hook::Clock) {
                return Err("a clock is moved by seconds, and nothing else is".to_owned());
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
