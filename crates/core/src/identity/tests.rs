//! Identities: injective, and checked at the door. Headers are tested in `wire`.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

fn identity(scope: &[(&str, &str)], operation: &str, key: &str) -> Identity {
    let parts = scope.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Identity::new(Scope::from_parts(parts).unwrap(), Operation::new(operation).unwrap(), Key::new(key).unwrap())
}

#[test]
fn moving_a_character_between_parts_makes_another_identity() {
    let rows = [
        identity(&[("principal", "ab")], "c", "d"),
        identity(&[("principal", "a")], "bc", "d"),
        identity(&[("principal", "a")], "b", "cd"),
        identity(&[("principal", "ab:c")], "d", "e"),
        identity(&[("principal", "ab")], "c:d", "e"),
        identity(&[("principal", "a"), ("region", "b")], "c", "d"),
        identity(&[("principal", "ab"), ("region", "b")], "c", "d"),
        identity(&[("principal", "a"), ("regionb", "c")], "c", "d"),
        identity(&[("region", "a"), ("principal", "b")], "c", "d"),
    ];
    for (at, one) in rows.iter().enumerate() {
        for other in rows.iter().skip(at + 1) {
            assert_ne!(one.digest(), other.digest(), "{one:?} {other:?}");
        }
    }
}

#[test]
fn the_order_in_which_parts_are_given_does_not_matter() {
    let one = identity(&[("principal", "a"), ("region", "b")], "c", "d");
    let other = identity(&[("region", "b"), ("principal", "a")], "c", "d");
    assert_eq!(one, other);
    assert_eq!(one.digest(), other.digest());
}

#[test]
fn the_digest_is_pinned() {
    let pinned = identity(&[("principal", "north")], "web-order", "intent-a").digest().to_hex();
    assert_eq!(pinned, include_str!("digest.txt").trim());
}

#[test]
fn a_scope_survives_its_bytes_and_refuses_others() {
    let scope = Scope::from_parts([("a".into(), "ä\0:".into()), ("b".into(), "c".into())]).unwrap();
    let bytes = scope.as_bytes().to_vec();
    assert_eq!(Scope::from_bytes(&bytes), Ok(scope));
    for cut in 0..bytes.len() {
        // A cut at the end of a whole pair is a smaller scope; any other is corrupt.
        if let Ok(smaller) = Scope::from_bytes(&bytes[..cut]) {
            assert_eq!(smaller.as_bytes(), &bytes[..cut]);
        }
    }
    assert_eq!(Scope::from_bytes(&[]), Err(Error::Corrupt("scope")));
}

#[test]
fn keys_are_checked() {
    let long = "k".repeat(256);
    let rows: [(&str, Result<(), Error>); 6] = [
        ("k", Ok(())),
        ("a b~!\"", Ok(())),
        ("", Err(Error::KeyEmpty)),
        (&long, Err(Error::KeyTooLong { bytes: 256 })),
        ("ab\tc", Err(Error::KeyCharacter { at: 2 })),
        ("é", Err(Error::KeyCharacter { at: 0 })),
    ];
    for (text, expected) in rows {
        assert_eq!(Key::new(text).map(|_| ()), expected, "{text}");
    }
    assert!(Key::new("k".repeat(255)).is_ok());
}

#[test]
fn scopes_are_checked() {
    let part = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let rows: Vec<Vec<(String, String)>> = vec![
        vec![],
        vec![part("principal", "")],
        vec![part("Principal", "a")],
        vec![part("", "a")],
        vec![part("a", "b"), part("a", "c")],
        vec![part("a", &"v".repeat(1025))],
        (0..17).map(|at| part(&format!("p{at}"), "v")).collect(),
    ];
    for parts in rows {
        assert!(matches!(Scope::from_parts(parts.clone()), Err(Error::Scope(_))), "{parts:?}");
    }
}

#[test]
fn debug_shows_neither_key_nor_principal() {
    let shown = format!("{:?}", identity(&[("principal", "alice-secret")], "op", "key-secret"));
    assert!(!shown.contains("secret"), "{shown}");
}

/// A scope's bytes in another order of their parts would be a second spelling of the same scope.
#[test]
fn a_scope_has_one_spelling() {
    let part = |name: &str| Scope::from_parts([(name.to_owned(), "v".to_owned())]).unwrap().as_bytes().to_vec();
    assert!(Scope::from_bytes(&[part("a"), part("b")].concat()).is_ok());
    assert_eq!(Scope::from_bytes(&[part("b"), part("a")].concat()), Err(Error::Corrupt("scope")));
    assert_eq!(Scope::from_bytes(&[part("a"), part("a")].concat()), Err(Error::Corrupt("scope")));
}

/// Identities of few short parts, so that two of them are often nearly the same.
fn identities() -> impl Strategy<Value = Identity> {
    let scope = btree_map("[ab]{1,2}", "[ab:\0]{1,3}", 1..3);
    (scope, "[ab:\0]{1,3}", "[ab:]{1,3}").prop_map(|(scope, operation, key)| {
        Identity::new(Scope::from_parts(scope).unwrap(), Operation::new(operation).unwrap(), Key::new(key).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn digests_are_equal_only_for_equal_identities(one in identities(), other in identities()) {
        prop_assert_eq!(one == other, one.digest() == other.digest());
        prop_assert_eq!(one.scope == other.scope, one.scope.as_bytes() == other.scope.as_bytes());
    }

    /// The same text cut elsewhere into operation, key and principal is another identity.
    #[test]
    fn the_borders_between_parts_count(text in "[ab]{3,9}", cuts in (1..8_usize, 1..8_usize), others in (1..8_usize, 1..8_usize)) {
        let cut = |(first, second): (usize, usize)| {
            let first = first.min(text.len() - 2);
            let second = (first + second).min(text.len() - 1);
            identity(&[("principal", &text[..first])], &text[first..second], &text[second..])
        };
        let (one, other) = (cut(cuts), cut(others));
        prop_assert_eq!(one == other, one.digest() == other.digest());
    }

    #[test]
    fn any_scope_survives_its_bytes(parts in btree_map("[a-z0-9_-]{1,5}", "\\PC{1,9}", 1..5)) {
        let scope = Scope::from_parts(parts).unwrap();
        prop_assert_eq!(Scope::from_bytes(scope.as_bytes()), Ok(scope));
    }

    #[test]
    fn no_bytes_make_a_scope_panic(bytes in vec(any::<u8>(), 0..60)) {
        if let Ok(scope) = Scope::from_bytes(&bytes) {
            prop_assert_eq!(scope.as_bytes(), bytes);
        }
    }
}
