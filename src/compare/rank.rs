//! Owns the two rank tests of Wilcoxon (Biometrics Bulletin 1, 1945) with the intervals that belong to
//! them (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, chapters 3 and 4):
//! the rank-sum test for rounds of two runs, the signed-rank test for rounds measured in pairs.
//!
//! They ask nothing of the shape of the noise, so that one round a neighbour disturbed weighs no more than
//! any other. Their distributions are exact, with ties, up to [`EXACT_UP_TO`] values.

use crate::results::stats::median;

/// What a test says of a shift.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shift {
    /// Two-sided probability of values at least this far apart when there is no shift.
    pub(super) p: f64,
    /// The shift itself, by Hodges and Lehmann: the median of all differences that the test looks at.
    pub(super) estimate: f64,
    /// The interval of the shift.
    pub(super) interval: (f64, f64),
    /// Probability with which the interval holds the shift, at least the one asked for where so few
    /// values can give it.
    pub(super) confidence: f64,
}

/// How far `head` lies above `base`, both in the order they were measured, both not empty. The values are
/// finite.
pub(super) fn sum_test(base: &[f64], head: &[f64], level: f64) -> Shift {
    let all = [base, head].concat();
    let doubled = doubled_midranks(&all);
    let observed: u64 = doubled[base.len()..].iter().sum();
    let distribution = Sums::of_subsets(&doubled, head.len());
    // Without ties, as the interval is defined: the number of pairs in which the head is larger.
    let plain: Vec<u64> = (1..=doubled.len() as u64).map(|rank| 2 * rank).collect();
    let least: u64 = plain[..head.len()].iter().sum();
    let pairs = Sums::of_subsets(&plain, head.len());
    let mut differences: Vec<f64> = head.iter().flat_map(|y| base.iter().map(move |x| y - x)).collect();
    differences.sort_by(f64::total_cmp);
    let (interval, confidence) = cut(&differences, level, |below| pairs.at_most(least + 2 * below));
    Shift {
        p: distribution.two_sided(observed),
        estimate: median(&differences).unwrap_or_default(),
        interval,
        confidence,
    }
}

/// How far pairs lie above zero: `differences`, head less base of each pair, not empty, finite.
pub(super) fn signed_test(differences: &[f64], level: f64) -> Shift {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let ranks = doubled_midranks(&sizes);
    // A pair without a difference keeps its rank from the others and counts on neither side (Pratt 1959).
    let signed = || ranks.iter().zip(differences).filter(|(_, d)| **d != 0.0);
    let observed: u64 = signed().filter(|(_, d)| **d > 0.0).map(|(rank, _)| *rank).sum();
    let distribution = Sums::of_any(&signed().map(|(rank, _)| *rank).collect::<Vec<_>>());
    let plain: Vec<u64> = (1..=differences.len() as u64).map(|rank| 2 * rank).collect();
    let plain = Sums::of_any(&plain);
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        averages.extend(differences[i..].iter().map(|b| a / 2.0 + b / 2.0));
    }
    averages.sort_by(f64::total_cmp);
    let (interval, confidence) = cut(&averages, level, |below| plain.at_most(2 * below));
    Shift {
        p: distribution.two_sided(observed),
        estimate: median(&averages).unwrap_or_default(),
        interval,
        confidence,
    }
}

/// The smallest two-sided probability that a rank-sum test of `rounds` a side can come to.
pub(super) fn least_sum_p(rounds: usize) -> f64 {
    // 2 ÷ (2n choose n).
    (1..=rounds).fold(2.0, |p, i| p * i as f64 / (rounds + i) as f64).min(1.0)
}

/// The same of a signed-rank test of `pairs`.
pub(super) fn least_signed_p(pairs: usize) -> f64 {
    2f64.powi(1 - i32::try_from(pairs).unwrap_or(i32::MAX)).min(1.0)
}

/// The interval between the values of `sorted` that as many lie outside of on either side as the level
/// allows. `tail(k)` is the probability of a statistic of at most k, one end alone.
fn cut(sorted: &[f64], level: f64, tail: impl Fn(u64) -> f64) -> ((f64, f64), f64) {
    let mut outside = 0;
    while 2 * (outside + 1) < sorted.len() && 2.0 * tail(outside as u64) <= level {
        outside += 1;
    }
    // With so few values that even their extremes are inside too often, these are what there is.
    let outside = outside.max(1);
    let confidence = 1.0 - 2.0 * tail(outside as u64 - 1);
    ((sorted[outside - 1], sorted[sorted.len() - outside]), confidence.max(0.0))
}

/// Twice the rank of each value, equal values sharing the middle of their ranks; whole numbers.
fn doubled_midranks(values: &[f64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..].iter().take_while(|i| values[**i] == values[order[first]]).count();
        for &i in &order[first..first + equal] {
            // Ranks first + 1 to first + equal, whose middle is half of their sum's ends.
            ranks[i] = (2 * first + equal + 1) as u64;
        }
        first += equal;
    }
    ranks
}

/// The distribution of a sum of ranks when there is no shift.
enum Sums {
    /// Probability of each sum from zero.
    Exact(Vec<f64>),
    /// Its normal approximation, for many values.
    Normal { mean: f64, deviation: f64 },
}

impl Sums {
    /// Of `chosen` of the ranks, every choice as likely as every other.
    fn of_subsets(ranks: &[u64], chosen: usize) -> Self {
        let total: u64 = ranks.iter().sum();
        let n = ranks.len();
        if n > EXACT_UP_TO {
            let (all, of) = (n as f64, chosen as f64);
            let middle = total as f64 / all;
            let spread = ranks.iter().map(|rank| (*rank as f64 - middle).powi(2)).sum::<f64>() / all;
            let variance = of * (all - of) / (all - 1.0) * spread;
            return Self::Normal { mean: of * middle, deviation: variance.sqrt() };
        }
        // ways[k][s]: choices of k ranks with the sum s; only sums that can occur are visited.
        let mut ways = vec![vec![0f64; total as usize + 1]; chosen + 1];
        ways[0][0] = 1.0;
        let mut reached = 0;
        for &rank in ranks {
            reached += rank as usize;
            for k in (1..=chosen).rev() {
                let (fewer, more) = ways.split_at_mut(k);
                for sum in rank as usize..=reached {
                    more[0][sum] += fewer[k - 1][sum - rank as usize];
                }
            }
        }
        Self::normalised(ways.pop().unwrap_or_default())
    }

    /// Of any of the ranks, each in or out.
    fn of_any(ranks: &[u64]) -> Self {
        let total: u64 = ranks.iter().sum();
        if ranks.len() > EXACT_UP_TO {
            let variance = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
            return Self::Normal { mean: total as f64 / 2.0, deviation: variance.sqrt() };
        }
        let mut ways = vec![0f64; total as usize + 1];
        ways[0] = 1.0;
        for &rank in ranks {
            for sum in (rank as usize..ways.len()).rev() {
                ways[sum] += ways[sum - rank as usize];
            }
        }
        Self::normalised(ways)
    }

    fn normalised(mut ways: Vec<f64>) -> Self {
        let all: f64 = ways.iter().sum();
        ways.iter_mut().for_each(|way| *way /= all);
        Self::Exact(ways)
    }

    /// Probability of a sum of at most this.
    fn at_most(&self, sum: u64) -> f64 {
        match self {
            Self::Exact(probabilities) => probabilities.iter().take(sum as usize + 1).sum(),
            Self::Normal { mean, deviation } => normal_below((sum as f64 - mean) / deviation),
        }
    }

    /// Probability of a sum at least as far out as this, on either side.
    fn two_sided(&self, sum: u64) -> f64 {
        let one = match self {
            Self::Exact(probabilities) => {
                let above: f64 = probabilities.iter().skip(sum as usize).sum();
                self.at_most(sum).min(above)
            }
            Self::Normal { mean, deviation } if *deviation > 0.0 => {
                normal_below(-((sum as f64 - mean) / deviation).abs())
            }
            Self::Normal { .. } => 1.0,
        };
        (2.0 * one).min(1.0)
    }
}

/// Probability of a standard normal value below `z`, by the approximation 26.2.17 of Abramowitz and
/// Stegun; off by 7.5e-8 at most.
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = series.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    let above = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z < 0.0 { above } else { 1.0 - above }
}

/// Values, of both sides together or pairs, up to which distributions are counted out.
const EXACT_UP_TO: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVEL: f64 = 0.05;

    #[test]
    fn probabilities_of_the_rank_sum_are_those_of_the_tables() {
        let numbers = |from: u32, to: u32| (from..to).map(f64::from).collect::<Vec<_>>();
        // Complete separation: two of the (2n choose n) choices.
        for (n, p) in [(1, 1.0), (2, 2.0 / 6.0), (3, 2.0 / 20.0), (5, 2.0 / 252.0), (10, 2.0 / 184_756.0)] {
            let (base, head) = (numbers(0, n), numbers(100, 100 + n));
            let shift = sum_test(&base, &head, LEVEL);
            assert!((shift.p - p).abs() < 1e-12, "{n}: {}", shift.p);
            assert!((least_sum_p(n as usize) - p).abs() < 1e-12, "{n}");
            assert_eq!(sum_test(&head, &base, LEVEL).p, shift.p);
        }
        // Five against five with U = 2, the 5 % value of the usual table: p = 0.0317.
        let shift = sum_test(&[1.0, 2.0, 3.0, 4.0, 7.0], &[5.0, 6.0, 8.0, 9.0, 10.0], LEVEL);
        assert!((shift.p - 8.0 / 252.0).abs() < 1e-12, "{}", shift.p);
    }

    #[test]
    fn probabilities_of_the_signed_rank_are_those_of_the_tables() {
        for (n, p) in [(1, 1.0), (5, 0.0625), (6, 0.03125), (10, 2.0 / 1024.0)] {
            let differences: Vec<f64> = (1..=n).map(f64::from).collect();
            assert!((signed_test(&differences, LEVEL).p - p).abs() < 1e-12, "{n}");
            assert!((least_signed_p(n as usize) - p).abs() < 1e-12, "{n}");
        }
        // n = 8 with T = 3, the 5 % value of the usual table: 2 · 5 ÷ 256.
        let shift = signed_test(&[-3.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0], LEVEL);
        assert!((shift.p - 10.0 / 256.0).abs() < 1e-12, "{}", shift.p);
    }

    #[test]
    fn equal_values_tell_nothing() {
        assert_eq!(sum_test(&[5.0; 6], &[5.0; 6], LEVEL).p, 1.0);
        assert_eq!(signed_test(&[0.0; 6], LEVEL).p, 1.0);
        assert_eq!(signed_test(&[0.0; 6], LEVEL).interval, (0.0, 0.0));
        assert_eq!(sum_test(&[5.0; 100], &[5.0; 100], LEVEL).p, 1.0);
    }

    #[test]
    fn intervals_of_few_rounds_say_how_sure_they_are() {
        let shift = sum_test(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0], LEVEL);
        assert_eq!(shift.interval, (-1.0, 5.0), "the extremes of all differences");
        assert!((shift.confidence - 0.9).abs() < 1e-12);
        // Ten against ten: the 24th of the hundred differences from either end.
        let numbers: Vec<f64> = (0..10).map(f64::from).collect();
        let shift = sum_test(&numbers, &numbers, LEVEL);
        assert!((0.95..0.96).contains(&shift.confidence), "{}", shift.confidence);
        let mut all: Vec<f64> = numbers.iter().flat_map(|y| numbers.iter().map(move |x| y - x)).collect();
        all.sort_by(f64::total_cmp);
        assert_eq!(shift.interval, (all[23], all[76]));
        // Ten pairs: the ninth of the 55 averages from either end.
        let shift = signed_test(&numbers, LEVEL);
        assert!((0.95..0.96).contains(&shift.confidence), "{}", shift.confidence);
        assert_eq!(signed_test(&[1.0, 2.0, 3.0], LEVEL).interval, (1.0, 3.0));
    }

    #[test]
    fn the_normal_distribution_continues_the_exact_one() {
        for n in [20usize, 21] {
            // One side of the limit is counted, the other approximated.
            let base: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let head: Vec<f64> = base.iter().map(|x| x + 4.3).collect();
            let shift = sum_test(&base, &head, LEVEL);
            assert!((0.02..0.06).contains(&shift.p), "{n}: {}", shift.p);
        }
        assert!((normal_below(-1.959_964) - 0.025).abs() < 1e-6);
        assert!((normal_below(1.0) - 0.841_345).abs() < 1e-6);
    }

    proptest! {
        /// The interval holds what is not rejected: zero is inside just when p is above its level.
        #[test]
        fn interval_and_probability_agree(
            base in prop::collection::hash_set(-1000i32..1000, 4..12),
            head in prop::collection::hash_set(-1000i32..1000, 4..12),
        ) {
            let of = |set: &std::collections::HashSet<i32>, parity: i32| {
                // No ties, also between the sides.
                set.iter().map(|x| f64::from(2 * x + parity)).collect::<Vec<_>>()
            };
            let shift = sum_test(&of(&base, 0), &of(&head, 1), LEVEL);
            let (low, high) = shift.interval;
            prop_assert!(low <= high && (0.0..=1.0).contains(&shift.p));
            prop_assert!(shift.confidence >= 0.95 || low == low.min(high));
            if shift.confidence >= 0.95 {
                prop_assert_eq!(!(low..=high).contains(&0.0), shift.p <= 1.0 - shift.confidence + 1e-12);
            }
        }

        /// A shift of all values moves the interval with it.
        #[test]
        fn the_interval_moves_with_the_values(
            differences in prop::collection::vec(-100i32..100, 2..14), by in -50i32..50,
        ) {
            let values: Vec<f64> = differences.iter().map(|d| f64::from(*d)).collect();
            let moved: Vec<f64> = values.iter().map(|d| d + f64::from(by)).collect();
            let (a, b) = (signed_test(&values, LEVEL).interval, signed_test(&moved, LEVEL).interval);
            prop_assert!((a.0 + f64::from(by) - b.0).abs() < 1e-9 && (a.1 + f64::from(by) - b.1).abs() < 1e-9);
        }
    }
}
