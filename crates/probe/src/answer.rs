//! Reads one HTTP/1.1 answer from a stream of bytes (RFC 9112), bounded, and tells when its first byte came.
//!
//! What does not belong here: connections, and requests (`wire.rs`).

use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::exchange::Answer;

/// The most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 65_536;
/// The most bytes of a body that are kept.
pub(crate) const BODY_BYTES_MAX: usize = 1_048_576;
/// How many bytes are read at once.
const PIECE_BYTES: usize = 8_192;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) first_byte: Option<Instant>,
    pub(crate) answer: Option<Answer>,
    pub(crate) fault: Option<String>,
    /// Whether another request can follow on the same connection.
    pub(crate) reusable: bool,
}

/// Bytes that came and are not used yet.
struct Input<'a, S> {
    stream: &'a mut S,
    bytes: Vec<u8>,
    first_byte: Option<Instant>,
}

impl<S: AsyncRead + Unpin> Input<'_, S> {
    /// More bytes; false at the end.
    async fn more(&mut self) -> Result<bool, String> {
        let mut piece = [0; PIECE_BYTES];
        let count = self.stream.read(&mut piece).await.map_err(|error| format!("the connection broke: {error}"))?;
        if count > 0 && self.first_byte.is_none() {
            self.first_byte = Some(Instant::now());
        }
        self.bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        Ok(count > 0)
    }

    /// Takes what stands before `mark`, and the mark.
    async fn until(&mut self, mark: &[u8], max: usize) -> Result<Vec<u8>, String> {
        loop {
            if let Some(at) = self.bytes.windows(mark.len()).position(|window| window == mark) {
                let rest = self.bytes.split_off(at + mark.len());
                let mut taken = std::mem::replace(&mut self.bytes, rest);
                taken.truncate(at);
                return Ok(taken);
            }
            if self.bytes.len() > max {
                return Err(format!("more than {max} bytes where a line must end"));
            }
            if !self.more().await? {
                let told = if self.first_byte.is_some() { "in the middle of" } else { "before" };
                return Err(format!("the connection ended {told} the answer"));
            }
        }
    }

    /// Takes so many bytes, or what there is where the stream ends before.
    async fn take(&mut self, count: usize, into: &mut Vec<u8>) -> Result<bool, String> {
        while self.bytes.len() < count {
            if !self.more().await? {
                into.append(&mut self.bytes);
                return Ok(false);
            }
        }
        let rest = self.bytes.split_off(count);
        into.append(&mut self.bytes);
        self.bytes = rest;
        Ok(true)
    }
}

/// Reads an answer to a request with a body; `half` stops in the middle of the answer's body.
pub(crate) async fn read<S: AsyncRead + Unpin>(stream: &mut S, half: bool) -> Read {
    let mut input = Input { stream, bytes: Vec::new(), first_byte: None };
    let outcome = whole(&mut input, half).await;
    let first_byte = input.first_byte;
    match outcome {
        Ok((answer, reusable)) => Read { first_byte, answer: Some(answer), fault: None, reusable },
        Err(fault) => Read { first_byte, answer: None, fault: Some(fault), reusable: false },
    }
}

async fn whole<S: AsyncRead + Unpin>(input: &mut Input<'_, S>, half: bool) -> Result<(Answer, bool), String> {
    let (mut answer, version) = loop {
        let head = input.until(b"\r\n\r\n", HEAD_BYTES_MAX).await?;
        let (answer, version) = head_of(&head)?;
        if !(100..200).contains(&answer.status) {
            break (answer, version);
        }
    };
    let mut body = Vec::new();
    let coded = answer.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let length = answer.header("content-length").map(str::parse::<usize>);
    let mut delimited = true;
    answer.whole = match (coded, length) {
        _ if matches!(answer.status, 204 | 304) => true,
        (true, _) => chunks(input, half, &mut body).await?,
        (false, Some(Ok(length))) if length > BODY_BYTES_MAX => return Err(too_long()),
        (false, Some(Ok(length))) if half && length > 1 => {
            input.take(length / 2, &mut body).await?;
            false
        }
        (false, Some(Ok(length))) => input.take(length, &mut body).await?,
        (false, Some(Err(_))) => return Err("the answer's length is no number".to_owned()),
        (false, None) => {
            delimited = false;
            while input.more().await? {
                if input.bytes.len() > BODY_BYTES_MAX {
                    return Err(too_long());
                }
            }
            body.append(&mut input.bytes);
            true
        }
    };
    answer.body = String::from_utf8_lossy(&body).into_owned();
    let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let reusable = answer.whole && delimited && version == "HTTP/1.1" && !closes && input.bytes.is_empty();
    Ok((answer, reusable))
}

fn too_long() -> String {
    format!("the answer has more than {BODY_BYTES_MAX} bytes")
}

async fn chunks<S: AsyncRead + Unpin>(
    input: &mut Input<'_, S>,
    half: bool,
    body: &mut Vec<u8>,
) -> Result<bool, String> {
    loop {
        let line = input.until(b"\r\n", HEAD_BYTES_MAX).await?;
        let line = String::from_utf8_lossy(&line);
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("{size:?} is no length of a chunk"))?;
        if size == 0 {
            while !input.until(b"\r\n", HEAD_BYTES_MAX).await?.is_empty() {}
            return Ok(true);
        }
        if body.len().saturating_add(size) > BODY_BYTES_MAX {
            return Err(too_long());
        }
        let wanted = if half { size / 2 } else { size };
        if !input.take(wanted, body).await? || half {
            return Ok(false);
        }
        input.until(b"\r\n", HEAD_BYTES_MAX).await?;
    }
}

/// Status and headers; the second is the version as it was written.
fn head_of(head: &[u8]) -> Result<(Answer, String), String> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.splitn(3, ' ');
    let version = words.next().unwrap_or_default().to_owned();
    let status = words.next().and_then(|word| word.parse().ok());
    let (true, Some(status)) = (version.starts_with("HTTP/1."), status) else {
        return Err(format!("{:?} does not begin an answer", first.chars().take(80).collect::<String>()));
    };
    let header = |line: &str| {
        let (name, value) = line.split_once(':').ok_or_else(|| "a line of the head is no header".to_owned())?;
        Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers = lines.map(header).collect::<Result<_, String>>()?;
    Ok((Answer { status, headers, body: String::new(), whole: false }, version))
}

#[cfg(test)]
mod tests;
