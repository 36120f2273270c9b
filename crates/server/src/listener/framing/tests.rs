//! What is let through and what is not, by table; and that the cut of the reads never matters.

use super::Framing;

/// Where the first fault is, and why; fed in pieces of `size`.
fn fault(text: &str, size: usize) -> Option<(usize, &'static str)> {
    let mut framing = Framing::new();
    for (index, piece) in text.as_bytes().chunks(size).enumerate() {
        if let Err(fault) = framing.feed(piece) {
            return Some((index * size + fault.at, fault.why));
        }
    }
    None
}

/// `expected`: the text before the fault, and why.
#[track_caller]
fn check(text: &str, expected: Option<(&str, &str)>) {
    for size in [1, 2, 3, 7, 4096] {
        let found = fault(text, size).map(|(at, why)| (&text[..at], why));
        assert_eq!(found, expected, "{text:?} in pieces of {size}");
    }
}

#[test]
fn let_through() {
    for text in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\nGET /again HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\na\nbGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\nContent-Length:  0 \t\r\n\r\nGET / HTTP/1.1\r\nHOST:a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=\"y z\"\r\na\r\n\r\n0\r\n\r\n\
         GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n000A\r\n0123456789\r\n0\r\nx-sum: 1\r\n\r\n\
         GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx: \u{e9} \t,;\r\nx-empty:\r\n\r\n",
    ] {
        check(text, None);
    }
}

#[test]
fn faults_of_a_header() {
    let head = "POST / HTTP/1.1\r\nhost: a\r\n";
    let rows = [
        ("content-length: 3\r\ntransfer-encoding: chunked\r\n", "\r\n", "both a length and chunks"),
        ("transfer-encoding: chunked\r\ncontent-length: 3\r\n", "\r\n", "both a length and chunks"),
        ("content-length: 3\r\ncontent-length: 4", "\r\n", "two lengths"),
        ("content-length: 3\r\ncontent-length: 3", "\r\n", "two lengths"),
        ("content-length: 3, 3", "\r\n", "a length that is no number"),
        ("content-length: +3", "\r\n", "a length that is no number"),
        ("content-length: 0x3", "\r\n", "a length that is no number"),
        ("content-length:", "\r\n", "a length that is no number"),
        ("content-length: 9999999999999999999", "\r\n", "a length that is no number"),
        ("transfer-encoding: gzip, chunked", "\r\n", "a coding other than chunked"),
        ("transfer-encoding: identity", "\r\n", "a coding other than chunked"),
        ("transfer-encoding: \u{b}chunked", "\r\n", "a coding other than chunked"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked", "\r\n", "a coding other than chunked"),
        ("host: b", "\r\n", "two hosts"),
        ("x: a\r\n", " b\r\n", "a header line goes on in the next"),
        ("x: a\r\n", "\tb\r\n", "a header line goes on in the next"),
        ("content-length", " : 3\r\n", "a space before the colon"),
        ("", ": 3\r\n", "a header line without a name"),
        ("x\u{1}", "y: 3\r\n", ""),
        ("x: a", "\ny: b\r\n", "a line ends without CR"),
        ("x: a\r", "y: b\r\n", "a CR alone"),
        ("x: a\r\n", "\n", "no header line is written so"),
        ("x: a\r\n\r", "GET", "a CR alone"),
        ("x", "\r\n", "no header line is written so"),
    ];
    for (before, after, why) in rows {
        if why.is_empty() {
            assert_eq!(
                fault(&format!("{head}{before}{after}"), 1).map(|(_, why)| why),
                Some("no header line is written so")
            );
            continue;
        }
        check(&format!("{head}{before}{after}"), Some((&format!("{head}{before}"), why)));
    }
}

#[test]
fn faults_of_a_whole_message() {
    let chunked = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    let rows = [
        ("GET / HTTP/1.1\r\n".to_owned(), "\r\n", "no host"),
        ("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n".to_owned(), "\r\n", "chunks before HTTP/1.1"),
        ("GET / HTTP/1.1".to_owned(), "\nhost: a\r\n\r\n", "a line ends without CR"),
        ("GET / HTTP/1.1\r".to_owned(), "host: a\r\n\r\n", "a CR alone"),
        ("\r\n".to_owned(), "\r\nGET", "no request begins so"),
        (String::new(), "\nGET", "no request begins so"),
        (chunked.to_owned(), "\r\n", "a chunk without a size"),
        (chunked.to_owned(), "x\r\n", "a chunk without a size"),
        (chunked.to_owned(), "-3\r\nabc\r\n", "a chunk without a size"),
        (format!("{chunked}0"), "x3\r\nabc\r\n", "no chunk is written so"),
        (format!("{chunked}3"), "\nabc\r\n", "no chunk is written so"),
        (format!("{chunked}3"), " \r\nabc\r\n", "no chunk is written so"),
        (format!("{chunked}3;a"), "\nabc\r\n", "no chunk is written so"),
        (format!("{chunked}3\r\nabc"), "\n0\r\n\r\n", "no chunk is written so"),
        (format!("{chunked}3\r\nabc"), "d\r\n0\r\n\r\n", "no chunk is written so"),
        (format!("{chunked}{}", "f".repeat(15)), "f\r\n", "a chunk that is too long"),
        (format!("{chunked}1;{}", "x".repeat(256)), "x\r\na\r\n", "a chunk's extension that is too long"),
        (format!("{chunked}0\r\nx: a"), "\n\r\n", "a line ends without CR"),
        (format!("{chunked}0\r\n"), " x: a\r\n\r\n", "a header line goes on in the next"),
        (format!("{chunked}0\r\ncontent-length: 3"), "\r\n\r\n", "a trailer that belongs to the header"),
        // What follows a body is a request again, whatever the body was.
        (format!("{chunked}0\r\n\r\nGET / HTTP/1.1\r\n"), "\r\n", "no host"),
    ];
    for (before, after, why) in rows {
        check(&format!("{before}{after}"), Some((&before, why)));
    }
}
