//! The table against its golden file: status, headers and document of every rejection.
//! That a request meets the right one is tested over the whole layer, in `tests/it`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use counterfoil_core::action::Refused;
use counterfoil_core::wire::ProblemType;
use counterfoil_core::{Identity, Key, Operation, Scope, Timestamp, Why};
use counterfoil_store::ErrorKind;
use http::HeaderValue;
use http_body_util::BodyExt as _;

use super::{Doubt, Rejection, reject, statuses};
use crate::principal::PrincipalFault;
use crate::settings::Terms;

const GOLDEN: &str = "src/reject/answers.txt";

fn rejections() -> Vec<Rejection> {
    let challenge = Some(HeaderValue::from_static("Bearer"));
    let location = Some(HeaderValue::from_static("/orders/7"));
    let doubts = [
        Doubt::TimedOut,
        Doubt::Panicked,
        Doubt::Broken,
        Doubt::Truncated,
        Doubt::Stopped,
        Doubt::Answered { status: 503 },
        Doubt::Answered { status: 504 },
        Doubt::Unanswered,
        Doubt::AnsweredWithoutSettle,
    ];
    let kinds = [
        ErrorKind::Busy,
        ErrorKind::Unavailable,
        ErrorKind::Unknown,
        ErrorKind::Misuse,
        ErrorKind::Corrupt,
        ErrorKind::StoreNewer,
    ];
    let mut all = vec![
        Rejection::MissingKey,
        Rejection::MalformedKey(counterfoil_core::Error::KeyEmpty),
        Rejection::MalformedPath { why: "the path has an empty segment".to_owned() },
        Rejection::MalformedBody { why: "it broke off".to_owned() },
        Rejection::Upgrade,
        Rejection::BodyTooLarge { limit: 1024 },
        Rejection::Principal(PrincipalFault::Unauthenticated { detail: "send a token".to_owned(), challenge }),
        Rejection::Principal(PrincipalFault::Unauthenticated { detail: "no peer".to_owned(), challenge: None }),
        Rejection::Principal(PrincipalFault::Forbidden { detail: "this role may not do this".to_owned() }),
        Rejection::Principal(PrincipalFault::Unavailable { detail: "nobody answers".to_owned() }),
        Rejection::Mismatch,
        Rejection::InProgress { remaining: Duration::from_millis(1) },
        Rejection::InProgress { remaining: Duration::from_millis(12_001) },
        Rejection::InProgress { remaining: Duration::from_mins(9) },
        Rejection::Unknown { since: Timestamp::from_millis(1_700_000_000_000), why: Why::Lapsed },
        Rejection::Expired { until: Timestamp::from_millis(1_700_000_000_000) },
        Rejection::NotKept { status: 201, location },
        Rejection::NotKept { status: 200, location: None },
        Rejection::Late(Refused::OtherLease),
        Rejection::NotSent,
        Rejection::Unreadable,
        Rejection::TooManyWaiting,
        Rejection::TooManyRunning,
        Rejection::Stopping,
    ];
    all.extend(doubts.map(Rejection::Doubt));
    all.extend(kinds.map(Rejection::Store));
    all
}

async fn shown(rejection: &Rejection) -> String {
    let key = Key::new("secret-key").unwrap();
    let digest = Identity::new(Scope::single_tenant(), Operation::new("create-order").unwrap(), key).digest();
    let answer = reject(rejection, &Terms::default(), Some(digest));
    let mut text = format!("{rejection:?}\n{}\n", answer.status().as_u16());
    let mut lines: Vec<String> =
        answer.headers().iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap())).collect();
    lines.sort();
    lines.iter().for_each(|line| text.push_str(line));
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    writeln!(text, "{}\n", String::from_utf8(body.to_vec()).unwrap()).unwrap();
    text
}

/// `COUNTERFOIL_BLESS=1` rewrites the file. Clients are written against it.
#[tokio::test]
async fn every_answer_is_as_in_the_golden_file() {
    let mut found = String::new();
    for rejection in rejections() {
        found.push_str(&shown(&rejection).await);
    }
    assert!(!found.contains("secret-key"), "an answer shows the key");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    if std::env::var("COUNTERFOIL_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found, expected, "COUNTERFOIL_BLESS=1 rewrites {GOLDEN}");
}

#[test]
fn an_operation_overrides_a_status_but_not_that_of_its_own_doubt() {
    let statuses = BTreeMap::from([(ProblemType::Mismatch, 409), (ProblemType::OutcomeUnknown, 425)]);
    let terms = Terms { statuses, ..Terms::default() };
    let since = Timestamp::from_millis(0);
    let table = [
        (Rejection::Mismatch, 409),
        (Rejection::Unknown { since, why: Why::Doubted }, 425),
        (Rejection::Doubt(Doubt::TimedOut), 504),
        (Rejection::MissingKey, 400),
    ];
    for (rejection, expected) in table {
        assert_eq!(reject(&rejection, &terms, None).status().as_u16(), expected, "{rejection:?}");
    }
}

/// The published contract lists these; one that was missing would be an answer that nobody was told of.
#[test]
fn no_answer_has_a_status_that_is_not_told() {
    let overridden = ProblemType::ALL.into_iter().zip(430..).collect();
    let (first_sent, age_max) = (Timestamp::from_millis(0), Duration::from_secs(1));
    let unusual = [
        Rejection::MalformedCarrier { why: "send one of them" },
        Rejection::TooEarly,
        Rejection::TooOld { first_sent, age_max },
    ];
    let all: Vec<_> = rejections().into_iter().chain(unusual).collect();
    for terms in [Terms::default(), Terms { statuses: overridden, ..Terms::default() }] {
        for rejection in &all {
            let told = statuses(rejection.row().kind, &terms);
            let status = reject(rejection, &terms, None).status().as_u16();
            assert!(told.contains(&status), "{rejection:?} was answered with {status}, and told are {told:?}");
        }
    }
}
