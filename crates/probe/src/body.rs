//! Changes to a body that keep every other byte as it was given: member order, spelling of numbers and strings.
//!
//! JSON is changed here, pairs in `pairs.rs`. What does not belong here: when which change is sent (the cases).

use crate::case::Body;

mod format;
mod pairs;

pub(crate) use format::Format;
pub(crate) use pairs::encoded;

/// JSON with its order and spelling. Names and scalars are kept as they are written.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Json {
    Object(Members),
    Array(Vec<Json>),
    Scalar(String),
}

type Members = Vec<(String, Json)>;

/// What the changes need to know beside the body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints<'a> {
    /// The value that is changed and the member that is taken away; the first scalar where nothing is said.
    pub(crate) vary: Option<&'a str>,
    /// A member with its documented default, as `/pointer=value`.
    pub(crate) default: Option<&'a str>,
}

/// The member that `added` and `null-added` write.
const EXTRA: &str = "\"counterfoil_probe\"";

/// A letter with its accent as one code point, and as two; people see no difference.
const COMPOSED: &str = " caf\u{e9}";
const DECOMPOSED: &str = " cafe\u{301}";

/// The JSON body after a change. The text of the error says what is missing for it.
fn changed(base: &[u8], change: Body, hints: &Hints<'_>) -> Result<Vec<u8>, String> {
    if change == Body::Base {
        return Ok(base.to_vec());
    }
    let mut json = read(base)?;
    match change {
        // The last two are given, or nothing.
        Body::Base | Body::Declined | Body::Nothing => {}
        Body::Changed => *varied(&mut json, hints.vary)? = another(varied(&mut json, hints.vary)?)?,
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
        Body::Invalid => {
            *varied(&mut json, hints.vary)? =
                Json::Object(vec![("\"invalid\"".to_owned(), Json::Scalar("true".to_owned()))])
        }
        Body::DuplicateMember => duplicate(&mut json, hints.vary)?,
        Body::Nested => {
            let value = varied(&mut json, hints.vary)?;
            *value = Json::Array(vec![value.clone()]);
        }
        Body::Escaped => retell(&mut json, hints.vary, escaped)?,
        Body::Composed => retell(&mut json, hints.vary, |text| quoted(&format!("{text}{COMPOSED}")))?,
        Body::Decomposed => retell(&mut json, hints.vary, |text| quoted(&format!("{text}{DECOMPOSED}")))?,
        Body::NewBoundary => return Err("only a multipart body has boundaries".to_owned()),
    }
    Ok(compact(&json).into_bytes())
}

/// The JSON body with one more member, for keys that travel in it.
fn with_member(base: &[u8], name: &str, text: &str) -> Result<Vec<u8>, String> {
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

fn members(json: &mut Json) -> Result<&mut Members, String> {
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

/// The object that holds the varied member, and its name; the whole body and no name where nothing is varied.
fn parent<'a>(json: &'a mut Json, vary: Option<&str>) -> Result<(&'a mut Members, Option<String>), String> {
    let (parent, name) = match vary.and_then(|pointer| pointer.rsplit_once('/')) {
        Some(("", name)) => (json, Some(unescape(name))),
        Some((parent, name)) => (at(json, parent)?, Some(unescape(name))),
        None => (json, None),
    };
    Ok((members(parent)?, name))
}

fn remove(json: &mut Json, vary: Option<&str>) -> Result<(), String> {
    let (members, name) = parent(json, vary)?;
    let before = members.len();
    match name {
        Some(name) => members.retain(|(raw, _)| !named(raw, &name)),
        None => drop(members.pop()),
    }
    turned(members.len() < before, "the body has no such member to take away")
}

fn duplicate(json: &mut Json, vary: Option<&str>) -> Result<(), String> {
    let (members, name) = parent(json, vary)?;
    let found = match name {
        Some(name) => members.iter().find(|(raw, _)| named(raw, &name)),
        None => members.last(),
    };
    let again = found.cloned().ok_or("the body has no such member to write twice")?;
    members.push(again);
    Ok(())
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

/// Writes a text otherwise: the varied one, else the first of the body that is not empty.
fn retell(json: &mut Json, vary: Option<&str>, tell: impl Fn(&str) -> String) -> Result<(), String> {
    let read = |raw: &str| serde_json::from_str::<String>(raw).ok().filter(|text| !text.is_empty());
    let is_text = |json: &Json| matches!(json, Json::Scalar(raw) if read(raw).is_some());
    let chosen = vary.filter(|pointer| at(json, pointer).is_ok_and(|value| is_text(value)));
    let found = match chosen {
        Some(pointer) => at(json, pointer)?,
        None => first_scalar(json, &|raw| read(raw).is_some()).ok_or("the body has no text")?,
    };
    if let Json::Scalar(raw) = found
        && let Some(text) = read(raw)
    {
        *raw = tell(&text);
    }
    Ok(())
}

/// The text with its first letter as an escape, which every reader of JSON undoes.
fn escaped(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
    let rest = quoted(letters.as_str());
    format!("\"{}{}", first.unwrap_or_default(), rest.strip_prefix('"').unwrap_or_default())
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
