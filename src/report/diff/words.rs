//! Owns how a comparison is put into words and figures: `req/s fell by 5.1 % (4.4 to 5.9 %)`.

use super::Report;
use crate::compare::gate::{Breach, Broken, Limits};
use crate::compare::{CellName, Change, Control, Metric};
use crate::report::text::{self, MISSING};

/// A cell, with its section where there are several: `Rust h1 10x10 (Plaintext)`.
pub(super) fn cell(name: &CellName, with_section: bool) -> String {
    let section = if with_section { format!(" ({})", name.section) } else { String::new() };
    format!("{} {}{section}", name.label, name.cell)
}

/// A figure of a metric, or of its ratio to the control's.
pub(super) fn figure(metric: Metric, value: Option<f64>, ratio: bool) -> String {
    let Some(value) = value else { return MISSING.into() };
    match metric {
        _ if ratio => text::times(value),
        Metric::Rate => text::rate(value),
        Metric::P50 | Metric::P99 => text::millis(value),
        Metric::Cpu => text::micros(value),
    }
}

/// A metric's name in tables; a ratio has no unit.
pub(super) fn title(metric: Metric, ratio: bool) -> &'static str {
    if ratio { unitless(metric) } else { metric.title() }
}

/// A metric's name in sentences.
fn unitless(metric: Metric) -> &'static str {
    match metric {
        Metric::P50 => "p50",
        Metric::P99 => "p99",
        Metric::Rate | Metric::Cpu => metric.title(),
    }
}

/// What an unchanged control says of the rounds.
pub(super) fn control(control: &Control) -> String {
    let Control { name, moved, unjudged } = control;
    let list =
        |metrics: &[Metric]| metrics.iter().map(|metric| unitless(*metric)).collect::<Vec<_>>().join(", ");
    let mut said = Vec::new();
    if !moved.is_empty() {
        said.push(format!("it moved in {} all the same, so nothing is said of that", list(moved)));
    }
    if !unjudged.is_empty() {
        said.push(format!("nothing could be said of it in {}", list(unjudged)));
    }
    if said.is_empty() {
        said.push("no change was seen in it".into());
    }
    format!("Unchanged {name}: {}", said.join("; "))
}

/// A relative change with its sign: `-5.1 %`.
pub(super) fn signed(change: Option<f64>) -> String {
    match change {
        Some(change) if change.is_finite() => format!("{} %", signed_number(change)),
        _ => MISSING.into(),
    }
}

/// The interval of a change: `-5.9 to -4.4 %`, with its own confidence where that is less than `expected`.
pub(super) fn interval(change: &Change, expected: f64) -> String {
    let Some((low, high)) = change.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) else {
        return MISSING.into();
    };
    let less = match change.confidence {
        Some(confidence) if confidence < expected - 1e-9 => format!(" (at {:.0} %)", confidence * 100.0),
        _ => String::new(),
    };
    format!("{}{less}", range(low, high))
}

fn range(low: f64, high: f64) -> String {
    format!("{} to {} %", signed_number(low), signed_number(high))
}

/// In percent with one decimal, none from a thousand on; never `-0.0`.
fn signed_number(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0..0.05 => "0.0".into(),
        0.05..999.95 => format!("{percent:+.1}"),
        _ => format!("{percent:+.0}"),
    }
}

/// What a change is to a reader: `req/s fell by 5.1 % (4.4 to 5.9 %)`.
pub(super) fn change(change: &Change) -> String {
    let name = unitless(change.metric);
    let Some(by) = change.change.filter(|by| by.is_finite()) else { return format!("{name} is {MISSING}") };
    let verb = if by < 0.0 { "fell" } else { "rose" };
    let magnitude = |share: f64| signed_number(share.abs()).trim_start_matches('+').to_owned();
    let between = match change.interval {
        // Both ends say the same as the verb.
        Some((low, high)) if low * high > 0.0 && low * by > 0.0 => {
            let (near, far) = if by < 0.0 { (high, low) } else { (low, high) };
            format!(" ({} to {} %)", magnitude(near), magnitude(far))
        }
        Some((low, high)) if low.is_finite() && high.is_finite() => format!(" ({})", range(low, high)),
        _ => String::new(),
    };
    format!("{name} {verb} by {} %{between}", magnitude(by))
}

/// What breaks a limit: `Rust h1 10x1 (Plaintext): req/s fell by 7.0 % (6.1 to 7.7 %), over the limit of 5 %`.
pub(super) fn broken(broken: &Broken<'_>) -> String {
    let name = cell(broken.name, true);
    match broken.breach {
        Breach::Missing => format!("{name} is missing"),
        Breach::Failed => format!("{name} failed, where the base has figures"),
        Breach::Gained(mark) => format!("{name} is marked, as the base is not: {mark}"),
        Breach::Worse(worse, limit) => {
            format!("{name}: {}, where the limit is {}", change(worse), share(limit))
        }
    }
}

/// The limits in force: `req/s 5 %, CPU µs/req 3 %`.
pub(super) fn limits(limits: &Limits) -> String {
    let all: Vec<(Metric, f64)> = limits.iter().collect();
    match all[..] {
        [(_, first), ..] if all.len() == Metric::ALL.len() && all.iter().all(|(_, l)| *l == first) => {
            share(first)
        }
        _ => {
            let each = all.iter().map(|(metric, limit)| format!("{} {}", unitless(*metric), share(*limit)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A share as short as it can be said: `5 %`, `0.5 %`.
pub(super) fn share(share: f64) -> String {
    // Rounded first, because a hundred times 0.07 is not 7.
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// Counts of verdicts: `Of 44 figures: 2 worse, 1 better, 37 the same, 4 cannot tell`.
pub(super) fn counts<'a>(reports: impl Iterator<Item = &'a Report>) -> String {
    let (mut worse, mut better, mut same, mut unclear, mut any) = (0, 0, 0, 0, false);
    for report in reports {
        any = true;
        for total in &report.comparison.totals {
            worse += total.worse;
            better += total.better;
            same += total.same;
            unclear += total.cannot_tell;
        }
    }
    let all = worse + better + same + unclear;
    match all {
        0 if !any => return "Nothing can be compared".into(),
        0 => return "No figure is on both sides".into(),
        _ => {}
    }
    let parts = [(worse, "worse"), (better, "better"), (same, "the same"), (unclear, "cannot tell")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    format!("Of {all} figures: {}", parts.collect::<Vec<_>>().join(", "))
}

/// How large a change is, for putting the largest first.
pub(super) fn size(change: &Change) -> f64 {
    change.change.map_or(0.0, f64::abs)
}

/// A commit as people name it, with what the working tree added to it.
pub(super) fn commit(commit: Option<&str>) -> String {
    let Some(commit) = commit else { return MISSING.into() };
    match commit.split_once('-') {
        Some((hash, dirty)) => format!("{}-{dirty}", text::short_hash(hash)),
        None => text::short_hash(commit).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Verdict;

    fn changed(metric: Metric, by: Option<f64>, interval: Option<(f64, f64)>) -> Change {
        Change {
            metric,
            base: Some(1.0),
            head: Some(1.0),
            change: by,
            interval,
            confidence: Some(0.95),
            p: None,
            rounds: (5, 5),
            step: 0.0,
            judged: true,
            verdict: Verdict::Worse,
            reason: None,
        }
    }

    #[test]
    fn a_change_reads_as_a_sentence() {
        for (metric, by, interval, text) in [
            (Metric::Rate, Some(-0.051), Some((-0.059, -0.044)), "req/s fell by 5.1 % (4.4 to 5.9 %)"),
            (Metric::P99, Some(0.2), Some((0.1, 0.3)), "p99 rose by 20.0 % (10.0 to 30.0 %)"),
            (Metric::Cpu, Some(0.01), Some((-0.01, 0.03)), "CPU µs/req rose by 1.0 % (-1.0 to +3.0 %)"),
            (Metric::P50, Some(99.0), None, "p50 rose by 9900 %"),
            (Metric::Rate, Some(f64::NAN), None, "req/s is n/a"),
            (Metric::Rate, None, None, "req/s is n/a"),
        ] {
            assert_eq!(change(&changed(metric, by, interval)), text);
        }
    }

    #[test]
    fn figures_of_a_change_keep_their_sign() {
        for (share, text) in [
            (Some(-0.051), "-5.1 %"),
            (Some(0.0004), "0.0 %"),
            (Some(-0.0004), "0.0 %"),
            (Some(12.3456), "+1235 %"),
            (Some(f64::INFINITY), "n/a"),
            (None, "n/a"),
        ] {
            assert_eq!(signed(share), text);
        }
        for (between, confidence, text) in [
            (Some((-0.02, 0.001)), Some(0.95), "-2.0 to +0.1 %"),
            (Some((-0.02, 0.001)), Some(0.9), "-2.0 to +0.1 % (at 90 %)"),
            (Some((f64::NAN, 1.0)), Some(0.95), "n/a"),
            (None, None, "n/a"),
        ] {
            let change = Change { confidence, ..changed(Metric::Rate, Some(0.1), between) };
            assert_eq!(interval(&change, 0.95), text);
        }
        assert_eq!((share(0.07), share(0.005)), ("7 %".to_owned(), "0.5 %".to_owned()));
    }

    #[test]
    fn limits_are_said_once_when_they_are_one() {
        for (text, said) in [("5%", "5 %"), ("rate=5%,cpu=3%", "req/s 5 %, CPU µs/req 3 %")] {
            assert_eq!(limits(&Limits::parse(&[text]).unwrap()), said);
        }
    }
}
