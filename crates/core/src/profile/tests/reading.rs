//! How an answer is read: rule, marker, advice, doubt.

use super::*;
use crate::receipt::{Body, Receipt};

fn rule(name: &str, status: RangeInclusive<u16>, means: Meaning, record: bool) -> AnswerRule {
    AnswerRule {
        name: name.to_owned(),
        status: vec![status],
        header: None,
        body: Vec::new(),
        means,
        record,
        resource: None,
    }
}

fn check(profile: &Profile, answer: &Receipt, calm: &str, doubtful: &str) {
    let word = |doubt| read(answer, profile, doubt).to_string();
    assert_eq!((word(false).as_str(), word(true).as_str()), (calm, doubtful), "{} {:?}", answer.status, answer.headers);
}

const AGAIN: &str = "retry, same key";

#[test]
fn without_a_rule_http_itself_speaks_and_proves_nothing() {
    let silent = profile(|_| {});
    for status in [200, 201, 202, 204, 299] {
        check(&silent, &Receipt::new(status, ""), "success, unproven", AGAIN);
    }
    for status in [307, 308, 400, 401, 403, 404, 410, 412, 413, 422, 451] {
        check(&silent, &Receipt::new(status, ""), "refused, unproven", AGAIN);
    }
    for status in [408, 409, 423, 429, 500, 502, 503, 504, 599, 100, 0, 999] {
        check(&silent, &Receipt::new(status, ""), AGAIN, AGAIN);
    }
    for status in [421, 425] {
        check(&silent, &Receipt::new(status, ""), "retry, not executed", "retry, not executed");
    }
    for status in [300, 301, 303, 304] {
        check(&silent, &Receipt::new(status, ""), "operator: told", "operator: told");
    }
}

#[test]
fn a_rule_says_what_an_answer_means() {
    let means = |means, record| profile(|profile| profile.answers = vec![rule("r", 409..=409, means, record)]);
    let conflict = Receipt::new(409, "");
    check(&means(Meaning::Success, true), &conflict, "success", "success");
    check(&means(Meaning::Success, false), &conflict, "success, unproven", AGAIN);
    check(&means(Meaning::Refused, true), &conflict, "refused", "refused");
    check(&means(Meaning::Refused, false), &conflict, "refused, unproven", AGAIN);
    check(&means(Meaning::InProgress, true), &conflict, "wait, same key", "wait, same key");
    check(&means(Meaning::NotProcessed, false), &conflict, "retry, not executed", "retry, not executed");
    check(&means(Meaning::Unclear, false), &conflict, AGAIN, AGAIN);
    check(&means(Meaning::StoredFailure, true), &conflict, "operator: stored-failure", "operator: stored-failure");
    check(&means(Meaning::Mismatch, true), &conflict, "operator: mismatch", "operator: mismatch");
    check(&means(Meaning::WindowClosed, true), &conflict, "refused", "operator: window-closed");
    check(&means(Meaning::Unguarded, false), &conflict, "refused, unproven", "operator: unguarded");
    check(&means(Meaning::Operator, false), &conflict, "operator: told", "operator: told");
    let unguarded = profile(|profile| profile.answers = vec![rule("r", 200..=599, Meaning::Unguarded, false)]);
    check(&unguarded, &Receipt::new(201, ""), "success, unproven", "operator: unguarded");
    check(&unguarded, &Receipt::new(503, ""), "operator: unguarded", "operator: unguarded");
}

#[test]
fn a_marked_answer_is_the_record_s() {
    let marked = profile(|profile| {
        profile.marker = Some(Marker { header: "idempotent-replayed".to_owned(), value: Some("true".to_owned()) });
        let bare = rule("bare", 200..=299, Meaning::Unguarded, false);
        profile.answers = vec![rule("rate", 429..=429, Meaning::NotProcessed, false), bare];
    });
    let replay = |status| Receipt::new(status, "").with_header("Idempotent-Replayed", "True");
    check(&marked, &replay(201), "success", "success");
    check(&marked, &replay(400), "refused", "refused");
    check(&marked, &replay(409), "refused", "refused");
    check(&marked, &replay(429), "refused", "refused");
    check(&marked, &replay(500), "operator: stored-failure", "operator: stored-failure");
    check(&marked, &replay(303), "operator: told", "operator: told");
    check(&marked, &Receipt::new(400, "").with_header("idempotent-replayed", "false"), "refused, unproven", AGAIN);
    check(&marked, &Receipt::new(429, ""), "retry, not executed", "retry, not executed");
}

#[test]
fn advice_overrules_all_but_a_success() {
    let advised = |means| {
        profile(|profile| {
            profile.advice = Some(Advice {
                header: "should-retry".to_owned(),
                again: Some("true".to_owned()),
                stop: Some("false".to_owned()),
            });
            profile.answers = vec![rule("r", 409..=409, means, true)];
        })
    };
    let says = |value: &'static str| Receipt::new(409, "").with_header("Should-Retry", value);
    for meaning in [Meaning::Refused, Meaning::StoredFailure, Meaning::Mismatch, Meaning::Operator, Meaning::Unclear] {
        check(&advised(meaning), &says("true"), AGAIN, AGAIN);
    }
    check(&advised(Meaning::InProgress), &says("true"), "wait, same key", "wait, same key");
    check(&advised(Meaning::Success), &says("true"), "success", "success");
    check(&advised(Meaning::Success), &says("false"), "success", "success");
    check(&advised(Meaning::Unclear), &says("false"), "operator: advised-to-stop", "operator: advised-to-stop");
    check(&advised(Meaning::InProgress), &says("false"), "operator: advised-to-stop", "operator: advised-to-stop");
    check(&advised(Meaning::NotProcessed), &says("false"), "refused, unproven", "operator: advised-to-stop");
    check(&advised(Meaning::Refused), &says("false"), "refused", "refused");
    check(&advised(Meaning::Refused), &says("perhaps"), "refused", "refused");
}

#[test]
fn bodies_are_matched_at_pointers_and_the_first_rule_holds() {
    let json =
        |at: &str, is: &str| vec![BodyMatch::Json { at: at.to_owned(), is: vec![is.to_owned(), "other".to_owned()] }];
    let exists = AnswerRule {
        body: json("/error/errors/*/reason", "conflict"),
        resource: Some("/error/errors/*/links/id".to_owned()),
        ..rule("exists", 409..=409, Meaning::Success, true)
    };
    let number = AnswerRule {
        body: [json("/code", "3162"), json("/kind", "busy")].concat(),
        ..rule("number", 409..=409, Meaning::InProgress, true)
    };
    let xml = AnswerRule {
        body: vec![BodyMatch::Holds("<Code>Mismatch</Code>".to_owned())],
        ..rule("xml", 400..=499, Meaning::Mismatch, true)
    };
    let last = rule("last", 409..=409, Meaning::Refused, false);
    let profile = profile(|profile| profile.answers = vec![exists, number, xml, last]);
    let check = |body: Body, name: &str, resource: Option<&str>| {
        let found = reading(&Receipt { body, ..Receipt::new(409, "") }, &profile, false);
        assert_eq!((found.rule.as_deref(), found.resource.as_deref()), (Some(name), resource));
    };
    let kept = |text: &str| Body::Kept(text.to_owned().into());
    let errors = r#"{"error":{"errors":[{"reason":"x"},{"reason":"conflict","links":{"id":"PM1"}}]}}"#;
    check(kept(errors), "exists", Some("PM1"));
    check(kept(r#"{"error":{"errors":[{"reason":"other"}]}}"#), "exists", None);
    check(kept(r#"{"error":{"errors":{"reason":"conflict"}}}"#), "last", None);
    check(kept(r#"{"code":3162,"kind":"busy"}"#), "number", None);
    check(kept(r#"{"code":3162}"#), "last", None);
    check(kept("<x><Code>Mismatch</Code></x>"), "xml", None);
    check(kept(""), "last", None);
    check(kept("{"), "last", None);
    check(Body::NotKept, "last", None);
    let large = format!(r#"{{"code":3162,"kind":"busy","x":"{}"}}"#, "y".repeat(1 << 20));
    check(kept(&large), "last", None);
}

#[test]
fn a_recipe_is_taken_where_it_can_be_filled_in() {
    let recipe = |url: &str| Recipe {
        method: "GET".to_owned(),
        url: url.to_owned(),
        body: None,
        found: vec![rule("found", 200..=200, Meaning::Success, true)],
        absent: vec![rule("absent", 404..=404, Meaning::Refused, true)],
        note: String::new(),
    };
    let with = |lookup: Option<&str>, cancel: Option<&str>, at: Option<&str>| {
        profile(|profile| {
            let mut stored = rule("stored", 500..=500, Meaning::StoredFailure, true);
            stored.resource = at.map(str::to_owned);
            profile.answers = vec![stored];
            (profile.lookup, profile.cancel) = (lookup.map(recipe), cancel.map(recipe));
        })
    };
    let failed = Receipt::new(500, r#"{"id":"po_1"}"#);
    let (ask, person) = ("look up: stored-failure", "operator: stored-failure");
    check(&with(None, None, None), &failed, person, person);
    check(&with(Some("{url}?key={key}"), None, None), &failed, ask, ask);
    check(&with(None, Some("{origin}/cancel"), None), &failed, ask, ask);
    check(&with(Some("{url}/{resource}"), None, None), &failed, person, person);
    check(&with(Some("{url}/{resource}"), None, Some("/id")), &failed, ask, ask);
    let recipe = recipe("{url}");
    let judge = |status| recipe.judge(&Receipt::new(status, ""));
    assert_eq!((judge(200), judge(404), judge(503)), (Some(true), Some(false), None));
}
