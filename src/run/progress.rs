//! Owns what a user sees while a run goes on, on standard error: on a terminal a bar with the time
//! left, elsewhere one line for each cell. Estimating that time is pure.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::schedule::Visit;
use crate::clock;
use crate::results::{
    CellStatus, GateOutcome, GateRecord, ProbeFigure, ProbeRecord, RoundRecord, SectionKind, Summary, Verdict,
};
use crate::scenario::Scenario;
use crate::time::{Instant, Span};
use crate::units::{format_duration, group_thousands};

/// Shows how far a run is.
pub(crate) struct Progress {
    out: Out,
    cells: usize,
    done: usize,
    estimate: Estimate,
    /// When the run is expected to end, in nanoseconds of the monotonic clock; 0 while unknown.
    ends_at: Arc<AtomicU64>,
}

enum Out {
    Bar(ProgressBar),
    Lines(Box<dyn Write>),
}

impl Progress {
    /// On standard error: a bar on a terminal, lines elsewhere.
    pub(crate) fn on_stderr() -> Self {
        let stderr = std::io::stderr();
        if stderr.is_terminal() { Self::bar() } else { Self::lines(Box::new(stderr)) }
    }

    /// One line for each thing worth knowing.
    pub(crate) fn lines(out: Box<dyn Write>) -> Self {
        Self::new(Out::Lines(out))
    }

    fn bar() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(BEFORE) {
            bar.set_style(style);
        }
        // Once a second is enough for a countdown, and too little to disturb a measurement.
        bar.enable_steady_tick(std::time::Duration::from_secs(1));
        Self::new(Out::Bar(bar))
    }

    fn measuring_style(&self) -> Option<ProgressStyle> {
        let shared = self.ends_at.clone();
        let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let ends_at = shared.load(Ordering::Relaxed);
            let left = Instant::from_nanos(ends_at).since(clock::now());
            let _ = match ends_at {
                0 => Ok(()),
                _ => write!(out, "{} left", format_duration(whole_seconds(left))),
            };
        };
        let style = ProgressStyle::with_template(BAR).ok()?;
        Some(style.with_key("left", left).progress_chars("━╸─"))
    }

    fn new(out: Out) -> Self {
        Self { out, cells: 0, done: 0, estimate: Estimate::default(), ends_at: Arc::default() }
    }

    /// Measuring begins: so many cells, whose load takes `planned` in all.
    pub(crate) fn begin(&mut self, cells: usize, planned: Span) {
        self.cells = cells;
        self.estimate = Estimate { began: clock::now(), planned, done: Span::ZERO };
        self.foresee();
        if let (Out::Bar(bar), Some(style)) = (&self.out, self.measuring_style()) {
            bar.set_style(style);
            bar.set_length(cells as u64);
        }
    }

    /// Says something that stays on the screen.
    pub(crate) fn say(&mut self, text: &str) {
        match &mut self.out {
            Out::Bar(bar) => bar.println(text),
            // A reader that went away is no reason to stop measuring.
            Out::Lines(out) => drop(writeln!(out, "{text}")),
        }
    }

    /// Says what is going on now: part of the bar, or nothing.
    pub(crate) fn now(&mut self, text: &str) {
        if let Out::Bar(bar) = &self.out {
            bar.set_message(text.to_owned());
        }
    }

    /// A cell has its outcome. `planned` is the load it was to take.
    pub(crate) fn cell(&mut self, name: &str, outcome: &str, failed: bool, planned: Span) {
        self.done += 1;
        self.estimate.done = self.estimate.done + planned;
        self.foresee();
        let line = format!("[{}/{}] {name}: {outcome}", self.done, self.cells);
        match &self.out {
            Out::Bar(bar) => {
                bar.set_position(self.done as u64);
                if failed {
                    bar.println(line);
                }
            }
            Out::Lines(_) => self.say(&line),
        }
    }

    /// Nothing more will be shown.
    pub(crate) fn end(&mut self) {
        if let Out::Bar(bar) = &self.out {
            bar.finish_and_clear();
        }
    }

    fn foresee(&self) {
        let now = clock::now();
        self.ends_at.store((now + self.estimate.left(now)).as_nanos(), Ordering::Relaxed);
    }
}

/// How long the rest of a run takes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Estimate {
    began: Instant,
    /// Load of all cells.
    planned: Span,
    /// Load of the cells done.
    done: Span,
}

impl Estimate {
    /// The load still to come, stretched by what the run has taken beyond its load so far: starts,
    /// stops, and saving.
    fn left(&self, now: Instant) -> Span {
        let left = self.planned.as_secs_f64() - self.done.as_secs_f64();
        let stretch = match self.done.as_secs_f64() {
            0.0 => 1.0,
            done => (now.since(self.began).as_secs_f64() / done).max(1.0),
        };
        Span::from_nanos((left.max(0.0) * stretch * 1e9) as u64)
    }
}

/// A visit as users name it, e.g. `nginx h1 50x1 round 1`.
pub(crate) fn name(scenario: &Scenario, visit: &Visit) -> String {
    let (server, cell) = (&scenario.servers[visit.server].name, visit.cell);
    let by = cell.generator.map(|index| format!(" by {}", scenario.generators[index].name));
    format!("{server} {} {cell}{} round {}", visit.protocol.name(), by.unwrap_or_default(), visit.round)
}

/// What came of a probe, in one line.
pub(crate) fn probed(probe: &ProbeRecord) -> String {
    let figure = |figure: &ProbeFigure| {
        let value = figure.value.map_or_else(|| "n/a".to_owned(), |value| value.to_string());
        format!("{} {value} {}", figure.name, figure.unit).trim_end().to_owned()
    };
    let figures: Vec<String> = probe.figures.iter().map(figure).collect();
    let said = match &probe.reason {
        Some(reason) => format!("{}: {reason}", status_name(probe.status)),
        None => figures.join(", "),
    };
    format!("probe {}: {said}", probe.name)
}

/// What came of a gate, in one line.
pub(crate) fn gated(server: &str, gate: &GateRecord) -> String {
    let word = match gate.outcome {
        GateOutcome::Passed => "passed",
        GateOutcome::Failed => "FAIL",
        GateOutcome::NotRun => "not run",
    };
    let reason = gate.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{server}: gate {word}{reason}")
}

/// A round in one line: its figures and verdict, or why there are none.
pub(crate) fn outcome(round: &RoundRecord, kind: SectionKind, summary: &Summary) -> String {
    if round.status == CellStatus::Measured {
        return figures(kind, summary);
    }
    let word = status_name(round.status);
    match &round.reason {
        Some(reason) => format!("{word}: {reason}"),
        None => word.into(),
    }
}

fn status_name(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Measured => "measured",
        CellStatus::Failed | CellStatus::WrongProtocol => "FAIL",
        CellStatus::Interrupted => "interrupted",
        CellStatus::Absent => "n/a",
        CellStatus::Pending => "pending",
    }
}

fn figures(kind: SectionKind, summary: &Summary) -> String {
    let unit = match kind {
        SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Ratio => "req/s",
        SectionKind::Setup | SectionKind::Handshake => "conn/s",
    };
    let times = summary.handshake.as_ref().filter(|_| kind == SectionKind::Handshake);
    let (rate, p50) = match times {
        Some(times) => (times.connections_per_second.map(|m| m.value), times.p50_us.map(|m| m.value)),
        None => (summary.requests_per_second, summary.latency_us.get("50").copied().flatten()),
    };
    let mut parts = Vec::new();
    if let Some(rate) = rate {
        parts.push(format!("{} {unit}", group_thousands(rate.round() as u64)));
    }
    if let Some(p50) = p50 {
        let of = if times.is_some() { "handshake " } else { "" };
        parts.push(format!("{of}p50 {:.2} ms", p50 / 1e3));
    }
    if let Some(cpu) = summary.server_cpu_us_per_request {
        parts.push(format!("server {cpu:.1} µs/req"));
    }
    parts.push(verdict_name(summary.verdict).into());
    if summary.verdict != Verdict::Valid {
        parts.extend(summary.reasons.first().cloned());
    }
    parts.join(", ")
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "valid",
        Verdict::Starved => "starved",
        Verdict::GeneratorBound => "generator-bound",
        Verdict::Unstable => "unstable",
        Verdict::Tainted => "tainted",
        Verdict::WrongProtocol => "wrong-protocol",
        Verdict::Interrupted => "interrupted",
        Verdict::Failed => "failed",
        Verdict::Absent => "n/a",
    }
}

fn whole_seconds(span: Span) -> Span {
    Span::from_secs(span.as_nanos().div_ceil(1_000_000_000))
}

/// Before anything is measured: what goes on.
const BEFORE: &str = "{spinner} {wide_msg}";

/// The bar: how far, how long, what now.
const BAR: &str = "{bar:30} {pos}/{len} cells, {left}  {wide_msg}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_learns_from_the_time_taken() {
        let at = |secs: u64| Instant::from_nanos(secs * 1_000_000_000);
        let estimate = |planned, done| Estimate {
            began: at(100),
            planned: Span::from_secs(planned),
            done: Span::from_secs(done),
        };
        assert_eq!(estimate(60, 0).left(at(100)), Span::from_secs(60), "nothing learnt yet");
        assert_eq!(estimate(60, 20).left(at(120)), Span::from_secs(40), "as planned");
        assert_eq!(estimate(60, 20).left(at(125)), Span::from_secs(50), "a quarter slower");
        assert_eq!(
            estimate(60, 20).left(at(110)),
            Span::from_secs(40),
            "cells that failed fast teach nothing"
        );
        assert_eq!(estimate(60, 80).left(at(200)), Span::ZERO);
    }
}
