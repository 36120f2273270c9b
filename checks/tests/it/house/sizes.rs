//! Budgets: a file has at most 500 lines, a function 70, and every file opens with what it is for.
//!
//! What does not belong here: limits on what the product does.

use super::tokens::{functions, lex};
use super::tree::{File, files, hold, seen};

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
const HEADER_WORDS: usize = 6;
const PLACEHOLDERS: [&str; 3] = ["placeholder", "lorem", "stub"];

fn long_files(files: &[File]) -> Vec<String> {
    let long = |file: &&File| file.text.lines().count() > FILE_LINES;
    let say = |file: &File| format!("{}: {} lines, budget {FILE_LINES}", file.path, file.text.lines().count());
    files.iter().filter(|file| file.is_rust()).filter(long).map(say).collect()
}

fn long_functions(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for function in functions(lex(file)) {
            let lines = function.last - function.first + 1;
            if lines > FUNCTION_LINES {
                let (path, first, name) = (&file.path, function.first, &function.name);
                faults.push(format!("{path}:{first}: fn {name} has {lines} lines, budget {FUNCTION_LINES}"));
            }
        }
    }
    faults
}

fn headless(files: &[File]) -> Vec<String> {
    let judge = |file: &File| {
        let header: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let header = header.join(" ").to_lowercase();
        let words: Vec<&str> =
            header.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let placeholder = words.iter().find(|word| PLACEHOLDERS.contains(word));
        match placeholder {
            _ if words.is_empty() => Some(format!("{}: does not open with a `//!` header", file.path)),
            Some(word) => Some(format!("{}: the header is a placeholder (`{word}`)", file.path)),
            None if words.len() < HEADER_WORDS => Some(format!("{}: the header says too little", file.path)),
            None => None,
        }
    };
    files.iter().filter(|file| file.is_rust()).filter_map(judge).collect()
}

#[test]
fn files_keep_to_their_budget() {
    hold("split it by the nouns it holds", &long_files(&files()));
}

#[test]
fn functions_keep_to_their_budget() {
    hold("name the steps, or turn cases into a table", &long_functions(&files()));
}

#[test]
fn every_file_says_what_it_is_for() {
    hold("open with `//!`: what the file is for, and what does not belong in it", &headless(&files()));
}

#[test]
fn planted_faults_are_seen() {
    let full = "//! x\n".repeat(FILE_LINES);
    assert!(long_files(&[File::new("a.rs", &full)]).is_empty());
    seen("501 lines", &long_files(&[File::new("a.rs", &format!("{full}//!"))]), "a.rs: 501 lines");

    let function =
        |inner: usize| format!("struct S;\nimpl S {{\n    fn f() {{\n{}    }}\n}}\n", "        g();\n".repeat(inner));
    assert!(long_functions(&[File::new("a.rs", &function(FUNCTION_LINES - 2))]).is_empty());
    seen("71 lines", &long_functions(&[File::new("a.rs", &function(FUNCTION_LINES - 1))]), "a.rs:3: fn f has 71");

    let headers = [
        ("use a::b;\n//! A header in the wrong place.\n", "does not open"),
        ("//! Stub of the gate, which decides and writes.\n", "placeholder"),
        ("//! The gate.\n", "too little"),
    ];
    for (planted, wanted) in headers {
        seen(planted, &headless(&[File::new("a.rs", planted)]), wanted);
    }
    assert!(headless(&[File::new("a.rs", "//! The gate: load, decide, write again.\n")]).is_empty());
}
