//! SIGKILL at every named point, one run for each pass, then a restart.
//!
//! What stands after a kill follows from where the commits are in the run that nobody killed: nothing up to the
//! claim's commit, then the claim, then the end. What does not belong here: load (`load.rs`), and owners that live
//! (`owner.rs`).

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use counterfoil_core::{
    Expiry, LeaseId, Receipt, Record, State, Why,
    action::{Confirmation, Refused, Verdict},
    record::{Author, Standing},
};
use counterfoil_store::{
    Begun, Ended, Gate, RecordStore, SqliteStore,
    gate::Signed,
    points,
    seam::{Expected, Query},
};
use tempfile::TempDir;

use super::{
    action::{self, Flow, Told},
    late::{self, Late},
    process,
};

const KEY: &str = "the-key";

/// What stands after a kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stands {
    Nothing,
    Claim { effect: bool },
    End,
}

/// A run that is killed at one of its passes.
struct Killed {
    flow: Flow,
    point: String,
    stands: Stands,
    home: TempDir,
}

/// The points that a run passes where nobody kills it.
fn passes(flow: Flow) -> Vec<String> {
    let home = tempfile::tempdir().expect("there is room for temporary files");
    action::born(home.path());
    let over = process::run(&format!("action {} 0", flow.as_str()), home.path()).well();
    over.after("passed").map(str::to_owned).collect()
}

/// What stands once the run was killed at its pass `at`, counted from 0.
fn stands(passes: &[String], at: usize) -> Stands {
    let mut commits = (0..passes.len()).filter(|pass| passes[*pass] == "sqlite.batch.before-commit");
    let committed_at = |pass: Option<usize>| pass.is_some_and(|pass| pass < at);
    let (first, second) = (commits.next(), commits.next());
    let coupled = passes.iter().any(|point| point.starts_with("sqlite.coupled."));
    let granted = passes.iter().position(|point| point == "gate.begin.claimed");
    match (committed_at(first), committed_at(second)) {
        (true, true) => Stands::End,
        (true, false) if coupled => Stands::End,
        (true, false) => Stands::Claim { effect: granted.is_some_and(|granted| granted < at) },
        (false, _) => Stands::Nothing,
    }
}

fn killed(flow: Flow, passes: &[String], at: usize) -> Killed {
    let home = tempfile::tempdir().expect("there is room for temporary files");
    action::born(home.path());
    let over = process::run(&format!("action {} {}", flow.as_str(), at + 1), home.path()).killed();
    let before: Vec<&str> = over.after("passed").collect();
    assert_eq!(before, passes[..=at], "every run goes the same way");
    Killed { flow, point: passes[at].clone(), stands: stands(passes, at), home }
}

fn every_kill_of(flow: Flow) -> Vec<Killed> {
    let passes = passes(flow);
    (0..passes.len()).map(|at| killed(flow, &passes, at)).collect()
}

impl Killed {
    fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().expect("there is room for temporary files");
        for entry in fs::read_dir(self.home.path()).expect("it is there") {
            let entry = entry.expect("it can be read");
            fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("it can be copied");
        }
        copy
    }

    /// Restarts on a copy of what the killed process left, and lets `check` look.
    async fn restart<C: Future<Output = ()>>(&self, check: impl FnOnce(Restarted) -> C) {
        let copy = self.copy();
        let before = effects(copy.path(), self.flow);
        let store = action::open(copy.path());
        let gate = Gate::new(store.clone()).expect("a gate opens");
        check(Restarted { flow: self.flow, point: self.point.clone(), store, gate }).await;
        let after = effects(copy.path(), self.flow);
        assert_eq!(after, before, "{:?} at {}: the effect was repeated", self.flow, self.point);
    }
}

fn effects(directory: &Path, flow: Flow) -> usize {
    match flow {
        Flow::Complete | Flow::Release | Flow::Doubt => action::effects(directory).values().sum(),
        Flow::Coupled | Flow::Owned => action::coupled_effects(directory).values().map(Vec::len).sum(),
    }
}

/// A process after the crash.
struct Restarted {
    flow: Flow,
    point: String,
    store: Arc<SqliteStore>,
    gate: Gate,
}

impl Restarted {
    async fn record(&self) -> Option<Record> {
        self.store.read(&self.flow.identity(KEY)).await.expect("the store answers").record.map(Arc::unwrap_or_clone)
    }

    /// The record in doubt, as an operator sees it listed.
    async fn doubtful(&self) -> Record {
        let query = Query { unsettled_only: true, after: 0, limit: 10 };
        let page = self.store.list(query).await.expect("the store answers");
        let [row] = &page.rows[..] else { panic!("{:?} at {}: {:?}", self.flow, self.point, page.rows) };
        let record = row.record.as_ref().expect("it can be decoded");
        let standing = record.standing(page.now);
        let lapsed = matches!(standing, Standing::Unknown { why: Why::Lapsed, .. });
        assert!(lapsed, "{:?} at {}: it is in doubt at once, not {standing:?}", self.flow, self.point);
        record.clone()
    }

    async fn retry(&self) -> Told {
        action::retry(&self.gate, self.flow, KEY).await
    }

    async fn resolve(&self, record: &Record, verdict: Verdict) -> Result<(), Refused> {
        let by = Signed { who: "operator".to_owned(), why: "the process is gone".to_owned() };
        let (identity, expected) = (self.flow.identity(KEY), Expected::record(record));
        let resolved = self.gate.resolve(&identity, expected, &verdict, Confirmation::None, &by).await;
        resolved.expect("the store answers")
    }

    async fn all_refused(&self, lease: LeaseId, wanted: impl Fn(&Late) -> Option<Refused>) {
        late::all_refused(&self.store, &self.flow.identity(KEY), lease, wanted).await;
    }
}

#[test]
fn every_point_is_passed() {
    let passed: BTreeSet<String> = Flow::ALL.into_iter().flat_map(passes).collect();
    let named: BTreeSet<String> = points::ALL.into_iter().map(str::to_owned).collect();
    assert_eq!(passed, named, "a point that no run passes is not tested");
}

#[tokio::test]
async fn nothing_stands_before_the_claim_is_committed() {
    for flow in [Flow::Complete, Flow::Release, Flow::Doubt] {
        for killed in every_kill_of(flow).iter().filter(|killed| killed.stands == Stands::Nothing) {
            assert_eq!(effects(killed.home.path(), flow), 0, "{}", killed.point);
            killed
                .restart(|restarted| async move {
                    assert_eq!(restarted.record().await, None, "{}", restarted.point);
                    let begun = restarted.gate.begin(&mut flow.claim(KEY), &flow.policy()).await;
                    assert!(matches!(begun, Ok(Begun::Execute(_))), "{}: {begun:?}", restarted.point);
                })
                .await;
        }
    }
}

#[tokio::test]
async fn a_claim_without_an_end_is_in_doubt() {
    for flow in [Flow::Complete, Flow::Release, Flow::Doubt] {
        for killed in every_kill_of(flow) {
            let Stands::Claim { effect } = killed.stands else { continue };
            let wanted = usize::from(effect && flow != Flow::Release);
            assert_eq!(effects(killed.home.path(), flow), wanted, "{flow:?} at {}", killed.point);
            killed.restart(never_again).await;
            killed.restart(completed_late).await;
            killed.restart(resolved_as_happened).await;
            killed.restart(resolved_as_not_happened).await;
        }
    }
}

/// A retry does not run it, and nobody else's lease touches it.
async fn never_again(restarted: Restarted) {
    restarted.doubtful().await;
    for _ in 0..2 {
        assert_eq!(restarted.retry().await, Told::Unknown(Why::Lapsed));
    }
    restarted.all_refused(LeaseId::from_bytes([7; 16]), |_| Some(Refused::OtherLease)).await;
}

/// The same lease still settles it, and then nothing does.
async fn completed_late(restarted: Restarted) {
    let lease = restarted.doubtful().await.lease.id;
    let receipt = Receipt::new(201, "late but true");
    let completed = Late::Complete(receipt.clone()).send(&restarted.store, &restarted.flow.identity(KEY), lease).await;
    let state = completed.map(|record| record.map(|record| record.state.clone()));
    let Ok(Some(State::Done { author: Author::Owner, .. })) = state else { panic!("{state:?}") };
    assert_eq!(restarted.retry().await, Told::Answered(receipt));
    let repeat_is_success = |late: &Late| (!matches!(late, Late::Complete(_))).then_some(Refused::Done);
    restarted.all_refused(lease, repeat_is_success).await;
    restarted.all_refused(LeaseId::from_bytes([7; 16]), |_| Some(Refused::OtherLease)).await;
}

async fn resolved_as_happened(restarted: Restarted) {
    let record = restarted.doubtful().await;
    let (receipt, policy) = (Receipt::new(201, "the operator found it"), restarted.flow.policy());
    let verdict =
        Verdict::Happened { receipt: receipt.clone(), retention: policy.retention, expiry: Expiry::NewAction };
    assert_eq!(restarted.resolve(&record, verdict.clone()).await, Ok(()));
    assert_eq!(restarted.resolve(&record, verdict).await, Err(Refused::Changed));
    assert_eq!(restarted.retry().await, Told::Answered(receipt));
    restarted.all_refused(record.lease.id, |_| Some(Refused::SettledByOperator)).await;
}

/// It is absent then, and runs once more under a lease that the old one cannot touch.
async fn resolved_as_not_happened(restarted: Restarted) {
    let record = restarted.doubtful().await;
    assert_eq!(restarted.resolve(&record, Verdict::DidNotHappen).await, Ok(()));
    restarted.all_refused(record.lease.id, |_| Some(Refused::Absent)).await;
    let flow = restarted.flow;
    let begun = restarted.gate.begin(&mut flow.claim(KEY), &flow.policy()).await;
    let Ok(Begun::Execute(mut permit)) = begun else { panic!("{begun:?}") };
    restarted.all_refused(record.lease.id, |_| Some(Refused::OtherLease)).await;
    assert_eq!(restarted.retry().await, Told::InProgress);
    let receipt = Receipt::new(201, "the second run");
    let ended = restarted.gate.complete(&mut permit, &receipt).await;
    assert!(matches!(ended, Ok(Ended::Written { expires_at: Some(_) })), "{ended:?}");
    restarted.all_refused(record.lease.id, |_| Some(Refused::OtherLease)).await;
    assert_eq!(restarted.retry().await, Told::Answered(receipt));
}

#[tokio::test]
async fn an_end_that_is_committed_stands() {
    for flow in [Flow::Complete, Flow::Release, Flow::Doubt] {
        for killed in every_kill_of(flow).iter().filter(|killed| killed.stands == Stands::End) {
            killed
                .restart(|restarted| async move {
                    match flow {
                        Flow::Complete | Flow::Coupled | Flow::Owned => {
                            assert_eq!(restarted.retry().await, Told::Answered(Receipt::new(201, KEY)));
                        }
                        Flow::Release => assert_eq!(restarted.record().await, None),
                        Flow::Doubt => assert_eq!(restarted.retry().await, Told::Unknown(Why::Doubted)),
                    }
                })
                .await;
        }
    }
}

#[tokio::test]
async fn a_coupled_action_is_nothing_or_everything() {
    let kills = every_kill_of(Flow::Coupled);
    assert!(kills.iter().any(|killed| killed.stands == Stands::Nothing), "it can be nothing");
    assert!(kills.iter().any(|killed| killed.stands == Stands::End), "it can be everything");
    for killed in kills {
        let directory = killed.home.path();
        let wanted = usize::from(killed.stands == Stands::End);
        assert_eq!(effects(directory, Flow::Coupled), wanted, "{}", killed.point);
        let store = action::open(directory);
        assert_eq!(store.about().await.expect("the store answers").records, wanted as u64, "{}", killed.point);
        let told = action::coupled(&store, KEY).await;
        assert_eq!(told, Told::Answered(Receipt::new(201, "row 1")), "{}: a retry completes it", killed.point);
        assert_eq!(effects(directory, Flow::Coupled), 1, "{}: and runs it once", killed.point);
        assert_eq!(store.about().await.expect("the store answers").records, 1, "{}", killed.point);
    }
}

/// The same in a transaction of the caller's own, which passes no point of ours: killed after each of its steps.
#[tokio::test]
async fn an_owned_transaction_is_nothing_or_everything() {
    const STEPS: usize = 4;
    for step in 1..=STEPS {
        let home = tempfile::tempdir().expect("there is room for temporary files");
        action::born(home.path());
        process::run(&format!("owned {step}"), home.path()).killed();
        let wanted = usize::from(step == STEPS);
        assert_eq!(effects(home.path(), Flow::Owned), wanted, "step {step}");
        let store = action::open(home.path());
        assert_eq!(store.about().await.expect("the store answers").records, wanted as u64, "step {step}");
        let told = action::owned(&store, home.path(), KEY, || {});
        assert_eq!(told, Told::Answered(Receipt::new(201, "row 1")), "step {step}: a retry completes it");
        assert_eq!(effects(home.path(), Flow::Owned), 1, "step {step}: and runs it once");
        assert_eq!(store.about().await.expect("the store answers").records, 1, "step {step}");
    }
}

/// Whoever restarts may crash as well, at every point of that.
#[tokio::test]
async fn a_crash_while_restarting_changes_nothing() {
    let flow = Flow::Complete;
    let passes = passes(flow);
    let before_its_end = passes.iter().position(|point| point == "gate.complete.before-write").expect("it is passed");
    let claimed = killed(flow, &passes, before_its_end);
    let restart = |pass: usize| {
        let copy = claimed.copy();
        let over = process::run(&format!("restart {pass}"), copy.path());
        (copy, over)
    };
    let (_, over) = restart(0);
    let restarts = over.well().after("passed").count();
    assert!(restarts >= 3, "a restart writes");
    for pass in 1..=restarts {
        let (home, over) = restart(pass);
        over.killed();
        let point = format!("a restart's pass {pass}");
        let again = Killed { flow, point, stands: Stands::Claim { effect: true }, home };
        again.restart(never_again).await;
        again.restart(completed_late).await;
    }
}
