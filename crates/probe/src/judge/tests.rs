//! From evidence to a verdict, as a table.

use super::{Evidence, judge};
use crate::case::{Case, Contract, Otherwise};
use crate::fact::{Seen, Value};
use crate::lack::Lack;
use crate::verdict::{Severity, Verdict};

const CASE: &str = r#"
id = "x/y"
row = "X1"
asks = "?"
kind = "required"
clause = "none"
observer = 1
effects = 1
answer = "status"
steps = []
facts = { effects = { see = "effects" }, status = { see = "status", of = "a" } }
ietf = [
  { severity = "minor", any = [{ status = [409] }, { status = ["2xx"], effects = [1] }] },
  { severity = "critical", any = [{ effects = [1] }] },
]
"#;

fn check(contract: Contract, effects: Seen, status: &[u64], change: impl FnOnce(&mut Evidence), wanted: Verdict) {
    let case: Case = toml::from_str(CASE).unwrap();
    let status = Seen::Values(status.iter().map(|status| Value::Number(*status)).collect());
    let facts = [("effects".to_owned(), effects), ("status".to_owned(), status)].into();
    let mut evidence = Evidence { facts, ..Evidence::default() };
    change(&mut evidence);
    let found = judge(&case, contract, &evidence);
    assert_eq!(found.verdict, wanted, "{found:?}");
}

fn effects(counts: &[u64]) -> Seen {
    Seen::Values(counts.iter().map(|count| Value::Number(*count)).collect())
}

#[test]
fn rules_of_the_contract() {
    use Contract::Ietf;
    check(Ietf, effects(&[1, 1]), &[201, 200], |_| (), Verdict::Conforms);
    check(Ietf, effects(&[1]), &[409], |_| (), Verdict::Conforms);
    check(Ietf, effects(&[1]), &[500], |_| (), Verdict::Deviates(Severity::Minor));
    check(Ietf, effects(&[1, 2]), &[500], |_| (), Verdict::Deviates(Severity::Critical));
    let blind = || Seen::Unobservable("blind".to_owned());
    check(Ietf, blind(), &[409], |_| (), Verdict::Unobservable);
    check(Ietf, blind(), &[500], |_| (), Verdict::Deviates(Severity::Minor));
    check(Ietf, Seen::NotReached("no".to_owned()), &[409], |_| (), Verdict::Inconclusive);
}

#[test]
fn what_stands_before_the_rules() {
    use Contract::Ietf;
    let race = |reached| move |evidence: &mut Evidence| evidence.overlapped = Some(reached);
    check(Ietf, effects(&[1]), &[409], race(false), Verdict::Inconclusive);
    check(Ietf, effects(&[1]), &[409], race(true), Verdict::Conforms);
    check(Ietf, effects(&[2]), &[409], race(false), Verdict::Deviates(Severity::Critical));
    let unmet = |otherwise| move |evidence: &mut Evidence| evidence.unmet = Some((otherwise, String::new()));
    check(Ietf, effects(&[2]), &[500], unmet(Otherwise::SetupFailed), Verdict::SetupFailed);
    check(Ietf, effects(&[2]), &[500], unmet(Otherwise::Inconclusive), Verdict::Inconclusive);
    check(Ietf, effects(&[9]), &[201], |evidence| evidence.retried = Some(String::new()), Verdict::IntermediaryRetried);
    check(Ietf, effects(&[2]), &[201], |evidence| evidence.disturbed = Some(String::new()), Verdict::Inconclusive);
    check(Ietf, effects(&[2]), &[201], |evidence| evidence.lack = Some("".into()), Verdict::Unobservable);
    check(Ietf, effects(&[2]), &[201], |evidence| evidence.lack = Some(Lack::void("")), Verdict::NotApplicable);
}

#[test]
fn a_silent_contract_asks_only() {
    check(Contract::Ec2, effects(&[7]), &[201, 409], |_| (), Verdict::Value);
    let truth = |truth| {
        move |evidence: &mut Evidence| {
            evidence.facts.insert("status".to_owned(), Seen::Values(vec![Value::Truth(truth)]));
        }
    };
    check(Contract::Ec2, effects(&[7]), &[], truth(true), Verdict::Yes);
    check(Contract::Ec2, effects(&[7]), &[], truth(false), Verdict::No);
    check(Contract::Ec2, effects(&[7]), &[], |_| (), Verdict::Inconclusive);
}
