//! No store is called before the principal is known, whatever names it: a counting store under a guard of each source.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use counterfoil_core::{Holder, Identity, Now, Timestamp};
use counterfoil_middleware::Body;
use counterfoil_store::seam::{About, Answer, Listed, Note, Page, Query, Seen, Swap, Swapped, Swept};
use counterfoil_store::{Gate, MemoryStore, RecordStore, StoreError};
use http::{Request, Response};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::config::{Config, Flags};
use crate::principal::Callers;

/// A store in memory that counts every call.
struct Counting {
    inner: MemoryStore,
    calls: AtomicUsize,
}

impl Counting {
    fn inner(&self) -> &MemoryStore {
        self.calls.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl RecordStore for Counting {
    fn now(&self) -> Now {
        self.inner().now()
    }

    fn holder(&self) -> Option<Holder> {
        self.inner().holder()
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        self.inner().read(identity)
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        self.inner().swap(swap)
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        self.inner().list(query)
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        self.inner().find(prefix, limit)
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        self.inner().sweep(rows_max)
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        self.inner().history(identity)
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        self.inner().note(note)
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        self.inner().set_quarantine(before)
    }

    fn about(&self) -> Answer<'_, About> {
        self.inner().about()
    }

    fn health(&self) -> Result<(), StoreError> {
        self.inner().health()
    }
}

/// The statuses of these requests under `principal`, one after the other, each with the calls that the store saw.
async fn asked(principal: &str, requests: &[&[(&str, &str)]]) -> Vec<(u16, bool)> {
    let file = format!(
        "upstream = \"http://127.0.0.1:9\"\n[[operation]]\nname = \"order\"\nmatch = \"POST /orders\"\n\
         require = {{ }}\n[principal]\n{principal}"
    );
    let config = Config::read(Some(&file), &|_| None, &Flags::default()).unwrap();
    let store = Arc::new(Counting { inner: MemoryStore::new(), calls: AtomicUsize::new(0) });
    let callers = Callers::new(&config).unwrap();
    let layer = super::layer(Gate::new(store.clone()).unwrap(), &config, callers.principal).unwrap();
    let service = service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::from("done"))));
    let guarded = layer.layer(service);
    let mut statuses = Vec::new();
    for lines in requests {
        let mut request = Request::post("/orders").header("idempotency-key", "k");
        for (name, value) in *lines {
            request = request.header(*name, *value);
        }
        let before = store.calls();
        let answer = guarded.clone().oneshot(request.body(Body::from("{}")).unwrap()).await.unwrap();
        statuses.push((answer.status().as_u16(), store.calls() > before));
    }
    statuses
}

/// SHA-256 of `right`, as `printf %s right | sha256sum` prints it.
const RIGHT: &str = "27042f4e6eca7d0b2a7ee4026df2ecfa51d3339e6d122aa099118ecd8563bad9";

#[tokio::test]
async fn no_store_call_before_the_principal() {
    let (none, wrong) = ([], [("authorization", "Bearer wrong")]);
    let right = [("authorization", "Bearer right")];
    let keys = format!("from = \"api-keys\"\n[[principal.keys]]\nprincipal = \"alice\"\nsha256 = \"{RIGHT}\"\n");
    let found = asked(&keys, &[&none, &wrong, &right, &none, &wrong, &right]).await;
    let (no, yes) = ((401, false), (200, true));
    assert_eq!(found, [no, no, yes, no, no, yes], "api-keys");

    let claimed = format!("{keys}claims = {{ mode = \"live\" }}\n[scope]\nmode = {{ claim = \"mode\" }}\n");
    assert_eq!(asked(&claimed, &[&right]).await, [yes], "with the claim");
    let other = format!("[[principal.keys]]\nprincipal = \"bob\"\nsha256 = \"{}\"\n", "0".repeat(64));
    let lacking = format!("{keys}{other}claims = {{ mode = \"live\" }}\n[scope]\nmode = {{ claim = \"mode\" }}\n");
    assert_eq!(asked(&lacking, &[&right]).await, [(403, false)], "without a part of the scope");
    let required = keys.replace("\"api-keys\"\n", "\"api-keys\"\nrequire = { role = \"writer\" }\n");
    let required = format!("{required}{other}claims = {{ role = \"writer\" }}\n");
    assert_eq!(asked(&required, &[&right, &wrong]).await, [(403, false), no], "without a required claim");

    let peers = "from = \"header\"\nheader = \"x-user\"\npeers = [\"127.0.0.1\"]\n";
    assert_eq!(asked(peers, &[&none, &[("x-user", "alice")]]).await, [no, no], "header, and no peer");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let jwt = format!("from = \"jwt\"\njwks = \"http://{nobody}/\"\nissuer = \"i\"\naudience = \"a\"\n");
    // A token of nobody's: its header says EdDSA, and no key can be had.
    let token = [("authorization", "Bearer eyJhbGciOiJFZERTQSJ9.e30.AA")];
    assert_eq!(asked(&jwt, &[&none, &wrong, &token]).await, [no, no, (503, false)], "jwt");
    let application = format!("from = \"forward-auth\"\nurl = \"http://{nobody}/\"\nanswer_header = \"x-user\"\n");
    assert_eq!(asked(&application, &[&none, &right]).await, [(503, false), (503, false)], "forward-auth");
    assert_eq!(asked("from = \"none\"\n", &[&none]).await, [yes], "none");
}
