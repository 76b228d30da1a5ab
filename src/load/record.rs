//! Owns what a worker writes down while it runs: counts by phase, latency histograms, errors. Each
//! worker has its own record; they are merged once, at the end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::results::{
    ErrorCount, Handshakes, HeaderField, Multiplexing, Negotiated, Phase, Requests, Second, Stall,
};
use crate::time::{Instant, Span};

/// Where a run is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Before the window.
    Warmup,
    /// The measured interval.
    Window,
    /// After it.
    Drain,
}

/// How a request ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// When it was sent (with a connection of its own: when that was begun).
    pub started: Instant,
    /// When the first byte of the final response was seen.
    pub first_byte: Instant,
    /// Status of the final response.
    pub status: u16,
    /// Body bytes.
    pub body: u64,
    /// What was not as expected.
    pub unexpected: Option<Unexpected>,
}

/// What of a well-formed response is not the expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unexpected {
    /// The status.
    Status(u16),
    /// The length of the body, so many bytes.
    Length(u64),
    /// The bytes of the body.
    Body,
}

/// An error, of a request or of a connection without one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Where it happened.
    pub phase: Phase,
    /// Stable name.
    pub kind: String,
    /// In words.
    pub text: String,
}

/// A histogram of nanoseconds with three significant digits in the layout of HdrHistogram, of fixed
/// size: up to 73 minutes, longer times count as that.
#[derive(Clone)]
pub struct Latencies {
    counts: Box<[u64]>,
    /// Range of indices in use.
    low: usize,
    high: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Latencies {
    fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            low: BUCKETS,
            high: 0,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    #[inline]
    fn record(&mut self, span: Span) {
        let nanos = span.as_nanos();
        let index = bucket_of(nanos.min(LONGEST));
        self.counts[index] += 1;
        self.low = self.low.min(index);
        self.high = self.high.max(index);
        self.count += 1;
        self.sum += u128::from(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (to, from) in
            self.counts[other.low..=other.high].iter_mut().zip(&other.counts[other.low..=other.high])
        {
            *to += from;
        }
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn clear(&mut self) {
        if self.count > 0 {
            self.counts[self.low..=self.high].fill(0);
        }
        *self = Self { counts: std::mem::take(&mut self.counts), ..Self::empty() };
    }

    fn empty() -> Self {
        Self { counts: Box::default(), low: BUCKETS, high: 0, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact mean in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Exact extremes in nanoseconds.
    pub fn extremes_ns(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.min, self.max))
    }

    /// The distribution at a precision of 1.6 %, only the buckets in use.
    fn sketch(&self) -> Vec<(u32, u64)> {
        let mut sketch: Vec<(u32, u64)> = Vec::new();
        if self.count == 0 {
            return sketch;
        }
        for (index, &count) in
            self.counts[self.low..=self.high].iter().enumerate().filter(|(_, count)| **count > 0)
        {
            let coarse = ((self.low + index) / SKETCH_STEP) as u32;
            match sketch.last_mut() {
                Some((last, sum)) if *last == coarse => *sum += count,
                _ => sketch.push((coarse, count)),
            }
        }
        sketch
    }

    /// The same distribution as an HdrHistogram of nanoseconds.
    pub fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds are valid");
        if self.count > 0 {
            for index in self.low..=self.high {
                if self.counts[index] > 0 {
                    histogram.saturating_record_n(lowest_of(index).max(1), self.counts[index]);
                }
            }
        }
        histogram
    }
}

/// Counts of one stage.
#[derive(Clone)]
pub struct Counts {
    /// Requests.
    pub requests: Requests,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Body bytes of final responses.
    pub body: u64,
    /// Final responses by status, 0 to 999.
    pub statuses: Box<[u64; 1000]>,
    /// 1xx responses.
    pub interim: u64,
    /// Errors by phase and kind: how many, how many of them ended a request, an example.
    pub errors: BTreeMap<(Phase, String), (u64, u64, String)>,
}

impl Counts {
    fn new() -> Self {
        Self {
            requests: Requests::default(),
            received: 0,
            sent: 0,
            body: 0,
            statuses: Box::new([0; 1000]),
            interim: 0,
            errors: BTreeMap::new(),
        }
    }

    fn fault(&mut self, fault: &Fault, requests: u64) {
        // Kinds are enumerations and errno names, so this stays small whatever a server sends.
        let entry = self
            .errors
            .entry((fault.phase, fault.kind.clone()))
            .or_insert_with(|| (0, 0, fault.text.clone()));
        entry.0 += requests.max(1);
        entry.1 += requests;
        self.requests.failed += requests;
        if matches!(fault.phase, Phase::Read | Phase::Interrupted) {
            self.requests.interrupted += requests;
        }
    }

    /// Adds another worker's counts of the same stage.
    pub fn merge(&mut self, other: &Self) {
        self.requests = add_requests(self.requests, other.requests);
        self.received += other.received;
        self.sent += other.sent;
        self.body += other.body;
        self.interim += other.interim;
        for (to, from) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *to += from;
        }
        for (key, (count, requests, example)) in &other.errors {
            let entry = self.errors.entry(key.clone()).or_insert_with(|| (0, 0, example.clone()));
            entry.0 += count;
            entry.1 += requests;
        }
    }

    /// Errors, most frequent first.
    pub fn error_counts(&self) -> Vec<ErrorCount> {
        let mut errors: Vec<_> = self
            .errors
            .iter()
            .map(|((phase, kind), (count, requests, example))| ErrorCount {
                phase: *phase,
                kind: kind.clone(),
                count: *count,
                requests: *requests,
                example: Some(example.clone()),
            })
            .collect();
        errors.sort_by(|a, b| b.count.cmp(&a.count).then(a.phase.cmp(&b.phase)).then(a.kind.cmp(&b.kind)));
        errors
    }
}

/// Sums of requests; the older of the oldest unfinished.
pub fn add_requests(a: Requests, b: Requests) -> Requests {
    Requests {
        started: a.started + b.started,
        carried_in: a.carried_in + b.carried_in,
        ok: a.ok + b.ok,
        failed: a.failed + b.failed,
        unfinished: a.unfinished + b.unfinished,
        oldest_unfinished_us: a.oldest_unfinished_us.max(b.oldest_unfinished_us),
        replayed: a.replayed + b.replayed,
        interrupted: a.interrupted + b.interrupted,
    }
}

fn add_handshakes(a: Handshakes, b: Handshakes) -> Handshakes {
    Handshakes {
        full: a.full + b.full,
        resumed: a.resumed + b.resumed,
        early_accepted: a.early_accepted + b.early_accepted,
        early_rejected: a.early_rejected + b.early_rejected,
    }
}

/// What is kept of a response, for whoever wants to see one. There is one at a time.
#[derive(Clone, Default, Debug)]
pub struct Sample {
    /// Status and fields, once it is complete.
    pub head: Option<(u16, Vec<HeaderField>)>,
    /// Its body, or the beginning of it.
    pub body: Vec<u8>,
    /// The body was longer.
    pub truncated: bool,
}

/// A worker's record.
#[derive(Clone)]
pub struct Record {
    stage: Stage,
    /// Counts of the stages, by [`Stage`] as index.
    pub stages: [Counts; 3],
    /// Latencies of the window's ok responses.
    whole: Latencies,
    /// Of those that came in several pieces: to the last byte and to the first. The first byte of all
    /// others is their last, which saves the hot path a second histogram.
    pieces: Latencies,
    first_bytes: Latencies,
    /// Latencies of the second under way.
    second: Latencies,
    second_ends: Instant,
    second_ok: u64,
    second_failed: u64,
    seconds: Vec<SecondRecord>,
    /// Times of connection set-ups, over the whole life.
    pub setups: Latencies,
    /// Times from the beginning of a connection to its first ok response, both in the window.
    pub first_responses: Latencies,
    /// Handshakes completed in the window, by kind.
    pub handshakes: Handshakes,
    opened_at: Instant,
    /// Requests in flight now.
    pub in_flight: u64,
    /// What the first connection was negotiated to.
    pub negotiated: Option<Negotiated>,
    /// Waits that returned something, inside the window.
    pub waits: u64,
    /// Responses over the whole life.
    pub answers: u64,
    multiplexing: Option<Multiplexing>,
    /// GOAWAY frames and refused streams of the window.
    goaways: u64,
    refused: u64,
    /// Connections opened in place of an earlier one, in the window.
    pub reopened: u64,
    /// The first stalls of the whole life.
    pub stalls: Vec<Stall>,
    /// The response that is sampled, where one is.
    pub sample: Option<Box<Sample>>,
    mean_latency: Span,
}

impl Record {
    /// An empty record that stands before the window.
    pub fn new() -> Self {
        Self {
            stage: Stage::Warmup,
            stages: [Counts::new(), Counts::new(), Counts::new()],
            whole: Latencies::new(),
            pieces: Latencies::new(),
            first_bytes: Latencies::new(),
            second: Latencies::new(),
            second_ends: Instant::from_nanos(u64::MAX),
            second_ok: 0,
            second_failed: 0,
            seconds: Vec::new(),
            setups: Latencies::new(),
            first_responses: Latencies::new(),
            handshakes: Handshakes::default(),
            opened_at: Instant::default(),
            in_flight: 0,
            negotiated: None,
            waits: 0,
            answers: 0,
            multiplexing: None,
            goaways: 0,
            refused: 0,
            reopened: 0,
            stalls: Vec::new(),
            sample: None,
            mean_latency: Span::ZERO,
        }
    }

    /// Where the run is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Counts of the stage under way.
    #[inline]
    pub fn now(&mut self) -> &mut Counts {
        &mut self.stages[self.stage as usize]
    }

    /// The window opens at `at`.
    pub fn open_window(&mut self, at: Instant) {
        self.leave_stage(None);
        self.stage = Stage::Window;
        self.opened_at = at;
        self.enter_stage();
        self.second_ends = at + Span::from_secs(1);
    }

    /// The window closes at `at`; `oldest` is the age of the oldest request in flight.
    pub fn close_window(&mut self, oldest: Option<Span>) {
        self.roll_second();
        self.second_ends = Instant::from_nanos(u64::MAX);
        self.leave_stage(oldest);
        self.stage = Stage::Drain;
        self.enter_stage();
    }

    /// The run is over; what is still in flight stays unfinished.
    pub fn finish(&mut self, oldest: Option<Span>) {
        self.leave_stage(oldest);
        self.in_flight = 0;
    }

    fn enter_stage(&mut self) {
        let in_flight = self.in_flight;
        let requests = &mut self.now().requests;
        requests.carried_in = in_flight;
        requests.started = in_flight;
    }

    fn leave_stage(&mut self, oldest: Option<Span>) {
        let in_flight = self.in_flight;
        let requests = &mut self.now().requests;
        requests.unfinished = in_flight;
        requests.oldest_unfinished_us = oldest.map(|age| age.as_nanos() / 1000);
    }

    /// Seconds of the window that ended before `now` are written down.
    #[inline]
    pub fn tick(&mut self, now: Instant) {
        while now >= self.second_ends {
            self.roll_second();
            self.second_ends = self.second_ends + Span::from_secs(1);
        }
    }

    fn roll_second(&mut self) {
        // Memory stays bounded however long the window is; counts cost next to nothing.
        let sketch = if self.seconds.len() < SKETCHED_SECONDS { self.second.sketch() } else { Vec::new() };
        self.seconds.push(SecondRecord { ok: self.second_ok, failed: self.second_failed, sketch });
        self.whole.merge(&self.second);
        self.second.clear();
        (self.second_ok, self.second_failed) = (0, 0);
    }

    /// A request was sent.
    #[inline]
    pub fn started(&mut self) {
        self.in_flight += 1;
        self.now().requests.started += 1;
    }

    /// A request was answered at `now`.
    #[inline]
    pub fn completed(&mut self, completion: &Completion, now: Instant) {
        self.in_flight -= 1;
        self.answers += 1;
        let window = self.stage == Stage::Window;
        let counts = self.now();
        counts.statuses[usize::from(completion.status).min(999)] += 1;
        counts.body += completion.body;
        if let Some(unexpected) = completion.unexpected {
            let fault = unexpected.fault();
            counts.fault(&fault, 1);
            self.second_failed += u64::from(window);
            return;
        }
        counts.requests.ok += 1;
        let latency = now.since(completion.started);
        // An exponential mean over about 64 responses: what a wait may take is measured by it.
        self.mean_latency = Span::from_nanos(
            self.mean_latency.as_nanos() - self.mean_latency.as_nanos() / 64 + latency.as_nanos() / 64,
        );
        if window {
            self.second_ok += 1;
            self.second.record(latency);
            if completion.first_byte != now {
                self.split(completion, latency);
            }
        }
    }

    #[cold]
    fn split(&mut self, completion: &Completion, latency: Span) {
        self.pieces.record(latency);
        self.first_bytes.record(completion.first_byte.since(completion.started));
    }

    /// Something failed, and `requests` that were in flight with it.
    #[cold]
    pub fn failed(&mut self, fault: &Fault, requests: u64) {
        self.in_flight -= requests;
        if requests > 0 {
            self.forget_sample();
        }
        if self.stage == Stage::Window {
            self.second_failed += requests;
        }
        self.now().fault(fault, requests);
    }

    /// The next bytes of the body that is sampled.
    #[cold]
    pub fn sample_body(&mut self, bytes: &[u8]) {
        let Some(sample) = &mut self.sample else { return };
        let room = SAMPLED_BYTES - sample.body.len();
        sample.truncated |= bytes.len() > room;
        sample.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// What came of a response that was not completed is no sample.
    fn forget_sample(&mut self) {
        if let Some(sample) = &mut self.sample {
            **sample = Sample::default();
        }
    }

    /// A request that was not processed was sent again.
    #[cold]
    pub fn replayed(&mut self) {
        self.forget_sample();
        self.now().requests.replayed += 1;
    }

    /// A server said how many requests a connection may have in flight.
    pub fn limit(&mut self, concurrency: u32) {
        if self.stage == Stage::Window {
            let seen = self.multiplexing.unwrap_or(Multiplexing {
                effective_least: concurrency,
                effective_most: concurrency,
                goaways: 0,
                refused: 0,
            });
            self.multiplexing = Some(Multiplexing {
                effective_least: seen.effective_least.min(concurrency),
                effective_most: seen.effective_most.max(concurrency),
                ..seen
            });
        }
    }

    /// A GOAWAY came.
    pub fn goaway(&mut self) {
        self.goaways += u64::from(self.stage == Stage::Window);
    }

    /// A connection took the place of an earlier one.
    pub fn reopened(&mut self) {
        self.reopened += u64::from(self.stage == Stage::Window);
    }

    /// A stream was refused.
    pub fn refused(&mut self) {
        self.refused += u64::from(self.stage == Stage::Window);
    }

    /// A connection stands still.
    pub fn stalled(&mut self, stall: Stall) {
        if self.stalls.len() < KEPT_STALLS {
            self.stalls.push(stall);
        }
    }

    /// What the server allowed on a connection during the window.
    pub fn multiplexing(&self) -> Option<Multiplexing> {
        let (goaways, refused) = (self.goaways, self.refused);
        self.multiplexing.map(|seen| Multiplexing { goaways, refused, ..seen })
    }

    /// A connection was set up in `span`.
    pub fn connected(&mut self, span: Span) {
        self.setups.record(span);
    }

    /// The server took early data, or did not.
    pub fn early_data(&mut self, accepted: bool) {
        if self.stage == Stage::Window {
            let Handshakes { early_accepted, early_rejected, .. } = &mut self.handshakes;
            *(if accepted { early_accepted } else { early_rejected }) += 1;
        }
    }

    /// A TLS handshake was completed.
    pub fn handshake(&mut self, resumed: bool) {
        if self.stage == Stage::Window {
            *(if resumed { &mut self.handshakes.resumed } else { &mut self.handshakes.full }) += 1;
        }
    }

    /// A connection begun at `begun` has its first ok response at `now`. One that was begun before the window
    /// may have waited for it, and does not count.
    pub fn first_response(&mut self, begun: Instant, now: Instant) {
        if self.stage == Stage::Window && begun >= self.opened_at {
            self.first_responses.record(now.since(begun));
        }
    }

    /// Recent mean latency.
    pub fn mean_latency(&self) -> Span {
        self.mean_latency
    }

    /// Latencies of the window's ok responses, to the last byte.
    pub fn latencies(&self) -> &Latencies {
        &self.whole
    }

    /// Times to the first byte: those that came whole count as their latency.
    pub fn first_bytes(&self) -> Histogram<u64> {
        let mut all = self.whole.to_histogram();
        // What came in pieces was recorded as a whole too, and is replaced by its first byte.
        let _ = all.subtract(self.pieces.to_histogram());
        let _ = all.add(self.first_bytes.to_histogram());
        all
    }

    /// Adds another worker's record.
    pub fn merge(&mut self, other: &Self) {
        for (to, from) in self.stages.iter_mut().zip(&other.stages) {
            to.merge(from);
        }
        self.whole.merge(&other.whole);
        self.pieces.merge(&other.pieces);
        self.first_bytes.merge(&other.first_bytes);
        self.setups.merge(&other.setups);
        self.first_responses.merge(&other.first_responses);
        self.handshakes = add_handshakes(self.handshakes, other.handshakes);
        self.waits += other.waits;
        self.answers += other.answers;
        self.goaways += other.goaways;
        self.refused += other.refused;
        self.reopened += other.reopened;
        if let Some(seen) = other.multiplexing {
            let mine = self.multiplexing.unwrap_or(seen);
            self.multiplexing = Some(Multiplexing {
                effective_least: mine.effective_least.min(seen.effective_least),
                effective_most: mine.effective_most.max(seen.effective_most),
                ..mine
            });
        }
        self.stalls.extend(other.stalls.iter().take(KEPT_STALLS - self.stalls.len()).cloned());
        self.negotiated = self.negotiated.take().or_else(|| other.negotiated.clone());
        self.sample = self.sample.take().or_else(|| other.sample.clone());
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize_with(other.seconds.len(), SecondRecord::default);
        }
        for (to, from) in self.seconds.iter_mut().zip(&other.seconds) {
            to.merge(from);
        }
    }

    /// The window second by second.
    pub fn seconds(&self) -> Vec<Second> {
        self.seconds.iter().map(SecondRecord::figures).collect()
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("stage", &self.stage)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl Unexpected {
    fn fault(self) -> Fault {
        let (kind, text) = match self {
            Self::Status(status) => ("status", format!("status {status}")),
            Self::Length(length) => ("length", format!("a body of {length} bytes")),
            Self::Body => ("body", "a body of other bytes".into()),
        };
        Fault { phase: Phase::Unexpected, kind: kind.into(), text }
    }
}

/// One second of the window, in a form that merges over workers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct SecondRecord {
    ok: u64,
    failed: u64,
    /// Coarse latency buckets in use, ascending, and their counts.
    sketch: Vec<(u32, u64)>,
}

impl SecondRecord {
    fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        let mut all: BTreeMap<u32, u64> = self.sketch.drain(..).collect();
        for (bucket, count) in &other.sketch {
            *all.entry(*bucket).or_default() += count;
        }
        self.sketch = all.into_iter().collect();
    }

    fn figures(&self) -> Second {
        Second {
            ok: self.ok,
            failed: self.failed,
            p50_us: self.quantile_us(0.5),
            p99_us: self.quantile_us(0.99),
        }
    }

    fn quantile_us(&self, q: f64) -> Option<f64> {
        let total: u64 = self.sketch.iter().map(|(_, count)| count).sum();
        let rank = ((total as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        let (bucket, _) = self.sketch.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        let low = lowest_of(*bucket as usize * SKETCH_STEP);
        let high = lowest_of((*bucket as usize + 1) * SKETCH_STEP);
        Some((low + high) as f64 / 2e3)
    }
}

/// Index of the bucket that holds `nanos`, at most [`LONGEST`]: exact below 2048, then 1024 buckets
/// for each doubling, as HdrHistogram does for three significant digits.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    let shift = (63 - (nanos | 2047).leading_zeros()) - 10;
    ((shift as usize) << 10) + (nanos >> shift) as usize
}

/// Smallest value of a bucket.
fn lowest_of(index: usize) -> u64 {
    if index < 2048 {
        return index as u64;
    }
    let shift = (index >> 10) - 1;
    (((index & 1023) + 1024) as u64) << shift
}

/// 2^42 ns, about 73 minutes.
const LONGEST: u64 = 1 << 42;
const BUCKETS: usize = 34 * 1024;
const SKETCH_STEP: usize = 16;
const SKETCHED_SECONDS: usize = 3600;
/// Bytes kept of a sampled body.
const SAMPLED_BYTES: usize = 4 << 20;
/// Stalls kept in words; a count of connections that stand still is kept besides.
const KEPT_STALLS: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn answer(started: u64) -> Completion {
        Completion { started: at(started), first_byte: at(started), status: 200, body: 14, unexpected: None }
    }

    #[test]
    fn every_stage_keeps_the_identity() {
        let mut record = Record::new();
        record.started();
        record.started();
        record.completed(&answer(0), at(10));
        record.open_window(at(100));
        record.started();
        record.completed(&answer(0), at(150));
        record.failed(&Fault { phase: Phase::Read, kind: "ECONNRESET".into(), text: String::new() }, 1);
        record.started();
        record.close_window(Some(Span::from_micros(7)));
        record.completed(&answer(160), at(250));
        record.finish(None);
        for counts in &record.stages {
            let r = counts.requests;
            assert_eq!(r.started, r.ok + r.failed + r.unfinished, "{r:?}");
        }
        let window = record.stages[Stage::Window as usize].requests;
        assert_eq!(
            (window.carried_in, window.started, window.ok, window.failed, window.unfinished),
            (1, 3, 1, 1, 1)
        );
        assert_eq!(window.oldest_unfinished_us, Some(7));
        assert_eq!(record.latencies().count(), 1);
    }

    #[test]
    fn a_failed_request_enters_no_latency() {
        let mut record = Record::new();
        record.open_window(at(0));
        record.started();
        record.completed(
            &Completion { unexpected: Some(Unexpected::Status(404)), status: 404, ..answer(0) },
            at(5),
        );
        record.close_window(None);
        assert_eq!(record.latencies().count(), 0);
        assert_eq!(record.stages[1].requests.failed, 1);
        assert_eq!(record.stages[1].statuses[404], 1);
    }

    #[test]
    fn first_bytes_of_whole_responses_are_their_last() {
        let mut record = Record::new();
        record.open_window(at(0));
        for (first, last) in [(1_000, 1_000), (2_000, 50_000)] {
            record.started();
            record.completed(&Completion { first_byte: at(first), ..answer(0) }, at(last));
        }
        record.close_window(None);
        let first = record.first_bytes();
        assert_eq!((first.len(), first.min(), first.max()), (2, 1_000, 2_000));
    }

    #[test]
    fn seconds_are_told_apart_and_merge() {
        let mut a = Record::new();
        a.open_window(at(0));
        a.started();
        a.completed(&answer(0), at(1_000_000));
        a.tick(at(2_500_000_000));
        a.started();
        a.completed(&answer(2_500_000_000), at(2_504_000_000));
        a.close_window(None);
        let mut b = a.clone();
        b.merge(&a);
        let seconds = b.seconds();
        assert_eq!(seconds.iter().map(|s| s.ok).collect::<Vec<_>>(), [2, 0, 2]);
        assert_eq!(seconds[1].p50_us, None);
        let p50 = seconds[2].p50_us.unwrap_or(0.0);
        assert!((p50 - 4000.0).abs() < 0.02 * 4000.0, "{p50}");
    }

    proptest! {
        #[test]
        fn buckets_hold_what_is_put_in_them(nanos in 0..LONGEST) {
            let index = bucket_of(nanos);
            prop_assert!(index < BUCKETS);
            prop_assert!(lowest_of(index) <= nanos && nanos < lowest_of(index + 1));
            // Three significant digits.
            prop_assert!((lowest_of(index + 1) - lowest_of(index)) as f64 <= (nanos as f64 / 1000.0).max(1.0));
        }

        #[test]
        fn a_histogram_has_the_same_quantiles_as_the_samples(mut samples in prop::collection::vec(1..LONGEST, 1..200)) {
            let mut latencies = Latencies::new();
            for nanos in &samples {
                latencies.record(Span::from_nanos(*nanos));
            }
            samples.sort_unstable();
            let histogram = latencies.to_histogram();
            prop_assert_eq!(histogram.len(), samples.len() as u64);
            for q in [0.5, 0.9, 0.99] {
                let rank = ((samples.len() as f64 * q).ceil() as usize).max(1);
                let exact = samples[rank - 1];
                prop_assert!(histogram.equivalent(histogram.value_at_quantile(q), exact), "{} {}", q, exact);
            }
        }
    }
}
