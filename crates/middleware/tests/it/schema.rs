//! Judges a JSON document by a JSON Schema (draft 2020-12), as far as our own schemas use it; a keyword that is not
//! known here is a fault, so that nothing is passed over. What the contract says is tested in `contract`.

use std::path::Path;

use serde_json::{Map, Value, json};

/// The schema of that name beside the reference pages.
pub(crate) fn read(name: &str) -> Value {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("docs/reference").join(name));
    let path = above.into_iter().find(|path| path.exists()).unwrap();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What is wrong with `document`, each fault with its path.
pub(crate) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let judge = Judge { root: schema };
    let mut faults = Vec::new();
    judge.judge(schema, document, "", &mut faults);
    faults
}

struct Judge<'s> {
    root: &'s Value,
}

impl Judge<'_> {
    fn judge(&self, schema: &Value, found: &Value, at: &str, faults: &mut Vec<String>) {
        let rules = schema.as_object().unwrap_or_else(|| panic!("{at}: the schema is no object: {schema}"));
        for (keyword, rule) in rules {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => {}
                "$ref" => {
                    let pointer = rule.as_str().and_then(|text| text.strip_prefix('#')).unwrap();
                    let target = self.root.pointer(pointer).unwrap_or_else(|| panic!("{rule} leads nowhere"));
                    self.judge(target, found, at, faults);
                }
                "oneOf" => {
                    let fits = |choice: &&Value| {
                        let mut faults = Vec::new();
                        self.judge(choice, found, at, &mut faults);
                        faults.is_empty()
                    };
                    let count = rule.as_array().unwrap().iter().filter(fits).count();
                    if count != 1 {
                        faults.push(format!("{at}: fits {count} of its choices: {found}"));
                    }
                }
                "properties" => {
                    for (name, rule) in rule.as_object().unwrap() {
                        if let Some(member) = found.get(name) {
                            self.judge(rule, member, &format!("{at}/{name}"), faults);
                        }
                    }
                }
                "items" => {
                    for (index, item) in found.as_array().into_iter().flatten().enumerate() {
                        self.judge(rule, item, &format!("{at}/{index}"), faults);
                    }
                }
                _ if holds(keyword, rule, found, rules) => {}
                _ => faults.push(format!("{at}: not as {keyword} says: {found}")),
            }
        }
    }
}

/// The keywords that need no further schema.
fn holds(keyword: &str, rule: &Value, found: &Value, rules: &Map<String, Value>) -> bool {
    let (list, members, number) = (found.as_array(), found.as_object(), found.as_f64());
    match keyword {
        "const" => found == rule,
        "enum" => rule.as_array().unwrap().contains(found),
        "type" => match rule.as_str().unwrap() {
            "object" => members.is_some(),
            "array" => list.is_some(),
            "string" => found.is_string(),
            "boolean" => found.is_boolean(),
            "number" => found.is_number(),
            "integer" => found.is_i64() || found.is_u64(),
            "null" => found.is_null(),
            other => panic!("unknown type {other}"),
        },
        "required" => {
            let mut names = rule.as_array().unwrap().iter();
            members.is_none_or(|members| names.all(|name| members.contains_key(name.as_str().unwrap())))
        }
        "additionalProperties" => {
            assert_eq!(rule, &json!(false), "only false is known here");
            let known = rules.get("properties").and_then(Value::as_object).unwrap();
            members.is_none_or(|members| members.keys().all(|name| known.contains_key(name)))
        }
        "minimum" => number.is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => number.is_none_or(|number| number <= rule.as_f64().unwrap()),
        "minItems" => list.is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
        "minLength" => found.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap()),
        "uniqueItems" => {
            list.is_none_or(|list| list.iter().enumerate().all(|(index, item)| !list[..index].contains(item)))
        }
        other => panic!("unknown keyword {other}"),
    }
}

#[test]
fn planted_faults_are_seen() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": { "$ref": "#/$defs/small" },
            "b": { "oneOf": [{ "const": 1 }, { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "enum": ["x", "y"] } }] },
            "c": { "type": "string", "minLength": 1 }
        },
        "$defs": { "small": { "type": "integer", "minimum": 0, "maximum": 9 } }
    });
    let table = [
        (json!({ "a": 1, "b": 1, "c": "c" }), ""),
        (json!({ "a": 1, "b": ["x", "y"] }), ""),
        (json!([]), ": not as type"),
        (json!({}), ": not as required"),
        (json!({ "a": 1, "z": 1 }), ": not as additionalProperties"),
        (json!({ "a": 10 }), "/a: not as maximum"),
        (json!({ "a": -1 }), "/a: not as minimum"),
        (json!({ "a": 1.5 }), "/a: not as type"),
        (json!({ "a": 1, "b": 2 }), "/b: fits 0"),
        (json!({ "a": 1, "b": [] }), "/b: fits 0"),
        (json!({ "a": 1, "b": ["x", "x"] }), "/b: fits 0"),
        (json!({ "a": 1, "b": ["z"] }), "/b: fits 0"),
        (json!({ "a": 1, "c": "" }), "/c: not as minLength"),
    ];
    for (document, expected) in table {
        let found = faults(&schema, &document);
        assert_eq!(found.is_empty(), expected.is_empty(), "{document}: {found:?}");
        assert!(found.first().is_none_or(|fault| fault.starts_with(expected)), "{document}: {found:?}");
    }
}
