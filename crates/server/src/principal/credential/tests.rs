//! Where a credential stands, by table.

use counterfoil_middleware::PrincipalFault;
use http::Request;

use super::{MISSING, REFUSED, credential};

#[track_caller]
fn check(name: &str, lines: &[&str], expected: Result<&str, (&str, Option<&str>)>) {
    let mut request = Request::new(());
    let name = name.parse().unwrap();
    for line in lines {
        request.headers_mut().append(&name, http::HeaderValue::from_bytes(line.as_bytes()).unwrap());
    }
    let parts = request.into_parts().0;
    let found = match credential(&parts, &name) {
        Ok(found) => Ok(found),
        Err(PrincipalFault::Unauthenticated { detail, challenge }) => {
            Err((detail, challenge.map(|challenge| challenge.to_str().unwrap().to_owned())))
        }
        Err(other) => panic!("{other:?}"),
    };
    let expected = expected.map_err(|(detail, challenge)| (detail.to_owned(), challenge.map(str::to_owned)));
    assert_eq!(found, expected, "{name} {lines:?}");
}

#[test]
fn credentials() {
    let long = "a".repeat(8193);
    let bearer = Err(("send a bearer token", Some(MISSING)));
    check("authorization", &["Bearer abc"], Ok("abc"));
    check("authorization", &["bearer   abc "], Ok("abc"));
    check("authorization", &[], Err(("send a credential in the header authorization", Some(MISSING))));
    check("authorization", &["abc"], bearer);
    check("authorization", &["Basic abc"], bearer);
    check("authorization", &["Bearer"], bearer);
    check("authorization", &["Bearerabc"], bearer);
    check("authorization", &["Bearer ab c"], Err(("the credential cannot be read", Some(REFUSED))));
    check("authorization", &[&format!("Bearer {long}")], Err(("the credential cannot be read", Some(REFUSED))));
    check("authorization", &["Bearer ä"], Err(("the header authorization is not ASCII", Some(MISSING))));
    check(
        "authorization",
        &["Bearer abc", "Bearer abc"],
        Err(("the header authorization came more than once", Some(MISSING))),
    );
    check("x-api-key", &["abc"], Ok("abc"));
    check("x-api-key", &["Bearer abc"], Err(("the credential cannot be read", None)));
    check("x-api-key", &[""], Err(("the credential cannot be read", None)));
    check("x-api-key", &[], Err(("send a credential in the header x-api-key", None)));
}
