//! From the configuration to the middleware's settings. What they mean belongs to the middleware.

use std::sync::Arc;

use counterfoil_core::policy::{Answerer, Remember};
use counterfoil_core::{Effect, Operation, Policy};
use counterfoil_middleware::{Cors, GuardLayer, KeyNeed, OperationRule, Pattern, Principal, Settings, Terms, Unlisted};
use counterfoil_store::{Gate, MemoryStore};

use crate::config::Config;
use crate::error::ServerError;
use crate::principal::Callers;
use crate::proxy::Proxy;

/// Makes the guard and the way to the upstream that `config` describes, over a memory of its own, and throws them away:
/// what the middleware refuses, and files of certificates that are of no use, are told without a store or a listener.
///
/// # Errors
/// What [`Server::start`](crate::Server::start) would say of the settings.
pub fn check(config: &Config) -> Result<(), ServerError> {
    config.tls.as_ref().map(|tls| crate::tls::acceptor(&tls.value)).transpose()?;
    Proxy::new(config)?;
    let callers = Callers::new(config)?;
    layer(Gate::new(Arc::new(MemoryStore::new()))?, config, callers.principal).map(|_| ())
}

/// Whether any operation is coupled.
pub(crate) fn couples(config: &Config) -> bool {
    let listed = config.operations.iter().map(|operation| &operation.terms);
    listed.chain([&config.defaults]).any(|terms| terms.effect.value == Effect::Coupled)
}

pub(crate) fn layer(gate: Gate, config: &Config, principal: Arc<dyn Principal>) -> Result<GuardLayer, ServerError> {
    let operations = config.operations.iter().map(operation).collect::<Result<Vec<_>, _>>()?;
    let unlisted = if operations.is_empty() {
        Unlisted::GuardKeyed(Box::new(terms(&config.defaults)))
    } else {
        Unlisted::PassThrough
    };
    let settings = Settings {
        principal,
        operations,
        unlisted,
        publish_contract: config.publish_contract.value,
        answerer: Answerer::Upstream,
        repeatability: config.repeatability.value,
        cors: Cors { origins: config.cors.origins.value.clone(), credentials: config.cors.credentials.value },
        replayed_headers: config.replay_headers.value.clone(),
        request_body_max: config.limits.request_body_max.value,
        kept_answer_max: config.limits.kept_answer_max.value,
        running_max: config.limits.max_running.value,
        waiters_per_key_max: config.limits.waiting_for_one.value,
        waiters_max: config.limits.waiting_in_all.value,
    };
    Ok(GuardLayer::new(gate, settings)?)
}

fn operation(operation: &crate::config::Operation) -> Result<OperationRule, ServerError> {
    let pattern: Pattern = format!("{} {}", operation.method, operation.path).parse()?;
    let key = if operation.key_required.value { KeyNeed::Required } else { KeyNeed::Optional };
    let name = Some(Operation::new(operation.name.as_str())?);
    Ok(OperationRule { name, pattern, key, terms: terms(&operation.terms) })
}

fn terms(terms: &crate::config::Terms) -> Terms {
    Terms {
        policy: Policy {
            lease: terms.lease.value,
            attempt_limit: terms.handler.value,
            retention: terms.retention.value,
            expiry: terms.expired.value,
            effect: terms.effect.value,
            window: terms.window.value.unwrap_or_default(),
        },
        rule: terms.fingerprint.value.clone(),
        hold: terms.hold.value,
        age_max: terms.max_age.value,
        remember: Remember {
            not_processed: terms.not_processed.value.clone(),
            in_progress: terms.in_progress.value.clone(),
        },
        child_key: terms.child_key.value.clone(),
        duplicates: terms.duplicates.value,
        statuses: terms.statuses.value.clone(),
    }
}

#[cfg(test)]
mod tests;
