//! Owns what an unchanged control says of a comparison made in the same rounds: where the control itself
//! moved, the machine did, and nothing can be said of the figures beside it.

use serde::Serialize;

use super::{Change, Comparison, Metric, Verdict, judge};

/// A server that was the same all the time, measured twice in each round beside what is compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Control {
    /// What it is, for people.
    pub name: String,
    /// The figures in which it seems to have changed: there the machine did, and no verdict stands.
    pub moved: Vec<Metric>,
    /// The figures in which nothing could be said of it either.
    pub unjudged: Vec<Metric>,
}

/// Takes back the verdicts on every figure in which `control`, a comparison of two measurements of one
/// server, has a change, and keeps what was found under `name`. That nothing moved says the rounds can be
/// trusted, not that they are enough.
pub fn withhold(comparison: &mut Comparison, name: &str, control: &Comparison) {
    let changes = || control.cells.iter().flat_map(|cell| &cell.changes);
    let called = |metric: &Metric| {
        changes().any(|c| c.metric == *metric && matches!(c.verdict, Verdict::Better | Verdict::Worse))
    };
    let moved: Vec<Metric> = Metric::ALL.into_iter().filter(called).collect();
    for change in comparison.cells.iter_mut().flat_map(|cell| &mut cell.changes) {
        if moved.contains(&change.metric) && (change.judged || change.verdict != Verdict::CannotTell) {
            change.verdict = Verdict::CannotTell;
            change.judged = false;
            change.reason = Some(format!("the unchanged control moved in {}", change.metric.title()));
        }
    }
    let of = |metric: &Metric| changes().filter(|c| c.metric == *metric).collect::<Vec<_>>();
    let said = |change: &&Change| change.judged || change.verdict != Verdict::CannotTell;
    let unjudged = Metric::ALL.into_iter().filter(|m| !of(m).is_empty() && !of(m).iter().any(said)).collect();
    comparison.totals = judge::totals(&comparison.cells);
    comparison.control = Some(Control { name: name.to_owned(), moved, unjudged });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{CellChange, CellName, Side};
    use crate::results::{CellKey, Protocol, Resumption};

    fn comparison(verdicts: &[(Metric, Verdict)]) -> Comparison {
        let change = |(metric, verdict): &(Metric, Verdict)| Change {
            metric: *metric,
            base: Some(100.0),
            head: Some(90.0),
            change: Some(-0.1),
            interval: Some((-0.12, -0.08)),
            confidence: Some(0.95),
            p: Some(0.01),
            rounds: (10, 10),
            step: 0.0,
            verdict: *verdict,
            judged: *verdict != Verdict::CannotTell,
            reason: (*verdict == Verdict::CannotTell).then(|| "too few rounds".into()),
        };
        let key = CellKey {
            protocol: Protocol::H1,
            connections: 1,
            concurrency: 1,
            resumption: Resumption::Off,
            requests_per_connection: None,
            generator: None,
        };
        let name = CellName {
            section: "S".into(),
            server: "s".into(),
            label: "S".into(),
            cell: key.to_string(),
            key,
        };
        let side = || Side { name: "s".into(), commit: None, started_at: None };
        let cells = vec![CellChange {
            name,
            changes: verdicts.iter().map(change).collect(),
            marks_gained: vec![],
            marks_lost: vec![],
            marked: false,
            failed: false,
        }];
        Comparison {
            title: "T".into(),
            base: side(),
            head: side(),
            relative_to: None,
            control: None,
            margin: 0.02,
            level: 0.05,
            differing: vec![],
            tolerated: vec![],
            totals: judge::totals(&cells),
            cells,
            missing: vec![],
            new: vec![],
        }
    }

    #[test]
    fn what_the_control_moved_in_has_no_verdict() {
        use Metric::{Cpu, P50, P99, Rate};
        use Verdict::{Better, CannotTell, Same, Worse};
        let before = [(Rate, Worse), (P50, Same), (P99, CannotTell), (Cpu, Better)];
        for (control, moved, after) in [
            ([Same, Same, CannotTell, Same], vec![], [Worse, Same, CannotTell, Better]),
            ([Better, Same, CannotTell, Same], vec![Rate], [CannotTell, Same, CannotTell, Better]),
            ([Same, Worse, Worse, Better], vec![P50, P99, Cpu], [Worse, CannotTell, CannotTell, CannotTell]),
        ] {
            let unjudged = if control[2] == CannotTell { vec![P99] } else { vec![] };
            let mut compared = comparison(&before);
            let control: Vec<_> = Metric::ALL.into_iter().zip(control).collect();
            withhold(&mut compared, "the control", &comparison(&control));
            assert_eq!(compared.control, Some(Control { name: "the control".into(), moved, unjudged }));
            let changes = &compared.cells[0].changes;
            assert_eq!(changes.iter().map(|change| change.verdict).collect::<Vec<_>>(), after);
            let known = |c: &Change| c.reason.is_some() == (c.verdict == CannotTell);
            assert!(changes.iter().all(known), "each has its reason, and its own first: {changes:?}");
            assert_eq!(changes[2].reason.as_deref(), Some("too few rounds"));
            let cannot = |total: &crate::compare::Total| total.cannot_tell;
            let counted: usize = compared.totals.iter().map(cannot).sum();
            assert_eq!(counted, after.iter().filter(|verdict| **verdict == CannotTell).count());
        }
    }
}
