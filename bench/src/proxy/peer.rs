//! Programs of others: how they are had, started before an upstream, and asked what they have used.
//!
//! They are no dependencies of this workspace: a published command is installed by cargo under `target/peers`, and the
//! layers that are libraries stand in small services in `bench/peers`, a project with a lock file of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::Usage;
use crate::{Fault, machine};

/// How long a program may take until it listens.
const START: Duration = Duration::from_secs(10);
const PROXY_CRATE: &str = "idempotent-proxy-server";
const PROXY_VERSION: &str = "1.2.2";

/// A program of somebody else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Program {
    Nginx,
    IdempotentProxy,
    /// The service of the next two without their layers.
    Axum,
    AxumIdempotent,
    Idempotent,
}

impl Program {
    /// Sees that it can be started; the error says why it cannot.
    pub(super) fn have(self, peers: &Path) -> Result<(), Fault> {
        match self {
            Self::Nginx => {
                let found = Command::new("nginx").arg("-v").stderr(Stdio::null()).status();
                if found.is_ok_and(|status| status.success()) { Ok(()) } else { Err("nginx is not installed".into()) }
            }
            Self::IdempotentProxy => {
                if self.path(peers).exists() {
                    return Ok(());
                }
                let mut install = cargo();
                install.args(["install", "--locked", "--version", PROXY_VERSION, PROXY_CRATE, "--root"]).arg(peers);
                done(install.arg("--target-dir").arg(peers.join("build")), peers, PROXY_CRATE)
            }
            Self::Axum | Self::AxumIdempotent | Self::Idempotent => {
                let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.toml");
                let mut build = cargo();
                // One of them declares a newer compiler than it needs.
                build.args(["build", "--release", "--locked", "--ignore-rust-version", "--bin", self.word()]);
                build.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(peers.join("build"));
                done(&mut build, peers, self.word())
            }
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::IdempotentProxy => PROXY_CRATE,
            Self::Axum => "bare",
            Self::AxumIdempotent => "axum-idempotent",
            Self::Idempotent => "idempotent",
        }
    }

    fn path(self, peers: &Path) -> PathBuf {
        match self {
            Self::Nginx => "nginx".into(),
            Self::IdempotentProxy => peers.join("bin").join(PROXY_CRATE),
            Self::Axum | Self::AxumIdempotent | Self::Idempotent => peers.join("build/release").join(self.word()),
        }
    }
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env_remove("CARGO_TARGET_DIR");
    cargo
}

/// Runs a build; what it says goes to a file that the error names.
fn done(build: &mut Command, peers: &Path, name: &str) -> Result<(), Fault> {
    eprint!("\r\x1b[Kbuilding {name}");
    fs::create_dir_all(peers)?;
    let log = format!("{name}.log");
    let said = File::create(peers.join(&log))?;
    let status = build.stdout(said.try_clone()?).stderr(said).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("it could not be built, see `{log}` under `target/peers`").into())
    }
}

/// A running program. Its process ends when this is dropped.
pub(super) struct Peer {
    process: Child,
    address: SocketAddr,
}

impl Peer {
    pub(super) fn start(program: Program, peers: &Path, upstream: SocketAddr, dir: &Path) -> Result<Self, Fault> {
        let mut command = Command::new(program.path(peers));
        command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
        let address = match program {
            Program::Nginx => {
                let address = free()?;
                fs::write(dir.join("nginx.conf"), nginx(address, upstream))?;
                command.arg("-p").arg(dir).args(["-c", "nginx.conf", "-e", "error.log"]);
                address
            }
            Program::IdempotentProxy => {
                let address = free()?;
                // It does not start without the file, and forgets receipts after the time-out.
                fs::write(dir.join(".env"), "")?;
                command.env("SERVER_ADDR", address.to_string()).env("URL_ORDERS", format!("http://{upstream}/orders"));
                command.env("REQUEST_TIMEOUT", "600000").env("LOG_LEVEL", "error");
                address
            }
            Program::Axum | Program::AxumIdempotent | Program::Idempotent => {
                return Self::telling(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
            }
        };
        let peer = Self { process: command.spawn()?, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > START {
                return Err(format!("{} does not listen", program.word()).into());
            }
            std::thread::yield_now();
        }
        Ok(peer)
    }

    /// A service that says where it listens.
    fn telling(command: &mut Command) -> Result<Self, Fault> {
        let mut process = command.spawn()?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("the service has no output")?;
        let read = BufReader::new(output).read_line(&mut line);
        let mut peer = Self { process, address: ([127, 0, 0, 1], 0).into() };
        read?;
        peer.address = line.trim().parse().map_err(|_| "the service did not start")?;
        Ok(peer)
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has used so far.
    pub(super) fn usage(&self) -> Result<Usage, Fault> {
        Ok(Usage { cpu: machine::cpu_of(self.process.id())?, commits: None })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // In order, because nginx ends its workers then.
        let ended = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(process) = ended {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// A port that was free just now.
fn free() -> Result<SocketAddr, Fault> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

fn nginx(address: SocketAddr, upstream: SocketAddr) -> String {
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("  {name}_temp_path {name};\n"))
        .collect();
    format!(
        "worker_processes 2;\nuser root root;\ndaemon off;\npid nginx.pid;\nerror_log error.log crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n{paths}\
         \x20 upstream orders {{ server {upstream}; keepalive 256; keepalive_requests 1000000000; }}\n\
         \x20 server {{\n    listen {address};\n    keepalive_requests 1000000000;\n    location / {{\n\
         \x20     proxy_pass http://orders;\n      proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n\
         \x20     proxy_set_header X-Forwarded-For $remote_addr;\n      proxy_set_header X-Forwarded-Host $host;\n\
         \x20     proxy_set_header X-Forwarded-Proto $scheme;\n    }}\n  }}\n}}\n"
    )
}
