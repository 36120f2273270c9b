//! Which connections and headers name a caller, by table.

use counterfoil_middleware::Peer;
use http::Request;

use super::HeaderPrincipal;
use crate::listener::{Arrival, Fate};

/// A request through the Unix socket.
const UNIX: Option<&str> = None;

fn check_of(peers: &[&str], peer: Option<&str>, lines: &[&str], expected: Result<&str, &str>) {
    let principal = HeaderPrincipal {
        name: "x-user".parse().unwrap(),
        peers: peers.iter().map(|peer| crate::config::Peer::parse(peer).unwrap()).collect(),
    };
    let mut request = Request::new(());
    let arrival = Arrival { secure: false, unix: peer == UNIX, fate: Fate::default() };
    request.extensions_mut().insert(arrival);
    if let Some(peer) = peer {
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    }
    for line in lines {
        request.headers_mut().append("x-user", line.parse().unwrap());
    }
    let found = principal.name(&request.into_parts().0).map_err(|fault| fault.to_string());
    let expected = expected.map(str::to_owned).map_err(str::to_owned);
    assert_eq!(found, expected, "{peer:?} {lines:?}");
}

fn check(peer: Option<&str>, lines: &[&str], expected: Result<&str, &str>) {
    check_of(&["10.0.0.0/8"], peer, lines, expected);
}

#[test]
fn callers() {
    let stranger = Err("the connection comes from no peer that may name the caller");
    check(Some("10.1.2.3:5"), &["alice"], Ok("alice"));
    check(Some("[::ffff:10.1.2.3]:5"), &[" alice "], Ok("alice"));
    check(Some("11.1.2.3:5"), &["alice"], stranger);
    check(Some("[::1]:5"), &["alice"], stranger);
    check(UNIX, &["alice"], stranger);
    check_of(&["unix"], UNIX, &["alice"], Ok("alice"));
    check_of(&["10.0.0.0/8", "unix"], UNIX, &["alice"], Ok("alice"));
    check_of(&["unix"], UNIX, &["alice", "bob"], Err("the header x-user came more than once"));
    check_of(&["unix"], Some("10.1.2.3:5"), &["alice"], stranger);
    check_of(&["0.0.0.0/0", "::/0"], UNIX, &["alice"], stranger);
    check(Some("10.1.2.3:5"), &[], Err("the header x-user is missing"));
    check(Some("10.1.2.3:5"), &["alice", "bob"], Err("the header x-user came more than once"));
    check(
        Some("10.1.2.3:5"),
        &[""],
        Err("the header x-user: the scope cannot be used: a part's value must have 1 to 1,024 bytes"),
    );
}
