//! An owner that lives: it stands still before it writes its end, while another process opens the same file.
//!
//! What does not belong here: owners that are gone (`points.rs`).

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::Child,
    sync::Arc,
};

use counterfoil_core::{
    Expiry, Receipt, Record, Why,
    action::{Confirmation, Refused, Verdict},
};
use counterfoil_store::{
    Begun, Ended, Gate, RecordStore, SqliteStore,
    gate::Signed,
    seam::{Expected, NoteKind},
};
use tempfile::TempDir;

use super::{
    action::{self, Flow, Told},
    process,
};

const KEY: &str = "the-key";
const FLOWS: [Flow; 3] = [Flow::Complete, Flow::Release, Flow::Doubt];

/// A process that has claimed, and waits to be told to write its end.
struct Owner {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Owner {
    fn start(flow: Flow, directory: &Path) -> Self {
        let role = format!("owner {} {KEY}", flow.as_str());
        let mut child = process::command(&role, directory, &[]).spawn().expect("the test binary runs");
        let mut said = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut line = String::new();
        while line.trim_end() != "stands still" {
            line.clear();
            assert_ne!(said.read_line(&mut line).expect("it says text"), 0, "it ended before it stood still");
        }
        Self { child, said }
    }

    /// Lets it write its end, and hears what became of that.
    fn go_on(mut self) -> String {
        self.child.stdin.take().expect("its input is piped").write_all(b"\n").expect("it listens");
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("it says text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {rest}");
        rest.lines().find_map(|line| line.strip_prefix("ended as ")).expect("it says how it ended").to_owned()
    }
}

/// What the process says of an end.
pub(super) fn words(told: &Told) -> String {
    match told {
        Told::Answered(_) | Told::Ended(Ended::Written { .. }) => "written".to_owned(),
        Told::Ended(Ended::Refused(refused)) => refused.as_str().to_owned(),
        Told::InProgress | Told::Unknown(_) => format!("{told:?}"),
    }
}

struct Beside {
    flow: Flow,
    owner: Option<Owner>,
    store: Arc<SqliteStore>,
    gate: Gate,
    _home: TempDir,
}

impl Beside {
    fn start(flow: Flow) -> Self {
        let home = tempfile::tempdir().expect("there is room for temporary files");
        action::born(home.path());
        let owner = Some(Owner::start(flow, home.path()));
        // The first one restarts at once.
        drop(action::open(home.path()));
        let store = action::open(home.path());
        let gate = Gate::new(store.clone()).expect("a gate opens");
        Self { flow, owner, store, gate, _home: home }
    }

    /// Lets the owner write its end, and sees what becomes of that.
    fn lets_it_end(&mut self, wanted: &str) {
        let owner = self.owner.take().expect("it ends once");
        assert_eq!(owner.go_on(), wanted, "{:?}", self.flow);
    }

    async fn record(&self) -> Option<Record> {
        self.store.read(&self.flow.identity(KEY)).await.expect("the store answers").record.map(Arc::unwrap_or_clone)
    }

    async fn retry(&self) -> Told {
        action::retry(&self.gate, self.flow, KEY).await
    }

    async fn resolve(&self, verdict: Verdict, confirmed: Confirmation) -> Result<(), Refused> {
        let record = self.record().await.expect("it was claimed");
        let by = Signed { who: "operator".to_owned(), why: "it does not answer".to_owned() };
        let (identity, expected) = (self.flow.identity(KEY), Expected::record(&record));
        self.gate.resolve(&identity, expected, &verdict, confirmed, &by).await.expect("the store answers")
    }

    async fn history(&self) -> Vec<NoteKind> {
        let notes = self.store.history(&self.flow.identity(KEY)).await.expect("the store answers");
        notes.into_iter().map(|note| note.kind).collect()
    }

    /// Only a completion that comes too late is an alarm.
    fn alarmed(&self, resolved: NoteKind) -> Vec<NoteKind> {
        if self.flow == Flow::Complete { vec![resolved, NoteKind::LateCompletion] } else { vec![resolved] }
    }
}

fn happened() -> (Receipt, Verdict) {
    let (receipt, retention) = (Receipt::new(201, "the operator found it"), Flow::Complete.policy().retention);
    (receipt.clone(), Verdict::Happened { receipt, retention, expiry: Expiry::NewAction })
}

#[tokio::test]
async fn another_process_leaves_a_live_lease_alone() {
    for flow in FLOWS {
        let mut beside = Beside::start(flow);
        assert_eq!(beside.retry().await, Told::InProgress, "{flow:?}");
        for verdict in [happened().1, Verdict::DidNotHappen] {
            let resolved = beside.resolve(verdict, Confirmation::None).await;
            assert!(matches!(resolved, Err(Refused::OwnerAlive { .. })), "{flow:?}: {resolved:?}");
        }
        beside.lets_it_end("written");
        match flow {
            Flow::Complete | Flow::Coupled | Flow::Owned => {
                assert_eq!(beside.retry().await, Told::Answered(Receipt::new(201, KEY)));
            }
            Flow::Release => assert_eq!(beside.record().await, None),
            Flow::Doubt => assert_eq!(beside.retry().await, Told::Unknown(Why::Doubted)),
        }
    }
}

#[tokio::test]
async fn an_end_after_the_operator_said_it_happened_is_refused() {
    for flow in FLOWS {
        let mut beside = Beside::start(flow);
        let (receipt, verdict) = happened();
        assert_eq!(beside.resolve(verdict, Confirmation::OwnerStopped).await, Ok(()));
        let record = beside.record().await;
        beside.lets_it_end("settled-by-operator");
        assert_eq!(beside.record().await, record, "{flow:?}: it touched the record");
        assert_eq!(beside.retry().await, Told::Answered(receipt));
        assert_eq!(beside.history().await, beside.alarmed(NoteKind::ResolvedHappened), "{flow:?}");
    }
}

#[tokio::test]
async fn an_end_after_the_operator_said_it_did_not_happen_is_refused() {
    for flow in FLOWS {
        let mut beside = Beside::start(flow);
        assert_eq!(beside.resolve(Verdict::DidNotHappen, Confirmation::OwnerStopped).await, Ok(()));
        beside.lets_it_end("absent");
        assert_eq!(beside.record().await, None, "{flow:?}");
        assert_eq!(beside.history().await, beside.alarmed(NoteKind::ResolvedDidNotHappen), "{flow:?}");
    }
}

#[tokio::test]
async fn an_end_after_somebody_else_claimed_is_refused() {
    for flow in FLOWS {
        let mut beside = Beside::start(flow);
        assert_eq!(beside.resolve(Verdict::DidNotHappen, Confirmation::OwnerStopped).await, Ok(()));
        let begun = beside.gate.begin(&mut flow.claim(KEY), &flow.policy()).await;
        let Ok(Begun::Execute(mut permit)) = begun else { panic!("{flow:?}: {begun:?}") };
        beside.lets_it_end("other-lease");
        assert_eq!(beside.record().await.as_ref(), Some(permit.record().as_ref()), "{flow:?}: it touched the record");
        let receipt = Receipt::new(201, "the second run");
        let ended = beside.gate.complete(&mut permit, &receipt).await;
        assert!(matches!(ended, Ok(Ended::Written { expires_at: Some(_) })), "{flow:?}: {ended:?}");
        assert_eq!(beside.retry().await, Told::Answered(receipt));
    }
}
