//! Answers of our own outside the guard: what an unguarded request meets when the upstream fails, and plain texts of
//! the admin listener. Answers to guarded requests belong to the middleware.

use counterfoil_core::wire::{PROBLEM_MEDIA_TYPE, Problem, ProblemType};
use counterfoil_middleware::{Body, Fault};
use http::{HeaderValue, Response, StatusCode, header};

/// The answer to an unguarded request that the upstream did not answer.
pub(crate) fn unanswered(fault: &Fault) -> Response<Body> {
    let (status, detail) = match fault {
        Fault::NotSent(_) => {
            let problem = Problem::new(ProblemType::UpstreamUnreachable, "nothing was sent");
            return document(StatusCode::BAD_GATEWAY, problem.to_json());
        }
        Fault::TimedOut(_) => (StatusCode::GATEWAY_TIMEOUT, "no answer came in time"),
        Fault::Broken(_) => (StatusCode::BAD_GATEWAY, "the upstream broke off; this request was not guarded"),
    };
    plain(status, detail)
}

/// The answer to a request whose body did not come in time (RFC 9110 section 15.5.9). Nothing was claimed for it.
pub(crate) fn late_body() -> Response<Body> {
    closing(plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time; nothing was run"))
}

/// The answer to an unguarded request whose body broke off or was none.
pub(crate) fn broken_body() -> Response<Body> {
    closing(plain(StatusCode::BAD_REQUEST, "the body broke off"))
}

/// The answer to a CONNECT (RFC 9110 section 9.3.6).
pub(crate) fn no_tunnels() -> Response<Body> {
    let detail = "tunnels (CONNECT) are not carried; open a WebSocket by an upgrade of HTTP/1.1";
    closing(document(StatusCode::NOT_IMPLEMENTED, Problem::new(ProblemType::NotSupported, detail).to_json()))
}

/// The last answer on its connection.
fn closing(mut answer: Response<Body>) -> Response<Body> {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// A problem of HTTP's own, without a type of ours.
fn plain(status: StatusCode, detail: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or_default();
    let json = serde_json::json!({
        "type": "about:blank",
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
    });
    document(status, json.to_string().into_bytes())
}

fn document(status: StatusCode, json: Vec<u8>) -> Response<Body> {
    typed(status, PROBLEM_MEDIA_TYPE, json)
}

/// An answer of one media type.
pub(crate) fn typed(status: StatusCode, media_type: &'static str, body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}
