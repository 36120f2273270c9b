//! When a set is fetched, kept and given up, with time moved by hand.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use jsonwebtoken::Algorithm;
use tokio::time::{advance, timeout};

use super::{Fetched, Jwks, NoKey, PAUSE, Place};
use crate::principal::tests::kit::{Issuer, set};

const REFRESH: Duration = Duration::from_mins(10);
const KEEP: Duration = Duration::from_hours(6);

/// A place that answers what a test says, each time after a second.
#[derive(Clone)]
struct Scripted {
    answers: Arc<Mutex<VecDeque<Option<Vec<u8>>>>>,
    asked: Arc<AtomicUsize>,
}

impl Scripted {
    fn start(answers: &[Option<&Issuer>]) -> (Self, Arc<Jwks>) {
        let answers = answers.iter().map(|issuer| issuer.map(|issuer| set(&[issuer.jwk()]))).collect();
        let place = Self { answers: Arc::new(Mutex::new(answers)), asked: Arc::default() };
        let jwks = Jwks::at(Box::new(place.clone()), REFRESH, KEEP);
        (place, jwks)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Place for Scripted {
    fn fetch(&self) -> Fetched<'_> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            drop(timeout(Duration::from_secs(1), std::future::pending::<()>()).await);
            let answer = self.answers.lock().unwrap().pop_front().expect("nobody expected another question");
            answer.map(Bytes::from).ok_or_else(|| "down".to_owned())
        })
    }
}

async fn key(jwks: &Arc<Jwks>, id: &str) -> Result<usize, NoKey> {
    jwks.keys(Some(id), Algorithm::EdDSA).await.map(|keys| keys.len())
}

#[tokio::test(start_paused = true)]
async fn a_set_is_fetched_once_for_many() {
    let one = Issuer::new("one");
    let (place, jwks) = Scripted::start(&[Some(&one)]);
    let callers: Vec<_> = (0..20)
        .map(|_| {
            tokio::spawn({
                let jwks = jwks.clone();
                async move { key(&jwks, "one").await }
            })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), Ok(1));
    }
    assert_eq!(place.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_looked_for_but_not_more_often_than_the_pause() {
    let (one, two) = (Issuer::new("one"), Issuer::new("two"));
    let (place, jwks) = Scripted::start(&[Some(&one), Some(&two), Some(&two)]);
    assert_eq!(key(&jwks, "one").await, Ok(1));
    for _ in 0..100 {
        assert_eq!(key(&jwks, "two").await, Err(NoKey::Unknown));
    }
    assert_eq!(place.asked(), 1);
    advance(PAUSE).await;
    assert_eq!(key(&jwks, "two").await, Ok(1));
    assert_eq!(place.asked(), 2);
    // What the issuer withdrew is gone with the set.
    assert_eq!(key(&jwks, "one").await, Err(NoKey::Unknown));
    assert_eq!(place.asked(), 2);
    advance(PAUSE).await;
    assert_eq!(key(&jwks, "one").await, Err(NoKey::Unknown));
    assert_eq!(place.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_old_set_is_fetched_again_and_a_withdrawn_key_ends() {
    let (one, two) = (Issuer::new("one"), Issuer::new("two"));
    let (place, jwks) = Scripted::start(&[Some(&one), Some(&two)]);
    assert_eq!(key(&jwks, "one").await, Ok(1));
    advance(REFRESH).await;
    assert_eq!((key(&jwks, "one").await, place.asked()), (Ok(1), 1));
    advance(Duration::from_millis(1)).await;
    assert_eq!((key(&jwks, "one").await, place.asked()), (Err(NoKey::Unknown), 2));
}

#[tokio::test(start_paused = true)]
async fn while_the_place_fails_the_set_is_kept_for_a_while() {
    let one = Issuer::new("one");
    let mut answers = vec![None; 100];
    answers[0] = Some(&one);
    let (place, jwks) = Scripted::start(&answers);
    assert_eq!(key(&jwks, "one").await, Ok(1));
    advance(REFRESH + Duration::from_secs(1)).await;
    assert_eq!((key(&jwks, "one").await, place.asked()), (Ok(1), 2));
    // Nobody can say now whether the issuer has such a key by now.
    assert_eq!(key(&jwks, "two").await, Err(NoKey::Unavailable));
    assert_eq!(place.asked(), 2);
    advance(KEEP - REFRESH - Duration::from_secs(10)).await;
    assert_eq!(key(&jwks, "one").await, Ok(1));
    advance(Duration::from_secs(10)).await;
    assert_eq!(key(&jwks, "one").await, Err(NoKey::Unavailable));
}

#[tokio::test(start_paused = true)]
async fn without_a_set_nobody_is_judged() {
    let one = Issuer::new("one");
    let (place, jwks) = Scripted::start(&[None, Some(&one)]);
    for _ in 0..10 {
        assert_eq!(key(&jwks, "one").await, Err(NoKey::Unavailable));
    }
    assert_eq!(place.asked(), 1);
    advance(PAUSE).await;
    assert_eq!((key(&jwks, "one").await, place.asked()), (Ok(1), 2));
}

/// A caller that hangs up does not end what others wait for.
#[tokio::test(start_paused = true)]
async fn fetching_goes_on_when_its_caller_leaves() {
    let one = Issuer::new("one");
    let (place, jwks) = Scripted::start(&[Some(&one)]);
    timeout(Duration::from_millis(500), key(&jwks, "one")).await.unwrap_err();
    assert_eq!((key(&jwks, "one").await, place.asked()), (Ok(1), 1));
}

#[tokio::test]
async fn a_file_is_read_again() {
    let (one, two) = (Issuer::new("one"), Issuer::new("two"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    std::fs::write(&path, set(&[one.jwk()])).unwrap();
    let jwks = Jwks::at(Box::new(super::InFile(path.clone())), REFRESH, KEEP);
    assert_eq!(key(&jwks, "one").await, Ok(1));
    std::fs::write(&path, set(&[one.jwk(), two.jwk()])).unwrap();
    tokio::time::pause();
    advance(PAUSE).await;
    assert_eq!(key(&jwks, "two").await, Ok(1));
    std::fs::write(&path, vec![b' '; super::BYTES_MAX + 1]).unwrap();
    advance(PAUSE).await;
    assert_eq!(key(&jwks, "three").await, Err(NoKey::Unavailable));
    assert_eq!(key(&jwks, "two").await, Ok(1));
}

/// A token without an id is refused while two keys would do, and no longer than the set is young.
#[tokio::test(start_paused = true)]
async fn an_old_set_with_two_keys_is_fetched_again() {
    let (one, two) = (Issuer::new("one"), Issuer::new("two"));
    let (place, jwks) = Scripted::start(&[]);
    place.answers.lock().unwrap().extend([Some(set(&[one.jwk(), two.jwk()])), Some(set(&[two.jwk()]))]);
    assert_eq!(jwks.keys(None, Algorithm::EdDSA).await.err(), Some(NoKey::Ambiguous));
    advance(REFRESH + Duration::from_millis(1)).await;
    assert_eq!((jwks.keys(None, Algorithm::EdDSA).await.map(|keys| keys.len()), place.asked()), (Ok(1), 2));
}
