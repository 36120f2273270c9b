//! Callers who lose their right while they wait for the end of another's run: from every source, over TCP. What each
//! outcome becomes then is tested in the middleware.

use std::iter;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use counterfoil_server::Store;
use counterfoil_store::MemoryStore;
use counterfoil_store::faulty::{Fault, Faulty, Hold, Method};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::caller::{Answer, ask};
use crate::issuer::{Issuer, set};
use crate::principals::{ALICE, Application, CREATED, claims, forward_auth, found, key_of};
use crate::running::{Running, config};
use crate::upstream::Upstream;

const WAIT: &str = "[defaults]\nduplicates = \"wait 60s\"\n";

/// A first run whose end waits to be stored, and a second caller that has waited and is about to look again.
struct Pair {
    running: Running,
    upstream: Upstream,
    first: JoinHandle<Answer>,
    second: JoinHandle<Answer>,
    end: Hold,
    look: Hold,
}

impl Pair {
    async fn start(settings: &str, first: &str, second: &str) -> Self {
        let upstream = Upstream::start(CREATED).await;
        let store = Arc::new(Faulty::new(MemoryStore::new()));
        let (end, look) = (Hold::new(), Hold::new());
        store.script(Method::Swap, [Fault::Pass, Fault::HoldBefore(end.clone())]);
        // The first looks once; the second before it takes a place, in it, and after the first pause.
        store.script(Method::Read, iter::repeat_n(Fault::Pass, 3).chain([Fault::HoldBefore(look.clone())]));
        let running = Running::on(Store::of(store), config(upstream.address, &format!("{WAIT}{settings}"))).await;
        let order = |credential: &str| {
            let (place, credential) = (running.proxy, credential.to_owned());
            tokio::spawn(async move { ask(place, "POST /orders", &["idempotency-key: k", &credential], "{}").await })
        };
        let first = order(first);
        end.arrived().await;
        let second = order(second);
        look.arrived().await;
        Self { running, upstream, first, second, end, look }
    }

    /// The first ends, the second looks, and is answered.
    async fn second(self) -> (u16, String) {
        self.end.release();
        assert_eq!(self.first.await.unwrap().status(), 201);
        self.look.release();
        let answer = self.second.await.unwrap();
        assert_eq!(self.upstream.seen().len(), 1);
        (answer.status(), answer.problem())
    }
}

#[tokio::test]
async fn an_application_that_says_no_after_the_wait() {
    let table = [
        (ALICE, (201, "")),
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", (403, "forbidden")),
        ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", (401, "unauthenticated")),
        ("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", (503, "principal-unavailable")),
        ("HTTP/1.1 204 No Content\r\nx-user: bob\r\n\r\n", (503, "principal-unavailable")),
    ];
    for (says, (status, problem)) in table {
        let application = Application::start(ALICE).await;
        let pair = Pair::start(&forward_auth(application.address, ""), "cookie: s=1", "cookie: s=2").await;
        assert_eq!(application.asked().len(), 2);
        application.says(says);
        assert_eq!(pair.second().await, (status, problem.to_owned()), "{says}");
        assert_eq!(application.asked().len(), 3, "a caller that waited costs one question more");
        assert!(application.asked()[2].contains("cookie: s=2\r\n"));
    }
}

#[tokio::test]
async fn a_key_that_is_taken_back_during_the_wait() {
    let table = |keys: &[String]| format!("[principal]\nfrom = \"api-keys\"\n{}", keys.concat());
    let (one, two) = (key_of("alice", "one"), key_of("alice", "two"));
    for (left, expected) in [(&one, (401, "unauthenticated")), (&two, (201, ""))] {
        let both = table(&[one.clone(), two.clone()]);
        let pair = Pair::start(&both, "authorization: Bearer one", "authorization: Bearer two").await;
        let config = config(pair.upstream.address, &format!("{WAIT}{}", table(&[left.clone()])));
        assert!(pair.running.reload.reload(Ok::<_, String>(config)).await);
        assert_eq!(pair.second().await, (expected.0, expected.1.to_owned()));
    }
}

#[tokio::test]
async fn a_token_that_expires_during_the_wait() {
    let issuer = Issuer::new("one");
    let idp = Application::start(&found(&set(&[issuer.jwk()]))).await;
    let settings = format!(
        "[principal]\nfrom = \"jwt\"\njwks = \"http://{}/keys\"\nissuer = \"https://idp.example\"\naudience = \"orders\"\n",
        idp.address
    );
    let bearer = |claims| format!("authorization: Bearer {}", issuer.token(&claims));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    // It holds for so long after its end that clocks may differ, and two seconds or three.
    let short = bearer(claims("alice", &[("exp", json!(now - 27))]));
    let pair = Pair::start(&settings, &bearer(claims("alice", &[])), &short).await;
    let mut timer = tokio::time::interval(Duration::from_millis(50));
    let malformed = async || ask(pair.running.proxy, "POST /orders", &["idempotency-key: \"", &short], "{}").await;
    while malformed().await.status() == 400 {
        timer.tick().await;
    }
    assert_eq!(pair.second().await, (401, "unauthenticated".to_owned()));
}
