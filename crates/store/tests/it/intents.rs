//! What every store of intents must do, checked alike for each; and the intents that its tests write.
//! What becomes of an intent is tested in core; what only one store promises, in its own module.

use std::time::Duration;

use counterfoil_core::intent::{Draft, Event, Header, Intent, Name, Outbound, ProfileRef, Terms, Value, next};
use counterfoil_core::profile::{Carrier, Encoding, Format, Generator, KeyRule, Profile};
use counterfoil_core::{Identity, Key, LeaseId};
use counterfoil_store::IntentStore;
use counterfoil_store::intents::Put;

/// A contract that says nothing but where its key stands.
pub(crate) fn profile() -> Profile {
    let carrier = Carrier::Header { name: "idempotency-key".to_owned(), encoding: Encoding::Raw, first_sent: None };
    Profile {
        id: "mail".to_owned(),
        version: 1,
        title: "Mail".to_owned(),
        sources: Vec::new(),
        notes: Vec::new(),
        key: KeyRule {
            carrier,
            bytes_min: 1,
            bytes_max: 255,
            length_said: false,
            format: Format::Any,
            generate: Generator::Uuid7,
        },
        methods: Vec::new(),
        scope: Vec::new(),
        window: None,
        wait_min: Duration::ZERO,
        marker: None,
        advice: None,
        remembers: Vec::new(),
        answers: Vec::new(),
        lookup: None,
        cancel: None,
    }
}

pub(crate) fn draft(name: &str, body: &'static str) -> Draft {
    let media = Header { name: "content-type".to_owned(), value: Value::Plain("application/json".into()) };
    Draft {
        name: Name::new(name).unwrap(),
        method: http::Method::POST,
        url: "http://127.0.0.1:9/mails".to_owned(),
        headers: vec![media],
        body: body.into(),
        scope: None,
        profile: ProfileRef { id: "mail".to_owned(), version: 1 },
    }
}

pub(crate) fn outbound(name: &str, body: &'static str, parent: Option<Identity>) -> Outbound {
    Outbound::new(draft(name, body), parent)
}

fn intent(store: &dyn IntentStore, name: &str) -> Intent {
    let profile = profile();
    let request = draft(name, "{}").freeze(&Key::new(name).unwrap(), &profile.key.carrier).unwrap();
    Intent::new(request, Terms::new(&profile, None, Duration::from_secs(30)), store.now().at)
}

/// The names of what is due, at most `limit`.
pub(crate) async fn due(store: &dyn IntentStore, limit: usize) -> Vec<String> {
    let due = store.due(None, limit).await.unwrap();
    due.intents.iter().map(|intent| intent.request.name.as_str().to_owned()).collect()
}

/// The seam's promises, on an empty store.
pub(crate) async fn check(store: &dyn IntentStore) {
    let (a, b) = (intent(store, "a"), intent(store, "b"));
    assert_eq!(store.intent(&a.request.name).await.unwrap(), None);
    assert_eq!(store.put(None, a.clone()).await.unwrap(), Put::Won);
    assert_eq!(store.put(None, b.clone()).await.unwrap(), Put::Won);
    assert_eq!(store.put(None, a.clone()).await.unwrap(), Put::Lost(Some(a.clone())), "a name stands once");
    assert_eq!(due(store, 10).await, ["a", "b"]);
    assert_eq!(due(store, 1).await, ["a"], "the longest waiting first");
    // A look that found as much as it asked for goes on behind the last.
    let mut seen = Vec::new();
    let mut turn = None;
    for more in [true, true, false] {
        let look = store.due(turn, 1).await.unwrap();
        seen.extend(look.intents.iter().map(|intent| intent.request.name.as_str().to_owned()));
        turn = look.more;
        assert_eq!(turn.is_some(), more);
    }
    assert_eq!(seen, ["a", "b"]);

    // The conditional write decides between two who would send.
    let begun = |lease: u8| {
        let begin = Event::Begin { lease: LeaseId::from_bytes([lease; 16]), holder: store.holder() };
        next(&a, &begin, store.now()).write.unwrap()
    };
    let (one, other) = (begun(1), begun(2));
    assert_eq!(store.put(Some(1), one.clone()).await.unwrap(), Put::Won);
    assert_eq!(store.put(Some(1), other).await.unwrap(), Put::Lost(Some(one.clone())));
    // What is being sent is due when its lease ends.
    assert_eq!(due(store, 10).await, ["b"]);
    assert_eq!(store.due(None, 10).await.unwrap().next, one.due_at());
    assert_eq!(store.intent(&a.request.name).await.unwrap(), Some(one.clone()));

    let first = store.intents(0, 1).await.unwrap();
    assert!(first.more);
    let (position, row) = &first.rows[0];
    assert_eq!(row.as_ref().unwrap(), &one);
    let rest = store.intents(*position, 10).await.unwrap();
    assert_eq!((rest.rows.len(), rest.more), (1, false));

    assert!(!store.forget(&b.request.name, 2).await.unwrap(), "another version stays");
    assert!(store.forget(&b.request.name, 1).await.unwrap());
    assert_eq!(store.put(Some(1), b).await.unwrap(), Put::Lost(None));
}
