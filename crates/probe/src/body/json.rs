//! Changes to a JSON body that keep every other byte as it was given: member order, spelling of numbers and strings.
//!
//! What does not belong here: other kinds of bodies.

use super::Hints;
use crate::case::Body;
use crate::lack::Lack;

/// JSON with its order and spelling. Names and scalars are kept as they are written.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    Scalar(String),
}

/// The member that `added` and `null-added` write.
const EXTRA: &str = "\"counterfoil_probe\"";

/// The body after a change. The text of the error says what is missing for it.
pub(super) fn changed(base: &[u8], change: Body, hints: &Hints<'_>) -> Result<Vec<u8>, Lack> {
    if change == Body::NewBoundary {
        return Err(Lack::void("only multipart bodies have a boundary"));
    }
    let mut json = read(base)?;
    match change {
        Body::Base | Body::Declined | Body::NewBoundary | Body::Nothing => {}
        Body::Changed | Body::Change => *varied(&mut json, hints.vary)? = another(varied(&mut json, hints.vary)?)?,
        Body::Added => members(&mut json)?.push((EXTRA.to_owned(), Json::Scalar("\"1\"".to_owned()))),
        Body::NullAdded => members(&mut json)?.push((EXTRA.to_owned(), Json::Scalar("null".to_owned()))),
        Body::DefaultAdded => {
            let told = hints.default.ok_or("no member with a default was named (--default-member /NAME=VALUE)")?;
            let (pointer, value) = told.split_once('=').ok_or("the default is not /POINTER=VALUE")?;
            let name =
                pointer.strip_prefix('/').filter(|name| !name.contains('/')).ok_or("a default must be a member")?;
            members(&mut json)?.push((quoted(name), read(value.as_bytes())?));
        }
        Body::Removed => remove(&mut json, hints.vary)?,
        Body::Reordered => turned(reorder(&mut json), "no object of the body has two members")?,
        Body::ArraysReversed => turned(reverse(&mut json), "no array of the body has two different elements")?,
        Body::Pretty => return Ok(pretty(&json, 0).into_bytes()),
        Body::NumberDecimal => respell(&mut json, hints.vary, |text| format!("{text}.0"))?,
        Body::NumberExponent => respell(&mut json, hints.vary, |text| format!("{text}e0"))?,
        Body::NumberLong => respell(&mut json, hints.vary, |_| "12345678901234567890".to_owned())?,
        Body::NumberLongNext => respell(&mut json, hints.vary, |_| "12345678901234567891".to_owned())?,
        Body::Escaped => escape(text(&mut json, hints.vary)?),
        Body::Composed => *text(&mut json, hints.vary)? = quoted("caf\u{e9}"),
        Body::Decomposed => *text(&mut json, hints.vary)? = quoted("cafe\u{301}"),
        Body::Structured => {
            let value = varied(&mut json, hints.vary)?;
            *value = Json::Array(vec![value.clone()]);
        }
        Body::MemberTwice => repeat(&mut json, hints.vary)?,
        Body::Invalid => {
            *varied(&mut json, hints.vary)? =
                Json::Object(vec![("\"invalid\"".to_owned(), Json::Scalar("true".to_owned()))])
        }
    }
    Ok(compact(&json).into_bytes())
}

/// The body with one more member, for keys that travel in it.
pub(super) fn with_member(base: &[u8], name: &str, text: &str) -> Result<Vec<u8>, String> {
    let mut json = read(base)?;
    members(&mut json)?.push((quoted(name), Json::Scalar(quoted(text))));
    Ok(compact(&json).into_bytes())
}

fn turned(done: bool, why: &str) -> Result<(), String> {
    if done { Ok(()) } else { Err(why.to_owned()) }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn members(json: &mut Json) -> Result<&mut Vec<(String, Json)>, String> {
    match json {
        Json::Object(members) => Ok(members),
        Json::Array(_) | Json::Scalar(_) => Err("the body is no JSON object".to_owned()),
    }
}

fn named(raw: &str, name: &str) -> bool {
    serde_json::from_str::<String>(raw).is_ok_and(|read| read == name)
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn step<'a>(json: &'a mut Json, token: &str) -> Option<&'a mut Json> {
    match json {
        Json::Object(members) => members.iter_mut().find(|(raw, _)| named(raw, token)).map(|(_, value)| value),
        Json::Array(elements) => elements.get_mut(token.parse::<usize>().ok()?),
        Json::Scalar(_) => None,
    }
}

fn at<'a>(json: &'a mut Json, pointer: &str) -> Result<&'a mut Json, String> {
    let mut here = json;
    for token in pointer.strip_prefix('/').unwrap_or_default().split('/') {
        here = step(here, &unescape(token)).ok_or_else(|| format!("the body has no {pointer}"))?;
    }
    Ok(here)
}

fn first_scalar<'a>(json: &'a mut Json, fits: &dyn Fn(&str) -> bool) -> Option<&'a mut Json> {
    match json {
        Json::Scalar(text) if fits(text) => Some(json),
        Json::Scalar(_) => None,
        Json::Object(members) => members.iter_mut().find_map(|(_, value)| first_scalar(value, fits)),
        Json::Array(elements) => elements.iter_mut().find_map(|value| first_scalar(value, fits)),
    }
}

fn varied<'a>(json: &'a mut Json, vary: Option<&str>) -> Result<&'a mut Json, String> {
    match vary {
        Some(pointer) => at(json, pointer),
        None => {
            first_scalar(json, &|_| true).ok_or_else(|| "the body has no value to vary (--vary POINTER)".to_owned())
        }
    }
}

/// Another value of the same type.
fn another(value: &Json) -> Result<Json, String> {
    let Json::Scalar(text) = value else { return Err("what is varied must be a text, a number or a truth".to_owned()) };
    let other = match text.as_str() {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        "null" => "\"other\"".to_owned(),
        text => match (text.parse::<i64>(), text.strip_suffix('"')) {
            (Ok(number), _) => number.wrapping_add(1).to_string(),
            (Err(_), Some(open)) => format!("{open} other\""),
            (Err(_), None) => "1".to_owned(),
        },
    };
    Ok(Json::Scalar(other))
}

fn remove(json: &mut Json, vary: Option<&str>) -> Result<(), String> {
    let pointer = vary.map(str::to_owned);
    let (parent, name) = match pointer.as_deref().and_then(|pointer| pointer.rsplit_once('/')) {
        Some(("", name)) => (json, Some(unescape(name))),
        Some((parent, name)) => (at(json, parent)?, Some(unescape(name))),
        None => (json, None),
    };
    let members = members(parent)?;
    let before = members.len();
    match name {
        Some(name) => members.retain(|(raw, _)| !named(raw, &name)),
        None => drop(members.pop()),
    }
    turned(members.len() < before, "the body has no such member to take away")
}

/// Writes the varied member, or the last one, once more with another value.
fn repeat(json: &mut Json, vary: Option<&str>) -> Result<(), String> {
    let (parent, name) = match vary.and_then(|pointer| pointer.rsplit_once('/')) {
        Some(("", name)) => (json, Some(unescape(name))),
        Some((parent, name)) => (at(json, parent)?, Some(unescape(name))),
        None => (json, None),
    };
    let members = members(parent)?;
    let chosen = |raw: &str| name.as_ref().is_none_or(|name| named(raw, name));
    let found = members.iter().rev().find(|(raw, _)| chosen(raw)).ok_or("the body has no member to repeat")?;
    let again = (found.0.clone(), another(&found.1)?);
    members.push(again);
    Ok(())
}

/// The text that is varied, else the first of the body, as it is written.
fn text<'a>(json: &'a mut Json, vary: Option<&str>) -> Result<&'a mut String, String> {
    let is_text = |text: &str| text.starts_with('"') && text.len() > 2;
    let chosen = vary.filter(|pointer| at(json, pointer).is_ok_and(|it| matches!(it, Json::Scalar(it) if is_text(it))));
    let found = match chosen {
        Some(pointer) => at(json, pointer)?,
        None => first_scalar(json, &is_text).ok_or("the body has no text")?,
    };
    match found {
        Json::Scalar(text) => Ok(text),
        Json::Object(_) | Json::Array(_) => Err("the body has no text".to_owned()),
    }
}

/// Writes the first letter as an escape, unless it is one.
fn escape(text: &mut String) {
    let Some(first) = text.chars().nth(1).filter(|first| *first != '\\' && u32::from(*first) < 0x1_0000) else {
        return;
    };
    let rest: String = text.chars().skip(2).collect();
    *text = format!("\"\\u{:04x}{rest}", u32::from(first));
}

fn reorder(json: &mut Json) -> bool {
    match json {
        Json::Scalar(_) => false,
        Json::Array(elements) => elements.iter_mut().map(reorder).fold(false, |any, one| any | one),
        Json::Object(members) => {
            let below = members.iter_mut().map(|(_, value)| reorder(value)).fold(false, |any, one| any | one);
            members.reverse();
            below || members.len() > 1
        }
    }
}

fn reverse(json: &mut Json) -> bool {
    match json {
        Json::Scalar(_) => false,
        Json::Object(members) => members.iter_mut().map(|(_, value)| reverse(value)).fold(false, |any, one| any | one),
        Json::Array(elements) => {
            let before = elements.clone();
            elements.reverse();
            *elements != before
        }
    }
}

/// Spells a whole number otherwise: the varied one, else the first of the body.
fn respell(json: &mut Json, vary: Option<&str>, spell: impl Fn(&str) -> String) -> Result<(), String> {
    let whole = |text: &str| text.parse::<i64>().is_ok();
    let is_whole = |json: &Json| matches!(json, Json::Scalar(text) if whole(text));
    let chosen = vary.filter(|pointer| at(json, pointer).is_ok_and(|value| is_whole(value)));
    let found = match chosen {
        Some(pointer) => at(json, pointer)?,
        None => first_scalar(json, &whole).ok_or("the body has no whole number")?,
    };
    if let Json::Scalar(text) = found {
        *text = spell(text);
    }
    Ok(())
}

fn compact(json: &Json) -> String {
    match json {
        Json::Scalar(text) => text.clone(),
        Json::Array(elements) => format!("[{}]", elements.iter().map(compact).collect::<Vec<_>>().join(",")),
        Json::Object(members) => {
            let member = |(raw, value): &(String, Json)| format!("{raw}:{}", compact(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
    }
}

fn pretty(json: &Json, depth: usize) -> String {
    let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    let block = |open: char, lines: Vec<String>, close: char| match lines.is_empty() {
        true => format!("{open} {close}"),
        false => format!("{open}\n{inner}{}\n{outer}{close}", lines.join(&format!(",\n{inner}"))),
    };
    match json {
        Json::Scalar(text) => text.clone(),
        Json::Array(elements) => block('[', elements.iter().map(|value| pretty(value, depth + 1)).collect(), ']'),
        Json::Object(members) => {
            let member = |(raw, value): &(String, Json)| format!("{raw} : {}", pretty(value, depth + 1));
            block('{', members.iter().map(member).collect(), '}')
        }
    }
}

fn read(bytes: &[u8]) -> Result<Json, String> {
    // Strictness is left to the library; what follows only cuts valid text at its marks.
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let text = std::str::from_utf8(bytes).map_err(|_| "the body is not UTF-8".to_owned())?;
    let mut rest = text.trim_start();
    cut(&mut rest).ok_or_else(|| "the body is not JSON".to_owned())
}

fn cut(rest: &mut &str) -> Option<Json> {
    match rest.chars().next()? {
        '{' => {
            let mut members = Vec::new();
            while next(rest, '}')? {
                let name = scalar(rest)?;
                skip(rest, 1)?;
                members.push((name, cut(rest)?));
            }
            Some(Json::Object(members))
        }
        '[' => {
            let mut elements = Vec::new();
            while next(rest, ']')? {
                elements.push(cut(rest)?);
            }
            Some(Json::Array(elements))
        }
        _ => Some(Json::Scalar(scalar(rest)?)),
    }
}

/// Goes past an opening bracket or a comma; false where the closing bracket follows, which is then passed too.
fn next(rest: &mut &str, close: char) -> Option<bool> {
    if !rest.starts_with(close) {
        skip(rest, 1)?;
    }
    if rest.starts_with(close) {
        skip(rest, 1)?;
        return Some(false);
    }
    Some(true)
}

fn skip(rest: &mut &str, bytes: usize) -> Option<()> {
    *rest = rest.get(bytes..)?.trim_start();
    Some(())
}

fn scalar(rest: &mut &str) -> Option<String> {
    let end = if rest.starts_with('"') {
        let mut escaped = false;
        let closes = |letter: char| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        };
        rest.get(1..)?.find(closes)? + 2
    } else {
        rest.find(|letter: char| ",]}".contains(letter) || letter.is_whitespace()).unwrap_or(rest.len())
    };
    let text = rest.get(..end)?.to_owned();
    skip(rest, end)?;
    Some(text)
}

#[cfg(test)]
mod tests;
