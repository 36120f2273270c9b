//! What exchanges show, as tables of rounds and facts.

use super::{Mark, Round, Seen, Value, look};
use crate::case::{Fact, Wanted};
use crate::exchange::{Answer, Exchange, overlapped};
use crate::target::IdPlace;

fn exchange(name: &str, status: u16, body: &str, headers: &[(&str, &str)]) -> Exchange {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let answer = Answer { status, headers, body: body.to_owned(), whole: true };
    let answer = Some(answer).filter(|_| status != 0);
    Exchange { name: name.to_owned(), key: Some("the-key".to_owned()), key_bytes: 7, answer, ..Exchange::default() }
}

fn round(exchanges: Vec<Exchange>, counts: [Option<u64>; 2]) -> Round {
    let mark = |exchanges, count| Mark { name: String::new(), exchanges, count };
    Round { marks: vec![mark(0, counts[0]), mark(exchanges.len(), counts[1])], exchanges, ..Round::default() }
}

fn fact(text: &str) -> Fact {
    toml::from_str(text).unwrap()
}

#[test]
fn effects_by_id_and_by_count() {
    let id = IdPlace::Pointer("/id".to_owned());
    let all = fact("see = \"effects\"");
    let check = |statuses: &[(u16, &str)], counts, id: Option<&IdPlace>, wanted: Result<u64, &str>| {
        let exchanges = statuses.iter().map(|(status, body)| exchange("x", *status, body, &[])).collect();
        match (look(&all, &round(exchanges, counts), id), wanted) {
            (Seen::Values(found), Ok(wanted)) => assert_eq!(found, [Value::Number(wanted)], "{statuses:?}"),
            (Seen::Unobservable(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (found, wanted) => panic!("{statuses:?}: {found:?}, wanted {wanted:?}"),
        }
    };
    let same = [(201, "{\"id\":1}"), (201, "{\"id\":1}"), (409, "{\"id\":9}")];
    check(&same, [None; 2], Some(&id), Ok(1));
    check(&[(201, "{\"id\":1}"), (200, "{\"id\":\"1x\"}")], [None; 2], Some(&id), Ok(2));
    check(&same, [Some(4), Some(6)], Some(&id), Ok(2));
    check(&same, [None; 2], None, Err("nothing counts effects"));
    check(&[(201, "{}")], [None; 2], Some(&id), Err("holds no id"));
    check(&[(0, ""), (201, "{\"id\":1}")], [None; 2], Some(&id), Err("did not come"));
}

#[test]
fn relations_of_answers() {
    let id = IdPlace::Pointer("/id".to_owned());
    let relation = fact("see = \"relation\"\nof = [\"first\", \"later\"]");
    let rows = [
        (201, "{\"id\":1}", 200, "{\"id\":1,\"x\":2}", "replay"),
        (201, "{\"id\":1}", 201, "{\"id\":2}", "new-effect"),
        (201, "{\"id\":1}", 202, "{}", "no-id"),
        (201, "{\"id\":1}", 422, "", "refused 422"),
        (201, "{\"id\":1}", 500, "", "failed 500"),
        (201, "{\"id\":1}", 303, "", "redirected 303"),
        (201, "{\"id\":1}", 0, "", "no-answer"),
    ];
    for (status, body, later, later_body, wanted) in rows {
        let both = vec![exchange("first", status, body, &[]), exchange("later", later, later_body, &[])];
        assert_eq!(look(&relation, &round(both, [None; 2]), Some(&id)), Seen::one(Value::text(wanted)));
    }
    let refused = vec![exchange("first", 400, "", &[]), exchange("later", 201, "{\"id\":1}", &[])];
    assert!(matches!(look(&relation, &round(refused, [None; 2]), Some(&id)), Seen::NotReached(_)));
}

#[test]
fn headers_and_bodies() {
    let told = [("location", "/1"), ("date", "a"), ("set-cookie", "s")];
    let replayed = [("date", "b"), ("idempotent-replayed", "true"), ("etag", "the-key")];
    let all = || {
        let more = [exchange("again", 409, "{\"type\":\"a\"}", &replayed), exchange("third", 409, "", &replayed)];
        let changed =
            exchange("changed", 409, "{\"type\":\"b\"}", &[("content-type", "application/problem+json; x=y")]);
        [vec![exchange("first", 201, "{\"id\":1}", &told)], more.to_vec(), vec![changed]].concat()
    };
    let check = |text: &str, wanted: Value| {
        assert_eq!(look(&fact(text), &round(all(), [None; 2]), None), Seen::one(wanted), "{text}");
    };
    let among = "among = [\"location\", \"set-cookie\", \"link\"]";
    check(
        &format!("see = \"headers-differ\"\nof = [\"first\", \"again\"]\n{among}"),
        Value::text("location, set-cookie"),
    );
    let marker = Value::text("idempotent-replayed: true, etag: the-key");
    check("see = \"marker\"\nof = [\"first\", \"again\", \"third\"]", marker);
    check("see = \"problem\"\nof = \"changed\"", Value::text("problem+json"));
    check("see = \"problem\"\nof = \"again\"", Value::text("nothing"));
    check("see = \"distinguishable\"\nof = [\"again\", \"changed\"]", Value::Truth(true));
    check("see = \"distinguishable\"\nof = [\"again\", \"again\"]", Value::Truth(false));
    check("see = \"echo\"\nof = \"again\"", Value::text("header etag"));
    check("see = \"echo\"\nof = \"first\"", Value::text("no"));
    check("see = \"discloses\"\nof = [\"first\", \"again\"]", Value::Truth(false));
    check("see = \"discloses\"\nof = [\"first\", \"first\"]", Value::Truth(true));
    check("see = \"longest\"\nof = [\"first\", \"again\"]", Value::Number(7));
    check("see = \"refusals\"\nof = \"again\"", Value::Number(409));
    let none = look(&fact("see = \"refusals\"\nof = \"first\""), &round(all(), [None; 2]), None);
    assert!(matches!(none, Seen::NotReached(_)));
    check("see = \"successes\"\nof = \"first\"", Value::Number(1));
    check("see = \"same-status\"\nof = [\"first\", \"again\"]", Value::Truth(false));
}

#[test]
fn what_a_window_is_counted_from() {
    let id = IdPlace::Pointer("/id".to_owned());
    let basis = fact("see = \"basis\"\nused = [\"a\", \"a2\"]\nunused = [\"b\", \"b2\"]");
    let found = |used: (u16, &str), unused: (u16, &str)| {
        let first = [exchange("a", 201, "{\"id\":1}", &[]), exchange("b", 201, "{\"id\":2}", &[])];
        let last = [exchange("a2", used.0, used.1, &[]), exchange("b2", unused.0, unused.1, &[])];
        look(&basis, &round([first, last].concat(), [None; 2]), Some(&id))
    };
    let (anew, refused) = ((201, "{\"id\":9}"), (409, ""));
    assert_eq!(found((201, "{\"id\":1}"), anew), Seen::one(Value::text("last-use")));
    assert_eq!(found(anew, anew), Seen::one(Value::text("first-use")));
    let longer = found((201, "{\"id\":1}"), (201, "{\"id\":2}"));
    assert!(matches!(longer, Seen::NotReached(why) if why.contains("longer than was said")));
    for (used, unused) in [(refused, refused), (refused, anew), ((201, "{\"id\":1}"), refused)] {
        assert!(matches!(found(used, unused), Seen::NotReached(_)), "{used:?} {unused:?}");
    }
}

#[test]
fn what_a_rule_allows() {
    let is = |value: Value, wanted: Wanted| value.is(&wanted);
    assert!(is(Value::Number(204), Wanted::Text("2xx".to_owned())) && is(Value::Number(1), Wanted::Number(1)));
    assert!(!is(Value::Number(404), Wanted::Text("2xx".to_owned())) && !is(Value::Truth(true), Wanted::Number(1)));
    assert!(is(Value::text("refused 422"), Wanted::Text("refused".to_owned())));
    assert!(!is(Value::text("refused-not"), Wanted::Text("refused".to_owned())));
}

#[test]
fn a_race_needs_two_whole_requests_before_the_first_answer() {
    let at = |sent: u64, answered: u64| Exchange {
        sent_whole_at: Some(sent),
        first_byte_at: Some(answered),
        ..Exchange::default()
    };
    assert!(overlapped(&[&at(1, 5), &at(2, 6)]));
    assert!(!overlapped(&[&at(1, 2), &at(3, 4)]));
    assert!(!overlapped(&[&at(1, 2)]));
}
