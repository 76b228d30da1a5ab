//! Owns which cells of two sides answer the same question, and the rounds of each: by name between two
//! runs, by place between two servers of one.

use super::{CellName, Metric, same_section};
use crate::results::marks;
use crate::results::stats::{self, RoundFigures};
use crate::results::{CellRecord, Results, SectionRecord, ServerRecord, Verdict};

/// Cells side by side, and those without a counterpart.
pub(super) struct Pairs {
    pub(super) pairs: Vec<Pair>,
    pub(super) missing: Vec<CellName>,
    pub(super) new: Vec<CellName>,
}

/// One cell on both sides.
pub(super) struct Pair {
    pub(super) name: CellName,
    pub(super) base: SideOfCell,
    pub(super) head: SideOfCell,
}

/// One cell of one side.
pub(super) struct SideOfCell {
    /// The figures of its usable rounds; ratios where there is a control.
    pub(super) rounds: Vec<RoundFigures>,
    /// Whether the cell has figures, also where its control has none.
    pub(super) measured: bool,
    /// What speaks against its figures, in words; of its control's too.
    pub(super) marks: Vec<String>,
    /// Why its CPU per request cannot be compared with another run's.
    pub(super) no_cpu: Option<String>,
    /// Worker threads of its server.
    pub(super) workers: u32,
}

/// The cells of two runs. With a control, its own cells are left out: they would be 1 throughout.
pub(super) fn of_runs(base: &Results, head: &Results, control: Option<&str>) -> Pairs {
    let mut found = Pairs { pairs: Vec::new(), missing: Vec::new(), new: Vec::new() };
    let compared = |cell: &&CellRecord| control != Some(cell.server.as_str());
    for section in &head.sections {
        let earlier = same_section(base, head, section);
        for cell in section.cells.iter().filter(compared) {
            let name = name(head, section, cell);
            match earlier.and_then(|earlier| Some((earlier, counterpart(base, earlier, head, cell)?))) {
                Some((earlier, other)) => found.pairs.push(Pair {
                    name,
                    base: side(base, earlier, other, control),
                    head: side(head, section, cell, control),
                }),
                None => found.new.push(name),
            }
        }
    }
    for section in &base.sections {
        let later = same_section(head, base, section);
        for cell in section.cells.iter().filter(compared) {
            if later.and_then(|later| counterpart(head, later, base, cell)).is_none() {
                found.missing.push(name(base, section, cell));
            }
        }
    }
    found
}

/// The cells of two servers of one run.
pub(super) fn of_servers(results: &Results, base: &str, head: &str) -> Pairs {
    let mut found = Pairs { pairs: Vec::new(), missing: Vec::new(), new: Vec::new() };
    for section in &results.sections {
        let of = |server: &str| -> Vec<&CellRecord> {
            section.cells.iter().filter(|cell| cell.server == server).collect()
        };
        let (ours, theirs) = (of(base), of(head));
        for cell in &ours {
            let name = name(results, section, cell);
            match theirs.iter().find(|other| other.key() == cell.key()) {
                Some(other) => found.pairs.push(Pair {
                    name,
                    base: side(results, section, cell, None),
                    head: side(results, section, other, None),
                }),
                None => found.missing.push(name),
            }
        }
        let new = theirs.iter().filter(|cell| ours.iter().all(|other| other.key() != cell.key()));
        found.new.extend(new.map(|cell| name(results, section, cell)));
    }
    found
}

/// The cell of `section` that asks what `cell` of `results` asks, of the server and the generator with the
/// same names.
fn counterpart<'a>(
    other: &Results,
    section: &'a SectionRecord,
    results: &Results,
    cell: &CellRecord,
) -> Option<&'a CellRecord> {
    let generator = |results: &Results, index: Option<u32>| {
        index.and_then(|index| results.generators.get(index as usize)).map(|g| g.name.clone())
    };
    let wanted = generator(results, cell.generator);
    section.cells.iter().find(|found| {
        let mut key = found.key();
        key.generator = cell.generator;
        found.server == cell.server && key == cell.key() && generator(other, found.generator) == wanted
    })
}

/// Which cell it is, for people.
pub fn name(results: &Results, section: &SectionRecord, cell: &CellRecord) -> CellName {
    let generator = cell.generator.and_then(|index| results.generators.get(index as usize));
    let key = cell.key();
    CellName {
        section: section.title.clone(),
        server: cell.server.clone(),
        label: server(results, cell).map_or_else(|| cell.server.clone(), |server| server.label.clone()),
        cell: match generator {
            Some(generator) => format!("{key}, {}", generator.label),
            None => key.to_string(),
        },
        key,
    }
}

fn server<'a>(results: &'a Results, cell: &CellRecord) -> Option<&'a ServerRecord> {
    results.servers.iter().find(|server| server.name == cell.server)
}

fn side(results: &Results, section: &SectionRecord, cell: &CellRecord, control: Option<&str>) -> SideOfCell {
    let settings = &results.settings;
    let rounds = stats::of_rounds(cell);
    let mut side = SideOfCell {
        measured: !rounds.is_empty(),
        rounds,
        marks: marks(results, cell),
        no_cpu: settings.server_cpus.is_empty().then(|| "the servers were not pinned".to_owned()),
        workers: server(results, cell).and_then(|server| server.workers).unwrap_or(settings.workers),
    };
    let Some(control) = control else { return side };
    let of_control = section.cells.iter().find(|other| other.server == control && other.key() == cell.key());
    let Some(of_control) = of_control else {
        side.rounds.clear();
        side.marks.push(format!("without a cell of the control {control}"));
        return side;
    };
    side.marks.extend(marks(results, of_control).into_iter().map(|mark| format!("{mark} control {control}")));
    side.rounds = ratios(&side.rounds, &stats::of_rounds(of_control));
    side
}

/// Each round's figures as ratios to the control's in the same round; rounds that the control lacks are
/// left out.
fn ratios(rounds: &[RoundFigures], control: &[RoundFigures]) -> Vec<RoundFigures> {
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b.filter(|b| *b > 0.0)?);
    let of = |round: &RoundFigures| {
        let control = control.iter().find(|control| control.round == round.round)?;
        Some(RoundFigures {
            round: round.round,
            requests_per_second: ratio(round.requests_per_second, control.requests_per_second),
            p50_us: ratio(round.p50_us, control.p50_us),
            p99_us: ratio(round.p99_us, control.p99_us),
            server_cpu_us_per_request: ratio(
                round.server_cpu_us_per_request,
                control.server_cpu_us_per_request,
            ),
            ok: round.ok,
            server_cpu_us: round.server_cpu_us,
        })
    };
    rounds.iter().filter_map(of).collect()
}

/// What speaks against a cell: the marks of reports by name, what stands in the place of figures it does
/// not have, and that its server failed its gate.
fn marks(results: &Results, cell: &CellRecord) -> Vec<String> {
    let mut found: Vec<&str> =
        marks::marks(cell, &results.settings).into_iter().map(|mark| mark.name()).collect();
    found.extend(cell.summary.verdicts.iter().filter_map(|verdict| match verdict {
        Verdict::WrongProtocol => Some("wrong protocol"),
        Verdict::Interrupted => Some("interrupted"),
        Verdict::Failed => Some("failed"),
        Verdict::Absent => Some("n/a"),
        Verdict::Valid
        | Verdict::Starved
        | Verdict::GeneratorBound
        | Verdict::Unstable
        | Verdict::Tainted => None,
    }));
    found.extend(server(results, cell).filter(|server| marks::gate_failed(server)).map(|_| GATE_FAILED));
    found.into_iter().map(str::to_owned).collect()
}

/// What is said of a server that failed its gate.
pub(super) const GATE_FAILED: &str = "gate failed";

impl Metric {
    /// The smallest step in which this figure of a round can move, as a share of it: one request of its rate, one
    /// tick of its CPU time. A latency has none to speak of.
    pub(super) fn step(self, round: &RoundFigures) -> f64 {
        let share = |of: Option<u64>, step: u64| of.map_or(0.0, |of| step as f64 / of.max(1) as f64);
        match self {
            Self::Rate => share(round.ok, 1),
            Self::Cpu => share(round.server_cpu_us, stats::TICK_US),
            Self::P50 | Self::P99 => 0.0,
        }
    }

    /// This figure of a round, where it is a positive number, which alone can be compared by its ratio.
    pub(super) fn of(self, round: &RoundFigures) -> Option<f64> {
        let value = match self {
            Self::Rate => round.requests_per_second,
            Self::P50 => round.p50_us,
            Self::P99 => round.p99_us,
            Self::Cpu => round.server_cpu_us_per_request,
        };
        value.filter(|value| value.is_finite() && *value > 0.0)
    }
}
