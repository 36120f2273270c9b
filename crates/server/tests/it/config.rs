//! Whole configurations: each file is read, and its complaints or its effective form compared with a golden file.

use counterfoil_server::config::{Config, Flags};

use crate::golden;

/// The smallest file that is enough.
const LEAST: &str = "upstream = \"http://127.0.0.1:9000\"\nprincipal = { from = \"none\" }\n";

/// How callers are let in and requests carried, all of it.
const CARRIED: &str = r#"
[tls]
certificate = "/etc/counterfoil/api.pem"
key = "/etc/counterfoil/api.key"

[forward]
http = "2"
host = "caller"
roots = "/etc/counterfoil/ca.pem"
trusted = ["10.0.0.0/8", "::1", "unix"]
"#;

/// The same with faults.
const CARRIED_FAULTS: &str = r#"
[tls]
certificate = 7
chain = "a.pem"

[forward]
http = "3"
host = "api.example"
roots = ""
trusted = ["unix:", "localhost"]
retries = 3
"#;

#[track_caller]
pub(crate) fn check(name: &str, file: Option<&str>, environment: &[(&str, &str)], flags: &Flags) {
    let variable = |name: &str| {
        let found = environment.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let found = match Config::read(file, &variable, flags) {
        Ok(config) => config.print(),
        Err(complaints) => format!("{complaints}\n"),
    };
    golden::check(&format!("config/{name}.txt"), &found);
}

pub(crate) fn file(name: &str, text: &str) {
    check(name, Some(text), &[], &Flags::default());
}

#[test]
fn blueprint() {
    file(
        "blueprint",
        r#"
listen = "127.0.0.1:8787"
admin = "127.0.0.1:8788"
upstream = "http://127.0.0.1:9000"
store = "sqlite:counterfoil.db"       # or postgres://, mysql://, redis://, dynamodb://

[principal]
from = "none"

[defaults]
retention = "24h"
duplicates = "refuse"                 # or "wait 5s"
effect = "other"                      # or "coupled", "keyed-upstream"

[[operation]]
name = "create-order"
match = "POST /orders"
key = "required"                      # or "optional"
fingerprint = { body = "json", ignore = ["/sent_at"] }
"#,
    );
}

#[test]
fn least() {
    file("least", LEAST);
}

#[test]
fn nothing() {
    check("nothing", None, &[], &Flags::default());
}

#[test]
fn order_of_places() {
    let flags = Flags { listen: Some("127.0.0.1:1".to_owned()), ..Flags::default() };
    let environment = [
        ("COUNTERFOIL_LISTEN", "127.0.0.1:2"),
        ("COUNTERFOIL_ADMIN", "127.0.0.1:3"),
        ("COUNTERFOIL_STORE", "memory:"),
        ("COUNTERFOIL_PRINCIPAL", "header:X-User@10.0.0.0/8,::1"),
        ("COUNTERFOIL_ADMIN_TOKEN", "0123456789abcdef0123456789abcdef"),
    ];
    let text = format!("listen = \"127.0.0.1:4\"\nadmin = \"127.0.0.1:5\"\nstore = \"sqlite:x.db\"\n{LEAST}");
    check("order-of-places", Some(&text), &environment, &flags);
}

#[test]
fn pages_and_ages_that_make_no_sense() {
    file(
        "pages-and-ages",
        r#"
upstream = "http://127.0.0.1:9000"
repeatability = "yes"

[principal]
from = "none"

[cors]
origins = ["*", "https://shop.example/", "shop.example", "https://Shop.example", "https://me@shop.example", "null", 1]
methods = ["POST"]

[defaults]
retention = "1h"
max_age = "2h"

[[operation]]
name = "create-order"
match = "POST /orders"
max_age = "0s"

[[operation]]
name = "refund"
match = "POST /refunds"
retention = "30m"
max_age = "any"

[[operation]]
name = "cancel"
match = "POST /cancel"
retention = "1d"
max_age = "25h"
"#,
    );
}

#[test]
fn everything_set() {
    file(
        "everything-set",
        r#"
listen = "[::1]:8787"
admin = "127.0.0.1:9999"
upstream = "http://orders.internal:8080/"
store = "sqlite:/var/lib/counterfoil/receipts.db"
forward_key = true
publish_contract = false
repeatability = true
replay_headers = ["x-order-id", "X-Cost"]

[cors]
origins = ["https://shop.example", "http://localhost:5173"]
credentials = true

[principal]
from = "header"
header = "X-User-Id"
peers = ["127.0.0.1", "10.1.0.0/16", "fd00::/8"]

[limits]
request_body_max = "64KiB"
kept_answer_max = "2MiB"
max_running = 100
waiting_for_one = 8
waiting_in_all = 80
connections = 500
header = "5s"
connect = "2s"
drain = "50s"
sweep_rows = 100
sweep_every = "1m"
writer_queue = 1000
writer_batch = 32

[defaults]
retention = "7d"
max_age = "1d"
expired = "refuse 30d"
duplicates = "wait 5s"
effect = "other"
lease = "20s"
handler = "90s"
not_processed = [503]
statuses = { mismatch = 409 }
fingerprint = { body = "auto", headers = ["x-mode"] }

[[operation]]
name = "create-order"
match = "POST /orders"
key = "required"
retention = "24h"
expired = "new-action"
duplicates = "refuse"
fingerprint = { body = "json", choose = ["/item", "/100%,;"] }
not_processed = [502, 503]
statuses = { in-progress = 425, outcome-unknown = 500 }

[[operation]]
name = "refund"
match = "POST /orders/{id}/refunds"
"#,
    );
}

#[test]
fn every_kind_of_fault_at_once() {
    file(
        "faults",
        r#"
listen = "localhost"
admin = "0.0.0.0:8788"
upstream = "http://127.0.0.1:9000/api"
store = "oracle:xe"
forward_key = "yes"
publish_contract = "yes"
color = "red"
replay_headers = ["Set-Cookie", "x order"]

[principal]
from = "header"
header = "Authorization"
peers = ["127.0.0.1/33", "10.0.0.1/8", 7]

[limits]
request_body_max = "1TB"
kept_answer_max = "0B"
max_running = 0
drain = "2d"
threads = 4

[defaults]
retention = "5s"
expired = "refuse"
duplicates = "wait 0s"
effect = "sometimes"
lease = 30
handler = "1 minute"
not_processed = [200, "503"]
statuses = { mismatch = 200, conflict = 409 }
fingerprint = { body = "xml", ignore = ["sent_at"], depth = 3 }

[[operation]]
match = "GET /orders"
key = "maybe"

[[operation]]
name = "Create Order"
match = "POST orders"

[[operation]]
name = "refund"
match = "POST /orders/{id}/refunds"
fingerprint = { body = "bytes", ignore = ["/a"] }

[[operation]]
name = "refund"
match = "POST /orders/{order}/refunds"
retention = "10s"

[[operation]]
name = "dots"
match = "POST /a/../b"
fingerprint = "json"

[[operation]]
name = "rest"
match = "POST /files/{*rest}/x"
request_body_max = "1MiB"

[[operation]]
name = "brace"
match = "POST /files/{id"
"#,
    );
}

#[test]
fn coupled_elsewhere() {
    file(
        "coupled-elsewhere",
        r#"
upstream = "http://api.example"
store = "sqlite:orders.db"

[principal]
from = "none"

[[operation]]
name = "create-order"
match = "POST /orders"
effect = "coupled"
hold = "always"

[[operation]]
name = "refund"
match = "POST /refunds"
hold = "always"

[[operation]]
name = "cancel"
match = "POST /cancellations"
hold = "never"
"#,
    );
}

#[test]
fn not_built_yet() {
    file(
        "not-built",
        r#"
upstream = "http://api.example"
store = "redis://localhost/orders"

[seal]
key = "env:KEY"

[principal]
from = "none"

[defaults]
effect = "coupled"
"#,
    );
}

#[test]
fn effects_that_an_upstream_has_by_key() {
    file(
        "keyed-upstream",
        r#"
upstream = "http://api.example"

[principal]
from = "none"

[[operation]]
name = "pay"
match = "POST /payments"
effect = "keyed-upstream"
window = "24h"
in_progress = [409, "https://api.example/problems/busy"]
child_key = "quoted X-Request-Key"
"#,
    );
}

#[test]
fn faults_of_effects_that_an_upstream_has_by_key() {
    file(
        "keyed-upstream-faults",
        r#"
upstream = "http://api.example"

[principal]
from = "none"

[defaults]
window = "24h"

[[operation]]
name = "says-nothing"
match = "POST /a"
effect = "keyed-upstream"
window = "none"
hold = "always"

[[operation]]
name = "too-short"
match = "POST /b"
effect = "keyed-upstream"
window = "6m"
in_progress = [409]

[[operation]]
name = "other"
match = "POST /c"
in_progress = [409, 100, "two words", true]
child_key = "quoted Host"

[[operation]]
name = "spelling"
match = "POST /d"
effect = "keyed-upstream"
in_progress = []
window = "soon"
child_key = "Idempotency-Key"
"#,
    );
}

#[test]
fn faults_outside_the_file() {
    let flags = Flags {
        listen: Some("8787".to_owned()),
        admin: Some("10.0.0.1:8788".to_owned()),
        upstream: Some("127.0.0.1:9000".to_owned()),
        store: Some("counterfoil.db".to_owned()),
        principal: Some("api-keys".to_owned()),
    };
    let environment = [("COUNTERFOIL_ADMIN_TOKEN", "short"), ("COUNTERFOIL_PRINCIPAL", "header:x-user")];
    check("faults-outside", None, &environment, &flags);
}

#[test]
fn wrong_shapes() {
    file(
        "wrong-shapes",
        "upstream = 7\nprincipal = \"none\"\nlimits = []\ndefaults = true\noperation = { name = \"x\" }\n",
    );
}

#[test]
fn no_toml() {
    file("no-toml", "listen = \"127.0.0.1:1\"\nupstream = http://x\n");
    file("twice", &format!("{LEAST}upstream = \"http://127.0.0.1:9001\"\n"));
}

#[test]
fn carried() {
    let limits = "[limits]\nhttp2_streams = 50\nheader_bytes = \"16KiB\"\nheader_lines = 50\nbody = \"20s\"\nupstream_connections = 200\nanswer = \"20s\"\nidle = \"1h\"\n";
    let https = LEAST.replace("http://127.0.0.1:9000", "https://orders.internal:8443/");
    file("carried", &format!("{https}{CARRIED}{limits}"));
    file(
        "carried-faults",
        &format!("{LEAST}{CARRIED_FAULTS}[limits]\nheader_bytes = \"4KiB\"\nheader_lines = 5\nidle = \"0s\"\n"),
    );
}

#[test]
fn unix_sockets() {
    let text = "listen = \"unix:/run/counterfoil.sock\"\nadmin = \"unix:admin.sock\"\nupstream = \"unix:/run/orders.sock\"\nprincipal = { from = \"none\" }\n";
    file("unix", text);
    file("unix-itself", &text.replace("orders", "counterfoil").replace("admin.sock", "/run/counterfoil.sock"));
    file("roots-without-tls", &format!("{LEAST}forward = {{ roots = \"ca.pem\" }}\n"));
}

#[test]
fn proxy_of_itself() {
    file(
        "itself",
        "listen = \"127.0.0.1:9000\"\nadmin = \"127.0.0.1:9000\"\nupstream = \"http://localhost:9000\"\nprincipal = { from = \"none\" }\n",
    );
}

/// What is printed is a file that says the same.
#[test]
fn printed_form_reads_back() {
    for name in ["blueprint", "least", "everything-set", "principal-jwt", "principal-forward-auth", "carried", "unix"] {
        let path = format!("{}/tests/it/config/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let printed = std::fs::read_to_string(path).unwrap();
        let again = Config::read(Some(&printed), &|_| None, &Flags::default()).unwrap().print();
        assert_eq!(plain(&again), plain(&printed), "{name}");
    }
}

/// The lines without where each value came from.
fn plain(printed: &str) -> Vec<&str> {
    printed.lines().map(|line| line.rsplit_once(" # ").map_or(line, |(value, _)| value)).collect()
}
