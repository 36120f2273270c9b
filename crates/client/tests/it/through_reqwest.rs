//! Code that sends through `reqwest-middleware`, over real connections.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil_client::reqwest_middleware::reqwest::{Client, redirect, retry};
use counterfoil_client::reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error};
use counterfoil_client::{Intended, IntentLayer, LayerError, Outcome};
use counterfoil_core::intent::Name;
use counterfoil_store::SqliteStore;
use counterfoil_store::sqlite::Options;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A provider that reads whole requests; the first is lost, the others are answered 201 from the record.
#[derive(Clone)]
struct Provider {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/orders", listener.local_addr().unwrap());
        let provider = Self { url, asked: Arc::default() };
        let asked = provider.asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = String::new();
                while !request.ends_with("{}") {
                    let mut bytes = [0; 4096];
                    let read = stream.read(&mut bytes).await.unwrap();
                    assert!(read > 0, "it broke off: {request}");
                    request.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
                }
                let number = {
                    let mut asked = asked.lock().unwrap();
                    asked.push(request);
                    asked.len()
                };
                if number > 1 {
                    let answer = "HTTP/1.1 201 Created\r\nidempotent-replayed: true\r\ncontent-length: 4\r\n\
                                  connection: close\r\n\r\nmade";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        });
        provider
    }

    /// The keys that were sent, in their order; "none" where there was none.
    fn keys(&self) -> Vec<String> {
        let key = |request: &String| {
            let key = request.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
            key.unwrap_or("none").to_owned()
        };
        self.asked.lock().unwrap().iter().map(key).collect()
    }
}

fn client(directory: &TempDir) -> ClientWithMiddleware {
    let journal = SqliteStore::open(directory.path().join("journal.db"), Options::default()).unwrap();
    let plain = Client::builder().redirect(redirect::Policy::none()).retry(retry::never()).build().unwrap();
    ClientBuilder::new(plain).with(IntentLayer::new(journal, Duration::ZERO)).build()
}

fn intended() -> Intended {
    Intended::new(Name::new("order-1").unwrap(), "counterfoil")
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_key() {
    let (directory, provider) = (TempDir::new().unwrap(), Provider::start().await);
    let order = |client: ClientWithMiddleware| client.post(&provider.url).body("{}").with_extension(intended()).send();
    let lost = order(client(&directory)).await.unwrap_err();
    let Error::Middleware(lost) = lost else { panic!("{lost}") };
    let lost = lost.downcast_ref::<LayerError<Infallible>>();
    assert!(matches!(lost, Some(LayerError::Outcome(Outcome::Uncertain { .. }))), "{lost:?}");
    assert_eq!(provider.keys().len(), 1, "the pause is longer than the caller's patience");

    let journal = SqliteStore::open(directory.path().join("journal.db"), Options::default()).unwrap();
    let patient = ClientBuilder::new(Client::new()).with(IntentLayer::new(journal, Duration::from_mins(1))).build();
    for _ in 0..2 {
        let made = order(patient.clone()).await.unwrap();
        assert_eq!((made.status().as_u16(), made.text().await.unwrap().as_str()), (201, "made"));
    }
    let keys = provider.keys();
    assert_eq!(keys.len(), 2, "what is settled is not sent: {keys:?}");
    assert!(keys[0] == keys[1] && keys[0] != "none", "{keys:?}");
}

#[tokio::test]
async fn what_has_no_name_passes_as_it_is() {
    let (directory, provider) = (TempDir::new().unwrap(), Provider::start().await);
    let client = client(&directory);
    assert!(matches!(client.post(&provider.url).body("{}").send().await, Err(Error::Reqwest(_))));
    let made = client.post(&provider.url).body("{}").send().await.unwrap();
    assert_eq!(made.status().as_u16(), 201);
    assert_eq!(provider.keys(), ["none", "none"]);
}
