//! A run as text for others: JSON, JSON lines, JUnit, the contract sheet, and one page of HTML.
//!
//! What does not belong here: where the text is written, and what people read in a terminal, which are the command's.

mod html;
mod junit;
mod sheet;

pub use html::page;
pub use junit::junit;
pub use sheet::{Drift, Entry, Sheet};

use crate::error::ProbeError;
use crate::run::Run;

/// The whole run as one JSON document, which [`read`] reads back.
///
/// # Errors
/// [`ProbeError::Harness`] where it cannot be written.
pub fn json(run: &Run) -> Result<String, ProbeError> {
    serde_json::to_string_pretty(run).map_err(|error| ProbeError::Harness(format!("the summary: {error}")))
}

/// Reads what [`json`] wrote.
///
/// # Errors
/// [`ProbeError::Usage`] where it is something else.
pub fn read(text: &str) -> Result<Run, ProbeError> {
    serde_json::from_str(text).map_err(|error| ProbeError::Usage(format!("no result of the probe: {error}")))
}

/// Every exchange as one JSON object a line.
///
/// # Errors
/// [`ProbeError::Harness`] where it cannot be written.
pub fn lines(run: &Run) -> Result<String, ProbeError> {
    let line = |exchange| serde_json::to_string(exchange).map(|line| format!("{line}\n"));
    let lines: Result<String, _> = run.exchanges.iter().map(line).collect();
    lines.map_err(|error| ProbeError::Harness(format!("an exchange: {error}")))
}
