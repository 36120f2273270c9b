//! All printing: people read standard error, programs read standard output. What is printed belongs to each command.

use std::io::{self, IsTerminal as _, Write as _};

use tracing_subscriber::EnvFilter;

use crate::error::CliError;
use crate::exit::Exit;

/// Prints for a program. Every call ends with a line.
///
/// # Errors
/// [`CliError::Closed`] where nobody reads any more, [`CliError::Internal`] where the output fails otherwise.
pub(crate) fn data(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{line_end}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::Closed),
        Err(error) => Err(CliError::Internal(format!("the output cannot be written: {error}"))),
    }
}

/// Prints for a person. A standard error that is closed is nobody's loss.
pub(crate) fn human(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How wide a bar is.
const BAR_CELLS: usize = 24;

/// Shows how far long work is, on a terminal only.
pub(crate) fn progress(done: usize, all: usize, what: &str) {
    let mut error = io::stderr().lock();
    if error.is_terminal() {
        let full = BAR_CELLS * done / all.max(1);
        let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR_CELLS - full.min(BAR_CELLS)));
        let _ = write!(error, "\r[{bar}] {done}/{all} {what:<32.32}");
        let _ = error.flush();
    }
}

/// Clears what [`progress`] shows.
pub(crate) fn progress_ends() {
    let mut error = io::stderr().lock();
    if error.is_terminal() {
        let _ = write!(error, "\r{:80}\r", "");
        let _ = error.flush();
    }
}

/// Prints why a command failed, and gives its exit code.
pub(crate) fn failure(error: &CliError) -> u8 {
    let said = matches!(error, CliError::Closed) || matches!(error, CliError::Probe { why, .. } if why.is_empty());
    if !said {
        human(&format!("counterfoil: {error}"));
    }
    error.exit().code()
}

/// Prints what the argument parser says: help to standard output, complaints to standard error.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    // Nobody is left to tell where even this cannot be printed.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code())
}

/// Prints events as lines on standard error, as `COUNTERFOIL_LOG` asks, else from `level` on.
pub(crate) fn follow_events(level: &str) {
    let asked = std::env::var("COUNTERFOIL_LOG").ok().and_then(|asked| EnvFilter::try_new(asked).ok());
    let filter = asked.unwrap_or_else(|| EnvFilter::new(level));
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let events = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours);
    // Somebody else's subscriber stays.
    let _ = events.with_target(false).try_init();
}
