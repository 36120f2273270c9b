//! All SQL of the project stands in `crates/store`.
//!
//! What does not belong here: whether that SQL is right. Test code is left out: an effect in a test is a statement.

use super::tokens::{lex, literals};
use super::tree::{File, files, hold, seen};

/// What a statement opens with. Upper case, as the project writes SQL, so that prose is not taken for it.
const STATEMENTS: [&str; 10] = [
    "SELECT ",
    "INSERT INTO",
    "INSERT OR ",
    "UPDATE ",
    "DELETE FROM",
    "CREATE TABLE",
    "CREATE INDEX",
    "ALTER TABLE",
    "DROP TABLE",
    "PRAGMA ",
];

fn stray_sql(files: &[File]) -> Vec<String> {
    let elsewhere = |file: &&File| {
        let source = file.path.starts_with("crates/") && file.path.contains("/src/") && file.is_rust();
        source && !file.path.starts_with("crates/store/") && !file.is_test()
    };
    let mut faults = Vec::new();
    for file in files.iter().filter(elsewhere) {
        for literal in literals(lex(file)) {
            if let Some(statement) = STATEMENTS.iter().find(|statement| literal.text.contains(*statement)) {
                faults.push(format!("{}:{}: `{}`", file.path, literal.line, statement.trim_end()));
            }
        }
    }
    faults
}

#[test]
fn all_sql_stands_in_the_store() {
    hold("give crates/store a function that says what is wanted", &stray_sql(&files()));
}

#[test]
fn planted_faults_are_seen() {
    let planted = "fn f() {\n    run(\"INSERT INTO record VALUES (1)\");\n}\n";
    seen(planted, &stray_sql(&[File::new("crates/server/src/admin.rs", planted)]), "admin.rs:2: `INSERT INTO`");
    let raw = "const Q: &str = r#\"SELECT 1\"#;";
    seen(raw, &stray_sql(&[File::new("crates/cli/src/list.rs", raw)]), "`SELECT`");
    let innocent = "//! INSERT INTO is for the store.\n/// SELECT 1\nfn f() { say(\"select a store\"); } // UPDATE x\n";
    assert!(stray_sql(&[File::new("crates/server/src/admin.rs", innocent)]).is_empty());
    assert!(stray_sql(&[File::new("crates/store/src/sqlite/insert.rs", planted)]).is_empty());
    assert!(stray_sql(&[File::new("crates/server/src/admin/tests.rs", planted)]).is_empty());
}
