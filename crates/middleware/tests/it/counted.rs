//! What is counted: every series by its name and labels, and that no label holds a key, a digest or a path.
//! How it is exported belongs to the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use counterfoil_middleware::{Body, Settings, Terms, Unlisted, metrics as names};
use http::{Request, Response};
use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::kit::{Handler, House, handler, settings};

/// Keeps every counter of this process by its series.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<BTreeMap<String, Arc<Cell>>>>);

#[derive(Default)]
struct Cell(AtomicU64);

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::SeqCst);
    }

    fn absolute(&self, value: u64) {
        self.0.fetch_max(value, Ordering::SeqCst);
    }
}

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let series = format!("{} {}", key.name(), labels.join(" "));
        Counter::from_arc(self.0.lock().unwrap().entry(series).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn book() -> &'static Book {
    static BOOK: OnceLock<Book> = OnceLock::new();
    BOOK.get_or_init(|| {
        let book = Book::default();
        metrics::set_global_recorder(book.clone()).unwrap();
        book
    })
}

/// The counters of one operation, as lines.
fn counted(operation: &str) -> Vec<String> {
    let series = book().0.lock().unwrap();
    let own = series.iter().filter(|(series, _)| series.contains(&format!("operation={operation} ")));
    own.map(|(series, cell)| format!("{series} {}", cell.0.load(Ordering::SeqCst))).collect()
}

fn by_body() -> Handler {
    let tries = Arc::new(AtomicUsize::new(0));
    handler(move |request: Request<Body>| {
        let first = tries.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let status = if first { 400 } else { 201 };
            assert!(request.headers().get("x-panic").is_none(), "as the test asks");
            Ok(Response::builder().status(status).body(Body::empty()).unwrap())
        }
    })
}

async fn drive(house: &House, path: &str) {
    let request = |key: &str, body: &'static str| {
        Request::post(path).header("idempotency-key", key).body(Body::from(body)).unwrap()
    };
    for (key, body) in [("secret", "a"), ("secret", "a"), ("secret", "a"), ("secret", "b")] {
        house.send(request(key, body)).await;
    }
    let mut panicking = request("panic", "a");
    panicking.headers_mut().insert("x-panic", http::HeaderValue::from_static("1"));
    house.send(panicking).await;
    house.send(request("panic", "a")).await;
}

fn expected(operation: &str) -> Vec<String> {
    let decisions = names::DECISIONS;
    let (ends, problems) = (names::ENDS, names::PROBLEMS);
    vec![
        format!("{decisions} operation={operation} decision=execute 3"),
        format!("{decisions} operation={operation} decision=mismatch 1"),
        format!("{decisions} operation={operation} decision=replay 1"),
        format!("{decisions} operation={operation} decision=unknown 1"),
        format!("{ends} operation={operation} end=completed 1"),
        format!("{ends} operation={operation} end=doubted 1"),
        format!("{ends} operation={operation} end=released 1"),
        format!("{problems} operation={operation} problem=mismatch 1"),
        format!("{problems} operation={operation} problem=outcome-unknown 2"),
    ]
}

#[tokio::test]
async fn decisions_ends_and_problems_are_counted_by_operation() {
    book();
    let mut listed = settings(Terms::default());
    for rule in &mut listed.operations {
        rule.name = Some(counterfoil_core::Operation::new("counted-here").unwrap());
        rule.pattern = "POST /counted".parse().unwrap();
    }
    let house = House::with(Settings { unlisted: Unlisted::PassThrough, ..listed }, by_body());
    drive(&house, "/counted").await;
    assert_eq!(counted("counted-here"), expected("counted-here"));
    let all = book().0.lock().unwrap().keys().cloned().collect::<Vec<_>>().join("\n");
    assert!(!all.contains("secret") && !all.contains('/'), "a label holds a key or a path: {all}");
}
