//! Owns the gate of a comparison: how much worse each figure may get before the comparison fails, and
//! which cells break that.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::pairs::GATE_FAILED;
use super::{CellName, Change, Comparison, Metric, Verdict};
use crate::results::marks::Mark;
use crate::units::parse_percent;

/// The smallest change for the worse that fails, by metric; a metric without one never does.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Limits(BTreeMap<Metric, f64>);

/// A cell that breaks a gate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Broken<'a> {
    /// Which.
    pub name: &'a CellName,
    /// How.
    pub breach: Breach<'a>,
}

/// How a cell breaks a gate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Breach<'a> {
    /// The head does not have it.
    Missing,
    /// The base has figures of it and the head has none.
    Failed,
    /// Its answers are not to be believed, as those of the base were: it gained this mark.
    Gained(&'a str),
    /// A figure is worse, by the limit or more.
    Worse(&'a Change, f64),
}

impl Limits {
    /// Reads limits as the command line takes them: `5%` for every metric, `rate=5%,cpu=3%` for those named.
    /// A limit with a name stands, wherever one without is given.
    ///
    /// # Errors
    /// A sentence fragment that says what a right value looks like.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, String> {
        let (mut named, mut every) = (BTreeMap::new(), None);
        for part in texts.iter().flat_map(|text| text.as_ref().split(',')) {
            match part.split_once('=') {
                Some((metric, share)) => {
                    let metric = metric.trim().parse::<Metric>()?;
                    if named.insert(metric, parse_percent(share)?).is_some() {
                        return Err(format!("two limits for {}; give one", metric.name()));
                    }
                }
                None if every.is_some() => return Err("two limits for every figure; give one".into()),
                None => every = Some(parse_percent(part)?),
            }
        }
        let limits = Metric::ALL.into_iter().filter_map(|metric| {
            let limit = named.get(&metric).copied().or(every)?;
            Some((metric, limit))
        });
        Ok(Self(limits.collect()))
    }

    /// The metrics with a limit, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.0.iter().map(|(metric, limit)| (*metric, *limit))
    }

    /// The cells that break them: those that are missing, those that failed, those whose requests failed or
    /// whose server failed its gate where the base's did not, then those that are worse, by the limit or more.
    pub fn broken<'a>(&self, comparison: &'a Comparison) -> Vec<Broken<'a>> {
        let missing = comparison.missing.iter().map(|name| Broken { name, breach: Breach::Missing });
        let failed = comparison.cells.iter().filter(|cell| cell.failed);
        let failed = failed.map(|cell| Broken { name: &cell.name, breach: Breach::Failed });
        let worse = comparison.cells.iter().flat_map(|cell| {
            let over = cell.changes.iter().filter_map(|change| Some((change, self.exceeded(change)?)));
            over.map(|(change, limit)| Broken { name: &cell.name, breach: Breach::Worse(change, limit) })
        });
        let gained = comparison.cells.iter().flat_map(|cell| {
            let marks = cell.marks_gained.iter().filter(|mark| FAULTS.contains(&mark.as_str()));
            let marks = marks.filter(|_| !cell.failed);
            marks.map(|mark| Broken { name: &cell.name, breach: Breach::Gained(mark) })
        });
        missing.chain(failed).chain(gained).chain(worse).collect()
    }

    /// The limit that a change breaks.
    fn exceeded(&self, change: &Change) -> Option<f64> {
        let limit = *self.0.get(&change.metric)?;
        let loss = if change.metric.more_is_better() { -change.change? } else { change.change? };
        (change.verdict == Verdict::Worse && loss >= limit).then_some(limit)
    }
}

/// Marks that a change for the worse may hide behind: there is no verdict on a marked figure.
const FAULTS: [&str; 2] = [Mark::Tainted.name(), GATE_FAILED];

/// By the name that the command line and JSON use.
impl FromStr for Metric {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|metric| metric.name()).collect();
            format!("no metric `{name}`; there are {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_for_every_metric_or_for_those_named() {
        let limits = |texts: &[&str]| {
            Limits::parse(texts).map(|limits| limits.iter().map(|(m, l)| (m.name(), l)).collect::<Vec<_>>())
        };
        let all = |share| ["rate", "p50", "p99", "cpu"].map(|name| (name, share)).to_vec();
        assert_eq!(limits(&["5%"]), Ok(all(0.05)));
        assert_eq!(limits(&["rate=5%,cpu=3%"]), Ok(vec![("rate", 0.05), ("cpu", 0.03)]));
        assert_eq!(limits(&["rate=5%", "cpu = 3 %"]), Ok(vec![("rate", 0.05), ("cpu", 0.03)]));
        for mixed in [&["5%", "p99=20%"][..], &["p99=20%,5%"]] {
            let mut expected = all(0.05);
            expected[2].1 = 0.2;
            assert_eq!(limits(mixed), Ok(expected));
        }
        for (text, part) in [
            ("5", "write it like `5%`"),
            ("p95=5%", "no metric `p95`; there are rate, p50, p99, cpu"),
            ("rate=", "no percentage"),
            ("rate=5%,rate=3%", "two limits for rate; give one"),
            ("5%,3%", "two limits for every figure"),
            ("", "no percentage"),
        ] {
            let error = limits(&[text]).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
