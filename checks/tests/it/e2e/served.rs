//! `counterfoil serve` as a process, and the other commands beside it.
//!
//! What does not belong here: what is sent through it.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    sync::mpsc::channel,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::process::{Process, alone, counterfoil};

/// How long a command that ends may take before the test fails.
const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// A serving process and its addresses.
pub(super) struct Served {
    pub(super) process: Process,
    address: String,
    admin: String,
}

impl Served {
    /// One tenant, the store at `store`, which is made where it does not stand.
    pub(super) fn start(store: &Path, upstream: &str) -> Self {
        Self::with(&["--principal", "none", "--store", &place(store), "--upstream", upstream], None)
    }

    /// One tenant, a new store in `home`, and what `more` says in the configuration file.
    pub(super) fn configured(home: &Path, upstream: &str, more: &str) -> Self {
        let config = home.join("counterfoil.toml");
        std::fs::write(&config, format!("upstream = \"{upstream}\"\nprincipal.from = \"none\"\n{more}"))
            .expect("a file");
        let config = config.to_str().expect("a path of text");
        Self::with(&["--config", config, "--store", &place(&home.join("counterfoil.db"))], None)
    }

    /// With these arguments, in `directory` where one is given, on addresses that the system chooses.
    pub(super) fn with(arguments: &[&str], directory: Option<&Path>) -> Self {
        let mut command = Command::new(counterfoil());
        command.arg("serve").args(arguments).args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let process = Process::start(&mut command);
        let told = process.logs("listening listen=");
        let (address, rest) = told.split_once(" admin=").expect("it tells both addresses");
        let admin = rest.split(' ').next().expect("an address").to_owned();
        Self { process, address: address.to_owned(), admin }
    }

    /// Its host and port.
    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn admin_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.admin)
    }

    /// Stops it in order.
    pub(super) fn stop(mut self) {
        self.process.signal(Signal::TERM);
        let status = self.process.end();
        assert!(status.success(), "{status}");
    }
}

pub(super) fn place(store: &Path) -> String {
    format!("sqlite:{}", store.display())
}

/// The program, in a directory and an environment of its own.
pub(super) fn counterfoil_alone(directory: &Path) -> Command {
    let mut command = Command::new(counterfoil());
    alone(&mut command).current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs a command to its end, which must come soon.
pub(super) fn run(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(counterfoil());
    let command = alone(&mut command).args(arguments).current_dir(directory);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let process = Pid::from_child(&child);
    let (sender, ended) = channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(ENDS_WITHIN) else {
        kill_process(process, Signal::KILL).expect("it lives");
        panic!("{command:?} goes on");
    };
    output.expect("its output can be read")
}

/// Runs `counterfoil receipts` on the store, where it must succeed.
pub(super) fn receipts(store: &Path, arguments: &[&str]) -> String {
    let output = try_receipts(store, arguments);
    assert!(output.status.success(), "receipts {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it says text")
}

pub(super) fn try_receipts(store: &Path, arguments: &[&str]) -> Output {
    let place = place(store);
    let arguments = [&["receipts"], arguments, &["--store", &place]].concat();
    run(&arguments, store.parent().expect("a store stands in a directory"))
}

/// The records in doubt, as JSON.
pub(super) fn in_doubt(store: &Path) -> Vec<Value> {
    let listed = receipts(store, &["list", "--state", "unknown", "--json", "--show-key"]);
    listed.lines().map(|line| serde_json::from_str(line).expect("it lists JSON")).collect()
}
