//! A right server gets no deviation under the draft's contract, three times over, and its run says all that it should.

use std::collections::BTreeMap;

use counterfoil_probe::{Catalogue, FailOn, Hook, Place, Probe, Run, Settings, Verdict};

use crate::orders::{CREDENTIAL, Fault, NESTED, Orders, SAME_TENANT, SECOND};

/// Every hook of a service of ours.
fn hooks(orders: &Orders) -> BTreeMap<Hook, String> {
    let clock = "clock?seconds=$PROBE_SECONDS";
    let all = [
        (Hook::Restart, "restart"),
        (Hook::Kill, "kill"),
        (Hook::Clock, clock),
        (Hook::PowerCut, "power-cut"),
        (Hook::Backup, "backup"),
        (Hook::Restore, "restore"),
        (Hook::Hold, "hold"),
        (Hook::Limit, "limit"),
        (Hook::FailBefore, "fail-before"),
        (Hook::FailAfter, "fail-after"),
        (Hook::StoreDown, "store-down"),
        (Hook::Heal, "heal"),
    ];
    all.into_iter().map(|(hook, what)| (hook, orders.hook(what))).collect()
}

/// Every further place of a service of ours.
fn also(orders: &Orders) -> BTreeMap<Place, String> {
    let all = [
        (Place::Other, orders.url("/refunds")),
        (Place::Sibling, orders.url("/shops/2/orders")),
        (Place::Method, orders.url("/orders")),
        (Place::Region, orders.url("/eu/orders")),
        (Place::Second, orders.second_url("/orders")),
        (Place::Upgraded, orders.second_url("/v2/orders")),
        (Place::Change, orders.url("/orders/{{id}}")),
        (Place::Delete, orders.url("/orders/{{id}}")),
        (Place::Lookup, orders.url("/keys/{{key}}")),
        (Place::Cancel, orders.url("/keys/{{key}}/cancel")),
        (Place::Description, orders.url("/openapi.json")),
    ];
    all.into_iter().collect()
}

/// What the tests say of a service of ours.
pub(crate) fn settings(orders: &Orders) -> Settings {
    Settings {
        url: Some(orders.url("/orders")),
        also: also(orders),
        body: Some("{\"product\":\"tea\",\"quantity\":2,\"tags\":[\"a\",\"b\"]}".to_owned()),
        vary: Some("/quantity".to_owned()),
        id: Some("/id".to_owned()),
        count_url: Some(orders.url("/count")),
        count: Some("/count".to_owned()),
        credential: Some(format!("Authorization: {CREDENTIAL}")),
        default_member: Some("/gift=false".to_owned()),
        settle_ms: Some(0),
        patience_ms: Some(400),
        declined: Some("{\"product\":\"gold\",\"quantity\":2,\"tags\":[\"a\",\"b\"]}".to_owned()),
        hook: hooks(orders),
        window: Some(3600),
        second_credential: Some(format!("Authorization: {SECOND}")),
        same_tenant_credential: Some(format!("Authorization: {SAME_TENANT}")),
        nested_credential: Some(format!("Authorization: {NESTED}")),
        account_header: Some("X-Account: two".to_owned()),
        ..Settings::default()
    }
}

/// The same fields as pairs, sent as this media type.
pub(crate) fn as_pairs(content_type: &str, orders: &Orders) -> Settings {
    Settings {
        body: Some("product=tea&quantity=2".to_owned()),
        content_type: Some(content_type.to_owned()),
        vary: Some("quantity".to_owned()),
        declined: Some("product=gold&quantity=2".to_owned()),
        ..settings(orders)
    }
}

/// Keys that say when they were used first.
pub(crate) fn as_repeatable(orders: &Orders) -> Settings {
    Settings { key: Some("header:Repeatability-Request-ID".to_owned()), ..settings(orders) }
}

/// A form whose key is one of its fields.
pub(crate) fn as_form(orders: &Orders) -> Settings {
    Settings { key: Some("body:token".to_owned()), ..as_pairs("application/x-www-form-urlencoded", orders) }
}

pub(crate) fn as_parts(orders: &Orders) -> Settings {
    as_pairs("multipart/form-data", orders)
}

pub(crate) async fn run(settings: &Settings) -> Run {
    let probe = Probe::new(settings, Catalogue::built_in().unwrap()).unwrap();
    probe.run(|_| ()).await.unwrap()
}

/// Whether a case may also be inconclusive: it needs a race that may not come about.
pub(crate) fn is_race(row: &str) -> bool {
    row.starts_with('C') || ["I2", "F12", "H3", "G9"].contains(&row)
}

/// Questions that cannot be put to it: the other credential of the same principal has all rights (E9), no key outlives its
/// result (G6), and plain keys do not say when they were used first (G7, G8).
pub(crate) const NOT_PUT: [&str; 4] = ["E9", "G6", "G7", "G8"];

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_no_deviation_and_the_same_verdicts_each_time() {
    let orders = Orders::start(Fault::None).await;
    let settings = settings(&orders);
    let first = run(&settings).await;
    for result in &first.results {
        let is_put = !NOT_PUT.contains(&result.row.as_str());
        let cannot_be_asked = result.verdict == Verdict::Unobservable && result.id == "equiv/multipart-boundary";
        assert!(result.verdict.is_answer() || is_race(&result.row) || !is_put || cannot_be_asked, "{result:#?}");
        assert!(!matches!(result.verdict, Verdict::Deviates(_)), "{result:#?}");
    }
    assert_eq!(first.exit_code(FailOn::Any), 0);
    let plan = Probe::new(&settings, Catalogue::built_in().unwrap()).unwrap().plan();
    assert_eq!((first.effects_left, plan.observer), (Some(u64::from(plan.effects)), 2), "as many effects as were told");
    assert!(first.exchanges.len() <= usize::try_from(plan.requests).unwrap());
    for _ in 0..2 {
        let again = run(&settings).await;
        for (one, other) in first.results.iter().zip(&again.results) {
            let same = one.verdict == other.verdict;
            let unreached = [one.verdict, other.verdict].contains(&Verdict::Inconclusive) && is_race(&one.row);
            assert!(same || unreached, "{one:#?}\n{other:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_say_when_they_were_used_first_get_no_deviation() {
    let orders = Orders::start(Fault::None).await;
    let found = run(&as_repeatable(&orders)).await;
    for result in &found.results {
        assert!(!matches!(result.verdict, Verdict::Deviates(_)), "{result:#?}");
        assert!(result.verdict != Verdict::SetupFailed, "{result:#?}");
    }
    let value = |id: &str| found.results.iter().find(|result| result.id == id).unwrap().why.clone();
    assert_eq!((value("ret/first-sent-old"), value("ret/first-sent-future")), ("412".to_owned(), "201".to_owned()));
}

/// What pairs cannot say: the cases, each with a word of its reason.
const NOT_IN_PAIRS: [(&str, &str); 5] = [
    ("equiv/null", "no null"),
    ("equiv/white-space", "no white space"),
    ("equiv/array-order", "no arrays"),
    ("equiv/structure", "no structure"),
    ("equiv/duplicate-member", "a list"),
];

async fn check_pairs(settings: &Settings, beside: (&str, &str), boundary: Verdict) {
    let found = run(settings).await;
    for result in &found.results {
        match NOT_IN_PAIRS.iter().chain([&beside]).find(|(id, _)| *id == result.id) {
            Some((_, why)) => {
                assert!(result.verdict == Verdict::Unobservable && result.why.contains(why), "{result:#?}");
                assert!(result.exchanges.is_empty(), "nothing is sent that cannot be asked");
            }
            // Where the key is a field there is no header to write otherwise.
            None if result.why == "the key is in no header" => {}
            None if NOT_PUT.contains(&result.row.as_str()) => {}
            None => assert!(result.verdict.is_answer() || is_race(&result.row), "{result:#?}"),
        }
        assert!(!matches!(result.verdict, Verdict::Deviates(_)), "{result:#?}");
    }
    let told = found.results.iter().find(|result| result.id == "equiv/multipart-boundary").unwrap();
    assert_eq!(told.verdict, boundary, "{told:#?}");
    let plan = Probe::new(settings, Catalogue::built_in().unwrap()).unwrap().plan();
    assert_eq!(found.effects_left, Some(u64::from(plan.effects)), "as many effects as were told");
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_and_parts_get_no_deviation() {
    let orders = Orders::start(Fault::None).await;
    check_pairs(&as_form(&orders), ("equiv/multipart-boundary", "only a multipart"), Verdict::Unobservable).await;
    check_pairs(&as_parts(&orders), ("equiv/unicode", "no escapes"), Verdict::Value).await;
    let keyed = Settings { key: Some("body:token".to_owned()), ..as_parts(&orders) };
    check_pairs(&keyed, ("equiv/unicode", "no escapes"), Verdict::Value).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_alone_never_tell_more_than_they_show() {
    let orders = Orders::start(Fault::None).await;
    let settings = Settings { count_url: None, count: None, ..settings(&orders) };
    let found = run(&settings).await;
    for id in ["conc/caller-gone", "fail/request-halved", "fail/request-lost", "fail/after-effect", "fail/store-down"] {
        let result = found.results.iter().find(|result| result.id == id).unwrap();
        assert_eq!(result.verdict, Verdict::Unobservable, "{result:#?}");
    }
    assert!(found.results.iter().all(|result| !matches!(result.verdict, Verdict::Deviates(_))));
    let blind = run(&Settings { id: None, ..settings }).await;
    let control = &blind.results[0];
    assert_eq!((control.verdict, blind.observer), (Verdict::Unobservable, 0), "{control:#?}");
    assert_eq!(blind.count(|verdict| verdict == Verdict::DependsOnFailed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_contract_is_another_question() {
    use counterfoil_probe::{Contract, Severity};
    let orders = Orders::start(Fault::None).await;
    let found = run(&Settings { contract: Some(Contract::StripeV1), ..settings(&orders) }).await;
    let told = |id: &str| found.results.iter().find(|result| result.id == id).unwrap().verdict;
    assert_eq!(told("mism/value"), Verdict::Deviates(Severity::Minor), "422 where Stripe says 400");
    assert_eq!((told("seq/one-effect"), told("seq/marker")), (Verdict::Conforms, Verdict::Conforms));
    // One case writes the key both ways.
    let plain = found.exchanges.iter().filter(|exchange| exchange.case != "syntax/bare");
    let keys = plain.flat_map(|exchange| &exchange.headers);
    let keys: Vec<_> = keys.filter(|(name, _)| name == "idempotency-key").collect();
    assert!(!keys.is_empty() && keys.iter().all(|(_, value)| !value.contains('"')), "Stripe's keys stand bare");
}
