//! A line to the upstream: its bytes, and whether it is quiet at this moment. What the bytes mean belongs to `witness`.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::stream::Stream;

/// A byte stream that can be asked what waits in it.
pub(super) trait Line: Stream {
    /// Whether it stands and nothing waits to be read, asked of the system itself: what the runtime knows is what it
    /// knew when it last looked.
    fn is_quiet(&self) -> bool;
}

/// Any line.
pub(super) type AnyLine = Box<dyn Line>;

impl Line for TcpStream {
    fn is_quiet(&self) -> bool {
        is_quiet(self)
    }
}

impl Line for UnixStream {
    fn is_quiet(&self) -> bool {
        is_quiet(self)
    }
}

impl Line for TlsStream<AnyLine> {
    fn is_quiet(&self) -> bool {
        self.get_ref().0.is_quiet()
    }
}

/// A line at its end has nothing to read as well, and says so without waiting.
fn is_quiet(line: impl AsFd) -> bool {
    let mut byte = [0; 1];
    matches!(recv(line, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Err(Errno::AGAIN))
}
