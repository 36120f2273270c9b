//! The golden table of verdicts once more, played by a provider over real connections to a client with a journal: what was
//! read of each answer, and what its intent has come to. Pauses are drawn, so they are not compared.
//!
//! What does not belong here: the table and its scripts (`verdicts`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil_client::profiles::all;
use counterfoil_client::{Client, Http, Wish};
use counterfoil_core::intent::{AttemptEnd, Draft, Intent, Name, ProfileRef, State};
use counterfoil_core::receipt::Body;
use counterfoil_core::{Receipt, Timestamp};
use counterfoil_store::SqliteStore;
use counterfoil_store::clock::TestClock;
use counterfoil_store::sqlite::Options;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::verdicts::{GOLDEN, LATE, Script, scripts};

/// How many sends are under way at once.
const AT_ONCE: usize = 16;

/// What each path is answered with next; nothing where the reply is lost.
type Next = Arc<Mutex<HashMap<String, Option<Vec<u8>>>>>;

/// Answers as it is told; what nobody told it is a look-up, which it does not understand.
async fn provider(next: Next) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, next.clone()));
        }
    });
    format!("http://{address}")
}

async fn answer(mut stream: TcpStream, next: Next) {
    let mut request = Vec::new();
    loop {
        let whole = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").is_some_and(|head| {
            let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            request.len() >= head + 4 + length.map_or(0, |length| length.parse().unwrap())
        });
        if whole {
            break;
        }
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes).await {
            Ok(read) if read > 0 => request.extend_from_slice(&bytes[..read]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split([' ', '?']).nth(1).unwrap().to_owned();
    let unknown = b"HTTP/1.1 500 -\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    let says = next.lock().unwrap().get(&path).cloned().unwrap_or(Some(unknown));
    if let Some(bytes) = says {
        stream.write_all(&bytes).await.unwrap();
    }
}

fn spoken(answer: &Receipt, told: Option<Duration>) -> Vec<u8> {
    let Body::Kept(body) = &answer.body else { panic!("an answer has its body") };
    let mut head = format!("HTTP/1.1 {} -\r\ncontent-length: {}\r\nconnection: close\r\n", answer.status, body.len());
    for (name, value) in answer.headers.iter() {
        head += &format!("{name}: {}\r\n", std::str::from_utf8(value).unwrap());
    }
    if let Some(told) = told {
        head += &format!("retry-after: {}\r\n", told.as_secs());
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// One cell of the table.
#[derive(Clone)]
struct Cell {
    of: String,
    profile: String,
    script: Script,
    doubt: bool,
    name: Name,
    wanted: String,
}

/// What stands in a cell without its pause.
fn without_pause(cell: &str) -> String {
    cell.trim().split(", again ").next().unwrap().to_owned()
}

/// The cells that a provider can play: that a worker dies is played by processes that are killed.
fn cells() -> Vec<Cell> {
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    let mut cells = Vec::new();
    for (profile, lines) in all().iter().zip(golden.split("\n\n")) {
        let rows = lines.lines().skip(3).filter(|line| !line.is_empty());
        for ((name, script), row) in scripts(profile).into_iter().zip(rows) {
            let columns: Vec<&str> = row.splitn(3, " | ").collect();
            assert_eq!(columns[0].trim(), name, "{}", profile.id);
            for (doubt, wanted) in [(false, columns[1]), (true, columns[2])] {
                if !matches!(script, Script::Died) {
                    cells.push(Cell {
                        of: format!("{} | {name} | in doubt: {doubt}", profile.id),
                        profile: profile.id.clone(),
                        script: script.clone(),
                        doubt,
                        name: Name::new(format!("cell/{}", cells.len())).unwrap(),
                        wanted: without_pause(wanted),
                    });
                }
            }
        }
    }
    cells
}

/// Where the journal and the provider are.
struct Stage {
    client: Client,
    clock: TestClock,
    next: Next,
    url: String,
    nowhere: String,
    _directory: TempDir,
}

impl Stage {
    async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let clock = TestClock::new(Timestamp::from_millis(1_790_000_000_000));
        let mut options = Options::default();
        options.clock = Arc::new(clock.clone());
        let store = SqliteStore::open(directory.path().join("journal.db"), options).unwrap();
        let next = Next::default();
        // Bound and given up again: nobody listens there.
        let nowhere = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        Self {
            client: Client::new(store, Arc::new(Http::new().unwrap())),
            clock,
            url: provider(next.clone()).await,
            next,
            nowhere: format!("http://{nowhere}"),
            _directory: directory,
        }
    }

    /// Sends each once, after the provider was told what to do to it.
    async fn send(&self, cells: impl Iterator<Item = (&Cell, Script)>) {
        let mut sending = JoinSet::new();
        for (cell, script) in cells {
            let path = format!("/{}", cell.name.as_str());
            let says = match script {
                Script::Lost | Script::Late | Script::NotSent | Script::Died => None,
                Script::Says(answer, told) => Some(spoken(&answer, told)),
            };
            self.next.lock().unwrap().insert(path.clone(), says);
            // A request goes where it went before, so what is not sent in doubt is a lost reply to the provider.
            let never = matches!(cell.script, Script::NotSent) && !cell.doubt;
            let draft = Draft {
                name: cell.name.clone(),
                method: http::Method::POST,
                url: format!("{}{path}", if never { &self.nowhere } else { &self.url }),
                headers: Vec::new(),
                body: "{}".into(),
                scope: None,
                profile: ProfileRef { id: cell.profile.clone(), version: 1 },
            };
            if sending.len() >= AT_ONCE {
                sending.join_next().await.unwrap().unwrap();
            }
            let client = self.client.clone();
            sending.spawn(async move { drop(client.send(&Wish::new(draft), Duration::ZERO).await.unwrap()) });
        }
        sending.join_all().await;
    }

    async fn stands(&self, cell: &Cell) -> String {
        let intent = self.client.intent(&cell.name).await.unwrap();
        format!("{} -> {}", verdict(&intent, &cell.script), state(&intent))
    }
}

fn verdict(intent: &Intent, script: &Script) -> String {
    match (&intent.attempts.last().unwrap().end, script) {
        (Some(AttemptEnd::Answered { verdict, .. }), Script::Says(..)) => verdict.clone(),
        (Some(AttemptEnd::NotSent { .. }), Script::NotSent) => "-".to_owned(),
        (Some(AttemptEnd::Uncertain { .. }), Script::Lost | Script::Late | Script::NotSent) => "-".to_owned(),
        (end, _) => format!("{end:?}"),
    }
}

fn state(intent: &Intent) -> String {
    match &intent.state {
        State::Overdue { why, .. } => format!("overdue: {}", why.as_str()),
        state => state.as_str().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_provider_that_plays_the_table_is_read_as_it_says() {
    let (stage, cells) = (Stage::new().await, cells());
    assert!(cells.len() > 500, "{} cells", cells.len());
    stage.send(cells.iter().map(|cell| (cell, if cell.doubt { Script::Lost } else { cell.script.clone() }))).await;
    stage.clock.advance(Duration::from_secs(60));
    stage.send(cells.iter().filter(|cell| cell.doubt).map(|cell| (cell, cell.script.clone()))).await;
    let mut strayed = Vec::new();
    let mut look = async |late: bool| {
        for cell in cells.iter().filter(|cell| matches!(cell.script, Script::Late) == late) {
            let stands = stage.stands(cell).await;
            if stands != cell.wanted {
                strayed.push(format!("{}: {stands}, not {}", cell.of, cell.wanted));
            }
        }
    };
    look(false).await;
    stage.clock.advance(LATE);
    let late = |cell: &&Cell| matches!(cell.script, Script::Late);
    stage.send(cells.iter().filter(late).map(|cell| (cell, Script::Lost))).await;
    look(true).await;
    assert!(strayed.is_empty(), "{}", strayed.join("\n"));
}
