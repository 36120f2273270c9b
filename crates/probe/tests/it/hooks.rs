//! What hooks into a service, other callers and a second instance show, and what is said where one of them is missing.

use std::collections::BTreeMap;

use counterfoil_probe::{Case, CaseResult, Catalogue, Hook, Probe, Run, Settings, Severity, Value, Verdict};

use crate::orders::{Fault, Orders};
use crate::right::{as_repeatable, run, settings};

fn named(settings: Settings, case: &str) -> Settings {
    Settings { case: vec![case.to_owned()], ..settings }
}

fn of<'a>(run: &'a Run, id: &str) -> &'a CaseResult {
    run.results.iter().find(|result| result.id == id).unwrap()
}

/// Asks one case of a service in which a kill meets a request under way.
async fn killed(fault: Fault, held: (u64, u32), id: &str) -> CaseResult {
    let orders = Orders::holding(fault, Some(held)).await;
    of(&run(&named(settings(&orders), id)).await, id).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_meets_a_request_under_way() {
    // The controls make four effects, the two cases before it one each.
    let (during, held) = ("rst/kill-during", (7, 2));
    let right = killed(Fault::None, held, during).await;
    assert_eq!(right.verdict, Verdict::Conforms, "{right:#?}");
    assert_eq!(right.sheet["restart.under_way"], Value::Number(201));
    let wrong = killed(Fault::KillForgets, held, during).await;
    assert_eq!(wrong.verdict, Verdict::Deviates(Severity::Critical), "{wrong:#?}");
    assert_eq!((wrong.facts["effects"].as_str(), wrong.facts["early"].as_str()), ("2", "1"));
    let lock = killed(Fault::None, (5, 1), "conc/lock-expiry").await;
    assert_eq!((lock.verdict, lock.why.as_str()), (Verdict::Value, "201"), "{lock:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_that_comes_too_late_is_no_answer() {
    let orders = Orders::start(Fault::KillForgets).await;
    let found = run(&named(settings(&orders), "rst/kill-during")).await;
    let late = of(&found, "rst/kill-during");
    assert_eq!(late.verdict, Verdict::Inconclusive, "{late:#?}");
    assert!(late.why.contains("slower operation"), "{late:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_fails_says_why() {
    let orders = Orders::start(Fault::None).await;
    let mut failing = settings(&orders);
    failing.hook.insert(Hook::Restart, "exit 7".to_owned());
    let found = run(&named(failing, "H1")).await;
    let failed = of(&found, "rst/graceful");
    assert_eq!(failed.verdict, Verdict::SetupFailed);
    assert!(failed.why.contains("--hook restart ended with") && failed.why.contains('7'), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_that_stops_leaves_nothing_ill() {
    let orders = Orders::start(Fault::None).await;
    let healed = tempfile::tempdir().unwrap();
    let healed = healed.path().join("healed");
    let mut idle = settings(&orders);
    idle.hook.insert(Hook::Limit, "true".to_owned());
    idle.hook.insert(Hook::Heal, format!("echo healed >> {}", healed.display()));
    let found = run(&named(idle.clone(), "F4")).await;
    let stopped = of(&found, "fail/limited");
    assert_eq!(stopped.verdict, Verdict::Inconclusive, "{stopped:#?}");
    assert_eq!(std::fs::read_to_string(&healed).unwrap(), "healed\n", "once, and not for the cases without an outage");

    idle.hook.insert(Hook::Heal, "exit 3".to_owned());
    let found = run(&named(idle, "F4")).await;
    let stopped = of(&found, "fail/limited");
    assert!(stopped.why.contains("needs 429"), "the first reason stays: {stopped:#?}");
}

/// What counts may be out of reach together with the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_healed_also_where_nothing_can_be_counted() {
    let orders = Orders::start(Fault::None).await;
    let home = tempfile::tempdir().unwrap();
    let ill = home.path().join("ill");
    let mut blind = Settings { count_url: None, count: None, ..settings(&orders) };
    blind.count_command = Some(format!("test ! -e {} && echo 7", ill.display()));
    blind.hook.insert(Hook::StoreDown, format!("touch {}", ill.display()));
    blind.hook.insert(Hook::Heal, format!("rm {}", ill.display()));
    // The controls cannot hold with such a count.
    let case = Catalogue::built_in().unwrap().cases.into_iter().find(|case| case.row == "F13").unwrap();
    let alone = Catalogue { groups: Vec::new(), cases: vec![Case { depends_on: Vec::new(), ..case }] };
    let found = Probe::new(&blind, alone).unwrap().run(|_| ()).await.unwrap();
    assert_eq!(of(&found, "fail/store-down").verdict, Verdict::Inconclusive);
    assert!(!ill.exists(), "it was left ill");
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_that_a_restart_takes_along_prove_nothing() {
    let orders = Orders::start(Fault::EffectsForgotten).await;
    let found = run(&named(settings(&orders), "rst/")).await;
    for id in ["rst/graceful", "rst/kill-after-response"] {
        let result = of(&found, id);
        assert_eq!(result.verdict, Verdict::SetupFailed, "{result:#?}");
        assert!(result.why.contains("did not outlast the hook"), "{result:#?}");
    }
    assert_eq!(of(&found, "rst/kill-during").verdict, Verdict::DependsOnFailed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_credential_is_another_question() {
    let check = async |fault: Fault, verdict: Verdict, status: u64| {
        let orders = Orders::start(fault).await;
        let weaker = Some("Authorization: Bearer may-only-read".to_owned());
        let found = run(&named(Settings { same_tenant_credential: weaker, ..settings(&orders) }, "E")).await;
        let result = of(&found, "scope/weaker-credential");
        assert_eq!((result.verdict, &result.sheet["scope.weaker_credential"]), (verdict, &Value::Number(status)));
        assert_eq!(of(&found, "scope/other-credential").verdict, Verdict::Inconclusive);
    };
    check(Fault::None, Verdict::No, 401).await;
    check(Fault::StoredBeforeCredential, Verdict::Yes, 201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_given_is_left_out_or_named() {
    let orders = Orders::start(Fault::None).await;
    let bare = Settings {
        hook: BTreeMap::new(),
        also: BTreeMap::new(),
        declined: None,
        window: None,
        second_credential: None,
        same_tenant_credential: None,
        nested_credential: None,
        account_header: None,
        ..settings(&orders)
    };
    let plan = |settings: &Settings| Probe::new(settings, Catalogue::built_in().unwrap()).unwrap().plan();
    let (whole, less) = (plan(&as_repeatable(&orders)), plan(&bare));
    assert_eq!((whole.left_out, whole.flags.len()), (0, 0));
    assert_eq!((less.left_out, less.flags.len()), (whole.cases.len() - less.cases.len(), 29), "{:?}", less.flags);
    let group = named(bare, "G");
    let alone = plan(&Settings { case: vec!["seq/one-effect".to_owned()], ..group.clone() });
    assert_eq!(plan(&group).effects, alone.effects, "what cannot be asked costs nothing");
    let found = run(&group).await;
    let unseen: Vec<_> = found.results.iter().filter(|result| result.row.starts_with('G')).collect();
    assert_eq!(unseen.len(), 9);
    for result in unseen {
        let needs = match result.row.as_str() {
            "G7" => "it needs --key header:Repeatability-Request-ID and --window",
            "G8" => "it needs --key header:Repeatability-Request-ID",
            "G9" => "it needs --hook clock and --hook heal and --hook hold and --window",
            _ => "it needs --hook clock and --window",
        };
        let told = (result.verdict, result.why.as_str(), result.exchanges.len());
        assert_eq!(told, (Verdict::Unobservable, needs, 0));
    }
}
