//! The contract suite on the stores of this crate, and on stores with planted faults, which it must refuse by the
//! right case. What the suite asks is in `counterfoil_store::contract`.

use std::collections::BTreeSet;

use counterfoil_store::contract::planted::{Fault, Planted};
use counterfoil_store::contract::{InMemory, Maker, Report, check, names};

/// A maker's stores hold in every case except those that it cannot be put through.
pub(crate) async fn must_hold(make: &dyn Maker, not_applicable: &[&str]) {
    let Report { holds, not_applicable: found } = check(make).await.unwrap_or_else(|violations| {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        panic!("{} violations:\n{}", told.len(), told.join("\n"))
    });
    let found: Vec<&str> = found.into_iter().map(|(case, _)| case).collect();
    assert_eq!(found, not_applicable, "cases that are not applicable");
    assert_eq!(holds.len() + found.len(), names().count());
}

/// How often a planted fault may be looked for.
const ROUNDS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_holds() {
    must_hold(&InMemory, &["reopened-store-remembers", "damage-is-no-absence"]).await;
}

#[tokio::test]
async fn memory_holds_on_one_thread() {
    must_hold(&InMemory, &["reopened-store-remembers", "damage-is-no-absence"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_with_planted_faults_are_refused_by_the_right_cases() {
    must_hold(&Planted(Fault::None), &[]).await;
    for (fault, cases) in Fault::REFUSED_BY.iter().skip(1) {
        // Some faults show only in a race that comes about: they get as many.
        let mut refusing: BTreeSet<&str> = BTreeSet::new();
        for _ in 0..ROUNDS {
            let violations = check(&Planted(*fault)).await.expect_err(&format!("{fault:?} was not refused"));
            refusing.extend(violations.iter().map(|violation| violation.case));
            if cases.iter().all(|case| refusing.contains(case)) {
                break;
            }
        }
        for case in *cases {
            assert!(refusing.contains(case), "{fault:?} must be refused by {case}, and was by {refusing:?}");
        }
    }
}

#[test]
fn every_case_refuses_a_planted_fault() {
    let refusing: BTreeSet<&str> = Fault::REFUSED_BY.iter().flat_map(|(_, cases)| *cases).copied().collect();
    assert_eq!(refusing, names().collect::<BTreeSet<&str>>());
}
