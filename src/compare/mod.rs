//! Owns the comparison of results: which cells of two runs answer the same question, how each figure
//! changed, within what interval, and whether the rounds allow a verdict. Pure; `docs/methodology.md`,
//! "Comparing", is its prose. How a comparison is shown is `report`'s.

mod control;
mod fingerprint;
pub mod gate;
mod judge;
mod pairs;
mod rank;

pub use control::{Control, withhold};
pub use fingerprint::{Fact, differences, fingerprint};
pub use pairs::name as cell_name;

use serde::Serialize;

use crate::results::{CellKey, Results, SectionRecord};

/// How to compare.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Changes within ± this share are the same to a reader: 0.02 is 2 %.
    pub margin: f64,
    /// Share of false ones among the changes called, over all figures of the comparison; when nothing changed,
    /// the chance that any is called: 0.05.
    pub level: f64,
    /// Every figure as a ratio to this server's, measured in the same round of the same run.
    pub relative_to: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { margin: MARGIN, level: LEVEL, relative_to: None }
    }
}

/// A figure that is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Ok responses per second; more is better.
    Rate,
    /// Median latency in µs; less is better.
    P50,
    /// 99th percentile of latency in µs; less is better.
    P99,
    /// Server CPU per ok response in µs; less is better.
    Cpu,
}

impl Metric {
    /// Every metric in the order of reports.
    pub const ALL: [Self; 4] = [Self::Rate, Self::P50, Self::P99, Self::Cpu];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Cpu => "cpu",
        }
    }

    /// The name in tables, with the unit.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rate => "req/s",
            Self::P50 => "p50 (ms)",
            Self::P99 => "p99 (ms)",
            Self::Cpu => "CPU µs/req",
        }
    }

    /// True where a larger figure is the better one.
    pub fn more_is_better(self) -> bool {
        self == Self::Rate
    }
}

/// What can be said of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The head is better by more than noise.
    Better,
    /// The head is worse by more than noise.
    Worse,
    /// Whatever changed lies within the margin.
    Same,
    /// The rounds do not tell.
    CannotTell,
}

/// Two runs, or two servers of one run, compared.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Title of the head's results.
    pub title: String,
    /// The older side.
    pub base: Side,
    /// The newer side.
    pub head: Side,
    /// What the figures are ratios to; `null`: they stand for themselves.
    pub relative_to: Option<String>,
    /// What did not change and was measured beside the sides; `null` without such a thing.
    pub control: Option<Control>,
    /// Margin and level in force.
    pub margin: f64,
    /// See [`Options::level`].
    pub level: f64,
    /// What keeps the sides from being compared; empty when nothing does.
    pub differing: Vec<Difference>,
    /// What differs between the machines and a control in both runs makes up for.
    pub tolerated: Vec<Difference>,
    /// Cells on both sides, in the head's order.
    pub cells: Vec<CellChange>,
    /// Cells of the base that the head does not have.
    pub missing: Vec<CellName>,
    /// Cells of the head that the base does not have.
    pub new: Vec<CellName>,
    /// Verdicts and geometric mean of each metric, over cells on both sides.
    pub totals: Vec<Total>,
}

/// One side of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Side {
    /// What the user named it: a path, `REV:path`, a server.
    pub name: String,
    /// Commit its run was made from.
    pub commit: Option<String>,
    /// When its run began, RFC 3339.
    pub started_at: Option<String>,
}

/// A key of environment or settings that the sides do not agree on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// Its name: `cpu`, `duration`.
    pub key: String,
    /// Of the base.
    pub base: String,
    /// Of the head.
    pub head: String,
}

/// Which cell, for people.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CellName {
    /// Heading of its section.
    pub section: String,
    /// Name of its server; of an A/B comparison the name both sides share.
    pub server: String,
    /// Label of its server.
    pub label: String,
    /// As [`CellKey`] prints it, with the generator where several are compared: `h2 10x10`.
    pub cell: String,
    /// What it asks for.
    #[serde(skip)]
    pub key: CellKey,
}

/// A cell on both sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CellChange {
    /// Which.
    #[serde(flatten)]
    pub name: CellName,
    /// One for each metric that either side has, in the order of [`Metric::ALL`].
    pub changes: Vec<Change>,
    /// Marks the head has and the base had not, in words: `unstable`.
    pub marks_gained: Vec<String>,
    /// Marks the base had and the head has not.
    pub marks_lost: Vec<String>,
    /// True when either side is marked, so that there is no verdict.
    pub marked: bool,
    /// True when the base had figures and the head has none: it failed.
    pub failed: bool,
}

/// One figure on both sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Which.
    pub metric: Metric,
    /// Median of the base's rounds; of ratios to the control when there is one.
    pub base: Option<f64>,
    /// Median of the head's rounds.
    pub head: Option<f64>,
    /// Relative change: 0.05 is 5 % more. It is that of the rounds (Hodges and Lehmann), which need not be
    /// the quotient of the two medians to the last digit; that quotient where a side has a single round.
    pub change: Option<f64>,
    /// Its interval at the level, not corrected for the number of cells.
    pub interval: Option<(f64, f64)>,
    /// Probability with which the interval holds the change: 0.95 for a level of 0.05; less where the
    /// rounds are too few.
    pub confidence: Option<f64>,
    /// Probability of rounds at least this far apart when nothing changed; uncorrected.
    pub p: Option<f64>,
    /// Rounds of either side.
    pub rounds: (usize, usize),
    /// What can be said.
    pub verdict: Verdict,
    /// The smallest step it can move in, as a share: one request, or one tick of CPU time.
    pub step: f64,
    /// True when a change would have been called, had it been large enough.
    pub judged: bool,
    /// Why nothing can; `null` for the other verdicts.
    pub reason: Option<String>,
}

/// A metric over all cells on both sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Total {
    /// Which.
    pub metric: Metric,
    /// Number of cells with each verdict.
    pub better: usize,
    /// See [`Verdict`].
    pub worse: usize,
    /// See [`Verdict`].
    pub same: usize,
    /// See [`Verdict`].
    pub cannot_tell: usize,
    /// Geometric mean of the changes, as a relative change; `null` without a cell that has figures on
    /// both sides.
    pub geometric_mean: Option<f64>,
    /// Cells it is over.
    pub cells: usize,
}

impl Comparison {
    /// False when environment or settings differ, so that there are no verdicts.
    pub fn comparable(&self) -> bool {
        self.differing.is_empty()
    }
}

/// Compares two runs of one scenario. Servers are matched by name, sections by title and kind, cells by
/// what they ask for. Either side comes with the name the user gave it.
pub fn runs(base: (&str, &Results), head: (&str, &Results), options: &Options) -> Comparison {
    let mut differing = Vec::new();
    let mut tolerated = Vec::new();
    let control = options.relative_to.as_deref();
    for (difference, of_machine) in fingerprint::found(base.1, head.1, control) {
        let list = if of_machine && control.is_some() { &mut tolerated } else { &mut differing };
        list.push(difference);
    }
    let found = pairs::of_runs(base.1, head.1, control);
    let cells = judge::cells(&found.pairs, judge::Design::TwoRuns, options, differing.is_empty());
    Comparison {
        title: head.1.title.clone(),
        base: side(base.0, base.1),
        head: side(head.0, head.1),
        relative_to: options.relative_to.clone(),
        control: None,
        margin: options.margin,
        level: options.level,
        differing,
        tolerated,
        totals: judge::totals(&cells),
        cells,
        missing: found.missing,
        new: found.new,
    }
}

/// Compares two servers of one run, measured in turns: rounds are compared in pairs. Both stand under
/// the base's name in the outcome.
pub fn servers(results: &Results, base: &str, head: &str, options: &Options) -> Comparison {
    let found = pairs::of_servers(results, base, head);
    let cells = judge::cells(&found.pairs, judge::Design::Turns, options, true);
    let named = |name: &str| Side {
        commit: results.servers.iter().find(|s| s.name == name).and_then(|s| s.revision.clone()),
        ..side(name, results)
    };
    Comparison {
        title: results.title.clone(),
        base: named(base),
        head: named(head),
        relative_to: None,
        control: None,
        margin: options.margin,
        level: options.level,
        differing: Vec::new(),
        tolerated: Vec::new(),
        totals: judge::totals(&cells),
        cells,
        missing: found.missing,
        new: found.new,
    }
}

fn side(name: &str, results: &Results) -> Side {
    let session = results.sessions.first();
    Side {
        name: name.to_owned(),
        commit: session.and_then(|session| session.environment.commit.clone()),
        started_at: session.map(|session| session.started_at.clone()),
    }
}

/// The section of `base` that `section` of `head` is: of the same title and kind; where a run has several
/// of them, the one in the same place among these.
fn same_section<'a>(base: &'a Results, head: &Results, section: &SectionRecord) -> Option<&'a SectionRecord> {
    let same = |other: &&SectionRecord| other.title == section.title && other.kind == section.kind;
    let place = head.sections.iter().filter(same).position(|other| std::ptr::eq(other, section))?;
    base.sections.iter().filter(same).nth(place)
}

/// Share within which a change is no change.
pub const MARGIN: f64 = 0.02;

/// Share of false alarms.
pub const LEVEL: f64 = 0.05;
