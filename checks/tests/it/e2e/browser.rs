//! A browser's `fetch` from pages of other origins: what the Fetch standard's CORS protocol lets them read.
//!
//! What does not belong here: which headers that takes, which the middleware's tests of CORS say.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;

use super::{nginx::Nginx, process::Process, served::Served, upstream::read_request};

/// How long a page may take to tell what it read before the test fails.
const TOLD_WITHIN: Duration = Duration::from_mins(1);

/// A page on an origin of its own, and what it tells that origin.
struct Site {
    origin: String,
    told: Receiver<Value>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (tell, told) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let tell = tell.clone();
                // A connection that the browser only keeps ready needs no answer.
                thread::spawn(move || answer(&stream, &tell).is_ok());
            }
        });
        Self { origin, told }
    }

    fn told(&self) -> [Value; 4] {
        let told = self.told.recv_timeout(TOLD_WITHIN).expect("the page tells what it read");
        serde_json::from_value::<Vec<Value>>(told).ok().and_then(|told| told.try_into().ok()).expect("four answers")
    }
}

fn answer(mut stream: &TcpStream, tell: &Sender<Value>) -> std::io::Result<()> {
    let (first, body) = read_request(stream)?;
    let (status, page) = match first.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/"] => ("200 OK", include_str!("page.html")),
        ["POST", "/told"] => {
            let _ = tell.send(serde_json::from_slice(&body)?);
            ("204 No Content", "")
        }
        _ => ("404 Not Found", ""),
    };
    let head = "Content-Type: text/html; charset=utf-8\r\nConnection: close";
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len())
}

/// Debian's browser, without a window and with nothing of its own to ask anybody.
pub(super) fn chromium(home: &Path) -> Command {
    let mut command = Command::new("chromium");
    command.env("HOME", home).env("TMPDIR", home).env_remove("XDG_CONFIG_HOME").env_remove("XDG_CACHE_HOME");
    command.arg(format!("--user-data-dir={}", home.join("profile").display()));
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"]);
    command.args(["--no-first-run", "--disable-background-networking", "--disable-component-update"]);
    command.args(["--disable-sync", "--no-proxy-server"]);
    command
}

/// The browser while it shows a page.
struct Chromium(Process);

impl Chromium {
    fn open(home: &Path, url: &str) -> Self {
        Self(Process::start(chromium(home).arg(url)))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Its parts are processes of their own, and end with it when it is told to.
        self.0.signal(Signal::TERM);
        self.0.end();
    }
}

#[test]
fn pages_read_what_their_origin_may() {
    let home = tempfile::tempdir().expect("a directory");
    // An API that every page may use.
    let api = Nginx::start(
        "",
        r#"location / {
            add_header Access-Control-Allow-Origin * always;
            add_header Access-Control-Allow-Headers "Content-Type, Idempotency-Key";
            if ($request_method = OPTIONS) { return 204; }
            return 201 '{"made": "$request_id"}';
        }"#,
    );
    let (named, other) = (Site::start(), Site::start());
    let cors = format!("cors.origins = [\"{}\"]\n", named.origin);
    let served = Served::configured(home.path(), &api.url(""), &cors);
    let pages = format!("{0}/#{2},k-1,{1}/#{2},k-2", named.origin, other.origin, served.url(""));
    let browser = Chromium::open(home.path(), &pages);

    let [fresh, replayed, changed, malformed] = named.told();
    for (answer, said) in [(&fresh, "false"), (&replayed, "true")] {
        assert_eq!((&answer["status"], &answer["replayed"]), (&201.into(), &said.into()), "{answer}");
        assert!(answer["expires"].is_string() && answer["body"] == fresh["body"], "{answer}");
    }
    for (answer, status, kind) in [(&changed, 422, "mismatch"), (&malformed, 400, "malformed-key")] {
        assert_eq!(
            (&answer["status"], &answer["type"]),
            (&status.into(), &"application/problem+json".into()),
            "{answer}"
        );
        assert!(answer["body"]["type"].as_str().is_some_and(|found| found.ends_with(kind)), "{answer}");
    }

    let [fresh, replayed, changed, malformed] = other.told();
    assert_eq!((&fresh["status"], &fresh["replayed"]), (&201.into(), &"false".into()), "the API lets it: {fresh}");
    for answer in [replayed, changed, malformed] {
        assert_eq!(answer["error"], "TypeError", "nobody lets it: {answer}");
    }
    drop(browser);
    let asked = api.asked();
    let of = |method: &str| asked.iter().filter(|line| line.starts_with(method)).count();
    assert_eq!(of("POST"), 2, "each page ordered once: {asked:?}");
    assert!(of("OPTIONS") >= 2, "each page asked the API whether it may: {asked:?}");
    served.stop();
}
