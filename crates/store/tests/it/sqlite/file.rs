//! What happens to a store whose file is taken away, locked, made read-only, or damaged while it is in use.
//! What is refused at opening stands in `open`.

use std::fs;

use counterfoil_core::Policy;
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::Origin;
use counterfoil_store::{Applied, ErrorKind};

use super::{Place, claim, claimed, claiming, order, origin, record, refused};

#[tokio::test]
async fn a_deleted_or_replaced_file_is_unavailable_before_any_claim() {
    for replaced in [false, true] {
        let place = Place::new();
        let store = place.with_orders();
        claimed(&store, "a", 1).await;
        store.health().unwrap();
        let aside = place.directory.path().join("aside");
        fs::rename(place.path(), &aside).unwrap();
        if replaced {
            fs::copy(&aside, place.path()).unwrap();
        }
        let says = if replaced { "was replaced" } else { "was deleted" };
        refused(store.health(), ErrorKind::Unavailable, says);
        let error = refused(store.swap(claiming("b", 2, &store)).await, ErrorKind::Unavailable, says);
        assert_eq!(error.applied, Applied::No);
        let executed = store
            .execute(claim("c"), &Policy::default(), |_| -> Result<_, String> { panic!("the effect was called") })
            .await;
        refused(executed, ErrorKind::Unavailable, says);
        refused(store.read(&super::identity("a")).await, ErrorKind::Unavailable, says);
        // Put back, nothing is lost.
        fs::rename(&aside, place.path()).unwrap();
        store.health().unwrap();
        claimed(&store, "b", 2).await;
        assert!(record(&store, "a").await.is_some());
    }
}

#[tokio::test]
async fn a_file_that_another_process_holds_is_busy_and_nothing_is_applied() {
    let place = Place::new();
    let store = place.with_orders();
    let other = place.outside();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = refused(store.swap(claiming("a", 1, &store)).await, ErrorKind::Busy, "another process");
    assert_eq!(error.applied, Applied::No);
    let executed = store.execute(claim("b"), &Policy::default(), order("1")).await;
    refused(executed, ErrorKind::Busy, "another process");
    assert_eq!(record(&store, "a").await, None);
    other.execute_batch("ROLLBACK").unwrap();
    claimed(&store, "a", 1).await;
    assert_eq!(origin(store.execute(claim("b"), &Policy::default(), order("1")).await), Origin::Fresh);
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_never_treated_as_empty() {
    let place = Place::new();
    let store = place.open();
    for key in 0..50_usize {
        claimed(&store, &format!("key-{key}"), 1).await;
    }
    drop(store);
    let mut bytes = fs::read(place.path()).unwrap();
    // All pages but the first two, which hold the schema.
    bytes[8192..].fill(0xa5);
    fs::write(place.path(), bytes).unwrap();
    match place.open_with(place.options()) {
        Err(error) => assert!(error.to_string().contains("restore"), "{error}"),
        Ok(store) => {
            let error = store.swap(claiming("key-1", 2, &store)).await.unwrap_err();
            assert_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No), "{error}");
        }
    }
}

#[tokio::test]
async fn a_file_that_may_not_be_written_is_refused_with_the_next_step() {
    let place = Place::new();
    claimed(&place.open(), "a", 1).await;
    let mut read_only = fs::metadata(place.path()).unwrap().permissions();
    read_only.set_readonly(true);
    fs::set_permissions(place.path(), read_only).unwrap();
    // Root may write all the same; then nothing is to be seen here.
    let writable = fs::OpenOptions::new().write(true).open(place.path()).is_ok();
    if !writable {
        refused(place.open_with(place.options()), ErrorKind::Unavailable, "writable");
    }
    // A connection that may only read meets the same error code.
    let conn = place.outside();
    conn.execute_batch("PRAGMA query_only = ON").unwrap();
    conn.execute_batch("DELETE FROM counterfoil_record").unwrap_err();
}
