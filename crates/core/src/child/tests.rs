//! The published vectors are what this version computes. They were made by another program.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::identity::{Operation, Scope};

const VECTORS: &str = "../../docs/reference/child-keys.json";

#[test]
fn the_published_vectors_are_recomputed() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(VECTORS)).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["namespace"].as_str(), Some(NAMESPACE.hyphenated().to_string().as_str()));
    let vectors = file["vectors"].as_array().unwrap();
    assert!(vectors.len() >= 8);
    let mut seen = BTreeMap::new();
    for vector in vectors {
        let text = |field: &str| vector[field].as_str().unwrap().to_owned();
        let parts = vector["scope"].as_object().unwrap().iter();
        let parts = parts.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        let scope = Scope::from_parts(parts).unwrap();
        let identity = Identity::new(scope, Operation::new(text("operation")).unwrap(), Key::new(text("key")).unwrap());
        let generation = u32::try_from(vector["generation"].as_u64().unwrap()).unwrap();
        let found = child_key(&identity, &text("step"), generation);
        assert_eq!(found.as_str(), text("child_key"), "{vector}");
        assert!(seen.insert(text("child_key"), vector).is_none(), "two actions with one child key: {vector}");
    }
}
