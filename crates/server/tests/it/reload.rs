//! Certificates and keys that are read anew while a server runs, and bad ones that are not taken. The signal is tested
//! from outside, in `checks`.

use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use counterfoil_server::config::Config;

use crate::authority::Authority;
use crate::caller::ask;
use crate::issuer::{Issuer, set};
use crate::principals::{CREATED, claims, key_of};
use crate::running::{Running, config, config_before};
use crate::upstream::Upstream;

/// How often this part was taken or kept so far, by all tests of this process.
async fn count(running: &Running, what: &str, result: &str) -> u64 {
    let text = ask(running.admin, "GET /metrics", &[], "").await.body;
    let series = format!("counterfoil_reloads_total{{what=\"{what}\",result=\"{result}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&series));
    line.map_or(0, |count| count.parse().unwrap())
}

/// Reads anew; whether all was taken, and that `what` was counted so.
async fn reload(running: &Running, config: Result<Config, String>, what: &str) -> bool {
    let results = ["taken", "kept"];
    let before = [count(running, what, results[0]).await, count(running, what, results[1]).await];
    let all = running.reload.reload(config).await;
    let index = usize::from(!all);
    assert!(count(running, what, results[index]).await > before[index], "{what} was not counted as {}", results[index]);
    all
}

async fn order(running: &Running, credential: &str) -> (u16, bool) {
    let headers = ["idempotency-key: k", &format!("authorization: Bearer {credential}")];
    let answer = ask(running.proxy, "POST /orders", &headers, "{}").await;
    (answer.status(), answer.header("idempotent-replayed") == Some("true"))
}

async fn get(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    stream.write_all(b"GET /a HTTP/1.1\r\nhost: api.example\r\n\r\n").await.unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

#[tokio::test]
async fn a_certificate() {
    let upstream = Upstream::start(CREATED).await;
    let (first, second) = (Authority::new(&["api.example"]), Authority::new(&["api.example"]));
    let settings = || config_before(&format!("http://{}", upstream.address), "127.0.0.1:0", &first.table());
    let running = Running::with(settings()).await;
    let connect = async |authority: &Authority| {
        let stream = TcpStream::connect(running.proxy).await.unwrap();
        let name = ServerName::try_from("api.example").unwrap();
        authority.connector(&[]).connect(name, stream).await
    };
    let mut standing = connect(&first).await.unwrap();
    first.give_way_to(&second);
    assert!(connect(&first).await.is_ok() && connect(&second).await.is_err(), "it was read before anybody said so");
    assert!(reload(&running, Ok(settings()), "certificate").await);
    assert!(connect(&first).await.is_err() && connect(&second).await.is_ok());
    assert_eq!(get(&mut standing).await, "HTTP/1.1 201", "a connection that stands goes on");
    for bad in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        first.spoil(bad);
        assert!(!reload(&running, Ok(settings()), "certificate").await, "{bad:?} was taken");
        assert!(connect(&second).await.is_ok(), "what was in force is gone");
    }
}

#[tokio::test]
async fn a_table_of_keys() {
    let upstream = Upstream::start(CREATED).await;
    let source = "[principal]\nfrom = \"api-keys\"\n";
    let table = |keys: &[String]| Ok(config(upstream.address, &format!("{source}{}", keys.concat())));
    let (old, new, bob) = (key_of("alice", "old"), key_of("alice", "new"), key_of("bob", "bob"));
    let running = Running::with(table(&[old.clone(), bob.clone()]).unwrap()).await;
    assert_eq!(order(&running, "old").await, (201, false));
    assert_eq!(order(&running, "new").await, (401, false));
    assert!(reload(&running, table(&[old, new.clone(), bob.clone()]), "api-keys").await);
    assert_eq!(order(&running, "new").await, (201, true), "a second key is the same caller");
    // Revoked: as a fresh request is answered, and the record stays.
    assert!(reload(&running, table(&[new.clone()]), "api-keys").await);
    assert_eq!(order(&running, "old").await, (401, false));
    assert_eq!(order(&running, "bob").await, (401, false));
    assert_eq!(order(&running, "new").await, (201, true));
    // What cannot be read, or is another source, changes nothing.
    assert!(!reload(&running, Err("line 3: no".to_owned()), "configuration").await);
    let other = config(upstream.address, "[principal]\nfrom = \"none\"\n");
    assert!(!reload(&running, Ok(other), "api-keys").await);
    assert_eq!(order(&running, "new").await, (201, true));
    assert_eq!(order(&running, "bob").await, (401, false));
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn a_file_of_public_keys() {
    let upstream = Upstream::start(CREATED).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let (one, two) = (Issuer::new("one"), Issuer::new("two"));
    std::fs::write(&path, set(&[one.jwk()])).unwrap();
    let settings = || {
        let source = format!("[principal]\nfrom = \"jwt\"\njwks = \"file:{}\"\n", path.display());
        config(upstream.address, &format!("{source}issuer = \"https://idp.example\"\naudience = \"orders\"\n"))
    };
    let running = Running::with(settings()).await;
    let token = |issuer: &Issuer| issuer.token(&claims("alice", &[("jti", json!("1"))]));
    assert_eq!(order(&running, &token(&one)).await, (201, false));
    std::fs::write(&path, set(&[two.jwk()])).unwrap();
    assert_eq!(order(&running, &token(&one)).await, (201, true), "it was read before anybody said so");
    assert!(reload(&running, Ok(settings()), "jwks").await);
    assert_eq!(order(&running, &token(&one)).await, (401, false));
    assert_eq!(order(&running, &token(&two)).await, (201, true));
    for bad in ["", "{\"keys\": []}"] {
        std::fs::write(&path, bad).unwrap();
        assert!(!reload(&running, Ok(settings()), "jwks").await, "{bad:?} was taken");
        assert_eq!(order(&running, &token(&two)).await, (201, true), "what was in force is gone");
    }
    assert_eq!(upstream.seen().len(), 1);
}
