//! The service in the layer of `axum-idempotent`, its receipts in the callers' sessions, and those in memory. It knows
//! only callers that have a session: `GET /session` gives one.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ruts::store::Ttl;
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, Session, SessionLayer};
use tower_cookies::CookieManagerLayer;

async fn begin(session: Session<MokaStore>) -> String {
    match Ttl::new(3600).map(|ttl| async move { session.set("begun", &true, ttl, None).await }) {
        Ok(begun) => format!("{:?}", begun.await.is_ok()),
        Err(_) => "no".to_owned(),
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let keys = IdempotentOptions::default().use_idempotency_key_header(Some("Idempotency-Key"), true).expire_after(600);
    let router: Router = counterfoil_bench_peers::orders()
        .layer(IdempotentLayer::<MokaStore>::new(keys))
        .route("/session", get(begin))
        .layer(
            SessionLayer::new(Arc::new(MokaStore::builder().build()))
                .with_cookie_options(CookieOptions::build().name("session").max_age(3600).path("/")),
        )
        .layer(CookieManagerLayer::new());
    counterfoil_bench_peers::serve(counterfoil_bench_peers::counted(router)).await
}
