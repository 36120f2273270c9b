//! How far a clock is moved, what a case lacks, and what a command's end means.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Hook, Means, Span};
use crate::case::FirstSent;
use crate::catalogue::Catalogue;
use crate::settings::Settings;

#[test]
fn a_clock_is_moved_to_either_side_of_the_end() {
    let check = |window: u64, wanted: [u64; 4]| {
        let found =
            [Span::WindowMinus, Span::Window, Span::WindowPlus, Span::AcrossTheEnd].map(|span| span.seconds(window));
        assert_eq!(found, wanted, "{window}");
    };
    check(10, [9, 10, 11, 2]);
    check(300, [270, 300, 330, 60]);
    check(86_400, [86_340, 86_400, 86_460, 120]);
    let short = Settings { window: Some(9), ..Settings::default() };
    assert!(Means::of(&short).is_err_and(|error| error.to_string().contains("shorter than 10 s")));
}

fn hook(command: &str) -> BTreeMap<Hook, String> {
    BTreeMap::from([(Hook::Clock, command.to_owned())])
}

#[test]
fn keys_of_repeatable_requests_say_when_they_were_used_first() {
    let settings =
        Settings { key: Some("header:repeatability-request-id".to_owned()), window: Some(300), ..Settings::default() };
    let means = Means::of(&settings).unwrap();
    let first_used: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let told = |told: FirstSent| means.first_sent(told, first_used).map(|(_, value)| value);
    assert_eq!(told(FirstSent::True).as_deref(), Some("Thu, 01 Jan 2026 12:00:00 GMT"));
    assert_eq!(told(FirstSent::Old).as_deref(), Some("Thu, 01 Jan 2026 11:54:30 GMT"));
    assert_eq!(told(FirstSent::Future).as_deref(), Some("Thu, 01 Jan 2026 13:00:00 GMT"));
    let other = Means::of(&Settings { key: None, ..settings }).unwrap();
    assert_eq!(other.first_sent(FirstSent::True, first_used), None);
}

#[test]
fn a_nested_key_reads_like_another_principals() {
    let check = |given: &str, nested: &str, wanted: Option<&str>| {
        let settings = Settings { nested_credential: Some(format!("Tenant: {nested}")), ..Settings::default() };
        let given = ("tenant".to_owned(), given.to_owned());
        let found = Means::of(&settings).unwrap().nested_key(Some(&given), "k").ok();
        assert_eq!(found.as_deref(), wanted, "{nested}");
        if let Some(key) = found {
            assert_eq!(format!("{}:{key}", given.1), format!("{nested}:k"));
        }
    };
    check("a", "a:b", Some("b:k"));
    check("a", "a:b:c", Some("b:c:k"));
    check("a", "a:", None);
    check("a", "a", None);
    check("a", "b:a", None);
}

#[test]
fn what_a_case_lacks_is_named_by_its_flag() {
    let all = Catalogue::built_in().unwrap();
    let check = |settings: &Settings, id: &str, wanted: &[&str]| {
        let case = all.cases.iter().find(|case| case.id == id).unwrap();
        assert_eq!(Means::of(settings).unwrap().missing(case), wanted, "{id}");
    };
    let none = Settings::default();
    check(&none, "seq/one-effect", &[]);
    check(&none, "ret/inside", &["--hook clock", "--window"]);
    check(&none, "rst/graceful", &["--hook restart"]);
    check(&none, "rst/kill-during", &["--hook kill"]);
    check(&none, "scope/other-principal", &["--second-credential"]);
    check(&none, "scope/weaker-credential", &["--same-tenant-credential"]);
    check(&none, "scope/component-boundary", &["--nested-credential"]);
    check(&none, "scope/account-header", &["--account-header"]);
    check(&none, "conc/slow-first", &["--hook heal", "--hook hold"]);
    check(&none, "fail/declined", &["--declined"]);
    check(&none, "ret/first-sent-old", &["--key header:Repeatability-Request-ID", "--window"]);
    check(&none, "seq/after-delete", &["--also delete"]);
    check(&none, "scope/other-operation", &[]);
    check(&none, "conc/instances", &["--also second"]);
    let clock = Settings { hook: hook("true"), ..none };
    check(&clock, "ret/inside", &["--window"]);
}

#[test]
fn hooks_say_what_they_need_and_no_more() {
    let check = |step: &str, wanted: Result<(), &str>| {
        let mut case =
            Catalogue::built_in().unwrap().cases.into_iter().find(|case| case.id == "rst/kill-during").unwrap();
        case.steps.push(toml::from_str(step).unwrap());
        match (case.check_hooks(), wanted) {
            (Ok(()), Ok(())) => {}
            (Err(why), Err(part)) => assert!(why.contains(part), "{step}: {why}"),
            (found, wanted) => panic!("{step}: {found:?}, wanted {wanted:?}"),
        }
    };
    check("do = \"hook\"\nrun = \"kill\"", Ok(()));
    check("do = \"hook\"\nrun = \"clock\"\nseconds = \"window-plus\"", Ok(()));
    check("do = \"hook\"\nrun = \"clock\"", Err("moved by seconds"));
    check("do = \"hook\"\nrun = \"kill\"\nseconds = \"window-plus\"", Err("moved by seconds"));
    check("do = \"hook\"\nrun = \"hold\"", Err("nothing heals it"));
    check("do = \"hook\"\nrun = \"kill\"\nduring = \"again\"", Err("never started"));
}

#[tokio::test]
async fn a_command_that_fails_says_so() {
    let means = |command: &str| Means::of(&Settings { hook: hook(command), ..Settings::default() }).unwrap();
    let told = means("test $PROBE_SECONDS -eq 5 && test $PROBE_SECONDS_TOTAL -eq 12").run(Hook::Clock, 5, 12).await;
    assert_eq!(told, Ok(()));
    let failed = means("exit 3").run(Hook::Clock, 0, 0).await;
    assert!(failed.as_ref().is_err_and(|why| why.contains("--hook clock") && why.contains('3')), "{failed:?}");
    let missing = means("true").run(Hook::Kill, 0, 0).await;
    assert_eq!(missing, Err("it needs --hook kill".to_owned()));
}
