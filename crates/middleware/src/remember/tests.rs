//! What a service's error says, whatever box it comes in.
//! What answers say is tested over the whole layer, in `tests/it`.

use std::convert::Infallible;

use super::Failed;
use crate::body::BoxError;
use crate::fault::Fault;
use crate::reject::Doubt;

fn check<E: std::fmt::Display + 'static>(error: E, expected: Option<Doubt>) {
    let text = error.to_string();
    assert_eq!(Failed::error(error).doubt(), expected, "{text}");
}

#[test]
fn a_fault_is_seen_through_its_box() {
    let not_sent = || Fault::NotSent("refused".to_owned());
    check(not_sent(), None);
    check(BoxError::from(not_sent()), None);
    check(Fault::TimedOut("slow".to_owned()), Some(Doubt::TimedOut));
    check(BoxError::from(Fault::TimedOut("slow".to_owned())), Some(Doubt::TimedOut));
    check(BoxError::from("anything"), Some(Doubt::Broken));
    check(std::io::Error::other("anything"), Some(Doubt::Broken));
    check("anything", Some(Doubt::Broken));
    let never: fn(Infallible) -> Failed = Failed::error;
    let _ = never;
}
