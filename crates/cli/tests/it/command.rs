//! Runs the built command in a folder of its own, and keeps what it said.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// The whole of it as one text, for golden files.
    pub(crate) fn told(&self) -> String {
        format!("exit code {}\n--- standard output\n{}--- standard error\n{}", self.code, self.out, self.err)
    }

    /// The lines of standard output, each one JSON value.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// That it ended so, and said this to people.
    #[track_caller]
    pub(crate) fn said(&self, code: i32, part: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(part), "{part:?} in {self:?}");
    }
}

/// Runs the command with `arguments` in `folder`.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Run {
    run_with(folder, arguments, "", &[])
}

/// Runs the command with a standard input and variables.
pub(crate) fn run_with(folder: &Path, arguments: &[&str], input: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
    command.args(arguments).current_dir(folder).env_clear().envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that reads nothing may have ended before this is written.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
