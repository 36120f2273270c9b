//! Paths in one spelling (RFC 3986 section 6.2.2): dot segments removed, unreserved characters decoded, what a path may
//! not hold escaped, escapes in upper case. Matching a path against an operation belongs to `middleware`.

/// Why a path has no one spelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// It does not begin with a slash.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// It has a percent sign without two hexadecimal digits.
    #[error("the path has a percent sign without two hexadecimal digits")]
    Escape,
    /// It has an empty segment.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// It climbs above the root.
    #[error("the path climbs above the root")]
    AboveRoot,
}

/// Normalises `path`. A single slash at the end is kept, because servers tell it apart.
///
/// # Errors
/// [`PathFault`]; an empty segment anywhere but at the end is one, because servers disagree on what it means.
pub fn normalise(path: &str) -> Result<String, PathFault> {
    if is_normal(path) {
        return Ok(path.to_owned());
    }
    let decoded = one_spelling(path)?;
    let rest = decoded.strip_prefix('/').ok_or(PathFault::NotAbsolute)?;
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = rest.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {
                if last {
                    kept.push("");
                }
            }
            ".." => {
                kept.pop().ok_or(PathFault::AboveRoot)?;
                if last {
                    kept.push("");
                }
            }
            "" if last => kept.push(""),
            "" => return Err(PathFault::EmptySegment),
            segment => kept.push(segment),
        }
    }
    Ok(format!("/{}", kept.join("/")))
}

/// Whether a path certainly is in normal form: the usual one, which costs no more than a look.
fn is_normal(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'/');
    // A dot may be a segment, and two slashes an empty one: those are looked at properly.
    path.starts_with('/') && path.bytes().all(plain) && !path.contains("//")
}

/// Every character in its one spelling: an unreserved one as itself, a reserved one (`/`, `:`, `@`, sub-delimiters) as
/// sent, all else escaped.
fn one_spelling(path: &str) -> Result<String, PathFault> {
    let mut out = String::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = digit().zip(digit()).ok_or(PathFault::Escape)?;
                let byte = u8::try_from(high * 16 + low).map_err(|_| PathFault::Escape)?;
                if is_unreserved(byte) { out.push(char::from(byte)) } else { escape(byte, &mut out) }
            }
            b'/' | b':' | b'@' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {
                out.push(char::from(byte));
            }
            byte if is_unreserved(byte) => out.push(char::from(byte)),
            byte => escape(byte, &mut out),
        }
    }
    Ok(out)
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn escape(byte: u8, out: &mut String) {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0').to_ascii_uppercase();
    out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}
