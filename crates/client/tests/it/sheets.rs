//! A contract sheet of the probe, read as a profile. What the probe writes is tried in the checks.

use counterfoil_client::profiles;
use counterfoil_core::profile::{Carrier, Encoding, Meaning};

/// A sheet with these fields, each measured on one day.
fn sheet(fields: &[(&str, &str)]) -> String {
    let mut text = "format = 1\ntarget = \"http://Api.Example:8787/orders?a=1\"\ncontract = \"ietf\"\n".to_owned();
    for (field, value) in fields {
        text += &format!("[field.{field}]\nvalue = {value}\nsource = \"measured\"\ndate = \"2026-12-01\"\n");
        text += "observations = 1\nfrom = \"seq/one-effect\"\n";
    }
    text
}

const REPLAYS: (&str, &str) = ("replay.is", "\"replay\"");
const HEADER: (&str, &str) = ("key.place", "\"header:idempotency-key\"");

#[test]
fn what_was_seen_is_taken_and_nothing_else() {
    let least = profiles::parse(&sheet(&[REPLAYS, HEADER])).unwrap();
    assert_eq!((least.id.as_str(), least.version), ("api-example-8787", 1));
    assert_eq!((least.sources[0].checked.as_str(), least.window, least.marker), ("2026-12-01", None, None));
    assert_eq!(least.answers.len(), 1, "{:?}", least.answers);

    let fields = [
        REPLAYS,
        HEADER,
        ("key.quoted", "true"),
        ("key.longest", "64"),
        ("replay.marker", "\"idempotent-replayed: true\""),
        ("in_progress.status", "409"),
        ("mismatch.status", "422"),
        ("retention.span", "\"24h\""),
    ];
    let whole = profiles::parse(&sheet(&fields)).unwrap();
    let Carrier::Header { name, encoding, .. } = &whole.key.carrier else { panic!("{:?}", whole.key.carrier) };
    assert_eq!((name.as_str(), *encoding), ("idempotency-key", Encoding::Quoted));
    assert_eq!(whole.key.bytes_max, 64);
    assert_eq!(whole.window.unwrap().span.unwrap().as_secs(), 24 * 3600);
    assert_eq!(whole.marker.unwrap().header, "idempotent-replayed");
    let means: Vec<Meaning> = whole.answers.iter().map(|rule| rule.means).collect();
    assert_eq!(means, [Meaning::InProgress, Meaning::Refused, Meaning::Success]);
}

#[test]
fn keys_stand_where_the_probe_put_them() {
    let member = profiles::parse(&sheet(&[REPLAYS, ("key.place", "\"body:idempotency_key\"")])).unwrap();
    assert_eq!(member.key.carrier, Carrier::Member("idempotency_key".to_owned()));
    let parameter = profiles::parse(&sheet(&[REPLAYS, ("key.place", "\"query:ClientToken\"")])).unwrap();
    assert_eq!(parameter.key.carrier, Carrier::Parameter("ClientToken".to_owned()));
}

/// One status for both tells neither.
#[test]
fn a_status_with_two_meanings_has_none() {
    let both = sheet(&[REPLAYS, HEADER, ("in_progress.status", "409"), ("mismatch.status", "409")]);
    assert_eq!(profiles::parse(&both).unwrap().answers.len(), 1);
}

#[test]
fn what_is_no_promise_is_no_profile() {
    for (text, part) in [
        (sheet(&[("replay.is", "\"new-effect\""), HEADER]), "field.replay.is: the target was not seen to keep keys"),
        (sheet(&[HEADER]), "field.replay.is"),
        (sheet(&[REPLAYS]), "field.key.place: missing"),
        (sheet(&[REPLAYS, HEADER]).replace("format = 1", "format = 2"), "format: it is not 1"),
    ] {
        let complaints = profiles::parse(&text).unwrap_err().to_string();
        assert!(complaints.contains(part), "{complaints}");
    }
}
