//! The reader passes nothing over, and tells everything at once.
//! That good files are read is tested in `files`.

use counterfoil_client::profiles::{FILE_BYTES_MAX, parse, text};

/// The paths that are complained about.
fn paths(file: &str) -> Vec<String> {
    match parse(file) {
        Ok(_) => Vec::new(),
        Err(complaints) => {
            assert!(
                complaints.all.iter().all(|complaint| !complaint.accepted.is_empty() && !complaint.fault.is_empty())
            );
            complaints.all.into_iter().map(|complaint| complaint.path).collect()
        }
    }
}

const LEAST: &str = r#"
id = "mine"
version = 1
title = "Mine"
[[source]]
at = "https://docs.example/keys"
checked = "2026-10"
confidence = "read"
[key]
header = "Idempotency-Key"
"#;

#[test]
fn the_least_that_is_a_profile_says_nothing_else() {
    let profile = parse(LEAST).unwrap();
    assert_eq!((profile.window, profile.marker, profile.answers.len()), (None, None, 0));
}

const FAULTY: &str = r#"
id = "Mine!"
version = 0
wait_min = "soon"
methods = ["POST", 1]
colour = "red"
[[source]]
at = ""
checked = "yesterday"
[key]
header = "Idempotency Key"
member = "key"
format = "ulid"
bytes_max = 0
[window]
span = "1 day"
after = "gone"
[marker]
value = 1
[remembers]
success = "perhaps"
[[answer]]
name = "x"
status = [99, "6xx", "4xx"]
means = "maybe"
json = { at = "code" }
[[answer]]
status = []
means = "success"
record = "yes"
[lookup]
method = "DELETE"
url = "https://elsewhere.example/{key}"
"#;

#[test]
fn all_faults_are_told_at_once_with_their_paths() {
    let wanted = [
        "id",
        "version",
        "title",
        "source[0].at",
        "source[0].checked",
        "source[0].confidence",
        "key.header",
        "key.bytes_max",
        "key.format",
        "window.span",
        "window.from",
        "window.after",
        "remembers.success",
        "methods[1]",
        "wait_min",
        "marker.header",
        "marker.value",
        "answer[0].status[0]",
        "answer[0].status[1]",
        "answer[0].json.at",
        "answer[0].json.is",
        "answer[0].means",
        "answer[1].name",
        "answer[1].status",
        "answer[1].record",
        "lookup.method",
        "lookup.url",
        "lookup.note",
        "colour",
    ];
    assert_eq!(paths(FAULTY), wanted);
    let message = parse(FAULTY).unwrap_err().to_string();
    assert!(message.starts_with(&format!("the profile has {} faults\n", wanted.len())), "{message}");
    assert!(message.contains("colour: unknown setting; accepted: one of "), "{message}");
}

#[test]
fn one_fault_in_a_good_file_is_found() {
    let check = |from: &str, to: &str, wanted: &[&str]| {
        let file = LEAST.replace(from, to);
        assert_ne!(file, LEAST, "{from:?} stands in the file");
        assert_eq!(paths(&file), wanted, "{to:?}");
    };
    check(
        "[[source]]\nat = \"https://docs.example/keys\"\nchecked = \"2026-10\"\nconfidence = \"read\"\n",
        "",
        &["source"],
    );
    check("checked = \"2026-10\"", "checked = \"2026-13\"", &["source[0].checked"]);
    check("checked = \"2026-10\"", "checked = \"2026-10-32\"", &["source[0].checked"]);
    check("header = \"Idempotency-Key\"", "", &["key"]);
    check("header = \"Idempotency-Key\"", "header = \"a\"\nparameter = \"b\"", &["key"]);
    check("header = \"Idempotency-Key\"", "member = \"a\"\nencoding = \"raw\"", &["key"]);
    check("header = \"Idempotency-Key\"", "header = \"a\"\nbytes_min = 50\nbytes_max = 40", &["key"]);
    check("header = \"Idempotency-Key\"", "header = \"a\"\nformat = \"uuid4\"\ngenerate = \"uuid7\"", &["key"]);
    check("[key]", "[key]\nlength = 3", &["key.length"]);
    check("id = \"mine\"", "id = \"\"", &["id"]);
    let recipe = "\n[lookup]\nmethod = \"GET\"\nnote = \"n\"\nurl = \"{url}/{id}\"\n";
    assert_eq!(paths(&format!("{LEAST}{recipe}")), ["lookup.url"]);
    let recipe = "\n[cancel]\nmethod = \"POST\"\nnote = \"n\"\nurl = \"{origin}/x\"\n[[cancel.absent]]\nname = \"a\"\nstatus = [200]\nmeans = \"unclear\"\n";
    assert_eq!(paths(&format!("{LEAST}{recipe}")), ["cancel.absent[0].means"]);
}

#[test]
fn what_is_no_toml_or_too_large_is_refused() {
    assert_eq!(paths("id ="), [""]);
    assert_eq!(paths(&format!("#{}", "x".repeat(FILE_BYTES_MAX))), [""]);
    let twice = format!("{}\nid = \"again\"", text("ietf").unwrap());
    assert!(!paths(&twice).is_empty());
}
