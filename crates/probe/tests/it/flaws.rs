//! Cases that need a command, another instance or another caller: a right shop answers all of them and gets no deviation,
//! and each flaw is seen by the cases of the golden table.
//!
//! The table has the deviations of each flaw. What does not belong here: the flaws themselves (`shop.rs`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use counterfoil_probe::{Also, Contract, FailOn, Run, Settings, Verdict};
use tokio::task::JoinSet;

use crate::right::{is_race, run};
use crate::shop::{CALLERS, Flaw, Shop, WINDOW};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/flaws.txt");

/// How many shops are probed at once.
const AT_ONCE: usize = 4;

/// Everything that can be said of a shop. Its instances live as long as the runtime of the test.
pub(crate) async fn settings(shop: &Shop) -> Settings {
    let (second, region) = (shop.another("second").await, shop.another("region").await);
    let credential = |number: usize| Some(format!("Authorization: {}", CALLERS[number].0));
    let call = |path: &str| Some(format!("curl -sf --noproxy '*' {}", shop.url(&format!("/control/{path}"))));
    Settings {
        url: Some(shop.url("/orders")),
        other_url: Some(shop.url("/refunds")),
        second_url: Some(second.url("/orders")),
        body: Some("{\"product\":\"tea\",\"quantity\":2,\"tags\":[\"a\",\"b\"]}".to_owned()),
        vary: Some("/quantity".to_owned()),
        id: Some("/id".to_owned()),
        count_url: Some(shop.url("/count")),
        count: Some("/count".to_owned()),
        credential: credential(0),
        second_credential: credential(1),
        restart_command: call("restart"),
        kill_command: call("kill"),
        clock_command: call("clock/$1"),
        state_command: call("state/$1"),
        window: Some(WINDOW),
        default_member: Some("/gift=false".to_owned()),
        settle_ms: Some(0),
        patience_ms: Some(400),
        case: vec!["all".to_owned()],
        also: Also {
            region_url: Some(region.url("/orders")),
            sibling_url: Some(shop.url("/shops/b/orders")),
            upgraded_url: Some(second.url("/orders")),
            lookup_url: Some(shop.url("/keys/{key}")),
            cancel_url: Some(shop.url("/keys/{key}/cancel")),
            openapi_url: Some(shop.url("/openapi.json")),
            same_tenant_credential: credential(2),
            weaker_credential: credential(3),
            nested_credential: credential(4),
            nested_name: Some(":b".to_owned()),
            account_header: Some("Account: second".to_owned()),
            version_header: Some("Api-Version: 2".to_owned()),
            other_method: Some("PUT".to_owned()),
            declined: Some("{\"quantity\":2,\"declined\":true}".to_owned()),
            ..Also::default()
        },
        ..Settings::default()
    }
}

pub(crate) fn told(run: &Run, id: &str) -> Verdict {
    run.results.iter().find(|result| result.id == id).unwrap().verdict
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_shop_answers_every_case_and_gets_no_deviation() {
    let shop = Shop::open(Flaw::None).await;
    let all = settings(&shop).await;
    let fields = ["product=tea", "quantity=2", "tags=a", "tags=b"].map(str::to_owned).to_vec();
    let form = Settings { body: Some(fields.join("&")), ..all.clone() };
    let multipart = Settings { body: None, form: fields, ..all.clone() };
    let two = Settings { http2: true, ..all.clone() };
    for settings in [all, form, multipart, two] {
        let found = run(&settings).await;
        for result in &found.results {
            let fits = result.verdict.is_answer() || is_race(&result.row) || is_void(&settings, &result.id);
            assert!(fits && !matches!(result.verdict, Verdict::Deviates(_)), "{result:#?}");
        }
        assert_eq!(found.exit_code(FailOn::Any), 0);
        assert_eq!(told(&found, "seq/other-protocol").is_answer(), settings.http2);
    }
}

/// What cannot be asked of a body of this kind, or over this version of HTTP.
fn is_void(settings: &Settings, id: &str) -> bool {
    match id {
        "seq/other-protocol" | "key/header-name" | "key/list" => (id == "seq/other-protocol") != settings.http2,
        "equiv/boundary" => settings.form.is_empty(),
        "equiv/escape" => !settings.form.is_empty(),
        "equiv/null" | "equiv/white-space" => settings.body.as_ref().is_none_or(|body| !body.starts_with('{')),
        _ => false,
    }
}

/// Each flaw with the contract that has a rule for it.
const FLAWS: [(Flaw, Contract); 38] = [
    (Flaw::None, Contract::StripeV1),
    (Flaw::ListTaken, Contract::Ietf),
    (Flaw::FirstOfTwoLines, Contract::Ietf),
    (Flaw::HeaderNameHasCase, Contract::Ietf),
    (Flaw::BeyondAsciiTaken, Contract::Ec2),
    (Flaw::ReplayShowsChange, Contract::Ietf),
    (Flaw::RunsAfterDelete, Contract::Ietf),
    (Flaw::HeldRuns, Contract::Ietf),
    (Flaw::HeldFails, Contract::Ietf),
    (Flaw::InstancesApart, Contract::Ietf),
    (Flaw::LockExpires, Contract::Ietf),
    (Flaw::ComparesAllAndRuns, Contract::Ietf),
    (Flaw::ComparesAllAndRuns, Contract::StripeV1),
    (Flaw::MemberTwiceRuns, Contract::Ietf),
    (Flaw::CallerIgnored, Contract::Ietf),
    (Flaw::CallerIsCredential, Contract::StripeV1),
    (Flaw::OperationIgnored, Contract::Ietf),
    (Flaw::AccountIgnored, Contract::Ietf),
    (Flaw::RegionShared, Contract::Ec2),
    (Flaw::NamesJoined, Contract::Ietf),
    (Flaw::LimitRemembered, Contract::Ietf),
    (Flaw::DeclinedRunsLater, Contract::Ietf),
    (Flaw::FailureKept, Contract::Ec2),
    (Flaw::FailureForgotten, Contract::Ietf),
    (Flaw::StoreDownRuns, Contract::Ietf),
    (Flaw::StoreDownFails, Contract::Ietf),
    (Flaw::ExpiresEarly, Contract::Ietf),
    (Flaw::NeverExpires, Contract::Ietf),
    (Flaw::ExpiredStillCompared, Contract::StripeV1),
    (Flaw::PurgedRuns, Contract::Ietf),
    (Flaw::PurgedReplays, Contract::Ietf),
    (Flaw::ExpiresWhileRunning, Contract::Ietf),
    (Flaw::RestartForgets, Contract::Ietf),
    (Flaw::KillForgets, Contract::Ietf),
    (Flaw::KillForgetsRunning, Contract::Ietf),
    (Flaw::PowerCutForgets, Contract::Ietf),
    (Flaw::ProtocolsApart, Contract::Ietf),
    (Flaw::HeldRuns, Contract::StripeV1),
];

async fn probed(flaw: Flaw, contract: Contract) -> (String, Run) {
    let shop = Shop::open(flaw).await;
    let key = Some("header:Idempotency-Key".to_owned());
    let mut settings = Settings { contract: Some(contract), key, ..settings(&shop).await };
    if (flaw, contract) == (Flaw::ComparesAllAndRuns, Contract::StripeV1) {
        // Only a multipart body has a boundary.
        (settings.body, settings.form) = (None, vec!["product=tea".to_owned(), "quantity=2".to_owned()]);
    }
    settings.http2 = flaw == Flaw::ProtocolsApart;
    (format!("{flaw:?} under {}", contract.name()), run(&settings).await)
}

/// The deviations of cases that need more than the default; those in a race may be missing.
fn deviations(run: &Run) -> BTreeMap<String, String> {
    let needs_more = counterfoil_probe::Catalogue::built_in().unwrap().cases;
    let needs_more: Vec<String> = needs_more.into_iter().filter(|case| !case.safe).map(|case| case.id).collect();
    let deviates = run.results.iter().filter(|result| matches!(result.verdict, Verdict::Deviates(_)));
    let named = deviates.filter(|result| needs_more.contains(&result.id));
    named.map(|result| (format!("{} {}", result.row, result.id), result.verdict.name().to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_flaw_is_seen_by_the_cases_of_the_table() {
    let (mut runs, mut tasks) = (BTreeMap::new(), JoinSet::new());
    for (flaw, contract) in FLAWS {
        if tasks.len() >= AT_ONCE {
            let (name, run) = tasks.join_next().await.unwrap().unwrap();
            runs.insert(name, run);
        }
        tasks.spawn(probed(flaw, contract));
    }
    while let Some(done) = tasks.join_next().await {
        let (name, run) = done.unwrap();
        runs.insert(name, run);
    }
    let mut table = String::new();
    for (name, run) in &runs {
        let found = deviations(run);
        assert!(!found.is_empty(), "no case sees {name}");
        writeln!(table, "{name}").unwrap();
        for (case, verdict) in found {
            writeln!(table, "  {case}: {verdict}").unwrap();
        }
    }
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        std::fs::write(GOLDEN, &table).unwrap();
    }
    assert_eq!(table, std::fs::read_to_string(GOLDEN).unwrap_or_default());
}

/// A rule that no wrong server was seen to break proves nothing.
#[test]
fn every_rule_of_a_case_that_needs_more_is_broken_by_some_flaw() {
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    for case in counterfoil_probe::Catalogue::built_in().unwrap().cases.iter().filter(|case| !case.safe) {
        let judged = [Contract::Ietf, Contract::StripeV1, Contract::Ec2].iter().any(|one| !case.rules(*one).is_empty());
        let seen = golden.contains(&format!("  {} {}: deviates", case.row, case.id));
        assert_eq!(judged, seen, "{}", case.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_given_is_unobservable_and_named() {
    let shop = Shop::open(Flaw::None).await;
    let full = settings(&shop).await;
    let bare = Settings {
        second_url: None,
        second_credential: None,
        restart_command: None,
        kill_command: None,
        clock_command: None,
        state_command: None,
        window: None,
        also: Also::default(),
        ..full.clone()
    };
    let found = run(&bare).await;
    for (id, flag) in [
        ("rst/restart", "--restart-command"),
        ("rst/kill-after", "--kill-command"),
        ("rst/power-cut", "--state-command"),
        ("ret/inside", "--window"),
        ("conc/instances", "--second-url"),
        ("scope/other-caller", "--second-credential"),
        ("scope/account", "account-header in [also]"),
        ("recover/lookup", "lookup-url in [also]"),
        ("fail/declined", "declined in the file"),
    ] {
        let result = found.results.iter().find(|result| result.id == id).unwrap();
        assert!(result.verdict == Verdict::Unobservable && result.why.contains(flag), "{result:#?}");
        assert!(result.exchanges.is_empty(), "{id}");
    }
    let state =
        Settings { state_command: Some("exit 3".to_owned()), case: vec!["conc/held".to_owned()], ..full.clone() };
    assert_eq!(told(&run(&state).await, "conc/held"), Verdict::Unobservable, "a state that is not known");
    let kill = Settings { kill_command: Some("exit 3".to_owned()), case: vec!["H2".to_owned()], ..full.clone() };
    assert_eq!(told(&run(&kill).await, "rst/kill-after"), Verdict::SetupFailed);
    let ec2 = Settings { contract: Some(Contract::Ec2), case: vec!["A10".to_owned()], ..full };
    assert_eq!(told(&run(&ec2).await, "key/header-name"), Verdict::NotApplicable);
}
