//! Bodies that are forms: a right server keeps its promise for them too, and what a form cannot say is no question.
//!
//! What does not belong here: how the probe changes a form, which is tested beside the code.

use counterfoil_probe::{FailOn, Run, Settings, Verdict};
use serde_json::{Map, Value, json};

use crate::orders::{Fault, Orders};
use crate::right::{is_race, run, settings};

/// What a body says: JSON as it is, a form as an object; a name that stands twice gives a list.
pub(crate) fn parsed(media: &str, body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    let pairs: Vec<(String, String)> = match media.split(';').next().unwrap_or_default() {
        "application/x-www-form-urlencoded" => {
            text.split('&').filter_map(|pair| pair.split_once('=')).map(plain).collect()
        }
        "multipart/form-data" => text.split("name=\"").skip(1).filter_map(part).collect(),
        _ => return serde_json::from_slice(body).unwrap_or_default(),
    };
    let mut all = Map::new();
    for (name, text) in pairs {
        let number = serde_json::from_str::<serde_json::Number>(&text);
        let value = number.map_or(Value::from(text), Value::from);
        match all.get_mut(&name) {
            None => drop(all.insert(name, value)),
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = json!([first.clone(), value]),
        }
    }
    Value::Object(all)
}

fn plain((name, value): (&str, &str)) -> (String, String) {
    let decoded = |text: &str| {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let [first, tail @ ..] = rest {
            let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
            bytes.push(hex.map_or(*first, |hex| u8::from_str_radix(hex, 16).unwrap()));
            rest = if hex.is_some() { &tail[2..] } else { tail };
        }
        String::from_utf8(bytes).unwrap().replace('+', " ")
    };
    (decoded(name), decoded(value))
}

fn part(text: &str) -> Option<(String, String)> {
    let (name, rest) = text.split_once('"')?;
    let (_, value) = rest.split_once("\r\n\r\n")?;
    Some((name.to_owned(), value.split_once("\r\n--")?.0.to_owned()))
}

fn form(orders: &Orders) -> Settings {
    Settings { body: Some("product=tea&quantity=2&tags=a&tags=b".to_owned()), ..settings(orders) }
}

fn multipart(orders: &Orders) -> Settings {
    let fields = ["product=tea", "quantity=2", "tags=a", "tags=b"].map(str::to_owned);
    Settings { body: None, form: fields.to_vec(), ..settings(orders) }
}

fn told(run: &Run, id: &str) -> Verdict {
    run.results.iter().find(|result| result.id == id).unwrap().verdict
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_server_gets_no_deviation_for_any_kind_of_body() {
    let orders = Orders::start(Fault::None).await;
    for settings in [form(&orders), multipart(&orders)] {
        let found = run(&settings).await;
        let void = |id: &str| ["equiv/null", "equiv/white-space"].contains(&id);
        for result in &found.results {
            let wanted = result.verdict.is_answer() || is_race(&result.row) || void(&result.id);
            assert!(wanted && !matches!(result.verdict, Verdict::Deviates(_)), "{result:#?}");
        }
        assert_eq!(told(&found, "equiv/null"), Verdict::NotApplicable);
        assert_eq!(found.exit_code(FailOn::Any), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_server_is_seen_through_a_form() {
    use counterfoil_probe::Severity::{Critical, Major};
    for (fault, id, severity) in [
        (Fault::NoDedup, "seq/one-effect", Critical),
        (Fault::FingerprintMissing, "mism/value", Major),
        (Fault::ValidationAfterEffect, "fail/refused-twice", Critical),
        (Fault::MismatchRuns, "equiv/array-order", Critical),
    ] {
        let orders = Orders::start(fault).await;
        for settings in [form(&orders), multipart(&orders)] {
            let found = run(&Settings { case: vec![id.to_owned()], ..settings }).await;
            assert_eq!(told(&found, id), Verdict::Deviates(severity), "{fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_body_or_the_query_is_the_key() {
    let orders = Orders::start(Fault::KeyOfAnyPlace).await;
    for place in ["body:idempotency_key", "query:idempotency_key"] {
        for settings in [settings(&orders), form(&orders), multipart(&orders)] {
            let case = vec!["B1".to_owned(), "B6".to_owned(), "D1".to_owned(), "D7".to_owned(), "C1".to_owned()];
            let found = run(&Settings { key: Some(place.to_owned()), case, ..settings }).await;
            for result in &found.results {
                let fits = result.verdict.is_answer() || is_race(&result.row);
                assert!(fits && !matches!(result.verdict, Verdict::Deviates(_)), "{place}: {result:#?}");
            }
        }
    }
}
