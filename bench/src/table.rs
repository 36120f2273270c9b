//! Rows that are measured interleaved: in each repetition every row once, beginning with another row each time, after
//! the machine's own fsyncs. Prints Markdown, so that a run can be pasted into `docs/measurements.md` as it is.
//!
//! What a row does belongs to the files of the tables.

use std::time::Duration;

use crate::options::Options;
use crate::sample::{Sample, Spread};
use crate::{Fault, machine};

/// How long the machine's fsyncs are counted before each repetition.
const FSYNC_SPAN: Duration = Duration::from_millis(300);

/// Measures once.
pub(crate) type Run = Box<dyn Fn(&Options) -> Result<Sample, Fault>>;

/// One line of a table.
pub(crate) struct Row {
    name: String,
    callers: usize,
    against: Option<Against>,
    run: Run,
    samples: Vec<Sample>,
    /// Why it is not measured.
    absent: Option<String>,
}

/// What a row's rate is compared with, and what is wanted of the ratio.
struct Against {
    name: String,
    callers: usize,
    wanted: Option<Wanted>,
}

#[derive(Clone, Copy)]
struct Wanted {
    at_least: f64,
    /// Wished for, and nothing stands on it.
    goal: bool,
}

impl Row {
    /// A row under a name that is its own together with the number of callers.
    pub(crate) fn new(
        name: impl Into<String>,
        callers: usize,
        run: impl Fn(&Options) -> Result<Sample, Fault> + 'static,
    ) -> Self {
        Self { name: name.into(), callers, against: None, run: Box::new(run), samples: Vec::new(), absent: None }
    }

    /// Not measured, for this reason, which is printed in its place.
    pub(crate) fn absent(mut self, why: Option<String>) -> Self {
        self.absent = why;
        self
    }

    /// Compared with another row, for information.
    pub(crate) fn beside(mut self, name: &str, callers: usize) -> Self {
        self.against = Some(Against { name: name.to_owned(), callers, wanted: None });
        self
    }

    /// Wanted to be at least so many times another row.
    pub(crate) fn at_least(self, ratio: f64, name: &str, callers: usize) -> Self {
        self.wanted(Wanted { at_least: ratio, goal: false }, name, callers)
    }

    /// Wished to be at least so many times another row.
    pub(crate) fn goal(self, ratio: f64, name: &str, callers: usize) -> Self {
        self.wanted(Wanted { at_least: ratio, goal: true }, name, callers)
    }

    fn wanted(self, wanted: Wanted, name: &str, callers: usize) -> Self {
        let mut row = self.beside(name, callers);
        if let Some(against) = &mut row.against {
            against.wanted = Some(wanted);
        }
        row
    }

    fn is(&self, name: &str, callers: usize) -> bool {
        self.name == name && self.callers == callers
    }

    fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().map(figure))
    }
}

/// Something else that is wanted of two rows of a table, or of one.
pub(crate) enum Check {
    /// Processor time per answer, at most so many times the other row's.
    Cpu { of: (&'static str, usize), at_most: f64, against: (&'static str, usize) },
    /// Answers per second, at least so many times the other row's.
    Rate { of: (&'static str, usize), at_least: f64, against: (&'static str, usize) },
    /// The 99th percentile, at most so many times the other row's.
    P99 { of: (&'static str, usize), at_most: f64, against: (&'static str, usize) },
    /// The longest call, at most so many milliseconds longer than the other row's.
    Longest { of: (&'static str, usize), millis: f64, against: (&'static str, usize) },
    /// No call was answered with busy or failed.
    NoErrors { of: (&'static str, usize) },
}

/// Rows with what they are about.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) checks: Vec<Check>,
}

impl Table {
    /// Measures and prints all rows that `options` ask for.
    pub(crate) fn run(mut self, options: &Options) -> Result<(), Fault> {
        self.choose(options.only.as_deref());
        if self.rows.is_empty() {
            return Ok(());
        }
        let before = machine::load();
        let mut fsyncs = Vec::new();
        for repetition in 0..options.repetitions {
            fsyncs.push(machine::fsyncs_per_second(&options.dir, FSYNC_SPAN)?);
            let count = self.rows.len();
            // A step that is odd to most counts, so that no row has always the same row before it.
            for turn in 0..count {
                let row = &mut self.rows[(turn + repetition * 3) % count];
                if row.absent.is_some() {
                    continue;
                }
                eprint!(
                    "\r\x1b[K{}: {}/{}: {} {}",
                    self.title,
                    repetition + 1,
                    options.repetitions,
                    row.name,
                    row.callers
                );
                let sample = (row.run)(options).map_err(|fault| format!("{} {}: {fault}", row.name, row.callers))?;
                row.samples.push(sample);
            }
        }
        eprint!("\r\x1b[K");
        println!("## {}\n\n{}\n", self.title, self.about);
        self.print_rows();
        self.print_checks();
        if let Some(fsyncs) = Spread::of(fsyncs) {
            println!(
                "\nMachine: {} fsyncs/s of one stream; load average {before} before, {} after; {} repetitions of {} s.\n",
                fsyncs.show(0),
                machine::load(),
                options.repetitions,
                options.span.as_secs_f64()
            );
        }
        Ok(())
    }

    /// Keeps the rows whose name contains `only`, and those that they are compared with.
    fn choose(&mut self, only: Option<&str>) {
        let Some(only) = only else { return };
        let chosen = |row: &Row| row.name.contains(only);
        let compared: Vec<(String, usize)> = self
            .rows
            .iter()
            .filter(|row| chosen(row))
            .filter_map(|row| row.against.as_ref().map(|against| (against.name.clone(), against.callers)))
            .collect();
        self.rows.retain(|row| chosen(row) || compared.iter().any(|(name, callers)| row.is(name, *callers)));
    }

    fn find(&self, (name, callers): (&str, usize)) -> Option<&Row> {
        self.rows.iter().find(|row| row.is(name, callers))
    }

    fn print_rows(&self) {
        println!(
            "| what | callers | per second | ratio | to | wanted | | CPU µs each | p50 ms | p99 ms | longest ms | commits/s | busy | failed |"
        );
        println!("|---|--:|--:|--:|---|--:|---|--:|--:|--:|--:|--:|--:|--:|");
        for row in &self.rows {
            if let Some(why) = &row.absent {
                println!("| {} | {} | not measured: {why} | | | | | | | | | | | |", row.name, row.callers);
                continue;
            }
            let show = |figure: &dyn Fn(&Sample) -> f64, digits: usize| {
                row.spread(figure).map_or_else(String::new, |spread| spread.show(digits))
            };
            let median = |figure: &dyn Fn(&Sample) -> f64, digits: usize| {
                row.spread(figure).map_or_else(String::new, |spread| format!("{:.digits$}", spread.median))
            };
            let commits = Spread::of(row.samples.iter().filter_map(|sample| sample.commits_per_second));
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.name,
                row.callers,
                show(&|sample| sample.per_second, 0),
                self.ratio(row),
                show(&|sample| sample.cpu_micros, 0),
                median(&|sample| sample.p50_millis, 2),
                median(&|sample| sample.p99_millis, 1),
                median(&|sample| sample.longest_millis, 1),
                commits.map_or_else(String::new, |spread| format!("{:.0}", spread.median)),
                row.samples.iter().map(|sample| sample.busy).sum::<u64>(),
                row.samples.iter().map(|sample| sample.failed).sum::<u64>(),
            );
        }
    }

    /// Ratio, to what, wanted, and whether it was met: four columns.
    fn ratio(&self, row: &Row) -> String {
        let Some(against) = &row.against else { return " | | |".into() };
        let Some(other) = self.find((&against.name, against.callers)) else { return " | | |".into() };
        let Some(ratio) = paired(row, other, |sample| sample.per_second) else { return " | | |".into() };
        let place = format!("{} {}", against.name, against.callers);
        match against.wanted {
            None => format!("{} | {place} | | ", ratio.show(2)),
            Some(Wanted { at_least, goal }) => {
                let word = if goal { "goal" } else { "≥" };
                format!("{} | {place} | {word} {at_least} | {}", ratio.show(2), verdict(ratio.median >= at_least))
            }
        }
    }

    fn print_checks(&self) {
        for check in &self.checks {
            if let Some(line) = self.check(check) {
                println!("{line}");
            }
        }
    }

    fn check(&self, check: &Check) -> Option<String> {
        let named = |(name, callers): (&str, usize)| format!("{name} {callers}");
        let ratio = |what: &str, of, at_most: f64, against, figure: &dyn Fn(&Sample) -> f64| {
            let ratio = paired(self.find(of)?, self.find(against)?, figure)?;
            Some(format!(
                "\n- {what}, {} to {}: {}, wanted ≤ {at_most}: {}",
                named(of),
                named(against),
                ratio.show(2),
                verdict(ratio.median <= at_most)
            ))
        };
        match check {
            Check::Cpu { of, at_most, against } => ratio("CPU each", *of, *at_most, *against, &|s| s.cpu_micros),
            Check::Rate { of, at_least, against } => {
                let ratio = paired(self.find(*of)?, self.find(*against)?, |sample| sample.per_second)?;
                Some(format!(
                    "\n- rate, {} to {}: {}, wanted ≥ {at_least}: {}",
                    named(*of),
                    named(*against),
                    ratio.show(2),
                    verdict(ratio.median >= *at_least)
                ))
            }
            Check::P99 { of, at_most, against } => ratio("p99", *of, *at_most, *against, &|s| s.p99_millis),
            Check::Longest { of, millis, against } => {
                let (row, other) = (self.find(*of)?, self.find(*against)?);
                let longer = row.samples.iter().zip(&other.samples).map(|(a, b)| a.longest_millis - b.longest_millis);
                let longer = Spread::of(longer)?;
                Some(format!(
                    "\n- longest call, {} minus {}: {} ms, wanted ≤ {millis} ms: {}",
                    named(*of),
                    named(*against),
                    longer.show(1),
                    verdict(longer.median <= *millis)
                ))
            }
            Check::NoErrors { of } => {
                let row = self.find(*of)?;
                let busy: u64 = row.samples.iter().map(|sample| sample.busy).sum();
                let failed: u64 = row.samples.iter().map(|sample| sample.failed).sum();
                Some(format!(
                    "\n- errors surfaced, {}: {busy} busy, {failed} failed, wanted none: {}",
                    named(*of),
                    verdict(busy + failed == 0)
                ))
            }
        }
    }
}

/// The ratio of a figure, taken in each repetition: what disturbs both disturbs it least.
fn paired(row: &Row, other: &Row, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
    Spread::of(row.samples.iter().zip(&other.samples).map(|(mine, theirs)| figure(mine) / figure(theirs)))
}

const fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}
