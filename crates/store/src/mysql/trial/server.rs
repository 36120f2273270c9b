//! A private MariaDB server on a free port of 127.0.0.1, in a directory of its own, stopped with its last user.
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

const PROGRAM: &str = "/usr/sbin/mariadbd";

/// Starts the server, says so, and stops it when told how, or when nobody is there any more. The server is started
/// before the shell turns deaf, so that it hears what stops it.
const LEASH: &str = r#"
directory=$1
shift
/usr/sbin/mariadbd "$@" >"$directory/log" 2>&1 </dev/null & pid=$!
trap '' INT TERM HUP
tries=0
until mariadb-admin --no-defaults -u root -S "$directory/socket" ping >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 600 ] || ! kill -0 "$pid" 2>/dev/null; then
        echo failed
        kill -KILL "$pid" 2>/dev/null
        wait "$pid"
        exit 1
    fi
    sleep 0.1
done
echo ready
read -r how || how=KILL
kill -"$how" "$pid"
wait "$pid"
"#;

const SETTINGS: [&str; 8] = [
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--max-connections=200",
    "--innodb-log-file-size=16M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=1",
    "--character-set-server=latin1",
    "--default-time-zone=+05:30",
];

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A running server.
pub struct Server {
    directory: PathBuf,
    settings: Vec<String>,
    port: u16,
    leash: Mutex<Option<Leash>>,
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

    /// Starts a server of its own with further `settings`, each an option of its command line.
    ///
    /// # Errors
    /// With the package to install, or the server's own words.
    pub fn start(settings: &[&str]) -> io::Result<Self> {
        if !Path::new(PROGRAM).exists() {
            let missing = "MariaDB's server is not installed: install the package mariadb-server (as in Debian)";
            return Err(io::Error::new(io::ErrorKind::NotFound, missing));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("counterfoil-my-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory)?;
        // The server runs as another user, and puts its files into a directory of that user's.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))?;
        let mut server = Self { directory, settings: Vec::new(), port: free_port()?, leash: Mutex::new(None) };
        let made = as_mysql("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg("--innodb-log-file-size=16M")
            .arg(format!("--datadir={}", server.data().display()))
            // Several at once would take each other's temporary tables.
            .arg(format!("--tmpdir={}", server.directory.display()))
            .output()?;
        succeeded("mariadb-install-db", &made)?;
        server.settings = SETTINGS.iter().chain(settings).map(|setting| (*setting).to_owned()).collect();
        server.run()?;
        let user =
            "CREATE USER IF NOT EXISTS tester@'127.0.0.1'; GRANT ALL ON *.* TO tester@'127.0.0.1' WITH GRANT OPTION";
        server.sql("", user)?;
        Ok(server)
    }

    /// Starts it again after [`Server::stop`].
    ///
    /// # Errors
    /// With the server's log.
    pub fn run(&self) -> io::Result<()> {
        let mut shell = as_mysql("/bin/sh")
            .args(["-c", LEASH, "leash"])
            .arg(&self.directory)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data().display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.directory.join("pid").display()))
            .arg(format!("--tmpdir={}", self.directory.display()))
            .arg(format!("--port={}", self.port))
            .args(&self.settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let Some(told) = shell.stdout.take() else { return Err(io::Error::other("the leash has no pipe")) };
        let mut told = BufReader::new(told);
        let mut line = String::new();
        told.read_line(&mut line)?;
        if line.trim() != "ready" {
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            return Err(io::Error::other(format!("the server does not start: {log}")));
        }
        *self.leash.lock().unwrap_or_else(PoisonError::into_inner) = Some(Leash { shell, _told: told });
        Ok(())
    }

    /// Stops it by a signal: `TERM` lets transactions roll back in order, `KILL` is a crash.
    ///
    /// # Errors
    /// Where the shell that holds it cannot be told.
    pub fn stop(&self, signal: &str) -> io::Result<()> {
        let leash = self.leash.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut leash) = leash else { return Ok(()) };
        if let Some(mut pipe) = leash.shell.stdin.take() {
            writeln!(pipe, "{signal}")?;
        }
        leash.shell.wait().map(drop)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Runs statements in `database`; what they print, without decoration.
    ///
    /// # Errors
    /// The server's own words.
    pub fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-u", "root", "-N", "-B", "-S"]).arg(self.socket());
        let output = command.args(["-e", statements, database]).output()?;
        succeeded("mariadb", &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// An empty database.
    ///
    /// # Errors
    /// The server's own words.
    pub fn empty(self: &Arc<Self>) -> io::Result<Database> {
        let name = format!("store_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.sql("", &format!("CREATE DATABASE {name}"))?;
        Ok(Database { server: self.clone(), name })
    }

    /// A database with an empty store on a [`TestTime`](super::TestTime).
    ///
    /// # Errors
    /// The server's own words, or the migration's.
    pub async fn with_store(self: &Arc<Self>) -> io::Result<Database> {
        let database = self.empty()?;
        crate::MysqlStore::migrate(&database.url()).await.map_err(io::Error::other)?;
        database.sql(&super::time::INSTALL.join("; "))?;
        Ok(database)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody can be told here; the leash stops it either way.
        drop(self.stop("KILL"));
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
        self.url_through(self.server.port)
    }

    /// Its address through something that listens on `port`.
    #[must_use]
    pub fn url_through(&self, port: u16) -> String {
        format!("mysql://tester@127.0.0.1:{port}/{}", self.name)
    }

    /// Runs statements; what they print, without decoration.
    ///
    /// # Errors
    /// The server's own words.
    pub fn sql(&self, statements: &str) -> io::Result<String> {
        self.server.sql(&self.name, statements)
    }
}

/// `program` as the user mysql where this is root, whom the server would refuse.
fn as_mysql(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=mysql", "--regid=mysql", "--clear-groups", program]);
    // Where this user may not be, the program would complain.
    command.current_dir("/");
    command
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn succeeded(what: &str, output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let told = [output.stdout.as_slice(), &output.stderr].concat();
    Err(io::Error::other(format!("{what}: {}", String::from_utf8_lossy(&told))))
}
