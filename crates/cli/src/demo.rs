//! placeholder
use crate::{args::Demo, error::CliError};
pub(crate) async fn run(_: Demo) -> Result<(), CliError> {
    Ok(())
}
