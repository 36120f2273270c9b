//! Upgrades: joined on unguarded routes, refused on guarded ones.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::running::Running;
use crate::upstream::{Play, Upstream};

const SWITCH: Play =
    Play::Echo("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello from above;");

#[tokio::test]
async fn an_unguarded_connection_switches() {
    let upstream = Upstream::start(SWITCH).await;
    let running = Running::start(upstream.address, "").await;
    let mut stream = TcpStream::connect(running.proxy).await.unwrap();
    stream.write_all(b"GET /live HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n").await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !text.ends_with("hello from above;") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    // What follows is no HTTP, and nothing of it is looked at.
    let bytes = b"\x81\x85\0\n\r\n :\xff\r\n\r\n";
    stream.write_all(bytes).await.unwrap();
    let mut back = [0; 14];
    stream.read_exact(&mut back[..bytes.len()]).await.unwrap();
    assert_eq!(&back[..bytes.len()], bytes);
    assert!(upstream.seen()[0].contains("upgrade: echo\r\n"), "{:?}", upstream.seen());
}
