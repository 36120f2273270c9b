//! The command `counterfoil`: arguments, printing and exit codes. What it does lives in the other crates.
//!
//! It is a library only so that tests can run it in a process of their own; nothing else may use it.

mod args;
mod demo;
mod error;
mod exit;
mod instant;
mod intents;
mod journal;
mod print;
mod probe;
mod profile;
mod receipts;
mod relay;
mod send;
mod serve;
mod settings;

use std::ffi::OsString;
use std::time::Duration;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::error::CliError;
use crate::exit::Exit;

/// How long threads that block may go on after the command is over.
const THREADS_END_WITHIN: Duration = Duration::from_secs(5);

/// Runs the command of these arguments, the program's name first, and gives its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return print::usage(&error),
    };
    print::follow_events(match arguments.command {
        Command::Serve(_) | Command::Relay(_) => "info",
        Command::Demo(_)
        | Command::Send(_)
        | Command::Intents(_)
        | Command::Profile(_)
        | Command::Receipts(_)
        | Command::Probe(_)
        | Command::Migrate(_)
        | Command::Config(_) => "warn",
    });
    match over(arguments) {
        Ok(exit) => exit.code(),
        Err(error) => print::failure(&error),
    }
}

fn over(arguments: Arguments) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Internal(format!("no threads to run on: {error}")))?;
    let ended = runtime.block_on(async {
        let done = match arguments.command {
            Command::Send(send) => return send::run(&send).await,
            Command::Intents(intents) => return intents::run(intents).await,
            Command::Profile(profile) => profile::run(&profile).await,
            Command::Demo(demo) => demo::run(demo).await,
            Command::Serve(serve) => serve::run(&serve).await,
            Command::Relay(relay) => relay::run(&relay).await,
            Command::Receipts(receipts) => receipts::run(receipts).await,
            Command::Probe(probe) => probe::run(*probe).await,
            Command::Migrate(place) => settings::migrate(&place).await,
            Command::Config(config) => settings::config(&config),
        };
        done.map(|()| Exit::Done)
    });
    runtime.shutdown_timeout(THREADS_END_WITHIN);
    ended
}
