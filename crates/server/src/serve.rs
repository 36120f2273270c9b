//! Puts the parts together and runs them: store, gate, guard, proxy, two listeners, sweeps; and stops them in order.
//!
//! Signals belong to whoever owns the process.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use counterfoil_middleware::{Body, CONTRACT_PATH, Drained, Guard, GuardLayer};
use counterfoil_store::Gate;
use counterfoil_store::seam::About;
use http::{Request, Response};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::admin::Admin;
use crate::answer::{broken_body, late_body, unanswered};
use crate::config::{Config, Listen};
use crate::error::ServerError;
use crate::listener::{Arrival, Bounds, Listener, stopped};
use crate::principal::Callers;
use crate::proxy::Proxy;
use crate::reload::Reload;
use crate::store::Store;
use crate::tls::Acceptor;
use crate::{guard, numbers, principal, sweep};

/// The most connections of the admin listener.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// How long answers under way may still take once nothing runs, at least.
const LAST_ANSWERS_MIN: Duration = Duration::from_secs(1);
/// The pause between two upkeeps of the numbers.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// A server that listens and is not running yet.
pub struct Server {
    store: Store,
    layer: GuardLayer,
    proxy: Proxy,
    listener: Listener,
    admin_listener: Listener,
    prometheus: PrometheusHandle,
    reload: Reload,
    config: Config,
}

impl Server {
    /// Opens the store and binds both listeners.
    ///
    /// # Errors
    /// [`ServerError`], with the next step.
    pub async fn start(config: Config) -> Result<Self, ServerError> {
        let store = Store::open_to_serve(&config.store, &config.limits).await?;
        Self::start_on(store, config).await
    }

    /// Takes a store that is open, whatever the configuration names, and binds both listeners.
    ///
    /// # Errors
    /// [`ServerError`], with the next step.
    pub async fn start_on(store: Store, config: Config) -> Result<Self, ServerError> {
        let prometheus = numbers::recorder();
        if !store.records().takes_permits() && guard::couples(&config) {
            return Err(ServerError::Coupled);
        }
        let about = store.records().about().await?;
        let callers = Callers::new(&config)?;
        callers.warm();
        let layer = guard::layer(Gate::new(store.records().clone())?, &config, callers.principal)?;
        let limits = &config.limits;
        let proxy = Proxy::new(&config)?;
        let tls = config.tls.as_ref().map(|tls| Acceptor::new(&tls.value)).transpose()?;
        let reload = Reload::new(config.clone(), tls.clone(), callers.reread);
        let bounds = Bounds::new(limits, limits.connections.value, tls);
        let listener = Listener::bind(&config.listen.value, bounds).await?;
        let bounds = Bounds::new(limits, ADMIN_CONNECTIONS_MAX, None);
        let admin_listener = Listener::bind(&config.admin.value, bounds).await?;
        let server = Self { store, layer, proxy, listener, admin_listener, prometheus, reload, config };
        server.tell(&about);
        Ok(server)
    }

    /// Where the proxy listens.
    #[must_use]
    pub const fn address(&self) -> &Listen {
        self.listener.place()
    }

    /// Where the admin listener listens.
    #[must_use]
    pub const fn admin_address(&self) -> &Listen {
        self.admin_listener.place()
    }

    /// What reads certificates and keys anew while this server runs.
    #[must_use]
    pub fn reload(&self) -> Reload {
        self.reload.clone()
    }

    /// What and where, said once at the start.
    fn tell(&self, about: &About) {
        let oldest =
            about.oldest_at.map_or_else(|| "none".to_owned(), |at| about.now.at.since(at).as_secs().to_string());
        tracing::info!(
            place = %about.place,
            id = %about.id,
            records = about.records,
            oldest_age_s = %oldest,
            in_doubt = about.unknown,
            "the store"
        );
        if let Some(before) = about.quarantine_before {
            tracing::warn!(
                before_ms = before.as_millis(),
                "the store is in quarantine: older and undatable keys do not run"
            );
        }
        principal::tell(&self.config);
        let mut listed = 0;
        for (pattern, operation, key_required) in self.layer.operations() {
            listed += 1;
            tracing::info!(pattern, operation, key_required, "guarded");
        }
        if listed == 0 {
            tracing::info!("guarded: every POST and PATCH that carries an Idempotency-Key, named by method and path");
        }
        if let Some(tls) = &self.config.tls {
            tracing::info!(certificate = %tls.value.certificate.display(), "callers are spoken to over TLS");
        }
        if self.config.publish_contract.value {
            tracing::info!(path = CONTRACT_PATH, "the contract is published, to everybody");
        }
        tracing::info!(listen = %self.address(), admin = %self.admin_address(), upstream = %self.config.upstream.value, "listening");
    }

    /// Serves until `stop` is ready, then stops in order: nothing new is claimed, what runs may end within the
    /// configured span, what is left is put in doubt, and the answers under way go out.
    ///
    /// Dropping the future ends everything at once: leases of what ran are ended by the next start on the same store.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Drained {
        let (stop_all, stopping) = watch::channel(false);
        let (stop_listening, listening) = watch::channel(false);
        let (stop_admin, admin_listening) = watch::channel(false);
        let drain = self.layer.drain();
        let admin_token = if self.admin_address().is_local() { None } else { self.config.admin_token };
        let records = self.store.records().clone();
        let admin = Admin::new(records.clone(), drain.clone(), stopping.clone(), self.prometheus.clone(), admin_token);
        let admin = service_fn(move |request: Request<Body>| admin.clone().answer(request));
        let guarded = self.layer.layer(self.proxy);
        let guarded = service_fn(move |request: Request<Body>| answer(guarded.clone(), request));

        let mut tasks = JoinSet::new();
        let limits = &self.config.limits;
        tasks.spawn(sweep::run(records, limits.sweep_rows.value, limits.sweep_every.value, stopping.clone()));
        tasks.spawn(upkeep(self.prometheus, stopping));
        let mut listener = tokio::spawn(self.listener.run(guarded, listening));
        let admin_listener = tokio::spawn(self.admin_listener.run(admin, admin_listening));
        stop.await;
        // The receivers live in the tasks above; whoever is gone needs no order.
        stop_all.send_replace(true);
        let until = Instant::now() + limits.drain.value;
        tracing::info!(running = drain.working(), "stopping: nothing new is claimed");
        let drained = drain.drain(limits.drain.value).await;
        stop_listening.send_replace(true);
        let until = until.max(Instant::now() + LAST_ANSWERS_MIN);
        if tokio::time::timeout_at(until, &mut listener).await.is_err() {
            tracing::warn!("connections that did not end were cut off");
            listener.abort();
        }
        stop_admin.send_replace(true);
        admin_listener.abort();
        tasks.join_all().await;
        self.store.close().await;
        tracing::info!(doubted = drained.doubted, abandoned = drained.abandoned, "stopped");
        drained
    }
}

/// The guard's answer, or ours where a body was late, or an unguarded request met no upstream.
async fn answer(guarded: Guard<Proxy>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let fate = request.extensions().get::<Arrival>().map(|arrival| arrival.fate.clone()).unwrap_or_default();
    match guarded.oneshot(request).await {
        // A guarded body is read before anything is claimed.
        Ok(_) if fate.is_late() && !fate.is_streaming() => Ok(late_body()),
        Ok(answer) => Ok(answer),
        Err(_) if fate.is_late() => Ok(late_body()),
        Err(_) if fate.is_broken() => Ok(broken_body()),
        Err(fault) => {
            tracing::warn!(%fault, "an unguarded request was not answered");
            Ok(unanswered(&fault))
        }
    }
}

/// Lets the recorder drop what is old, so that a process that nobody asks does not grow.
async fn upkeep(prometheus: PrometheusHandle, mut stop: watch::Receiver<bool>) {
    let mut timer = tokio::time::interval(UPKEEP_EVERY);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            _ = timer.tick() => prometheus.run_upkeep(),
        }
    }
}
