//! Which replays are decoded, and what is said of them then.

use std::io::Write as _;

use super::*;

fn gzipped(text: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap().into()
}

fn deflated(text: &[u8]) -> Bytes {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap().into()
}

/// `hello` as the reference encoders of Brotli and Zstandard write it.
const BROTLI: &[u8] = &[0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x05, 0x29, 0x00, 0x00, b'h', b'e', b'l', b'l', b'o'];

fn offered(lines: &[&str]) -> Vec<HeaderValue> {
    lines.iter().map(|line| HeaderValue::from_str(line).unwrap()).collect()
}

fn headers(coding: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::ETAG, HeaderValue::from_static("\"1\""));
    headers.insert("content-digest", HeaderValue::from_static("sha-256=:x:"));
    headers
}

#[test]
fn a_coding_that_was_not_offered_is_decoded() {
    let gzip = gzipped(b"hello");
    let check = |coding, body: &Bytes, lines: &[&str], decoded: bool| {
        let mut headers = headers(coding);
        let found = super::decoded(&mut headers, body, &offered(lines));
        assert_eq!(found, decoded.then_some(Bytes::from_static(b"hello")), "{coding} to {lines:?}");
        assert_eq!(headers.contains_key(header::CONTENT_ENCODING), !decoded, "{coding} to {lines:?}");
        assert_eq!(headers.contains_key("content-digest"), !decoded, "{coding} to {lines:?}");
        assert_eq!(headers[header::ETAG], if decoded { "W/\"1\"" } else { "\"1\"" }, "{coding} to {lines:?}");
        assert_eq!(headers[header::CONTENT_TYPE], "text/plain");
    };
    check("gzip", &gzip, &["gzip"], false);
    check("gzip", &gzip, &["br, GZIP;q=0.5"], false);
    check("gzip", &gzip, &["br", "x-gzip"], false);
    check("gzip", &gzip, &["*"], false);
    check("gzip", &gzip, &[], true);
    check("gzip", &gzip, &[""], true);
    check("gzip", &gzip, &["br"], true);
    check("gzip", &gzip, &["identity"], true);
    check("gzip", &gzip, &["gzip;q=0"], true);
    check("gzip", &gzip, &["gzip; q=0.000, *"], true);
    check("gzip", &gzip, &["*;q=0"], true);
    check("x-gzip", &gzip, &[], true);
    check("deflate", &deflated(b"hello"), &["gzip"], true);
    check("br", &Bytes::from_static(BROTLI), &["gzip"], true);
    check("zstd", &Bytes::from_static(ZSTD), &["gzip"], true);
    check("deflate, gzip", &gzipped(&deflated(b"hello")), &["gzip"], true);
    // Nobody knows it, or nothing is coded.
    check("compress", &gzip, &[], false);
    check("identity", &gzip, &[], false);
}

#[test]
fn what_cannot_be_decoded_goes_out_as_it_was_stored() {
    let mut cut = gzipped(b"hello").to_vec();
    cut.truncate(12);
    let endless = gzipped(&vec![0; usize::try_from(DECODED_MAX).unwrap() + 1]);
    assert!(endless.len() < 64 * 1024, "{} bytes", endless.len());
    for body in [Bytes::from_static(b"plain"), cut.into(), endless] {
        let mut headers = headers("gzip");
        assert_eq!(decoded(&mut headers, &body, &[]), None, "{} bytes", body.len());
        assert!(headers.contains_key(header::CONTENT_ENCODING), "its headers stand");
    }
    let longest = gzipped(&vec![0; usize::try_from(DECODED_MAX).unwrap()]);
    assert!(decoded(&mut headers("gzip"), &longest, &[]).is_some(), "the longest that fits");
}
