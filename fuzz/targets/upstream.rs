//! The application behind the proxy, as the fuzzed listener reaches it: it reads requests more strictly than anybody
//! has to, answers each with 201, and counts how often each action came.
//!
//! What does not belong here: what callers are told (`listener`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_core::wire::{normalise, parse_key};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// What came.
#[derive(Default)]
pub(super) struct Seen {
    /// Requests of each action, by operation and key.
    pub(super) actions: BTreeMap<(&'static str, String), usize>,
    /// What no upstream should ever be sent.
    pub(super) faults: Vec<String>,
}

/// A running upstream; dropped, it accepts nothing more.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    accepting: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Upstream {
    pub(super) async fn start() -> std::io::Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let seen = Arc::<Mutex<Seen>>::default();
        let keep = seen.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                tokio::spawn(answer(stream, address, keep.clone()));
            }
        });
        Ok(Self { address, seen, accepting })
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection: one request, its answer, and nothing behind it.
async fn answer(mut stream: TcpStream, address: SocketAddr, seen: Arc<Mutex<Seen>>) {
    let mut bytes = Vec::new();
    let mut judged = judge(&bytes, address);
    while matches!(judged, Ok(None)) && stream.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
        judged = judge(&bytes, address);
    }
    if let Ok(Some(Request { action, .. })) = &judged {
        if let Some(action) = action {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen.actions.entry(action.clone()).or_default() += 1;
        }
        // A caller that hung up has closed this connection too; that is its affair.
        drop(stream.write_all(ANSWER).await);
        drop(stream.shutdown().await);
    }
    drop(stream.read_to_end(&mut bytes).await);
    let fault = match judge(&bytes, address) {
        Ok(Some(Request { bytes: used, .. })) if used == bytes.len() => None,
        Ok(Some(_)) => Some("something follows the request"),
        // Cut off: the caller hung up, or the proxy was told to stop.
        Ok(None) => None,
        Err(fault) => Some(fault),
    };
    if let Some(fault) = fault {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.faults.push(format!("{fault}: {}", super::shown(&bytes)));
    }
}

/// A whole request: its action, where it is a guarded one, and how long it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) action: Option<(&'static str, String)>,
    pub(crate) bytes: usize,
}

/// Reads `bytes`; nothing where more must come.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn judge(bytes: &[u8], address: SocketAddr) -> Result<Option<Request>, &'static str> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = bytes.split_at(end + 4);
    let head = &head[..end];
    if head.contains(&0) {
        return Err("a NUL in the header");
    }
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (method, target) = request_line(lines.next().unwrap_or_default())?;
    let headers: Vec<(String, &[u8])> = lines.map(header).collect::<Result<_, _>>()?;
    let values = |name: &str| -> Vec<&[u8]> {
        headers.iter().filter(|(given, _)| given == name).map(|(_, value)| *value).collect()
    };
    match values("host").as_slice() {
        [host] if *host == address.to_string().as_bytes() => {}
        _ => return Err("not exactly one Host, ours"),
    }
    let length = match (values("content-length").as_slice(), values("transfer-encoding").as_slice()) {
        ([], []) => Some(0),
        ([length], []) => Some(digits(length).ok_or("a Content-Length that is no number")?),
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => chunked(body)?,
        ([], _) => return Err("an unknown Transfer-Encoding"),
        (_, []) => return Err("Content-Length twice"),
        (_, _) => return Err("both Content-Length and Transfer-Encoding"),
    };
    let action = action(method, target, &values("idempotency-key"))?;
    Ok(length.filter(|length| *length <= body.len()).map(|length| Request { action, bytes: end + 4 + length }))
}

fn request_line(line: &[u8]) -> Result<(&str, &str), &'static str> {
    let line = std::str::from_utf8(line).map_err(|_| "a request line that is no text")?;
    match line.split(' ').collect::<Vec<_>>().as_slice() {
        [method, target, "HTTP/1.1"] if !method.is_empty() && !target.is_empty() => Ok((method, target)),
        _ => Err("a malformed request line"),
    }
}

fn header(line: &[u8]) -> Result<(String, &[u8]), &'static str> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or("a header line without a colon")?;
    let (name, value) = line.split_at(colon);
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(token) {
        return Err("a malformed header name, or a folded line");
    }
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err("a control character in a header");
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, value[1..].trim_ascii()))
}

fn digits(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

/// The length of a chunked body with its end; nothing where more must come.
fn chunked(body: &[u8]) -> Result<Option<usize>, &'static str> {
    let mut at = 0;
    loop {
        let rest = body.get(at..).unwrap_or_default();
        let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let size = size.ok_or("a chunk without its size")?;
        at += line + 2 + size;
        if size == 0 {
            // Trailers are allowed, each on a line, up to an empty one.
            let trailers = body.get(at - 2..).unwrap_or_default();
            let end = trailers.windows(4).position(|window| window == b"\r\n\r\n");
            return Ok(end.map(|end| at + end + 2));
        }
        match body.get(at..at + 2) {
            None => return Ok(None),
            Some(b"\r\n") => at += 2,
            Some(_) => return Err("a chunk longer than its size"),
        }
    }
}

/// The action of a guarded request: the operations are those of `listener`.
fn action(method: &str, target: &str, keys: &[&[u8]]) -> Result<Option<(&'static str, String)>, &'static str> {
    let path = target.split('?').next().unwrap_or_default();
    let Ok(path) = normalise(path) else { return Ok(None) };
    let operation = match (method, path.split('/').collect::<Vec<_>>().as_slice()) {
        ("POST", ["", "orders"]) => "create-order",
        ("PATCH", ["", "orders", order]) if !order.is_empty() => "change-order",
        _ => return Ok(None),
    };
    match parse_key(keys.iter().copied()) {
        Ok(None) if operation == "create-order" => Err("an action without the key that it needs"),
        Ok(key) => Ok(key.map(|key| (operation, key.as_str().to_owned()))),
        Err(_) => Err("an action with a malformed key"),
    }
}
