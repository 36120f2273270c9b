//! The command `counterfoil`: arguments, printing and exit codes. What it does lives in the other crates.

mod args;
mod demo;
mod error;
mod instant;
mod print;
mod receipts;
mod relay;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print::usage(&error),
    };
    print::follow_events(match arguments.command {
        Command::Serve(_) | Command::Relay(_) => "info",
        Command::Demo(_) | Command::Receipts(_) | Command::Migrate(_) | Command::Config(_) => "warn",
    });
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failure(&error),
    }
}

fn run(arguments: Arguments) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Internal(format!("no threads to run on: {error}")))?;
    runtime.block_on(async {
        match arguments.command {
            Command::Demo(demo) => demo::run(demo).await,
            Command::Serve(serve) => serve::run(&serve).await,
            Command::Relay(relay) => relay::run(&relay).await,
            Command::Receipts(receipts) => receipts::run(receipts).await,
            Command::Migrate(place) => settings::migrate(&place).await,
            Command::Config(config) => settings::config(&config),
        }
    })
}
