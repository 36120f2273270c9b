//! A lane outlasts a panic in what it carries, and whoever waited for that is told.
//! Which of those who wait go together is tested beside the queue.

use tokio::sync::oneshot;

use super::carried;

#[tokio::test]
async fn a_batch_that_panics_ends_alone_and_its_callers_are_let_go() {
    let (reply, answer) = oneshot::channel::<()>();
    carried(async move {
        let _held = reply;
        tokio::task::yield_now().await;
        panic!("planted");
    })
    .await;
    assert!(answer.await.is_err());
}
