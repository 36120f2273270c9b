//! What is asked of a known caller's claims, and the scope that is made of them. Each source has tests of its own.

pub(super) mod kit;

use std::collections::BTreeMap;

use counterfoil_core::{Operation, Scope};
use http::Request;
use serde_json::{Value as Json, json};

use super::{Caller, CallerAnswer, Declared, Source};
use crate::config::{Config, Flags};

struct Known(Json);

impl Source for Known {
    fn caller<'a>(&'a self, _: &'a http::request::Parts) -> CallerAnswer<'a> {
        Box::pin(std::future::ready(Ok(Caller::named("alice".to_owned(), self.0.clone()))))
    }
}

/// What `settings` make of a caller with these claims who asks for the operation `refund`.
async fn made(settings: &str, claims: Json) -> Result<Scope, String> {
    let file = format!(
        "upstream = \"http://127.0.0.1:9000\"\n[principal]\nfrom = \"jwt\"\njwks = \"file:x\"\nissuer = \"i\"\n\
         audience = \"a\"\n{settings}"
    );
    let config = Config::read(Some(&file), &|_| None, &Flags::default()).unwrap();
    let named = |operation: &crate::config::Operation| {
        (Operation::new(operation.name.as_str()).unwrap(), operation.require.clone())
    };
    let declared = Declared {
        source: Box::new(Known(claims)),
        require: config.require.clone(),
        of_operations: config.operations.iter().map(named).collect::<BTreeMap<_, _>>(),
        scope: config.scope.clone(),
    };
    let mut parts = Request::new(()).into_parts().0;
    parts.extensions.insert(Operation::new("refund").unwrap());
    declared.scope(&parts).await.map_err(|fault| fault.to_string())
}

#[tokio::test]
async fn required_claims() {
    let role = "the caller lacks what is required of the claim role";
    let rows = [
        ("", json!({}), Ok(())),
        ("require = { role = \"writer\" }", json!({ "role": "writer" }), Ok(())),
        ("require = { role = \"writer\" }", json!({ "role": ["reader", "writer"] }), Ok(())),
        ("require = { role = [\"owner\", \"writer\"] }", json!({ "role": "owner" }), Ok(())),
        ("require = { role = \"writer\" }", json!({}), Err(role)),
        ("require = { role = \"writer\" }", json!({ "role": null }), Err(role)),
        ("require = { role = \"writer\" }", json!({ "role": "writer reader" }), Err(role)),
        ("require = { role = \"writer\" }", json!({ "role": "Writer" }), Err(role)),
        ("require = { role = \"writer\" }", json!({ "role": { "writer": true } }), Err(role)),
        ("require = { role = 1 }", json!({ "role": "1" }), Err(role)),
        ("require = { role = true }", json!({ "role": true }), Ok(())),
        ("require = { scope = \"write\" }", json!({ "scope": "read write" }), Ok(())),
        (
            "require = { scope = \"write\" }",
            json!({ "scope": "read writes" }),
            Err("the caller lacks what is required of the claim scope"),
        ),
        ("require = { \"/realm/roles\" = \"a\" }", json!({ "realm": { "roles": ["a"] } }), Ok(())),
        (
            "[[operation]]\nname = \"refund\"\nmatch = \"POST /a\"\nrequire = { role = \"owner\" }",
            json!({ "role": "writer" }),
            Err(role),
        ),
        (
            "[[operation]]\nname = \"other\"\nmatch = \"POST /a\"\nrequire = { role = \"owner\" }",
            json!({ "role": "writer" }),
            Ok(()),
        ),
    ];
    for (settings, claims, expected) in rows {
        let found = made(settings, claims.clone()).await;
        let expected = expected.map(|()| Scope::principal("alice").unwrap()).map_err(str::to_owned);
        assert_eq!(found, expected, "{settings} {claims}");
    }
}

#[tokio::test]
async fn parts_of_the_scope() {
    let lacks = Err("the caller has no mode, which is part of its scope");
    let claimed = "[scope]\nmode = { claim = \"mode\" }\n";
    let rows = [
        ("[scope]\nregion = \"eu\"\n", json!({}), Ok(vec![("region", "eu")])),
        (claimed, json!({ "mode": "live" }), Ok(vec![("mode", "live")])),
        (claimed, json!({ "mode": 7 }), Ok(vec![("mode", "7")])),
        (claimed, json!({ "mode": false }), Ok(vec![("mode", "false")])),
        (claimed, json!({}), lacks.clone()),
        (claimed, json!({ "mode": 0.5 }), lacks.clone()),
        (claimed, json!({ "mode": ["live"] }), lacks),
        (claimed, json!({ "mode": "" }), Err("the scope cannot be used: a part's value must have 1 to 1,024 bytes")),
        (
            "[scope]\nregion = \"eu\"\nmode = { claim = \"/app/mode\" }\n",
            json!({ "app": { "mode": "test" } }),
            Ok(vec![("region", "eu"), ("mode", "test")]),
        ),
    ];
    for (settings, claims, expected) in rows {
        let found = made(settings, claims.clone()).await;
        let expected = expected.map(|parts| {
            let parts = parts.into_iter().chain([("principal", "alice")]);
            Scope::from_parts(parts.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap()
        });
        assert_eq!(found, expected.map_err(str::to_owned), "{settings} {claims}");
    }
}
