//! Owns which marks a cell carries, what each says, and which figures of a column win. Pure.

use super::quic::Health;
use super::verdict::{approximate, stream_limit};
use super::{CellRecord, GateOutcome, SectionKind, ServerRecord, Settings, Verdict, handshake};

/// A figure of a cell's summary.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Figure {
    /// Ok responses per second.
    Rate,
    /// A latency percentile.
    Latency(f64),
    /// Server CPU per ok response.
    Cpu,
    /// Generator CPU per ok response.
    GeneratorCpu,
    /// Handshakes per second.
    Connections,
    /// Time to establish a connection.
    Setup(SetupTime),
    /// Median time from the beginning of a connection to its first response.
    FirstResponse,
    /// Server CPU per connection.
    CpuPerConnection,
}

/// Which of the times of a cell's connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupTime {
    /// The shortest.
    Least,
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
}

impl Figure {
    /// True for rates, of which the highest is best; of anything else it is the lowest.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Self::Rate | Self::Connections)
    }

    /// True for what a request or a connection costs the server.
    pub(crate) fn is_cpu(self) -> bool {
        matches!(self, Self::Cpu | Self::GeneratorCpu | Self::CpuPerConnection)
    }

    /// True for figures of single connections.
    fn is_of_connections(self) -> bool {
        matches!(self, Self::Connections | Self::Setup(_) | Self::FirstResponse | Self::CpuPerConnection)
    }
}

/// A sign beside a figure that says why it cannot be taken at its face value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mark {
    /// The closed loop was starved.
    Starved,
    /// The generator was the limit.
    GeneratorBound,
    /// Rounds differ by more than the threshold.
    Unstable,
    /// Requests failed.
    Tainted,
    /// The server allowed fewer requests on a connection than the cell asks for.
    Limited,
    /// Datagrams were dropped or lost on the way.
    Datagrams,
    /// Some handshakes were of another kind than asked for.
    OtherHandshakes,
    /// Some rounds have no measurement.
    FewerRounds,
}

impl Mark {
    /// Every mark, in the order of the legend.
    pub const ALL: [Self; 8] = [
        Self::Starved,
        Self::GeneratorBound,
        Self::Unstable,
        Self::Tainted,
        Self::Limited,
        Self::Datagrams,
        Self::OtherHandshakes,
        Self::FewerRounds,
    ];

    /// The sign.
    pub fn sign(self) -> char {
        match self {
            Self::Starved => '‡',
            Self::GeneratorBound => '§',
            Self::Unstable => '†',
            Self::Tainted => '¶',
            Self::Limited => '◊',
            Self::Datagrams => '¤',
            Self::OtherHandshakes => '∂',
            Self::FewerRounds => '°',
        }
    }

    /// One word or two, as footnotes begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starved => "starved",
            Self::GeneratorBound => "generator-bound",
            Self::Unstable => "unstable",
            Self::Tainted => "tainted",
            Self::Limited => "fewer streams",
            Self::Datagrams => "datagrams lost",
            Self::OtherHandshakes => "other handshakes among them",
            Self::FewerRounds => "rounds missing",
        }
    }

    /// What it means, for the legend.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Starved => {
                "closed-loop starved: fewer requests were in flight than the cell offers (req/s × mean \
                 latency, Little's law), so its latencies describe a lighter load and win nothing"
            }
            Self::GeneratorBound => {
                "the load generator was at its limit and the server was not: rate and latencies are a \
                 floor of what the server can do; they win nothing, and nothing they beat wins"
            }
            Self::Unstable => {
                "the rounds differ by more than the threshold, so the median may not repeat; wins nothing"
            }
            Self::Tainted => {
                "over 0.1 % of the requests failed or were answered otherwise than expected; wins nothing"
            }
            Self::Limited => {
                "the server allows fewer concurrent requests on a connection than the cell asks for (M), so \
                 its latencies are those of a smaller cell and win nothing; its rate is what it gave"
            }
            Self::Datagrams => {
                "UDP datagrams were dropped at a socket whose buffer was full, or over 0.1 % of the packets \
                 were lost: rate and latencies hold the time to notice and to send again, and are a floor"
            }
            Self::OtherHandshakes => {
                "some handshakes were of another kind than the column says, which can only make its figures \
                 worse"
            }
            Self::FewerRounds => "some rounds have no measurement; the figure is the median of the others",
        }
    }

    /// Whether a figure carries this mark. A mark stands on every figure it keeps from winning:
    /// starvation discredits latencies alone, because the rate is still what the server gave, while
    /// in a `setup` section the rate is all there is and is not the server's when the generator did
    /// not keep it busy. A server that allows fewer streams chose so: its rate is its own and may win,
    /// its latencies are those of another cell; the mark stands on both. Lost datagrams and handshakes
    /// of a costlier kind can only make figures worse: they are told, and a best in spite of them is
    /// one. Missing rounds keep nothing from winning and stand on the rate.
    pub fn covers(self, figure: Figure, kind: SectionKind) -> bool {
        match self {
            Self::Starved => kind == SectionKind::Setup || matches!(figure, Figure::Latency(_)),
            Self::FewerRounds => figure.is_rate(),
            // How hard a server is driven hardly changes what a request costs it.
            Self::GeneratorBound | Self::Limited | Self::Datagrams => !figure.is_cpu(),
            Self::OtherHandshakes => kind == SectionKind::Setup || figure.is_of_connections(),
            Self::Unstable | Self::Tainted => true,
        }
    }

    /// Whether a figure that carries this mark is kept from winning by it.
    fn keeps_from_winning(self, figure: Figure) -> bool {
        match self {
            Self::FewerRounds | Self::Datagrams | Self::OtherHandshakes => false,
            Self::Limited => figure != Figure::Rate,
            Self::Starved | Self::GeneratorBound | Self::Unstable | Self::Tainted => true,
        }
    }
}

/// The marks of a cell, in the order of the legend; none for a cell without figures.
pub fn marks(cell: &CellRecord, settings: &Settings) -> Vec<Mark> {
    let summary = &cell.summary;
    if summary.rounds_measured == 0 {
        return Vec::new();
    }
    let holds = |mark: &Mark| match mark {
        Mark::Starved => summary.verdicts.contains(&Verdict::Starved),
        Mark::GeneratorBound => summary.verdicts.contains(&Verdict::GeneratorBound),
        Mark::Unstable => summary.verdicts.contains(&Verdict::Unstable),
        Mark::Tainted => summary.verdicts.contains(&Verdict::Tainted),
        Mark::Limited => limit(cell).is_some(),
        Mark::Datagrams => trouble(cell).is_some(),
        Mark::OtherHandshakes => handshake::others(cell).is_some(),
        Mark::FewerRounds => summary.rounds_measured < settings.rounds,
    };
    Mark::ALL.into_iter().filter(holds).collect()
}

/// The marks one figure of a cell carries.
pub fn marks_of(figure: Figure, cell: &CellRecord, kind: SectionKind, settings: &Settings) -> Vec<Mark> {
    marks(cell, settings).into_iter().filter(|mark| mark.covers(figure, kind)).collect()
}

/// The signs of marks, as they stand behind a figure.
pub(crate) fn signs(marks: &[Mark]) -> String {
    marks.iter().map(|mark| mark.sign()).collect()
}

/// Whether a figure may be the best of its column.
pub fn may_win(figure: Figure, cell: &CellRecord, kind: SectionKind, settings: &Settings) -> bool {
    let usable = matches!(
        cell.summary.verdict,
        Verdict::Valid | Verdict::Starved | Verdict::GeneratorBound | Verdict::Unstable | Verdict::Tainted
    );
    usable && !marks_of(figure, cell, kind, settings).iter().any(|mark| mark.keeps_from_winning(figure))
}

/// The sign beside a server that failed its gate.
pub const GATE: char = '✗';

/// What [`GATE`] means, for the legend.
pub const GATE_MEANING: &str = "the server failed its gate: whatever its figures, it is best nowhere";

/// True when a server is kept from winning anywhere by its gate. One that was not run keeps nothing.
pub fn gate_failed(server: &ServerRecord) -> bool {
    server.gate.as_ref().is_some_and(|gate| gate.outcome == GateOutcome::Failed)
}

/// Why a gate failed, in words.
pub fn gate_reason(server: &ServerRecord) -> String {
    let gate = server.gate.as_ref().filter(|_| gate_failed(server));
    gate.and_then(|gate| gate.reason.clone()).unwrap_or_default()
}

/// The better of two figures of a column: the higher rate, the lower of anything else.
pub fn better(figure: Figure, a: f64, b: f64) -> f64 {
    if figure.is_rate() { a.max(b) } else { a.min(b) }
}

/// What a footnote says of a marked cell, after its name: `~72.6 in flight`.
pub fn detail(mark: Mark, cell: &CellRecord) -> String {
    let summary = &cell.summary;
    let reason_of = |verdict: Verdict| {
        let at = summary.verdicts.iter().position(|v| *v == verdict);
        at.and_then(|at| summary.reasons.get(at)).cloned().unwrap_or_default()
    };
    match mark {
        Mark::Starved => summary.in_flight.map_or_else(
            || reason_of(Verdict::Starved),
            |in_flight| format!("{} in flight", approximate(in_flight)),
        ),
        Mark::GeneratorBound => reason_of(Verdict::GeneratorBound),
        Mark::Unstable => reason_of(Verdict::Unstable),
        Mark::Tainted => reason_of(Verdict::Tainted),
        Mark::Limited => limit(cell).unwrap_or_default(),
        Mark::Datagrams => trouble(cell).unwrap_or_default(),
        Mark::OtherHandshakes => handshake::others(cell).unwrap_or_default(),
        Mark::FewerRounds => {
            let verdicts = summary.verdicts.iter().filter(|v| **v != Verdict::Valid).count();
            summary.reasons.get(verdicts).cloned().unwrap_or_default()
        }
    }
}

/// How the server kept M down; `None` when it did not.
fn limit(cell: &CellRecord) -> Option<String> {
    cell.summary.effective_concurrency.and_then(|allowed| stream_limit(allowed, cell.concurrency))
}

/// What was lost on the way, in words; `None` when nothing to speak of was.
fn trouble(cell: &CellRecord) -> Option<String> {
    Health::of(cell)?.trouble()
}

/// One candidate of a column.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// The figure; `None` when there is none.
    pub value: Option<f64>,
    /// Its spread over rounds, `None` with fewer than two.
    pub spread: Option<f64>,
    /// Whether it may win.
    pub eligible: bool,
}

/// Which candidates of a column are its best: the best eligible one, and every eligible one whose
/// interval (value ± spread) reaches that of the best, because their order is then noise. The rate is
/// best when highest, anything else when lowest.
pub fn winners(figure: Figure, candidates: &[Candidate]) -> Vec<bool> {
    let sign = if figure.is_rate() { -1.0 } else { 1.0 };
    let value = |c: &Candidate| c.value.filter(|v| c.eligible && v.is_finite() && *v >= 0.0);
    let best = candidates
        .iter()
        .filter_map(|c| value(c).map(|v| (v, c.spread.unwrap_or(0.0))))
        .min_by(|(a, _), (b, _)| (sign * a).total_cmp(&(sign * b)));
    let Some((best, best_spread)) = best else { return vec![false; candidates.len()] };
    candidates
        .iter()
        .map(|c| {
            value(c).is_some_and(|v| {
                let noise = v * c.spread.unwrap_or(0.0) + best * best_spread;
                (v - best).abs() <= noise
            })
        })
        .collect()
}
