//! Which command a step calls with which argument, and what a command that fails is.

use super::{Call, Hooks, run};
use crate::case::{Hook, State};
use crate::lack::Lack;
use crate::settings::Settings;

fn hooks() -> Hooks {
    let told = |text: &str| Some(text.to_owned());
    Hooks::of(&Settings {
        restart_command: told("restart"),
        clock_command: told("clock"),
        state_command: told("state"),
        window: Some(90),
        ..Settings::default()
    })
}

#[test]
fn steps_become_calls() {
    let check = |hook: Hook, command: &str, argument: &str| {
        let wanted = Call { command: command.to_owned(), argument: argument.to_owned() };
        assert_eq!(hooks().call(hook), Ok(wanted), "{hook:?}");
    };
    check(Hook::Restart, "restart", "");
    check(Hook::State { to: State::FailBefore }, "state", "fail-before");
    check(Hook::Clock { seconds: Some(5), percent: None }, "clock", "5");
    check(Hook::Clock { seconds: None, percent: Some(100) }, "clock", "90");
    check(Hook::Clock { seconds: Some(1), percent: Some(95) }, "clock", "87");
    let lacks = |found: Result<Call, Lack>, flag: &str| {
        assert!(found.as_ref().is_err_and(|lack| lack.clone().why().contains(flag)), "{flag}: {found:?}");
    };
    lacks(hooks().call(Hook::Kill), "--kill-command");
    lacks(Hooks::default().call(Hook::Clock { seconds: None, percent: Some(1) }), "--window");
    lacks(Hooks::default().call(Hook::Clock { seconds: Some(1), percent: None }), "--clock-command");
}

#[tokio::test]
async fn the_argument_is_told_and_the_end_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("told");
    let call = |command: String| Call { command, argument: "7".to_owned() };
    let told = format!("echo \"$1 $COUNTERFOIL_PROBE_HOOK\" > {}", file.display());
    assert_eq!(run(&call(told)).await, Ok(()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "7 7\n");
    let failed = run(&call("exit 3".to_owned())).await;
    assert!(failed.as_ref().is_err_and(|why| why.contains("\"exit 3 7\"") && why.contains('3')), "{failed:?}");
}
