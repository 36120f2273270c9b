//! The page of probed servers names every one that it must with a version, and for each deviation in its matrix there are a
//! sentence and the exchanges.
//!
//! What does not belong here: whether the verdicts are true, which `e2e/probed.rs` sees.

use serde_json::Value;

use super::tree::{File, files, hold, seen};

const PAGE: &str = "docs/reference/probed.md";
const PEERS: [&str; 8] = [
    "asgi-idempotency-header",
    "fastapi-idempotency",
    "express-idempotency",
    "@node-idempotency/core",
    "idempotent-proxy-server",
    "axum-idempotent",
    "idempotent",
    "moto",
];

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.trim_end_matches('|').split('|').map(str::trim).collect())
}

/// The columns of the matrix: each its number, name and version, as `1 moto 5.2.5, EC2`.
fn columns(page: &str) -> Vec<&str> {
    let heads = page.lines().find(|line| line.starts_with("| row | case |"));
    heads.and_then(cells).unwrap_or_default().into_iter().skip(2).collect()
}

fn unnamed(page: &str) -> Vec<String> {
    let heads = columns(page);
    let told = |peer: &str| {
        heads.iter().any(|head| {
            let mut words = head.split([' ', ',']).skip(1);
            words.next() == Some(peer) && words.next().is_some_and(|version| version.contains('.'))
        })
    };
    PEERS.iter().filter(|peer| !told(peer)).map(|peer| format!("{PAGE}: no column of {peer} with a version")).collect()
}

fn unproven(page: &str, files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    let rows: Vec<Vec<&str>> = page.lines().filter_map(cells).collect();
    for (index, head) in columns(page).into_iter().enumerate() {
        let section = page.split(&format!("\n### {head}\n")).nth(1).unwrap_or_default();
        let section = section.split("\n### ").next().unwrap_or_default();
        let number = head.split(' ').next().unwrap_or_default();
        let link = rows.iter().find(|row| row.first() == Some(&number)).and_then(|row| row.last());
        let file = link.and_then(|link| link.split('[').nth(1)?.split(']').next());
        let path = format!("docs/reference/probed/{}", file.unwrap_or_default());
        let kept = files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
        let kept: Value = serde_json::from_str(kept).unwrap_or_default();
        let cases = kept["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
        for row in rows.iter().filter(|row| row.get(index + 2).is_some_and(|cell| cell.starts_with("**deviates"))) {
            let case = row.get(1).copied().unwrap_or_default();
            if !section.lines().any(|line| line.starts_with("- ") && line.contains(case)) {
                faults.push(format!("{PAGE}: {head}: no sentence on {case}"));
            }
            let exchanges = cases.iter().find(|kept| kept["case"] == case.trim_matches('`'));
            let exchanges = exchanges.and_then(|kept| kept["exchanges"].as_array());
            if exchanges.is_none_or(Vec::is_empty) {
                faults.push(format!("{PAGE}: {head}: no exchanges of {case}"));
            }
        }
    }
    faults
}

fn page(files: &[File]) -> &str {
    files.iter().find(|file| file.path == PAGE).map_or("", |file| &file.text)
}

#[test]
fn every_server_is_named_with_its_version() {
    hold("run ./checks/probed", &unnamed(page(&files())));
}

#[test]
fn every_deviation_has_a_sentence_and_its_exchanges() {
    let files = files();
    hold("run ./checks/probed", &unproven(page(&files), &files));
}

#[test]
fn planted_faults_are_seen() {
    let heads: Vec<String> =
        PEERS.iter().enumerate().map(|(index, peer)| format!("{} {peer} 1.{index}", index + 1)).collect();
    let whole = format!("| row | case | {} |\n", heads.join(" | "));
    assert!(unnamed(&whole).is_empty());
    seen("no version", &unnamed(&whole.replace("moto 1.7", "moto")), "no column of moto");
    seen("a name within another", &unnamed(&whole.replace("| 7 idempotent 1.6 ", "")), "of idempotent with");

    let table = "| 1 | moto | [moto.json](probed/moto.json) |\n\n| row | case | 1 moto 5.2 |\n|---|---|---|\n";
    let page = |rest: &str| format!("{table}| B1 | `seq/one` | **deviates (critical)** |\n{rest}");
    let told = page("\n### 1 moto 5.2\n\n- B1 `seq/one`, critical.\n");
    let kept = |case: &str| {
        let text = format!("{{\"cases\": [{{\"case\": \"{case}\", \"exchanges\": [{{}}]}}]}}");
        [File::new("docs/reference/probed/moto.json", &text)]
    };
    assert!(unproven(&told, &kept("seq/one")).is_empty());
    seen("no sentence", &unproven(&page("\n### 1 moto 5.2\n"), &kept("seq/one")), "no sentence on `seq/one`");
    seen("no exchanges", &unproven(&told, &kept("seq/other")), "no exchanges of `seq/one`");
    seen("no file", &unproven(&told, &[]), "no exchanges of `seq/one`");
}
