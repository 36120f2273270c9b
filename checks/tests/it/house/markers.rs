//! Nothing unfinished, skipped, timed by a sleep, or tied to one machine is kept in the tree.
//!
//! The words are joined from halves, or this file would refuse itself. What does not belong here: style that clippy
//! and rustfmt already hold.

use super::tokens::{attributes, calls, lex};
use super::tree::{File, files, hold, seen};

const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const UNFINISHED_CALLS: [&str; 2] = ["todo", "unimplemented"];
const SLEEPS: [&str; 3] = ["sleep", "sleep_ms", "sleep_until"];
const CODE_ENDINGS: [&str; 6] = [".rs", ".toml", ".py", ".sql", ".sh", ".lua"];
const MACHINE: [&str; 6] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/tmp/bash_", "jobs"),
    concat!("crates", ".io/api"),
    concat!("index.crates", ".io"),
    concat!("pypi", ".org"),
];

fn is_code(file: &File) -> bool {
    CODE_ENDINGS.iter().any(|ending| file.path.ends_with(ending)) || ["test", ".ci/run"].contains(&file.path.as_str())
}

fn leftovers(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| is_code(file)) {
        for (index, line) in file.text.lines().enumerate() {
            let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            if let Some(word) = words.find(|word| LEFTOVERS.contains(word)) {
                faults.push(format!("{}:{}: {word}", file.path, index + 1));
            }
        }
        for call in if file.is_rust() { calls(lex(file)) } else { Vec::new() } {
            if UNFINISHED_CALLS.contains(&call.text.as_str()) {
                faults.push(format!("{}:{}: {}", file.path, call.line, call.text));
            }
        }
    }
    faults
}

/// Ignored tests, and examples in documentation that are neither compiled nor run.
fn skipped(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for attribute in attributes(lex(file)) {
            let mut words = attribute.text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let first = words.next().unwrap_or_default();
            if first == "ignore" || (first == "cfg_attr" && words.any(|word| word == "ignore")) {
                faults.push(format!("{}:{}: an ignored test", file.path, attribute.line));
            }
        }
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).unwrap_or_default();
            let fence = doc.trim_start().strip_prefix("```").unwrap_or_default();
            if fence.split(',').any(|word| word.trim() == "ignore") {
                faults.push(format!("{}:{}: an ignored example", file.path, index + 1));
            }
        }
    }
    faults
}

fn sleeps(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_test() && file.is_rust()) {
        for call in calls(lex(file)).iter().filter(|call| SLEEPS.contains(&call.text.as_str())) {
            faults.push(format!("{}:{}: {}", file.path, call.line, call.text));
        }
    }
    for file in files.iter().filter(|file| file.is_test() && file.path.ends_with(".py")) {
        for (index, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains(concat!("sle", "ep("))) {
            faults.push(format!("{}:{}: sleep", file.path, index + 1));
        }
    }
    faults
}

fn machine_bound(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.path != "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(name) = MACHINE.iter().find(|name| line.contains(*name)) {
                faults.push(format!("{}:{}: {name}", file.path, index + 1));
            }
        }
    }
    faults
}

#[test]
fn nothing_is_left_unfinished() {
    hold("finish it, or say in an issue what is missing", &leftovers(&files()));
}

#[test]
fn no_test_is_skipped() {
    hold("make it run, or take it away", &skipped(&files()));
}

#[test]
fn no_test_sleeps() {
    hold("wait for the event itself: a channel, a barrier, a line of output, a paused clock", &sleeps(&files()));
}

#[test]
fn nothing_is_tied_to_one_machine() {
    hold("use a relative path, and no name of a registry host", &machine_bound(&files()));
}

#[test]
fn planted_faults_are_seen() {
    for word in LEFTOVERS {
        let planted = format!("fn f() {{}}\n// {word}: later\n");
        seen(&planted, &leftovers(&[File::new("a.rs", &planted)]), "a.rs:2");
        seen(&planted, &leftovers(&[File::new("test", &planted)]), "test:2");
    }
    let call = concat!("fn f() { to", "do!(); }");
    seen(call, &leftovers(&[File::new("a.rs", call)]), "a.rs:1: to");
    assert!(leftovers(&[File::new("a.rs", "const MASTODON: u8 = 1; fn todo_list() {}")]).is_empty());

    for planted in [concat!("#[ig", "nore]\nfn f() {}"), concat!("#[cfg_attr(miri, ig", "nore = \"slow\")]\nfn f() {}")]
    {
        seen(planted, &skipped(&[File::new("a.rs", planted)]), "a.rs:1: an ignored test");
    }
    let example = concat!("/// Text.\n///\n/// ```rust,ig", "nore\n/// f();\n/// ```\nfn f() {}");
    seen(example, &skipped(&[File::new("a.rs", example)]), "a.rs:3: an ignored example");

    let nap = concat!("fn f() {\n    tokio::time::sle", "ep(d).await;\n}");
    for path in ["checks/tests/it/e2e.rs", "crates/store/src/gate/tests.rs", "crates/core/tests/it/main.rs"] {
        seen(path, &sleeps(&[File::new(path, nap)]), ":2: sleep");
    }
    assert!(sleeps(&[File::new("crates/server/src/sweep.rs", nap)]).is_empty());
    let python = concat!("import time\ntime.sle", "ep(1)\n");
    seen(python, &sleeps(&[File::new("checks/python/a.py", python)]), "a.py:2");

    for name in MACHINE {
        let planted = format!("# a\n\nsee {name}file\n");
        seen(&planted, &machine_bound(&[File::new("README.md", &planted)]), "README.md:3");
    }
}
