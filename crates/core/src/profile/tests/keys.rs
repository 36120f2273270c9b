//! What is refused as a key, and what a new one looks like.

use super::*;
use crate::time::Timestamp;

fn rule(change: impl FnOnce(&mut KeyRule)) -> KeyRule {
    let mut rule = profile(|_| {}).key;
    change(&mut rule);
    rule
}

#[test]
fn what_would_leak_is_refused_whatever_the_profile_says() {
    let check = |text: &str, wanted: Option<KeyFault>| {
        let found = rule(|_| {}).lint(text);
        assert_eq!(found.clone().err(), wanted, "{text:?}");
        if let Err(fault) = found {
            let message = fault.to_string();
            assert!(!message.contains(text), "{message:?} shows the key");
            assert!(
                message.contains("eave `--key` out") || message.contains("ame the intent"),
                "{message:?} has a next step"
            );
        }
    };
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
    for token in [jwt, &format!("Bearer {jwt}"), &format!("token={jwt}"), "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."] {
        check(token, Some(KeyFault::WebToken));
    }
    // An encrypted one has five parts.
    check("eyJhbGciOiJkaXIifQ..aXY.Y3Q.dGFn", Some(KeyFault::WebToken));
    for token in
        ["Bearer abc", "bearer abc", "Basic dXNlcg==", " Bearer x", "sk_live_abc123", "ghp_abc", "AKIAABCDEFGH"]
    {
        check(token, Some(KeyFault::Token));
    }
    for email in ["ann@example.com", "order for ann.b+c@mail.example.org", "a@b.de/1", "x:ann@example.com."] {
        check(email, Some(KeyFault::Email));
    }
    for card in ["4242424242424242", "charge-4242424242424242", "4242 4242 4242 4242", "5555-5555-5555-4444/1"] {
        check(card, Some(KeyFault::Card));
    }
    check("3782-822463-10005", Some(KeyFault::Card));
    let innocent = [
        "8e03978e-40d5-43e8-bc93-6894a57f9324",
        "42424242-4242-4242-8242-424242424242",
        "order-1234/charge",
        "4242424242424241",
        "1700000000000",
        "20261130-123456",
        "a@b",
        "user@localhost",
        "@example.com",
        "v1.2.3",
        "bearer-of-news",
        "mail.example.com",
    ];
    for text in innocent {
        check(text, None);
    }
}

#[test]
fn the_profile_s_length_and_format_are_kept() {
    let check = |rule: &KeyRule, text: &str, wanted: Option<KeyFault>| {
        assert_eq!(rule.lint(text).err(), wanted, "{text:?} under {rule:?}");
    };
    let any = rule(|_| {});
    check(&any, "", Some(KeyFault::Unprintable));
    check(&any, "ключ", Some(KeyFault::Unprintable));
    check(&any, "a\nb", Some(KeyFault::Unprintable));
    check(&any, &"x".repeat(255), None);
    check(&any, &"x".repeat(256), Some(KeyFault::TooLong { bytes: 256, most: 255 }));
    let short = rule(|rule| (rule.bytes_min, rule.bytes_max) = (16, 45));
    check(&short, &"x".repeat(15), Some(KeyFault::TooShort { bytes: 15, least: 16 }));
    check(&short, &"x".repeat(16), None);
    check(&short, &"x".repeat(45), None);
    check(&short, &"x".repeat(46), Some(KeyFault::TooLong { bytes: 46, most: 45 }));
    let v4 = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    let v7 = "0190163d-8694-739b-aea5-966c26f8ad91";
    let not_rfc = "8e03978e-40d5-43e8-0c93-6894a57f9324";
    let format = |format| rule(|rule| rule.format = format);
    let refused = |wanted| Some(KeyFault::Format { wanted });
    check(&format(Format::Word), "a-b_1", None);
    check(&format(Format::Word), "a b", refused(Format::Word));
    check(&format(Format::Uuid), v7, None);
    check(&format(Format::Uuid), not_rfc, refused(Format::Uuid));
    check(&format(Format::Uuid), "8e03978e40d543e8bc936894a57f9324", refused(Format::Uuid));
    check(&format(Format::Uuid4), v4, None);
    check(&format(Format::Uuid4), v7, refused(Format::Uuid4));
}

#[test]
fn a_drawn_key_tells_its_age_where_it_may_and_passes_its_own_rule() {
    let now = Timestamp::from_millis(0x0190_163d_8694);
    let check = |generate, random: u8, wanted: &str| {
        let rule = rule(|rule| (rule.generate, rule.format) = (generate, Format::Uuid));
        let key = rule.draw([random; 16], now);
        assert_eq!(key.as_str(), wanted, "{generate:?}");
        assert_eq!(rule.lint(key.as_str()), Ok(key));
    };
    check(Generator::Uuid7, 0, "0190163d-8694-7000-8000-000000000000");
    check(Generator::Uuid7, 0xff, "0190163d-8694-7fff-bfff-ffffffffffff");
    check(Generator::Uuid4, 0, "00000000-0000-4000-8000-000000000000");
    check(Generator::Uuid4, 0xff, "ffffffff-ffff-4fff-bfff-ffffffffffff");
}
