//! nginx as a private process: on a free port, in a directory of its own, with one worker.
//!
//! What does not belong here: whether it stands in front (`nginx_front`) or behind (`nginx_behind`).

use std::{net::TcpListener, path::Path, process::Command};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{
    curl::{Sent, get, try_curl},
    process::Process,
};

/// What ends the list of what it was asked.
const LAST: &str = "/last";

/// A running nginx; ended when dropped.
pub(super) struct Nginx {
    process: Process,
    url: String,
    // Its directory, which goes after it.
    _home: TempDir,
}

impl Nginx {
    /// `server` is the inside of its one server, `http` what stands beside that.
    pub(super) fn start(http: &str, server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let home = tempfile::tempdir().expect("a directory");
        let inside = format!("{http}\nserver {{\nlisten {address};\nlocation = {LAST} {{ return 204; }}\n{server}\n}}");
        let config = home.path().join("nginx.conf");
        std::fs::write(&config, configuration(&inside)).expect("a file");
        let process = Process::listening(command(home.path()), listener);
        let nginx = Self { process, url: format!("http://{address}"), _home: home };
        if let Err(error) = try_curl("GET", &nginx.url(LAST), Sent::default()) {
            panic!("nginx does not answer: {error}{}", nginx.process.log());
        }
        nginx.done();
        nginx
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The next request that it is done with, whoever ended it. Blocks until one is.
    pub(super) fn done(&self) -> String {
        self.process.line()
    }

    /// What it was asked so far, each as `POST /path 201`, and the statuses of those that it asked itself.
    pub(super) fn asked(&self) -> Vec<String> {
        get(&self.url(LAST));
        let lines = std::iter::repeat_with(|| self.process.line());
        lines.take_while(|line| !line.contains(LAST)).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker is a process of its own, and ends with it when it is told to.
        self.process.signal(Signal::TERM);
        self.process.end();
    }
}

fn command(home: &Path) -> Command {
    // Debian has it where only root looks for programs.
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-p").arg(home).args(["-c", "nginx.conf", "-e", "stderr"]);
    // So it takes the listener that it was started with, as it does when a new release of it takes over.
    command.env("NGINX", "0;");
    command
}

/// Nothing outside its directory, whose owner its worker stays.
fn configuration(inside: &str) -> String {
    let temporary: String =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|kind| format!("{kind}_temp_path {kind};\n")).concat();
    format!(
        "daemon off;
user root;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
log_format asked '$request_method $uri $status $upstream_status';
access_log /dev/stdout asked;
default_type application/json;
{temporary}{inside}
}}
"
    )
}
