//! The documents at the root exist, the map names every room, and every link inside the repository leads somewhere.
//!
//! What does not belong here: whether what they say of the product is true; each reference has its own test.

use std::collections::BTreeSet;

use super::tree::{File, files, hold, seen};

const DOCUMENTS: [&str; 5] = ["README.md", "ARCHITECTURE.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md"];

fn missing(files: &[File]) -> Vec<String> {
    let absent = DOCUMENTS.iter().filter(|path| !files.iter().any(|file| file.path == **path));
    absent.map(|path| format!("{path}: missing")).collect()
}

/// The rooms: every directory with a manifest, as `crates/core`.
fn rooms(files: &[File]) -> BTreeSet<&str> {
    files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml")).collect()
}

/// The map names every room, and no crate that is not there.
fn unmapped(files: &[File]) -> Vec<String> {
    let rooms = rooms(files);
    let map = files.iter().find(|file| file.path == "ARCHITECTURE.md").map_or("", |file| file.text.as_str());
    let named: BTreeSet<&str> =
        map.split(|letter: char| !is_path(letter)).map(|word| word.trim_matches(['/', '.'])).collect();
    let names = |room: &str| named.iter().any(|word| *word == room || word.starts_with(&format!("{room}/")));
    let unnamed = rooms.iter().filter(|room| !names(room));
    let mut faults: Vec<String> = unnamed.map(|room| format!("ARCHITECTURE.md does not name `{room}`")).collect();
    for word in named {
        let Some(rest) = word.strip_prefix("crates/") else {
            continue;
        };
        let room = format!("crates/{}", rest.split('/').next().unwrap_or_default());
        if !rooms.contains(room.as_str()) {
            faults.push(format!("ARCHITECTURE.md names `{room}`, which is not there"));
        }
    }
    faults
}

fn is_path(letter: char) -> bool {
    letter.is_alphanumeric() || "/-_.".contains(letter)
}

/// The targets of `[text](target)` and `[name]: target`, with their lines; code is left out.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for after in prose.split("](").skip(1) {
            let target = after.split([')', ' ']).next().unwrap_or_default();
            found.push((index + 1, target.to_owned()));
        }
        let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
        if let Some((_, target)) = definition {
            found.push((index + 1, target.trim().to_owned()));
        }
    }
    found
}

/// The repository path that a link on page `from` leads to; nothing when it leads above the root.
pub(super) fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn broken_links(files: &[File]) -> Vec<String> {
    let stands = |path: &str| {
        path.is_empty() || files.iter().any(|file| file.path == path || file.path.starts_with(&format!("{path}/")))
    };
    let mut faults = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in links(&page.text) {
            let outside = target.contains("://") || target.starts_with("mailto:") || target.starts_with('#');
            let path = target.split('#').next().unwrap_or_default();
            let leads = resolve(&page.path, path).is_some_and(|path| stands(&path));
            if !outside && !leads {
                faults.push(format!("{}:{line}: `{target}` leads nowhere", page.path));
            }
        }
    }
    faults
}

#[test]
fn the_documents_exist() {
    hold("write it; what it holds is in the table of CONTRIBUTING.md", &missing(&files()));
}

#[test]
fn the_map_names_every_room() {
    hold("bring ARCHITECTURE.md up to date", &unmapped(&files()));
}

#[test]
fn links_lead_somewhere() {
    hold("mend the link; git must know the file that it names", &broken_links(&files()));
}

#[test]
fn planted_faults_are_seen() {
    let all: Vec<File> = DOCUMENTS.iter().map(|path| File::new(path, "")).collect();
    assert!(missing(&all).is_empty());
    seen("no changelog", &missing(&all[..4]), "CHANGELOG.md: missing");

    let map = |text: &str| [File::new("crates/core/Cargo.toml", ""), File::new("ARCHITECTURE.md", text)];
    assert!(unmapped(&map("See `crates/core`.")).is_empty());
    assert!(unmapped(&map("| [core](crates/core/src/lib.rs) |")).is_empty());
    seen("a room unnamed", &unmapped(&map("See `core`.")), "does not name `crates/core`");
    seen("a room too many", &unmapped(&map("`crates/core`, `crates/gone/src`")), "`crates/gone`, which is not");

    let page = |text: &str| [File::new("docs/a.md", text), File::new("docs/b.md", ""), File::new("README.md", "")];
    let whole = "[b](b.md#x) [up](../README.md) [out](https://x.test/y) [here](#z) [dir](../docs)\n\n[r]: b.md\n";
    assert!(broken_links(&page(whole)).is_empty());
    assert!(broken_links(&page("`[c](c.md)`\n```\n[c](c.md)\n```\n")).is_empty(), "code is not a link");
    for planted in ["\n[c](c.md)", "\nsee [b](b.md \"t\") and [c](c.md \"t\")", "\n[c]: c.md", "\n[c](../../c.md)"] {
        seen(planted, &broken_links(&page(planted)), "docs/a.md:2");
    }
}
