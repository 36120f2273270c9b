//! The page of the probe as a browser shows it: two targets side by side, and what was sent and answered behind each cell.
//!
//! What does not belong here: what the cells say, which is tested beside the probe.

use std::path::{Path, PathBuf};

use super::{
    browser::chromium,
    probe::orders,
    served::{Served, run},
};

const SIZE: (u32, u32) = (1200, 900);

/// Results of a service without keys, and of the same behind the proxy, as one page.
fn page(home: &Path) -> PathBuf {
    let bare = orders();
    let served = Served::start(&home.join("counterfoil.db"), &bare);
    for (name, url) in [("before", format!("{bare}/orders")), ("after", served.url("/orders"))] {
        let (count, report) = (format!("{bare}/orders"), format!("json={name}.json"));
        let asked = ["probe", &url, "--body", "{\"quantity\":1}", "--vary", "/quantity", "--id", "/id"];
        let seen = ["--count-url", &count, "--count", "/count", "--case", "B", "--case", "D1", "--report", &report];
        run(&[&asked[..], &seen[..]].concat(), home);
    }
    let made = run(&["probe", "page", "matrix.html", "before.json", "after.json"], home);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    home.join("matrix.html")
}

/// The browser on a file; what it prints.
fn shown(home: &Path, does: &[String], page: &Path) -> String {
    let output = chromium(home)
        .arg("--hide-scrollbars")
        .arg(format!("--window-size={},{}", SIZE.0, SIZE.1))
        .args(does)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts: ./test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a page is UTF-8")
}

/// Width and height of a PNG: the first chunk says them.
fn size(png: &[u8]) -> (u32, u32) {
    assert_eq!(png.get(..8), Some(&b"\x89PNG\r\n\x1a\n"[..]), "it is a PNG");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn a_browser_shows_two_targets_side_by_side() {
    let home = tempfile::tempdir().expect("a directory");
    let page = page(home.path());
    let dom = shown(home.path(), &["--dump-dom".to_owned()], &page);
    let cells = dom.matches("<details>").count();
    assert!(cells >= 20 && dom.contains("seq/one-effect"), "{cells} cells\n{dom}");
    for part in ["deviates (critical)", "conforms", "\n422", "idempotency-key"] {
        assert!(dom.contains(part), "no {part} in\n{dom}");
    }
    let picture = home.path().join("matrix.png");
    shown(home.path(), &[format!("--screenshot={}", picture.display())], &page);
    let png = std::fs::read(&picture).expect("the picture was written");
    assert_eq!(size(&png), SIZE);
    // A page without anything on it is a few kilobytes.
    assert!(png.len() > 20_000, "{} bytes", png.len());
    if let Some(kept) = std::env::var_os("COUNTERFOIL_PICTURE") {
        std::fs::copy(&picture, kept).expect("the picture is kept where it is asked for");
    }
}
