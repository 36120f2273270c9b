//! `receipts show`: one record, its history, and what can be done about it.

use counterfoil_core::record::Standing;
use counterfoil_core::{Now, Record, State};
use counterfoil_store::seam::{Listed, Note};
use serde_json::Value;

use super::view::{self, Shown};
use super::{find, result};
use crate::args::{Place, Show};
use crate::error::CliError;
use crate::{instant, print, settings};

pub(super) async fn run(show: &Show) -> Result<(), CliError> {
    let store = settings::open(&show.place).await?;
    let listed = find::find(&store, &show.key_or_digest).await?;
    let history = store.records().history(&listed.identity).await?;
    let now = store.records().now();
    store.close().await;
    if show.json {
        let mut members = view::json(&listed, now, Shown { key: show.show_key, result: true });
        members.insert("history".to_owned(), Value::Array(history.iter().map(view::note).collect()));
        return print::data(&Value::Object(members).to_string());
    }
    print::human(&text(&listed, &history, now, show));
    Ok(())
}

/// Lines of a name and a value.
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: &str) {
        use std::fmt::Write as _;
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{name:<12} {value}");
    }
}

fn text(listed: &Listed, history: &[Note], now: Now, show: &Show) -> String {
    let mut lines = Lines(String::new());
    let digest = listed.identity.digest();
    lines.add("digest", &digest.to_hex());
    if show.show_key {
        lines.add("key", listed.identity.key.as_str());
    }
    lines.add("operation", listed.identity.operation.as_str());
    for (name, value) in listed.identity.scope.parts() {
        lines.add(name, value);
    }
    match &listed.record {
        Ok(record) => of_record(&mut lines, listed, record, now),
        Err(error) => lines.add("unreadable", &error.to_string()),
    }
    for note in history {
        lines.add(
            "history",
            &format!("{} {} by {}: {}", instant::print(note.at), note.kind.as_str(), note.who, note.why),
        );
    }
    if let Ok(record) = &listed.record {
        lines.0.push_str(&next(&digest.to_string(), record, now, &show.place));
    }
    lines.0.trim_end().to_owned()
}

fn of_record(lines: &mut Lines, listed: &Listed, record: &Record, now: Now) {
    let state = view::word(view::state(listed, now));
    let state = match record.standing(now) {
        Standing::Unknown { why, .. } => format!("{state} ({})", why.as_str()),
        Standing::Absent
        | Standing::Running { .. }
        | Standing::Lapsed
        | Standing::Done { .. }
        | Standing::Expired { .. } => state.to_owned(),
    };
    let since = instant::print(view::since(record, now));
    lines.add("state", &format!("{state} since {since}, {} ago", instant::age(view::age(record, now))));
    lines.add("version", &view::version(record));
    lines.add("claimed", &instant::print(record.claimed_at));
    let holder = match record.lease.holder {
        Some(holder) => format!("held by instance {holder}"),
        None => "its process is known to be gone".to_owned(),
    };
    lines.add("lease", &format!("until {}, {holder}", instant::print(record.lease.until)));
    lines.add("may arrive", &format!("until {}", instant::print(record.lease.attempt_until)));
    if let Some(keyed) = record.keyed {
        let doubt = if keyed.doubt { ", an earlier run of it is in doubt" } else { "" };
        lines.add("generation", &format!("{}{doubt}", keyed.generation));
    }
    if let (Some(first), Some(until)) = (record.first_run(), record.sends_until()) {
        lines.add(
            "first run",
            &format!("{}, its child key is sent until {}", instant::print(first), instant::print(until)),
        );
    }
    lines.add("compared by", &record.fingerprint.rule().as_text());
    if let State::Done { receipt, author, expires_at, .. } = &record.state {
        let body = result::sized(&receipt.body);
        lines.add(
            "result",
            &format!("status {}, {body}, written by the {}", receipt.status, view::author_word(*author)),
        );
        lines.add("expires", &instant::print(*expires_at));
    }
}

/// The commands that settle it, ready to be completed.
fn next(digest: &str, record: &Record, now: Now, place: &Place) -> String {
    let in_doubt = match record.standing(now) {
        Standing::Unknown { .. } | Standing::Lapsed => true,
        Standing::Absent | Standing::Running { .. } | Standing::Done { .. } | Standing::Expired { .. } => false,
    };
    if !in_doubt {
        return String::new();
    }
    let mut command = "counterfoil receipts resolve".to_owned();
    if let Some(config) = &place.config {
        command.push_str(&format!(" --config {}", config.display()));
    }
    if let Some(store) = &place.store {
        command.push_str(&format!(" --store {store}"));
    }
    let stopped = if record.lease.holder.is_some() { " --owner-stopped" } else { "" };
    let version = view::version(record);
    let not_happened = if record.closed_at(now.at).is_some() { "--send-anew" } else { "--did-not-happen" };
    format!(
        "\nit happened:\n  {command} {digest} --version {version} --happened result.json --who NAME --why REASON\n\
         it did not happen and no longer can:\n  {command} {digest} --version {version} {not_happened}{stopped} --who NAME --why REASON\n"
    )
}
