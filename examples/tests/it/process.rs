//! Processes that a test starts: found beside the test itself, read line by line, and gone when the test ends.
//!
//! What does not belong here: what any of them is asked.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A program that the workspace builds, `parts` below the directory of its profile.
pub(crate) fn built(parts: &[&str]) -> PathBuf {
    let me = std::env::current_exe().expect("a test binary has a path");
    let profile = me.parent().and_then(Path::parent).expect("test binaries stand in deps");
    let program = parts.iter().fold(profile.to_owned(), |path, part| path.join(part));
    assert!(program.exists(), "{} is not built: run `cargo build --workspace --all-targets` first", program.display());
    program
}

/// A process with its output; killed when dropped.
pub(crate) struct Process {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    errors: Lines<BufReader<ChildStderr>>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let out = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let errors = BufReader::new(child.stderr.take().expect("its errors are piped")).lines();
        Self { child, out, errors }
    }

    /// The rest of the first line of output that holds `mark`, after the mark. Blocks until it comes.
    pub(crate) fn says(&mut self, mark: &str) -> String {
        after(&mut self.out, mark)
    }

    /// The same of what it logs.
    pub(crate) fn logs(&mut self, mark: &str) -> String {
        after(&mut self.errors, mark)
    }

    /// Kills it as a crash would: nothing of it runs any more when this returns.
    pub(crate) fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it can be killed");
    }

    /// Asks it to stop, and waits until it did.
    pub(crate) fn stop(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).expect("it lives");
        self.child.wait().expect("it ends")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn after<R: Read>(lines: &mut Lines<BufReader<R>>, mark: &str) -> String {
    let mut seen = Vec::new();
    for line in lines {
        let line = line.expect("it says text");
        if let Some((_, rest)) = line.split_once(mark) {
            return rest.to_owned();
        }
        seen.push(line);
    }
    panic!("it ended without saying {mark:?}, after:\n{}", seen.join("\n"));
}
