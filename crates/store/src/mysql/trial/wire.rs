//! A loopback proxy between a store and its server that delays, keeps a request back, or loses the reply to one that
//! was carried out.
//!
//! What does not belong here: what becomes of a store behind it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const CHUNK: usize = 64 << 10;

/// A proxy on a free port of 127.0.0.1, for as long as it is held.
pub struct Wire {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    rules: Mutex<Rules>,
    lost: Notify,
    held: Notify,
    released: Notify,
}

#[derive(Default)]
struct Rules {
    delay: Duration,
    lose_reply_of: Option<Vec<u8>>,
    hold_request_of: Option<Vec<u8>>,
}

impl Shared {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    /// A proxy to `port` of 127.0.0.1.
    ///
    /// # Errors
    /// Where no port can be had.
    pub async fn to(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let own = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let accepting = tokio::spawn(accept(listener, port, shared.clone()));
        Ok(Self { port: own, shared, accepting })
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// From now on everything takes so much longer, in each direction.
    pub fn delay(&self, by: Duration) {
        self.shared.rules().delay = by;
    }

    /// The next request that holds `bytes` is carried out; its reply is lost, and the connection with it. A prepared
    /// statement's request holds its parameters and not its text.
    pub fn lose_reply_of(&self, bytes: &[u8]) {
        self.shared.rules().lose_reply_of = Some(bytes.to_vec());
    }

    /// Waits until a reply was lost.
    pub async fn lost(&self) {
        self.shared.lost.notified().await;
    }

    /// The next request that holds `bytes` is kept back until [`Wire::release`], and its reply is lost.
    pub fn hold_request_of(&self, bytes: &[u8]) {
        self.shared.rules().hold_request_of = Some(bytes.to_vec());
    }

    /// Waits until a request is kept back.
    pub async fn held(&self) {
        self.shared.held.notified().await;
    }

    /// Lets the request go that is kept back, though its sender may be gone.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, to: u16, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
            // Small messages in both directions must not wait for each other.
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let losing = Arc::new(AtomicBool::new(false));
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let up = tokio::spawn(requests(from_client, to_server, shared.clone(), losing.clone()));
            replies(from_server, to_client, &shared, &losing).await;
            up.abort();
        });
    }
}

/// Whether this is the request that the rule is for; each rule is for one.
fn takes(rule: &mut Option<Vec<u8>>, bytes: &[u8]) -> bool {
    let hit = rule.as_ref().is_some_and(|sought| bytes.windows(sought.len().max(1)).any(|window| window == sought));
    if hit {
        *rule = None;
    }
    hit
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: Arc<Shared>, losing: Arc<AtomicBool>) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let Some(bytes) = buffer.get(..read) else { return };
        let (delay, hold) = {
            let mut rules = shared.rules();
            if takes(&mut rules.lose_reply_of, bytes) {
                losing.store(true, Ordering::Release);
            }
            (rules.delay, takes(&mut rules.hold_request_of, bytes))
        };
        if hold {
            shared.held.notify_one();
            shared.released.notified().await;
            losing.store(true, Ordering::Release);
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

async fn replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, losing: &AtomicBool) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let Some(bytes) = buffer.get(..read) else { return };
        if losing.load(Ordering::Acquire) {
            // The procedures commit before they answer anything.
            shared.lost.notify_one();
            return;
        }
        let delay = shared.rules().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
