//! Who is shown what, over TCP: callers by key, by token and by forward-auth, and what becomes of one who is revoked.
//! That nothing is seen without a principal is tested in `walk`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::caller::{Answer, ask};
use crate::issuer::{Issuer, set};
use crate::running::{Running, config_at};
use crate::upstream::{Play, Upstream};

pub(crate) const CREATED: Play = Play::Send("HTTP/1.1 201 Created\r\ncontent-length: 8\r\n\r\n{\"id\":1}");

/// A server that answers every request with what it was last told, and keeps what it was asked.
pub(crate) struct Application {
    pub(crate) address: SocketAddr,
    answer: Arc<Mutex<String>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Application {
    pub(crate) async fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(answer.to_owned()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (told, kept) = (answer.clone(), asked.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (told, kept) = (told.clone(), kept.clone());
                tokio::spawn(async move {
                    let mut text = String::new();
                    let mut buffer = [0; 4096];
                    while !text.ends_with("\r\n\r\n") {
                        match stream.read(&mut buffer).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => text.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
                        }
                    }
                    kept.lock().unwrap().push(text);
                    let answer = told.lock().unwrap().clone();
                    drop(stream.write_all(answer.as_bytes()).await);
                    if answer.is_empty() {
                        // It says nothing until the other side gives up.
                        drop(stream.read(&mut buffer).await);
                    }
                });
            }
        });
        Self { address, answer, asked }
    }

    pub(crate) fn says(&self, answer: &str) {
        answer.clone_into(&mut self.answer.lock().unwrap());
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Status, problem and replay mark of one guarded request.
async fn order(running: &Running, headers: &[&str]) -> (u16, String, bool) {
    let answer = ask(running.proxy, "POST /orders", &[headers, &["idempotency-key: k"]].concat(), "{}").await;
    (answer.status(), answer.problem(), answer.header("idempotent-replayed") == Some("true"))
}

fn told(status: u16, problem: &str, replayed: bool) -> (u16, String, bool) {
    (status, problem.to_owned(), replayed)
}

/// The digests are what `printf %s KEY | sha256sum` prints.
pub(crate) fn key_of(principal: &str, key: &str) -> String {
    use std::fmt::Write as _;
    let digest = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
    let digits = digest.as_ref().iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    });
    format!("[[principal.keys]]\nprincipal = \"{principal}\"\nsha256 = \"{digits}\"\n")
}

#[tokio::test]
async fn by_api_key() {
    let upstream = Upstream::start(CREATED).await;
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("receipts.db").display());
    let (old, new, bob) = (key_of("alice", "old-key"), key_of("alice", "new-key"), key_of("bob", "bob-key"));
    let source = "[principal]\nfrom = \"api-keys\"\n";
    let start = async |keys: &[&str]| {
        Running::with(config_at(upstream.address, &store, &format!("{source}{}", keys.concat()))).await
    };

    let mut running = start(&[&old, &new, &bob]).await;
    assert_eq!(order(&running, &["authorization: Bearer old-key"]).await, told(201, "", false));
    assert_eq!(order(&running, &["authorization: Bearer old-key"]).await, told(201, "", true));
    // A rotated key is the same caller.
    assert_eq!(order(&running, &["authorization: Bearer new-key"]).await, told(201, "", true));
    assert_eq!(order(&running, &["authorization: Bearer bob-key"]).await, told(201, "", false));
    let stranger = ask(running.proxy, "POST /orders", &["idempotency-key: k", "authorization: Bearer x"], "{}").await;
    assert_eq!((stranger.status(), stranger.problem().as_str()), (401, "unauthenticated"));
    assert_eq!(stranger.header("www-authenticate"), Some("Bearer realm=\"counterfoil\", error=\"invalid_token\""));
    assert_eq!(upstream.seen().len(), 2);
    assert!(upstream.seen()[0].contains("authorization: Bearer old-key\r\n"), "the upstream judges for itself");
    running.stop();
    running.ended().await;

    // Revoked: as a fresh request is answered, and the record stays for who may see it.
    let mut running = start(&[&new]).await;
    assert_eq!(order(&running, &["authorization: Bearer old-key"]).await, told(401, "unauthenticated", false));
    assert_eq!(order(&running, &["authorization: Bearer bob-key"]).await, told(401, "unauthenticated", false));
    assert_eq!(order(&running, &["authorization: Bearer new-key"]).await, told(201, "", true));
    running.stop();
    running.ended().await;
    let running = start(&[&bob]).await;
    assert_eq!(order(&running, &["authorization: Bearer bob-key"]).await, told(201, "", true));
    assert_eq!(upstream.seen().len(), 2);
}

pub(crate) const ALICE: &str = "HTTP/1.1 204 No Content\r\nx-user: alice\r\nx-mode: live\r\n\r\n";

pub(crate) fn forward_auth(application: SocketAddr, more: &str) -> String {
    format!(
        "[principal]\nfrom = \"forward-auth\"\nurl = \"http://{application}/who\"\nanswer_header = \"x-user\"\n{more}"
    )
}

#[tokio::test]
async fn by_forward_auth() {
    let upstream = Upstream::start(CREATED).await;
    let application = Application::start(ALICE).await;
    let running = Running::start(upstream.address, &forward_auth(application.address, "timeout = \"200ms\"\n")).await;
    let mut asked = 0;
    let mut check = async |answer: &str, expected: (u16, String, bool)| {
        application.says(answer);
        // The caller's own word counts for nothing.
        let found = order(&running, &["cookie: s=1", "x-user: mallory"]).await;
        asked += 1;
        assert_eq!((found, application.asked().len()), (expected, asked), "{answer:.60}");
    };
    check(ALICE, told(201, "", false)).await;
    check(ALICE, told(201, "", true)).await;
    check(ALICE, told(201, "", true)).await;
    let denied = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Session\r\ncontent-length: 0\r\n\r\n";
    check(denied, told(401, "unauthenticated", false)).await;
    check("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", told(403, "forbidden", false)).await;
    let moved =
        format!("HTTP/1.1 302 Found\r\nlocation: http://{}/again\r\ncontent-length: 0\r\n\r\n", application.address);
    check(&moved, told(401, "unauthenticated", false)).await;
    check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", told(401, "unauthenticated", false)).await;
    check("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", told(503, "principal-unavailable", false)).await;
    check("", told(503, "principal-unavailable", false)).await;
    let huge = format!("HTTP/1.1 204 No Content\r\nx-user: alice\r\nx-huge: {}\r\n\r\n", "a".repeat(100_000));
    check(&huge, told(503, "principal-unavailable", false)).await;
    check("hello\r\n", told(503, "principal-unavailable", false)).await;
    check(&ALICE.replace("alice", "bob"), told(201, "", false)).await;
    check(ALICE, told(201, "", true)).await;
    assert_eq!(upstream.seen().len(), 2);
    let question = &application.asked()[0];
    assert!(question.starts_with("GET /who HTTP/1.1\r\n"), "{question}");
    for line in ["cookie: s=1", "x-forwarded-method: POST", "x-forwarded-uri: /orders", "x-forwarded-for: 127.0.0.1"] {
        assert!(question.contains(&format!("{line}\r\n")), "{line} in {question}");
    }
    for name in ["mallory", "idempotency-key", "content-length"] {
        assert!(!question.contains(name), "{name} in {question}");
    }
    application.says(denied);
    let answer = ask(running.proxy, "POST /orders", &["idempotency-key: k"], "{}").await;
    assert_eq!(answer.header("www-authenticate"), Some("Session"));
}

#[tokio::test]
async fn an_application_that_is_not_there() {
    let upstream = Upstream::start(CREATED).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::start(upstream.address, &forward_auth(nobody, "")).await;
    let answer = ask(running.proxy, "POST /orders", &["idempotency-key: k"], "{}").await;
    assert_eq!((answer.status(), answer.problem().as_str()), (503, "principal-unavailable"));
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert!(!answer.body.contains(&nobody.to_string()), "{}", answer.body);
    // What is not guarded is not asked about.
    assert_eq!(ask(running.proxy, "GET /orders", &[], "").await.status(), 201);
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn claims_of_the_application() {
    let upstream = Upstream::start(CREATED).await;
    let application = Application::start(ALICE).await;
    let more = "answer_claims = [\"x-mode\", \"x-role\"]\n[scope]\nmode = { claim = \"x-mode\" }\n\
                [[operation]]\nname = \"order\"\nmatch = \"POST /orders\"\n\
                [[operation]]\nname = \"refund\"\nmatch = \"POST /refunds\"\nrequire = { x-role = \"owner\" }\n";
    let running = Running::start(upstream.address, &forward_auth(application.address, more)).await;
    assert_eq!(order(&running, &[]).await, told(201, "", false));
    assert_eq!(order(&running, &[]).await, told(201, "", true));
    application.says(&ALICE.replace("live", "test"));
    assert_eq!(order(&running, &[]).await, told(201, "", false));
    application.says(&ALICE.replace("x-mode: live\r\n", ""));
    assert_eq!(order(&running, &[]).await, told(403, "forbidden", false));
    let refund = async || ask(running.proxy, "POST /refunds", &["idempotency-key: k"], "{}").await.status();
    application.says(ALICE);
    assert_eq!(refund().await, 403);
    application.says(&ALICE.replace("x-mode: live", "x-mode: live\r\nx-role: owner"));
    assert_eq!(refund().await, 201);
    assert_eq!(upstream.seen().len(), 3);
}

pub(crate) fn found(body: &[u8]) -> String {
    let body = std::str::from_utf8(body).unwrap();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn claims(subject: &str, more: &[(&str, Json)]) -> Json {
    let mut claims = json!({ "iss": "https://idp.example", "aud": "orders", "sub": subject, "exp": 4_102_444_800_i64, "role": "writer" });
    for (name, value) in more {
        claims[name] = value.clone();
    }
    claims
}

#[tokio::test]
async fn by_token() {
    let upstream = Upstream::start(CREATED).await;
    let (one, two, three) = (Issuer::new("one"), Issuer::p256("two"), Issuer::p384("three"));
    let stranger = Issuer::new("one");
    let idp = Application::start(&found(&set(&[one.jwk(), two.jwk(), three.jwk()]))).await;
    let settings = format!(
        "[principal]\nfrom = \"jwt\"\njwks = \"http://{}/keys\"\nissuer = \"https://idp.example\"\naudience = \"orders\"\n\
         require = {{ role = \"writer\" }}\n",
        idp.address
    );
    let running = Running::start(upstream.address, &settings).await;
    let as_ = async |token: String| order(&running, &[&format!("authorization: Bearer {token}")]).await;
    assert_eq!(as_(one.token(&claims("alice", &[]))).await, told(201, "", false));
    // Another token of the same caller, signed with another key, names the same action.
    assert_eq!(as_(two.token(&claims("alice", &[("jti", json!("2"))]))).await, told(201, "", true));
    assert_eq!(as_(one.token(&claims("bob", &[]))).await, told(201, "", false));
    let no = told(401, "unauthenticated", false);
    assert_eq!(as_(one.token(&claims("alice", &[("exp", json!(1))]))).await, no);
    assert_eq!(as_(one.token(&claims("alice", &[("iss", json!("https://other.example"))]))).await, no);
    assert_eq!(as_(one.token(&claims("alice", &[("aud", json!("else"))]))).await, no);
    assert_eq!(as_(three.token(&claims("alice", &[]))).await, no, "ES384 is not among the algorithms");
    assert_eq!(as_(stranger.token(&claims("alice", &[]))).await, no);
    assert_eq!(as_(one.sign(&json!({ "alg": "EdDSA", "kid": "four" }), &claims("alice", &[]))).await, no);
    assert_eq!(as_(one.sign(&json!({ "alg": "none" }), &claims("alice", &[]))).await, no);
    assert_eq!(as_(one.token(&claims("alice", &[("role", json!("reader"))]))).await, told(403, "forbidden", false));
    assert_eq!(order(&running, &[]).await, no);
    assert_eq!((upstream.seen().len(), idp.asked().len()), (2, 1));
}

#[tokio::test]
async fn an_issuer_that_is_not_there() {
    let upstream = Upstream::start(CREATED).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = format!(
        "[principal]\nfrom = \"jwt\"\njwks = \"http://{nobody}/\"\nissuer = \"https://idp.example\"\naudience = \"orders\"\n"
    );
    let running = Running::start(upstream.address, &settings).await;
    let token = format!("authorization: Bearer {}", Issuer::new("one").token(&claims("alice", &[])));
    assert_eq!(order(&running, &[&token]).await, told(503, "principal-unavailable", false));
    assert_eq!(order(&running, &[]).await, told(401, "unauthenticated", false));
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn a_file_of_keys_that_is_wrong_is_told_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    let settings = |path: &std::path::Path| {
        let path = path.display();
        format!("[principal]\nfrom = \"jwt\"\njwks = \"file:{path}\"\nissuer = \"i\"\naudience = \"a\"\n")
    };
    let told = async || {
        let config = config_at("127.0.0.1:9".parse().unwrap(), "memory:", &settings(&path));
        let checked = counterfoil_server::check(&config).err().map(|error| error.to_string());
        let started = counterfoil_server::Server::start(config).await.err().map(|error| error.to_string());
        assert_eq!(checked, started);
        started.map(|why| why.replace(&path.display().to_string(), "PATH"))
    };
    let absent = "principal: file:PATH: No such file or directory (os error 2)";
    assert_eq!(told().await.as_deref(), Some(absent));
    std::fs::write(&path, "{\"keys\": []}").unwrap();
    assert_eq!(told().await.as_deref(), Some("principal: file:PATH: it has no public key that can verify"));
    std::fs::write(&path, set(&[Issuer::new("one").jwk()])).unwrap();
    assert_eq!(told().await, None);
}

/// An answer without what differs between any two.
pub(crate) fn without_date(answer: &Answer) -> (Vec<&str>, &str) {
    (answer.head.lines().filter(|line| !line.starts_with("date: ")).collect(), &answer.body)
}
