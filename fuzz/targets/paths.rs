//! Paths: normalising is done once and for all, and lets nothing through that has a second spelling.
//!
//! An input is a path, in UTF-8; other bytes are read as the replacement character.

use counterfoil_core::wire::normalise;

pub(super) fn check(input: &[u8]) {
    let path = String::from_utf8_lossy(input);
    let found = normalise(&path);
    // Any unreserved character may be escaped instead, with digits of either case, and nothing changes.
    for (every, upper) in [(1, true), (2, false), (3, true)] {
        assert_eq!(normalise(&escaped(&path, every, upper)), found, "escapes change {path:?}");
    }
    let Ok(normal) = found else { return };
    assert_eq!(normalise(&normal).as_ref(), Ok(&normal), "{path:?} is not in normal form after one pass");
    let rest = normal.strip_prefix('/');
    assert!(rest.is_some(), "{path:?} became {normal:?}, which is not absolute");
    let segments: Vec<&str> = rest.into_iter().flat_map(|rest| rest.split('/')).collect();
    let inner = segments.len().saturating_sub(1);
    for (at, segment) in segments.iter().enumerate() {
        assert!(!matches!(*segment, "." | ".."), "{path:?} became {normal:?}, with a dot segment");
        assert!(!segment.is_empty() || at == inner, "{path:?} became {normal:?}, with an empty segment");
        spelling(segment, &path);
    }
    assert_eq!(normal.ends_with('/'), ends_open(&path), "{path:?} became {normal:?}: the slash at the end");
}

/// Whether the last segment names a folder: it is empty or a dot segment, escaped or not.
fn ends_open(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    matches!(last.replace("%2e", ".").replace("%2E", ".").as_str(), "" | "." | "..")
}

/// Each character of `segment` in its one spelling.
fn spelling(segment: &str, path: &str) {
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            let allowed = is_unreserved(byte) || b":@!$&'()*+,;=".contains(&byte);
            assert!(allowed, "{path:?}: {:?} is not escaped", char::from(byte));
            continue;
        }
        let digits: String = bytes.by_ref().take(2).map(char::from).collect();
        let upper = digits.chars().all(|digit| matches!(digit, '0'..='9' | 'A'..='F'));
        let value = u8::from_str_radix(&digits, 16).ok().filter(|_| upper && digits.len() == 2);
        assert!(value.is_some_and(|byte| !is_unreserved(byte)), "{path:?}: %{digits} has another spelling");
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// `path` with every so many-th unreserved character escaped; escapes that are there stay as they are.
fn escaped(path: &str, every: usize, upper: bool) -> String {
    let mut out = String::new();
    let mut within_escape = 0;
    for (at, letter) in path.chars().enumerate() {
        let unreserved = u8::try_from(letter).ok().filter(|byte| is_unreserved(*byte));
        match unreserved {
            Some(byte) if within_escape == 0 && at % every == 0 && upper => out.push_str(&format!("%{byte:02X}")),
            Some(byte) if within_escape == 0 && at % every == 0 => out.push_str(&format!("%{byte:02x}")),
            Some(_) | None => out.push(letter),
        }
        within_escape = if letter == '%' { 2 } else { usize::saturating_sub(within_escape, 1) };
    }
    out
}
