//! A plain function, made to run once: interest for a month is credited whoever asks for it, and however often.
//!
//! ```text
//! cargo run -p counterfoil-examples --example run_once -- bank.db 2026-10 25
//! ```
//!
//! The ledger and the receipts are in one file, so the credit and its receipt commit together: a crash leaves both or
//! neither. What does not belong here: HTTP.

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use counterfoil::store::sqlite::rusqlite::{self, Connection};
use counterfoil::store::sqlite::{Handle, Options};
use counterfoil::{
    Asked, Claim, Executed, Expiry, Identity, Key, Operation, Origin, Policy, Receipt, Rule, Scope, SqliteStore,
};

/// The accounts. This is the application's own table, in the same file.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT;
    INSERT OR IGNORE INTO account VALUES ('anna', 120000), ('ben', 80000), ('cleo', 500);
";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, month, basis_points] = arguments.as_slice() else {
        return Err("usage: run_once FILE MONTH BASIS_POINTS".into());
    };
    let basis_points: u32 = basis_points.parse()?;

    let store = SqliteStore::open(file, Options::default())?;
    Connection::open(file)?.execute_batch(SCHEMA)?;

    // Who asks for what. The key names the action and is chosen before the first attempt: here one action a month.
    let identity = Identity::new(Scope::single_tenant(), Operation::new("credit-interest")?, Key::new(month.as_str())?);
    // What is asked. The same key with other arguments is refused, and changes nothing.
    let claim = Claim::new(identity, Asked::bytes(basis_points.to_string()), &Rule::bytes())?;
    // Nobody asks again after a year, and a key that old is refused rather than taken for a new month.
    let year = Duration::from_hours(24 * 365);
    let policy = Policy { retention: year, expiry: Expiry::Refuse(year), ..Policy::default() };

    let done = store.execute_blocking(claim, &policy, move |tables| credit_interest(tables, basis_points))?;
    let mut out = std::io::stdout().lock();
    match done {
        Executed::Done { receipt, origin, .. } => {
            let how = match origin {
                Origin::Fresh => "fresh",
                Origin::Replayed => "replayed",
            };
            writeln!(out, "{how}: {}", text(&receipt)?)?;
            Ok(())
        }
        Executed::EffectFailed(error) => Err(format!("nothing was credited: {error}").into()),
        Executed::Mismatch => Err(format!("{month} was asked for with another rate, and stays as it is").into()),
        Executed::InProgress { .. } => Err(format!("{month} is being credited now; ask again").into()),
        Executed::Unknown { why, .. } => {
            Err(format!("nobody knows about {month} ({}): settle it", why.as_str()).into())
        }
        Executed::Expired { .. } => Err(format!("{month} was credited more than a year ago").into()),
    }
}

/// The function itself. It knows nothing of keys or receipts: it does its work and says what came of it.
fn credit_interest(tables: &Handle<'_>, basis_points: u32) -> rusqlite::Result<Receipt> {
    let accounts = tables.execute("UPDATE account SET cents = cents + cents * ?1 / 10000", [basis_points])?;
    let total: i64 = tables.query_row("SELECT sum(cents) FROM account", [], |row| row.get(0))?;
    Ok(Receipt::new(200, format!("{accounts} accounts credited, {total} cents in all")))
}

fn text(receipt: &Receipt) -> Result<String, Box<dyn Error>> {
    match &receipt.body {
        counterfoil::rules::Body::Kept(bytes) => Ok(String::from_utf8(bytes.to_vec())?),
        counterfoil::rules::Body::NotKept => Err("the result was not kept".into()),
    }
}
