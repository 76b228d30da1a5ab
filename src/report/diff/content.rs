//! Owns what of a comparison is shown in which order: tables of plain text, the most interesting first, for
//! Markdown and the terminal alike.

use super::{Diff, Report, words};
use crate::compare::{CellChange, CellName, Change, Comparison, Verdict};
use crate::report::text::Side;

/// A report's tables and sentences.
pub(super) struct Content<'a> {
    pub report: &'a Report,
    /// In the order of [`Class::ALL`]; none is empty.
    pub tables: Vec<Table>,
    /// The largest changes for the worse, in words.
    pub worst: Vec<String>,
    /// Why there are figures without a verdict, with the number of those, the most frequent first.
    pub reasons: Vec<(String, usize)>,
}

/// Rows of one class. Cells are plain text of foreign origin.
pub(super) struct Table {
    pub class: Class,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub title: &'static str,
    pub side: Side,
}

/// What a table is of, the most interesting first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Figures that got worse.
    Worse,
    /// Cells that the head does not have, or has no figures of.
    Missing,
    /// Cells whose marks changed.
    Marks,
    /// Figures that got better.
    Better,
    /// Cells that the base does not have.
    New,
    /// Figures without a verdict.
    Unclear,
    /// Figures that stayed the same.
    Same,
}

impl Class {
    pub(super) const ALL: [Self; 7] =
        [Self::Worse, Self::Missing, Self::Marks, Self::Better, Self::New, Self::Unclear, Self::Same];

    /// Its heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Worse => "Worse",
            Self::Missing => "Missing or failed",
            Self::Marks => "Marks",
            Self::Better => "Better",
            Self::New => "New",
            Self::Unclear => "Cannot tell",
            Self::Same => "The same",
        }
    }
}

impl<'a> Content<'a> {
    /// What is shown of a report. Of one that cannot be compared that is nothing, unless it is forced.
    pub(super) fn of(report: &'a Report, diff: &Diff) -> Self {
        let comparison = &report.comparison;
        if !comparison.comparable() && !diff.forced {
            return Self { report, tables: Vec::new(), worst: Vec::new(), reasons: Vec::new() };
        }
        let layout = Layout {
            sections: several_sections(comparison),
            ratio: comparison.relative_to.is_some(),
            level: comparison.level,
        };
        let mut tables: Vec<Table> =
            Class::ALL.into_iter().map(|class| layout.table(class, comparison)).collect();
        tables.retain(|table| !table.rows.is_empty());
        let worst = figures(comparison, Verdict::Worse).into_iter().take(SENTENCES).map(|(name, change)| {
            format!("{}: {}", words::cell(name, layout.sections), words::change(change))
        });
        Self { report, worst: worst.collect(), reasons: reasons(comparison), tables }
    }
}

/// How the tables of one report are laid out.
struct Layout {
    /// True when cells are told apart by their sections.
    sections: bool,
    /// True when figures are ratios to a control's.
    ratio: bool,
    /// What intervals are at.
    level: f64,
}

impl Layout {
    fn table(&self, class: Class, comparison: &Comparison) -> Table {
        let of = |verdict| figures(comparison, verdict);
        let (columns, rows) = match class {
            Class::Worse => self.changes(of(Verdict::Worse), false),
            Class::Better => self.changes(of(Verdict::Better), false),
            Class::Unclear => self.changes(of(Verdict::CannotTell), true),
            Class::Same => self.changes(of(Verdict::Same), false),
            Class::Missing => {
                let missing = comparison.missing.iter().map(|name| (name, "missing"));
                let failed = comparison.cells.iter().filter(|cell| cell.failed);
                let both = missing.chain(failed.map(|cell| (&cell.name, "failed")));
                (vec![left("Head")], both.map(|(name, what)| self.row(name, [what.into()])).collect())
            }
            Class::Marks => {
                let changed = comparison
                    .cells
                    .iter()
                    .filter(|c| !c.marks_gained.is_empty() || !c.marks_lost.is_empty());
                let row = |cell: &CellChange| {
                    self.row(&cell.name, [&cell.marks_gained, &cell.marks_lost].map(|marks| marks.join(", ")))
                };
                (vec![left("Gained"), left("Lost")], changed.map(row).collect())
            }
            Class::New => (vec![], comparison.new.iter().map(|name| self.row(name, [])).collect()),
        };
        let mut all = if self.sections { vec![left("Section")] } else { vec![] };
        all.push(left("Cell"));
        all.extend(columns);
        Table { class, columns: all, rows }
    }

    fn changes(&self, changes: Vec<(&CellName, &Change)>, reasons: bool) -> (Vec<Column>, Vec<Vec<String>>) {
        let mut columns =
            vec![left("Figure"), right("Base"), right("Head"), right("Change"), right("Interval")];
        columns.extend(reasons.then_some(left("Why")));
        let row = |(name, change): (&CellName, &Change)| {
            let figure = |value| words::figure(change.metric, value, self.ratio);
            let figures = [
                words::title(change.metric, self.ratio).to_owned(),
                figure(change.base),
                figure(change.head),
                words::signed(change.change),
                words::interval(change, self.level),
            ];
            let reason = reasons.then(|| change.reason.clone().unwrap_or_default());
            self.row(name, figures.into_iter().chain(reason))
        };
        (columns, changes.into_iter().map(row).collect())
    }

    fn row(&self, name: &CellName, figures: impl IntoIterator<Item = String>) -> Vec<String> {
        let section = self.sections.then(|| name.section.clone());
        section.into_iter().chain([words::cell(name, false)]).chain(figures).collect()
    }
}

/// The figures with a verdict: the largest changes first where it is that something changed, else in the
/// order of the report.
fn figures(comparison: &Comparison, verdict: Verdict) -> Vec<(&CellName, &Change)> {
    let all = comparison.cells.iter().flat_map(|cell| cell.changes.iter().map(move |c| (&cell.name, c)));
    let mut of: Vec<_> = all.filter(|(_, change)| change.verdict == verdict).collect();
    if matches!(verdict, Verdict::Worse | Verdict::Better) {
        of.sort_by(|(_, a), (_, b)| words::size(b).total_cmp(&words::size(a)));
    }
    of
}

fn reasons(comparison: &Comparison) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for (_, change) in figures(comparison, Verdict::CannotTell) {
        let reason = change.reason.as_deref().unwrap_or("no reason is given");
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason.to_owned(), 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}

fn several_sections(comparison: &Comparison) -> bool {
    let cells = comparison.cells.iter().map(|cell| &cell.name);
    let mut names = cells.chain(&comparison.missing).chain(&comparison.new);
    let Some(first) = names.next() else { return false };
    names.any(|name| name.section != first.section)
}

/// How many rows each table of each report may show when `total` are shown: the most interesting first.
pub(super) fn deal(contents: &[Content<'_>], total: usize) -> Vec<Vec<usize>> {
    let mut dealt: Vec<Vec<usize>> = contents.iter().map(|content| vec![0; content.tables.len()]).collect();
    let mut left = total;
    for class in Class::ALL {
        for (content, dealt) in contents.iter().zip(&mut dealt) {
            for (table, shown) in content.tables.iter().zip(dealt).filter(|(table, _)| table.class == class) {
                *shown = table.rows.len().min(left);
                left -= *shown;
            }
        }
    }
    dealt
}

fn left(title: &'static str) -> Column {
    Column { title, side: Side::Left }
}

fn right(title: &'static str) -> Column {
    Column { title, side: Side::Right }
}

/// Changes for the worse that are put into words above the tables.
const SENTENCES: usize = 5;
