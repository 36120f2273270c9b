//! Where something of another server is fetched or asked: `http` or `https`, host, path. Fetching belongs to
//! `principal::outbound`.

use std::fmt;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// The longest URL, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// An absolute URL without a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    secure: bool,
    authority: Authority,
    path: PathAndQuery,
}

impl Url {
    /// Reads `http://host[:port]/path` or `https://…`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("it has {} bytes, over {URL_BYTES_MAX}", text.len()));
        }
        // A user in it may be a secret, so the text is not shown before that is known.
        let authority = text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
        if authority.contains('@') {
            return Err("a user in the URL is never sent".to_owned());
        }
        if text.contains('#') {
            return Err(format!("{text:?} has a fragment"));
        }
        let parts = text.parse::<Uri>().map_err(|_| format!("{text:?} is no URL"))?.into_parts();
        let secure = parts.scheme == Some(Scheme::HTTPS);
        if !secure && parts.scheme != Some(Scheme::HTTP) {
            return Err(format!("{text:?} is neither http nor https"));
        }
        let authority = parts.authority.ok_or_else(|| format!("{text:?} has no host"))?;
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { secure, authority, path })
    }

    /// Whether it is `https`.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Host and port as written, for the `Host` header.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Host and port to connect to.
    #[must_use]
    pub fn target(&self) -> (&str, u16) {
        let host = self.authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (bare, self.authority.port_u16().unwrap_or(if self.secure { 443 } else { 80 }))
    }

    /// What is asked of that host.
    #[must_use]
    pub const fn path(&self) -> &PathAndQuery {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}
