//! What may be tried, what it may cost, and what is never written down.

use std::collections::BTreeMap;

use counterfoil_probe::{Catalogue, FailOn, Hook, Place, Probe, ProbeError, Settings, Verdict, report};

use crate::orders::{CREDENTIAL, Fault, Orders, SAME_TENANT, SECOND};
use crate::right::{run, settings};

fn probe(settings: &Settings) -> Result<Probe, ProbeError> {
    Probe::new(settings, Catalogue::built_in().unwrap())
}

#[test]
fn another_machine_needs_a_word() {
    let mut settings = Settings { url: Some("https://api.example.com/orders".to_owned()), ..Settings::default() };
    assert!(probe(&settings).is_err_and(|error| error.to_string().contains("--i-own-this-api")));
    settings.i_own_this_api = true;
    assert!(probe(&settings).is_ok());
    settings.url = Some("http://127.0.0.1:1/orders".to_owned());
    settings.i_own_this_api = false;
    for place in [Place::Other, Place::Second, Place::Lookup] {
        settings.also = BTreeMap::from([(place, "http://10.0.0.1/".to_owned())]);
        assert!(probe(&settings).is_err(), "{place:?} counts too");
    }
}

#[test]
fn a_flag_wins_over_the_file_hook_by_hook() {
    let file = "[hook]\nkill = \"a\"\nheal = \"b\"\n[also]\nlookup = \"GET http://127.0.0.1:1/{{key}}\"";
    let flags = Settings { hook: BTreeMap::from([(Hook::Kill, "c".to_owned())]), ..Settings::default() };
    let settings = flags.over(Settings::parse(file).unwrap());
    assert_eq!(settings.hook, BTreeMap::from([(Hook::Kill, "c".to_owned()), (Hook::Heal, "b".to_owned())]));
    assert_eq!(settings.also.keys().collect::<Vec<_>>(), [&Place::Lookup]);
    for (unknown, says) in [("[hook]\nboil = \"a\"", "store-down"), ("[also]\ntarget = \"a\"", "sibling")] {
        let why = Settings::parse(unknown).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn names_that_choose_nothing_are_refused() {
    let case = vec!["seq/".to_owned(), "nothing".to_owned()];
    let settings = Settings { url: Some("http://127.0.0.1:1/".to_owned()), case, ..Settings::default() };
    assert!(probe(&settings).is_err_and(|error| error.to_string().contains("\"nothing\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_are_kept() {
    let orders = Orders::start(Fault::NoDedup).await;
    let found = run(&Settings { max_effects: Some(9), ..settings(&orders) }).await;
    assert!(found.effects_left.is_some_and(|left| left <= 9), "{:?}", found.effects_left);
    let orders = Orders::start(Fault::None).await;
    let found = run(&Settings { max_requests: Some(7), ..settings(&orders) }).await;
    assert!(found.exchanges.len() <= 7 && found.count(|verdict| verdict == Verdict::Inconclusive) > 0);
    let named = Settings { case: vec!["B1".to_owned()], max_requests: Some(0), ..settings(&orders) };
    let found = run(&named).await;
    assert_eq!((found.results.len(), found.exchanges.len(), found.exit_code(FailOn::Any)), (3, 0, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn controls_void_the_rest() {
    let orders = Orders::start(Fault::BodyIsKey).await;
    let found = run(&settings(&orders)).await;
    let voided = found.count(|verdict| verdict == Verdict::DependsOnFailed);
    assert!(voided > 30, "{voided}");
    assert_eq!(found.exit_code(FailOn::Critical), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_stay_out_of_every_report() {
    let orders = Orders::start(Fault::None).await;
    let found = run(&settings(&orders)).await;
    let all = [
        report::json(&found).unwrap(),
        report::lines(&found).unwrap(),
        report::junit(&found),
        report::page(std::slice::from_ref(&found)),
        report::Sheet::of(&found).to_toml().unwrap(),
    ];
    let secrets = [CREDENTIAL, SAME_TENANT, SECOND].map(|credential| credential.split(' ').next_back().unwrap());
    for text in all {
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "a credential stands in a report");
        assert!(!text.contains("session="), "a cookie stands in a report");
    }
    assert!(report::lines(&found).unwrap().contains("[redacted]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_of_reach_is_said() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = Settings { url: Some(format!("http://{unused}/")), ..Settings::default() };
    let found = probe(&settings).unwrap().run(|_| ()).await;
    assert!(matches!(found, Err(ProbeError::Unreachable(_))));
    let orders = Orders::start(Fault::None).await;
    let settings = Settings { count: Some("/nothing".to_owned()), ..crate::right::settings(&orders) };
    let found = probe(&settings).unwrap().run(|_| ()).await;
    assert!(matches!(found, Err(ProbeError::Unreachable(why)) if why.contains("/nothing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_known_before_anything_is_sent() {
    let orders = Orders::start(Fault::None).await;
    let case = vec!["E3".to_owned(), "D5".to_owned()];
    let settings = Settings { also: BTreeMap::new(), default_member: None, case, ..settings(&orders) };
    let found = run(&settings).await;
    let unseen = found.results.iter().filter(|result| result.verdict == Verdict::Unobservable);
    assert_eq!(unseen.map(|result| result.exchanges.len()).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(found.effects_left, Some(4), "the controls' own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_that_stopped_tells_what_it_left() {
    let orders = Orders::start(Fault::None).await;
    let invalid = Some("{\"quantity\":1}".to_owned());
    let found = run(&Settings { invalid, case: vec!["F2".to_owned()], ..settings(&orders) }).await;
    let stopped = found.results.last().unwrap();
    assert_eq!((stopped.verdict, stopped.summary.as_str()), (Verdict::Inconclusive, "1 sent, 201, effects 1"));
}
