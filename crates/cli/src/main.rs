//! The binary `counterfoil`. All that it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterfoil_cli::run(std::env::args_os()).into()
}
