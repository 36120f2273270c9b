//! Packages of other people: what the core may use, what may not be in the tree at all, and that each has its reason.
//!
//! What does not belong here: licences of others, which `deny.toml` holds, and arrows among ours (`imports.rs`).

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{File, cargo, files, hold, seen};

/// Exactly what the core uses: pure libraries for formats, digests and errors.
const CORE_USES: &[&str] = &["bytes", "http", "jiter", "jsonptr", "serde_json", "sfv", "sha2", "thiserror", "uuid"];
/// The core with all that it pulls in, itself included.
const CORE_CRATES: usize = 60;
/// What would bring clocks, sockets, threads or chance into the core from below.
const CORE_NEVER: [&str; 9] = ["tokio", "mio", "socket2", "getrandom", "rand", "chrono", "time", "jiff", "rusqlite"];
/// Not in the tree at all, with the reason. `deny.toml` says the same to those who have cargo-deny.
const BANNED: &[(&str, &str)] = &[
    ("aws-lc-sys", "one cryptographic provider in the tree, and it is ring"),
    ("openssl-sys", "nothing that must be installed to build"),
    ("native-tls", "nothing that must be installed to build"),
];
const ONLY_ONCE: [&str; 2] = ["libsqlite3-sys", "rusqlite"];
const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

fn table(file: &File) -> toml::Table {
    file.text.parse().unwrap_or_else(|error| panic!("{}: not TOML: {error}", file.path))
}

fn section(table: &toml::Table, name: &str) -> toml::Table {
    table.get(name).and_then(toml::Value::as_table).cloned().unwrap_or_default()
}

fn core_uses(manifest: &File) -> Vec<String> {
    let table = table(manifest);
    let mut used: BTreeSet<String> = section(&table, "dependencies").keys().cloned().collect();
    used.extend(section(&table, "build-dependencies").keys().cloned());
    for target in section(&table, "target").values().filter_map(toml::Value::as_table) {
        used.extend(section(target, "dependencies").keys().cloned());
    }
    let allowed: BTreeSet<String> = CORE_USES.iter().map(|name| (*name).to_owned()).collect();
    let added = used.difference(&allowed).map(|name| format!("the core uses `{name}`, which is not on its list"));
    let unused = allowed.difference(&used).map(|name| format!("the core's list names `{name}`, which it does not use"));
    added.chain(unused).collect()
}

/// Judges the lines `name vX.Y.Z …` of `cargo tree --prefix none`.
fn core_weighs(tree: &str) -> Vec<String> {
    let crates: BTreeSet<(&str, &str)> = tree.lines().filter_map(|line| line.split_once(' ')).map(version).collect();
    let mut faults = Vec::new();
    if crates.len() > CORE_CRATES {
        faults.push(format!("the core compiles {} crates, budget {CORE_CRATES}", crates.len()));
    }
    let banned = crates.iter().filter(|(name, _)| CORE_NEVER.contains(name));
    faults.extend(banned.map(|(name, _)| format!("the core pulls in `{name}`")));
    faults
}

fn version<'a>((name, rest): (&'a str, &'a str)) -> (&'a str, &'a str) {
    (name, rest.split(' ').next().unwrap_or_default())
}

fn locked(lock: &File) -> Vec<String> {
    let table = table(lock);
    let packages = table.get("package").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for name in packages.iter().filter_map(|package| package.get("name")?.as_str()) {
        *count.entry(name).or_default() += 1;
    }
    let banned = BANNED.iter().filter(|(name, _)| count.contains_key(name));
    let mut faults: Vec<String> = banned.map(|(name, why)| format!("`{name}` is in the tree: {why}")).collect();
    for name in ONLY_ONCE.iter().filter(|name| count.get(*name).is_some_and(|times| *times > 1)) {
        faults.push(format!("`{name}` is in the tree {} times", count[name]));
    }
    faults
}

/// Every package that a manifest of ours names has a line `| name | reason |` in `DESIGN.md`.
fn unexplained(files: &[File]) -> Vec<String> {
    let mut used = BTreeSet::new();
    for manifest in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let table = table(manifest);
        let workspace = section(&table, "workspace");
        let sections = SECTIONS.iter().map(|name| section(&table, name)).chain([section(&workspace, "dependencies")]);
        for (name, value) in sections.flatten() {
            let ours = value.get("path").is_some() || name == "counterfoil" || name.starts_with("counterfoil-");
            if !ours {
                used.insert(name);
            }
        }
    }
    let design = files.iter().find(|file| file.path == "DESIGN.md").map_or("", |file| file.text.as_str());
    let rows = design.lines().filter_map(|line| line.trim().strip_prefix('|'));
    let cells = rows.filter_map(|row| row.split_once('|'));
    let explained: BTreeSet<&str> = cells
        .filter(|(_, reason)| reason.chars().filter(|letter| letter.is_alphabetic()).count() >= 8)
        .flat_map(|(names, _)| names.split(','))
        .map(|name| name.trim().trim_matches('`'))
        .collect();
    let missing = used.iter().filter(|name| !explained.contains(name.as_str()));
    missing.map(|name| format!("DESIGN.md has no row `| {name} | reason |`")).collect()
}

#[test]
fn the_core_uses_what_its_list_says() {
    let files = files();
    let manifest = files.iter().find(|file| file.path == "crates/core/Cargo.toml").expect("the core has a manifest");
    hold("do without it, or put it on the list with a reason in DESIGN.md", &core_uses(manifest));
}

#[test]
fn the_core_stays_light() {
    let tree = cargo(&["tree", "--locked", "-p", "counterfoil-core", "-e", "normal", "--prefix", "none"]);
    assert!(tree.starts_with("counterfoil-core "), "cargo tree opens with the core: {tree}");
    hold("look with `cargo tree -p counterfoil-core -e normal`", &core_weighs(&tree));
}

#[test]
fn the_lock_holds_nothing_banned() {
    let files = files();
    let lock = files.iter().find(|file| file.path == "Cargo.lock").expect("Cargo.lock is kept in the tree");
    hold("look with `cargo tree -i NAME`, and switch off the feature that brings it", &locked(lock));
}

#[test]
fn every_dependency_has_its_reason() {
    hold("add the row to the table of dependencies in DESIGN.md", &unexplained(&files()));
}

#[test]
fn planted_faults_in_the_core_are_seen() {
    let manifest = |extra: &str| {
        let lines: Vec<String> = CORE_USES.iter().map(|name| format!("{name}.workspace = true")).collect();
        File::new("crates/core/Cargo.toml", &format!("[dependencies]\n{}\n{extra}", lines.join("\n")))
    };
    assert!(core_uses(&manifest("[dev-dependencies]\nproptest = \"1\"")).is_empty());
    for extra in ["tokio = \"1\"", "[target.x.dependencies]\ntokio = \"1\"", "[build-dependencies]\ntokio = \"1\""] {
        seen(extra, &core_uses(&manifest(extra)), "uses `tokio`");
    }
    let short = manifest("").text.replace("http.workspace = true\n", "");
    seen("unused", &core_uses(&File::new("Cargo.toml", &short)), "names `http`");

    let tree = |count: usize| (0..count).map(|n| format!("c{n} v1.0.0\n")).collect::<String>();
    assert!(core_weighs(&format!("{}{}", tree(CORE_CRATES), "c1 v1.0.0 (*)\n")).is_empty(), "repeats count once");
    seen("one crate more", &core_weighs(&tree(CORE_CRATES + 1)), "compiles 61");
    seen("a clock from below", &core_weighs("chrono v0.4.1\n"), "pulls in `chrono`");
}

#[test]
fn planted_faults_in_the_tree_are_seen() {
    let lock = |names: &[&str]| {
        let package = |name: &&str| format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n");
        File::new("Cargo.lock", &names.iter().map(package).collect::<String>())
    };
    assert!(locked(&lock(&["libsqlite3-sys", "serde"])).is_empty());
    seen("a second SQLite", &locked(&lock(&["libsqlite3-sys", "libsqlite3-sys"])), "2 times");
    seen("aws-lc-sys", &locked(&lock(&["aws-lc-sys"])), "`aws-lc-sys` is in the tree");
    seen("openssl", &locked(&lock(&["openssl-sys"])), "`openssl-sys`");

    let root = File::new("Cargo.toml", "[workspace.dependencies]\nours = { path = \"x\" }\nhttp = \"1\"\n");
    let own = File::new("checks/Cargo.toml", "[dev-dependencies]\nproc-macro2 = \"1\"\ncounterfoil.workspace = true\n");
    let design = |text: &str| [root.clone(), own.clone(), File::new("DESIGN.md", text)];
    let full = "| `http` | the words of the protocol |\n| `proc-macro2`, `x` | reads Rust for the checks |\n";
    assert!(unexplained(&design(full)).is_empty());
    seen("no row", &unexplained(&design(&full.replace("`http`", "`https`"))), "`| http | reason |`");
    seen("no reason", &unexplained(&design(&full.replace("reads Rust for the checks", "-"))), "`| proc-macro2 |");
}
