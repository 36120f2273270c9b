//! The recorder of this process's metrics, made once. Names belong to whoever counts.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the handler's histogram, in seconds.
const SECONDS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];

/// The recorder's handle; the first call makes it the process's recorder.
pub(crate) fn recorder() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(make).clone()
}

fn make() -> PrometheusHandle {
    let named = Matcher::Full(counterfoil_middleware::metrics::HANDLER_SECONDS.to_owned());
    let builder = match PrometheusBuilder::new().set_buckets_for_metric(named, &SECONDS) {
        Ok(builder) => builder,
        Err(error) => {
            tracing::warn!(%error, "the handler's times are told as quantiles");
            PrometheusBuilder::new()
        }
    };
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("another recorder of metrics was there first: /metrics has nothing to tell");
    }
    handle
}
