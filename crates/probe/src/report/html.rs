//! One page that needs nothing else: cases down, targets across, and behind each cell what was exchanged.
//!
//! What does not belong here: verdicts of its own.

use std::collections::BTreeMap;

use super::junit::escape;
use crate::exchange::Exchange;
use crate::run::{CaseResult, Run};
use crate::verdict::{Severity, Verdict};

const STYLE: &str = include_str!("page.css");
/// The most characters of a body that the page shows.
const BODY_CHARS_MAX: usize = 2_000;

/// One page for all runs, side by side. It has no script and loads nothing.
#[must_use]
pub fn page(runs: &[Run]) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>counterfoil probe</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Which promise is kept?</h1>\n"
    );
    text.push_str("<table>\n<thead>\n<tr><th scope=\"col\">case</th>");
    for run in runs {
        let (target, contract, began) = (escape(&run.target), escape(&run.contract), escape(&run.began));
        text.push_str(&format!("<th scope=\"col\">{target}<br><small>{contract}, {began}</small></th>"));
    }
    text.push_str("</tr>\n</thead>\n<tbody>\n");
    let mut rows: Vec<&CaseResult> = Vec::new();
    for result in runs.iter().flat_map(|run| &run.results) {
        if !rows.iter().any(|row| row.id == result.id) {
            rows.push(result);
        }
    }
    for row in rows {
        let (id, number, asks) = (escape(&row.id), escape(&row.row), escape(&row.asks));
        text.push_str(&format!("<tr><th scope=\"row\"><b>{number}</b> {id}<br><small>{asks}</small></th>"));
        for run in runs {
            text.push_str(&cell(run, &row.id));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</body>\n</html>\n");
    text
}

fn cell(run: &Run, id: &str) -> String {
    let Some(result) = run.results.iter().find(|result| result.id == id) else {
        return "<td class=\"none\">not asked</td>".to_owned();
    };
    let numbered: BTreeMap<u32, &Exchange> = run.exchanges.iter().map(|exchange| (exchange.number, exchange)).collect();
    let mut text = format!(
        "<td class=\"{}\"><details><summary>{} {}</summary>",
        class(result.verdict),
        result.verdict.name(),
        escape(&result.why)
    );
    text.push_str(&format!("<p>{}</p><p class=\"clause\">{}</p>", escape(&result.summary), escape(&result.clause)));
    if !result.expected.is_empty() {
        text.push_str(&format!("<p>expected: {}</p>", escape(&result.expected)));
    }
    for exchange in result.exchanges.iter().filter_map(|number| numbered.get(number)) {
        text.push_str(&format!("<pre>{}</pre>", escape(&shown(exchange))));
    }
    text.push_str("</details></td>");
    text
}

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Conforms => "conforms",
        Verdict::Deviates(Severity::Critical) => "critical",
        Verdict::Deviates(Severity::Major) => "major",
        Verdict::Deviates(Severity::Minor) => "minor",
        Verdict::Yes | Verdict::No | Verdict::Value => "value",
        Verdict::Inconclusive
        | Verdict::Unobservable
        | Verdict::NotApplicable
        | Verdict::SetupFailed
        | Verdict::DependsOnFailed
        | Verdict::HarnessError
        | Verdict::IntermediaryRetried
        | Verdict::SkippedUnsafe => "none",
    }
}

/// An exchange as a person reads it.
fn shown(exchange: &Exchange) -> String {
    let headers = |headers: &[(String, String)]| -> String {
        headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    };
    let short = |body: &str| match body.char_indices().nth(BODY_CHARS_MAX) {
        Some((at, _)) => format!("{} …", body.get(..at).unwrap_or_default()),
        None => body.to_owned(),
    };
    let Exchange { number, name, round, method, path, protocol, sent_at, ended_at, .. } = exchange;
    let mut text = format!("#{number} {name}, round {round}, {sent_at} to {ended_at} µs\n{method} {path} {protocol}\n");
    text.push_str(&format!("{}\n{}\n\n", headers(&exchange.headers), short(&exchange.body)));
    if let Some(lost) = &exchange.lost {
        text.push_str(&format!("(lost on purpose: {lost})\n"));
    }
    match (&exchange.answer, &exchange.fault) {
        (Some(answer), _) => {
            let rest = if answer.whole { "" } else { " (cut)" };
            text.push_str(&format!("{}{rest}\n{}\n{}", answer.status, headers(&answer.headers), short(&answer.body)));
        }
        (None, Some(fault)) => text.push_str(&format!("(no answer: {fault})")),
        (None, None) => text.push_str("(no answer was awaited)"),
    }
    text
}
