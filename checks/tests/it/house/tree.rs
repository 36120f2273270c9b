//! The tree as the rules see it: repository paths with their text, and how faults are reported.
//!
//! What does not belong here: any rule, and anything that understands Rust (`tokens.rs`).

use std::{fs, path::Path, path::PathBuf, process::Command};

/// One text file of the tree, its path relative to the root with `/` between the parts.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file holds test code only: `foo/tests.rs`, `tests_bar.rs`, anything under a `tests` folder, and
    /// the whole packages of checks and of fuzzing.
    pub(super) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let under_tests = self.path.split('/').any(|part| part == "tests");
        let whole = ["checks/", "fuzz/"].iter().any(|package| self.path.starts_with(package));
        under_tests || name.starts_with("tests") || whole
    }
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("checks stands in the root").to_owned()
}

/// The files that git tracks or would track and that still stand; what is not UTF-8 has no text.
pub(super) fn files() -> Vec<File> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .expect("git lists the files of the tree: install git");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let read = |name: &str| {
        let bytes = fs::read(root.join(name)).ok()?;
        Some(File { path: name.to_owned(), text: String::from_utf8(bytes).unwrap_or_default() })
    };
    let files: Vec<File> = names.split_terminator('\0').filter_map(read).collect();
    assert!(files.iter().any(|file| file.path == "Cargo.toml"), "the tree has a root manifest");
    files
}

/// Runs cargo at the root and returns what it printed.
pub(super) fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// Passes when a rule found nothing, else lists everything that it found with what to do about it.
pub(super) fn hold(next_step: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{} fault(s):\n  {}\nnext step: {next_step}\n", faults.len(), faults.join("\n  "));
}

/// Passes when a rule, fed with a planted fault, found exactly one fault and named it.
pub(super) fn seen(planted: &str, faults: &[String], wanted: &str) {
    let found = faults.len() == 1 && faults.iter().all(|fault| fault.contains(wanted));
    assert!(found, "planted: {planted}\nwanted one fault that says: {wanted}\nfound: {faults:#?}");
}
