//! Owns the way from values to coordinates: linear, logarithmic and percentile scales, and where their
//! ticks stand. Pure.

use crate::units::group_thousands;

/// A stretch of values laid out over a stretch of the picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// From 0 to `high`; from 0 to 1 where there is nothing to show.
    pub(super) fn from_zero(high: f64, from: f64, to: f64) -> Self {
        let high = if high > 0.0 && high.is_finite() { high } else { 1.0 };
        Self { low: 0.0, high, from, to, logarithmic: false }
    }

    /// Around values from `low` to `high`, with a tenth of their distance at either end and not so close
    /// that differences of less than a percent fill the picture.
    pub(super) fn around(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let least = (high.abs() * 0.1).max(f64::MIN_POSITIVE);
        let room = ((least - (high - low)) / 2.0).max((high - low) * 0.1);
        Self { low: (low - room).max(0.0), high: high + room, from, to, logarithmic: false }
    }

    /// Logarithmic, from the last of 1, 2, 5, 10, … below `low` to the first above `high`.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = if low > 0.0 && low <= high { (low, high) } else { (1.0, 10.0) };
        let (mut below, mut above) = (floor_125(low), ceil_125(high));
        if above <= below {
            (below, above) = (floor_125(below * 0.99), ceil_125(above * 1.01));
        }
        Self { low: below, high: above, from, to, logarithmic: true }
    }

    /// Where a value stands; values beyond the ends stand at the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Whether a value stands where it is.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values between the ends, `most` at most.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        if self.logarithmic { self.logarithmic_ticks(most) } else { self.linear_ticks(most) }
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let step = ceil_125((self.high - self.low) / most.max(1) as f64);
        let first = (self.low / step).ceil() as i64;
        let steps = (first..).map(|n| n as f64 * step);
        steps.take_while(|value| *value <= self.high * (1.0 + TOLERANCE)).take(most + 1).collect()
    }

    /// 1, 2, 5 of each decade; where these are too many, every decade, or every second, third, ….
    fn logarithmic_ticks(&self, most: usize) -> Vec<f64> {
        let (first, last) = (decade(self.low), decade(self.high));
        let inside =
            |value: &f64| (self.low * (1.0 - TOLERANCE)..=self.high * (1.0 + TOLERANCE)).contains(value);
        let fine: Vec<f64> =
            (first..=last).flat_map(|d| [1.0, 2.0, 5.0].map(|m| m * power(d))).filter(inside).collect();
        if fine.len() <= most {
            return fine;
        }
        let decades: Vec<f64> = (first..=last).map(power).filter(inside).collect();
        let every = decades.len().div_ceil(most.max(1)).max(1);
        decades.into_iter().step_by(every).collect()
    }
}

/// Where a percentile stands on a scale that gives each further nine the same room (0, 90, 99, 99.9, …),
/// from 0 for the smallest sample: 99 % is 2.
pub(super) fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// The percentile that stands at `nines`.
pub(super) fn percentile(nines: f64) -> f64 {
    100.0 * (1.0 - 10f64.powf(-nines))
}

/// A tick's figure, short: `0.05`, `250`, `20k`, `1.5M`.
pub(super) fn tick(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Ticks are 1, 2 or 5 times a power of ten or a sum of few of these: nine digits are all there is.
    let text = format!("{scaled:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.parse::<u64>() {
        Ok(whole) => format!("{}{unit}", group_thousands(whole)),
        Err(_) => format!("{text}{unit}"),
    }
}

/// The smallest of 1, 2, 5, 10, … that is not below `value`.
fn ceil_125(value: f64) -> f64 {
    let decade = decade(value);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power(decade));
    steps.into_iter().find(|step| *step >= value * (1.0 - TOLERANCE)).unwrap_or(10.0 * power(decade))
}

/// The largest of 1, 2, 5, 10, … that is not above `value`.
fn floor_125(value: f64) -> f64 {
    let decade = decade(value);
    let steps = [5.0, 2.0, 1.0].map(|m| m * power(decade));
    steps.into_iter().find(|step| *step <= value * (1.0 + TOLERANCE)).unwrap_or(power(decade))
}

fn decade(value: f64) -> i32 {
    (value.max(f64::MIN_POSITIVE).log10() + TOLERANCE).floor() as i32
}

/// A power of ten as its literal has it, which multiplying does not always give below one.
fn power(decade: i32) -> f64 {
    if decade < 0 { 1.0 / 10f64.powi(-decade) } else { 10f64.powi(decade) }
}

/// Relative distance of values that are equal but for rounding.
const TOLERANCE: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round() {
        let linear = |high| Scale::from_zero(high, 0.0, 1.0).ticks(4);
        assert_eq!(linear(130_000.0), [0.0, 50_000.0, 100_000.0]);
        assert_eq!(linear(0.7), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(linear(f64::NAN), [0.0, 0.5, 1.0]);
        let logarithmic = |low, high, most| Scale::logarithmic(low, high, 0.0, 1.0).ticks(most);
        assert_eq!(logarithmic(0.06, 0.9, 6), [0.05, 0.1, 0.2, 0.5, 1.0]);
        assert_eq!(logarithmic(0.06, 90.0, 6), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(logarithmic(0.001, 1e9, 5), [0.001, 1.0, 1e3, 1e6, 1e9]);
        assert_eq!(logarithmic(5.0, 5.0, 6), [2.0, 5.0, 10.0]);
        let around = Scale::around(100.0, 100.0, 0.0, 1.0);
        assert_eq!(around.ticks(4), [95.0, 100.0, 105.0]);
        for (value, text) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (0.6000000000000001, "0.6"),
            (2_500.0, "2\u{202f}500"),
            (20_000.0, "20k"),
            (1.5e6, "1.5M"),
            (1e9, "1G"),
        ] {
            assert_eq!(tick(value), text);
        }
    }

    #[test]
    fn each_nine_has_the_same_room() {
        for (n, p) in [(0.0, 0.0), (1.0, 90.0), (2.0, 99.0), (4.0, 99.99)] {
            assert!((nines(p) - n).abs() < 1e-9 && (percentile(n) - p).abs() < 1e-9);
        }
    }

    proptest! {
        #[test]
        fn every_value_stands_within_the_picture(
            low in -9.0f64..9.0, distance in 0.0f64..9.0, value in -1e12f64..1e12, most in 1usize..12,
        ) {
            let (low, high) = (10f64.powf(low), 10f64.powf(low + distance));
            for scale in [
                Scale::from_zero(high, 20.0, 500.0),
                Scale::around(low, high, 20.0, 500.0),
                Scale::logarithmic(low, high, 20.0, 500.0),
            ] {
                prop_assert!((20.0..=500.0).contains(&scale.at(value)));
                prop_assert!(scale.holds(high) && scale.holds(scale.low));
                let ticks = scale.ticks(most);
                prop_assert!(ticks.len() <= most + 1 && ticks.is_sorted());
                for tick in ticks {
                    prop_assert!((20.0..=500.0).contains(&scale.at(tick)));
                }
            }
        }
    }
}
