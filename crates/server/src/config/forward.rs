//! `[tls]` and `[forward]`: how callers are let in, and how requests are carried to the upstream.
//! Opening files and connections belongs to `tls`, `listener` and `proxy`.

use std::path::{Path, PathBuf};

use counterfoil_core::complaint::Pad;

use super::Upstream;
use super::principal::{PEER_ACCEPTED, Peer};
use super::reader::{Section, text};
use super::setting::Setting;
use super::terms::bounded;

const FILE_ACCEPTED: &str = "the path of a PEM file";
const HTTP_ACCEPTED: &str = "\"auto\", \"1.1\" or \"2\"";
const HOST_ACCEPTED: &str = "\"upstream\" or \"caller\"";
const ROOTS_ACCEPTED: &str = "\"system\" or the path of a PEM file";

/// The files of the listener's TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    /// The certificate and its chain, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl Tls {
    pub(super) fn read(section: &Section<'_>) -> Option<Self> {
        let certificate = section.text("certificate", FILE_ACCEPTED, file);
        let key = section.text("key", FILE_ACCEPTED, file);
        for name in ["certificate", "key"] {
            if !section.has(name) {
                section.complain(name, "missing: TLS needs both", FILE_ACCEPTED);
            }
        }
        section.finish();
        Some(Self { certificate: certificate?, key: key? })
    }
}

/// Which HTTP the upstream is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Http {
    /// Over TLS what ALPN chooses, else HTTP/1.1.
    Auto,
    /// HTTP/1.1.
    One,
    /// HTTP/2, without TLS by prior knowledge.
    Two,
}

/// Which name the upstream is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostSent {
    /// Its own.
    Upstream,
    /// What the caller asked for.
    Caller,
}

/// Whose word on certificates is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// The system's list.
    System,
    /// The authorities in this file, and no others.
    File(PathBuf),
}

/// How requests are carried to the upstream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// Which HTTP is spoken.
    pub http: Setting<Http>,
    /// Which name is told in `Host`.
    pub host: Setting<HostSent>,
    /// Whose certificates are believed.
    pub roots: Setting<Roots>,
    /// Whose forwarding headers are kept.
    pub trusted: Setting<Vec<Peer>>,
}

impl Forward {
    pub(super) fn read(section: Option<Section<'_>>, pad: &Pad, upstream: Option<&Upstream>) -> Self {
        let empty = toml::Table::new();
        let section = section.unwrap_or_else(|| Section::root(&empty, pad));
        let http = section.text("http", HTTP_ACCEPTED, |text| match text {
            "auto" => Ok(Http::Auto),
            "1.1" => Ok(Http::One),
            "2" => Ok(Http::Two),
            _ => Err(format!("{text:?} is no version that is spoken")),
        });
        let host = section.text("host", HOST_ACCEPTED, |text| match text {
            "upstream" => Ok(HostSent::Upstream),
            "caller" => Ok(HostSent::Caller),
            _ => Err(format!("{text:?} is neither")),
        });
        let roots = section.text("roots", ROOTS_ACCEPTED, |text| match text {
            "system" => Ok(Roots::System),
            path => file(path).map(Roots::File),
        });
        if roots.is_some() && upstream.is_some_and(|upstream| !upstream.is_tls()) {
            section.complain("roots", "has no meaning without https to the upstream", "no such setting, or https");
        }
        let trusted = bounded(&section, "trusted", PEER_ACCEPTED, |value| Peer::parse(text(value)?));
        section.finish();
        Self {
            http: Setting::or(http, Http::Auto),
            host: Setting::or(host, HostSent::Upstream),
            roots: Setting::or(roots, Roots::System),
            trusted: Setting::or(trusted, Vec::new()),
        }
    }
}

fn file(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{text:?} is no path"));
    }
    Ok(Path::new(text).to_owned())
}
