//! Figures of one measurement, and the middle of several. What is measured belongs elsewhere.

use crate::load::Load;

/// What one repetition of one row gave.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) cpu_micros: f64,
    pub(crate) p50_millis: f64,
    pub(crate) p99_millis: f64,
    pub(crate) longest_millis: f64,
    pub(crate) commits_per_second: Option<f64>,
    pub(crate) busy: u64,
    pub(crate) failed: u64,
}

impl From<Load> for Sample {
    fn from(mut load: Load) -> Self {
        load.tally.micros.sort_unstable();
        let micros = &load.tally.micros;
        let answers = micros.len() as f64;
        let seconds = load.span.as_secs_f64();
        let at = |share: f64| {
            let index = (share * answers) as usize;
            micros.get(index.min(micros.len().saturating_sub(1))).map_or(f64::NAN, |micros| f64::from(*micros) / 1e3)
        };
        Self {
            per_second: answers / seconds,
            cpu_micros: load.cpu.as_secs_f64() * 1e6 / answers,
            p50_millis: at(0.5),
            p99_millis: at(0.99),
            longest_millis: at(1.0),
            commits_per_second: load.commits.map(|commits| commits as f64 / seconds),
            busy: load.tally.busy,
            failed: load.tally.failed,
        }
    }
}

/// The median with the least and the most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of values in any order; `None` of no value. Of an even number, the mean of the two in the middle.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let upper = values.len() / 2;
        let lower = (values.len() - 1) / 2;
        Some(Self { median: f64::midpoint(values[lower], values[upper]), least, most })
    }

    /// With so many digits after the point: `12.3 [9.8..14.0]`.
    pub(crate) fn show(self, digits: usize) -> String {
        let Self { median, least, most } = self;
        format!("{median:.digits$} [{least:.digits$}..{most:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Tally;
    use std::time::Duration;

    #[test]
    fn the_middle_is_the_middle() {
        let check = |values: &[f64], median: f64, least: f64, most: f64| {
            assert_eq!(Spread::of(values.iter().copied()), Some(Spread { median, least, most }), "{values:?}");
        };
        check(&[3.0], 3.0, 3.0, 3.0);
        check(&[5.0, 1.0, 3.0], 3.0, 1.0, 5.0);
        check(&[4.0, 1.0, 2.0, 9.0], 3.0, 1.0, 9.0);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_load_becomes_rates() {
        let tally = Tally { micros: (1..=100).map(|micros| micros * 1000).collect(), ..Tally::default() };
        let load = Load { tally, span: Duration::from_secs(2), cpu: Duration::from_millis(5), commits: Some(10) };
        let sample = Sample::from(load);
        assert_eq!(sample.per_second, 50.0);
        assert_eq!(sample.cpu_micros, 50.0);
        assert_eq!(sample.p99_millis, 100.0);
        assert_eq!(sample.longest_millis, 100.0);
        assert_eq!(sample.commits_per_second, Some(5.0));
    }
}
