//! What this program is as a process of its own for the table of the proxy: the upstream, or our proxy before it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_server::config::{Config, Flags};
use counterfoil_server::{self as ours};
use counterfoil_store::postgres::Options as PostgresOptions;
use counterfoil_store::sqlite::Options as SqliteOptions;
use counterfoil_store::{PostgresStore, SqliteStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::http::child::{self, Child};
use crate::http::client;
use crate::load::{Load, Window};
use crate::options::Options;
use crate::postgres::application;
use crate::{Fault, load};

const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n\
    {\"id\":1,\"item\":\"copper kettle\",\"quantity\":2,\"g\":0}";
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Where our proxy keeps its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Store {
    Memory,
    Sqlite,
    /// The one that a file beside it names, where the application commits the receipt.
    Postgres,
}

/// Starts our proxy before `upstream`, with its files in `dir`.
pub(crate) fn start(store: Store, upstream: SocketAddr, dir: &Path) -> Result<Child, Fault> {
    let word = match store {
        Store::Memory => "memory",
        Store::Sqlite => "sqlite",
        Store::Postgres => "postgres",
    };
    Child::start(&format!("{word}@{upstream}"), dir)
}

/// Loads our proxy before an application that commits the receipt itself, both on the database at `url`.
pub(crate) fn coupled(options: &Options, url: &str, connections: usize) -> Result<Load, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    std::fs::write(dir.path().join(application::PLACE), url)?;
    let application = Child::start("application@", dir.path())?;
    let proxy = start(Store::Postgres, application.address(), dir.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asks = client::Asks::fresh(true);
    let window = Window::begin(options);
    runtime.block_on(client::run(proxy.address(), || proxy.usage(), connections, window, asks))
}

/// Serves until the standard input ends.
pub(crate) fn serve(word: &str, upstream: &str, dir: &Path) -> Result<(), Fault> {
    match word {
        "upstream" => answering(),
        "application" => application::serve(dir),
        "memory" => proxying(upstream, "memory:", "", ours::Store::of(crate::ours::memory()), None),
        "postgres" => {
            let url = std::fs::read_to_string(dir.join(application::PLACE))?;
            let store = load::runtime()?.block_on(PostgresStore::open(&url, PostgresOptions::default()))?;
            proxying(upstream, &url, "effect = \"coupled\"\nhold = \"always\"\n", ours::Store::of(store), None)
        }
        "sqlite" => {
            let store = SqliteStore::open(dir.join("proxy.db"), SqliteOptions::default())?;
            proxying(upstream, "memory:", "", ours::Store::of(store.clone()), Some(store))
        }
        _ => Err(format!("there is no server `{word}`").into()),
    }
}

/// As `counterfoil serve` is by default, with one guarded operation.
fn proxying(
    upstream: &str,
    place: &str,
    terms: &str,
    store: ours::Store,
    sqlite: Option<Arc<SqliteStore>>,
) -> Result<(), Fault> {
    let text = format!(
        "[principal]\nfrom = \"none\"\n[[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\n{terms}"
    );
    let flags = Flags {
        listen: Some("127.0.0.1:0".to_owned()),
        admin: Some("127.0.0.1:0".to_owned()),
        upstream: Some(format!("http://{upstream}")),
        store: Some(place.to_owned()),
        principal: None,
    };
    let config = Config::read(Some(&text), &|_| None, &flags).map_err(|complaints| format!("{complaints:?}"))?;
    let runtime = load::runtime()?;
    let server = runtime.block_on(ours::Server::start_on(store, config))?;
    let address = server.address().socket().ok_or("the proxy has no port")?;
    runtime.spawn(server.run(std::future::pending()));
    child::answer(address, || sqlite.as_ref().map(|store| store.batches()))
}

/// An upstream that costs little: each request with a length is answered at once, and counted where commits are.
fn answering() -> Result<(), Fault> {
    let runtime = load::runtime()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, count.clone()));
        }
    });
    child::answer(address, || Some(asked.load(Ordering::Relaxed)))
}

async fn answer(mut stream: TcpStream, asked: Arc<AtomicU64>) -> Result<(), Fault> {
    stream.set_nodelay(true)?;
    let mut read = Vec::with_capacity(4096);
    while read.len() < REQUEST_BYTES_MAX && stream.read_buf(&mut read).await? > 0 {
        if is_whole(&read) {
            asked.fetch_add(1, Ordering::Relaxed);
            read.clear();
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}

fn is_whole(request: &[u8]) -> bool {
    let Some((head, body)) = str::from_utf8(request).ok().and_then(|text| text.split_once("\r\n\r\n")) else {
        return false;
    };
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.and_then(|(_, length)| length.parse().ok()).is_none_or(|length: usize| body.len() >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_whole_with_their_body() {
        for (request, whole) in [
            ("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", true),
            ("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{", false),
            ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nhost: a\r\n", false),
        ] {
            assert_eq!(is_whole(request.as_bytes()), whole, "{request:?}");
        }
        let (_, body) = str::from_utf8(ANSWER).unwrap().split_once("\r\n\r\n").unwrap();
        assert!(ANSWER.windows(20).any(|part| part == format!("content-length: {}\r\n", body.len()).as_bytes()));
    }
}
