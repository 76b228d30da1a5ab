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
    /// The cells with the largest changes for the worse, in words.
    pub worst: Vec<String>,
}

/// Rows of one class. Cells are plain text of foreign origin.
pub(super) struct Table {
    pub class: Class,
    /// Why its figures have no verdict.
    pub reason: Option<String>,
    pub columns: Vec<Column>,
    pub groups: Vec<Group>,
}

/// Rows of one section.
pub(super) struct Group {
    pub section: String,
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
pub(super) struct Column {
    pub title: String,
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
            return Self { report, tables: Vec::new(), worst: Vec::new() };
        }
        let mut tables: Vec<Table> =
            Class::ALL.into_iter().flat_map(|class| tables(class, comparison)).collect();
        tables.retain(|table| table.len() > 0);
        let mut worst: Vec<(&CellName, Vec<String>)> = Vec::new();
        for (name, change) in figures(comparison, Verdict::Worse) {
            let change = words::change(change);
            match worst.last_mut() {
                Some((last, changes)) if *last == name => changes.push(change),
                _ => worst.push((name, vec![change])),
            }
        }
        let worst = worst.into_iter().take(SENTENCES);
        let worst =
            worst.map(|(name, changes)| format!("{}: {}", words::cell(name, true), changes.join("; ")));
        Self { report, worst: worst.collect(), tables }
    }
}

impl Table {
    fn new(class: Class, columns: Vec<Column>) -> Self {
        let columns = std::iter::once(left("Cell")).chain(columns).collect();
        Self { class, reason: None, columns, groups: Vec::new() }
    }

    /// Number of its rows.
    pub(super) fn len(&self) -> usize {
        self.groups.iter().map(|group| group.rows.len()).sum()
    }

    /// `Worse (2)`, `Cannot tell (8): one round says nothing about noise`.
    pub(super) fn heading(&self) -> String {
        let heading = format!("{} ({})", self.class.heading(), self.len());
        match &self.reason {
            Some(reason) => format!("{heading}: {reason}"),
            None => heading,
        }
    }

    /// Adds a row to those of its section.
    fn push(&mut self, name: &CellName, figures: impl IntoIterator<Item = String>) {
        let row = std::iter::once(words::cell(name, false)).chain(figures).collect();
        match self.groups.iter_mut().find(|group| group.section == name.section) {
            Some(group) => group.rows.push(row),
            None => self.groups.push(Group { section: name.section.clone(), rows: vec![row] }),
        }
    }
}

/// The tables of a class: one, or of figures without a verdict one for each reason.
fn tables(class: Class, comparison: &Comparison) -> Vec<Table> {
    match class {
        Class::Worse => vec![changes(class, comparison, &figures(comparison, Verdict::Worse))],
        Class::Better => vec![changes(class, comparison, &figures(comparison, Verdict::Better))],
        Class::Same => vec![changes(class, comparison, &figures(comparison, Verdict::Same))],
        Class::Unclear => unclear(comparison),
        Class::Missing => {
            let mut table = Table::new(class, vec![left("On the head")]);
            comparison.missing.iter().for_each(|name| table.push(name, ["missing".into()]));
            let failed = comparison.cells.iter().filter(|cell| cell.failed);
            failed.for_each(|cell| table.push(&cell.name, ["failed".into()]));
            vec![table]
        }
        Class::Marks => {
            let mut table = Table::new(class, vec![left("Gained"), left("Lost")]);
            let changed = |cell: &&CellChange| {
                !cell.failed && (!cell.marks_gained.is_empty() || !cell.marks_lost.is_empty())
            };
            for cell in comparison.cells.iter().filter(changed) {
                table.push(&cell.name, [&cell.marks_gained, &cell.marks_lost].map(|marks| marks.join(", ")));
            }
            vec![table]
        }
        Class::New => {
            let mut table = Table::new(class, vec![]);
            comparison.new.iter().for_each(|name| table.push(name, []));
            vec![table]
        }
    }
}

fn changes(class: Class, comparison: &Comparison, changes: &[(&CellName, &Change)]) -> Table {
    let level = 1.0 - comparison.level;
    let mut confidences = changes.iter().filter_map(|(_, change)| change.confidence);
    let first = confidences.next().map_or(level, |first| first.min(level));
    // Said once where it is the same for all.
    let confidence =
        if confidences.all(|c| words::share(c.min(level)) == words::share(first)) { first } else { level };
    let interval = format!("{} interval", words::share(confidence));
    let columns = [left("Figure"), right("Base"), right("Head"), right("Change"), right(&interval)];
    let mut table = Table::new(class, columns.into());
    let ratio = comparison.relative_to.is_some();
    for (name, change) in changes {
        let figure = |value| words::figure(change.metric, value, ratio);
        let row = [
            words::title(change.metric, ratio).to_owned(),
            figure(change.base),
            figure(change.head),
            words::signed(change.change),
            words::interval(change, confidence),
        ];
        table.push(name, row);
    }
    table
}

/// Figures without a verdict, the most frequent reason first; rare ones share a table when there are many.
fn unclear(comparison: &Comparison) -> Vec<Table> {
    let mut reasons: Vec<(&str, Vec<(&CellName, &Change)>)> = Vec::new();
    for figure in figures(comparison, Verdict::CannotTell) {
        let reason = figure.1.reason.as_deref().unwrap_or("no reason is given");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, figures)) => figures.push(figure),
            None => reasons.push((reason, vec![figure])),
        }
    }
    reasons.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.len()));
    let rare = reasons.split_off(REASONS.min(reasons.len()));
    let table = |reason: &str, figures: &[(&CellName, &Change)]| Table {
        reason: Some(reason.to_owned()),
        ..changes(Class::Unclear, comparison, figures)
    };
    let mut tables: Vec<Table> = reasons.iter().map(|(reason, figures)| table(reason, figures)).collect();
    if let Some((reason, _)) = rare.first() {
        let figures: Vec<_> = rare.iter().flat_map(|(_, figures)| figures.iter().copied()).collect();
        tables.push(table(&format!("{} rarer reasons, such as: {reason}", rare.len()), &figures));
    }
    tables
}

/// The figures with a verdict, in the order of the report; where it is that something changed, the cells with
/// the largest changes first.
fn figures(comparison: &Comparison, verdict: Verdict) -> Vec<(&CellName, &Change)> {
    let of = |change: &Change| change.verdict == verdict;
    let mut cells: Vec<&CellChange> = comparison.cells.iter().collect();
    if matches!(verdict, Verdict::Worse | Verdict::Better) {
        let largest = |cell: &CellChange| {
            cell.changes.iter().filter(|change| of(change)).map(words::size).fold(0.0, f64::max)
        };
        cells.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    }
    let all = cells.into_iter().flat_map(|cell| cell.changes.iter().map(move |change| (&cell.name, change)));
    all.filter(|(_, change)| of(change)).collect()
}

/// How many rows each table of each report may show when `total` are shown: the most interesting first.
pub(super) fn deal(contents: &[Content<'_>], total: usize) -> Vec<Vec<usize>> {
    let mut dealt: Vec<Vec<usize>> = contents.iter().map(|content| vec![0; content.tables.len()]).collect();
    let mut left = total;
    for class in Class::ALL {
        for (content, dealt) in contents.iter().zip(&mut dealt) {
            for (table, shown) in content.tables.iter().zip(dealt).filter(|(table, _)| table.class == class) {
                *shown = table.len().min(left);
                left -= *shown;
            }
        }
    }
    dealt
}

fn left(title: &str) -> Column {
    Column { title: title.into(), side: Side::Left }
}

fn right(title: &str) -> Column {
    Column { title: title.into(), side: Side::Right }
}

/// Reasons with a table of their own.
const REASONS: usize = 8;

/// Cells that got worse and are put into words above the tables.
const SENTENCES: usize = 5;
