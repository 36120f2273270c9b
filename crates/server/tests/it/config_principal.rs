//! `[principal]`, `[scope]` and `require` in whole configurations, compared with golden files as in `config`.

use crate::config::file;

/// With the one setting that every configuration needs.
fn with(name: &str, text: &str) {
    file(&format!("principal-{name}"), &format!("upstream = \"http://127.0.0.1:9000\"\n{text}"));
}

#[test]
fn missing_parts() {
    with("header-alone", "[principal]\nfrom = \"header\"\n");
    with("api-keys-alone", "[principal]\nfrom = \"api-keys\"\n");
    with("jwt-alone", "[principal]\nfrom = \"jwt\"\n");
    with("forward-auth-alone", "[principal]\nfrom = \"forward-auth\"\n");
    with("without-from", "[principal]\nheader = \"x-user\"\n");
    with("unknown", "[principal]\nfrom = \"cookie\"\nheader = \"x-user\"\ncolor = \"red\"\n");
}

#[test]
fn peers_that_cannot_connect() {
    let header = "[principal]\nfrom = \"header\"\nheader = \"x-user\"\n";
    with("unix-peer-over-tcp", &format!("{header}peers = [\"unix\"]\n"));
    with("peer-over-unix", &format!("listen = \"unix:c.sock\"\n{header}peers = [\"127.0.0.1\"]\n"));
    with("unix-peer", &format!("listen = \"unix:c.sock\"\n{header}peers = [\"127.0.0.1\", \"unix\"]\n"));
}

#[test]
fn settings_of_another_source() {
    with("none-and-peers", "[principal]\nfrom = \"none\"\npeers = [\"::1\"]\nrequire = { role = \"a\" }\n");
    with(
        "mixed",
        "[principal]\nfrom = \"forward-auth\"\nurl = \"http://127.0.0.1:9000/who\"\nanswer_header = \"x-user\"\n\
         header = \"x-user\"\njwks = \"file:keys.json\"\nkeys = []\ntable = \"x\"\n",
    );
}

const KEY: &str = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";

#[test]
fn api_keys() {
    with(
        "api-keys",
        &format!(
            r#"
[principal]
from = "api-keys"
header = "X-Api-Key"
require = {{ mode = ["live", "test"] }}

[[principal.keys]]
principal = "acme"
sha256 = "{KEY}"
claims = {{ mode = "live", beta = true, level = 3 }}

[[principal.keys]]
principal = "acme \"two\""
sha256 = "{}"

[scope]
region = "eu-1"
mode = {{ claim = "mode" }}

[[operation]]
name = "refund"
match = "POST /orders/{{id}}/refunds"
require = {{ level = 3 }}
"#,
            "ab".repeat(32)
        ),
    );
    with(
        "api-keys-faults",
        &format!(
            r#"
[principal]
from = "api-keys"
header = "Cookie"

[[principal.keys]]
principal = ""
sha256 = "{KEY}"

[[principal.keys]]
principal = "acme"
sha256 = "{}"

[[principal.keys]]
principal = "acme"
sha256 = "sk_live_a_key_that_somebody_wrote_here"

[[principal.keys]]
principal = "acme"
sha256 = "+{}"
key = "sk_live_1"

[[principal.keys]]
principal = 7
claims = {{ mode = ["live"], at = 1.5 }}

[scope]
mode = {{ claim = "mode" }}
"#,
            KEY.to_uppercase(),
            "0".repeat(63),
        ),
    );
}

#[test]
fn jwt() {
    with(
        "jwt-least",
        "[principal]\nfrom = \"jwt\"\njwks = \"https://idp.example/jwks.json\"\nissuer = \"https://idp.example\"\n\
         audience = \"orders\"\n",
    );
    with(
        "jwt",
        r#"
[principal]
from = "jwt"
jwks = "file:/etc/counterfoil/keys.json"
issuer = "https://idp.example/realms/a"
audience = ["orders", "refunds"]
claim = "/tenant/id"
algorithms = ["PS256", "ES384"]
header = "X-Token"
jwks_refresh = "1m"
jwks_keep = "2d"
require = { email_verified = true, scope = ["orders:write", "admin"], "/realm_access/roles" = "writer" }

[scope]
mode = { claim = "/app/mode" }
region = "eu-1"

[[operation]]
name = "refund"
match = "POST /orders/{id}/refunds"
require = { role = "owner" }
"#,
    );
    with(
        "jwt-faults",
        r#"
[principal]
from = "jwt"
jwks = "ftp://idp.example/keys"
issuer = ""
audience = ["orders", 7]
claim = ""
algorithms = ["none", "HS256", "RS256 ", 7]
header = "Idempotency-Key"
jwks_refresh = "1h"
jwks_keep = "30m"
require = { role = [], level = 1.5, "" = "a" }

[scope]
principal = "a"
Region = "eu"
mode = { claim = "mode", default = "live" }
shop = ""
zone = 7

[[operation]]
name = "refund"
match = "POST /refunds"
require = "owner"
"#,
    );
    with(
        "jwt-user-in-url",
        "[principal]\nfrom = \"jwt\"\njwks = \"https://user:secret@idp.example/\"\nissuer = \"i\"\naudience = \"a\"\n\
         algorithms = []\n",
    );
}

#[test]
fn forward_auth() {
    with(
        "forward-auth",
        r#"
[principal]
from = "forward-auth"
url = "https://auth.internal/whoami?for=orders"
answer_header = "X-User-Id"
answer_claims = ["X-Mode", "x-role"]
send = ["Authorization", "X-Session"]
timeout = "500ms"
require = { x-role = "writer" }

[scope]
mode = { claim = "x-mode" }
"#,
    );
    with(
        "forward-auth-faults",
        r##"
[principal]
from = "forward-auth"
url = "http://127.0.0.1:9000/who#me"
answer_header = "x user"
answer_claims = ["x-mode", "x role"]
send = ["X-Forwarded-For", "content-length", "idempotency-key", "authorization"]
timeout = "1m"
require = { role = "writer" }

[scope]
mode = { claim = "X-Mode" }
"##,
    );
    with(
        "forward-auth-claims",
        "[principal]\nfrom = \"forward-auth\"\nurl = \"http://127.0.0.1:9000/who\"\nanswer_header = \"x-user\"\n\
         answer_claims = [\"x-mode\"]\nrequire = { role = \"writer\" }\n[scope]\nmode = { claim = \"X-Mode\" }\n",
    );
}

#[test]
fn scope_of_one_tenant() {
    with("none-in-a-region", "[principal]\nfrom = \"none\"\n[scope]\nregion = \"eu-1\"\n");
    with("none-with-a-claim", "[principal]\nfrom = \"none\"\n[scope]\nregion = { claim = \"region\" }\n");
}
