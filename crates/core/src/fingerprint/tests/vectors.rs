//! The published examples: requests, rules and the digests that every implementation must reach.
//!
//! `COUNTERFOIL_BLESS=1 cargo test -p counterfoil-core vectors` writes the results anew; the requests are written by
//! hand.

use super::{Ask, rule};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fingerprint/vectors.txt");

/// `\r`, `\n`, `\\` and `\xHH` in a body stand for the bytes they name.
fn body(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let length = match escape.as_bytes()[0] {
            b'r' => (b'\r', 1),
            b'n' => (b'\n', 1),
            b'\\' => (b'\\', 1),
            b'x' => (u8::from_str_radix(&escape[1..3], 16).unwrap(), 3),
            other => panic!("unknown escape {other}"),
        };
        bytes.push(length.0);
        rest = &escape[length.1..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// One block of the file without its results.
fn run(block: &str) -> String {
    let mut ask = Ask::new("", "");
    let mut under = String::new();
    for line in block.lines() {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "#" | "stored" | "digest" | "error" => {}
            "rule" => under = value.to_owned(),
            "method" => ask.method = value.to_owned(),
            "operation" => ask.operation = value.to_owned(),
            "path" => ask.path = value.to_owned(),
            "query" => ask.query = value.to_owned(),
            "header" => {
                let (name, value) = value.split_once('=').unwrap();
                ask = ask.with(name, value);
            }
            "body" => ask.body = body(value),
            other => panic!("unknown line {other}"),
        }
    }
    match ask.under(&rule(&under)) {
        Ok(fingerprint) => {
            let hex: String = fingerprint.digest().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("stored {}\ndigest {hex}\n", fingerprint.rule())
        }
        Err(error) => format!("error {error}\n"),
    }
}

fn is_result(line: &str) -> bool {
    ["stored ", "digest ", "error "].iter().any(|word| line.starts_with(word))
}

#[test]
fn vectors_hold() {
    let written = include_str!("../vectors.txt");
    let (head, blocks) = written.split_once("\n\n").unwrap();
    let mut expected = vec![head.to_owned()];
    for block in blocks.split("\n\n") {
        let asked: Vec<&str> = block.lines().filter(|line| !is_result(line)).collect();
        expected.push(format!("{}\n{}", asked.join("\n"), run(block).trim_end()));
    }
    let expected = expected.join("\n\n") + "\n";
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        std::fs::write(FILE, expected).unwrap();
    } else {
        assert_eq!(written, expected, "set COUNTERFOIL_BLESS=1 to write the results anew");
    }
}
