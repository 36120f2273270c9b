//! `docs/reference/config.md` names every setting, with the default that is in force.

use counterfoil_server::config::{Config, Flags};

const SOURCES: [&str; 4] = [
    "from = \"none\"",
    "from = \"api-keys\"\n[[principal.keys]]\nprincipal = \"a\"\nsha256 = \"SHA256\"",
    "from = \"jwt\"\njwks = \"file:keys.json\"\nissuer = \"i\"\naudience = \"a\"\nrequire = { role = \"a\" }",
    "from = \"forward-auth\"\nurl = \"http://127.0.0.1:1/\"\nanswer_header = \"x-user\"",
];
/// What is not printed with a default of its own.
const OTHERS: [&str; 9] = [
    "principal.peers",
    "principal.keys",
    "principal.keys.principal",
    "principal.keys.sha256",
    "principal.keys.claims",
    "principal.require",
    "operation.require",
    "scope.NAME",
    "principal.from",
];

#[test]
fn every_setting_has_its_row() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |path: &str| {
        let row = page.lines().find(|row| row.starts_with(&format!("| `{path}` |")));
        row.unwrap_or_else(|| panic!("docs/reference/config.md has no row for `{path}`"))
    };
    let mut checked = std::collections::BTreeSet::new();
    for source in SOURCES.map(|source| source.replace("SHA256", &"0".repeat(64))) {
        let text = format!(
            "upstream = \"https://127.0.0.1:9000\"\ntls = {{ certificate = \"a\", key = \"b\" }}\n[[operation]]\nname = \"a\"\nmatch = \"POST /a\"\n[principal]\n{source}\n"
        );
        let printed = Config::read(Some(&text), &|_| None, &Flags::default()).unwrap().print();
        let mut table = "";
        for line in printed.lines() {
            if let Some(name) = line.strip_prefix('[') {
                table = name.trim_matches(['[', ']']);
                continue;
            }
            let Some((key, rest)) = line.split_once(" = ") else { continue };
            let (value, origin) = rest.rsplit_once(" # ").unwrap();
            // What an operation inherits stands under [defaults].
            if table == "operation" && !matches!(key, "name" | "match" | "key") {
                continue;
            }
            let path = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            let default = format!("`{value}`");
            let names = row(&path).contains(&default);
            assert!(origin != "default" || names, "the row of `{path}` does not name {default}");
            checked.insert(path);
        }
    }
    for path in OTHERS {
        row(path);
    }
    assert_eq!(checked.len(), 68, "settings that were looked for: {checked:?}");
}
