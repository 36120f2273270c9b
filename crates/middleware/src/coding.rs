//! A replayed body in a coding that the asker did not offer is decoded (RFC 9110 sections 8.4 and 12.5.3): the first
//! caller's `Accept-Encoding` chose the coding, and a retry may come from another client. Nothing is encoded here.

use std::io::Read;

use bytes::Bytes;
use counterfoil_core::wire::list_items;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The most bytes that a body may decode to: a short one can pretend to be endless.
const DECODED_MAX: u64 = 16 * 1024 * 1024;

/// Headers that speak of the coded bytes and say nothing true of the decoded ones.
const OF_CODED: [&str; 3] = ["content-digest", "content-md5", "repr-digest"];

/// The body decoded, where its coding is not among what `offered` accepts; `headers` are mended then. `None`: it goes out
/// as it was stored, as it did the first time. So does what nobody here can decode, or not within the bound.
pub(crate) fn decoded(headers: &mut HeaderMap, body: &Bytes, offered: &[HeaderValue]) -> Option<Bytes> {
    let lines = headers.get_all(header::CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
    let codings: Vec<Coding> = list_items(lines).map(Coding::named).collect();
    if codings.iter().all(|coding| *coding == Coding::Identity || coding.is_offered(offered)) {
        return None;
    }
    // Listed in the order in which they were applied.
    let decoded = codings.iter().rev().try_fold(body.clone(), |body, coding| coding.decode(&body))?;
    headers.remove(header::CONTENT_ENCODING);
    for name in OF_CODED {
        headers.remove(HeaderName::from_static(name));
    }
    weaken(headers);
    Some(decoded)
}

/// The same resource in another coding has another strong tag.
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(header::ETAG) else { return };
    if tag.as_bytes().starts_with(b"W/") {
        return;
    }
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(header::ETAG, weak);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    Unknown,
}

impl Coding {
    fn named(name: &[u8]) -> Self {
        let known: [(&[u8], Self); 6] = [
            (b"identity", Self::Identity),
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstd),
        ];
        known.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map_or(Self::Unknown, |(_, coding)| *coding)
    }

    /// Whether `Accept-Encoding` names it, or `*`, with a weight that is not zero. What is named counts over `*`.
    fn is_offered(self, offered: &[HeaderValue]) -> bool {
        let mut any = false;
        for item in list_items(offered.iter().map(HeaderValue::as_bytes)) {
            let (name, weight) = match item.iter().position(|byte| *byte == b';') {
                Some(at) => (item[..at].trim_ascii(), item[at + 1..].trim_ascii()),
                None => (item, &b""[..]),
            };
            let wanted = !is_zero(weight);
            if name == b"*" {
                any = wanted;
            } else if Self::named(name) == self {
                return wanted;
            }
        }
        any
    }

    fn decode(self, coded: &[u8]) -> Option<Bytes> {
        match self {
            Self::Identity => Some(Bytes::copy_from_slice(coded)),
            Self::Gzip => read(flate2::read::MultiGzDecoder::new(coded)),
            Self::Deflate => read(flate2::read::ZlibDecoder::new(coded)),
            Self::Brotli => read(brotli_decompressor::Decompressor::new(coded, 4096)),
            Self::Zstd => read(ruzstd::decoding::StreamingDecoder::new(coded).ok()?),
            Self::Unknown => None,
        }
    }
}

/// Whether a weight is `q=0`, in any of its spellings.
fn is_zero(weight: &[u8]) -> bool {
    let Some(value) = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q=")) else { return false };
    value.first() == Some(&b'0') && value[1..].iter().all(|byte| matches!(byte, b'.' | b'0'))
}

fn read(decoder: impl Read) -> Option<Bytes> {
    let mut decoded = Vec::new();
    // One byte more than allowed tells a body that is too long from one that just fits.
    decoder.take(DECODED_MAX + 1).read_to_end(&mut decoded).ok()?;
    (decoded.len() as u64 <= DECODED_MAX).then(|| decoded.into())
}

#[cfg(test)]
mod tests;
