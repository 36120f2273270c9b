//! The listener: any bytes on a connection are answered or refused within bounds, the upstream gets well-formed
//! requests only, and each action at most once, however often the same bytes come.
//!
//! An input is what a caller sends. It is sent on two connections at once, and on a third when both are over. Each
//! input has a server, a store and an upstream of its own, in this process on loopback, so that it does the same every
//! time. The clock is paused: it moves on only where nothing is left to do, so that a caller knows without waiting
//! that no more answer comes, and time limits pass at once.
//!
//! What does not belong here: how an upstream judges a request (`upstream`).

use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use counterfoil_server::Server;
use counterfoil_server::config::{Config, Flags};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::shown;
use super::upstream::Upstream;

/// A step of the paused clock.
const STEP: Duration = Duration::from_millis(10);
/// So many steps go by before a thing is called stuck: longer than every limit of the server.
const STEPS_MAX: usize = 60_000;
/// And so long by the real clock, because loopback may be slow on a busy machine.
const REAL_MIN: Duration = Duration::from_secs(5);
/// After so many steps without a byte a caller has its answers.
const QUIET_STEPS: usize = 2;

/// What the server is told; the operations are those that `upstream` counts.
pub(crate) const SETTINGS: &str = r#"
forward_key = true
[principal]
from = "none"
[limits]
request_body_max = "4KiB"
[[operation]]
name = "create-order"
match = "POST /orders"
key = "required"
[[operation]]
name = "change-order"
match = "PATCH /orders/{id}"
"#;

pub(super) fn check(input: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let answers = runtime.and_then(|runtime| runtime.block_on(played(SETTINGS, input)));
    match answers {
        Ok(answers) => answers.iter().for_each(|answer| answered(input, answer)),
        Err(error) => panic!("the machine gives no socket: {error}"),
    }
}

/// What each of the three connections to a server with `settings` was answered.
pub(crate) async fn played(settings: &str, input: &[u8]) -> std::io::Result<[Vec<u8>; 3]> {
    let upstream = Upstream::start().await?;
    let server = Server::start(config(settings, upstream.address)).await.unwrap_or_else(|error| panic!("{error}"));
    let proxy = server.address().to_string().parse().unwrap_or(upstream.address);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        drop(stopped.await);
    }));
    let (first, second) = tokio::join!(connection(proxy, input), connection(proxy, input));
    let third = connection(proxy, input).await?;
    drop(stop);
    match within("the server", running).await {
        Ok(drained) => assert_eq!(drained.doubted, 0, "nothing is in doubt: {}", shown(input)),
        Err(error) => panic!("the server broke off: {error}: {}", shown(input)),
    }
    let seen = upstream.seen();
    assert!(seen.faults.is_empty(), "{:#?} from {}", seen.faults, shown(input));
    for (action, times) in &seen.actions {
        assert_eq!(*times, 1, "{action:?} reached the upstream more than once from {}", shown(input));
    }
    Ok([first?, second?, third])
}

fn config(settings: &str, upstream: SocketAddr) -> Config {
    let flags = Flags {
        listen: Some("127.0.0.1:0".to_owned()),
        admin: Some("127.0.0.1:0".to_owned()),
        upstream: Some(format!("http://{upstream}")),
        store: Some("memory:".to_owned()),
        principal: None,
    };
    Config::read(Some(settings), &|_| None, &flags).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Sends `input`, takes what is answered until nothing more comes, ends its side, and waits for the other's end.
async fn connection(proxy: SocketAddr, input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(proxy).await?;
    let (mut from, mut to) = stream.split();
    let mut answer = Vec::new();
    // An early refusal may close the connection while the rest is on its way.
    drop(within("sending", to.write_all(input)).await);
    let mut clock = tokio::time::interval(STEP);
    let mut quiet = 0;
    while quiet < QUIET_STEPS {
        tokio::select! {
            biased;
            came = from.read_buf(&mut answer) => match came {
                Ok(0) | Err(_) => return Ok(answer),
                Ok(_) => quiet = 0,
            },
            _ = clock.tick() => quiet += 1,
        }
    }
    drop(to.shutdown().await);
    drop(within("a connection", from.read_to_end(&mut answer)).await);
    Ok(answer)
}

/// Waits for `event`, within bounds.
async fn within<T>(what: &str, event: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let mut clock = tokio::time::interval(STEP);
    let mut event = pin!(event);
    let mut steps = 0;
    loop {
        tokio::select! {
            biased;
            come = event.as_mut() => return come,
            _ = clock.tick() => steps += 1,
        }
        assert!(steps < STEPS_MAX || begun.elapsed() < REAL_MIN, "{what} did not come to an end");
    }
}

/// An answer is none, or opens as one.
fn answered(input: &[u8], answer: &[u8]) {
    let version = answer.strip_prefix(b"HTTP/1.1 ").or_else(|| answer.strip_prefix(b"HTTP/1.0 "));
    let status = version.and_then(|rest| rest.first_chunk::<3>());
    let plain = status.is_some_and(|status| status.iter().all(u8::is_ascii_digit) && status[0] != b'0');
    // A caller that opens with HTTP/2 is answered in its frames.
    let frames = input.starts_with(b"PRI * HTTP/2.0\r\n");
    assert!(answer.is_empty() || plain || frames, "{} answers {}", shown(answer), shown(input));
}
