//! `send` and `intents` where nobody listens: what is refused before anything is written down, and what stands after.
//! Everything over a wire that works belongs to `checks`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::command::{Run, run_with};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9/orders";

/// Runs the command with the journal that stands where nobody names another.
fn run(folder: &Path, arguments: &[&str]) -> Run {
    let state = folder.join("state");
    run_with(folder, arguments, "", &[("XDG_STATE_HOME", state.to_str().unwrap())])
}

#[test]
fn what_cannot_be_kept_is_refused_and_not_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let bearer = "Authorization: Bearer t0p-s3cret";
    for (more, part) in [
        (&["-H", bearer, NOWHERE][..], "give a reference, `env:NAME` or `file:PATH`"),
        (&["-H", "no colon", NOWHERE], "write it as 'Name: value'"),
        (&["-X", "GET", NOWHERE], "promises nothing for it, only for POST, PATCH"),
        (&["--key", "card 4111 1111 1111 1111", NOWHERE], "key"),
        (&["--profile", "strype", NOWHERE], "is no built-in profile and no file"),
        (&["-d", "@missing.json", NOWHERE], "@missing.json"),
        (&["--journal", "memory:", NOWHERE], "keeps no intents; name sqlite:PATH or postgres"),
        (&["--max-time", "0", NOWHERE], "seconds from 0.001 to 3600"),
        (&["--json", "{}", "-d", "a=1", NOWHERE], "cannot be used with"),
        (&["orders"], "URL"),
    ] {
        let refused = run(folder.path(), &[&["send", "--intent", "order-1"], more].concat());
        refused.said(2, part);
        assert!(!refused.err.contains("t0p-s3cret"), "{refused:?}");
    }
    run(folder.path(), &["send", NOWHERE]).said(2, "--intent <NAME>");
    let secret = ["send", "--intent", "order-1", "-H", "Authorization: Bearer env:COUNTERFOIL_NO_SUCH", NOWHERE];
    run(folder.path(), &secret).said(2, "authorization");
    let listed = run(folder.path(), &["intents", "list", "--json"]);
    let rows = listed.json();
    assert_eq!((rows.len(), rows[0]["state"].as_str()), (1, Some("ready")), "{listed:?}");
}

#[test]
fn what_was_not_sent_is_kept_settled_and_purged() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["intents", "list"]).said(2, "`counterfoil send` makes it");
    let send = ["send", "--intent", "order 1/charge", "-d", "amount=2000", "--wait", "0s", NOWHERE];
    let sent = run(folder.path(), &send);
    sent.said(75, "nothing was sent");
    sent.said(75, "is assumed; give --window where you know");
    let journal = folder.path().join("state/counterfoil/intents.db");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&journal), mode(journal.parent().unwrap())), (0o600, 0o700));

    run(folder.path(), &["intents", "list"]).said(0, "waiting");
    let shown = run(folder.path(), &["intents", "show", "order 1/charge", "--json"]).json();
    assert_eq!((shown[0]["attempts"][0]["end"].as_str(), shown[0].get("key")), (Some("not-sent"), None), "{shown:?}");
    let whole = run(folder.path(), &["intents", "export", "--show-key"]).json();
    assert_eq!(whole[0]["body"], "amount=2000", "{whole:?}");
    assert_eq!(whole[0]["key"].as_str().unwrap().len(), 36, "{whole:?}");
    run(folder.path(), &["intents", "show", "order-2"]).said(2, "holds no intent `order-2`");
    run(folder.path(), &["intents", "recover", "order 1/charge"]).said(75, "documents no way to ask");
    run(folder.path(), &["intents", "purge", "--older-than", "0s"])
        .said(0, "0 intents were removed; left: 1 not settled");

    let version = shown[0]["version"].to_string();
    let word = ["intents", "resolve", "order 1/charge", "--who", "ann", "--why", "asked them", "--version"];
    run(folder.path(), &[&word[..], &["99", "--happened"]].concat()).said(3, "it changed since you looked");
    run(folder.path(), &[&word[..], &[&version, "--did-not-happen"]].concat()).said(0, "it did not happen");
    let settled = run(folder.path(), &["intents", "show", "order 1/charge", "--json"]).json();
    let version = settled[0]["version"].to_string();
    run(folder.path(), &[&word[..], &[&version, "--happened"]].concat()).said(3, "it is settled already");
    run(folder.path(), &send).said(3, "as ann says: asked them");
    run(folder.path(), &["intents", "resume", "order 1/charge"]).said(3, "nothing was sent");
    run(folder.path(), &["intents", "purge", "--older-than", "1h"]).said(0, "1 not old enough");
    run(folder.path(), &["intents", "purge", "--older-than", "0s"]).said(0, "1 intents were removed");
    run(folder.path(), &["intents", "list"]).said(0, "no such intent");
}
