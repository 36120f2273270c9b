//! The power goes while a caller sends: no key was on the wire before it was on the disk, and no answer that was told
//! is lost.
//!
//! What does not belong here: the simulation (`disk.rs`, `trace.rs`), and callers that are killed (`e2e`).

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use counterfoil_client::{Client, Heard, Outcome, Outgoing, Sending, Transport, Wish};
use counterfoil_core::{
    Receipt,
    intent::{Draft, Header, Intent, Name, ProfileRef, State, Value},
};
use counterfoil_store::IntentStore;

use super::{run, trace::Event};
use crate::crash::{action, process::say};

const TASKS: usize = 3;
const INTENTS: usize = 3;
const SEED: u64 = 0x1d0;

/// The wire: says which key is on it, and loses every third answer.
struct Wire(AtomicUsize);

impl Transport for Wire {
    fn send(&self, request: Outgoing, _: tokio::time::Instant) -> Sending<'_> {
        let key = request.headers["idempotency-key"].to_str().expect("keys are text").to_owned();
        say(&format!("wire {key}"));
        let lost = self.0.fetch_add(1, Ordering::SeqCst).is_multiple_of(3);
        Box::pin(std::future::ready(if lost {
            Heard::Uncertain("the connection broke off".to_owned())
        } else {
            Heard::Answered(Receipt::new(201, key).with_header("idempotent-replayed", "false"))
        }))
    }
}

fn wish(name: &str) -> Wish {
    let json = Header { name: "content-type".to_owned(), value: Value::Plain("application/json".into()) };
    Wish::new(Draft {
        name: Name::new(name).expect("a name"),
        method: http::Method::POST,
        url: "http://shop.example/orders".to_owned(),
        headers: vec![json],
        body: "{}".into(),
        scope: None,
        profile: ProfileRef { id: "counterfoil".to_owned(), version: 1 },
    })
}

/// The process: callers that send one action after another.
pub(crate) async fn work(directory: &Path) {
    let client = Client::new(action::open(directory), Arc::new(Wire(AtomicUsize::new(0))));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let client = client.clone();
        tasks.spawn(async move {
            for number in 0..INTENTS {
                let name = format!("order-{task}-{number}");
                let outcome = client.send(&wish(&name), Duration::from_secs(60)).await.expect("the journal works");
                assert!(matches!(outcome, Outcome::Succeeded { .. }), "{outcome:?}");
                say(&format!("told {name}"));
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no task panics");
    }
}

/// What the process has said so far.
#[derive(Default)]
struct Said {
    /// How often each key was on the wire.
    wire: BTreeMap<String, u32>,
    told: Vec<String>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["wire", key] => *self.wire.entry(key.trim_matches('"').to_owned()).or_default() += 1,
            ["told", name] => self.told.push(name.to_owned()),
            _ => {}
        }
    }

    /// That all of it stands in `directory`, which a loss of power left.
    fn stands(&self, directory: &Path, moment: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let intents: Vec<Intent> = runtime.block_on(async {
            let page = action::open(directory).intents(0, 1_000).await.expect("the store answers");
            page.rows.into_iter().map(|(_, row)| row.expect("it can be read")).collect()
        });
        for (key, times) in &self.wire {
            let intent = intents.iter().find(|intent| intent.request.key.as_str() == key);
            let intent = intent.unwrap_or_else(|| panic!("{moment}: {key} was on the wire and is not on the disk"));
            assert!(intent.attempted >= *times, "{moment}: {key} was sent {times} times: {:?}", intent.attempts);
        }
        for name in &self.told {
            let intent = intents.iter().find(|intent| intent.request.name.as_str() == name);
            let state = intent.map(|intent| &intent.state);
            assert!(matches!(state, Some(State::Settled { .. })), "{moment}: {name} was told: {state:?}");
        }
    }
}

#[test]
fn no_key_is_on_the_wire_before_it_is_on_the_disk() {
    let recorded = run("power-intents", action::made);
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut said, mut cuts) = (Said::default(), 0);
    recorded.cuts(|disk, event| {
        if let Event::Said { line } = event {
            said.hear(line);
        }
        cuts += 1;
        for (kind, image) in [("strict", disk.strict()), ("lucky", disk.lucky(&mut random))] {
            let directory = super::written(&image);
            said.stands(directory.path(), &format!("seed {SEED:#x}, cut {cuts}, {kind}"));
        }
    });
    assert_eq!(said.told.len(), TASKS * INTENTS, "every action is told");
    assert!(said.wire.values().any(|times| *times > 1), "an answer was lost");
    assert!(cuts > 20, "the power was cut {cuts} times");
}
