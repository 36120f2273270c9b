//! Where each HTTP/1.1 request begins and ends, by the strict reading of RFC 9112 only: whatever two programs could
//! read differently is a fault. What a request asks for does not belong here.

/// The longest header name that is looked at, in bytes.
const NAME_BYTES: usize = 17;
/// The longest value that is looked at, in bytes.
const VALUE_BYTES: usize = 32;
/// The most hexadecimal digits of a chunk's size.
const SIZE_DIGITS_MAX: u8 = 15;
/// The longest extension of a chunk, in bytes.
const EXTENSION_BYTES_MAX: u16 = 256;
/// The most digits of a length.
const LENGTH_DIGITS_MAX: usize = 18;

/// Why a byte must not be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// Its place in what was fed.
    pub(super) at: usize,
    /// Whether the header was whole by then.
    pub(super) in_body: bool,
    /// In which request of the connection, from 1.
    pub(super) request: usize,
    pub(super) why: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before a request line; one empty line may stand there (RFC 9112 section 2.2).
    Start {
        blank: bool,
    },
    StartLf,
    RequestLine,
    RequestLf,
    LineStart,
    Name,
    Value,
    ValueLf,
    EndLf,
    Length(u64),
    ChunkSize {
        size: u64,
        digits: u8,
    },
    ChunkExtension {
        size: u64,
        length: u16,
    },
    ChunkSizeLf {
        size: u64,
    },
    ChunkData {
        left: u64,
    },
    ChunkCr,
    ChunkLf,
}

/// The header lines that say how long a body is.
#[derive(Clone, Copy)]
struct Head {
    /// The end of the request line, which is its version.
    version: [u8; 8],
    hosts: u8,
    codings: u8,
    chunked: bool,
    lengths: u8,
    length: u64,
    trailers: bool,
}

impl Head {
    const fn new() -> Self {
        Self { version: [0; 8], hosts: 0, codings: 0, chunked: false, lengths: 0, length: 0, trailers: false }
    }
}

/// A few bytes, and whether there were more.
#[derive(Clone, Copy)]
struct Short<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Short<N> {
    const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
        }
        self.length = self.length.saturating_add(1);
    }

    /// The bytes, where they are not too many.
    fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length)
    }
}

/// Reads one connection's requests.
pub(super) struct Framing {
    state: State,
    head: Head,
    name: Short<NAME_BYTES>,
    value: Short<VALUE_BYTES>,
    /// How many requests have begun.
    requests: usize,
}

impl Framing {
    pub(super) const fn new() -> Self {
        let state = State::Start { blank: false };
        Self { state, head: Head::new(), name: Short::new(), value: Short::new(), requests: 0 }
    }

    /// Reads on.
    ///
    /// # Errors
    /// The first byte that must not be there.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            // Bodies are passed over and not looked at.
            let left = (bytes.len() - at) as u64;
            if let State::Length(length) | State::ChunkData { left: length } = self.state {
                let taken = length.min(left);
                self.passed(length - taken);
                at += usize::try_from(taken).unwrap_or(usize::MAX);
            } else {
                let in_body = self.in_body();
                let stepped = self.step(*byte);
                self.state = stepped.map_err(|why| Fault { at, in_body, request: self.requests, why })?;
                at += 1;
            }
        }
        Ok(())
    }

    const fn in_body(&self) -> bool {
        match self.state {
            State::Start { .. } | State::StartLf | State::RequestLine | State::RequestLf => false,
            State::LineStart | State::Name | State::Value | State::ValueLf | State::EndLf => self.head.trailers,
            State::Length(_)
            | State::ChunkSize { .. }
            | State::ChunkExtension { .. }
            | State::ChunkSizeLf { .. }
            | State::ChunkData { .. }
            | State::ChunkCr
            | State::ChunkLf => true,
        }
    }

    /// So much of a body is still to come.
    const fn passed(&mut self, left: u64) {
        self.state = match (self.state, left) {
            (State::ChunkData { .. }, 0) => State::ChunkCr,
            (State::ChunkData { .. }, left) => State::ChunkData { left },
            (_, 0) => State::Start { blank: false },
            (_, left) => State::Length(left),
        };
    }

    fn step(&mut self, byte: u8) -> Result<State, &'static str> {
        match self.state {
            State::Start { .. } | State::StartLf | State::RequestLine | State::RequestLf => self.start(byte),
            State::LineStart | State::Name | State::Value | State::ValueLf | State::EndLf => self.line(byte),
            State::Length(_) | State::ChunkData { .. } => Ok(self.state),
            State::ChunkSize { .. }
            | State::ChunkExtension { .. }
            | State::ChunkSizeLf { .. }
            | State::ChunkCr
            | State::ChunkLf => self.chunk(byte),
        }
    }

    fn start(&mut self, byte: u8) -> Result<State, &'static str> {
        match (self.state, byte) {
            (State::Start { blank: false }, b'\r') => Ok(State::StartLf),
            (State::StartLf, b'\n') => Ok(State::Start { blank: true }),
            (State::Start { .. }, byte) if byte.is_ascii_graphic() => {
                self.head = Head::new();
                self.requests = self.requests.saturating_add(1);
                self.version(byte);
                Ok(State::RequestLine)
            }
            (State::RequestLine, b'\r') => Ok(State::RequestLf),
            (State::RequestLf, b'\n') => Ok(State::LineStart),
            (State::RequestLine, b'\n') => Err("a line ends without CR"),
            (State::RequestLine, byte) => {
                self.version(byte);
                Ok(State::RequestLine)
            }
            (State::RequestLf, _) => Err("a CR alone"),
            _ => Err("no request begins so"),
        }
    }

    fn version(&mut self, byte: u8) {
        self.head.version.rotate_left(1);
        if let Some(last) = self.head.version.last_mut() {
            *last = byte;
        }
    }

    fn line(&mut self, byte: u8) -> Result<State, &'static str> {
        match (self.state, byte) {
            (State::LineStart, b'\r') => {
                self.judge()?;
                Ok(State::EndLf)
            }
            (State::LineStart, b' ' | b'\t') => Err("a header line goes on in the next"),
            (State::LineStart, b':') => Err("a header line without a name"),
            (State::LineStart, byte) if is_token(byte) => {
                (self.name, self.value) = (Short::new(), Short::new());
                self.name.push(byte.to_ascii_lowercase());
                Ok(State::Name)
            }
            (State::Name, b':') => Ok(State::Value),
            (State::Name, byte) if is_token(byte) => {
                self.name.push(byte.to_ascii_lowercase());
                Ok(State::Name)
            }
            (State::Name, b' ' | b'\t') => Err("a space before the colon"),
            (State::Value, b'\r') => {
                self.note()?;
                Ok(State::ValueLf)
            }
            (State::Value, b'\n') => Err("a line ends without CR"),
            (State::Value, byte) => {
                self.value.push(byte);
                Ok(State::Value)
            }
            (State::ValueLf, b'\n') => Ok(State::LineStart),
            (State::EndLf, b'\n') => Ok(self.after_head()),
            (State::ValueLf | State::EndLf, _) => Err("a CR alone"),
            _ => Err("no header line is written so"),
        }
    }

    /// Takes note of a header line that says how long the body is, or for whom.
    fn note(&mut self) -> Result<(), &'static str> {
        let head = &mut self.head;
        match self.name.get() {
            Some(b"content-length" | b"transfer-encoding" | b"host") if head.trailers => {
                Err("a trailer that belongs to the header")
            }
            Some(b"host") => {
                head.hosts = head.hosts.saturating_add(1);
                if head.hosts > 1 { Err("two hosts") } else { Ok(()) }
            }
            Some(b"transfer-encoding") => {
                head.codings = head.codings.saturating_add(1);
                let value = self.value.get().unwrap_or_default();
                head.chunked = trim(value).eq_ignore_ascii_case(b"chunked");
                if head.codings == 1 && head.chunked { Ok(()) } else { Err("a coding other than chunked") }
            }
            Some(b"content-length") => {
                head.lengths = head.lengths.saturating_add(1);
                let value = trim(self.value.get().unwrap_or_default());
                let digits = !value.is_empty() && value.len() <= LENGTH_DIGITS_MAX;
                if !digits || !value.iter().all(u8::is_ascii_digit) {
                    return Err("a length that is no number");
                }
                head.length = value.iter().fold(0, |length, digit| length * 10 + u64::from(digit - b'0'));
                if head.lengths > 1 { Err("two lengths") } else { Ok(()) }
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What a whole header can get wrong.
    fn judge(&self) -> Result<(), &'static str> {
        let head = &self.head;
        if head.trailers {
            return Ok(());
        }
        let one_dot_one = &head.version == b"HTTP/1.1";
        if head.chunked && head.lengths > 0 {
            return Err("both a length and chunks");
        }
        if head.chunked && !one_dot_one {
            return Err("chunks before HTTP/1.1");
        }
        if one_dot_one && head.hosts == 0 {
            return Err("no host");
        }
        Ok(())
    }

    const fn after_head(&self) -> State {
        if self.head.trailers {
            State::Start { blank: false }
        } else if self.head.chunked {
            State::ChunkSize { size: 0, digits: 0 }
        } else if self.head.length > 0 {
            State::Length(self.head.length)
        } else {
            State::Start { blank: false }
        }
    }

    fn chunk(&mut self, byte: u8) -> Result<State, &'static str> {
        match (self.state, byte) {
            (State::ChunkSize { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                if digits == SIZE_DIGITS_MAX {
                    return Err("a chunk that is too long");
                }
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                Ok(State::ChunkSize { size: size * 16 + u64::from(digit), digits: digits + 1 })
            }
            (State::ChunkSize { digits: 0, .. }, _) => Err("a chunk without a size"),
            (State::ChunkSize { size, .. }, b';') => Ok(State::ChunkExtension { size, length: 0 }),
            (State::ChunkSize { size, .. } | State::ChunkExtension { size, .. }, b'\r') => {
                Ok(State::ChunkSizeLf { size })
            }
            (State::ChunkExtension { size, length }, byte) if !byte.is_ascii_control() || byte == b'\t' => {
                if length == EXTENSION_BYTES_MAX {
                    return Err("a chunk's extension that is too long");
                }
                Ok(State::ChunkExtension { size, length: length + 1 })
            }
            (State::ChunkSizeLf { size: 0 }, b'\n') => {
                self.head.trailers = true;
                Ok(State::LineStart)
            }
            (State::ChunkSizeLf { size }, b'\n') => Ok(State::ChunkData { left: size }),
            (State::ChunkCr, b'\r') => Ok(State::ChunkLf),
            (State::ChunkLf, b'\n') => Ok(State::ChunkSize { size: 0, digits: 0 }),
            _ => Err("no chunk is written so"),
        }
    }
}

/// Without the white space around a value (RFC 9110 section 5.6.3).
fn trim(value: &[u8]) -> &[u8] {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !space(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !space(byte)).map_or(start, |last| last + 1);
    value.get(start..end).unwrap_or_default()
}

/// Whether a header name may hold this byte (RFC 9110 section 5.6.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

#[cfg(test)]
mod tests;
