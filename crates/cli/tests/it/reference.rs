//! `docs/reference/cli.md` repeats the help of every command, and names every exit code and state.

use crate::command::run;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");

/// Every command, found by following the help.
fn commands() -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut next = 0;
    while let Some(command) = all.get(next).cloned() {
        next += 1;
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = run(folder.path(), &arguments).out;
        let Some((_, below)) = help.split_once("Commands:\n") else { continue };
        for line in below.lines().take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap();
            if line.starts_with("  ") && !line.starts_with("   ") && name != "help" {
                all.push(command.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
    }
    all
}

#[test]
fn help_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut page = std::fs::read_to_string(PAGE).unwrap();
    let commands = commands();
    assert_eq!(commands.len(), 34, "{commands:?}");
    for command in commands {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let head = format!("```text\n$ counterfoil {}\n", arguments.join(" "));
        let help = run(folder.path(), &arguments).out;
        let (before, rest) = page.split_once(&head).unwrap_or_else(|| panic!("no block {head:?} in cli.md"));
        let (kept, after) = rest.split_once("```").unwrap();
        if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
            page = format!("{before}{head}{help}```{after}");
            continue;
        }
        assert_eq!(kept, help, "{head}; COUNTERFOIL_BLESS=1 writes it anew");
    }
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        std::fs::write(PAGE, page).unwrap();
    }
}

#[test]
fn codes_of_send() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(PAGE).unwrap();
    let help = run(folder.path(), &["send", "--help"]).out;
    let (_, table) = help.split_once("Exit codes:\n").unwrap();
    let rows: Vec<(&str, &str)> = table.lines().filter_map(|line| line.trim().split_once("  ")).collect();
    let codes: Vec<&str> = rows.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "75", "130"]);
    for (code, words) in rows {
        assert!(page.contains(&format!("| {code} | {words} |")), "{code}: {words}");
    }
}

#[test]
fn codes_and_states() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    for row in ["| 0 |", "| 1 |", "| 2 |", "| 3 |"] {
        assert!(page.contains(row), "{row}");
    }
    for state in ["running", "lapsed", "unknown", "done", "expired", "absent", "unreadable"].into_iter().chain([
        "ready",
        "sending",
        "waiting",
        "uncertain",
        "overdue",
        "succeeded",
        "refused",
    ]) {
        assert!(page.contains(&format!("| `{state}` |")), "{state}");
    }
}
