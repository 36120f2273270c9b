//! A private PostgreSQL server on a free port of 127.0.0.1, in a directory of its own, stopped with its last user.
//!
//! A shell holds it on a leash: when the pipe to the shell closes, however the test ended, the server is stopped. What
//! does not belong here: what is asked of it.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Where Debian keeps the programs, one folder for each major version.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// Starts the server, says so, and stops it when told how, or when nobody is there any more.
const LEASH: &str = r#"
trap '' INT TERM HUP
"$1/pg_ctl" -D "$2" -w -t 60 -o "-p $3" -l "$2/log" start >/dev/null 2>&1 || { echo failed; exit 1; }
echo ready
read -r how || how=immediate
"$1/pg_ctl" -D "$2" -w -t 60 -m "$how" stop >/dev/null 2>&1
"#;

const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
fsync = on
logging_collector = off
log_min_messages = warning
autovacuum_naptime = 60
";

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A running server.
pub struct Server {
    directory: PathBuf,
    programs: PathBuf,
    port: u16,
    leash: Mutex<Option<Leash>>,
    /// Made once, copied for every store.
    template: tokio::sync::OnceCell<()>,
}

struct Leash {
    shell: Child,
    _told: BufReader<ChildStdout>,
}

impl Server {
    /// The server that all tests of this process share. It stops when the last of them lets it go.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn shared() -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Self::start(&[])?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }

    /// Starts a server of its own with further `settings`, each a line of its configuration file.
    ///
    /// # Errors
    /// With the package to install, or the server's own words.
    pub fn start(settings: &[&str]) -> io::Result<Self> {
        let server = Self::unmade()?;
        let made = as_postgres(&server.programs.join("initdb"))
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N", "-D"])
            .arg(server.data())
            .output()?;
        succeeded("initdb", &made)?;
        let mut conf = fs::OpenOptions::new().append(true).open(server.data().join("postgresql.conf"))?;
        writeln!(conf, "{SETTINGS}{}", settings.join("\n"))?;
        server.run()?;
        Ok(server)
    }

    /// Starts a server that follows this one and can take its place, as it stands now.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn follower(&self) -> io::Result<Self> {
        let follower = Self::unmade()?;
        let made = as_postgres(&self.programs.join("pg_basebackup"))
            .args(["-h", "127.0.0.1", "-U", "postgres", "-X", "stream", "-c", "fast", "-N", "-R", "-p"])
            .arg(self.port.to_string())
            .arg("-D")
            .arg(follower.data())
            .output()?;
        succeeded("pg_basebackup", &made)?;
        follower.run()?;
        Ok(follower)
    }

    /// A directory and a port.
    fn unmade() -> io::Result<Self> {
        let programs = programs()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("counterfoil-pg-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory)?;
        // The server runs as another user, and puts its files into a directory of that user's.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))?;
        let (leash, template) = (Mutex::new(None), tokio::sync::OnceCell::new());
        Ok(Self { directory, programs, port: free_port()?, leash, template })
    }

    /// Starts it again after [`Server::stop`].
    ///
    /// # Errors
    /// With the end of the server's log.
    pub fn run(&self) -> io::Result<()> {
        let mut shell = as_postgres(Path::new("/bin/sh"))
            .args(["-c", LEASH, "leash"])
            .arg(&self.programs)
            .arg(self.data())
            .arg(self.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let Some(told) = shell.stdout.take() else { return Err(io::Error::other("the leash has no pipe")) };
        let mut told = BufReader::new(told);
        let mut line = String::new();
        told.read_line(&mut line)?;
        if line.trim() != "ready" {
            let log = fs::read_to_string(self.data().join("log")).unwrap_or_default();
            return Err(io::Error::other(format!("the server does not start: {log}")));
        }
        *self.leash.lock().unwrap_or_else(PoisonError::into_inner) = Some(Leash { shell, _told: told });
        Ok(())
    }

    /// Stops it: `fast` lets transactions roll back in order, `immediate` is a crash.
    ///
    /// # Errors
    /// Where the shell that holds it cannot be told.
    pub fn stop(&self, how: &str) -> io::Result<()> {
        let leash = self.leash.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut leash) = leash else { return Ok(()) };
        if let Some(mut pipe) = leash.shell.stdin.take() {
            writeln!(pipe, "{how}")?;
        }
        leash.shell.wait().map(drop)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where it keeps its files.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The address of `database` through `port`, as the user that may do everything.
    #[must_use]
    pub fn url_through(&self, port: u16, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable")
    }

    /// Runs statements in `database`, each alone.
    ///
    /// # Errors
    /// The server's own words.
    pub fn psql(&self, database: &str, statements: &[&str]) -> io::Result<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres", "-p"]);
        command.arg(self.port.to_string()).args(["-d", database]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        let output = command.output()?;
        succeeded("psql", &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// An empty database.
    ///
    /// # Errors
    /// The server's own words.
    pub fn empty(self: &Arc<Self>) -> io::Result<Database> {
        self.copied("template0")
    }

    /// A database with an empty store on a [`TestTime`](super::TestTime).
    ///
    /// # Errors
    /// The server's own words, or the migration's.
    pub async fn with_store(self: &Arc<Self>) -> io::Result<Database> {
        let made = self.template.get_or_try_init(|| async {
            self.psql("postgres", &["CREATE DATABASE with_store TEMPLATE template0"])?;
            let url = self.url_through(self.port, "with_store");
            crate::PostgresStore::migrate(&url).await.map_err(io::Error::other)?;
            self.psql("with_store", &super::time::INSTALL)?;
            Ok::<(), io::Error>(())
        });
        made.await?;
        self.copied("with_store")
    }

    fn copied(self: &Arc<Self>, template: &str) -> io::Result<Database> {
        let name = format!("store_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &[&format!("CREATE DATABASE {name} TEMPLATE {template}")])?;
        Ok(Database { server: self.clone(), name })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody can be told here; the leash stops it either way.
        drop(self.stop("immediate"));
        drop(fs::remove_dir_all(&self.directory));
    }
}

/// A database on a private server.
#[derive(Clone)]
pub struct Database {
    server: Arc<Server>,
    name: String,
}

impl Database {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its server.
    #[must_use]
    pub const fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url_through(self.server.port, &self.name)
    }

    /// Its address through something that listens on `port`.
    #[must_use]
    pub fn url_through(&self, port: u16) -> String {
        self.server.url_through(port, &self.name)
    }

    /// Runs statements, each alone; what they print, without decoration.
    ///
    /// # Errors
    /// The server's own words.
    pub fn psql(&self, statements: &[&str]) -> io::Result<String> {
        self.server.psql(&self.name, statements)
    }
}

/// The newest version's programs.
fn programs() -> io::Result<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(PROGRAMS).into_iter().flatten() {
        let path = entry?.path();
        let version = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        if let Some(version) = version.filter(|_| path.join("bin/initdb").exists()) {
            found.push((version, path.join("bin")));
        }
    }
    found.sort();
    found.pop().map(|(_, programs)| programs).ok_or_else(|| {
        let missing = "PostgreSQL's server is not installed: install the package postgresql (as in Debian)";
        io::Error::new(io::ErrorKind::NotFound, missing)
    })
}

/// `program` as the user postgres where this is root, whom it would refuse.
pub(super) fn as_postgres(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    // Where this user may not be, the program would complain.
    command.current_dir("/");
    command
}

pub(super) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn succeeded(what: &str, output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{what}: {}", String::from_utf8_lossy(&output.stderr))))
}
