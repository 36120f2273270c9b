//! What the bytes of a connection say of the one question that decides about a key: can the other side have acted on the
//! request? A connection carries one request at a time, and each is judged by its own bytes.
//!
//! What does not belong here: the connection (the proxy's and the client's), and what follows from the answer.

mod frames;

use self::frames::{Frame, Frames};

/// What has been seen of a connection.
#[derive(Debug)]
pub struct Sent {
    seen: Seen,
    /// HTTP/2 only: without it a single byte counts as the request.
    frames: Option<Both>,
    /// HTTP/2: the stream of the request before this one.
    before: u32,
    /// HTTP/2: the last stream that the other side may have processed (RFC 9113 section 6.8).
    last: Option<u32>,
}

/// The frames of both directions.
#[derive(Debug)]
struct Both {
    ours: Frames,
    theirs: Frames,
}

/// What was seen of one request.
#[derive(Debug, Default)]
struct Seen {
    /// HTTP/1.1: a byte was handed to the system. HTTP/2: a request was begun, on this stream.
    sent: Option<u32>,
    /// HTTP/2: the request is whole.
    whole: bool,
    /// The other side began to answer.
    answered: bool,
    /// HTTP/2: the answer is whole.
    ended: bool,
    /// A side broke the stream off.
    reset: bool,
    /// The other side refused the stream unprocessed (RFC 9113 section 8.7).
    refused: bool,
}

impl Sent {
    /// A fresh HTTP/1.1 connection.
    #[must_use]
    pub fn one() -> Self {
        Self { seen: Seen::default(), frames: None, before: 0, last: None }
    }

    /// A fresh HTTP/2 connection.
    #[must_use]
    pub fn two() -> Self {
        Self { frames: Some(Both { ours: Frames::after_preface(), theirs: Frames::new() }), ..Self::one() }
    }

    /// Begins with the next request: nothing of it was sent.
    pub fn begin(&mut self) {
        self.before = self.seen.sent.unwrap_or(self.before);
        self.seen = Seen::default();
    }

    /// Whether the other side certainly did not act on the request.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        let Some(stream) = self.seen.sent else { return true };
        let passed_over = self.last.is_some_and(|last| last < stream);
        !self.seen.answered && (self.seen.refused || passed_over)
    }

    /// HTTP/2: whether an answer that seems to be at its end is not whole. A library may take a stream that was cut off
    /// with NO_ERROR for one that ended.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.frames.is_some() && !self.seen.ended
    }

    /// Whether an HTTP/2 connection may carry another request: both sides have said all of this one, and the other side
    /// takes more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.seen.whole && self.seen.ended && !self.seen.reset && self.last.is_none()
    }

    /// These bytes were handed to the system.
    pub fn wrote(&mut self, bytes: &[u8]) {
        let (seen, before) = (&mut self.seen, self.before);
        let Some(frames) = &mut self.frames else {
            // No HTTP/1.1 message has stream 0, and no GOAWAY comes here.
            if !bytes.is_empty() {
                seen.sent = Some(0);
            }
            return;
        };
        frames.ours.feed(bytes, |frame| match frame {
            Frame::Headers { stream } if stream > before => seen.sent = seen.sent.or(Some(stream)),
            Frame::End { stream } => seen.whole |= seen.sent == Some(stream),
            Frame::Reset { stream, .. } => seen.reset |= seen.sent == Some(stream),
            Frame::Headers { .. } | Frame::GoAway { .. } => {}
        });
    }

    /// These bytes came.
    pub fn read(&mut self, bytes: &[u8]) {
        let (seen, lowest) = (&mut self.seen, &mut self.last);
        let Some(frames) = &mut self.frames else { return };
        frames.theirs.feed(bytes, |frame| match frame {
            Frame::Headers { stream } => seen.answered |= seen.sent == Some(stream),
            Frame::End { stream } => seen.ended |= seen.sent == Some(stream),
            Frame::Reset { stream, refused } if seen.sent == Some(stream) => {
                seen.reset = true;
                seen.refused |= refused;
            }
            Frame::Reset { .. } => {}
            Frame::GoAway { last } => *lowest = Some(lowest.map_or(last, |before| before.min(last))),
        });
    }
}
