//! Owns the decision how many answers a sleeping worker holds out for. Sans-I/O.
//!
//! Waking up for several answers at once costs less than waking up for each, for the generator and
//! for the server, whose requests then come in batches too. Where the server always has work in its
//! queue, holding out delays nothing. Where it has not, each held answer is a request not sent, and
//! throughput falls. Which of the two it is cannot be known beforehand, so it is tried: short
//! stretches with and without holding out are compared by their rate of answers, which in a closed
//! loop is the inverse of the mean latency, and only what does not lower it is kept.

use crate::time::{Instant, Span};

/// The batching of one worker.
#[derive(Clone, Debug)]
pub struct Batcher {
    /// A size given by the user; 0: decided here.
    fixed: u32,
    arms: [Arm; ARMS],
    /// The arm in use, and whether that is a trial.
    using: usize,
    best: usize,
    epoch_began: Option<Instant>,
    answers: u64,
    waits: u32,
}

/// One way to wait.
#[derive(Clone, Copy, Debug)]
struct Arm {
    /// What is in flight, or with many requests on a connection the mean latency, is divided by this;
    /// 0: hold out for nothing.
    share: u64,
    /// Answers per second in its stretches, recent ones weighing more.
    rate: Option<f64>,
    trials: u32,
    next_trial: Instant,
    pause: Span,
}

impl Batcher {
    /// A batcher that holds out for `fixed` answers; for 0 it finds out what to do.
    pub fn new(fixed: u32) -> Self {
        let arm =
            |share| Arm { share, rate: None, trials: 0, next_trial: Instant::default(), pause: TRIAL_PAUSE };
        Self {
            fixed,
            arms: [arm(0), arm(4), arm(2)],
            using: 0,
            best: 0,
            epoch_began: None,
            answers: 0,
            waits: 0,
        }
    }

    /// How many receptions to wait for with so many requests in flight on so many connections, and
    /// after what time to settle for one.
    ///
    /// A connection with several requests in flight delivers whatever came meanwhile in one
    /// reception, so that not their number but time makes a batch there.
    pub fn hold(&self, in_flight: u64, connections: u64, mean_latency: Span) -> (u32, Span) {
        let linger = mean_latency.min(LINGER_MAX);
        if self.fixed > 0 {
            return (u64::from(self.fixed).min(in_flight).max(1) as u32, linger);
        }
        let share = self.arms[self.using].share;
        if share > 0 && in_flight >= LEAST_IN_FLIGHT && in_flight >= connections * 2 {
            let linger = Span::from_nanos(mean_latency.as_nanos() / share).min(MULTIPLEXED_LINGER_MAX);
            return (BY_TIME_ALONE, linger);
        }
        match in_flight.checked_div(share) {
            None | Some(0 | 1) => (1, Span::ZERO),
            Some(want) => (want.min(BATCH_MAX) as u32, linger),
        }
    }

    /// A wait ended at `now` with so many answers.
    pub fn observe(&mut self, now: Instant, answers: u64, in_flight: u64) {
        if self.fixed > 0 || in_flight < LEAST_IN_FLIGHT {
            return;
        }
        let Some(began) = self.epoch_began else {
            self.epoch_began = Some(now);
            return;
        };
        self.answers += answers;
        self.waits += 1;
        let length = now.since(began);
        if length < EPOCH || self.answers < EPOCH_ANSWERS || self.waits < EPOCH_WAITS {
            return;
        }
        let rate = self.answers as f64 / length.as_secs_f64();
        self.close_epoch(now, rate);
        self.epoch_began = Some(now);
        (self.answers, self.waits) = (0, 0);
    }

    fn close_epoch(&mut self, now: Instant, rate: f64) {
        let arm = &mut self.arms[self.using];
        arm.trials = arm.trials.saturating_add(1);
        // The mean of the first stretches, then one that forgets: a single stretch is off by several
        // percent, which is more than arms may differ by.
        let weight = (1.0 / f64::from(arm.trials)).max(WEIGHT);
        arm.rate = Some(arm.rate.map_or(rate, |old| old + (rate - old) * weight));
        let top = self.arms.iter().filter_map(|arm| arm.rate).fold(0.0, f64::max);
        // The largest batch that costs no throughput.
        self.best = (0..ARMS)
            .rev()
            .find(|i| self.arms[*i].rate.is_some_and(|rate| rate >= top * AS_GOOD))
            .unwrap_or(0);
        let arm = &mut self.arms[self.using];
        if self.using != self.best {
            let lost = arm.rate.is_some_and(|rate| rate < top * HOPELESS);
            arm.pause =
                if lost { Span::from_nanos(arm.pause.as_nanos() * 4).min(PAUSE_MAX) } else { TRIAL_PAUSE };
            arm.next_trial = now + arm.pause;
        }
        let lost = |arm: &Arm| arm.trials > 0 && arm.rate.is_some_and(|rate| rate < top * HOPELESS);
        // First every arm in turn, unless it was hopeless at once; later, now and then.
        let early = (0..ARMS).filter(|i| self.arms[*i].trials < FIRST_TRIALS && !lost(&self.arms[*i]));
        let due = (0..ARMS).filter(|i| *i != self.best && self.arms[*i].next_trial <= now);
        self.using = early
            .min_by_key(|i| self.arms[*i].trials)
            .or_else(|| due.min_by_key(|i| self.arms[*i].next_trial))
            .unwrap_or(self.best);
    }
}

const ARMS: usize = 3;
const BATCH_MAX: u64 = 64;
/// More receptions than ever come at one time.
const BY_TIME_ALONE: u32 = 4096;
/// The longest hold with many requests on each connection. What reading and writing a connection costs
/// is shared by the answers it then has, and those of a hundred connections take this long to come.
const MULTIPLEXED_LINGER_MAX: Span = Span::from_millis(4);
/// No answer is held longer, whatever a trial does.
const LINGER_MAX: Span = Span::from_micros(500);
/// With fewer requests in flight every arm waits for one.
const LEAST_IN_FLIGHT: u64 = 4;
/// A stretch lasts at least so long, and takes at least so many answers and waits.
const EPOCH: Span = Span::from_millis(8);
const EPOCH_ANSWERS: u64 = 64;
const EPOCH_WAITS: u32 = 4;
/// With less memory the choice flips between batches that differ by less than a stretch's noise.
const WEIGHT: f64 = 1.0 / 32.0;
const FIRST_TRIALS: u32 = 6;
/// A batch is kept when its rate is at least this share of the best.
const AS_GOOD: f64 = 0.965;
/// Below this share of the best, trials become rarer.
const HOPELESS: f64 = 0.92;
const TRIAL_PAUSE: Span = Span::from_millis(300);
const PAUSE_MAX: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a batcher for `seconds` against a server whose rate depends on the batch; the share of
    /// time spent with each batch size.
    fn shares(seconds: u64, in_flight: u64, rate_of: impl Fn(u32) -> f64) -> Vec<(u32, f64)> {
        let mut batcher = Batcher::new(0);
        let mut now = Instant::from_nanos(1);
        let end = now + Span::from_secs(seconds);
        let mut spent: std::collections::BTreeMap<u32, u64> = Default::default();
        while now < end {
            let (want, _) = batcher.hold(in_flight, in_flight, Span::from_micros(300));
            let took = Span::from_nanos((f64::from(want) / rate_of(want) * 1e9) as u64);
            *spent.entry(want).or_default() += took.as_nanos();
            now = now + took;
            batcher.observe(now, u64::from(want), in_flight);
        }
        spent
            .into_iter()
            .map(|(want, ns)| (want, ns as f64 / Span::from_secs(seconds).as_nanos() as f64))
            .collect()
    }

    #[test]
    fn a_busy_server_is_given_large_batches() {
        let spent = shares(2, 64, |_| 200_000.0);
        assert!(spent.iter().any(|(want, share)| *want == 32 && *share > 0.7), "{spent:?}");
    }

    #[test]
    fn nothing_is_held_where_it_costs_throughput() {
        let spent = shares(4, 64, |want| if want > 1 { 100_000.0 } else { 200_000.0 });
        assert!(spent.iter().any(|(want, share)| *want == 1 && *share > 0.95), "{spent:?}");
    }

    #[test]
    fn few_requests_and_fixed_sizes_are_left_alone() {
        assert_eq!(Batcher::new(0).hold(3, 3, Span::from_micros(100)), (1, Span::ZERO));
        assert_eq!(Batcher::new(8).hold(64, 64, Span::from_micros(100)), (8, Span::from_micros(100)));
        assert_eq!(Batcher::new(8).hold(2, 2, Span::from_secs(1)), (2, LINGER_MAX));
    }

    #[test]
    fn many_requests_on_a_connection_are_held_by_time() {
        let mut batcher = Batcher::new(0);
        assert_eq!(batcher.hold(128, 4, Span::from_micros(800)), (1, Span::ZERO), "nothing tried yet");
        batcher.using = 1;
        assert_eq!(batcher.hold(128, 4, Span::from_micros(800)), (BY_TIME_ALONE, Span::from_micros(200)));
        batcher.using = 2;
        assert_eq!(batcher.hold(128, 4, Span::from_micros(800)), (BY_TIME_ALONE, Span::from_micros(400)));
        assert_eq!(batcher.hold(10_000, 100, Span::from_secs(1)), (BY_TIME_ALONE, MULTIPLEXED_LINGER_MAX));
    }
}
