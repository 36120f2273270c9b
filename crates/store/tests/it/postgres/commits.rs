//! What COMMIT refuses: transactions, savepoints and roles around `counterfoil.hold` and `counterfoil.settle`.
//! Which states they succeed in stands in `fence`.

use counterfoil_core::{Expiry, State};
use counterfoil_store::postgres::tokio_postgres::Client;
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::{Gate, Permit};

use super::fence::{application, coupled, granted};
use super::{Place, record};

/// A granted permit, and an application with a table of its own.
struct World {
    place: Place,
    store: std::sync::Arc<counterfoil_store::postgres::PostgresStore>,
    gate: Gate,
    permit: Box<Permit>,
    application: Client,
}

const TABLE: &str = "CREATE TABLE public.orders (id bigint GENERATED ALWAYS AS IDENTITY)";

async fn world() -> World {
    let place = Place::new().await;
    place.database.psql(&[TABLE]).unwrap();
    let store = place.open().await;
    let gate = Gate::new(store.clone()).unwrap();
    let permit = granted(&gate, "a", &coupled(Expiry::NewAction)).await;
    World { application: application(&place).await, place, store, gate, permit }
}

impl World {
    /// Runs statements one after the other, `$permit` being the permit's text, and answers what became of each: `ok`, a
    /// value, or the code of its error.
    async fn run(&self, statements: &[&str]) -> Vec<String> {
        let mut came = Vec::new();
        for statement in statements {
            let statement = statement
                .replace("EFFECT", "INSERT INTO public.orders DEFAULT VALUES")
                .replace("HOLD", "SELECT counterfoil.hold('$permit')")
                .replace("SETTLE", "SELECT counterfoil.settle('$permit', 201, NULL, NULL)")
                .replace("$permit", &self.permit.text());
            came.push(match self.application.simple_query(&statement).await {
                Err(error) => super::fence::code(&error),
                Ok(rows) => rows
                    .iter()
                    .find_map(|row| match row {
                        counterfoil_store::postgres::tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
                        _ => None,
                    })
                    .filter(|value| !value.is_empty())
                    .unwrap_or("ok")
                    .to_owned(),
            });
        }
        came
    }

    /// How many effects are committed, and whether the receipt is.
    async fn committed(&self) -> (String, bool) {
        let orders = self.place.database.psql(&["SELECT count(*) FROM public.orders"]).unwrap();
        let stands = record(self.store.as_ref(), "a").await;
        (orders, stands.is_some_and(|record| matches!(record.state, State::Done { .. })))
    }
}

/// Statements, what became of them, and how many effects and receipts stand in the end.
async fn check(statements: &[&str], came: &[&str], effects: &str, receipt: bool) {
    let world = world().await;
    assert_eq!(world.run(statements).await, came, "{statements:?}");
    assert_eq!(world.committed().await, (effects.to_owned(), receipt), "{statements:?}");
    assert_eq!(world.place.database.psql(&["SELECT count(*) FROM counterfoil.held"]).unwrap(), "0", "{statements:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_commits_settled_or_not_at_all() {
    check(&["BEGIN", "HOLD", "EFFECT", "SETTLE", "COMMIT"], &["ok", "t", "ok", "ok", "ok"], "1", true).await;
    check(&["BEGIN", "HOLD", "EFFECT", "COMMIT"], &["ok", "t", "ok", "CF004"], "0", false).await;
    check(&["BEGIN", "HOLD", "EFFECT", "ROLLBACK"], &["ok", "t", "ok", "ok"], "0", false).await;
    // Held again, also after it was settled: that is a second action of the same permit.
    check(&["BEGIN", "HOLD", "HOLD", "EFFECT", "SETTLE", "COMMIT"], &["ok", "t", "t", "ok", "ok", "ok"], "1", true)
        .await;
    check(&["BEGIN", "HOLD", "SETTLE", "HOLD", "COMMIT"], &["ok", "t", "ok", "f", "CF002"], "0", false).await;
    // Each statement alone is a transaction of its own.
    check(&["HOLD", "EFFECT"], &["CF004", "ok"], "1", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_alone_is_atomic_with_the_effect_too() {
    check(&["BEGIN", "EFFECT", "SETTLE", "COMMIT"], &["ok", "ok", "ok", "ok"], "1", true).await;
    check(&["BEGIN", "EFFECT", "SETTLE", "SETTLE"], &["ok", "ok", "ok", "CF002"], "0", false).await;
    // A forgotten settle without hold commits: nobody can know.
    check(&["BEGIN", "EFFECT", "COMMIT"], &["ok", "ok", "ok"], "1", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savepoints() {
    // A hold rolled back with its savepoint protects nothing: that is why it stands outside any.
    check(
        &["BEGIN", "SAVEPOINT s", "HOLD", "ROLLBACK TO s", "EFFECT", "COMMIT"],
        &["ok", "ok", "t", "ok", "ok", "ok"],
        "1",
        false,
    )
    .await;
    // Outside, it protects from a settle that was rolled back with one.
    check(
        &["BEGIN", "HOLD", "EFFECT", "SAVEPOINT s", "SETTLE", "ROLLBACK TO s", "COMMIT"],
        &["ok", "t", "ok", "ok", "ok", "ok", "CF004"],
        "0",
        false,
    )
    .await;
    // Settled in a savepoint that stays.
    check(
        &["BEGIN", "HOLD", "SAVEPOINT s", "EFFECT", "SETTLE", "RELEASE s", "COMMIT"],
        &["ok", "t", "ok", "ok", "ok", "ok", "ok"],
        "1",
        true,
    )
    .await;
    // A raise that a framework swallows.
    let bad = "SELECT counterfoil.settle('$permit', 99, NULL, NULL)";
    check(
        &["BEGIN", "HOLD", "EFFECT", "SAVEPOINT s", bad, "ROLLBACK TO s", "COMMIT"],
        &["ok", "t", "ok", "ok", "22023", "ok", "CF004"],
        "0",
        false,
    )
    .await;
    // Constraints looked at early, as some frameworks do: refused before the settle, fine after it.
    check(&["BEGIN", "HOLD", "SET CONSTRAINTS ALL IMMEDIATE"], &["ok", "t", "CF004"], "0", false).await;
    check(
        &[
            "BEGIN",
            "HOLD",
            "EFFECT",
            "SETTLE",
            "SET CONSTRAINTS ALL IMMEDIATE",
            "SET CONSTRAINTS ALL DEFERRED",
            "COMMIT",
        ],
        &["ok", "t", "ok", "ok", "ok", "ok", "ok"],
        "1",
        true,
    )
    .await;
    check(
        &[
            "BEGIN",
            "HOLD",
            "EFFECT",
            "SAVEPOINT s",
            "SETTLE",
            "SET CONSTRAINTS ALL IMMEDIATE",
            "ROLLBACK TO s",
            "COMMIT",
        ],
        &["ok", "t", "ok", "ok", "ok", "ok", "ok", "CF004"],
        "0",
        false,
    )
    .await;
    // A session that plays a replica fires no ordinary triggers.
    check(
        &["SET session_replication_role = replica", "BEGIN", "HOLD", "EFFECT", "COMMIT"],
        &["ok", "ok", "t", "ok", "CF004"],
        "0",
        false,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_that_is_none_is_refused() {
    let world = world().await;
    let text = world.permit.text();
    let foreign = granted(&world.gate, "b", &coupled(Expiry::NewAction)).await.text();
    let (lease, digest) = text.split_at(37);
    let nobody = format!("cf1-{}{}", "0".repeat(32), digest);
    let unknown = format!("{lease}{}", "0".repeat(64));
    let mixed = format!("{lease}{}", &foreign[37..]);
    let permits = [
        ("", "CF003"),
        ("cf1-", "CF003"),
        (&text[1..], "CF003"),
        (&format!("{text}0"), "CF003"),
        (&format!("{text}\n"), "CF003"),
        (&text.to_uppercase(), "CF003"),
        (&text.replace("cf1", "cf2"), "CF003"),
        (&unknown, "CF003"),
        (&nobody, "CF001"),
        (&mixed, "CF001"),
    ];
    for (permit, expected) in permits {
        let settle = format!("SELECT counterfoil.settle('{permit}', 201, NULL, NULL)");
        let hold = format!("SELECT counterfoil.hold('{permit}')");
        let came = world.run(&[&settle, "BEGIN", &hold, "EFFECT", "COMMIT"]).await;
        assert_eq!(came, [expected, "ok", "f", "ok", expected], "{permit:?}");
    }
    let null = ["SELECT counterfoil.settle(NULL, 201, NULL, NULL)", "SELECT counterfoil.hold(NULL)"];
    assert_eq!(world.run(&null).await, ["CF003", "CF003"]);
    // Held under one permit and settled under another.
    let settle = format!("SELECT counterfoil.settle('{foreign}', 201, NULL, NULL)");
    assert_eq!(world.run(&["BEGIN", "HOLD", &settle, "COMMIT"]).await, ["ok", "t", "ok", "CF004"]);
    assert_eq!(world.committed().await, ("0".to_owned(), false));
    let error = world.application.simple_query("SELECT counterfoil.settle('x', 201, NULL, NULL)").await.unwrap_err();
    let told = error.as_db_error().unwrap();
    assert!(
        told.message().contains("no record knows this permit") && told.hint().unwrap().contains("Idempotency-Permit")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_http_cannot_carry_is_not_settled() {
    let world = world().await;
    let calls = [
        ("199, NULL, NULL", "22023"),
        ("600, NULL, NULL", "22023"),
        ("NULL, NULL, NULL", "22023"),
        ("201, '{}', NULL", "22023"),
        ("201, '[1]', NULL", "22023"),
        ("201, '[[\"a\"]]', NULL", "22023"),
        ("201, '[[\"a\", 1]]', NULL", "22023"),
        ("201, '[[\"a b\", \"c\"]]', NULL", "22023"),
        ("201, '[[\"a\", \"c\\nd: e\"]]', NULL", "22023"),
        ("201, (SELECT jsonb_agg('[\"a\", \"b\"]'::jsonb) FROM generate_series(1, 101)), NULL", "54000"),
        ("201, NULL, convert_to(repeat('a', 16777217), 'UTF8')", "54000"),
        ("201, NULL, convert_to(repeat('a', 16777216), 'UTF8')", "ok"),
    ];
    for (arguments, expected) in calls {
        let settle = format!("SELECT counterfoil.settle('$permit', {arguments})");
        assert_eq!(world.run(&["BEGIN", &settle, "ROLLBACK"]).await, ["ok", expected, "ok"], "{arguments}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_application_s_role_needs_execute_and_nothing_on_the_tables() {
    let world = world().await;
    let role = format!("app_{}", world.place.database.name());
    let grants = [
        format!("CREATE ROLE {role}"),
        format!("GRANT ALL ON public.orders TO {role}"),
        format!("GRANT USAGE ON SCHEMA counterfoil TO {role}"),
    ];
    world.place.database.psql(&grants.each_ref().map(String::as_str)).unwrap();
    let become_role = format!("SET ROLE {role}");
    assert_eq!(world.run(&[&become_role, "HOLD", "SETTLE"]).await, ["ok", "42501", "42501"], "before the grant");
    let grant = "GRANT EXECUTE ON FUNCTION counterfoil.hold(text), counterfoil.settle(text, integer, jsonb, bytea) TO";
    world.place.database.psql(&[&format!("{grant} {role}")]).unwrap();
    // Names that the role puts in the way are not the functions' own.
    let came = world
        .run(&[
            "CREATE TEMPORARY TABLE held (xact xid8, id bigint)",
            "CREATE FUNCTION pg_temp.decode(text, text) RETURNS bytea LANGUAGE sql AS $$ SELECT '\\x00'::bytea $$",
            "SET search_path = pg_temp, pg_catalog, public",
            "SET synchronous_commit = off",
            "BEGIN",
            "HOLD",
            "EFFECT",
            "SETTLE",
            "SHOW synchronous_commit",
            "COMMIT",
        ])
        .await;
    assert_eq!(came, ["ok", "ok", "ok", "ok", "ok", "t", "ok", "ok", "on", "ok"]);
    assert_eq!(world.committed().await, ("1".to_owned(), true));
    for statement in [
        "SELECT * FROM counterfoil.record",
        "SELECT * FROM counterfoil.held",
        "DELETE FROM counterfoil.held",
        "SELECT counterfoil.judge('$permit')",
        "SELECT counterfoil.be_durable()",
        "ALTER TABLE counterfoil.held DISABLE TRIGGER ALL",
    ] {
        assert_eq!(world.run(&[statement]).await, ["42501"], "{statement}");
    }
    assert!(world.store.health().is_ok());
}
