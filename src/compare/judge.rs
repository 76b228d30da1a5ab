//! Owns the verdict on each change: which figures may be tested at all, the correction for there being
//! many, and what a change within the margin is called.

use super::pairs::Pair;
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
            .filter_map(|change| change.base.zip(change.head).and(change.change))
            .map(f64::ln_1p)
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
        failed: !head.measured && base.measured,
    }
}

/// One figure; `None` when neither side has it.
fn change(metric: Metric, pair: &Pair, design: Design, options: &Options) -> Option<Change> {
    let (base, head) = match design {
        Design::TwoRuns => (values(metric, &pair.base.rounds), values(metric, &pair.head.rounds)),
        Design::Turns => in_turns(metric, &pair.base.rounds, &pair.head.rounds),
    };
    let (old, new) = (median(&base), median(&head));
    if old.is_none() && new.is_none() {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let shift = match design {
        _ if base.len() < 2 || head.len() < 2 || base.len().max(head.len()) > MOST_ROUNDS => None,
        // Two measurements never agree to the last bit: these are the same one.
        _ if base == head => Some(Shift { p: 1.0, estimate: 0.0, interval: (0.0, 0.0), confidence: 1.0 }),
        Design::TwoRuns => Some(rank::sum_test(&logs(&base), &logs(&head), options.level)),
        Design::Turns => {
            let quotients = base.iter().zip(&head).map(|(base, head)| (head / base).ln());
            Some(rank::signed_test(&quotients.collect::<Vec<_>>(), options.level))
        }
    };
    let step = step(metric, pair);
    // Without a test the quotient of what is shown is all there is.
    let quotient = old.zip(new).map(|(old, new)| new / old - 1.0);
    Some(Change {
        metric,
        base: old,
        head: new,
        change: shift.map(|shift| shift.estimate.exp_m1()).or(quotient),
        interval: shift.map(|shift| (shift.interval.0.exp_m1(), shift.interval.1.exp_m1())),
        confidence: shift.map(|shift| shift.confidence),
        p: shift.map(|shift| shift.p),
        rounds: (base.len(), head.len()),
        verdict: Verdict::CannotTell,
        judged: false,
        step,
        reason: untestable(metric, pair, &base, &head, step),
    })
}

/// The coarser of the steps in which both sides count, of a middle round each.
fn step(metric: Metric, pair: &Pair) -> f64 {
    let of = |side: &[RoundFigures]| {
        median(&side.iter().map(|round| metric.step(round)).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    of(&pair.base.rounds).max(of(&pair.head.rounds))
}

fn values(metric: Metric, rounds: &[RoundFigures]) -> Vec<f64> {
    rounds.iter().filter_map(|round| metric.of(round)).collect()
}

/// The figures of the rounds that both sides have, round by round; without such a round those of either side,
/// to be shown.
fn in_turns(metric: Metric, base: &[RoundFigures], head: &[RoundFigures]) -> (Vec<f64>, Vec<f64>) {
    let both = |round: &RoundFigures| {
        let other = head.iter().find(|other| other.round == round.round)?;
        Some((metric.of(round)?, metric.of(other)?))
    };
    let pairs: (Vec<f64>, Vec<f64>) = base.iter().filter_map(both).unzip();
    if pairs.0.is_empty() { (values(metric, base), values(metric, head)) } else { pairs }
}

/// Why there can be no verdict, whatever the figures.
fn untestable(metric: Metric, pair: &Pair, base: &[f64], head: &[f64], step: f64) -> Option<String> {
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
    if step > COARSEST_STEP {
        let what = if metric == Metric::Cpu { "10 ms ticks of CPU time" } else { "requests" };
        return Some(format!(
            "too few {what} in a window: one is {:.0} %; longer windows can tell",
            step * 100.0
        ));
    }
    if base.len().max(head.len()) > MOST_ROUNDS {
        return Some(format!("more than {MOST_ROUNDS} rounds, the most that a scenario can have"));
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
    let needed = options.level / tested.max(1) as f64;
    change.judged = least_p(change, design) <= needed;
    let within = low >= -options.margin && high <= options.margin;
    // Two one-sided tests at the level are an interval of twice the level (Schuirmann 1987).
    let sure = change.confidence.is_some_and(|confidence| confidence >= 1.0 - 2.0 * options.level - 1e-9);
    if within && sure && change.step > options.margin {
        change.judged = false;
        change.reason =
            Some(format!("counted in steps of {:.1} %; longer windows can tell", change.step * 100.0));
    } else if within && sure {
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
    let least = least_p(change, design);
    let extreme = change.p.is_some_and(|p| p <= least * (1.0 + 1e-9));
    if least > options.level || (least > needed && extreme) {
        let rounds = change.rounds.0.min(change.rounds.1);
        let shows = |rounds: &usize| least_of(design)(*rounds) <= needed;
        let enough = (rounds..=MOST_ROUNDS).find(shows).unwrap_or(MOST_ROUNDS);
        return format!(
            "{rounds} rounds a side cannot show a change among {tested} figures; {enough} can, also with \
             shorter windows"
        );
    }
    "the rounds differ as much among themselves".into()
}

/// The smallest probability that the rounds of a figure can come to.
fn least_p(change: &Change, design: Design) -> f64 {
    least_of(design)(change.rounds.0.min(change.rounds.1))
}

fn least_of(design: Design) -> fn(usize) -> f64 {
    match design {
        Design::TwoRuns => rank::least_sum_p,
        Design::Turns => rank::least_signed_p,
    }
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

/// A figure of which the smallest step is larger than this is not tested.
const COARSEST_STEP: f64 = 0.1;

/// Rounds a scenario can have.
const MOST_ROUNDS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::super::CellName;
    use super::super::pairs::SideOfCell;
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
            ok: Some(1_000_000),
            server_cpu_us: Some(10_000_000),
        };
        (1..).zip(rates).map(of).collect()
    }

    fn side(rates: &[f64]) -> SideOfCell {
        SideOfCell {
            rounds: rounds(rates),
            measured: !rates.is_empty(),
            marks: vec![],
            no_cpu: None,
            workers: 1,
        }
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

    /// Round by round the head is slower; a drift that the base met earlier must not turn that around, nor may rounds
    /// that one side alone has.
    #[test]
    fn in_turns_the_change_is_that_of_the_pairs() {
        let drift: Vec<f64> = (0..10).map(|i| 100.0 * 1.2f64.powi(i)).collect();
        let slower: Vec<f64> = drift.iter().map(|rate| rate * 0.9).collect();
        let mut turned = pair(&drift, &slower);
        // The base lost its slowest rounds, so that all of its others are of a faster machine.
        turned.base.rounds.drain(..3);
        let change = only(turned, Design::Turns);
        assert_eq!((change.verdict, change.rounds), (Verdict::Worse, (7, 7)));
        assert!((change.change.unwrap() + 0.1).abs() < 1e-9, "{change:?}");
        assert!((change.head.unwrap() / change.base.unwrap() - 0.9).abs() < 1e-9, "{change:?}");
        let mut lost = pair(&drift, &slower);
        lost.head.rounds.drain(..3);
        let change = only(lost, Design::Turns);
        assert!((change.change.unwrap() + 0.1).abs() < 1e-9, "{change:?}");
    }

    /// A clock of 10 ms ticks, and whole requests: what both sides count alike need not be alike.
    #[test]
    fn what_is_counted_in_coarse_steps_is_not_the_same() {
        let of = |ok: u64| {
            let mut alike =
                pair(&[100.0, 101.0, 99.0, 100.5, 99.5, 100.2], &[100.1, 101.1, 99.1, 100.6, 99.6, 100.3]);
            alike.head.rounds.iter_mut().for_each(|round| round.ok = Some(ok));
            let change = only(alike, Design::TwoRuns);
            (change.verdict, change.judged, change.reason)
        };
        assert_eq!(of(1_000), (Verdict::Same, true, None));
        let (verdict, judged, reason) = of(20);
        assert_eq!((verdict, judged), (Verdict::CannotTell, false));
        assert_eq!(reason.as_deref(), Some("counted in steps of 5.0 %; longer windows can tell"));
        let (_, judged, reason) = of(6);
        assert!(!judged && reason.is_some_and(|r| r.contains("too few requests in a window: one is 17 %")));
    }

    #[test]
    fn figures_are_judged_where_a_change_could_be_called() {
        let of = |rounds: usize, marked: bool| {
            let rates: Vec<f64> = (0..rounds).map(|i| 100.0 + i as f64).collect();
            let again: Vec<f64> = rates.iter().map(|rate| rate * 1.003).collect();
            let mut pair = pair(&rates, &again);
            pair.head.marks.extend(marked.then(|| "tainted".to_owned()));
            only(pair, Design::TwoRuns).judged
        };
        assert!(of(5, false) && !of(3, false) && !of(5, true) && !of(1, false));
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
