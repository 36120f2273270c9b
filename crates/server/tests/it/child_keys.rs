//! `effect = "keyed-upstream"` through the proxy, before an upstream that has an effect once for each key and counts keys:
//! what it is sent after lost replies, doubts, restarts and expiry, and what callers are told meanwhile.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil_core::{
    Asked, Claim, Effect, Identity, Key, Operation, Policy, Rule, Scope, Timestamp, child_key, record::Standing,
};
use counterfoil_server::Store;
use counterfoil_store::clock::TestClock;
use counterfoil_store::seam::Query;
use counterfoil_store::{Begun, Gate, MemoryStore, RecordStore as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::caller::{Answer, order};
use crate::running::{Running, config};

/// A run begins up to 24 h - 5 min - 1 min after the first.
const OPERATION: &str = "
[[operation]]
name = \"create-order\"
match = \"POST /orders\"
effect = \"keyed-upstream\"
window = \"24h\"
in_progress = [409, \"urn:upstream:busy\"]
";
const SENDS_FOR: Duration = Duration::from_mins(24 * 60 - 6);
const LEASE_OVER: Duration = Duration::from_secs(31);

/// What the upstream does with a request, once it has had the effect where it has.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// The result: 201.
    Result,
    /// It acts, and closes without a word.
    Lost,
    /// It does nothing, and answers this.
    Refusal(u16),
    /// It is still at work, and says so by this problem.
    Problem(u16, &'static str),
}

#[derive(Default)]
struct Seen {
    /// Header lines of each request that carry a key, sorted.
    keys: Vec<Vec<String>>,
    /// Keys by which the effect happened, in order.
    effects: Vec<String>,
}

struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Upstream {
    /// Does what the script says, and gives results once it is at its end.
    async fn start(script: &[Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (noted, script) = (seen.clone(), script.to_vec());
        tokio::spawn(async move {
            let mut script = script.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, script.next().unwrap_or(Reply::Result), &noted).await;
            }
        });
        Self { address, seen }
    }

    fn keys(&self) -> Vec<Vec<String>> {
        self.seen.lock().unwrap().keys.clone()
    }

    fn effects(&self) -> Vec<String> {
        self.seen.lock().unwrap().effects.clone()
    }
}

async fn serve(mut stream: TcpStream, reply: Reply, noted: &Mutex<Seen>) {
    let mut text = String::new();
    // Every request has the body `{}`.
    while !text.ends_with("{}") {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(read) => text.push_str(&String::from_utf8_lossy(&piece[..read])),
        }
    }
    let mut keys: Vec<String> =
        text.lines().filter(|line| line.to_ascii_lowercase().contains("key")).map(str::to_owned).collect();
    keys.sort();
    let key = keys.first().cloned().unwrap_or_default();
    {
        let mut seen = noted.lock().unwrap();
        seen.keys.push(keys);
        if matches!(reply, Reply::Result | Reply::Lost) && !seen.effects.contains(&key) {
            seen.effects.push(key);
        }
    }
    let (status, media_type, body) = match reply {
        Reply::Lost => return,
        Reply::Result => (201, "text/plain", "made".to_owned()),
        Reply::Refusal(status) => (status, "text/plain", "no".to_owned()),
        Reply::Problem(status, kind) => (status, "application/problem+json", format!("{{\"type\":\"{kind}\"}}")),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} So\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close");
    // A caller that has gone is seen in what it was answered.
    let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
}

struct World {
    clock: TestClock,
    store: Arc<MemoryStore>,
    upstream: Upstream,
    running: Running,
}

impl World {
    async fn start(script: &[Reply]) -> Self {
        Self::with(script, OPERATION).await
    }

    async fn with(script: &[Reply], settings: &str) -> Self {
        let clock = TestClock::new(Timestamp::from_millis(1_700_000_000_000));
        let store = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
        let upstream = Upstream::start(script).await;
        let running = Running::on(Store::of(store.clone()), config(upstream.address, settings)).await;
        Self { clock, store, upstream, running }
    }

    /// Another process on the same store.
    async fn restart(&mut self, settings: &str) {
        let config = config(self.upstream.address, settings);
        self.running = Running::on(Store::of(self.store.clone()), config).await;
    }

    async fn order(&self) -> String {
        told(&order(self.running.proxy, "order-1234", "{}").await)
    }

    async fn standing(&self) -> String {
        let page = self.store.list(Query { limit: 2, ..Query::default() }).await.unwrap();
        assert_eq!(page.rows.len(), 1, "one action");
        match page.rows[0].record.as_ref().unwrap().standing(page.now) {
            Standing::Unknown { why, .. } => format!("unknown ({})", why.as_str()),
            standing => standing.as_str().to_owned(),
        }
    }
}

fn told(answer: &Answer) -> String {
    let replayed = answer.header("idempotent-replayed") == Some("true");
    let said = if replayed { "replayed".to_owned() } else { answer.problem() };
    format!("{} {said}", answer.status()).trim_end().to_owned()
}

fn identity() -> Identity {
    Identity::new(Scope::single_tenant(), Operation::new("create-order").unwrap(), Key::new("order-1234").unwrap())
}

/// The one line by which the upstream is told the key of a generation.
fn line(generation: u32) -> String {
    format!("idempotency-key: {}", child_key(&identity(), "upstream", generation).as_str())
}

#[tokio::test]
async fn a_lost_reply_is_asked_for_again_with_the_same_child_key() {
    let world = World::start(&[Reply::Lost, Reply::Lost]).await;
    assert_eq!(world.order().await, "502 outcome-unknown");
    assert_eq!(world.standing().await, "lapsed", "the next attempt goes on");
    assert_eq!(world.order().await, "502 outcome-unknown");
    assert_eq!(world.order().await, "201");
    assert_eq!(world.order().await, "201 replayed");
    assert_eq!(world.upstream.keys(), vec![vec![line(0)]; 3], "one key, and never the caller's own");
    assert_eq!(world.upstream.effects(), [line(0)]);
}

#[tokio::test]
async fn still_running_is_doubt_and_never_kept() {
    let busy =
        [Reply::Refusal(409), Reply::Problem(422, "urn:upstream:busy"), Reply::Problem(422, "urn:upstream:other")];
    let world = World::start(&busy).await;
    assert_eq!(world.order().await, "502 outcome-unknown");
    assert_eq!(world.order().await, "502 outcome-unknown");
    assert_eq!(world.order().await, "422 other", "another problem is an answer");
    assert_eq!(world.standing().await, "lapsed", "behind a doubt nothing is released");
    assert_eq!(world.order().await, "201");
    assert_eq!(world.upstream.keys(), vec![vec![line(0)]; 4]);
}

#[tokio::test]
async fn a_closed_window_is_unknown_and_nothing_is_sent() {
    let world = World::start(&[Reply::Lost]).await;
    assert_eq!(world.order().await, "502 outcome-unknown");
    world.clock.advance(SENDS_FOR);
    assert_eq!(world.order().await, "409 outcome-unknown");
    assert_eq!(world.standing().await, "unknown (window-closed)");
    assert_eq!(world.upstream.keys().len(), 1, "nothing was sent again");
}

#[tokio::test]
async fn one_millisecond_before_its_window_closes_it_is_sent_again() {
    let world = World::start(&[Reply::Lost]).await;
    assert_eq!(world.order().await, "502 outcome-unknown");
    world.clock.advance(SENDS_FOR - Duration::from_millis(1));
    assert_eq!(world.order().await, "201");
    assert_eq!(world.upstream.effects(), [line(0)]);
}

#[tokio::test]
async fn what_was_certainly_not_processed_has_a_window_of_its_own() {
    let world = World::start(&[Reply::Refusal(400)]).await;
    assert_eq!(world.order().await, "400");
    assert_eq!(world.standing().await, "absent");
    world.clock.advance(Duration::from_hours(24 * 365));
    assert_eq!(world.order().await, "201");
    assert_eq!(world.upstream.keys(), vec![vec![line(0)]; 2], "a release keeps the generation");
}

/// A process that died with the run under way left its lease, and no word of what was sent.
#[tokio::test]
async fn a_run_that_died_with_its_process_is_taken_over_with_the_same_child_key() {
    let world = World::start(&[]).await;
    let gate = Gate::new(world.store.clone()).unwrap();
    let path = "/orders".into();
    let headers = [(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"))];
    let headers = headers.into_iter().collect();
    let asked = Asked { method: Some(http::Method::POST), path, headers, body: "{}".into(), ..Asked::default() };
    let mut claim = Claim::new(identity(), asked, &Rule::auto()).unwrap();
    let window = Duration::from_hours(24);
    let policy = Policy { effect: Effect::KeyedUpstream, window, ..Policy::default() };
    let Begun::Execute(mut permit) = gate.begin(&mut claim, &policy).await.unwrap() else { panic!("not granted") };
    let sent = gate.wire(&mut permit).child_key("upstream");
    drop(permit);
    assert_eq!(world.order().await, "409 in-progress");
    world.clock.advance(LEASE_OVER);
    assert_eq!(world.order().await, "201");
    assert_eq!(world.upstream.keys(), [[line(0)]]);
    assert_eq!(line(0), format!("idempotency-key: {}", sent.as_str()));
}

#[tokio::test]
async fn an_expired_receipt_s_key_names_a_new_action_with_another_child_key() {
    let mut world = World::start(&[]).await;
    for generation in 0..3 {
        assert_eq!(world.order().await, "201", "{generation}");
        assert_eq!(world.order().await, "201 replayed", "{generation}");
        world.clock.advance(Duration::from_hours(24));
        if generation == 1 {
            world.store.sweep(100).await.unwrap();
            world.running.stop();
            world.restart(OPERATION).await;
        }
    }
    assert_eq!(world.upstream.effects(), [line(0), line(1), line(2)]);
}

#[tokio::test]
async fn the_child_key_is_spelled_as_the_upstream_wants_it_and_never_beside_the_caller_s() {
    let settings = format!("forward_key = true\n{OPERATION}child_key = \"quoted X-Request-Key\"\n");
    let world = World::with(&[], &settings).await;
    assert_eq!(world.order().await, "201");
    let expected = format!("x-request-key: \"{}\"", child_key(&identity(), "upstream", 0).as_str());
    assert_eq!(world.upstream.keys(), [[expected]]);
}

#[tokio::test]
async fn an_operation_does_not_leave_its_child_keys_behind() {
    let mut world = World::start(&[Reply::Lost]).await;
    assert_eq!(world.order().await, "502 outcome-unknown");
    world.running.stop();
    let other = "[[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\n";
    world.restart(other).await;
    assert_eq!(world.order().await, "503 store-unavailable");
    assert_eq!(told(&order(world.running.proxy, "another", "{}").await), "201", "other keys are not in its way");
    assert_eq!(world.upstream.keys().len(), 2);
    world.running.stop();
    world.restart(OPERATION).await;
    assert_eq!(told(&order(world.running.proxy, "order-1234", "{}").await), "201");
    assert_eq!(world.upstream.effects()[0], line(0));
}
