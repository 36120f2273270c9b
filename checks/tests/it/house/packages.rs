//! Each package says what it is and under which licence, and there is one binary.
//!
//! What does not belong here: who uses whom (`imports.rs`).

use cargo_metadata::{MetadataCommand, Package};

use super::tree::{File, files, hold, root, seen};

const LICENCE: &str = "MIT OR Apache-2.0";
const UNPUBLISHED: [&str; 4] = ["counterfoil-checks", "counterfoil-examples", "counterfoil-bench", "counterfoil-fuzz"];
const BINARY: (&str, &str) = ("counterfoil-cli", "counterfoil");

/// What a package says of itself.
#[derive(Clone)]
struct Card {
    name: String,
    description: String,
    license: String,
    repository: String,
    published: bool,
    binaries: Vec<String>,
}

impl From<&Package> for Card {
    fn from(package: &Package) -> Self {
        let binaries = package.targets.iter().filter(|target| target.is_bin());
        Self {
            name: package.name.to_string(),
            description: package.description.clone().unwrap_or_default(),
            license: package.license.clone().unwrap_or_default(),
            repository: package.repository.clone().unwrap_or_default(),
            published: package.publish.as_ref().is_none_or(|registries| !registries.is_empty()),
            binaries: binaries.map(|target| target.name.clone()).collect(),
        }
    }
}

fn incomplete(card: &Card) -> Vec<String> {
    let name = card.name.as_str();
    let mut faults = Vec::new();
    if card.description.split_whitespace().count() < 4 {
        faults.push(format!("{name}: the description says nothing: `{}`", card.description));
    }
    if card.license != LICENCE {
        faults.push(format!("{name}: licence `{}`, wanted `{LICENCE}`", card.license));
    }
    if card.repository.is_empty() {
        faults.push(format!("{name}: no repository"));
    }
    if card.published == UNPUBLISHED.contains(&name) {
        let wanted = if card.published { "publish = false" } else { "to be published" };
        faults.push(format!("{name}: wanted {wanted}"));
    }
    let wanted: &[&str] = if name == BINARY.0 { &[BINARY.1] } else { &[] };
    if card.binaries != wanted {
        faults.push(format!("{name}: binaries {:?}, wanted {wanted:?}: `cargo run` needs exactly one", card.binaries));
    }
    faults
}

fn licences(files: &[File]) -> Vec<String> {
    let wanted = [
        ("LICENSE-MIT", ["Permission is hereby granted", "WITHOUT WARRANTY OF ANY KIND"]),
        ("LICENSE-APACHE", ["Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"]),
    ];
    let judge = |(path, phrases): (&str, [&str; 2])| {
        let text = files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
        (!phrases.iter().all(|phrase| text.contains(phrase))).then(|| format!("{path}: not the whole licence"))
    };
    wanted.into_iter().filter_map(judge).collect()
}

#[test]
fn packages_say_what_they_are() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--locked".to_owned()])
        .exec()
        .expect("cargo metadata reads the workspace");
    let cards: Vec<Card> = metadata.workspace_packages().into_iter().map(Card::from).collect();
    let faults: Vec<String> = cards.iter().flat_map(incomplete).collect();
    hold("complete that package's Cargo.toml", &faults);
}

#[test]
fn the_licences_stand_at_the_root() {
    hold("restore the text of the licence", &licences(&files()));
}

#[test]
fn planted_packages_are_seen() {
    let good = Card {
        name: "counterfoil-store".to_owned(),
        description: "Where records are kept".to_owned(),
        license: LICENCE.to_owned(),
        repository: "somewhere".to_owned(),
        published: true,
        binaries: Vec::new(),
    };
    assert!(incomplete(&good).is_empty());
    let rows = [
        (Card { description: concat!("TO", "DO").to_owned(), ..good.clone() }, "says nothing"),
        (Card { license: "MIT".to_owned(), ..good.clone() }, "licence `MIT`"),
        (Card { repository: String::new(), ..good.clone() }, "no repository"),
        (Card { published: false, ..good.clone() }, "to be published"),
        (Card { name: "counterfoil-bench".to_owned(), ..good.clone() }, "publish = false"),
        (Card { binaries: vec!["other".to_owned()], ..good.clone() }, "exactly one"),
        (Card { name: "counterfoil-cli".to_owned(), ..good.clone() }, "wanted [\"counterfoil\"]"),
    ];
    for (planted, wanted) in rows {
        seen(&planted.name, &incomplete(&planted), wanted);
    }
}

#[test]
fn planted_licences_are_seen() {
    let mit = File::new("LICENSE-MIT", "Permission is hereby granted … WITHOUT WARRANTY OF ANY KIND");
    let apache = File::new("LICENSE-APACHE", "Version 2.0, January 2004");
    seen("half a licence", &licences(&[mit, apache]), "LICENSE-APACHE");
}
