//! A private PgBouncer in transaction mode before a private server.
//!
//! What does not belong here: what is tested through it.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::Server;
use super::server::{as_postgres, free_port};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// Runs it until the pipe closes.
const LEASH: &str = r#"
trap '' INT TERM HUP
"$1" -q "$2" & pid=$!
read -r _
kill -KILL $pid
wait $pid
"#;

/// How long it may take to listen.
const START_MAX: Duration = Duration::from_secs(30);

/// A running pooler.
pub struct Bouncer {
    directory: PathBuf,
    port: u16,
    shell: Child,
}

impl Bouncer {
    /// Starts one before `server` that shares `connections` among all who come.
    ///
    /// # Errors
    /// With the package to install, or why it does not listen.
    pub fn start(server: &Server, connections: u32) -> io::Result<Self> {
        if !Path::new(PROGRAM).exists() {
            let missing = "PgBouncer is not installed: install the package pgbouncer (as in Debian)";
            return Err(io::Error::new(io::ErrorKind::NotFound, missing));
        }
        let port = free_port()?;
        let directory = server.data().with_file_name(format!("bouncer-{port}"));
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))?;
        let (ini, users) = (directory.join("pgbouncer.ini"), directory.join("users.txt"));
        fs::write(&users, "\"postgres\" \"\"\n")?;
        let (to, users) = (server.port(), users.display());
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={to}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n\
             default_pool_size = {connections}\nmax_client_conn = 500\nlogfile = {}\n",
            directory.join("log").display()
        );
        fs::write(&ini, settings)?;
        let shell = as_postgres(Path::new("/bin/sh"))
            .args(["-c", LEASH, "leash", PROGRAM])
            .arg(&ini)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let bouncer = Self { directory, port, shell };
        bouncer.listens()?;
        Ok(bouncer)
    }

    fn listens(&self) -> io::Result<()> {
        let until = Instant::now() + START_MAX;
        loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(_) => return Ok(()),
                Err(_) if Instant::now() < until => std::thread::park_timeout(Duration::from_millis(10)),
                Err(error) => {
                    let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                    return Err(io::Error::other(format!("pgbouncer does not listen ({error}): {log}")));
                }
            }
        }
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
        drop(fs::remove_dir_all(&self.directory));
    }
}
