//! Rust as a stream of tokens: the functions, paths, literals and calls of a file, with the line each stands on.
//!
//! Comments and strings can thus never be mistaken for code. What does not belong here: any rule about what is found.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::tree::File;

/// Something found, and the line it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) text: String,
    pub(super) line: usize,
}

/// A function with a body, from its `fn` to its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) first: usize,
    pub(super) last: usize,
}

/// Reads a file as tokens.
pub(super) fn lex(file: &File) -> TokenStream {
    file.text.parse().unwrap_or_else(|error| panic!("{}: not Rust: {error}", file.path))
}

/// Every function with a body, nested ones and those inside macro calls included.
pub(super) fn functions(tokens: TokenStream) -> Vec<Function> {
    let mut found = Vec::new();
    let mut keyword: Option<usize> = None;
    let mut named: Option<(String, usize)> = None;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Ident(word) if word == "fn" => keyword = Some(line),
            TokenTree::Ident(word) => {
                if let Some(first) = keyword.take() {
                    named = Some((word.to_string(), first));
                }
            }
            TokenTree::Group(group) => {
                keyword = None;
                if group.delimiter() == Delimiter::Brace
                    && let Some((name, first)) = named.take()
                {
                    found.push(Function { name, first, last: group.span_close().end().line });
                }
                found.extend(functions(group.stream()));
            }
            TokenTree::Punct(mark) => {
                keyword = None;
                if mark.as_char() == ';' {
                    named = None;
                }
            }
            TokenTree::Literal(_) => keyword = None,
        }
    }
    found
}

/// Every path, single words included, with the trees of `use` written out: `std::{fs, time::Instant}` gives `std::fs`
/// and `std::time::Instant`.
pub(super) fn paths(tokens: TokenStream) -> Vec<Found> {
    let mut found = Vec::new();
    walk_paths(tokens, "", &mut found);
    found
}

fn walk_paths(tokens: TokenStream, prefix: &str, found: &mut Vec<Found>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) => {
                let line = word.span().start().line;
                let mut path = format!("{prefix}{word}");
                at += 1;
                while separated(&tokens, at) {
                    match tokens.get(at + 2) {
                        Some(TokenTree::Ident(next)) => path = format!("{path}::{next}"),
                        Some(TokenTree::Group(tree)) if tree.delimiter() == Delimiter::Brace => {
                            walk_paths(tree.stream(), &format!("{path}::"), found);
                        }
                        _ => {}
                    }
                    at += 3;
                }
                found.push(Found { text: path, line });
            }
            TokenTree::Group(group) => {
                walk_paths(group.stream(), prefix, found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn separated(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(mark)) if mark.as_char() == ':');
    colon(tokens.get(at)) && colon(tokens.get(at + 1))
}

/// Every literal as it is written, documentation left out.
pub(super) fn literals(tokens: TokenStream) -> Vec<Found> {
    let mut found = Vec::new();
    let mut attribute = false;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Literal(literal) => found.push(Found { text: literal.to_string(), line }),
            TokenTree::Group(group) => {
                if !(attribute && opens_with(&group, "doc")) {
                    found.extend(literals(group.stream()));
                }
                attribute = false;
            }
            TokenTree::Punct(mark) => attribute = marks_attribute(attribute, mark.as_char()),
            TokenTree::Ident(_) => attribute = false,
        }
    }
    found
}

/// Every attribute, written as one text: `cfg_attr (miri , ignore)`.
pub(super) fn attributes(tokens: TokenStream) -> Vec<Found> {
    let mut found = Vec::new();
    let mut attribute = false;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => {
                if attribute && group.delimiter() == Delimiter::Bracket {
                    found.push(Found { text: group.stream().to_string(), line });
                }
                attribute = false;
                found.extend(attributes(group.stream()));
            }
            TokenTree::Punct(mark) => attribute = marks_attribute(attribute, mark.as_char()),
            TokenTree::Ident(_) | TokenTree::Literal(_) => attribute = false,
        }
    }
    found
}

/// Every call `word(…)` or `word!(…)`, by its last word.
pub(super) fn calls(tokens: TokenStream) -> Vec<Found> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Ident(name) => word = Some(name.to_string()),
            TokenTree::Group(group) => {
                if let (Some(text), Delimiter::Parenthesis) = (word.take(), group.delimiter()) {
                    found.push(Found { text, line });
                }
                found.extend(calls(group.stream()));
            }
            TokenTree::Punct(mark) if mark.as_char() == '!' => {}
            TokenTree::Punct(_) | TokenTree::Literal(_) => word = None,
        }
    }
    found
}

/// `#` opens an attribute, and `!` goes on with one that `#` opened.
fn marks_attribute(open: bool, mark: char) -> bool {
    mark == '#' || (open && mark == '!')
}

fn opens_with(group: &Group, word: &str) -> bool {
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(first)) if first == word)
}

#[test]
fn functions_are_measured_from_fn_to_brace() {
    let text =
        "trait T { fn open(&self); }\nfn one(f: fn(u8)) -> u8 {\n    1\n}\nmac! { fn two() { fn three() {}\n} }\n";
    let found = functions(lex(&File::new("a.rs", text)));
    let spans: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.first, f.last)).collect();
    assert_eq!(spans, [("one", 2, 4), ("two", 5, 6), ("three", 5, 5)]);
}

#[test]
fn trees_of_use_are_written_out() {
    let text = "use std::{fs, time::{Duration, Instant}};\nlet a = \"std::net\"; // std::env\nx::<u8>::y();";
    let found = paths(lex(&File::new("a.rs", text)));
    let texts: Vec<_> = found.iter().map(|path| path.text.as_str()).collect();
    for wanted in ["std::fs", "std::time::Duration", "std::time::Instant"] {
        assert!(texts.contains(&wanted), "{wanted} in {texts:?}");
    }
    assert!(!texts.iter().any(|text| text.contains("net") || text.contains("env")), "{texts:?}");
}
