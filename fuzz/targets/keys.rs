//! The key: one line names one key or none, quoted and bare text name the same one, and more lines name none.
//!
//! An input is the value of one header line.

use counterfoil_core::wire::parse_key;
use counterfoil_core::{Error, Key};

use super::shown;

const KEY_BYTES_MAX: usize = 255;

pub(super) fn check(line: &[u8]) {
    let repeated = parse_key([line, line]);
    assert_eq!(repeated, Err(Error::KeyRepeated { lines: 2 }), "two lines name no key");
    let found = parse_key([line]);
    assert_eq!(found, parse_key([line]), "the same line is read the same way");
    let bare = bare(line);
    match found {
        Ok(Some(key)) => accepted(line, &key),
        Ok(None) => panic!("a line came, and none was seen: {}", shown(line)),
        Err(error) => assert!(bare.is_none(), "bare text was refused: {}: {error}", shown(line)),
    }
    if let Some(text) = bare {
        assert_eq!(parse_key([line]), Ok(Key::new(text).ok()), "bare text is the key, whole: {}", shown(line));
    }
}

/// The key that a line of bare text names, read here once more.
fn bare(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.trim_matches([' ', '\t']);
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    (printable && !text.starts_with('"') && (1..=KEY_BYTES_MAX).contains(&text.len())).then_some(text)
}

fn accepted(line: &[u8], key: &Key) {
    let text = key.as_str();
    assert!((1..=KEY_BYTES_MAX).contains(&text.len()), "{} bytes: {}", text.len(), shown(line));
    assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "not printable: {}", shown(line));
    let quoted = format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
    let same = |spelling: &str| {
        assert_eq!(parse_key([spelling.as_bytes()]), Ok(Some(key.clone())), "{spelling} for {}", shown(line));
    };
    same(&quoted);
    same(&format!("\t {quoted} "));
    same(&format!("{quoted};v=1;w"));
    if !text.starts_with(['"', ' ']) && !text.ends_with(' ') {
        same(text);
        same(&format!(" {text}\t"));
    }
}
