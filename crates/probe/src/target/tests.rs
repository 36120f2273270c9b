//! What settings become: addresses, the place of keys, credentials, and what is refused.

use jiff::Timestamp;

use super::{Address, Known, Target};
use crate::case::{Body, Contract, Credential, KeyForm, Request};
use crate::place::Place;
use crate::settings::Settings;

fn told(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings { url: Some("http://127.0.0.1:9/orders".to_owned()), ..Settings::default() };
    change(&mut settings);
    settings
}

fn known(key: Option<&str>) -> Known<'_> {
    Known { key, first_used: Timestamp::UNIX_EPOCH, id: None }
}

fn wire(settings: &Settings, send: &Request) -> Result<String, String> {
    let target = Target::of(settings).map_err(|error| error.to_string())?;
    let (_, prepared) = target.request(send, &known(Some("abc")))?;
    let outgoing = prepared.outgoing();
    Ok(String::from_utf8([outgoing.head, outgoing.body].concat()).unwrap())
}

#[test]
fn addresses() {
    for (url, loopback) in [("http://localhost/x", true), ("http://[::1]:8/", true), ("https://127.9.9.9", true)] {
        assert_eq!(Address::parse(url).unwrap().is_loopback(), loopback, "{url}");
    }
    for url in ["http://api.example.com/", "http://10.0.0.1/", "http://127.0.0.1.example.com/"] {
        assert!(!Address::parse(url).unwrap().is_loopback(), "{url}");
    }
    for (url, why) in
        [("ftp://x/", "neither"), ("/orders", "neither"), ("http://u:p@x/", "password"), ("", "not a URL")]
    {
        assert!(Address::parse(url).is_err_and(|error| error.to_string().contains(why)), "{url}");
    }
}

#[test]
fn the_key_stands_where_the_contract_says() {
    let plain = Request::default();
    let check = |contract, key: Option<&str>, send: &Request, part: &str| {
        let settings = told(|settings| {
            settings.contract = contract;
            settings.key = key.map(str::to_owned);
        });
        let sent = wire(&settings, send).unwrap();
        assert!(sent.contains(part), "{part} in {sent}");
    };
    check(None, None, &plain, "\r\nidempotency-key: \"abc\"\r\n");
    check(Some(Contract::StripeV1), None, &plain, "\r\nidempotency-key: abc\r\n");
    check(Some(Contract::Ec2), None, &plain, "POST /orders?ClientToken=abc HTTP/1.1\r\n");
    check(None, Some("body:token"), &plain, "{\"token\":\"abc\"}");
    check(None, Some("header:X-Key"), &Request { key_form: KeyForm::Bare, ..Request::default() }, "\r\nx-key: abc\r\n");
    let long = Request { key_length: Some(7), key_form: KeyForm::Upper, ..Request::default() };
    check(Some(Contract::StripeV1), None, &long, "\r\nidempotency-key: ABCABCA\r\n");
}

/// Equal keys have equal bodies, and what has no key is like nothing before.
#[test]
fn what_must_be_unique_is_fresh_for_each_action() {
    let settings = told(|settings| {
        settings.body = Some("{\"number\":\"{{fresh}}\",\"quantity\":1}".to_owned());
        settings.vary = Some("/quantity".to_owned());
    });
    let target = Target::of(&settings).unwrap();
    let body = |key: Option<&str>, body| {
        let send = Request { body, ..Request::default() };
        String::from_utf8(target.request(&send, &known(key)).unwrap().1.body).unwrap()
    };
    assert_eq!(body(Some("abc"), Body::Base), "{\"number\":\"cba\",\"quantity\":1}");
    assert_eq!(body(Some("abc"), Body::Changed), "{\"number\":\"cba\",\"quantity\":2}");
    assert_ne!(body(None, Body::Base), body(None, Body::Base));
}

#[test]
fn pairs_are_sent_as_they_are_asked_for() {
    let of = |content_type: &str, key: Option<&str>, send: &Request| {
        let settings = told(|settings| {
            settings.body = Some("product=tea&quantity=2".to_owned());
            settings.content_type = Some(content_type.to_owned());
            settings.key = key.map(str::to_owned);
        });
        wire(&settings, send)
    };
    let form = "application/x-www-form-urlencoded";
    let sent = of(form, Some("body:token"), &Request { charset: true, ..Request::default() }).unwrap();
    assert!(sent.contains("\r\ncontent-type: application/x-www-form-urlencoded; charset=utf-8\r\n"), "{sent}");
    assert!(sent.ends_with("\r\n\r\nproduct=tea&quantity=2&token=abc"), "{sent}");
    let parts = |body| of("Multipart/Form-Data", Some("body:token"), &Request { body, ..Request::default() }).unwrap();
    let (first, again, other) = (parts(Body::Base), parts(Body::Base), parts(Body::NewBoundary));
    assert!(first == again && first != other, "a retry has the same bytes, unless other boundaries are asked for");
    for sent in [first, other] {
        let boundary = sent.split_once("; boundary=").unwrap().1.split_once("\r\n").unwrap().0.to_owned();
        let part = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"token\"\r\n\r\nabc\r\n");
        assert!(sent.contains(&part) && sent.ends_with(&format!("--{boundary}--\r\n")), "{sent}");
    }
    let twice =
        of("application/x-www-form-urlencoded; charset=utf-8", None, &Request { charset: true, ..Request::default() });
    assert!(twice.is_err_and(|why| why.contains("already")));
}

#[test]
fn credentials() {
    let settings = told(|settings| settings.credential = Some("Authorization: Bearer secret-1".to_owned()));
    let with = |credential| wire(&settings, &Request { credential, ..Request::default() }).unwrap();
    assert!(with(Credential::Given).contains("authorization: Bearer secret-1\r\n"));
    assert!(!with(Credential::None).contains("authorization"));
    let wrong = with(Credential::Wrong);
    assert!(wrong.contains("authorization: Bearer counterfoil-probe-wrong") && !wrong.contains("secret-1"), "{wrong}");
    assert_eq!(Target::of(&settings).unwrap().secrets(), ["Bearer secret-1", "secret-1"]);
    let none = wire(&told(|_| ()), &Request { credential: Credential::None, ..Request::default() });
    assert!(none.is_err_and(|why| why.contains("--credential")));
}

#[test]
fn what_is_wrong_is_said() {
    let check = |change: &dyn Fn(&mut Settings), why: &str| {
        let found = Target::of(&told(change)).map(|_| ()).map_err(|error| error.to_string());
        assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{why}: {found:?}");
    };
    check(&|settings| settings.url = None, "no URL");
    check(&|settings| settings.method = Some("PO ST".to_owned()), "no method");
    check(&|settings| settings.header = vec!["x".to_owned()], "Name: value");
    check(&|settings| settings.header = vec!["x: a\r\nb: c".to_owned()], "Name: value");
    check(&|settings| settings.key = Some("cookie:x".to_owned()), "header:NAME");
    check(&|settings| settings.credential = Some("A: env:COUNTERFOIL_NOT_SET".to_owned()), "is not set");
    check(&|settings| settings.vary = Some("/nothing".to_owned()), "--vary: the body has no /nothing");
    check(&|settings| settings.content_type = Some("multipart/form-data; boundary=x".to_owned()), "the probe's own");
    let both = |settings: &mut Settings| {
        settings.count_url = Some("http://127.0.0.1/".to_owned());
        settings.count_command = Some("echo 1".to_owned());
    };
    check(&both, "not both");
    assert!(Settings::parse("url = \"x\"\nunknown = 1").is_err_and(|why| why.contains("unknown")));
}

#[test]
fn a_secret_is_whole_and_no_letter() {
    let settings = told(|settings| {
        settings.credential = Some("Authorization: Bearer key-of-a".to_owned());
        settings.nested_credential = Some("Authorization: Bearer key-of-a:b".to_owned());
        settings.second_credential = Some("X-Tenant: other".to_owned());
    });
    let secrets = Target::of(&settings).unwrap().secrets();
    assert_eq!(secrets, ["Bearer key-of-a:b", "Bearer key-of-a", "key-of-a:b", "key-of-a"]);
}

#[test]
fn a_credential_is_not_for_whoever_describes() {
    let check = |place: Place, url: &str, given: bool| {
        let settings = told(|settings| {
            settings.credential = Some("Authorization: Bearer abcdef".to_owned());
            settings.also.insert(place, url.to_owned());
        });
        let sent = wire(&settings, &Request { to: place, body: Body::Nothing, ..Request::default() }).unwrap();
        assert_eq!(sent.contains("authorization: Bearer abcdef"), given, "{place:?} {url}: {sent}");
        assert!(!sent.contains("content-type"), "{sent}");
    };
    check(Place::Description, "http://127.0.0.1:9/openapi.json", true);
    check(Place::Description, "http://docs.example/openapi.json", false);
    check(Place::Region, "http://eu.example/orders", true);
}

#[test]
fn a_key_in_the_address_of_a_place_is_asked_about_and_not_used() {
    let settings = told(|settings| {
        settings.also.insert(Place::Lookup, "http://127.0.0.1:9/keys/{{key}}".to_owned());
    });
    let sent = wire(&settings, &Request { to: Place::Lookup, ..Request::default() }).unwrap();
    assert!(sent.starts_with("GET /keys/abc HTTP/1.1") && !sent.contains("idempotency-key"), "{sent}");
}
