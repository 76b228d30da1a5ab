//! Owns sets of integers that come mostly in order: packet numbers received, bytes acknowledged.

/// A set of integers as ranges, lowest first, both ends included, none touching the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

impl Ranges {
    /// Adds `low..=high`; true when some of it was not in the set.
    #[inline]
    pub(super) fn insert(&mut self, low: u64, high: u64) -> bool {
        match self.ranges.last_mut() {
            None => self.ranges.push((low, high)),
            Some(last) if low == last.1 + 1 => last.1 = high,
            Some(last) if low > last.1 => self.ranges.push((low, high)),
            _ => return self.insert_among(low, high),
        }
        true
    }

    fn insert_among(&mut self, low: u64, high: u64) -> bool {
        // The first range that is touched, and the first beyond them.
        let from = self.ranges.partition_point(|range| range.1.saturating_add(1) < low);
        let to = from + self.ranges[from..].partition_point(|range| range.0 <= high.saturating_add(1));
        if from == to {
            self.ranges.insert(from, (low, high));
            return true;
        }
        if to - from == 1 && self.ranges[from].0 <= low && high <= self.ranges[from].1 {
            return false;
        }
        let merged = (low.min(self.ranges[from].0), high.max(self.ranges[to - 1].1));
        self.ranges.splice(from..to, [merged]);
        true
    }

    /// Whether the set has it.
    #[inline]
    pub(super) fn contains(&self, value: u64) -> bool {
        match self.ranges.last() {
            None => false,
            Some(last) if value > last.1 => false,
            Some(last) if value >= last.0 => true,
            _ => {
                let at = self.ranges.partition_point(|range| range.1 < value);
                self.ranges.get(at).is_some_and(|range| range.0 <= value)
            }
        }
    }

    /// The largest member.
    #[inline]
    pub(super) fn max(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.1)
    }

    /// The ranges, highest first.
    #[inline]
    pub(super) fn descending(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.ranges.iter().rev().copied()
    }

    /// Forgets the lowest ranges until at most `most` are left; returns the highest member forgotten.
    pub(super) fn keep_highest(&mut self, most: usize) -> Option<u64> {
        let excess = self.ranges.len().checked_sub(most).filter(|excess| *excess > 0)?;
        self.ranges.drain(..excess).next_back().map(|range| range.1)
    }

    /// Removes every member below `value`.
    pub(super) fn remove_below(&mut self, value: u64) {
        let gone = self.ranges.partition_point(|range| range.1 < value);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(value);
        }
    }

    /// The first member of `0..end` that the set has not; `end` when it has them all.
    pub(super) fn first_gap(&self, end: u64) -> u64 {
        match self.ranges.first() {
            Some((0, high)) => (high + 1).min(end),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_set_it_says(inserts in prop::collection::vec((0u64..60, 0u64..6), 0..40)) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for (low, len) in inserts {
                let news = (low..=low + len).filter(|value| set.insert(*value)).count() > 0;
                prop_assert_eq!(ranges.insert(low, low + len), news);
            }
            let members: Vec<u64> = ranges.descending().flat_map(|(low, high)| (low..=high).rev()).collect();
            let expected: Vec<u64> = set.iter().rev().copied().collect();
            prop_assert_eq!(&members, &expected);
            prop_assert_eq!(ranges.max(), set.last().copied());
            for value in 0..70 {
                prop_assert_eq!(ranges.contains(value), set.contains(&value));
            }
            for pair in ranges.ranges.windows(2) {
                prop_assert!(pair[0].1 + 1 < pair[1].0);
            }
            let gap = (0..100).find(|value| !set.contains(value)).unwrap();
            prop_assert_eq!(ranges.first_gap(100), gap);
            let mut above = ranges.clone();
            above.remove_below(30);
            let members: BTreeSet<u64> = above.descending().flat_map(|(low, high)| low..=high).collect();
            prop_assert_eq!(members, set.range(30..).copied().collect());
            ranges.keep_highest(2);
            prop_assert!(ranges.ranges.len() <= 2);
        }
    }
}
