//! `receipts resolve`: an operator's word on a record in doubt. When it is accepted belongs to `core::action`.

use std::time::Duration;

use counterfoil_core::action::{Confirmation, Refused, Verdict};
use counterfoil_core::{Expiry, Record};
use counterfoil_store::Gate;
use counterfoil_store::gate::Signed;
use counterfoil_store::seam::{Expected, Listed};

use super::{find, result, view};
use crate::args::{Resolve, Version};
use crate::error::CliError;
use crate::{instant, print, settings};

/// How long an operator's result is promised where nobody said otherwise.
const RETENTION: Duration = Duration::from_hours(24);

pub(super) async fn run(resolve: &Resolve) -> Result<(), CliError> {
    let receipt = resolve.happened.as_deref().map(result::read).transpose()?;
    let store = settings::open(&resolve.place).await?;
    let listed = find::find(&store, &resolve.key_or_digest).await?;
    let record = listed.record.as_ref().map_err(|error| CliError::Refused(error.to_string()))?;
    let expected = expected(record, &resolve.version)?;
    let (retention, expiry) = promised(resolve, &listed)?;
    let verdict = match receipt {
        Some(receipt) => Verdict::Happened { receipt, retention, expiry },
        None if resolve.send_anew => Verdict::SendAnew,
        None => Verdict::DidNotHappen,
    };
    let confirmed = if resolve.owner_stopped { Confirmation::OwnerStopped } else { Confirmation::None };
    let by = Signed { who: resolve.who.clone(), why: resolve.why.clone() };
    let gate = Gate::new(store.records().clone())?;
    let settled = gate.resolve(&listed.identity, expected, &verdict, confirmed, &by).await?;
    drop(gate);
    store.close().await;
    let digest = listed.identity.digest();
    settled.map_err(|refused| CliError::Refused(reason(refused, &digest.to_string())))?;
    match verdict {
        Verdict::Happened { receipt, .. } => print::human(&format!(
            "{digest}: it happened; a retry gets status {} for {}",
            receipt.status,
            counterfoil_server::config::print_span(retention)
        )),
        Verdict::DidNotHappen => print::human(&format!("{digest}: it did not happen; the next attempt runs")),
        Verdict::SendAnew => {
            print::human(&format!("{digest}: it did not happen; the next attempt runs with another child key"));
        }
    }
    Ok(())
}

/// The guard of the write: what the operator saw must be what stands.
fn expected(record: &Record, version: &Version) -> Result<Expected, CliError> {
    let lease = record.lease.id.to_string();
    let same_lease = version.lease.as_ref().is_none_or(|seen| lease.starts_with(seen.as_str()));
    if record.version != version.number || !same_lease {
        return Err(CliError::Refused(format!(
            "the record changed since you looked: it is at version {} now; see `counterfoil receipts show`",
            view::version(record)
        )));
    }
    Ok(Expected::record(record))
}

/// How long the result is promised and what answers after that: the flag, else the operation's configuration.
fn promised(resolve: &Resolve, listed: &Listed) -> Result<(Duration, Expiry), CliError> {
    let terms = settings::of_place(&resolve.place)?.map(|config| {
        let name = listed.identity.operation.as_str();
        let own = config.operations.into_iter().find(|operation| operation.name == name);
        own.map_or(config.defaults, |operation| operation.terms)
    });
    let configured = terms.as_ref().map(|terms| terms.retention.value);
    let retention = resolve.retention.or(configured).unwrap_or(RETENTION);
    if retention.is_zero() {
        return Err(CliError::Usage("--retention is zero: the result would be gone at once".to_owned()));
    }
    Ok((retention, terms.map_or(Expiry::NewAction, |terms| terms.expired.value)))
}

fn reason(refused: Refused, digest: &str) -> String {
    let why = match refused {
        Refused::Absent => "no record stands any more, so there is nothing to settle".to_owned(),
        Refused::OtherLease | Refused::Changed => {
            "the record changed while you settled it: look again with `counterfoil receipts show`".to_owned()
        }
        Refused::Done => "it is done already: its result stands and is not overwritten".to_owned(),
        Refused::SettledByOperator => "an operator has settled it already".to_owned(),
        Refused::Expired => "its receipt has expired, so there is nothing in doubt".to_owned(),
        Refused::Unknown => "its outcome is unknown, and this call cannot settle that".to_owned(),
        Refused::OwnerAlive { until } => format!(
            "its owner renewed the lease and may still run: stop the owner and say --owner-stopped, or wait until {}",
            instant::print(until)
        ),
        Refused::OwnerNotStopped => "\"did not happen\" must mean that it no longer can: stop or fence the owner and its workers, then say --owner-stopped"
            .to_owned(),
        Refused::WindowClosed => "the upstream may have forgotten its child key, so it is not sent again: say --send-anew, or --happened"
            .to_owned(),
        Refused::NotKeyed => "it runs without child keys: say --did-not-happen".to_owned(),
        Refused::MayStillArrive { until } => {
            format!("what the owner sent may still arrive: wait until {}, and look again", instant::print(until))
        }
    };
    format!("{digest}: {why}")
}
