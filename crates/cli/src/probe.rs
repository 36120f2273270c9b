//! `probe`: runs the cases, prints what was found, writes the reports. What is asked and judged is `counterfoil_probe`'s.

pub(crate) mod args;

use std::path::Path;

use comfy_table::Table;
use counterfoil_probe::{Catalogue, Plan, Probe, ProbeError, Run, Verdict, report};

use self::args::{Ask, Diff, Kind, Other, Page};
use crate::error::CliError;
use crate::print;

/// The most ids that are listed as left behind.
const IDS_MAX: usize = 10;

/// `probe`, `probe diff` and `probe page`.
pub(crate) async fn run(probe: args::Probe) -> Result<(), CliError> {
    match probe.other {
        Some(Other::Diff(between)) => diff(&between),
        Some(Other::Page(page)) => pages(&page),
        None => ask(&probe.ask).await,
    }
}

impl From<ProbeError> for CliError {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Usage(why) => Self::Usage(why),
            ProbeError::Unreachable(why) => Self::Probe { code: 3, why },
            other => Self::Probe { code: 5, why: other.to_string() },
        }
    }
}

async fn ask(ask: &Ask) -> Result<(), CliError> {
    let catalogue = Catalogue::built_in()?;
    if ask.list {
        return list(&catalogue, &ask.case);
    }
    let settings = ask.settings()?;
    let all = catalogue.cases.len();
    let probe = Probe::new(&settings, catalogue)?;
    let plan = probe.plan();
    print::human(&told(&plan));
    if ask.dry_run {
        return Ok(());
    }
    let mut done = 0;
    let result = probe.run(|result| {
        done += 1;
        print::progress(done, plan.cases.len(), &result.id);
    });
    let run = result.await;
    print::progress_ends();
    let run = run?;
    show(&run);
    if settings.case.is_empty() {
        let more = all.saturating_sub(plan.cases.len());
        print::human(&format!(
            "{more} more cases need a command, a caller or a place; --list marks them, --case asks them"
        ));
    }
    for report in &ask.report {
        let text = match report.kind {
            Kind::Html => report::page(std::slice::from_ref(&run)),
            Kind::Json => report::json(&run)?,
            Kind::Junit => report::junit(&run),
            Kind::Sheet => report::Sheet::of(&run).to_toml()?,
            Kind::Lines => report::lines(&run)?,
        };
        write(&report.path, &text)?;
    }
    match run.exit_code(ask.fail_on.fail_on()) {
        0 => Ok(()),
        code => Err(CliError::Probe { code, why: String::new() }),
    }
}

fn list(catalogue: &Catalogue, asked: &[String]) -> Result<(), CliError> {
    let all = asked.is_empty() || asked.iter().any(|part| part == "all");
    let wanted = |case: &&counterfoil_probe::Case| all || asked.iter().any(|part| case.is_named(part));
    let cases: Vec<_> = catalogue.cases.iter().filter(wanted).collect();
    if cases.is_empty() {
        return Err(CliError::Usage("no case is called so".to_owned()));
    }
    let line = |case: &&counterfoil_probe::Case| {
        let mark = if case.safe { " " } else { "+" };
        format!("{:4}{mark}{:26} {}\n", case.row, case.id, case.asks)
    };
    print::data(&cases.iter().map(line).collect::<String>())
}

/// What it would do, before it does it.
fn told(plan: &Plan) -> String {
    let seen = match plan.observer {
        0 => "not counted: give --id, --count-url or --count-command",
        1 => "counted by the ids in answers",
        2 => "counted by a request of its own",
        _ => "counted by a command",
    };
    format!(
        "{} cases against {}: {} effects where the promise is kept, at most {} where it is not, in at most {} requests; \
         effects are {seen}",
        plan.cases.len(),
        plan.target,
        plan.effects,
        plan.effects_worst,
        plan.requests
    )
}

fn show(run: &Run) {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["", "CASE", "KIND", "VERDICT", "FOUND", "SENT"]);
    for result in &run.results {
        let row = [&result.row, &result.id, &result.kind, result.verdict.name(), &result.why, &result.summary];
        table.add_row(row);
    }
    print::human(&table.to_string());
    for result in run.results.iter().filter(|result| matches!(result.verdict, Verdict::Deviates(_))) {
        print::human(&format!(
            "\n{} {}: {}\n  {}\n  expected: {}\n  found:    {} ({})\n  {}",
            result.row,
            result.id,
            result.verdict.name(),
            result.asks,
            result.expected,
            result.why,
            result.summary,
            result.clause
        ));
    }
    let deviates = run.count(|verdict| matches!(verdict, Verdict::Deviates(_)));
    let answers = run.count(Verdict::is_answer);
    print::human(&format!(
        "\n{} of {} cases answered under {}: {} conform, {deviates} deviate, {} tell a value",
        answers,
        run.results.len(),
        run.contract,
        run.count(|verdict| verdict == Verdict::Conforms),
        run.count(|verdict| matches!(verdict, Verdict::Yes | Verdict::No | Verdict::Value)),
    ));
    print::human(&left_behind(run));
}

fn left_behind(run: &Run) -> String {
    let shown = run.ids_left.iter().take(IDS_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = if run.ids_left.len() > IDS_MAX { ", …" } else { "" };
    match (run.effects_left, run.ids_left.is_empty()) {
        (None, true) => "what is left behind was not counted".to_owned(),
        (None, false) => format!("left behind, by id: {} ({shown}{more})", run.ids_left.len()),
        (Some(count), true) => format!("left behind: {count} effects"),
        (Some(count), false) => format!("left behind: {count} effects (ids {shown}{more})"),
    }
}

fn diff(between: &Diff) -> Result<(), CliError> {
    let sheet = |path: &Path| -> Result<report::Sheet, CliError> { Ok(report::Sheet::parse(&read(path)?)?) };
    let (before, after) = (sheet(&between.before)?, sheet(&between.after)?);
    let drift = before.drift(&after);
    let value = |value: &Option<counterfoil_probe::Value>| match value {
        Some(value) => value.to_string(),
        None => "not known".to_owned(),
    };
    for one in &drift {
        let mark = if one.is_change() { "changed" } else { "only one side" };
        print::data(&format!("{}: {} -> {} ({mark})", one.field, value(&one.before), value(&one.after)))?;
    }
    if drift.iter().any(report::Drift::is_change) {
        return Err(CliError::Probe { code: 1, why: "the promise changed".to_owned() });
    }
    Ok(())
}

fn pages(page: &Page) -> Result<(), CliError> {
    let runs: Result<Vec<Run>, CliError> = page.results.iter().map(|path| Ok(report::read(&read(path)?)?)).collect();
    write(&page.page, &report::page(&runs?))
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        return print::data(text);
    }
    std::fs::write(path, text).map_err(|error| CliError::Internal(format!("{}: {error}", path.display())))
}
