//! The configuration: one TOML file, variables for secrets and addresses, flags over both. Every complaint at once.
//!
//! What does not belong here: opening or listening on anything (`serve`), and the rules that settings feed (core,
//! middleware). Every setting is described in `docs/reference/config.md`, which a test compares with this.

mod claims;
mod cors;
mod forward;
mod limits;
mod operation;
mod place;
mod principal;
mod print;
mod quantity;
mod reader;
mod replay;
mod setting;
mod terms;
mod url;

use std::net::SocketAddr;

use counterfoil_core::Effect;
use counterfoil_core::complaint::Pad;
pub use counterfoil_core::complaint::{Complaint, Complaints};
use http::HeaderName;

pub use self::claims::{ClaimName, Requirement, ScopePart};
pub use self::cors::Cors;
pub use self::forward::{Forward, HostSent, Http, Roots, Tls};
pub use self::limits::Limits;
pub use self::operation::Operation;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use self::place::Database;
pub use self::place::{Listen, STORE_ACCEPTED, StorePlace, Upstream};
pub use self::principal::{Algorithm, ApiKey, ApiKeys, ForwardAuth, JwksPlace, Jwt, Net, Peer, PrincipalSource};
pub use self::quantity::{SIZE_ACCEPTED, SPAN_ACCEPTED, parse_size, parse_span, print_size, print_span};
use self::reader::Section;
use self::setting::{Names, Outside};
pub use self::setting::{Origin, Setting};
pub use self::terms::Terms;
pub use self::url::Url;
pub use counterfoil_middleware::Duplicates;

/// The largest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The variable that holds the admin listener's token.
pub const ADMIN_TOKEN_VARIABLE: &str = "COUNTERFOIL_ADMIN_TOKEN";

/// The fewest bytes of an admin token: what 128 bits of hexadecimal take.
const TOKEN_BYTES_MIN: usize = 32;

/// What flags say, as texts.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--admin`.
    pub admin: Option<String>,
    /// `--upstream`.
    pub upstream: Option<String>,
    /// `--store`.
    pub store: Option<String>,
    /// `--principal`.
    pub principal: Option<String>,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Whether `given` is this text; the time taken tells nothing about where they differ.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        let mine = self.0.as_bytes();
        let differing = mine.iter().zip(given).fold(0, |differing, (mine, given)| differing | (mine ^ given));
        mine.len() == given.len() && differing == 0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the proxy listens.
    pub listen: Setting<Listen>,
    /// Where health and metrics are told.
    pub admin: Setting<Listen>,
    /// What the admin listener asks for beyond loopback.
    pub admin_token: Option<Secret>,
    /// The server whose API is guarded.
    pub upstream: Setting<Upstream>,
    /// Where records are kept.
    pub store: Setting<StorePlace>,
    /// Who the callers are.
    pub principal: Setting<PrincipalSource>,
    /// The claims that every caller must have.
    pub require: Vec<Requirement>,
    /// The parts of the scope beside the principal, by name.
    pub scope: Vec<(String, ScopePart)>,
    /// The listener's certificate; none: callers are spoken to in clear.
    pub tls: Option<Setting<Tls>>,
    /// How requests are carried to the upstream.
    pub forward: Forward,
    /// Whether the key is forwarded to the upstream.
    pub forward_key: Setting<bool>,
    /// Whether what is promised is published.
    pub publish_contract: Setting<bool>,
    /// Whether a key may also come in `Repeatability-Request-ID` with `Repeatability-First-Sent`.
    pub repeatability: Setting<bool>,
    /// Which pages may read answers that the upstream did not make.
    pub cors: Cors,
    /// Further headers that are replayed.
    pub replay_headers: Setting<Vec<HeaderName>>,
    /// What one process takes on.
    pub limits: Limits,
    /// What an operation promises that says nothing else.
    pub defaults: Terms,
    /// The guarded operations; none: every POST and PATCH that carries a key.
    pub operations: Vec<Operation>,
}

impl Config {
    /// Reads a configuration from the text of its file, variables and flags.
    ///
    /// # Errors
    /// [`Complaints`]: all that is wrong, in all places.
    pub fn read(
        file: Option<&str>,
        environment: &dyn Fn(&str) -> Option<String>,
        flags: &Flags,
    ) -> Result<Self, Complaints> {
        let pad = Pad::about("the configuration");
        let table = table(file.unwrap_or_default(), &pad);
        let whole = table.is_some();
        let table = table.unwrap_or_default();
        let config = {
            let outside = Outside { pad: &pad, environment, whole };
            read(&Section::root(&table, &pad), &outside, flags)
        };
        pad.judge(config)
    }

    /// The effective configuration as a file, with where each value came from. Secrets are named and not shown.
    #[must_use]
    pub fn print(&self) -> String {
        print::print(self)
    }
}

fn table(text: &str, pad: &Pad) -> Option<toml::Table> {
    if text.len() > FILE_BYTES_MAX {
        pad.add("file", format!("it has {} bytes", text.len()), format!("at most {FILE_BYTES_MAX} bytes"));
        return None;
    }
    match text.parse() {
        Ok(table) => Some(table),
        Err(error) => {
            let error: toml::de::Error = error;
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            pad.add(format!("line {line}"), error.message().replace('\n', ": "), "a file as TOML 1.0 has it");
            None
        }
    }
}

fn read(root: &Section<'_>, outside: &Outside<'_>, flags: &Flags) -> Option<Config> {
    let loopback = |port| Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
    let or = |setting: Option<Setting<Listen>>, port| setting.unwrap_or_else(|| Setting::or(None, loopback(port)));
    let names = |key, variable, flag, accepted| Names { key, variable, flag, accepted };

    let address = place::ADDRESS_ACCEPTED;
    let listen = names("listen", "COUNTERFOIL_LISTEN", "--listen", address);
    let listen = or(outside.text(root, &listen, flags.listen.as_deref(), Listen::parse), 8787);
    let admin = names("admin", "COUNTERFOIL_ADMIN", "--admin", address);
    let admin = or(outside.text(root, &admin, flags.admin.as_deref(), Listen::parse), 8788);
    let upstream = names("upstream", "COUNTERFOIL_UPSTREAM", "--upstream", place::UPSTREAM_ACCEPTED);
    let stated = !outside.whole
        || root.has(upstream.key)
        || flags.upstream.is_some()
        || (outside.environment)(upstream.variable).is_some();
    let upstream = outside.text(root, &upstream, flags.upstream.as_deref(), Upstream::parse);
    if !stated {
        root.complain("upstream", "missing", place::UPSTREAM_ACCEPTED);
    }
    let store = names("store", "COUNTERFOIL_STORE", "--store", STORE_ACCEPTED);
    let store = outside.text(root, &store, flags.store.as_deref(), StorePlace::parse);
    let unread_store = store.is_none() && root.has("store");
    let store = store.unwrap_or_else(|| Setting::or(None, StorePlace::Sqlite("counterfoil.db".into())));
    let (principal, require) = principal::read(root, outside, flags.principal.as_deref());
    let scope = claims::scope(root);
    let admin_token = admin_token(outside, &admin);
    let tls = root.table("tls").and_then(|section| Tls::read(&section)).map(|tls| Setting::or(Some(tls.clone()), tls));
    let pad = root.pad();
    let forward = Forward::read(root.table("forward"), pad, upstream.as_ref().map(|upstream| &upstream.value));
    let forward_key = Setting::or(root.flag("forward_key"), false);
    let publish_contract = Setting::or(root.flag("publish_contract"), true);
    let repeatability = Setting::or(root.flag("repeatability"), false);
    let cors = Cors::read(root.table("cors"), pad);
    let replay_headers = terms::bounded(root, "replay_headers", replay::ACCEPTED, replay::parse);
    let replay_headers = Setting::or(replay_headers, Vec::new());
    let limits = Limits::read(root.table("limits"), pad);
    let empty = toml::Table::new();
    let defaults = Terms::defaults(root.table("defaults"), &Section::root(&empty, pad));
    let operations = operation::read(root, &defaults);
    judge(root, &listen, &admin, upstream.as_ref());
    if !unread_store {
        judge_effects(root, &store.value, &defaults, &operations);
    }
    if let Some(principal) = &principal {
        claims::judge(root, &principal.value, &require, &scope, &operations);
        principal::judge(root, &principal.value, &listen.value);
    }
    root.finish();
    Some(Config {
        listen,
        admin,
        admin_token,
        upstream: upstream?,
        store,
        principal: principal?,
        require,
        scope,
        tls,
        forward,
        forward_key,
        publish_contract,
        repeatability,
        cors,
        replay_headers,
        limits,
        defaults,
        operations,
    })
}

/// What only two addresses together can get wrong.
fn judge(root: &Section<'_>, listen: &Setting<Listen>, admin: &Setting<Listen>, upstream: Option<&Setting<Upstream>>) {
    let any_port = listen.value.socket().is_some_and(|address| address.port() == 0);
    if listen.value == admin.value && !any_port {
        root.complain("admin", "the same address as listen", place::ADDRESS_ACCEPTED);
    }
    let itself = upstream.is_some_and(|upstream| match &listen.value {
        Listen::Unix(path) => upstream.value.socket_path() == Some(path),
        Listen::Tcp(address) => upstream.value.target().is_some_and(|(host, port)| {
            port == address.port()
                && (host == address.ip().to_string() || (host == "localhost" && address.ip().is_loopback()))
        }),
    });
    if itself {
        root.complain("upstream", "it is this proxy itself", "the address of the guarded server");
    }
}

/// What only a store and an effect together can get wrong.
fn judge_effects(root: &Section<'_>, store: &StorePlace, defaults: &Terms, operations: &[Operation]) {
    let mut terms = operations.iter().map(|operation| &operation.terms).chain([defaults]);
    if terms.any(|terms| terms.effect.value == Effect::Coupled) && !store.takes_permits() {
        let fault = format!("{store} cannot keep effect = \"coupled\"");
        root.complain("store", fault, "\"postgres://...\", the database of the application");
    }
}

/// The token, and the complaint where the admin listener needs one.
fn admin_token(outside: &Outside<'_>, admin: &Setting<Listen>) -> Option<Secret> {
    let accepted = format!("{ADMIN_TOKEN_VARIABLE} with at least {TOKEN_BYTES_MIN} printable characters");
    let token = (outside.environment)(ADMIN_TOKEN_VARIABLE);
    if token.is_none() && !admin.value.is_local() {
        let fault = format!("{} is not loopback, and there is no token", admin.value);
        outside.pad.add("admin", fault, format!("a loopback address, or {accepted}"));
    }
    let token = token?;
    if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        outside.pad.add(ADMIN_TOKEN_VARIABLE, "too short or not printable", accepted);
        return None;
    }
    Some(Secret(token))
}

#[cfg(test)]
mod tests;
