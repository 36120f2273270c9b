//! Programs that a test starts, read line by line, and gone when the test ends.
//!
//! What does not belong here: what any of them is asked.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// How long a line may take to come before the test fails.
const LINE_WITHIN: Duration = Duration::from_mins(1);

/// The command `counterfoil`, which stands beside the directory of this test's binary.
pub(super) fn counterfoil() -> PathBuf {
    let me = std::env::current_exe().expect("a test binary has a path");
    let program = me.parent().and_then(Path::parent).expect("test binaries stand in deps").join("counterfoil");
    assert!(program.exists(), "{} is not built: run `cargo build -p counterfoil-cli` first", program.display());
    program
}

/// A running program; killed when dropped.
pub(super) struct Process {
    child: Child,
    out: Mutex<Receiver<String>>,
    errors: Mutex<Receiver<String>>,
}

impl Process {
    /// Starts it without what this process's environment says to Counterfoil.
    pub(super) fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::null()))
    }

    /// The same for one that ends when its standard input does: that stays open as long as this.
    pub(super) fn attended(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::piped()))
    }

    /// Starts it with `listener` as its standard input: what connects already waits until it accepts. The command goes
    /// with it, so that the listener closes when the program ends.
    pub(super) fn listening(mut command: Command, listener: TcpListener) -> Self {
        listener.set_nonblocking(true).expect("a socket that does not block");
        Self::spawn(command.stdin(Stdio::from(OwnedFd::from(listener))))
    }

    fn spawn(command: &mut Command) -> Self {
        let command = alone(command).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}: ./test installs it"));
        let out = Mutex::new(lines(child.stdout.take().expect("its output is piped")));
        let errors = Mutex::new(lines(child.stderr.take().expect("its errors are piped")));
        Self { child, out, errors }
    }

    /// The next line of its output.
    pub(super) fn line(&self) -> String {
        let out = self.out.lock().expect("nobody panicked");
        out.recv_timeout(LINE_WITHIN).unwrap_or_else(|_| panic!("it says no other line, but logs:\n{}", self.log()))
    }

    /// What else it has logged so far.
    pub(super) fn log(&self) -> String {
        self.errors.lock().expect("nobody panicked").try_iter().collect::<Vec<_>>().join("\n")
    }

    /// What follows `mark` on the next line of its log that holds it. Blocks until that line comes.
    pub(super) fn logs(&self, mark: &str) -> String {
        let mut seen = Vec::new();
        let errors = self.errors.lock().expect("nobody panicked");
        while let Ok(line) = errors.recv_timeout(LINE_WITHIN) {
            if let Some((_, rest)) = line.split_once(mark) {
                return rest.to_owned();
            }
            seen.push(line);
        }
        panic!("it did not log {mark:?}, but:\n{}", seen.join("\n"));
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it lives");
    }

    /// Waits for its end.
    pub(super) fn end(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Kills it as a crash would: nothing of it runs any more when this returns.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.end();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Without the variables that this process may have been given for itself.
pub(super) fn alone(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("COUNTERFOIL_")) {
        command.env_remove(name);
    }
    command
}

/// The lines as they come; read on where nobody takes them, so that the program never stands still for its log.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}
