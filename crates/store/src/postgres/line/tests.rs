//! What a lane outlasts.

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
