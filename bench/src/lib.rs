//! Counterfoil beside what people would write without it, on the same machine, in the same run.
//!
//! `cargo bench -p counterfoil-bench` prints seven tables and a course of memory (about twenty minutes, the first time
//! some more to fill a store and to build the peers); `-- --help` lists the options.
//!
//! How to read it: only **ratios inside one table** count. All rows of a table are measured one after the other in
//! each repetition, beginning with another row each time, so that what disturbs the machine disturbs all of them; a
//! ratio is taken in each repetition, and the median of these is printed with the least and the most. CPU µs is
//! processor time per answer: of the whole process, callers included, in the tables without HTTP, and of the server's
//! process alone (with those that it starts) in the tables with HTTP. Commits per second stand beside the fsyncs per second that the machine gave
//! to one plain stream in the same repetitions. `met` and `missed` are printed and are no exit status: timing is no
//! test. A row that answers wrongly (an effect too many, a replay that was none) does end the run. Nothing else should
//! run meanwhile: where other programs compete, rows with more threads get more of the machine.
//!
//! What does not belong here: tests of behaviour (`checks`), and figures, which live in `docs/measurements.md`. The
//! baselines hold SQL, which this package may, as it stands outside `crates/`.

#![allow(clippy::print_stdout, reason = "this program prints tables")]
#![allow(clippy::print_stderr, reason = "this program shows how far it is")]

mod create;
mod filling;
mod growth;
mod http;
mod keys;
mod load;
mod machine;
mod memory;
mod options;
mod ours;
mod postgres;
mod proxy;
mod replay;
mod sample;
mod seed;
mod sends;
mod table;

use std::path::Path;
use std::process::ExitCode;

use options::{Command, Options, TableName};

/// Whatever ends a run: there is nobody to tell the kinds apart.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Measures, or serves for a measuring process, as the command line says; databases go under `dir`.
#[must_use]
pub fn main(dir: &Path) -> ExitCode {
    let command = match options::read(std::env::args().skip(1), dir) {
        Ok(command) => command,
        Err(fault) => {
            eprintln!("{fault}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let ended = match command {
        Command::Help => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Command::Serve(mode, dir) => match mode.split_once('@') {
            Some((word, upstream)) => proxy::serve(word, upstream, &dir),
            None => http::serve(&mode, &dir),
        },
        Command::Measure(options) => measure(&options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("\n{fault}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Fault> {
    std::fs::create_dir_all(&options.dir)?;
    println!("{}\n", machine::describe());
    for table in &options.tables {
        match table {
            TableName::Create => create::table().run(options)?,
            TableName::Replay => replay::table().run(options)?,
            TableName::Growth => growth::table(options).run(options)?,
            TableName::Http => http::table().run(options)?,
            TableName::Proxy => proxy::table(options).run(options)?,
            TableName::Sends => sends::table().run(options)?,
            TableName::Memory => memory::measure(options)?,
            TableName::Postgres => postgres::table(options).run(options)?,
        }
    }
    Ok(())
}
