//! The one credential of a request: where it stands, and what a caller is told who has none that is known. Judging it
//! belongs to each source.

use counterfoil_middleware::PrincipalFault;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

/// The longest credential, in bytes.
const BYTES_MAX: usize = 8 * 1024;

/// RFC 6750 section 3 asks for a parameter, and for an error where a token came.
const MISSING: &str = "Bearer realm=\"counterfoil\"";
const REFUSED: &str = "Bearer realm=\"counterfoil\", error=\"invalid_token\"";

/// The credential that `name` brings: a bearer token in `authorization`, the whole value elsewhere.
pub(super) fn credential<'p>(parts: &'p Parts, name: &HeaderName) -> Result<&'p str, PrincipalFault> {
    let missing = |detail| fault(name, detail, MISSING);
    let mut lines = parts.headers.get_all(name).iter();
    let line = lines.next().ok_or_else(|| missing(format!("send a credential in the header {name}")))?;
    // Two lines could be one of the caller and one of somebody in between: nobody can tell which.
    if lines.next().is_some() {
        return Err(missing(format!("the header {name} came more than once")));
    }
    let text = line.to_str().map_err(|_| missing(format!("the header {name} is not ASCII")))?.trim();
    let token = if *name == header::AUTHORIZATION {
        let bearer = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        bearer.map(|(_, token)| token.trim_start()).ok_or_else(|| missing("send a bearer token".to_owned()))?
    } else {
        text
    };
    if token.is_empty() || token.len() > BYTES_MAX || token.contains([' ', '\t']) {
        return Err(refused(name, "the credential cannot be read"));
    }
    Ok(token)
}

/// The credential names nobody.
pub(super) fn refused(name: &HeaderName, why: &str) -> PrincipalFault {
    fault(name, why.to_owned(), REFUSED)
}

fn fault(name: &HeaderName, detail: String, challenge: &'static str) -> PrincipalFault {
    let challenge = (*name == header::AUTHORIZATION).then(|| HeaderValue::from_static(challenge));
    PrincipalFault::Unauthenticated { detail, challenge }
}

#[cfg(test)]
mod tests;
