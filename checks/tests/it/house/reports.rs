//! The page of field reports accounts for every report: with tests that exist, with a reason, or with what it waits for;
//! and the page of promises names a test for each.
//!
//! The list of reports stands here. What does not belong here: whether a test proves what its row says.

use std::collections::BTreeSet;

use super::documents::resolve;
use super::tokens::{functions, lex};
use super::tree::{File, files, hold, seen};

const PAGE: &str = "docs/reference/field-reports.md";
const PROMISES: &str = "docs/reference/promises.md";

/// Every report of the kinds that the page takes one by one; the faults of callers are numbered without a gap.
const REPORTS: [u16; 103] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 27, 28, 29, 30, 31, 32, 33,
    34, 35, 36, 37, 38, 39, 41, 42, 43, 44, 45, 47, 49, 50, 51, 52, 53, 54, 55, 56, 58, 59, 60, 61, 62, 63, 64, 65, 66,
    67, 68, 70, 71, 72, 73, 75, 76, 77, 78, 79, 80, 82, 83, 84, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 99,
    100, 101, 102, 103, 104, 106, 107, 109, 110, 111, 112, 113, 115, 116, 118,
];

/// How the last cell of a row without a test begins.
const REASONS: [&str; 2] = ["Cannot occur:", "Waits for"];

/// One row: the line it stands on, its report, and what it says of us.
struct Row<'a> {
    line: usize,
    report: u16,
    here: &'a str,
}

/// `| [B07](target) | what went wrong | here |`, or `| F07 | …`; nothing where the line is no such row.
fn row(kind: char, (index, line): (usize, &str)) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.trim().strip_prefix('|')?.trim_end_matches('|').split('|').map(str::trim).collect();
    let id = cells.first()?.trim_start_matches('[').split(']').next()?;
    let report = id.strip_prefix(kind)?.parse().ok()?;
    Some(Row { line: index + 1, report, here: cells.get(2).copied().unwrap_or_default() })
}

/// The tests of a cell, each a link from the function's name to its file.
fn tests(cell: &str) -> impl Iterator<Item = (&str, &str)> {
    cell.split("[`").skip(1).filter_map(|link| {
        let (name, rest) = link.split_once("`](")?;
        Some((name, rest.split(')').next()?))
    })
}

fn accounted(page: &str, kind: char, reports: &[u16]) -> Vec<String> {
    let rows: Vec<Row<'_>> = page.lines().enumerate().filter_map(|line| row(kind, line)).collect();
    let mut faults = Vec::new();
    for report in reports {
        let lines: Vec<String> =
            rows.iter().filter(|row| row.report == *report).map(|row| row.line.to_string()).collect();
        if lines.len() != 1 {
            faults.push(format!("{kind}{report:02} has {} rows: {}", lines.len(), lines.join(", ")));
        }
    }
    for Row { line, report, here } in rows {
        if !reports.contains(&report) {
            faults.push(format!("{PAGE}:{line}: {kind}{report:02} is not on the list"));
        }
        if tests(here).next().is_none() && !REASONS.iter().any(|reason| here.starts_with(reason)) {
            faults.push(format!("{PAGE}:{line}: {kind}{report:02} names neither a test nor a reason"));
        }
    }
    faults
}

fn named(path_of_page: &str, page: &str, files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    let links = page.lines().enumerate().flat_map(|(index, line)| tests(line).map(move |test| (index + 1, test)));
    for (line, (name, target)) in links {
        let path = resolve(path_of_page, target).unwrap_or_default();
        let file = files.iter().find(|file| file.path == path && file.is_rust());
        let names: BTreeSet<String> = file
            .map(|file| functions(lex(file)).into_iter().map(|function| function.name).collect())
            .unwrap_or_default();
        if !names.contains(name) {
            faults.push(format!("{path_of_page}:{line}: no function `{name}` in `{target}`"));
        }
    }
    faults
}

fn page<'f>(path: &str, files: &'f [File]) -> &'f str {
    files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str())
}

/// What the table of callers has a row for, by how each begins.
const CALLERS: &str = "docs/reference/sdks.md";
const CALLED: [&str; 9] = [
    "| `counterfoil send` ",
    "| stripe (Python) ",
    "| stripe (Node) ",
    "| axios-retry ",
    "| reqwest-retry ",
    "| `curl --retry 3 --retry-all-errors` ",
    "| effect-ledger ",
    "| DBOS ",
    "| | reply lost | reply cut | 500 | 503 | lost, then 503 | 409 | 429 | killed | outage | run twice |",
];

fn missing<'r>(page: &str, rows: &[&'r str]) -> Vec<&'r str> {
    rows.iter().copied().filter(|row| !page.lines().any(|line| line.starts_with(row))).collect()
}

#[test]
fn every_caller_has_its_row() {
    let files = files();
    let gone = missing(page(CALLERS, &files), &CALLED);
    assert!(gone.is_empty(), "print {CALLERS} by `./checks/sdks`: it lacks {gone:?}");
    assert_eq!(missing("| a 1 |\n", &["| a ", "| b "]), ["| b "]);
}

#[test]
fn every_report_is_accounted_for() {
    hold(
        "give each report one row: its tests, a reason, or what it waits for",
        &accounted(page(PAGE, &files()), 'B', &REPORTS),
    );
    let callers: Vec<u16> = (1..=41).collect();
    hold(
        "give each fault of callers one row: its tests, a reason, or what it waits for",
        &accounted(page(PAGE, &files()), 'F', &callers),
    );
}

#[test]
fn the_tests_of_the_reports_exist() {
    let files = files();
    hold("name the test that proves it now; if none does, write it", &named(PAGE, page(PAGE, &files), &files));
}

/// The rows of a table whose last cell names no test.
fn unproved(page: &str) -> Vec<String> {
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with("| ") && !line.starts_with("| ---"));
    let cells =
        rows.map(|(index, line)| (index + 1, line.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or("")));
    let bare = cells.filter(|(_, cell)| !cell.trim().starts_with("proof") && tests(cell).next().is_none());
    bare.map(|(line, _)| format!("{PROMISES}:{line}: no test proves it")).collect()
}

#[test]
fn every_promise_is_proved_by_tests_that_exist() {
    let files = files();
    let page = page(PROMISES, &files);
    assert!(page.contains("| 1 |"), "the page has its table");
    hold("name the test that proves it", &[named(PROMISES, page, &files), unproved(page)].concat());
    seen("a promise without a test", &unproved("| 1 | kept | by nobody |\n"), ":1: no test proves it");
    assert!(unproved("| a | proof |\n| 1 | [`one`](a.rs) |\n").is_empty());
}

#[test]
fn planted_faults_are_seen() {
    let head = "| report | elsewhere | here |\n|---|---|---|\n";
    let first =
        "| [B01](https://x.test/1) | it raced | [`one`](../../crates/a.rs), then [`two`](../../crates/a.rs) |\n";
    let second = "| B02 | it hung | Cannot occur: nothing waits |\n";
    let whole = format!("{head}{first}{second}");
    assert!(accounted(&whole, 'B', &[1, 2]).is_empty());
    seen("no row", &accounted(&format!("{head}{first}"), 'B', &[1, 2]), "B02 has 0 rows");
    seen("two rows", &accounted(&format!("{whole}{second}"), 'B', &[1, 2]), "B02 has 2 rows: 4, 5");
    seen("a row too many", &accounted(&whole, 'B', &[1]), ":4: B02 is not on the list");
    for empty in ["| B02 | it hung | it is fine |\n", "| B02 | Cannot occur: x |\n", "| B02 | [`one`](a.rs) | |\n"] {
        seen(empty, &accounted(&format!("{head}{first}{empty}"), 'B', &[1, 2]), ":4: B02 names neither");
    }

    let tree = |text: &str| [File::new("crates/a.rs", text), File::new("crates/b.md", "fn one() {} fn two() {}")];
    assert!(named(PAGE, &whole, &tree("#[test] fn one() {} proptest! { #[test] fn two(x: u8) {} }")).is_empty());
    seen("a test that is gone", &named(PAGE, &whole, &tree("fn one() {} // fn two() {}")), ":3: no function `two` in");
    for target in ["../../crates/c.rs", "../../crates/b.md", "../../../../crates/a.rs"] {
        seen(target, &named(PAGE, &format!("[`one`]({target})"), &tree("fn one() {}")), ":1: no function `one`");
    }
}
