//! Owns one cell: the generator is heard, the server is sampled exactly at the edges of the window,
//! and whatever happens there is an outcome when the cell's deadline has come.
//!
//! The clock, the generator and the sampler are passed in, so every way a cell can go wrong is
//! tested without a server and without waiting.

use super::generator::{Heard, Link};
use crate::load::plan::{Event, Limit, LoadPlan};
use crate::results::{Answer, ErrorCount, ExternalRun, Measurement, Phase, ServerSample};
use crate::sampler::{self, TreeSampler, TreeSnapshot};
use crate::time::{Instant, Span};
use crate::units::format_duration;

/// Reads what a server has used so far; [`TreeSampler`], or a fake.
pub(crate) trait Sampling {
    /// Everything read at one instant.
    type Snapshot;

    /// Reads it now.
    fn snapshot(&mut self) -> Self::Snapshot;

    /// What was used between two snapshots, meant for the edges `opened` and `closed`, while `ok`
    /// responses were counted; `None` when nothing is sampled at all.
    fn difference(
        open: &Self::Snapshot,
        close: &Self::Snapshot,
        opened: Instant,
        closed: Instant,
        ok: u64,
    ) -> Option<ServerSample>;
}

impl Sampling for TreeSampler {
    type Snapshot = TreeSnapshot;

    fn snapshot(&mut self) -> TreeSnapshot {
        TreeSampler::snapshot(self)
    }

    fn difference(
        open: &TreeSnapshot,
        close: &TreeSnapshot,
        opened: Instant,
        closed: Instant,
        ok: u64,
    ) -> Option<ServerSample> {
        Some(sampler::difference(open, close, opened, closed, ok))
    }
}

/// What one cell came to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Watched {
    /// How it ended.
    pub(crate) ending: Ending,
    /// What the generator measured, also when the cell counts as failed.
    pub(crate) measurement: Option<Box<Measurement>>,
    /// What the server used in the window; `None` when an edge was missed.
    pub(crate) sample: Option<ServerSample>,
    /// What a generator said that was run as a command, and the last lines of its output.
    pub(crate) external: Option<(Box<ExternalRun>, Vec<String>)>,
    /// What the server answered before the window, where that was looked at.
    pub(crate) answer: Option<Answer>,
}

/// How a cell ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// With a measurement of the whole window.
    Measured,
    /// Cut short because the run is to stop.
    Cut(String),
    /// Without a usable measurement.
    Failed(String),
    /// The generator says that it cannot work here at all, and what to do about it.
    Refused(String),
}

/// How long a cell may take from the spawn of its generator: connecting, warm-up, window and drain,
/// and `grace` beyond. A window that a count ends gets `count_allowance`.
pub(crate) fn time_allowed(plan: &LoadPlan, grace: Span, count_allowance: Span) -> Span {
    let connecting = (0..plan.target.addresses.len().max(1))
        .fold(Span::ZERO, |sum, _| sum + Span::from_nanos(plan.connect_timeout_ns));
    let window = match plan.limit {
        Limit::DurationNs(nanos) => Span::from_nanos(nanos),
        Limit::Requests(_) => count_allowance,
    };
    connecting + Span::from_nanos(plan.warmup_ns) + window + Span::from_nanos(plan.drain_ns) + grace
}

/// Hears `link` to its end, `allowed` from now at the latest, and samples the server meanwhile.
/// `drain` is how long an interrupted generator may still wait for answers. The generator has ended
/// when this returns.
pub(crate) fn watch<S: Sampling>(
    link: &mut impl Link,
    sampling: &mut S,
    allowed: Span,
    drain: Span,
) -> Watched {
    let mut deadline = link.now() + allowed;
    let mut edges = Edges::<S>::default();
    let mut cut = None;
    loop {
        let now = link.now();
        edges.take_due(now, sampling);
        if now >= deadline {
            link.end(false);
            let late = format!("the generator did not finish within {}", format_duration(allowed));
            return Watched::without(cut.map_or(Ending::Failed(late), Ending::Cut));
        }
        let until = edges.next().map_or(deadline, |edge| edge.min(deadline));
        match link.hear(until, cut.is_none()) {
            Heard::Quiet | Heard::Event(Event::Connected { .. }) => {}
            Heard::Event(Event::Window { opens_at_ns, closes_at_ns }) => {
                edges.opens = Some(Instant::from_nanos(opens_at_ns));
                edges.closes = closes_at_ns.map(Instant::from_nanos);
            }
            Heard::Event(Event::WindowClosed { closed_at_ns }) => {
                edges.closes = Some(Instant::from_nanos(closed_at_ns));
            }
            Heard::Event(Event::Measurement(measurement)) => {
                edges.close(link.now(), sampling);
                link.end(true);
                return conclude::<S>(measurement, &edges, cut);
            }
            Heard::Event(Event::Error { message }) => {
                link.end(true);
                return Watched::without(Ending::Refused(message));
            }
            Heard::Garbage(problem) => {
                link.end(false);
                return Watched::without(Ending::Failed(format!("the generator printed {problem}")));
            }
            Heard::Ended(status) => {
                let ended = format!("the generator ended without a measurement ({status})");
                return Watched::without(cut.map_or(Ending::Failed(ended), Ending::Cut));
            }
            Heard::Halted(reason) => {
                link.interrupt();
                deadline = deadline.min(link.now() + drain + HALT_GRACE);
                cut = Some(reason);
            }
        }
    }
}

impl Watched {
    /// An ending without a measurement.
    pub(crate) fn without(ending: Ending) -> Self {
        Self { ending, measurement: None, sample: None, external: None, answer: None }
    }
}

/// The edges of the window, as announced, and what was sampled at them.
struct Edges<S: Sampling> {
    opens: Option<Instant>,
    closes: Option<Instant>,
    opening: Option<S::Snapshot>,
    closing: Option<S::Snapshot>,
}

impl<S: Sampling> Default for Edges<S> {
    fn default() -> Self {
        Self { opens: None, closes: None, opening: None, closing: None }
    }
}

impl<S: Sampling> Edges<S> {
    /// The edge to be sampled next.
    fn next(&self) -> Option<Instant> {
        match (&self.opening, &self.closing) {
            (None, _) => self.opens,
            (Some(_), None) => self.closes,
            (Some(_), Some(_)) => None,
        }
    }

    /// Samples the edge that has come.
    fn take_due(&mut self, now: Instant, sampling: &mut S) {
        if self.next().is_some_and(|edge| edge <= now) {
            let slot = if self.opening.is_none() { &mut self.opening } else { &mut self.closing };
            *slot = Some(sampling.snapshot());
        }
    }

    /// Samples a closing edge that was never announced, when the measurement is already there.
    fn close(&mut self, now: Instant, sampling: &mut S) {
        self.closes.get_or_insert(now);
        if self.opening.is_some() && self.closing.is_none() {
            self.closing = Some(sampling.snapshot());
        }
    }
}

/// The outcome of a cell whose generator measured.
fn conclude<S: Sampling>(measurement: Box<Measurement>, edges: &Edges<S>, cut: Option<String>) -> Watched {
    let sample = match (&edges.opening, &edges.closing, edges.opens, edges.closes) {
        (Some(opening), Some(closing), Some(opens), Some(closes)) => {
            // The measurement knows the edges best; what was announced stands in where it is silent.
            let window = &measurement.window;
            let opened = window.opened_at_ns.map_or(opens, Instant::from_nanos);
            let closed = window.closed_at_ns.map_or(closes, Instant::from_nanos);
            S::difference(opening, closing, opened, closed, measurement.requests.ok)
        }
        _ => None,
    };
    // A request to stop that came too late to cut anything leaves a whole measurement.
    let ending = if measurement.interrupted {
        Ending::Cut(cut.unwrap_or_else(|| "the generator was interrupted from outside".into()))
    } else {
        unusable(&measurement).map_or(Ending::Measured, Ending::Failed)
    };
    Watched { ending, measurement: Some(measurement), sample, external: None, answer: None }
}

/// Why a measurement says nothing about the server, when it does not: no window, or no response in
/// it that was as expected.
fn unusable(measurement: &Measurement) -> Option<String> {
    let window = &measurement.window;
    let what = match (window.opened_at_ns, measurement.requests.ok) {
        (None, _) if measurement.connection.opened == 0 => "no connection came up",
        (None, _) => "the window never opened",
        (Some(_), 0) => "no response in the window was as expected",
        (Some(_), _) => return None,
    };
    Some(match errors_in_words(&measurement.errors) {
        words if words.is_empty() => what.into(),
        words => format!("{what}: {words}"),
    })
}

/// The most frequent errors as one phrase, e.g. `12 x status (404 Not Found)`; empty without any.
pub(crate) fn errors_in_words(errors: &[ErrorCount]) -> String {
    let one = |error: &ErrorCount| {
        let example = error.example.as_ref().map_or(String::new(), |example| format!(" ({example})"));
        format!("{} x {} {}{example}", error.count, phase_in_words(error.phase), error.kind)
    };
    errors.iter().take(SHOWN_ERRORS).map(one).collect::<Vec<_>>().join(", ")
}

fn phase_in_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "connect",
        Phase::Tls => "TLS",
        Phase::Quic => "QUIC",
        Phase::Write => "write",
        Phase::Read => "read",
        Phase::Framing => "framing",
        Phase::Timeout => "timeout",
        Phase::Unexpected => "unexpected",
        Phase::Interrupted => "interrupted",
        Phase::Refused => "refused",
    }
}

/// Kinds of errors named in one phrase.
const SHOWN_ERRORS: usize = 3;

/// What an interrupted generator gets beyond its drain to print what it measured.
const HALT_GRACE: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::run::fixture;

    /// A generator that says each line at its time, under a clock that only waiting moves.
    #[derive(Default)]
    struct Script {
        now: u64,
        lines: VecDeque<(u64, Heard)>,
        halt_at: Option<u64>,
        /// What it says when it is interrupted, and how much later.
        on_interrupt: Option<(u64, Heard)>,
        interrupted: bool,
        ended: Option<bool>,
    }

    impl Script {
        fn new(lines: impl IntoIterator<Item = (u64, Heard)>) -> Self {
            Self { lines: lines.into_iter().collect(), ..Self::default() }
        }
    }

    impl Link for Script {
        fn now(&self) -> Instant {
            Instant::from_nanos(self.now)
        }

        fn hear(&mut self, until: Instant, heed_halt: bool) -> Heard {
            let until = until.as_nanos();
            let line = self.lines.front().map(|line| line.0).filter(|at| *at <= until);
            match self.halt_at.filter(|at| heed_halt && *at <= until && line.is_none_or(|line| *at < line)) {
                Some(at) => {
                    self.now = self.now.max(at);
                    Heard::Halted("interrupted by SIGINT".into())
                }
                None => match line {
                    Some(at) => {
                        self.now = self.now.max(at);
                        self.lines.pop_front().expect("there is a line").1
                    }
                    None => {
                        self.now = self.now.max(until);
                        Heard::Quiet
                    }
                },
            }
        }

        fn interrupt(&mut self) {
            self.interrupted = true;
            self.lines = self
                .on_interrupt
                .take()
                .map(|(after, heard)| (self.now + after, heard))
                .into_iter()
                .collect();
        }

        fn end(&mut self, said_all: bool) {
            self.ended = Some(said_all);
        }
    }

    /// A sampler that counts its snapshots, so that a sample tells which two it is made of.
    #[derive(Default)]
    struct Counter(u64);

    impl Sampling for Counter {
        type Snapshot = u64;

        fn snapshot(&mut self) -> u64 {
            self.0 += 1;
            self.0
        }

        fn difference(
            open: &u64,
            close: &u64,
            opened: Instant,
            closed: Instant,
            ok: u64,
        ) -> Option<ServerSample> {
            Some(ServerSample {
                cpu_user_us: *open,
                cpu_system_us: *close,
                cpu_schedstat_us: None,
                cpu_us_per_request: Some(ok as f64),
                cpu_us_per_request_schedstat: None,
                opening_offset_us: opened.as_nanos() as i64,
                closing_offset_us: closed.as_nanos() as i64,
                processes: 1,
                threads: 1,
                rss_kib: 0,
                peak_rss_kib: 0,
                anonymous_kib: 0,
                voluntary_switches: 0,
                involuntary_switches: 0,
                cpus_busy: None,
                busiest_thread: None,
                listen_overflows: None,
                udp_drops: None,
            })
        }
    }

    const ALLOWED: Span = Span::from_nanos(10_000);
    const DRAIN: Span = Span::from_nanos(50);

    fn connected() -> Heard {
        Heard::Event(Event::Connected { up: 1, of: 1, address: "127.0.0.1:1".into() })
    }

    fn window(opens: u64, closes: Option<u64>) -> Heard {
        Heard::Event(Event::Window { opens_at_ns: opens, closes_at_ns: closes })
    }

    fn measured(opened: u64, closed: u64, change: impl FnOnce(&mut Measurement)) -> Heard {
        let mut measurement = fixture::measurement(7);
        measurement.window.opened_at_ns = Some(opened);
        measurement.window.closed_at_ns = Some(closed);
        change(&mut measurement);
        Heard::Event(Event::Measurement(Box::new(measurement)))
    }

    #[test]
    fn the_server_is_sampled_at_both_edges() {
        let mut script =
            Script::new([(5, connected()), (6, window(100, Some(200))), (230, measured(100, 200, |_| {}))]);
        let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
        assert_eq!(watched.ending, Ending::Measured);
        let sample = watched.sample.expect("both edges were seen");
        assert_eq!((sample.cpu_user_us, sample.cpu_system_us), (1, 2));
        assert_eq!((sample.opening_offset_us, sample.closing_offset_us), (100, 200));
        assert_eq!(sample.cpu_us_per_request, Some(7.0));
        assert_eq!(script.ended, Some(true));
    }

    #[test]
    fn a_count_is_sampled_when_it_is_reached() {
        let closed = Heard::Event(Event::WindowClosed { closed_at_ns: 150 });
        let mut script =
            Script::new([(6, window(100, None)), (151, closed), (160, measured(100, 150, |_| {}))]);
        let mut counter = Counter::default();
        let watched = watch(&mut script, &mut counter, ALLOWED, DRAIN);
        assert_eq!(watched.sample.map(|sample| sample.closing_offset_us), Some(150));
        assert_eq!(counter.0, 2);
    }

    #[test]
    fn a_measurement_without_a_window_has_no_sample() {
        let no_window = |m: &mut Measurement| {
            m.window.opened_at_ns = None;
            m.requests.ok = 0;
            m.errors = vec![ErrorCount {
                phase: Phase::Connect,
                kind: "ECONNREFUSED".into(),
                count: 4,
                requests: 0,
                example: None,
            }];
        };
        let mut script = Script::new([(5, measured(0, 0, no_window))]);
        let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
        let reason = "no connection came up: 4 x connect ECONNREFUSED";
        assert_eq!(watched.ending, Ending::Failed(reason.into()));
        assert_eq!(watched.sample, None);
        assert!(watched.measurement.is_some(), "the raw figures are kept");
    }

    #[test]
    fn a_window_without_an_expected_response_fails() {
        let all_404 = |m: &mut Measurement| {
            m.requests.ok = 0;
            m.errors = vec![ErrorCount {
                phase: Phase::Unexpected,
                kind: "status".into(),
                count: 9,
                requests: 9,
                example: Some("404 Not Found".into()),
            }];
        };
        let mut script = Script::new([(6, window(100, Some(200))), (230, measured(100, 200, all_404))]);
        let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
        let reason = "no response in the window was as expected: 9 x unexpected status (404 Not Found)";
        assert_eq!(watched.ending, Ending::Failed(reason.into()));
        assert!(watched.sample.is_some());
    }

    #[test]
    fn every_way_to_say_nothing_useful_is_a_reason() {
        let error = Heard::Event(Event::Error { message: "io_uring is refused".into() });
        for (lines, ending, said_all) in [
            (vec![], Ending::Failed("the generator did not finish within 10us".into()), Some(false)),
            (
                vec![(6, window(100, Some(200)))],
                Ending::Failed("the generator did not finish within 10us".into()),
                Some(false),
            ),
            (
                vec![(3, Heard::Garbage("`x` is no event".into()))],
                Ending::Failed("the generator printed `x` is no event".into()),
                Some(false),
            ),
            (
                vec![(3, connected()), (9, Heard::Ended("signal: 11".into()))],
                Ending::Failed("the generator ended without a measurement (signal: 11)".into()),
                None,
            ),
            (vec![(3, error)], Ending::Refused("io_uring is refused".into()), Some(true)),
        ] {
            let mut script = Script::new(lines);
            let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
            assert_eq!(watched, Watched::without(ending));
            assert_eq!(script.ended, said_all);
            assert!(script.now <= ALLOWED.as_nanos());
        }
    }

    #[test]
    fn an_endless_talker_meets_its_deadline() {
        let mut script = Script::new((0..20_000).map(|at| (at, connected())));
        let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
        assert!(matches!(watched.ending, Ending::Failed(_)));
        assert_eq!(script.now, ALLOWED.as_nanos());
    }

    #[test]
    fn an_interrupt_keeps_what_was_measured() {
        let mut script = Script::new([(6, window(100, Some(200)))]);
        script.halt_at = Some(150);
        script.on_interrupt = Some((10, measured(100, 150, |m| m.interrupted = true)));
        let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
        assert!(script.interrupted);
        assert_eq!(watched.ending, Ending::Cut("interrupted by SIGINT".into()));
        assert_eq!(watched.sample.map(|sample| sample.closing_offset_us), Some(150));
        assert!(watched.measurement.is_some());
    }

    #[test]
    fn an_interrupted_generator_that_says_nothing_is_not_waited_for() {
        let mut script = Script::new([(6, window(100, Some(9_000)))]);
        script.halt_at = Some(150);
        let watched = watch(&mut script, &mut Counter::default(), Span::from_secs(3600), DRAIN);
        assert_eq!(watched, Watched::without(Ending::Cut("interrupted by SIGINT".into())));
        assert_eq!(script.ended, Some(false));
        assert_eq!(script.now, 150 + (DRAIN + HALT_GRACE).as_nanos());
    }

    #[test]
    fn an_interrupt_that_comes_too_late_leaves_a_whole_measurement() {
        let mut script = Script::new([(6, window(100, Some(200)))]);
        script.halt_at = Some(210);
        script.on_interrupt = Some((1, measured(100, 200, |_| {})));
        let watched = watch(&mut script, &mut Counter::default(), ALLOWED, DRAIN);
        assert_eq!(watched.ending, Ending::Measured);
    }

    #[test]
    fn the_time_allowed_is_the_sum_of_its_parts() {
        let scenario = fixture::scenario(1, &["a"], &[&[crate::results::Protocol::H1]], &[1]);
        let visit = crate::run::schedule::visits(&scenario)[0];
        let ports = crate::server::Ports { http: 1, https: 2 };
        let mut plan = crate::run::plan::cell(&scenario, &visit, ports);
        let (grace, count) = (Span::from_secs(2), Span::from_secs(60));
        assert_eq!(time_allowed(&plan, grace, count), Span::from_millis(1000 + 20 + 100 + 50 + 2000));
        plan.limit = Limit::Requests(5);
        assert_eq!(time_allowed(&plan, grace, count), Span::from_millis(1000 + 20 + 60_000 + 50 + 2000));
        plan.limit = Limit::DurationNs(u64::MAX);
        let _saturates = time_allowed(&plan, grace, count);
    }
}
