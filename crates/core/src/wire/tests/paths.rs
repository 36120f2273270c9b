//! Paths in one spelling. Headers are in `tests`, problem documents in `problems`.

use proptest::prelude::*;

use crate::wire::path::{PathFault, normalise};

#[test]
fn a_path_has_one_spelling() {
    let rows = [
        ("/", "/"),
        ("/orders", "/orders"),
        ("/orders/", "/orders/"),
        // RFC 3986 section 5.2.4.
        ("/a/b/c/./../../g", "/a/g"),
        ("/mid/content=5/../6", "/mid/6"),
        ("/b/c/d;p", "/b/c/d;p"),
        ("/b/c/.", "/b/c/"),
        ("/b/c/./", "/b/c/"),
        ("/b/c/..", "/b/"),
        ("/b/c/../", "/b/"),
        ("/b/c/../g", "/b/g"),
        ("/b/c/../..", "/"),
        ("/b/c/../../", "/"),
        ("/b/c/../../g", "/g"),
        ("/b/c/g.", "/b/c/g."),
        ("/b/c/.g", "/b/c/.g"),
        ("/b/c/g..", "/b/c/g.."),
        ("/b/c/..g", "/b/c/..g"),
        ("/b/c/./g/.", "/b/c/g/"),
        ("/b/c/g/./h", "/b/c/g/h"),
        ("/b/c/g/../h", "/b/c/h"),
        ("/b/c/g;x=1/./y", "/b/c/g;x=1/y"),
        ("/b/c/g;x=1/../y", "/b/c/y"),
        ("/.", "/"),
        ("/./", "/"),
        ("/...", "/..."),
        // Dots behind escapes are dots.
        ("/a/%2e%2e/b", "/b"),
        ("/a/%2E./b", "/b"),
        ("/a/%2e/b", "/a/b"),
        ("/a/b%2e%2e", "/a/b.."),
        // RFC 3986 section 6.2.2: unreserved characters are themselves, other escapes in upper case.
        ("/%7Euser/%41%62%30%2D%5f", "/~user/Ab0-_"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%2F..%2fb", "/a%2F..%2Fb"),
        ("/%3a%40", "/%3A%40"),
        ("/:@!$&'()*+,;=", "/:@!$&'()*+,;="),
        ("/%21%24", "/%21%24"),
        ("/%c3%bc", "/%C3%BC"),
        ("/a%00b", "/a%00b"),
        // Decoded once and no further.
        ("/a/%252e%252e/b", "/a/%252e%252e/b"),
        ("/%25%32%65", "/%252e"),
        // What a path may not hold is escaped.
        ("/ü", "/%C3%BC"),
        ("/a b", "/a%20b"),
        ("/{id}|\\^`\"<>", "/%7Bid%7D%7C%5C%5E%60%22%3C%3E"),
        ("/a?b#c", "/a%3Fb%23c"),
        ("/日", "/%E6%97%A5"),
        ("/Orders", "/Orders"),
    ];
    for (path, expected) in rows {
        assert_eq!(normalise(path).as_deref(), Ok(expected), "{path}");
    }
}

#[test]
fn a_path_without_one_spelling_is_refused() {
    let rows = [
        ("", PathFault::NotAbsolute),
        ("a", PathFault::NotAbsolute),
        ("*", PathFault::NotAbsolute),
        ("%2Fa", PathFault::NotAbsolute),
        ("../a", PathFault::NotAbsolute),
        ("http://host/a", PathFault::NotAbsolute),
        ("//", PathFault::EmptySegment),
        ("//a", PathFault::EmptySegment),
        ("/a//b", PathFault::EmptySegment),
        ("/a//", PathFault::EmptySegment),
        ("/a//..", PathFault::EmptySegment),
        ("/a/..//b", PathFault::EmptySegment),
        ("/.//b", PathFault::EmptySegment),
        ("/..", PathFault::AboveRoot),
        ("/../a", PathFault::AboveRoot),
        ("/a/../../b", PathFault::AboveRoot),
        ("/%2e%2E/a", PathFault::AboveRoot),
        ("/%", PathFault::Escape),
        ("/%4", PathFault::Escape),
        ("/%4/", PathFault::Escape),
        ("/%zz", PathFault::Escape),
        ("/%+4", PathFault::Escape),
        ("/% 4", PathFault::Escape),
        ("/%4é", PathFault::Escape),
        ("/%é", PathFault::Escape),
        ("/a%", PathFault::Escape),
    ];
    for (path, expected) in rows {
        assert_eq!(normalise(path), Err(expected), "{path}");
    }
}

/// Paths in which the interesting pieces are frequent.
fn paths() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["/", ".", "..", "a", "%2e", "%2F", "%25", "%41", "%c3", "é", " ", "%", "2e", "/./", "/../"])
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn a_normalised_path_is_its_own_spelling(path in paths()) {
        if let Ok(once) = normalise(&path) {
            prop_assert_eq!(normalise(&once), Ok(once.clone()));
            prop_assert!(once.starts_with('/') && !once.contains("//") && once.is_ascii(), "{}", once);
            prop_assert!(!once.split('/').any(|segment| matches!(segment, "." | "..")), "{}", once);
        }
    }

    /// Escaping any unreserved character changes nothing.
    #[test]
    fn escapes_of_unreserved_characters_name_the_same_path(path in "(/[a-z.~]{1,3}){1,4}/?", chosen in any::<u64>()) {
        let escaped: String = path.char_indices().map(|(at, letter)| {
            if letter != '/' && chosen >> (at % 64) & 1 == 1 { format!("%{:02x}", u32::from(letter)) } else { letter.to_string() }
        }).collect();
        prop_assert_eq!(normalise(&escaped), normalise(&path));
    }

    #[test]
    fn any_text_is_answered(path in any::<String>()) {
        let _ = normalise(&path);
    }
}
