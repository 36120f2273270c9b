//! The written form of the report is what runs are really written as: every run and every line fits the schema, and a
//! report that is wrong in one place does not.
//!
//! What does not belong here: what the values mean.

use counterfoil_probe::report;
use serde_json::{Value, json};

use crate::flaws;
use crate::orders::{Fault, Orders};
use crate::right::{run, settings};
use crate::shop::{Flaw, Shop};

const SCHEMA: &str = include_str!("../../../../docs/reference/probe-report.schema.json");

/// The words of JSON Schema that the schema may use; another one would be a rule that nobody checks.
const WORDS: [&str; 17] = [
    "$schema",
    "$id",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "required",
    "additionalProperties",
    "properties",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "enum",
    "const",
];

/// What of a value does not fit; the path of each fault stands in front.
fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let rules = schema.as_object().unwrap();
    if let Some(unknown) = rules.keys().find(|word| !WORDS.contains(&word.as_str()) && *word != "anyOf") {
        panic!("{at}: the schema uses {unknown:?}");
    }
    if let Some(name) = schema["$ref"].as_str() {
        return faults(root, root.pointer(&name[1..]).unwrap(), value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        if any.iter().all(|one| !faults(root, one, value, at).is_empty()) {
            found.push(format!("{at}: {value} is none of the alternatives"));
        }
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        Value::Null => Vec::new(),
        kind => vec![kind.clone()],
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(value, kind.as_str().unwrap())) {
        found.push(format!("{at}: {value} is no {kinds:?}"));
    }
    let allowed = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    if !allowed || schema.get("const").is_some_and(|wanted| wanted != value) {
        found.push(format!("{at}: {value} is not allowed"));
    }
    let (least, most) = (schema["minimum"].as_i64(), schema["maximum"].as_i64());
    if let Some(number) =
        value.as_i64().filter(|number| least > Some(*number) || most.is_some_and(|most| most < *number))
    {
        found.push(format!("{at}: {number} is out of bounds"));
    }
    for (number, element) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(root, &schema["items"], element, &format!("{at}/{number}")));
    }
    let length = value.as_array().map(Vec::len);
    let exact = schema["minItems"].as_u64().and_then(|count| usize::try_from(count).ok());
    if exact.is_some() && length.is_some() && length != exact {
        found.push(format!("{at}: {length:?} elements"));
    }
    found.extend(members(root, schema, value, at));
    found
}

fn members(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let Some(all) = value.as_object() else { return Vec::new() };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !all.contains_key(*name)).map(|name| format!("{at}: no {name}"));
    let mut found: Vec<String> = missing.collect();
    for (name, member) in all {
        let at = format!("{at}/{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(known), _) => found.extend(faults(root, known, member, &at)),
            (None, Value::Bool(false)) => found.push(format!("{at}: unknown")),
            (None, Value::Null) => {}
            (None, other) => found.extend(faults(root, other, member, &at)),
        }
    }
    found
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the schema knows a type {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_run_is_written_as_the_schema_says() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let shop = Shop::open(Flaw::CallerIgnored).await;
    let everything = run(&flaws::settings(&shop).await).await;
    let orders = [Orders::start(Fault::CallerGoneSticks).await, Orders::start(Fault::BodyIsKey).await];
    let runs = [everything, run(&settings(&orders[0])).await, run(&settings(&orders[1])).await];
    for run in &runs {
        let written: Value = serde_json::from_str(&report::json(run).unwrap()).unwrap();
        assert_eq!(faults(&schema, &schema, &written, ""), [""; 0]);
        for line in report::lines(run).unwrap().lines() {
            let written: Value = serde_json::from_str(line).unwrap();
            assert_eq!(faults(&schema, &schema["$defs"]["exchange"], &written, ""), [""; 0]);
        }
    }
    let right: Value = serde_json::from_str(&report::json(&runs[0]).unwrap()).unwrap();
    for (pointer, wrong) in [
        ("/format", json!(2)),
        ("/contract", json!("rfc")),
        ("/observer", json!(4)),
        ("/results/0/verdict", json!("deviates")),
        ("/results/0/verdict", json!({"deviates": "bad"})),
        ("/results/0/kind", json!(null)),
        ("/results/0/facts", json!({"a": 1})),
        ("/exchanges/0/headers/0", json!(["a"])),
        ("/exchanges/0/answer", json!({"status": 200})),
        ("/exchanges/0/sent_at", json!(-1)),
        ("/exchanges/0/protocol", json!("HTTP/3")),
        ("/ids_left", json!([1])),
    ] {
        let mut planted = right.clone();
        *planted.pointer_mut(pointer).unwrap() = wrong;
        assert!(!faults(&schema, &schema, &planted, "").is_empty(), "{pointer}");
    }
    let mut more = right;
    more["extra"] = json!(1);
    assert_eq!(faults(&schema, &schema, &more, ""), ["/extra: unknown"]);
}
