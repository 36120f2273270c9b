//! A process of ours that may die: this test binary again, told by its environment what to do.
//!
//! What does not belong here: what the roles do (`worker.rs` and the modules that it names).

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::Duration,
};

const ROLE: &str = "COUNTERFOIL_CHECKS_ROLE";
const DIRECTORY: &str = "COUNTERFOIL_CHECKS_DIRECTORY";

/// How long a process may take before it ends itself.
const LIMIT: Duration = Duration::from_mins(2);

/// What a process is told: its words, and the directory that it works in.
pub(crate) struct Told {
    pub(crate) words: Vec<String>,
    pub(crate) directory: PathBuf,
}

/// What this process was told; `None`: it is the test run itself.
pub(super) fn told() -> Option<Told> {
    let role = std::env::var(ROLE).ok()?;
    let directory = std::env::var_os(DIRECTORY).expect("a role comes with a directory").into();
    Some(Told { words: role.split(' ').map(str::to_owned).collect(), directory })
}

/// Ends this process where it takes too long, so that no test waits for ever.
pub(super) fn bound() {
    let (keep, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(LIMIT).is_err() {
            say("took too long");
            std::process::abort();
        }
    });
    std::mem::forget(keep);
}

/// Says a line to whoever started this process, in one write.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| out.flush()).expect("somebody listens");
}

/// A process in `role`, to be started. `through` comes before it: a tracer with its arguments.
pub(crate) fn command(role: &str, directory: &Path, through: &[&str]) -> Command {
    let me = std::env::current_exe().expect("a test binary has a path");
    let mut command = match through {
        [] => Command::new(me),
        [tracer, arguments @ ..] => {
            let mut command = Command::new(tracer);
            command.args(arguments).arg(me);
            command
        }
    };
    command.args(["--exact", "crash::worker::in_its_role", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(DIRECTORY, directory).env_remove("RUST_LOG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a process ended, and the lines that it said.
pub(crate) struct Over {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
    pub(crate) errors: String,
}

impl Over {
    /// What follows `word` in the lines that begin with it.
    pub(crate) fn after<'o>(&'o self, word: &'o str) -> impl Iterator<Item = &'o str> {
        self.lines.iter().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    /// This, where the process ended well.
    pub(crate) fn well(self) -> Self {
        assert!(self.status.success(), "{}: {:?}\n{}", self.status, self.lines, self.errors);
        self
    }

    /// This, where the process was killed.
    pub(crate) fn killed(self) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let signal = self.status.signal();
        assert_eq!(signal, Some(9), "{}: {:?}\n{}", self.status, self.lines, self.errors);
        self
    }
}

/// Runs a process to its end.
pub(crate) fn run(role: &str, directory: &Path) -> Over {
    end(command(role, directory, &[]).spawn().expect("the test binary runs"))
}

/// Waits for the end of a process, and takes what it said.
pub(crate) fn end(child: Child) -> Over {
    let mut child = child;
    let mut errors = child.stderr.take().expect("its errors are piped");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let mut said = String::new();
    child.stdout.take().expect("its output is piped").read_to_string(&mut said).expect("it says text");
    let status = child.wait().expect("it ends");
    let errors = errors.join().expect("its errors are read").expect("they are text");
    Over { status, lines: said.lines().map(str::to_owned).collect(), errors }
}
