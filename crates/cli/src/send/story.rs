//! What happens to an intent, told on standard error while it happens.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use counterfoil_client::{Client, Progress};
use counterfoil_core::Timestamp;
use counterfoil_core::intent::{ASSUMED_WINDOW, AttemptEnd, Intent, Name, Promise, State};

use crate::{instant, print};

/// One telling.
pub(crate) struct Story<'a> {
    client: &'a Client,
    name: OnceLock<Name>,
    attempts: AtomicU32,
    elsewhere: AtomicBool,
}

impl<'a> Story<'a> {
    pub(crate) const fn new(client: &'a Client) -> Self {
        Self { client, name: OnceLock::new(), attempts: AtomicU32::new(0), elsewhere: AtomicBool::new(false) }
    }

    /// How many attempts were made while it was told.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// The name of what it is told of, once that is kept: a further action has another than was asked for.
    pub(crate) fn name(&self) -> Option<&Name> {
        self.name.get()
    }

    /// What stands before anything is done.
    pub(crate) fn begins(&self, intent: &Intent) {
        if intent.is_assumed() && !matches!(intent.state, State::Settled { .. }) {
            say(
                intent,
                &format!(
                    "profile `{}` does not say how long a key is remembered: {} is assumed; give --window where you know",
                    intent.request.profile.id,
                    instant::age(ASSUMED_WINDOW)
                ),
            );
        }
    }

    pub(crate) fn tells(&self, progress: &Progress<'_>) {
        match progress {
            Progress::Kept { intent } => {
                self.name.get_or_init(|| intent.request.name.clone());
                self.begins(intent);
            }
            Progress::Sending { intent, attempt } => {
                self.attempts.fetch_add(1, Ordering::Relaxed);
                let request = &intent.request;
                say(intent, &format!("attempt {attempt}: {} {}", request.method, request.origin));
            }
            Progress::Heard { intent, what } => say(intent, &heard(intent, what)),
            Progress::Waiting { intent, until } => self.waits(intent, *until),
            _ => {}
        }
    }

    fn waits(&self, intent: &Intent, until: Timestamp) {
        if let State::Sending { lease, .. } = &intent.state {
            // It is looked at several times a second, and told once.
            if !self.elsewhere.swap(true, Ordering::Relaxed) {
                let until = instant::print(lease.until);
                say(intent, &format!("in progress elsewhere, until {until} at most"));
            }
            return;
        }
        let now = self.client.now().at;
        let attempt = intent.attempted.saturating_add(1);
        let pause = instant::short(until.since(now));
        say(intent, &format!("attempt {attempt} in {pause}, window {}", window(intent, now)));
    }
}

fn heard(intent: &Intent, what: &str) -> String {
    let Some(attempt) = intent.attempts.last() else { return what.to_owned() };
    match &attempt.end {
        Some(AttemptEnd::Answered { verdict, .. }) => format!("attempt {}: {what}: {verdict}", attempt.number),
        Some(AttemptEnd::NotSent { .. } | AttemptEnd::Uncertain { .. } | AttemptEnd::Lapsed) | None => {
            format!("attempt {}: {what}", attempt.number)
        }
    }
}

/// What is left of the window, in words that follow *window*.
pub(crate) fn window(intent: &Intent, now: Timestamp) -> String {
    let assumed = if intent.is_assumed() { " (assumed)" } else { "" };
    match (intent.terms.window, intent.last_start()) {
        (Promise::ForEver, _) => "without end".to_owned(),
        (Promise::Documented(span) | Promise::Given(span), None) => {
            format!("of {}, not begun", instant::age(span))
        }
        (Promise::Assumed, None) => format!("of {}{assumed}, not begun", instant::age(ASSUMED_WINDOW)),
        (Promise::Documented(_) | Promise::Given(_) | Promise::Assumed, Some(last)) if last < now => {
            format!("closed{assumed}")
        }
        (Promise::Documented(_) | Promise::Given(_) | Promise::Assumed, Some(last)) => {
            format!("left {}{assumed}", instant::age(last.since(now)))
        }
    }
}

/// Tells people something of an intent.
pub(crate) fn say(intent: &Intent, text: &str) {
    print::human(&format!("{}: {text}", intent.request.name.as_str()));
}
