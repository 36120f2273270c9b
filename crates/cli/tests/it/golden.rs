//! Compares texts with files kept beside the tests; `COUNTERFOIL_BLESS=1` writes them anew.

use std::path::Path;

/// Checks `found` against `tests/it/<name>`.
#[track_caller]
pub(crate) fn check(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name);
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "{name} differs; COUNTERFOIL_BLESS=1 writes it anew");
}
