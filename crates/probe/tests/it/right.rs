//! A right server gets no deviation under the draft's contract, three times over, and its run says all that it should.

use counterfoil_probe::{Catalogue, FailOn, Probe, Run, Settings, Verdict};

use crate::orders::{CREDENTIAL, Fault, Orders, SAME_TENANT, SECOND};

/// What the tests say of a service of ours.
pub(crate) fn settings(orders: &Orders) -> Settings {
    Settings {
        url: Some(orders.url("/orders")),
        other_url: Some(orders.url("/refunds")),
        body: Some("{\"product\":\"tea\",\"quantity\":2,\"tags\":[\"a\",\"b\"]}".to_owned()),
        vary: Some("/quantity".to_owned()),
        id: Some("/id".to_owned()),
        count_url: Some(orders.url("/count")),
        count: Some("/count".to_owned()),
        credential: Some(format!("Authorization: {CREDENTIAL}")),
        default_member: Some("/gift=false".to_owned()),
        settle_ms: Some(0),
        patience_ms: Some(400),
        restart_command: Some(orders.hook("restart")),
        kill_command: Some(orders.hook("kill")),
        clock_command: Some(orders.hook("clock?seconds=$PROBE_SECONDS")),
        window: Some(3600),
        second_credential: Some(format!("Authorization: {SECOND}")),
        same_tenant_credential: Some(format!("Authorization: {SAME_TENANT}")),
        second_url: Some(orders.second_url("/orders")),
        ..Settings::default()
    }
}

/// The same fields as pairs, sent as this media type.
pub(crate) fn as_pairs(content_type: &str, orders: &Orders) -> Settings {
    Settings {
        body: Some("product=tea&quantity=2".to_owned()),
        content_type: Some(content_type.to_owned()),
        vary: Some("quantity".to_owned()),
        ..settings(orders)
    }
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
    row.starts_with('C') || row == "I2" || row == "F12" || row == "H3"
}

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_no_deviation_and_the_same_verdicts_each_time() {
    let orders = Orders::start(Fault::None).await;
    let settings = settings(&orders);
    let first = run(&settings).await;
    for result in &first.results {
        // Of the two questions about another credential, which has all rights here, only one can be put.
        let is_put = result.row != "E9";
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
            None if result.row == "E9" => {}
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
    for id in ["conc/caller-gone", "fail/request-halved", "fail/request-lost"] {
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
