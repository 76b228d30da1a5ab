//! Owns the verdict on each change: which figures may be tested at all, the correction for there being
//! many, and what a change within the margin is called.

use super::pairs::{Pair, SideOfCell};
use super::rank::{self, Shift};
use super::{CellChange, Change, Metric, Options, Total, Verdict};
use crate::results::stats::{RoundFigures, median};

/// How the rounds of both sides belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Design {
    /// Each side has rounds of its own.
    TwoRuns,
    /// Both were measured in turns, so that a round of one goes with the same round of the other.
    Turns,
}

/// Compares every pair. Without `verdicts` figures and intervals alone are given.
pub(super) fn cells(pairs: &[Pair], design: Design, options: &Options, verdicts: bool) -> Vec<CellChange> {
    let mut cells: Vec<CellChange> = pairs.iter().map(|pair| changes(pair, design, options)).collect();
    let tested = || cells.iter().flat_map(|cell| &cell.changes).filter(|change| change.reason.is_none());
    let probabilities: Vec<f64> = tested().filter_map(|change| change.p).collect();
    let threshold = benjamini_hochberg(&probabilities, options.level);
    for change in cells.iter_mut().flat_map(|cell| &mut cell.changes) {
        if !verdicts {
            change.verdict = Verdict::CannotTell;
            change.reason = Some("environment or settings differ".into());
        } else if change.reason.is_none() {
            decide(change, threshold, probabilities.len(), design, options);
        }
    }
    cells
}

/// Verdicts and geometric means by metric.
pub(super) fn totals(cells: &[CellChange]) -> Vec<Total> {
    let total = |metric| {
        let changes = || cells.iter().flat_map(|cell| &cell.changes).filter(|c| c.metric == metric);
        let count = |verdict| changes().filter(|change| change.verdict == verdict).count();
        let clean = cells.iter().filter(|cell| !cell.marked).flat_map(|cell| &cell.changes);
        let logs: Vec<f64> = clean
            .filter(|change| change.metric == metric)
            .filter_map(|change| Some((change.head? / change.base?).ln()))
            .collect();
        Total {
            metric,
            better: count(Verdict::Better),
            worse: count(Verdict::Worse),
            same: count(Verdict::Same),
            cannot_tell: count(Verdict::CannotTell),
            geometric_mean: (!logs.is_empty())
                .then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp_m1()),
            cells: logs.len(),
        }
    };
    Metric::ALL.into_iter().map(total).collect()
}

/// The figures of a pair with their intervals; a reason stands where no verdict is possible.
fn changes(pair: &Pair, design: Design, options: &Options) -> CellChange {
    let (base, head) = (&pair.base, &pair.head);
    let only = |a: &[String], b: &[String]| a.iter().filter(|mark| !b.contains(mark)).cloned().collect();
    let marked = !base.marks.is_empty() || !head.marks.is_empty();
    let of = |metric| change(metric, pair, design, options);
    CellChange {
        name: pair.name.clone(),
        changes: Metric::ALL.into_iter().filter_map(of).collect(),
        marks_gained: only(&head.marks, &base.marks),
        marks_lost: only(&base.marks, &head.marks),
        marked,
        failed: head.rounds.is_empty() && !base.rounds.is_empty(),
    }
}

/// One figure; `None` when neither side has it.
fn change(metric: Metric, pair: &Pair, design: Design, options: &Options) -> Option<Change> {
    let values = |side: &SideOfCell| side.rounds.iter().filter_map(|r| metric.of(r)).collect::<Vec<_>>();
    let (base, head) = (values(&pair.base), values(&pair.head));
    let (old, new) = (median(&base), median(&head));
    if old.is_none() && new.is_none() {
        return None;
    }
    let mut change = Change {
        metric,
        base: old,
        head: new,
        change: old.zip(new).map(|(old, new)| new / old - 1.0),
        interval: None,
        confidence: None,
        p: None,
        rounds: (base.len(), head.len()),
        verdict: Verdict::CannotTell,
        reason: untestable(metric, pair, &base, &head),
    };
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let shift = match design {
        _ if base.len() < 2 || head.len() < 2 => None,
        // Two measurements never agree to the last bit: these are the same one.
        _ if base == head => Some(Shift { p: 1.0, interval: (0.0, 0.0), confidence: 1.0 }),
        Design::TwoRuns => Some(rank::sum_test(&logs(&base), &logs(&head), options.level)),
        Design::Turns => {
            let differences = in_pairs(metric, &pair.base.rounds, &pair.head.rounds);
            change.rounds = (differences.len(), differences.len());
            (differences.len() >= 2).then(|| rank::signed_test(&differences, options.level))
        }
    };
    if let (Some(Shift { p, interval: (low, high), confidence }), Some(shown)) = (shift, change.change) {
        // The medians of both sides need not lie as far apart as the rounds do; what is shown as the
        // change is never shown outside of its interval.
        change.interval = Some((low.exp_m1().min(shown), high.exp_m1().max(shown)));
        (change.p, change.confidence) = (Some(p), Some(confidence));
    }
    Some(change)
}

/// Logarithms of the ratios of both sides, round by round.
fn in_pairs(metric: Metric, base: &[RoundFigures], head: &[RoundFigures]) -> Vec<f64> {
    let of = |round: &RoundFigures| {
        let other = head.iter().find(|other| other.round == round.round)?;
        Some((metric.of(other)? / metric.of(round)?).ln())
    };
    base.iter().filter_map(of).collect()
}

/// Why there can be no verdict, whatever the figures.
fn untestable(metric: Metric, pair: &Pair, base: &[f64], head: &[f64]) -> Option<String> {
    let marks = |side: &str, marks: &[String]| {
        (!marks.is_empty()).then(|| format!("{side} is marked: {}", marks.join(", ")))
    };
    if base.is_empty() || head.is_empty() {
        let side = if base.is_empty() { "base" } else { "head" };
        return Some(format!("the {side} has no figure"));
    }
    if let Some(reason) = marks("the base", &pair.base.marks).or_else(|| marks("the head", &pair.head.marks))
    {
        return Some(reason);
    }
    if base.len() < 2 || head.len() < 2 {
        return Some("one round says nothing about noise".into());
    }
    if metric != Metric::Cpu {
        return None;
    }
    if pair.base.workers != pair.head.workers {
        return Some(format!(
            "CPU per request grows with the number of workers: {} against {}",
            pair.base.workers, pair.head.workers
        ));
    }
    pair.base.no_cpu.clone().or_else(|| pair.head.no_cpu.clone())
}

/// The verdict on a figure that was tested among `tested`.
fn decide(change: &mut Change, threshold: f64, tested: usize, design: Design, options: &Options) {
    let (Some(p), Some((low, high)), Some(by)) = (change.p, change.interval, change.change) else {
        change.reason = Some("fewer than two rounds of both sides go together".into());
        return;
    };
    let within = low >= -options.margin && high <= options.margin;
    // Two one-sided tests at the level are an interval of twice the level (Schuirmann 1987).
    let sure = change.confidence.is_some_and(|confidence| confidence >= 1.0 - 2.0 * options.level - 1e-9);
    if within && sure {
        change.verdict = Verdict::Same;
    } else if p <= threshold && by != 0.0 {
        let better = (by > 0.0) == change.metric.more_is_better();
        change.verdict = if better { Verdict::Better } else { Verdict::Worse };
    } else {
        change.reason = Some(undecided(change, tested, design, options));
    }
}

/// Why a figure that was tested has no verdict.
fn undecided(change: &Change, tested: usize, design: Design, options: &Options) -> String {
    let needed = options.level / tested.max(1) as f64;
    let (rounds, least): (usize, fn(usize) -> f64) = match design {
        Design::TwoRuns => (change.rounds.0.min(change.rounds.1), rank::least_sum_p),
        Design::Turns => (change.rounds.0, rank::least_signed_p),
    };
    let extreme = change.p.is_some_and(|p| p <= least(rounds) * (1.0 + 1e-9));
    if least(rounds) > options.level || (least(rounds) > needed && extreme) {
        let enough = (rounds..=MOST_ROUNDS).find(|rounds| least(*rounds) <= needed).unwrap_or(MOST_ROUNDS);
        return format!(
            "{rounds} rounds a side cannot show a change among {tested} figures; {enough} can, also with \
             shorter windows"
        );
    }
    "the rounds differ as much among themselves".into()
}

/// The largest probability that still counts as a change when these were found together, so that of all
/// changes called at most the share `level` is false (Benjamini and Hochberg, J. R. Statist. Soc. B 57, 1995).
/// When nothing changed that is the probability of calling any.
fn benjamini_hochberg(probabilities: &[f64], level: f64) -> f64 {
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = sorted.len() as f64;
    // A hair of room: probabilities are sums of floats.
    let counts = |(place, p): &(usize, &f64)| **p <= level * (place + 1) as f64 / all * (1.0 + 1e-9);
    sorted.iter().enumerate().rev().find(counts).map_or(-1.0, |(_, p)| *p)
}

/// Rounds a scenario can have.
const MOST_ROUNDS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::super::CellName;
    use super::*;
    use crate::results::{CellKey, Protocol, Resumption};

    /// A generator of numbers that depend on the seed alone (SplitMix64).
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Noise around zero: bell-shaped, and in one round of ten a neighbour takes up to a fifth away.
        fn noise(&mut self, deviation: f64) -> f64 {
            let bell = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
            let neighbour = if self.unit() < 0.1 { -0.2 * self.unit() } else { 0.0 };
            bell * deviation + neighbour
        }
    }

    fn rounds(rates: &[f64]) -> Vec<RoundFigures> {
        let of = |(round, rate): (u32, &f64)| RoundFigures {
            round,
            requests_per_second: Some(*rate),
            p50_us: None,
            p99_us: None,
            server_cpu_us_per_request: None,
        };
        (1..).zip(rates).map(of).collect()
    }

    fn side(rates: &[f64]) -> SideOfCell {
        SideOfCell { rounds: rounds(rates), marks: vec![], no_cpu: None, workers: 1 }
    }

    fn pair(base: &[f64], head: &[f64]) -> Pair {
        let key = CellKey {
            protocol: Protocol::H1,
            connections: 1,
            concurrency: 1,
            resumption: Resumption::Off,
            requests_per_connection: None,
            generator: None,
        };
        let name = CellName {
            section: "s".into(),
            server: "a".into(),
            label: "A".into(),
            cell: key.to_string(),
            key,
        };
        Pair { name, base: side(base), head: side(head) }
    }

    fn only(pair: Pair, design: Design) -> Change {
        let mut cells = cells(&[pair], design, &Options::default(), true);
        cells.remove(0).changes.remove(0)
    }

    /// Cells of a run of `count` cells of which the first `changed` became slower by `by`.
    fn simulated(random: &mut Random, design: Design, count: usize, changed: usize, by: f64) -> Vec<Pair> {
        let pair_of = |cell: usize| {
            let (mut base, mut head) = (vec![], vec![]);
            for _ in 0..10 {
                // A drift of the machine, which what is measured in turns shares.
                let drift = random.noise(0.02);
                let own = |random: &mut Random| match design {
                    Design::Turns => drift + random.noise(0.01),
                    Design::TwoRuns => random.noise(0.015),
                };
                base.push(10_000.0 * own(random).exp());
                let slower = if cell < changed { 1.0 - by } else { 1.0 };
                head.push(10_000.0 * slower * own(random).exp());
            }
            pair(&base, &head)
        };
        (0..count).map(pair_of).collect()
    }

    #[test]
    fn when_nothing_changed_hardly_anything_is_called_a_change() {
        for design in [Design::TwoRuns, Design::Turns] {
            let mut random = Random(7);
            let mut called = 0;
            for _ in 0..200 {
                let pairs = simulated(&mut random, design, 20, 0, 0.0);
                let cells = cells(&pairs, design, &Options::default(), true);
                let changed = |v| matches!(v, Verdict::Better | Verdict::Worse);
                called += usize::from(cells.iter().any(|cell| changed(cell.changes[0].verdict)));
            }
            // One in twenty is allowed: ten, and twice their deviation of three.
            assert!(called <= 16, "{design:?}: {called} of 200 comparisons called a change");
        }
    }

    #[test]
    fn one_slower_cell_is_found_among_those_that_did_not_change() {
        for design in [Design::TwoRuns, Design::Turns] {
            let mut random = Random(11);
            let (mut found, mut wrong) = (0, 0);
            for _ in 0..100 {
                let pairs = simulated(&mut random, design, 10, 1, 0.08);
                let cells = cells(&pairs, design, &Options::default(), true);
                found += usize::from(cells[0].changes[0].verdict == Verdict::Worse);
                wrong += cells.iter().filter(|c| c.changes[0].verdict == Verdict::Better).count();
            }
            assert!(found >= 80 && wrong <= 20, "{design:?}: found {found} of 100, {wrong} the wrong way");
        }
    }

    #[test]
    fn verdicts_by_example() {
        let steady = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
        let times = |factor: f64| steady.map(|rate| rate * factor);
        for (head, design, verdict, reason) in [
            (times(1.0), Design::TwoRuns, Verdict::Same, None),
            (times(0.9), Design::TwoRuns, Verdict::Worse, None),
            (times(1.1), Design::TwoRuns, Verdict::Better, None),
            (times(0.9), Design::Turns, Verdict::Worse, None),
            // Certain, and too small to matter.
            (times(1.005), Design::Turns, Verdict::Same, None),
            (
                [60.0, 140.0, 95.0, 105.0, 80.0, 120.0],
                Design::TwoRuns,
                Verdict::CannotTell,
                Some("the rounds differ as much among themselves"),
            ),
        ] {
            let change = only(pair(&steady, &head), design);
            assert_eq!((change.verdict, change.reason.as_deref()), (verdict, reason), "{head:?}");
            let (low, high) = change.interval.unwrap();
            assert!((low..=high).contains(&change.change.unwrap()), "{change:?}");
        }
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let cases: [(&[f64], &[f64], &str); 4] = [
            (&[100.0], &[50.0], "one round says nothing about noise"),
            (&[100.0, 101.0, 99.0], &[], "the head has no figure"),
            (&[], &[100.0, 101.0], "the base has no figure"),
            (
                &[100.0, 101.0, 99.0],
                &[50.0, 51.0, 49.0],
                "3 rounds a side cannot show a change among 1 figures; 4 can, also with shorter windows",
            ),
        ];
        for (base, head, reason) in cases {
            let change = only(pair(base, head), Design::TwoRuns);
            assert_eq!((change.verdict, change.reason.as_deref()), (Verdict::CannotTell, Some(reason)));
        }
        let mut marked = pair(&[100.0, 101.0, 99.0, 100.0], &[50.0, 51.0, 49.0, 50.0]);
        marked.head.marks = vec!["starved".into()];
        let cells = cells(&[marked], Design::TwoRuns, &Options::default(), true);
        assert_eq!(cells[0].changes[0].reason.as_deref(), Some("the head is marked: starved"));
        assert_eq!((&cells[0].marks_gained[..], cells[0].marked), (&["starved".to_owned()][..], true));
        assert_eq!(totals(&cells)[0].cells, 0, "a marked cell is in no mean");
    }

    #[test]
    fn cpu_per_request_is_not_compared_across_unequal_workers_or_unpinned_runs() {
        let cpu = |values: &[f64]| {
            let mut side = side(values);
            for round in &mut side.rounds {
                round.server_cpu_us_per_request = round.requests_per_second.take();
            }
            side
        };
        let low = [10.0, 10.1, 9.9, 10.0, 10.2, 9.8];
        let high = low.map(|cpu| cpu * 1.3);
        let mut unequal = pair(&[], &[]);
        (unequal.base, unequal.head) = (cpu(&low), cpu(&high));
        unequal.head.workers = 4;
        let reason = only(unequal, Design::TwoRuns).reason.unwrap();
        assert!(reason.contains("number of workers: 1 against 4"), "{reason}");
        let mut unpinned = pair(&[], &[]);
        (unpinned.base, unpinned.head) = (cpu(&low), cpu(&high));
        unpinned.base.no_cpu = Some("the servers were not pinned".into());
        assert_eq!(only(unpinned, Design::TwoRuns).reason.as_deref(), Some("the servers were not pinned"));
        let mut equal = pair(&[], &[]);
        (equal.base, equal.head) = (cpu(&low), cpu(&high));
        assert_eq!(only(equal, Design::TwoRuns).verdict, Verdict::Worse, "less CPU is better");
    }

    #[test]
    fn the_more_figures_the_surer_a_change_has_to_be() {
        // Of twenty one is rarely below 0.05 by chance; many together are.
        assert_eq!(benjamini_hochberg(&[0.04], 0.05), 0.04);
        let alone: Vec<f64> = std::iter::once(0.04).chain((1..20).map(|i| 0.05 * f64::from(i))).collect();
        assert!(benjamini_hochberg(&alone, 0.05) < 0.04);
        assert_eq!(benjamini_hochberg(&[0.04; 20], 0.05), 0.04);
        assert!(benjamini_hochberg(&[], 0.05) < 0.0);
    }

    #[test]
    fn the_mean_over_cells_is_geometric() {
        let halved = pair(&[100.0, 100.0], &[50.0, 50.0]);
        let doubled = pair(&[10.0, 10.0], &[20.0, 20.0]);
        let totals = totals(&cells(&[halved, doubled], Design::TwoRuns, &Options::default(), true));
        let rate = &totals[0];
        assert_eq!((rate.metric, rate.cells), (Metric::Rate, 2));
        assert!(rate.geometric_mean.unwrap().abs() < 1e-12, "{rate:?}");
        assert_eq!(totals[1].geometric_mean, None);
    }
}
