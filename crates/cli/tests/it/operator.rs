//! `receipts sweep`, `quarantine` and `clock accept`.

use crate::fixture::Fixture;

#[tokio::test]
async fn sweep() {
    let fixture = Fixture::full().await;
    let swept = fixture.run(&["receipts", "sweep", "--json"]);
    assert_eq!(swept.out, "{\"expired\":1,\"spent\":0,\"stopped\":false}\n");
    fixture.run(&["receipts", "sweep"]).said(0, "0 expired receipts");
    assert_eq!(fixture.run(&["receipts", "export"]).json().len(), 4);
}

#[tokio::test]
async fn quarantine() {
    let fixture = Fixture::full().await;
    fixture.run(&["receipts", "quarantine"]).said(0, "no quarantine stands");
    fixture.run(&["receipts", "quarantine", "--before", "yesterday"]).said(2, "is no instant");
    fixture.run(&["receipts", "quarantine", "--before", "now", "--lift"]).said(2, "cannot be used with");
    fixture.run(&["receipts", "quarantine", "--before", "now"]).said(0, "do not run");
    let stands = fixture.run(&["receipts", "quarantine", "--json"]).json().remove(0);
    assert!(stands["quarantine_before"].as_str().unwrap().starts_with("20"), "{stands}");
    fixture.run(&["receipts", "quarantine", "--before", "2020-01-01T00:00:00Z"]).said(3, "a later quarantine stands");
    fixture.run(&["receipts", "quarantine", "--lift"]).said(3, "wait until then, or say --nothing-older-can-come");
    fixture.run(&["receipts", "quarantine", "--lift", "--nothing-older-can-come"]).said(0, "no quarantine stands");
    // Nothing that was completed so long ago can be promised still.
    fixture.run(&["receipts", "quarantine", "--before", "2020-01-01T00:00:00Z"]).said(0, "2020-01-01T00:00:00Z");
    fixture.run(&["receipts", "quarantine", "--lift"]).said(0, "no quarantine stands");
}

#[tokio::test]
async fn clock() {
    let fixture = Fixture::full().await;
    fixture.run(&["receipts", "clock", "accept"]).said(0, "the clock was not in doubt\nthe store's time is 20");
}
