//! `[[operation]]`: which requests are guarded, under which name. Matching a request belongs to the middleware.

use std::collections::BTreeSet;

use counterfoil_core::wire::normalise;
use http::Method;

use super::claims::{self, Requirement};
use super::reader::Section;
use super::setting::Setting;
use super::terms::Terms;

const NAME_ACCEPTED: &str = "1 to 100 of a-z, 0-9, - and _ like \"create-order\"";
const MATCH_ACCEPTED: &str = "a method and a path like \"POST /orders\" or \"POST /orders/{id}/refund\"";

/// The most operations that a file may name.
const OPERATIONS_MAX: usize = 1000;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 100;
/// The longest path of a match, in bytes.
const PATH_BYTES_MAX: usize = 512;

/// An operation as the file names it.
#[derive(Clone, PartialEq, Debug)]
pub struct Operation {
    /// Its stable name.
    pub name: String,
    /// The method that it matches.
    pub method: Method,
    /// The path that it matches; `{name}` stands for one segment, `{*name}` at the end for all that follow.
    pub path: String,
    /// Whether a request without a key is refused.
    pub key_required: Setting<bool>,
    /// The claims that its callers must have beside those that every caller must have.
    pub require: Vec<Requirement>,
    /// What it promises.
    pub terms: Terms,
}

/// Reads all operations, and complains where two of them are one.
pub(crate) fn read(root: &Section<'_>, defaults: &Terms) -> Vec<Operation> {
    let sections = root.tables("operation");
    if sections.len() > OPERATIONS_MAX {
        root.complain("operation", format!("{} operations", sections.len()), format!("at most {OPERATIONS_MAX}"));
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut shapes = BTreeSet::new();
    let mut operations = Vec::with_capacity(sections.len());
    for section in sections {
        let name = section.text("name", NAME_ACCEPTED, parse_name);
        let matched = section.text("match", MATCH_ACCEPTED, parse_match);
        for (key, accepted) in [("name", NAME_ACCEPTED), ("match", MATCH_ACCEPTED)] {
            if !section.has(key) {
                section.complain(key, "missing", accepted);
            }
        }
        let key_required = section.text("key", "\"required\" or \"optional\"", |text| match text {
            "required" | "optional" => Ok(text == "required"),
            _ => Err(format!("{text:?} is neither")),
        });
        let require = claims::require(&section);
        let terms = Terms::of_operation(&section, defaults);
        if let Some(name) = name.as_ref().filter(|name| !names.insert((*name).clone())) {
            section.complain("name", format!("{name:?} names an earlier operation"), "a name of its own");
        }
        if let Some((method, path)) = matched.as_ref().filter(|(method, path)| !shapes.insert(shape(method, path))) {
            let fault = format!("\"{method} {path}\" matches what an earlier operation matches");
            section.complain("match", fault, "a match of its own");
        }
        section.finish();
        if let (Some(name), Some((method, path))) = (name, matched) {
            let key_required = Setting::or(key_required, false);
            operations.push(Operation { name, method, path, key_required, require, terms });
        }
    }
    operations
}

/// What two matches have in common that match the same requests: parameters by any name.
fn shape(method: &Method, path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.strip_prefix('{') {
        Some(rest) if rest.starts_with('*') => "{*}",
        Some(_) => "{}",
        None => segment,
    });
    format!("{method} {}", segments.collect::<Vec<_>>().join("/"))
}

fn parse_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.bytes().all(plain) {
        return Err(format!("{text:?} is no operation's name"));
    }
    Ok(text.to_owned())
}

fn parse_match(text: &str) -> Result<(Method, String), String> {
    let (method, path) = text.split_once(' ').ok_or_else(|| format!("{text:?} is no method and path"))?;
    let method = match method {
        "POST" | "PUT" | "PATCH" | "DELETE" => Method::try_from(method).map_err(|error| error.to_string())?,
        "GET" | "HEAD" | "OPTIONS" | "TRACE" => {
            return Err(format!("{method} changes nothing, so there is nothing to guard"));
        }
        _ => return Err(format!("{method:?} is not POST, PUT, PATCH or DELETE")),
    };
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("the path has {} bytes, over {PATH_BYTES_MAX}", path.len()));
    }
    if path.contains(['?', '#']) {
        return Err(format!("{path:?} has a query or fragment, which never match"));
    }
    if let Some((before, _)) = path.split_once("{*")
        && path[before.len()..].contains('/')
    {
        return Err(format!("{path:?} goes on after the rest"));
    }
    let plain: String = path.split('/').map(literal).collect::<Result<Vec<_>, _>>()?.join("/");
    match normalise(&plain) {
        Ok(normal) if normal == plain => Ok((method, path.to_owned())),
        Ok(_) => Err(format!("{path:?} is not in its normal spelling")),
        Err(fault) => Err(fault.to_string()),
    }
}

/// The segment with a parameter replaced by plain text.
fn literal(segment: &str) -> Result<&str, String> {
    let Some(rest) = segment.strip_prefix('{') else {
        let odd = segment.contains(['{', '}', '*', ' ']);
        return if odd { Err(format!("{segment:?} is no segment")) } else { Ok(segment) };
    };
    let name = rest.strip_suffix('}').map(|name| name.strip_prefix('*').unwrap_or(name));
    let name = name.filter(|name| !name.is_empty());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match name {
        Some(name) if name.bytes().all(plain) => Ok("x"),
        Some(_) | None => Err(format!("{segment:?} is no parameter like {{id}}")),
    }
}
