//! The way between a client and a server that loses answers when it is told to, and notes every key that went over it.
//!
//! What does not belong here: what the requests mean.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A whole request that went over it.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub(super) key: String,
    pub(super) body: String,
}

/// A way on a free port; its threads end with the test's process.
pub(super) struct Lossy {
    address: String,
    inside: Arc<Inside>,
}

struct Inside {
    target: Mutex<String>,
    passed: Mutex<Vec<Passed>>,
    lose: AtomicUsize,
}

impl Lossy {
    /// A way to `target`, a host and port.
    pub(super) fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (target, passed) = (Mutex::new(target.to_owned()), Mutex::default());
        let inside = Arc::new(Inside { target, passed, lose: AtomicUsize::new(0) });
        let shared = inside.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let inside = shared.clone();
                // A client that has gone needs no answer.
                std::thread::spawn(move || inside.carry(&stream).is_ok());
            }
        });
        Self { address, inside }
    }

    /// The server stands elsewhere from now on.
    pub(super) fn aim(&self, target: &str) {
        target.clone_into(&mut self.inside.target.lock().expect("nobody panicked"));
    }

    /// The next `count` answers are lost.
    pub(super) fn lose(&self, count: usize) {
        self.inside.lose.store(count, Ordering::SeqCst);
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What went over it, in order.
    pub(super) fn passed(&self) -> Vec<Passed> {
        self.inside.passed.lock().expect("nobody panicked").clone()
    }

    /// The keys of what holds `mark`, in order.
    pub(super) fn keys(&self, mark: &str) -> Vec<String> {
        self.passed().into_iter().filter(|passed| passed.body.contains(mark)).map(|passed| passed.key).collect()
    }
}

impl Inside {
    fn carry(&self, mut client: &TcpStream) -> std::io::Result<()> {
        let mut from = BufReader::new(client);
        let (mut head, mut key, mut length) = (String::new(), String::new(), 0);
        loop {
            let mut line = String::new();
            if from.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap_or_default(),
                    "idempotency-key" => value.trim().clone_into(&mut key),
                    _ => {}
                }
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        let passed = Passed { key, body: String::from_utf8_lossy(&body).into_owned() };
        self.passed.lock().expect("nobody panicked").push(passed);
        let target = self.target.lock().expect("nobody panicked").clone();
        let mut server = TcpStream::connect(target)?;
        server.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        server.write_all(&body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        let lost = self.lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if lost.is_ok() { Ok(()) } else { client.write_all(&answer) }
    }
}
