//! The guides show code of the examples: every Rust block stands in the program that its guide is about.
//!
//! What does not belong here: whether the program works; its own test says so.

use std::fs;
use std::path::Path;

/// A guide, and the program that it is about.
const GUIDES: [(&str, &str); 4] = [
    ("../docs/guides/axum.md", "axum_orders.rs"),
    ("../docs/guides/function.md", "run_once.rs"),
    ("../docs/guides/outbox.md", "outbox_orders.rs"),
    ("../docs/guides/rust.md", "own_transaction.rs"),
];

/// Lines without their indentation, which differs between a guide and a program.
fn bare(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim())).collect()
}

/// The Rust blocks of `guide` that `program` does not hold.
fn strange(guide: &str, program: &str) -> Vec<String> {
    let program = bare(program);
    let blocks = guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).map(bare);
    blocks.filter(|block| !program.contains(block)).collect()
}

#[test]
fn the_guides_show_what_the_programs_do() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(here.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    for (guide, program) in GUIDES {
        let (text, code) = (read(guide), read(program));
        assert!(text.contains("```rust\n"), "{guide} shows code");
        let strange = strange(&text, &code);
        assert!(strange.is_empty(), "{guide} shows what {program} does not hold:\n{}", strange.join("\n"));
    }
}

#[test]
fn a_planted_block_is_seen() {
    let guide = "text\n```rust\nlet a = 1;\nlet b = 2;\n```\ntext\n```toml\nc = 3\n```\n";
    assert!(strange(guide, "fn f() {\n    let a = 1;\n    let b = 2;\n}\n").is_empty());
    assert_eq!(strange(guide, "fn f() {\n    let a = 1;\n    let c = 2;\n}\n"), ["let a = 1;\nlet b = 2;\n"]);
}
