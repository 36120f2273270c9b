//! One record by its key or the beginning of its digest.

use counterfoil_server::Store;
use counterfoil_store::seam::Listed;

use crate::error::CliError;

/// The fewest digits of a digest that are looked for.
const DIGITS_MIN: usize = 4;
/// How many are told apart in a complaint.
const FOUND_MAX: usize = 5;

/// The one record that `text` names.
///
/// # Errors
/// [`CliError::Refused`] where it names none or several.
pub(super) async fn find(store: &Store, text: &str) -> Result<Listed, CliError> {
    let found = store.records().find(text, FOUND_MAX).await?;
    let is_key = |listed: &Listed| listed.identity.key.as_str() == text;
    let long_enough = text.len() >= DIGITS_MIN;
    let mut found: Vec<Listed> = found.into_iter().filter(|listed| long_enough || is_key(listed)).collect();
    match found.pop() {
        Some(one) if found.is_empty() => Ok(one),
        Some(one) => {
            let lines = found.iter().chain([&one]).map(|listed| {
                format!("\n  {} {}", listed.identity.digest().to_hex(), listed.identity.operation.as_str())
            });
            let lines: String = lines.collect();
            Err(CliError::Refused(format!("that names several records, so name one by its digest:{lines}")))
        }
        None => Err(CliError::Refused(
            "no record has this key or a digest that begins so: see `counterfoil receipts list`, and that --store names the right file"
                .to_owned(),
        )),
    }
}
