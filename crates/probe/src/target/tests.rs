//! What settings become: addresses, the place of keys, credentials, and what is refused.

use super::{Address, Sent, Target};
use crate::case::{Along, Body, Contract, Credential, Http, KeyForm, KeyPlace, Media, Request, To};
use crate::exchange::Answer;
use crate::lack::Lack;
use crate::settings::Settings;

fn told(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings { url: Some("http://127.0.0.1:9/orders".to_owned()), ..Settings::default() };
    change(&mut settings);
    settings
}

fn wire(settings: &Settings, send: &Request) -> Result<String, String> {
    let target = Target::of(settings).map_err(|error| error.to_string())?;
    let (_, prepared) = target.request(send, Sent { key: Some("abc"), made: None }).map_err(crate::lack::Lack::why)?;
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

#[test]
fn credentials() {
    let settings = told(|settings| settings.credential = Some("Authorization: Bearer secret-1".to_owned()));
    let with = |credential| wire(&settings, &Request { credential, ..Request::default() }).unwrap();
    assert!(with(Credential::Given).contains("authorization: Bearer secret-1\r\n"));
    assert!(!with(Credential::None).contains("authorization"));
    let wrong = with(Credential::Wrong);
    assert!(wrong.contains("authorization: Bearer counterfoil-probe-wrong") && !wrong.contains("secret-1"), "{wrong}");
    assert_eq!(Target::of(&settings).unwrap().secrets().0, ["Bearer secret-1", "secret-1"]);
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
    let both = |settings: &mut Settings| {
        settings.count_url = Some("http://127.0.0.1/".to_owned());
        settings.count_command = Some("echo 1".to_owned());
    };
    check(&both, "not both");
    assert!(Settings::parse("url = \"x\"\nunknown = 1").is_err_and(|why| why.contains("unknown")));
}

#[test]
fn keys_are_written_in_every_form() {
    let check = |key: Option<&str>, send: Request, wanted: Result<&str, &str>| {
        let settings = told(|settings| {
            settings.key = key.map(str::to_owned);
            settings.also.nested_credential = Some("A: b".to_owned());
            settings.also.nested_name = Some(":b".to_owned());
        });
        match (wire(&settings, &send), wanted) {
            (Ok(sent), Ok(part)) => assert!(sent.contains(part), "{part:?} in {sent}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (found, wanted) => panic!("{send:?}: {found:?}, wanted {wanted:?}"),
        }
    };
    let form = |key_form| Request { key_form, ..Request::default() };
    check(None, form(KeyForm::Empty), Ok("idempotency-key: \r\n"));
    check(None, form(KeyForm::Bare), Ok("idempotency-key: abc\r\n"));
    check(None, form(KeyForm::List), Ok("idempotency-key: \"abc\", \"abc-2\"\r\n"));
    check(None, form(KeyForm::TwoLines), Ok("idempotency-key: \"abc\"\r\nidempotency-key: \"abc-2\"\r\n"));
    check(None, form(KeyForm::Space), Ok("idempotency-key: \"a bc\"\r\n"));
    check(None, form(KeyForm::Token), Ok("idempotency-key: \"order_abc\"\r\n"));
    check(None, form(KeyForm::Nested), Ok("idempotency-key: \"b:abc\"\r\n"));
    let upper = || Request { place: KeyPlace::HeaderUpper, ..Request::default() };
    check(None, upper(), Ok("IDEMPOTENCY-KEY: \"abc\"\r\n"));
    check(Some("query:k"), upper(), Err("stands in no header"));
    check(Some("body:k"), form(KeyForm::List), Err("stands in no header"));
    check(Some("query:k"), form(KeyForm::Comma), Ok("POST /orders?k=a%2Cbc HTTP/1.1\r\n"));
    check(Some("query:k"), form(KeyForm::NonAscii), Ok("?k=a%C3%A9bc "));
}

#[test]
fn places_methods_and_headers() {
    let full = told(|settings| {
        settings.id = Some("/id".to_owned());
        settings.second_url = Some("http://127.0.0.1:8/orders".to_owned());
        settings.also.lookup_url = Some("http://127.0.0.1:9/keys/{key}?x".to_owned());
        settings.also.version_header = Some("Version: 2".to_owned());
        settings.also.other_method = Some("PUT".to_owned());
        settings.also.change = Some("{\"quantity\":3}".to_owned());
    });
    let check = |send: &Request, part: &str| {
        let sent = wire(&full, send).unwrap();
        assert!(sent.contains(part), "{part:?} in {sent}");
    };
    check(&Request { to: To::Second, ..Request::default() }, "host: 127.0.0.1:8\r\n");
    let lookup = Request { to: To::Lookup, method: Some("GET".to_owned()), body: Body::Nothing, ..Request::default() };
    check(&lookup, "GET /keys/abc?x HTTP/1.1\r\n");
    assert!(!wire(&full, &lookup).unwrap().contains("content-"), "no body, and nothing said of one");
    check(&Request { along: Along::Version, ..Request::default() }, "version: 2\r\n");
    check(&Request { other_method: true, ..Request::default() }, "PUT /orders ");
    check(&Request { body: Body::Change, ..Request::default() }, "PATCH /orders ");
    check(&Request { body: Body::Change, ..Request::default() }, "\r\n\r\n{\"quantity\":3}");
    check(
        &Request { media: Media::Charset, ..Request::default() },
        "content-type: application/json; charset=utf-8\r\n",
    );
    let bare = told(|_| ());
    for (send, flag) in [
        (Request { to: To::Second, ..Request::default() }, "--second-url"),
        (Request { credential: Credential::Second, ..Request::default() }, "--second-credential"),
        (Request { along: Along::Account, ..Request::default() }, "account-header"),
        (Request { body: Body::Declined, ..Request::default() }, "declined"),
        (Request { http: Http::Two, ..Request::default() }, "--http2"),
    ] {
        assert!(wire(&bare, &send).is_err_and(|why| why.contains(flag)), "{flag}");
    }
}

#[test]
fn what_was_made_is_found_by_its_location_or_its_id() {
    let answer = |location: Option<&str>| Answer {
        status: 201,
        headers: location.iter().map(|to| ("location".to_owned(), (*to).to_owned())).collect(),
        body: "{\"id\":7}".to_owned(),
        whole: true,
    };
    let check = |item: Option<&str>, location: Option<&str>, wanted: Result<&str, &str>| {
        let target = Target::of(&told(|settings| {
            settings.id = Some("/id".to_owned());
            settings.also.item_url = item.map(str::to_owned);
        }));
        let send = Request { to: To::Item, ..Request::default() };
        let made = answer(location);
        let found = target.unwrap().request(&send, Sent { key: None, made: Some(&made) });
        match (found.map(|(_, prepared)| prepared.path).map_err(Lack::why), wanted) {
            (Ok(path), Ok(wanted)) => assert_eq!(path, wanted),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (found, wanted) => panic!("{found:?}, wanted {wanted:?}"),
        }
    };
    check(None, Some("/orders/7"), Ok("/orders/7"));
    check(None, Some("http://127.0.0.1:9/orders/7"), Ok("/orders/7"));
    check(None, Some("http://elsewhere.example/orders/7"), Err("another server's"));
    check(None, Some("//elsewhere.example/7"), Err("no address"));
    check(None, None, Err("item-url"));
    check(Some("http://127.0.0.1:9/things/{id}"), None, Ok("/things/7"));
}

#[test]
fn every_other_credential_is_a_secret() {
    let target = Target::of(&told(|settings| {
        settings.second_credential = Some("X-Token: one".to_owned());
        settings.also.weaker_credential = Some("Authorization: Bearer two".to_owned());
    }));
    let (values, names) = target.unwrap().secrets();
    assert_eq!(values, ["one", "Bearer two", "two"]);
    assert_eq!(names, ["x-token", "authorization"]);
}
