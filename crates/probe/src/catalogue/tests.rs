//! The cases that come with the crate, and what the reader refuses.

use std::collections::BTreeSet;

use super::{Catalogue, FILES};
use crate::case::{Contract, Kind};

/// The safe plan: rows of the table that need a URL, a body, what to vary and where the id stands.
const SAFE_PLAN: &str = "A1 A2 A3 A6 A9 A11 B1 B2 B3 B4 B5 B6 B9 B10 C1 C2 C5 C6 C7 C8 D1 D2 D3 D4 D5 D6 D7 D8 D9 \
                         D14 D15 E3 E8 F1 F2 F3 F9 F10 F11 F12 I1 I2 I4";

#[test]
fn the_safe_plan_is_complete() {
    let all = Catalogue::built_in().unwrap();
    let rows: BTreeSet<&str> = all.cases.iter().filter(|case| case.safe).map(|case| case.row.as_str()).collect();
    let missing: Vec<&str> = SAFE_PLAN.split(' ').filter(|row| !rows.contains(row)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(SAFE_PLAN.split(' ').count(), 43);
    assert_eq!(rows.len(), 43 + 1, "and D11, whose case of arrays needs no more than the others");
    let safe = all.cases.iter().filter(|case| case.safe).count();
    assert_eq!((safe, all.cases.len()), (48, 106), "what runs by itself stays small");
    assert!(all.cases.iter().filter(|case| case.safe).all(|case| case.hooks().next().is_none()));
    assert!(all.cases.iter().take(2).all(|case| case.control), "controls come first");
    for case in all.cases.iter().filter(|case| case.kind != Kind::Check) {
        let judged = [Contract::Ietf, Contract::StripeV1, Contract::Ec2].iter().any(|one| !case.rules(*one).is_empty());
        assert!(judged, "{} is no check, and no contract says anything of it", case.id);
    }
}

/// Rows of the whole table.
const ROWS: [(&str, usize); 9] =
    [("A", 13), ("B", 10), ("C", 10), ("D", 18), ("E", 10), ("F", 14), ("G", 9), ("H", 7), ("I", 7)];

#[test]
fn every_row_has_a_case() {
    let all = Catalogue::built_in().unwrap();
    let rows: BTreeSet<&str> = all.cases.iter().map(|case| case.row.as_str()).collect();
    for (group, count) in ROWS {
        for number in 1..=count {
            assert!(rows.contains(format!("{group}{number}").as_str()), "{group}{number}");
        }
    }
    assert_eq!(rows.len(), ROWS.iter().map(|(_, count)| count).sum::<usize>());
}

#[test]
fn names_choose_cases() {
    let all = Catalogue::built_in().unwrap();
    let count = |asked: &str| all.cases.iter().filter(|case| case.is_named(asked)).count();
    assert_eq!((count("seq/one-effect"), count("A1"), count("a11"), count("C2"), count("none")), (1, 1, 1, 2, 0));
    assert_eq!(count("B"), count("seq/"));
}

#[test]
fn the_reader_is_strict() {
    let good = FILES[0].1;
    let check = |from: &str, to: &str, part: &str| {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from:?} stands in the file");
        let found = Catalogue::read(&[("a.toml", &text)]).map(|_| ()).map_err(|error| error.to_string());
        assert!(
            found.as_ref().is_err_and(|why| why.starts_with("a.toml: ") && why.contains(part)),
            "{part}: {found:?}"
        );
    };
    assert!(Catalogue::read(&[("a.toml", good)]).is_ok());
    check("answer = ", "extra = 1\nanswer = ", "extra");
    check("key = \"k\"", "keyy = \"k\"", "keyy");
    check("do = \"send\"", "do = \"sent\"", "sent");
    check("see = \"effects\"", "see = \"effekts\"", "effekts");
    check("severity = \"critical\"", "severity = \"bad\"", "bad");
    check("row = \"A1\"", "row = \"B1\"", "is not \"A\" with a number");
    check("id = \"control/no-key-twice\"", "id = \"control/distinct-keys\"", "used twice");
    check("depends-on = [\"control/distinct-keys\"]", "depends-on = [\"later\"]", "does not stand before it");
    check("answer = \"effects\"", "answer = \"other\"", "no fact is called \"other\"");
    check("of = \"first\"", "of = \"nobody\"", "which no step makes");
    check("as = \"first\"", "as = \"\"", "needs a name and a key");
    check("key = \"k\"", "of = \"nobody\", key = \"k\"", "is meant and never sent");
    check("do = \"send\"", "do = \"hook\", run = \"dance\"", "dance");
    check("clause = \"draft", "clause = \" \" # \"draft", "a clause");
}
