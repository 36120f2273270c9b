//! What the demo shows, in order: a created order, its replay, a conflict, and an order in doubt that is settled.

use std::path::{Path, PathBuf};
use std::time::Duration;

use counterfoil_server::Server;
use counterfoil_server::config::StorePlace;

use super::client::{Order, send};
use super::{Stage, orders};
use crate::args::{List, Place, Receipts, Resolve, StateName, Version};
use crate::error::CliError;
use crate::print;
use crate::receipts;
use crate::serve::{Signals, serve};

const TEA: Order = Order { key: "demo-1", body: r#"{"product":"tea","quantity":2}"# };
const MORE_TEA: Order = Order { key: "demo-1", body: r#"{"product":"tea","quantity":3}"# };
const SLOW: Order = Order { key: "demo-2", body: r#"{"product":"slow"}"# };

/// The slow order's version once it is in doubt: claimed, then doubted.
const VERSION: u64 = 2;
/// The settled order, as the API would have answered it.
const RESULT: &str = r#"{"status":201,"headers":[["content-type","application/json"],["location","/orders/2"]],"body":"{\"id\":2,\"product\":\"slow\",\"quantity\":1}\n"}"#;
const WHO: &str = "you";
const WHY: &str = "order 2 is in the API";
/// How long the tour waits for an owner that might still run, in all.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes the operator's result down, and answers where.
pub(super) fn result(stage: &Stage) -> Result<PathBuf, CliError> {
    let path = stage.folder.join("result.json");
    let written = std::fs::write(&path, format!("{RESULT}\n"));
    written.map_err(|error| CliError::Internal(format!("{} cannot be written: {error}", path.display())))?;
    Ok(path)
}

fn curl(stage: &Stage, order: Order) -> String {
    format!(
        "curl -i http://{}/orders -H 'Idempotency-Key: {}' -H 'Content-Type: application/json' -d '{}'",
        stage.proxy, order.key, order.body
    )
}

/// The command as it was started, so that the lines can be pasted.
fn command() -> String {
    std::env::args_os().next().map_or_else(|| "counterfoil".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn store(stage: &Stage) -> StorePlace {
    StorePlace::Sqlite(stage.folder.join("receipts.db"))
}

fn list_line(stage: &Stage) -> String {
    format!("{} receipts list --store {} --state unknown", command(), store(stage))
}

fn resolve_line(stage: &Stage, result: &Path) -> String {
    format!(
        "{} receipts resolve --store {} {} --version {VERSION} --happened {} --who {WHO} --why '{WHY}'",
        command(),
        store(stage),
        SLOW.key,
        result.display()
    )
}

/// Everything to try.
pub(super) fn lines(stage: &Stage, result: &Path) -> String {
    let (tea, more, slow) = (curl(stage, TEA), curl(stage, MORE_TEA), curl(stage, SLOW));
    format!(
        "An orders API that knows nothing of keys listens on {api}, and counterfoil guards it on {proxy}.\n\
         Receipts are kept in {store}, which is removed with the demo.\n\n\
         1. An order is created; sent again, it is not a second order but the same answer (idempotent-replayed: true):\n\n  {tea}\n\n\
         2. The same key with another quantity is a conflict (422), and replaces nothing:\n\n  {more}\n\n\
         3. The API takes the order for \"{product}\" and never answers. After 2 s it is in doubt (504); sent again, it is not\n   \
         repeated (409), because nobody knows whether it happened:\n\n  {slow}\n\n\
         4. The operator sees it, finds order 2 in the API, and settles it 7 s after it was sent or later; sent again, it is then replayed:\n\n  \
         {list}\n  {command} receipts show --store {store} {key}\n  curl http://{proxy}/orders\n  {resolve}\n\n\
         Health and numbers: curl http://{admin}/readyz and http://{admin}/metrics. Ctrl-C ends the demo.",
        api = stage.api,
        proxy = stage.proxy,
        admin = stage.admin,
        store = store(stage),
        command = command(),
        key = SLOW.key,
        product = orders::SLOW,
        list = list_line(stage),
        resolve = resolve_line(stage, result),
    )
}

/// Runs every line once and shows what it answers.
pub(super) async fn once(server: Server, stage: &Stage, signals: &mut Signals) -> Result<(), CliError> {
    tokio::select! {
        ended = serve(server, signals) => ended,
        shown = show(stage) => shown,
    }
}

async fn show(stage: &Stage) -> Result<(), CliError> {
    let list = format!("curl -i http://{}/orders", stage.proxy);
    for order in [TEA, TEA, MORE_TEA, SLOW, SLOW] {
        step(&curl(stage, order), &send(stage.proxy, Some(order)).await?);
    }
    step(&list, &send(stage.proxy, None).await?);
    print::human(&format!("$ {}", list_line(stage)));
    receipts::run(Receipts::List(List {
        place: place(stage),
        state: vec![StateName::Unknown],
        older_than: None,
        limit: 10,
        show_key: false,
        json: false,
    }))
    .await?;
    print::human(&format!("\n$ {}", resolve_line(stage, &stage.folder.join("result.json"))));
    settle(stage).await?;
    print::human("");
    step(&curl(stage, SLOW), &send(stage.proxy, Some(SLOW)).await?);
    step(&list, &send(stage.proxy, None).await?);
    Ok(())
}

fn step(line: &str, answer: &str) {
    print::human(&format!("$ {line}\n{answer}"));
}

fn place(stage: &Stage) -> Place {
    Place { store: Some(store(stage)), config: None }
}

/// Settles the slow order; while its owner might still run, that is refused and tried again.
async fn settle(stage: &Stage) -> Result<(), CliError> {
    let until = tokio::time::Instant::now() + PATIENCE;
    let mut told = false;
    loop {
        let resolve = Resolve {
            place: place(stage),
            key_or_digest: SLOW.key.to_owned(),
            version: Version { number: VERSION, lease: None },
            happened: Some(stage.folder.join("result.json")),
            did_not_happen: false,
            send_anew: false,
            who: WHO.to_owned(),
            why: WHY.to_owned(),
            owner_stopped: false,
            retention: None,
        };
        match receipts::run(Receipts::Resolve(Box::new(resolve))).await {
            Err(CliError::Refused(why)) if tokio::time::Instant::now() < until => {
                if !told {
                    print::human(&format!("counterfoil: {why}"));
                    told = true;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            ended => return ended,
        }
    }
}
