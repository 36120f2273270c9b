//! Numbers as exact decimals: digits and a power of ten, never expanded and never a float.
//!
//! What does not belong here: the grammar of numbers (the JSON reader checked it).

use super::frame::push_number;

/// Digits of an exponent that we still add to; far beyond any use, and far below an overflow.
const MAX_EXPONENT_DIGITS: usize = 18;

/// Appends the canonical text of a JSON number: `d15e-1;` for 1.5, 1.50 and 15e-1; `d0;` for every zero, -0 included.
///
/// Returns `false` and appends nothing if the exponent is out of range.
pub(super) fn push(number: &[u8], out: &mut Vec<u8>) -> bool {
    let (negative, number) = match number.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = split(number, |byte| matches!(byte, b'e' | b'E'));
    let (whole, fraction) = split(mantissa, |byte| byte == b'.');
    let digit = |at: usize| match at.checked_sub(whole.len()) {
        None => whole[at],
        Some(at) => fraction[at],
    };
    let all = 0..whole.len() + fraction.len();
    let Some(first) = all.clone().find(|at| digit(*at) != b'0') else {
        out.extend_from_slice(b"d0;");
        return true;
    };
    let last = all.clone().rfind(|at| digit(*at) != b'0').unwrap_or(first);
    let Some(exponent) = parse_exponent(exponent) else {
        return false;
    };
    let dropped = all.end - 1 - last;
    // Lengths are far below 2^62, and the exponent is below 10^18.
    let exponent = exponent - fraction.len() as i64 + dropped as i64;
    out.push(b'd');
    if negative {
        out.push(b'-');
    }
    out.extend((first..=last).map(digit));
    out.push(b'e');
    if exponent < 0 {
        out.push(b'-');
    }
    push_number(out, exponent.unsigned_abs());
    out.push(b';');
    true
}

/// The text before and after the first byte that `is` names; nothing after it if there is none.
fn split(text: &[u8], is: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| is(*byte)) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// `+5`, `-007`, or empty for zero; `None` if it has too many digits.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        Some(_) | None => (false, text),
    };
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = &digits[zeros..];
    if digits.len() > MAX_EXPONENT_DIGITS {
        return None;
    }
    let value = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if negative { -value } else { value })
}
