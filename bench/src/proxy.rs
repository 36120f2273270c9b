//! The table of the proxy on loopback: ours bare and guarded, beside nginx as a plain proxy and the peers.
//!
//! All proxies stand before the same small upstream, a process of its own. Each server is a process of its own too, so
//! that its processor time is its own; the callers are 64 connections on one thread of the measuring process. What the
//! servers of this program do belongs to `server`, how others are built and started to `peer`.

mod peer;
mod server;

use std::net::SocketAddr;
use std::path::Path;

pub(crate) use self::server::{Store, coupled, serve, start};

use self::peer::{Peer, Program};
use crate::Fault;
use crate::http::child::Child;
use crate::http::client::{self, Asks};
use crate::load::{Usage, Window};
use crate::options::Options;
use crate::sample::Sample;
use crate::table::{Check, Row, Table};

/// Connections, each with one request under way.
const CONNECTIONS: usize = 64;
/// Keys that are replayed.
const REPLAYED: usize = 1000;

const NGINX: &str = "nginx, plain proxy";
const BARE: &str = "our proxy, unguarded route";
const MEMORY: &str = "our proxy, memory, fresh";
const MEMORY_REPLAY: &str = "our proxy, memory, replay";
const SQLITE: &str = "our proxy, SQLite, fresh";
const SQLITE_REPLAY: &str = "our proxy, SQLite, replay";
const OTHER_PROXY: &str = "idempotent-proxy-server, memory, fresh";
const OTHER_PROXY_REPLAY: &str = "idempotent-proxy-server, memory, replay";
const AXUM: &str = "axum, no proxy, bare handler";
const AXUM_IDEMPOTENT: &str = "axum-idempotent, no proxy, moka, fresh";
const AXUM_IDEMPOTENT_REPLAY: &str = "axum-idempotent, no proxy, moka, replay";
const IDEMPOTENT: &str = "idempotent 2.0.0, no proxy, memory, fresh";
const IDEMPOTENT_REPLAY: &str = "idempotent 2.0.0, no proxy, memory, replay";

/// Which server is asked.
#[derive(Clone, Copy)]
enum Which {
    /// Ours; on a route that nobody guards, or else on one that is guarded.
    Ours {
        store: Store,
        guarded: bool,
    },
    Other(Program),
}

/// What is asked of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Fresh,
    Replayed,
}

pub(crate) fn table(options: &Options) -> Table {
    let ours = |name, store, guarded, keys| row(name, Which::Ours { store, guarded }, keys);
    // What can be had is seen before the first row is measured.
    let other = |name: &'static str, program: Program, keys| {
        let chosen = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only));
        let beside = [AXUM_IDEMPOTENT, AXUM_IDEMPOTENT_REPLAY, IDEMPOTENT, IDEMPOTENT_REPLAY];
        let compared = program == Program::Axum && beside.into_iter().any(chosen);
        let wanted = chosen(name) || compared || program == Program::Nginx;
        let why = if wanted { program.have(&options.peers).err() } else { None };
        row(name, Which::Other(program), keys).absent(why.map(|why| why.to_string()))
    };
    let at = CONNECTIONS;
    Table {
        title: "The proxy over HTTP",
        about: "POST of 46 bytes of JSON, 64 kept connections on loopback, fresh UUIDv7 keys or 1,000 keys replayed; every \
                proxy before the same upstream, which answers at once and keeps its connections. nginx has 2 workers and \
                keeps 256 connections to it. SQLite is WAL, `synchronous=FULL`, effect elsewhere: two commits for an \
                action. Rows without a proxy are layers in an axum service. CPU is the server's alone."
            .into(),
        rows: vec![
            other(NGINX, Program::Nginx, Keys::Fresh),
            ours(BARE, Store::Memory, false, Keys::Fresh).at_least(0.6, NGINX, at),
            ours(MEMORY, Store::Memory, true, Keys::Fresh).at_least(0.8, BARE, at),
            ours(MEMORY_REPLAY, Store::Memory, true, Keys::Replayed).at_least(1.0, BARE, at),
            ours(SQLITE, Store::Sqlite, true, Keys::Fresh).at_least(0.3, BARE, at),
            ours(SQLITE_REPLAY, Store::Sqlite, true, Keys::Replayed).at_least(1.0, BARE, at),
            other(OTHER_PROXY, Program::IdempotentProxy, Keys::Fresh).beside(BARE, at),
            other(OTHER_PROXY_REPLAY, Program::IdempotentProxy, Keys::Replayed).beside(BARE, at),
            other(AXUM, Program::Axum, Keys::Fresh).beside(BARE, at),
            other(AXUM_IDEMPOTENT, Program::AxumIdempotent, Keys::Fresh).beside(AXUM, at),
            other(AXUM_IDEMPOTENT_REPLAY, Program::AxumIdempotent, Keys::Replayed).beside(AXUM, at),
            other(IDEMPOTENT, Program::Idempotent, Keys::Fresh).beside(AXUM, at),
            other(IDEMPOTENT_REPLAY, Program::Idempotent, Keys::Replayed).beside(AXUM, at),
        ],
        checks: vec![Check::Rate { of: (MEMORY, at), at_least: 1.5, against: (OTHER_PROXY, at) }],
    }
}

fn row(name: &'static str, which: Which, keys: Keys) -> Row {
    Row::new(name, CONNECTIONS, move |options| measured(options, which, keys))
}

/// A server that runs.
enum Running {
    Ours(Child),
    Other(Peer),
}

impl Running {
    fn start(options: &Options, which: Which, upstream: SocketAddr, dir: &Path) -> Result<Self, Fault> {
        match which {
            Which::Ours { store, .. } => Ok(Self::Ours(start(store, upstream, dir)?)),
            Which::Other(program) => Ok(Self::Other(Peer::start(program, &options.peers, upstream, dir)?)),
        }
    }

    const fn address(&self) -> SocketAddr {
        match self {
            Self::Ours(child) => child.address(),
            Self::Other(peer) => peer.address(),
        }
    }

    fn usage(&self) -> Result<Usage, Fault> {
        match self {
            Self::Ours(child) => child.usage(),
            Self::Other(peer) => peer.usage(),
        }
    }
}

fn measured(options: &Options, which: Which, keys: Keys) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let upstream = Child::start("upstream@", dir.path())?;
    let server = Running::start(options, which, upstream.address(), dir.path())?;
    let asks = match which {
        Which::Ours { guarded: true, .. } => Asks::fresh(true),
        Which::Ours { guarded: false, .. } => Asks::fresh(false).to("/plain"),
        Which::Other(Program::IdempotentProxy) => Asks::fresh(false).to("/URL_ORDERS"),
        Which::Other(Program::AxumIdempotent) => Asks::fresh(false).in_sessions(),
        Which::Other(Program::Nginx | Program::Axum | Program::Idempotent) => Asks::fresh(false),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let load = runtime.block_on(async {
        let asks = match keys {
            Keys::Fresh => asks,
            Keys::Replayed => client::remember(server.address(), asks, REPLAYED).await?,
        };
        client::run(server.address(), || server.usage(), CONNECTIONS, Window::begin(options), asks).await
    })?;
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na request failed: {why}");
    }
    judged(which, keys, load.tally.done, upstream.usage()?.commits.unwrap_or(0))?;
    Ok(load.into())
}

/// Behind a proxy each fresh answer has a request to the upstream, and a replay has none.
fn judged(which: Which, keys: Keys, done: u64, asked: u64) -> Result<(), Fault> {
    let proxied = match which {
        Which::Ours { .. } | Which::Other(Program::Nginx | Program::IdempotentProxy) => true,
        Which::Other(Program::Axum | Program::AxumIdempotent | Program::Idempotent) => false,
    };
    let right = match keys {
        Keys::Fresh => asked >= done,
        Keys::Replayed => asked == REPLAYED as u64,
    };
    if proxied && !right {
        return Err(format!("{done} requests were answered, {asked} came to the upstream").into());
    }
    Ok(())
}
