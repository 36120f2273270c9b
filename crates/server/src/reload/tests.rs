//! Which differences between two configurations wait for the next start.

use super::fixed;
use crate::config::{Config, Flags};

fn config(text: &str) -> Config {
    let text = format!("upstream = \"http://127.0.0.1:9000\"\n{text}");
    Config::read(Some(&text), &|_| None, &Flags::default()).unwrap()
}

fn keys(header: &str, digit: &str) -> String {
    let key = format!("[[principal.keys]]\nprincipal = \"a\"\nsha256 = \"{}\"\n", digit.repeat(64));
    format!("[principal]\nfrom = \"api-keys\"\n{header}{key}")
}

#[test]
fn differences() {
    let before = keys("", "0");
    let rows = [
        (keys("", "0"), true),
        (keys("", "1"), true),
        (keys("header = \"x-api-key\"\n", "1"), true),
        (format!("{}[limits]\nmax_running = 3\n", keys("", "0")), false),
        ("[principal]\nfrom = \"none\"\n".to_owned(), false),
    ];
    for (after, same) in rows {
        assert_eq!(fixed(&config(&before)) == fixed(&config(&after)), same, "{after}");
    }
}
