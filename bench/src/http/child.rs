//! A server as a process of its own: started, asked what it has used, and ended with its standard input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::load::Usage;
use crate::{Fault, machine};

/// A running server. Its process ends when this is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    pipes: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    address: SocketAddr,
}

impl Child {
    /// Starts this program as the server that `word` names with its files in `dir`, and waits until it listens.
    pub(crate) fn start(word: &str, dir: &Path) -> Result<Self, Fault> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("--serve")
            .arg(word)
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the server has no pipes".into());
        };
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| format!("the server `{word}` did not start"))?;
        Ok(Self { process, pipes: Mutex::new(Some((input, output))), address })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it keeps in memory, in KiB.
    pub(crate) fn resident(&self) -> Result<u64, Fault> {
        machine::resident(self.process.id())
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> Result<Usage, Fault> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((input, output)) = pipes.as_mut() else { return Err("the server was stopped".into()) };
        input.write_all(b"usage\n")?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        read_usage(&line).ok_or_else(|| format!("the server said {line:?} of its usage").into())
    }

    /// Ends it and waits for the end, so that what it wrote is whole.
    pub(crate) fn stop(mut self) -> Result<(), Fault> {
        self.close();
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    fn close(&self) {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.close();
        // It ends by itself at the end of its input; where it hangs, it must not outlive the measurement.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server's side: says where it listens, then what it has used whenever it is asked, until its input ends.
pub(crate) fn answer(address: SocketAddr, commits: impl Fn() -> Option<u64>) -> Result<(), Fault> {
    println!("{address}");
    for line in std::io::stdin().lock().lines() {
        line?;
        println!("{}", write_usage(Usage { cpu: machine::cpu(), commits: commits() }));
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// One line: nanoseconds of processor time, and commits or `-`.
fn write_usage(usage: Usage) -> String {
    let commits = usage.commits.map_or_else(|| "-".to_owned(), |commits| commits.to_string());
    format!("{} {commits}", usage.cpu.as_nanos())
}

fn read_usage(line: &str) -> Option<Usage> {
    let (nanos, commits) = line.trim().split_once(' ')?;
    let commits = if commits == "-" { None } else { Some(commits.parse().ok()?) };
    Some(Usage { cpu: Duration::from_nanos(nanos.parse().ok()?), commits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_survives_its_line() {
        for (nanos, commits) in [(0, None), (1_500_000_001, Some(7))] {
            let usage = Usage { cpu: Duration::from_nanos(nanos), commits };
            let read = read_usage(&format!("{}\n", write_usage(usage))).unwrap();
            assert_eq!((read.cpu, read.commits), (usage.cpu, usage.commits));
        }
        assert!(read_usage("").is_none());
        assert!(read_usage("1 many").is_none());
    }
}
