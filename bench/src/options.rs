//! What the command line asks for. What a table contains belongs to its own file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Fault;

/// Printed for `--help` and beside every complaint.
pub(crate) const USAGE: &str = "\
usage: cargo bench -p counterfoil-bench -- [options]

  --table NAME       create, replay, growth, http, proxy, postgres, sends or memory; may be
                     repeated (default: all eight)
  --only TEXT        only rows whose name contains TEXT, and the rows that those are compared with
  --seconds S        how long each row is measured in each repetition (default 2)
  --repetitions N    how often every row is measured (default 5)
                     for `memory`: how long the load behind the 100,000 receipts takes, at least 10 s
  --quick            0.4 s, 2 repetitions, 50,000 receipts where 1,000,000 are asked for: a trial, no measurement
  --dir PATH         where databases are put; it must be a real disk (default: under the target directory)
";

/// A group of rows that are measured interleaved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableName {
    Create,
    Replay,
    Growth,
    Http,
    Proxy,
    Memory,
    Postgres,
    Sends,
}

const TABLES: [(&str, TableName); 8] = [
    ("create", TableName::Create),
    ("replay", TableName::Replay),
    ("growth", TableName::Growth),
    ("http", TableName::Http),
    ("proxy", TableName::Proxy),
    ("postgres", TableName::Postgres),
    ("sends", TableName::Sends),
    ("memory", TableName::Memory),
];

/// The command, read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Command {
    /// Measure.
    Measure(Options),
    /// Be a server for another process of this program: the mode's word and the directory.
    Serve(String, PathBuf),
    /// Say how to use it.
    Help,
}

/// What to measure, and for how long.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Options {
    pub(crate) tables: Vec<TableName>,
    pub(crate) only: Option<String>,
    pub(crate) span: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) repetitions: usize,
    pub(crate) receipts_many: u64,
    pub(crate) dir: PathBuf,
    /// Where peers are built.
    pub(crate) peers: PathBuf,
}

impl Options {
    fn new(dir: &Path) -> Self {
        Self {
            tables: Vec::new(),
            only: None,
            span: Duration::from_secs(2),
            warm_up: Duration::from_millis(300),
            repetitions: 5,
            receipts_many: 1_000_000,
            dir: dir.to_owned(),
            peers: dir.parent().unwrap_or(dir).join("peers"),
        }
    }
}

/// Reads the arguments after the program's name. `dir` is where databases go unless it is said otherwise.
pub(crate) fn read(mut arguments: impl Iterator<Item = String>, dir: &Path) -> Result<Command, Fault> {
    let mut options = Options::new(dir);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            // Cargo adds it.
            "--bench" => {}
            "--help" | "-h" => return Ok(Command::Help),
            "--quick" => {
                options.span = Duration::from_millis(400);
                options.warm_up = Duration::from_millis(100);
                options.repetitions = 2;
                options.receipts_many = 50_000;
            }
            "--table" => {
                let name = value()?;
                let known = TABLES.iter().find(|(word, _)| *word == name);
                let (_, table) = known.ok_or_else(|| format!("there is no table {name}"))?;
                options.tables.push(*table);
            }
            "--only" => options.only = Some(value()?),
            "--seconds" => options.span = seconds(&value()?)?,
            "--repetitions" => {
                let text = value()?;
                let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
                options.repetitions = count.ok_or_else(|| format!("--repetitions {text}: give 1 to 1000"))?;
            }
            "--dir" => options.dir = value()?.into(),
            "--serve" => return Ok(Command::Serve(value()?, value()?.into())),
            _ => return Err(format!("unknown argument {argument}").into()),
        }
    }
    if options.tables.is_empty() {
        options.tables = TABLES.iter().map(|(_, table)| *table).collect();
    }
    Ok(Command::Measure(options))
}

fn seconds(text: &str) -> Result<Duration, Fault> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=600.0).contains(seconds));
    Ok(Duration::from_secs_f64(seconds.ok_or_else(|| format!("--seconds {text}: give 0.05 to 600"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str) -> Result<Command, String> {
        let words = arguments.split_whitespace().map(str::to_owned);
        read(words, Path::new("somewhere")).map_err(|fault| fault.to_string())
    }

    fn options(arguments: &str) -> Options {
        match check(arguments) {
            Ok(Command::Measure(options)) => options,
            other => panic!("{arguments}: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_read() {
        let all = options("--bench");
        assert_eq!((all.tables.len(), all.repetitions, all.span.as_secs()), (8, 5, 2));
        assert_eq!(options("--table http --table replay").tables, [TableName::Http, TableName::Replay]);
        assert_eq!(options("--quick --seconds 0.5").span, Duration::from_millis(500));
        assert_eq!(options("--dir x").dir, Path::new("x"));
        assert_eq!(check("--serve bare d"), Ok(Command::Serve("bare".into(), "d".into())));
        assert_eq!(check("--help"), Ok(Command::Help));
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for (arguments, says) in [
            ("--fast", "unknown argument --fast"),
            ("--table creat", "there is no table creat"),
            ("--table", "--table needs a value"),
            ("--seconds 0", "give 0.05 to 600"),
            ("--repetitions 0", "give 1 to 1000"),
        ] {
            let said = check(arguments).unwrap_err();
            assert!(said.contains(says), "{arguments}: {said}");
        }
    }
}
