//! Which of our packages may use which: the picture of `ARCHITECTURE.md`, executed over `cargo metadata`.
//!
//! Dependencies for development and for build scripts are judged like the others. What does not belong here: packages
//! of other people (`dependencies.rs`).

use cargo_metadata::{DependencyKind, MetadataCommand};

use super::tree::{hold, root, seen};

/// What each package may use. The unpublished ones stand outside: they may use anything, and nobody may use them.
const PICTURE: &[(&str, &[&str])] = &[
    ("counterfoil-core", &[]),
    ("counterfoil-store", &["counterfoil-core"]),
    ("counterfoil-middleware", &["counterfoil-core", "counterfoil-store"]),
    ("counterfoil-client", &["counterfoil-core", "counterfoil-store"]),
    ("counterfoil-server", &["counterfoil-core", "counterfoil-store", "counterfoil-middleware"]),
    ("counterfoil-probe", &[]),
    (
        "counterfoil-cli",
        &[
            "counterfoil-core",
            "counterfoil-store",
            "counterfoil-middleware",
            "counterfoil-client",
            "counterfoil-server",
            "counterfoil-probe",
        ],
    ),
    ("counterfoil", &["counterfoil-core", "counterfoil-store", "counterfoil-middleware", "counterfoil-client"]),
];

const OUTSIDE: [&str; 4] = ["counterfoil-checks", "counterfoil-examples", "counterfoil-bench", "counterfoil-fuzz"];

/// One package of ours uses another.
struct Arrow {
    from: String,
    to: String,
    kind: DependencyKind,
}

impl Arrow {
    fn new(from: &str, to: &str, kind: DependencyKind) -> Self {
        Self { from: from.to_owned(), to: to.to_owned(), kind }
    }
}

fn stray_arrows(arrows: &[Arrow]) -> Vec<String> {
    let judge = |arrow: &Arrow| {
        let Arrow { from, to, kind } = arrow;
        // A package may switch on its own features for its own tests.
        let own_tests = from == to && *kind == DependencyKind::Development;
        let allowed = match PICTURE.iter().find(|(name, _)| name == from) {
            Some((_, below)) => below.contains(&to.as_str()) || own_tests,
            None => OUTSIDE.contains(&from.as_str()) && !OUTSIDE.contains(&to.as_str()),
        };
        (!allowed).then(|| format!("{from} -> {to} ({kind})"))
    };
    arrows.iter().filter_map(judge).collect()
}

fn unplaced(names: &[String]) -> Vec<String> {
    let placed = |name: &str| OUTSIDE.contains(&name) || PICTURE.iter().any(|(known, _)| *known == name);
    names.iter().filter(|name| !placed(name)).map(|name| format!("{name} is not in the picture")).collect()
}

#[test]
fn only_the_arrows_of_the_picture_exist() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--locked".to_owned()])
        .exec()
        .expect("cargo metadata reads the workspace");
    let packages = metadata.workspace_packages();
    let names: Vec<String> = packages.iter().map(|package| package.name.to_string()).collect();
    let mut arrows = Vec::new();
    for package in &packages {
        let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
        arrows.extend(ours.map(|to| Arrow::new(&package.name, &to.name, to.kind)));
    }
    assert!(arrows.len() >= 4, "the workspace has arrows, or this test reads the wrong place");
    hold("move the code to where it may stand, or change ARCHITECTURE.md and this table", &stray_arrows(&arrows));
    hold("give it a place in ARCHITECTURE.md and in this table", &unplaced(&names));
}

#[test]
fn planted_faults_are_seen() {
    use DependencyKind::{Build, Development, Normal};
    let refused = [
        ("counterfoil-core", "counterfoil-store", Normal),
        ("counterfoil-core", "counterfoil-store", Development),
        ("counterfoil-store", "counterfoil-middleware", Build),
        ("counterfoil-middleware", "counterfoil-server", Development),
        ("counterfoil-client", "counterfoil-middleware", Normal),
        ("counterfoil-probe", "counterfoil-core", Normal),
        ("counterfoil-store", "counterfoil", Normal),
        ("counterfoil-store", "counterfoil-store", Normal),
        ("counterfoil", "counterfoil-server", Normal),
        ("counterfoil-server", "counterfoil-checks", Development),
        ("counterfoil-new", "counterfoil-core", Normal),
    ];
    for (from, to, kind) in refused {
        seen(from, &stray_arrows(&[Arrow::new(from, to, kind)]), &format!("{from} -> {to}"));
    }
    let allowed = [
        ("counterfoil-server", "counterfoil-middleware", Normal),
        ("counterfoil-store", "counterfoil-store", Development),
        ("counterfoil-checks", "counterfoil-server", Development),
    ];
    for (from, to, kind) in allowed {
        assert!(stray_arrows(&[Arrow::new(from, to, kind)]).is_empty(), "{from} -> {to}");
    }
    seen("counterfoil-new", &unplaced(&["counterfoil-new".to_owned()]), "not in the picture");
}
