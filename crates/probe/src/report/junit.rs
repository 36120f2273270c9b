//! JUnit's XML, for continuous integration: deviations fail, what failed on the way is an error, the rest is skipped.
//!
//! What does not belong here: which exit code follows (`run.rs`).

use crate::run::{CaseResult, Run};
use crate::verdict::Verdict;

/// A run as a suite of JUnit.
#[must_use]
pub fn junit(run: &Run) -> String {
    let count = |fits: fn(Verdict) -> bool| run.count(fits);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text.push_str(&format!(
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" timestamp=\"{}\">\n",
        escape(&format!("counterfoil probe {} {}", run.contract, run.target)),
        run.results.len(),
        count(|verdict| matches!(verdict, Verdict::Deviates(_))),
        count(is_error),
        count(|verdict| !verdict.is_answer() && !is_error(verdict)),
        escape(run.began.trim_end_matches('Z')),
    ));
    for result in &run.results {
        text.push_str(&case(result));
    }
    text.push_str("</testsuite>\n");
    text
}

fn is_error(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::SetupFailed | Verdict::HarnessError | Verdict::IntermediaryRetried)
}

fn case(result: &CaseResult) -> String {
    let group = result.row.get(..1).unwrap_or_default();
    let head = format!("  <testcase classname=\"{}\" name=\"{}\"", escape(group), escape(&result.id));
    let verdict = result.verdict.name();
    let mut said = format!("{}\n{}", result.asks, result.summary);
    if !result.expected.is_empty() {
        said = format!("{said}\nexpected: {}\nfound: {}", result.expected, result.why);
    }
    let inner = |tag: &str| {
        let message = escape(&format!("{verdict}: {}", result.why));
        format!("{head}>\n    <{tag} message=\"{message}\">{}</{tag}>\n  </testcase>\n", escape(&said))
    };
    match result.verdict {
        Verdict::Conforms => format!("{head}/>\n"),
        Verdict::Yes | Verdict::No | Verdict::Value => {
            format!(
                "{head}>\n    <system-out>{}</system-out>\n  </testcase>\n",
                escape(&format!("{verdict}: {}", result.why))
            )
        }
        Verdict::Deviates(_) => inner("failure"),
        Verdict::SetupFailed | Verdict::HarnessError | Verdict::IntermediaryRetried => inner("error"),
        Verdict::Inconclusive
        | Verdict::Unobservable
        | Verdict::NotApplicable
        | Verdict::DependsOnFailed
        | Verdict::SkippedUnsafe => inner("skipped"),
    }
}

/// Text for XML and HTML; what neither may hold is replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            control if control.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
