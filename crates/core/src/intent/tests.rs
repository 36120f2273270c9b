//! A world with one intent in it, and the invariants that hold after every event. Scripts are words: `begin lost +1m`.
//! What an answer means is tested in `profile`.

mod machine;
mod requests;
mod walk;

use std::time::Duration;

use super::*;
use crate::identity::{Key, Scope};
use crate::profile::{Carrier, Encoding, Executed};
use crate::schedule::Backoff;
use crate::time::Now;

pub(super) const START: i64 = 1_700_000_000_000;
const HOME: Holder = Holder::from_bytes([7; 16]);

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(START + millis)
}

pub(super) fn terms(window: Promise) -> Terms {
    let backoff = Backoff { base: Duration::from_secs(2), cap: Duration::from_secs(2), least: Duration::ZERO };
    Terms { window, attempt_limit: Duration::from_mins(1), backoff }
}

pub(crate) fn draft() -> Draft {
    let header = |name: &str, value: &str| {
        let value = Secret::parse(value).map_or_else(|| Value::Plain(value.to_owned().into()), Value::Secret);
        Header { name: name.to_owned(), value }
    };
    Draft {
        name: Name::new("order-1234/charge").unwrap(),
        method: http::Method::POST,
        url: "https://api.example/v1/charges?expand=all".to_owned(),
        headers: vec![header("content-type", "application/json"), header("authorization", "Bearer env:TOKEN")],
        body: r#"{"amount":5,"currency":"eur"}"#.into(),
        scope: Some(Scope::from_parts([("account".to_owned(), "a1".to_owned())]).unwrap()),
        profile: ProfileRef { id: "stripe-v1".to_owned(), version: 1 },
    }
}

pub(crate) fn header_carrier() -> Carrier {
    Carrier::Header { name: "idempotency-key".to_owned(), encoding: Encoding::Raw, first_sent: None }
}

pub(super) fn key() -> Key {
    Key::new("8e03978e-40d5-43e8-bc93-6894a57f9324").unwrap()
}

pub(super) fn request() -> Request {
    draft().freeze(&key(), &header_carrier()).unwrap()
}

fn answered(status: u16, verdict: Verdict) -> End {
    End::Answered { answer: Receipt::new(status, "body"), verdict, resource: None }
}

/// An end by its word; a question mark says that the answer proves nothing.
fn end(word: &str) -> Option<End> {
    Some(match word {
        "lost" => End::Uncertain,
        "unsent" => End::NotSent,
        "ok" => answered(201, Verdict::Succeeded(Proof::Record)),
        "ok?" => answered(201, Verdict::Succeeded(Proof::Answer)),
        "no" => answered(402, Verdict::Refused(Proof::Record)),
        "no?" => answered(400, Verdict::Refused(Proof::Answer)),
        "again" => answered(429, Verdict::Retry(Executed::No)),
        "maybe" => answered(503, Verdict::Retry(Executed::Unknown)),
        "busy" => answered(409, Verdict::Wait),
        "stored" => answered(500, Verdict::Operator(Reason::StoredFailure)),
        "ask" => answered(500, Verdict::LookUp(Reason::StoredFailure)),
        _ => return None,
    })
}

/// `+90s`, `+5m`, `+1h`.
fn span(word: &str) -> Option<i64> {
    let (number, unit) = word.strip_prefix('+')?.split_at_checked(word.len() - 2)?;
    let factor = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(number.parse::<i64>().ok()? * factor)
}

pub(super) struct World {
    pub(super) intent: Intent,
    pub(super) now: i64,
    leases: u8,
    told: Option<Duration>,
    /// Whether an attempt is under way as far as the world knows, by lease.
    may_have_reached: Vec<bool>,
}

impl World {
    pub(super) fn new(window: Promise) -> Self {
        let intent = Intent::new(request(), terms(window), at(0));
        Self { intent, now: 0, leases: 0, told: None, may_have_reached: Vec::new() }
    }

    fn clock(&self) -> Now {
        Now::at(at(self.now))
    }

    pub(super) fn run(&mut self, script: &str) {
        for word in script.split_whitespace() {
            self.step(word);
        }
    }

    /// Does what a word says; `None` where it says only that time passes.
    pub(super) fn step(&mut self, word: &str) -> Option<Said> {
        if let Some(span) = span(word) {
            self.now += span;
            return None;
        }
        if let Some(seconds) = word.strip_prefix("told=") {
            self.told = Some(Duration::from_secs(seconds.parse().unwrap()));
            return None;
        }
        let event = self.event(word);
        let before = self.intent.clone();
        let step = next(&before, &event, self.clock());
        if let Event::Begin { .. } = event {
            self.may_have_reached.push(matches!(step.said, Said::Send { .. }));
        }
        if let (Event::Ended { end: End::NotSent, lease, .. }, true) = (&event, step.write.is_some()) {
            self.may_have_reached[usize::from(lease.as_bytes()[0]) - 1] = false;
        }
        if let Some(after) = &step.write {
            self.intent = after.clone();
        }
        self.hold(&before, &event, &step, word);
        Some(step.said)
    }

    fn event(&mut self, word: &str) -> Event {
        let who = || ("ann".to_owned(), "the bank says so".to_owned());
        let resolved = |version, verdict| {
            let (who, why) = who();
            Event::Resolved { version, verdict, who, why }
        };
        let looked_up = |found| Event::LookedUp { asked_at: at(self.now), found };
        match word {
            "look" => Event::Look,
            "begin" => {
                self.leases += 1;
                Event::Begin { lease: LeaseId::from_bytes([self.leases; 16]), holder: Some(HOME) }
            }
            "gone" => Event::Gone(HOME),
            "found" => looked_up(Found::Done(Receipt::new(200, "found"))),
            "absent" => looked_up(Found::Absent),
            "unclear" => looked_up(Found::Unclear),
            "asked-early" => Event::LookedUp { asked_at: at(0), found: Found::Absent },
            "happened" => resolved(self.intent.version, Resolution::Happened(None)),
            "never" => resolved(self.intent.version, Resolution::DidNotHappen),
            "stale" => resolved(self.intent.version + 1, Resolution::Happened(None)),
            _ => {
                let (which, word) =
                    word.split_once(':').map_or((self.leases, word), |(n, word)| (n.parse().unwrap(), word));
                let end = end(word).unwrap_or_else(|| panic!("no such word: {word}"));
                let lease = LeaseId::from_bytes([which; 16]);
                Event::Ended { lease, end, told: self.told.take(), jitter: Jitter(0) }
            }
        }
    }

    /// What holds whatever happens.
    fn hold(&self, before: &Intent, event: &Event, step: &Step, word: &str) {
        let after = &self.intent;
        let now = at(self.now);
        let judged = next(before, &Event::Look, self.clock()).write.unwrap_or_else(|| before.clone());
        assert_eq!(after.request, before.request, "{word}: the request, its key included, is frozen");
        assert_eq!(after.terms, before.terms, "{word}: the terms are frozen");
        assert_eq!(after.version, before.version + u64::from(step.write.is_some()), "{word}: each write is a version");
        if step.write.is_some() {
            assert_eq!(next(after, &Event::Look, self.clock()).write, None, "{word}: time has done its work");
        }
        self.hold_states(&judged, event, word);
        if let Some(deadline) = judged.deadline {
            if let Some(still) = after.deadline {
                assert_eq!(still, deadline, "{word}: the deadline does not move");
            } else {
                assert!(!self.may_have_reached.contains(&true), "{word}: cleared though something may have arrived");
            }
            if let Said::Send { until, .. } = step.said {
                assert!(until <= deadline.until, "{word}: an attempt that would end past the deadline");
            }
        }
        if let State::Waiting { until } | State::Uncertain { until } = after.state {
            assert!(after.last_start().is_none_or(|last| until <= last), "{word}: planned past the last start");
        }
        let quiet = judged.quiet_from().is_none_or(|quiet| quiet <= now);
        if let (State::Settled { outcome: Outcome::Refused { .. }, by, .. }, false) =
            (&after.state, is_settled(&judged))
        {
            match by {
                Settler::LookUp | Settler::Operator { .. } => assert!(quiet, "{word}: something may still arrive"),
                Settler::Answer { .. } => {}
                Settler::NothingDone => assert!(after.attempts.iter().all(did_nothing), "{word}: who knows that?"),
            }
        }
    }

    fn hold_states(&self, judged: &Intent, event: &Event, word: &str) {
        let after = &self.intent;
        if is_settled(judged) {
            assert_eq!(after.state, judged.state, "{word}: an outcome does not change");
            return;
        }
        if let State::Overdue { .. } = judged.state {
            assert!(
                matches!(after.state, State::Overdue { .. } | State::Settled { .. }),
                "{word}: overdue and sent again"
            );
        }
        if let (State::Settled { by, .. }, Some(_)) = (&after.state, judged.doubt) {
            match by {
                Settler::Answer { proof, .. } => {
                    assert_eq!(*proof, Proof::Record, "{word}: in doubt, settled by what proves nothing");
                }
                Settler::LookUp | Settler::Operator { .. } => {}
                Settler::NothingDone => panic!("{word}: in doubt, and nothing done"),
            }
        }
        if judged.doubt.is_some() && !is_settled(after) {
            assert_eq!(after.doubt, judged.doubt, "{word}: doubt ends only with an outcome");
        }
        match after.state {
            State::Uncertain { .. } => assert!(after.doubt.is_some(), "{word}"),
            State::Waiting { .. } | State::Settled { .. } | State::Ready => assert_eq!(after.doubt, None, "{word}"),
            State::Sending { .. } | State::Overdue { .. } => {}
        }
        if let State::Sending { .. } = after.state {
            let began = matches!(event, Event::Begin { .. }) || matches!(judged.state, State::Sending { .. });
            assert!(began, "{word}: only a worker begins");
        }
    }
}

fn did_nothing(attempt: &Attempt) -> bool {
    match &attempt.end {
        Some(AttemptEnd::Answered { verdict, .. }) => *verdict == Verdict::Retry(Executed::No).to_string(),
        Some(AttemptEnd::NotSent { .. }) => true,
        Some(AttemptEnd::Uncertain { .. } | AttemptEnd::Lapsed) | None => false,
    }
}

fn is_settled(intent: &Intent) -> bool {
    matches!(intent.state, State::Settled { .. })
}
