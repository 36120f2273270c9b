//! `receipts list` and `receipts export`: pages of records, filtered by what they are as of now.

use comfy_table::Table;
use counterfoil_core::Now;
use counterfoil_server::Store;
use counterfoil_store::seam::{Listed, Query};
use serde_json::Value;

use super::view::{self, Shown};
use crate::args::{Export, List, StateName};
use crate::error::CliError;
use crate::{instant, print, settings};

/// Rows of one page.
const PAGE_ROWS: usize = 500;

/// Whether only records that are stored as unsettled can match.
fn only_unsettled(states: &[StateName]) -> bool {
    let unsettled = |state: &StateName| match state {
        StateName::Running | StateName::Lapsed | StateName::Unknown => true,
        StateName::Done | StateName::Expired | StateName::Absent | StateName::Unreadable => false,
    };
    !states.is_empty() && states.iter().all(unsettled)
}

fn matches(list: &List, listed: &Listed, now: Now) -> bool {
    let state = view::state(listed, now);
    let old_enough = |span| listed.record.as_ref().is_ok_and(|record| view::age(record, now) > span);
    (list.state.is_empty() || list.state.contains(&state)) && list.older_than.is_none_or(old_enough)
}

/// Goes through all records; `take` answers whether it wants more.
async fn walk(
    store: &Store,
    unsettled_only: bool,
    mut take: impl FnMut(&Listed, Now) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    let mut after = 0;
    loop {
        let page = store.records().list(Query { unsettled_only, after, limit: PAGE_ROWS }).await?;
        for listed in &page.rows {
            after = listed.position;
            if !take(listed, page.now)? {
                return Ok(());
            }
        }
        if !page.more {
            return Ok(());
        }
    }
}

/// `receipts list`.
pub(super) async fn list(list: &List) -> Result<(), CliError> {
    let store = settings::open(&list.place).await?;
    let shown = Shown { key: list.show_key, result: false };
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(head(list.show_key));
    let (mut count, mut more) = (0_usize, false);
    walk(&store, only_unsettled(&list.state), |listed, now| {
        if !matches(list, listed, now) {
            return Ok(true);
        }
        if count == list.limit {
            more = true;
            return Ok(false);
        }
        count += 1;
        if list.json {
            print::data(&Value::Object(view::json(listed, now, shown)).to_string())?;
        } else {
            table.add_row(row(listed, now, list.show_key));
        }
        Ok(true)
    })
    .await?;
    store.close().await;
    if list.json {
        return Ok(());
    }
    if count == 0 {
        print::human("no such record");
        return Ok(());
    }
    print::human(&table.trim_fmt());
    if more {
        print::human(&format!("there are more than {}: raise --limit, or narrow --state and --older-than", list.limit));
    }
    Ok(())
}

fn head(show_key: bool) -> Vec<&'static str> {
    let mut head = vec!["DIGEST", "STATE", "WHY", "SINCE", "AGE", "VERSION", "STATUS", "OPERATION"];
    if show_key {
        head.push("KEY");
    }
    head
}

fn row(listed: &Listed, now: Now, show_key: bool) -> Vec<String> {
    let state = view::word(view::state(listed, now)).to_owned();
    let mut row = vec![listed.identity.digest().to_string(), state];
    match &listed.record {
        Ok(record) => {
            let why = match record.standing(now) {
                counterfoil_core::record::Standing::Unknown { why, .. } => why.as_str(),
                _ => "-",
            };
            let status = match &record.state {
                counterfoil_core::State::Done { receipt, .. } => receipt.status.to_string(),
                _ => "-".to_owned(),
            };
            row.push(why.to_owned());
            row.push(instant::print(view::since(record, now)));
            row.push(instant::age(view::age(record, now)));
            row.push(view::version(record));
            row.push(status);
        }
        Err(error) => row.extend([error.to_string(), "-".into(), "-".into(), "-".into(), "-".into()]),
    }
    row.push(listed.identity.operation.as_str().to_owned());
    if show_key {
        row.push(listed.identity.key.as_str().to_owned());
    }
    row
}

/// `receipts export`: everything, results included.
pub(super) async fn export(export: &Export) -> Result<(), CliError> {
    let store = settings::open(&export.place).await?;
    let shown = Shown { key: export.show_key, result: true };
    let mut count = 0_usize;
    walk(&store, false, |listed, now| {
        count += 1;
        print::data(&Value::Object(view::json(listed, now, shown)).to_string())?;
        Ok(true)
    })
    .await?;
    store.close().await;
    print::human(&format!("{count} records were exported"));
    Ok(())
}
