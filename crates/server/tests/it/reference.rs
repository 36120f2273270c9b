//! `docs/reference/config.md` names every setting, with the default that is in force.

use counterfoil_server::config::{Config, Flags};

#[test]
fn every_setting_has_its_row() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config.md");
    let page = std::fs::read_to_string(page).unwrap();
    let text = "upstream = \"https://127.0.0.1:9000\"\nprincipal = { from = \"none\" }\ntls = { certificate = \"a\", key = \"b\" }\n[[operation]]\nname = \"a\"\nmatch = \"POST /a\"\n";
    let printed = Config::read(Some(text), &|_| None, &Flags::default()).unwrap().print();
    let mut table = "";
    let mut checked = 0;
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
        let row = page.lines().find(|row| row.starts_with(&format!("| `{path}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/reference/config.md has no row for `{path}`"));
        let default = format!("`{value}`");
        assert!(origin != "default" || row.contains(&default), "the row of `{path}` does not name {default}");
        checked += 1;
    }
    assert_eq!(checked, 49, "settings that were looked for");
}
