//! Owns how comparisons are shown: as Markdown, of any length or cut to what a platform takes, as tables on
//! a terminal, as JSON. What is compared, and with what outcome, is `compare`'s.

mod content;
mod room;
mod terminal;
mod view;
mod words;

use serde::Serialize;

use super::{RenderError, render};
use crate::compare::gate::Limits;
use crate::compare::{Comparison, Verdict};
use content::{Content, Table};
pub use room::Room;
pub(super) use view::View;

/// The comparisons of two sides, each of one report or of many.
#[derive(Clone, PartialEq, Debug)]
pub struct Diff {
    /// The older side as the user named it.
    pub base: String,
    /// The newer side.
    pub head: String,
    /// The reports of both sides.
    pub reports: Vec<Report>,
    /// File names of reports that the base alone has.
    pub missing: Vec<String>,
    /// File names of reports that the head alone has.
    pub new: Vec<String>,
    /// What the user asked to hold.
    pub limits: Option<Limits>,
    /// True to show the figures of sides that cannot be compared.
    pub forced: bool,
}

/// The comparison of one report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Its file name.
    pub file: String,
    /// What came of it.
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl Diff {
    /// True when every report can be compared.
    pub fn comparable(&self) -> bool {
        self.reports.iter().all(|report| report.comparison.comparable())
    }

    /// True when what the user asked to hold does not: a figure is worse by a limit or more, a cell or a
    /// report is missing or failed.
    pub fn broken(&self) -> bool {
        matches!(self.gate(), Some(Gate::Broken(_)))
    }

    /// True when limits were asked to hold and no figure could be held to them.
    pub fn unjudged(&self) -> bool {
        matches!(self.gate(), Some(Gate::Unjudged))
    }

    /// What became of the limits; `None` without any.
    fn gate(&self) -> Option<Gate> {
        let limits = self.limits.as_ref()?;
        let several = self.reports.len() > 1;
        let mut breaches: Vec<String> =
            self.missing.iter().map(|file| format!("{file} is missing")).collect();
        for report in self.comparable_reports() {
            for broken in limits.broken(&report.comparison) {
                let of = if several { format!("{}: ", report.file) } else { String::new() };
                breaches.push(format!("{of}{}", words::broken(&broken)));
            }
        }
        let judged = |report: &Report| {
            let mut changes = report.comparison.cells.iter().flat_map(|cell| &cell.changes);
            changes.any(|change| change.judged || change.verdict != Verdict::CannotTell)
        };
        Some(match breaches.is_empty() {
            false => Gate::Broken(breaches),
            true if self.comparable() && self.reports.iter().any(judged) => Gate::Holds,
            true => Gate::Unjudged,
        })
    }

    fn comparable_reports(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(|report| report.comparison.comparable())
    }
}

/// What became of the limits of a comparison.
enum Gate {
    /// What breaks them, in words.
    Broken(Vec<String>),
    /// Nothing does.
    Holds,
    /// There is no figure that could: marks, too few rounds, a control that moved.
    Unjudged,
}

impl Gate {
    fn in_words(&self) -> &'static str {
        match self {
            Self::Broken(_) => "The limits are broken",
            Self::Holds => "The limits hold",
            Self::Unjudged => "Nothing could be judged by the limits",
        }
    }
}

/// The comparison as Markdown. In a `room` it is cut, from the least interesting rows on, and says
/// that the whole is `whole`.
///
/// # Errors
/// The template is broken.
pub fn markdown(diff: &Diff, room: Option<Room>, whole: &str) -> Result<String, RenderError> {
    let contents: Vec<Content<'_>> = diff.reports.iter().map(|report| Content::of(report, diff)).collect();
    let rows = contents.iter().flat_map(|content| &content.tables).map(Table::len).sum();
    let draw = |rows: usize| render::diff(&view::view(diff, &contents, rows, whole));
    match room {
        None => draw(rows),
        Some(room) => room.fit(rows, whole, &draw),
    }
}

/// The comparison for a terminal of `width` columns.
pub fn terminal(diff: &Diff, width: usize, colour: bool) -> String {
    terminal::terminal(diff, width, colour)
}

/// The comparison as JSON; `docs/comparing.md` explains it.
pub fn json(diff: &Diff) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        base: &'a str,
        head: &'a str,
        comparable: bool,
        limits: Option<&'static str>,
        breaches: Vec<String>,
        reports: &'a [Report],
        missing_reports: &'a [String],
        new_reports: &'a [String],
    }
    let gate = diff.gate();
    let document = Document {
        base: &diff.base,
        head: &diff.head,
        comparable: diff.comparable(),
        limits: gate.as_ref().map(|gate| match gate {
            Gate::Broken(_) => "broken",
            Gate::Holds => "hold",
            Gate::Unjudged => "unjudged",
        }),
        breaches: if let Some(Gate::Broken(breaches)) = gate { breaches } else { vec![] },
        reports: &diff.reports,
        missing_reports: &diff.missing,
        new_reports: &diff.new,
    };
    // Every key of it is a string, and a float that is no number becomes `null`.
    serde_json::to_string_pretty(&document).expect("a comparison can be written as JSON") + "\n"
}
