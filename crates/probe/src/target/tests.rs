//! What settings become: addresses, the place of keys, credentials, and what is refused.

use super::{Address, Sent, Target};
use crate::case::{Contract, Credential, KeyForm, Request};
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
