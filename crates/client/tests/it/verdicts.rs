//! One golden table: what the client makes of each answer of each provider, on a first attempt and in doubt.
//! `COUNTERFOIL_BLESS=1` rewrites it; read the difference against what the provider documents.

use std::fmt::Write as _;
use std::time::Duration;

use counterfoil_client::profiles::all;
use counterfoil_core::intent::{Draft, End, Event, Intent, Name, ProfileRef, Promise, Said, State, Terms, next};
use counterfoil_core::profile::{AnswerRule, BodyMatch, Carrier, Profile, reading};
use counterfoil_core::schedule::Jitter;
use counterfoil_core::{LeaseId, Now, Receipt, Timestamp};
use serde_json::{Map, Value};

pub(crate) const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/verdicts.txt");
const DAY: Duration = Duration::from_hours(24);

/// The least answer that a rule fits.
pub(crate) fn example(rule: &AnswerRule) -> Receipt {
    let mut json = Value::Object(Map::new());
    let mut text = String::new();
    for part in &rule.body {
        match part {
            BodyMatch::Json { at, is } => put(&mut json, at, &is[0]),
            BodyMatch::Holds(held) => text.push_str(held),
        }
    }
    if let Some(at) = &rule.resource {
        put(&mut json, at, "made-1");
    }
    if !text.is_empty() {
        put(&mut json, "/text", &text);
    }
    let status = *rule.status[0].start();
    let answer = Receipt::new(if status == 100 { 200 } else { status }, json.to_string());
    match &rule.header {
        Some((name, value)) => answer.with_header(name, value.clone().unwrap_or_else(|| "false".to_owned())),
        None => answer,
    }
}

fn put(root: &mut Value, pointer: &str, text: &str) {
    let mut place = root;
    for segment in pointer.split('/').skip(1) {
        place = if segment == "*" {
            if !place.is_array() {
                *place = Value::Array(vec![Value::Object(Map::new())]);
            }
            &mut place[0]
        } else {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            &mut place[segment]
        };
    }
    *place = Value::from(text);
}

struct World<'p> {
    profile: &'p Profile,
    intent: Intent,
    now: Timestamp,
    leases: u8,
}

impl<'p> World<'p> {
    fn new(profile: &'p Profile, doubt: bool) -> Self {
        let draft = Draft {
            name: Name::new("order-1/charge").unwrap(),
            method: "POST".parse().unwrap(),
            url: "https://api.example/v1/charges".to_owned(),
            headers: Vec::new(),
            body: "{}".into(),
            scope: None,
            profile: ProfileRef { id: profile.id.clone(), version: profile.version },
        };
        let now = Timestamp::from_millis(1_790_000_000_000);
        let key = profile.key.draw([1; 16], now);
        let request = draft.freeze(&key, &profile.key.carrier).unwrap();
        let terms = Terms::new(profile, None, Duration::from_mins(1));
        let mut world = Self { profile, intent: Intent::new(request, terms, now), now, leases: 0 };
        if doubt {
            world.begin();
            world.end(End::Uncertain, None);
            world.now = world.now.plus(Duration::from_secs(60));
        }
        world.begin();
        world
    }

    fn tell(&mut self, event: &Event) -> Said {
        let step = next(&self.intent, event, Now::at(self.now));
        if let Some(after) = step.write {
            self.intent = after;
        }
        step.said
    }

    fn begin(&mut self) {
        self.leases += 1;
        let said = self.tell(&Event::Begin { lease: LeaseId::from_bytes([self.leases; 16]), holder: None });
        assert!(matches!(said, Said::Send { .. }), "{}: {said:?}", self.profile.id);
    }

    fn end(&mut self, end: End, told: Option<Duration>) {
        let lease = LeaseId::from_bytes([self.leases; 16]);
        self.tell(&Event::Ended { lease, end, told, jitter: Jitter(0) });
    }

    /// Somebody looks, so much later.
    fn look_after(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.tell(&Event::Look);
    }

    /// The verdict on an answer.
    fn answer(&mut self, answer: &Receipt, told: Option<Duration>) -> String {
        let read = reading(answer, self.profile, self.intent.doubt.is_some());
        let verdict = read.verdict;
        self.end(End::Answered { answer: answer.clone(), verdict, resource: read.resource }, told);
        verdict.to_string()
    }

    /// Where the intent stands, and when it may be sent again, counted from now.
    fn state(&self) -> String {
        let word = self.intent.state.as_str();
        match &self.intent.state {
            State::Waiting { until } | State::Uncertain { until } => {
                let last = self.intent.last_start();
                let when =
                    if last == Some(*until) { "at the last start".to_owned() } else { span(until.since(self.now)) };
                format!("{word}, again {when}")
            }
            State::Overdue { why, .. } => format!("{word}: {}", why.as_str()),
            State::Ready | State::Sending { .. } | State::Settled { .. } => word.to_owned(),
        }
    }
}

fn span(span: Duration) -> String {
    format!("after {} ms", span.as_millis())
}

/// What a provider does to an attempt.
#[derive(Clone)]
pub(crate) enum Script {
    /// Its reply is lost or truncated.
    Lost,
    /// Nothing of it is sent.
    NotSent,
    /// Its worker dies.
    Died,
    /// Its reply is lost, and nobody looks before the window is over.
    Late,
    /// It is answered, with that Retry-After.
    Says(Receipt, Option<Duration>),
}

/// How long nobody looks.
pub(crate) const LATE: Duration = Duration::from_hours(24 * 40);

impl Script {
    /// Plays it to an intent; the verdict.
    fn play(&self, world: &mut World<'_>) -> String {
        match self {
            Self::Lost => world.end(End::Uncertain, None),
            Self::NotSent => world.end(End::NotSent, None),
            Self::Died => world.look_after(Duration::from_secs(60)),
            Self::Late => {
                world.end(End::Uncertain, None);
                world.look_after(LATE);
            }
            Self::Says(answer, told) => return world.answer(answer, *told),
        }
        "-".to_owned()
    }
}

/// What happens on the way, the answers of the contract, and bare statuses that any layer in front may answer with.
pub(crate) fn scripts(profile: &Profile) -> Vec<(String, Script)> {
    let on_the_way = [
        ("lost or truncated reply", Script::Lost),
        ("certainly not sent", Script::NotSent),
        ("its worker died", Script::Died),
        ("lost, and found after the window", Script::Late),
        ("429, Retry-After past the window", Script::Says(Receipt::new(429, ""), Some(DAY * 60))),
    ];
    let mut all: Vec<_> = on_the_way.into_iter().map(|(name, script)| (name.to_owned(), script)).collect();
    let answers =
        profile.answers.iter().map(|rule| (format!("{}: {}", example(rule).status, rule.name), example(rule)));
    let bare = [201, 307, 400, 401, 403, 404, 409, 422, 429, 500, 501, 502, 503, 504];
    let bare = bare.map(|status| (format!("{status}, nothing else"), Receipt::new(status, "")));
    let answers = answers.chain(spoken(profile)).chain(bare);
    all.extend(answers.map(|(name, answer)| (name, Script::Says(answer, None))));
    all
}

fn row(profile: &Profile, name: &str, script: &Script) -> String {
    let cell = |doubt: bool| {
        let mut world = World::new(profile, doubt);
        let verdict = script.play(&mut world);
        format!("{verdict} -> {}", world.state())
    };
    format!("  {name:<42} | {:<62} | {}\n", cell(false), cell(true))
}

fn table(profile: &Profile) -> String {
    let mut text = format!("{} {}\n", profile.id, profile.version);
    let terms = Terms::new(profile, None, Duration::from_mins(1));
    let window = match terms.window {
        Promise::Documented(span) => format!("{} h", span.as_secs() / 3600),
        Promise::ForEver => "for ever".to_owned(),
        Promise::Given(_) => panic!("nobody gave one"),
        Promise::Assumed => "not published, 10 min assumed".to_owned(),
    };
    let carrier = match &profile.key.carrier {
        Carrier::Header { name, .. } => format!("header {name}"),
        Carrier::Member(name) => format!("body member {name}"),
        Carrier::Parameter(name) => format!("parameter {name}"),
    };
    writeln!(text, "  window {window}; key in {carrier}").unwrap();
    writeln!(text, "  {:<42} | {:<62} | in doubt", "answer", "first attempt").unwrap();
    for (name, script) in scripts(profile) {
        text += &row(profile, &name, &script);
    }
    text
}

/// Answers with the provider's marker and advice.
fn spoken(profile: &Profile) -> Vec<(String, Receipt)> {
    let mut all = Vec::new();
    if let Some(marker) = &profile.marker {
        let value = marker.value.clone().unwrap_or_else(|| "x".to_owned());
        for status in [201, 400, 402, 409, 429, 500] {
            let answer = Receipt::new(status, "").with_header(&marker.header, value.clone());
            all.push((format!("{status} from the record ({})", marker.header), answer));
        }
    }
    if let Some(advice) = &profile.advice {
        for (status, value) in [(400, &advice.again), (500, &advice.again), (409, &advice.stop), (500, &advice.stop)] {
            if let Some(value) = value {
                let answer = Receipt::new(status, "").with_header(&advice.header, value.clone());
                all.push((format!("{status}, {}: {value}", advice.header), answer));
            }
        }
        // Both at once, where a kept error is marked.
        if let (Some(marker), Some(again)) = (&profile.marker, &advice.again) {
            let value = marker.value.clone().unwrap_or_else(|| "x".to_owned());
            let answer = Receipt::new(500, "").with_header(&marker.header, value);
            all.push((
                format!("500 from the record, {}: {again}", advice.header),
                answer.with_header(&advice.header, again.clone()),
            ));
        }
    }
    all
}

#[test]
fn the_table_of_verdicts_stands_as_it_was_read() {
    let found = all().iter().map(table).collect::<Vec<_>>().join("\n");
    if std::env::var("COUNTERFOIL_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::write(GOLDEN, &found).unwrap();
    }
    let expected = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert_eq!(found, expected, "COUNTERFOIL_BLESS=1 rewrites {GOLDEN}");
}
