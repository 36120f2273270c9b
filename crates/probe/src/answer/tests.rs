//! Answers as bytes, and what is read of them.

use super::read;

async fn check(bytes: &str, half: bool, wanted: Result<(u16, &str, bool, bool), &str>) {
    let mut stream = bytes.as_bytes();
    let found = read(&mut stream, half).await;
    match wanted {
        Ok((status, body, whole, reusable)) => {
            let answer = found.answer.unwrap_or_else(|| panic!("{bytes:?}: {:?}", found.fault));
            let seen = (answer.status, answer.body.as_str(), answer.whole, found.reusable);
            assert_eq!(seen, (status, body, whole, reusable), "{bytes:?}");
        }
        Err(part) => assert!(found.fault.as_ref().is_some_and(|why| why.contains(part)), "{bytes:?}: {found:?}"),
    }
}

#[tokio::test]
async fn answers_of_every_framing() {
    let length = "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nabcd";
    check(length, false, Ok((201, "abcd", true, true))).await;
    check(length, true, Ok((201, "ab", false, false))).await;
    check(&length.replace("Created", "Created\r\nConnection: close"), false, Ok((201, "abcd", true, false))).await;
    check(&length.replace("1.1", "1.0"), false, Ok((201, "abcd", true, false))).await;
    check(&format!("HTTP/1.1 100 Continue\r\n\r\n{length}"), false, Ok((201, "abcd", true, true))).await;
    let coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: 1\r\n\r\n";
    check(coded, false, Ok((200, "abcd", true, true))).await;
    check(coded, true, Ok((200, "a", false, false))).await;
    check("HTTP/1.1 200 OK\r\n\r\nabc", false, Ok((200, "abc", true, false))).await;
    check("HTTP/1.1 204 No Content\r\n\r\n", false, Ok((204, "", true, true))).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false, Ok((200, "abc", false, false))).await;
}

#[tokio::test]
async fn what_is_no_answer_is_said() {
    check("", false, Err("ended before")).await;
    check("HTTP/1.1 200", false, Err("in the middle of")).await;
    check("SSH-2.0\r\n\r\n", false, Err("does not begin an answer")).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false, Err("no number")).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", false, Err("more than")).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false, Err("no length of a chunk")).await;
    check("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", false, Err("no header")).await;
}
