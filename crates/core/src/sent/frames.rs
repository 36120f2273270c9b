//! The outside of HTTP/2 frames (RFC 9113 section 4.1), as far as it tells what became of a request. What is inside
//! belongs to the HTTP library.

const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;
/// How much of a payload is looked at: a stream's number and an error code.
const PAYLOAD_BYTES: usize = 8;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const REFUSED_STREAM: u32 = 7;
const END_STREAM: u8 = 1;
/// The first bit of a stream's number is reserved.
const STREAM_MASK: u32 = 0x7fff_ffff;

/// A frame that says something about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// A message begins.
    Headers { stream: u32 },
    /// A message is whole.
    End { stream: u32 },
    /// A stream ends at once; `refused`: before anything was processed.
    Reset { stream: u32, refused: bool },
    /// No stream above `last` was or will be processed.
    GoAway { last: u32 },
}

/// Reads one direction of a connection.
#[derive(Debug)]
pub(super) struct Frames {
    skipped: usize,
    header: Vec<u8>,
    payload: Vec<u8>,
    left: usize,
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self { skipped: 0, header: Vec::new(), payload: Vec::new(), left: 0 }
    }

    /// The direction that begins with the preface.
    pub(super) const fn after_preface() -> Self {
        Self { skipped: PREFACE_BYTES, header: Vec::new(), payload: Vec::new(), left: 0 }
    }

    /// Reads on, and tells each frame as soon as enough of it is there.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Frame)) {
        take(&mut bytes, &mut self.skipped, |_| {});
        while !bytes.is_empty() {
            if self.left == 0 {
                let mut missing = HEADER_BYTES - self.header.len();
                take(&mut bytes, &mut missing, |taken| self.header.extend_from_slice(taken));
                if missing > 0 {
                    return;
                }
                self.left = self.length();
                self.payload.clear();
                if self.kind() == HEADERS {
                    tell(Frame::Headers { stream: self.stream() });
                }
            }
            let room = PAYLOAD_BYTES - self.payload.len().min(PAYLOAD_BYTES);
            take(&mut bytes, &mut self.left, |taken| {
                self.payload.extend_from_slice(taken.get(..room.min(taken.len())).unwrap_or_default());
            });
            if self.left == 0 {
                self.whole(&mut tell);
                self.header.clear();
            }
        }
    }

    fn whole(&self, tell: &mut impl FnMut(Frame)) {
        let number = |at: usize| self.payload.get(at..at + 4).map_or(0, number);
        match self.kind() {
            DATA | HEADERS if self.flags() & END_STREAM != 0 => tell(Frame::End { stream: self.stream() }),
            RST_STREAM => tell(Frame::Reset { stream: self.stream(), refused: number(0) == REFUSED_STREAM }),
            GOAWAY if self.payload.len() == PAYLOAD_BYTES => tell(Frame::GoAway { last: number(0) & STREAM_MASK }),
            _ => {}
        }
    }

    fn length(&self) -> usize {
        self.header.get(..3).map_or(0, number) as usize
    }

    fn kind(&self) -> u8 {
        self.header.get(3).copied().unwrap_or_default()
    }

    fn flags(&self) -> u8 {
        self.header.get(4).copied().unwrap_or_default()
    }

    fn stream(&self) -> u32 {
        self.header.get(5..).map_or(0, number) & STREAM_MASK
    }
}

/// Takes at most `count` bytes off the front.
fn take(bytes: &mut &[u8], count: &mut usize, with: impl FnOnce(&[u8])) {
    let (taken, rest) = bytes.split_at((*count).min(bytes.len()));
    *count -= taken.len();
    *bytes = rest;
    with(taken);
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

#[cfg(test)]
mod tests;
