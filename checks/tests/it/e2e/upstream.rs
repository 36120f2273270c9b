//! The guarded service of most checks: it counts what reaches it, and holds a request until it is told to go on.
//!
//! `/hold` stands still, everything else answers 201 at once. What does not belong here: any idea of keys.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

/// How long a request may take to come before the test fails.
const ARRIVES_WITHIN: Duration = Duration::from_mins(1);

/// A service on a free port; its threads end with the test's process.
pub(super) struct Upstream {
    address: String,
    calls: Arc<AtomicUsize>,
    held: Receiver<()>,
    go: Sender<()>,
}

/// What its threads share.
struct Inside {
    calls: Arc<AtomicUsize>,
    held: Sender<()>,
    go: Mutex<Receiver<()>>,
}

impl Upstream {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (calls, (held, told), (go, may)) = (Arc::new(AtomicUsize::new(0)), channel(), channel());
        let inside = Arc::new(Inside { calls: calls.clone(), held, go: Mutex::new(may) });
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let inside = inside.clone();
                // A caller that has gone needs no answer.
                std::thread::spawn(move || inside.answer(&stream).is_ok());
            }
        });
        Self { address, calls, held: told, go }
    }

    pub(super) fn url(&self) -> &str {
        &self.address
    }

    /// How many requests have reached it.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Waits until a request stands still in it.
    pub(super) fn wait_held(&self) {
        self.held.recv_timeout(ARRIVES_WITHIN).expect("a request comes");
    }

    /// Lets one request that stands still go on.
    pub(super) fn release(&self) {
        self.go.send(()).expect("it lives");
    }
}

impl Inside {
    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let (first, _) = read_request(stream)?;
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if first.contains(" /hold") {
            let _ = self.held.send(());
            let _ = self.go.lock().map(|go| go.recv());
        }
        let said = format!("{{\"call\": {call}}}");
        let head = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ";
        write!(stream, "{head}{}\r\n\r\n{said}", said.len())
    }
}

/// A request's first line and its body, which has a length.
pub(super) fn read_request(stream: &TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut from = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    from.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", bytes)) => length = bytes.parse().unwrap_or_default(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok((first, body))
}
