//! How far a clock is moved, what a case lacks, and what a command's end means.

use super::{Hook, Means, Span};
use crate::catalogue::Catalogue;
use crate::settings::Settings;

#[test]
fn a_clock_is_moved_to_either_side_of_the_end() {
    let check = |window: u64, wanted: [u64; 3]| {
        let found = [Span::WindowMinus, Span::WindowPlus, Span::AcrossTheEnd].map(|span| span.seconds(window));
        assert_eq!(found, wanted, "{window}");
    };
    check(10, [9, 11, 2]);
    check(300, [270, 330, 60]);
    check(86_400, [86_340, 86_460, 120]);
    let short = Settings { window: Some(9), ..Settings::default() };
    assert!(Means::of(&short).is_err_and(|error| error.to_string().contains("shorter than 10 s")));
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
    check(&none, "ret/inside", &["--clock-command", "--window"]);
    check(&none, "rst/graceful", &["--restart-command"]);
    check(&none, "rst/kill-during", &["--kill-command"]);
    check(&none, "scope/other-principal", &["--second-credential"]);
    check(&none, "scope/weaker-credential", &["--same-tenant-credential"]);
    check(&none, "conc/instances", &["--second-url"]);
    let clock = Settings { clock_command: Some("true".to_owned()), ..none };
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
    check("do = \"hook\"\nrun = \"kill\"\nduring = \"again\"", Err("never started"));
}

#[tokio::test]
async fn a_command_that_fails_says_so() {
    let means = |command: &str| {
        Means::of(&Settings { clock_command: Some(command.to_owned()), ..Settings::default() }).unwrap()
    };
    let told = means("test $PROBE_SECONDS -eq 5 && test $PROBE_SECONDS_TOTAL -eq 12").run(Hook::Clock, 5, 12).await;
    assert_eq!(told, Ok(()));
    let failed = means("exit 3").run(Hook::Clock, 0, 0).await;
    assert!(failed.as_ref().is_err_and(|why| why.contains("--clock-command") && why.contains('3')), "{failed:?}");
    let missing = means("true").run(Hook::Kill, 0, 0).await;
    assert_eq!(missing, Err("it needs --kill-command".to_owned()));
}
