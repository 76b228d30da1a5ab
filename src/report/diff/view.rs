//! Owns what the template of comparisons is given: every string already Markdown.

use serde::Serialize;

use super::content::{self, Class, Content, Table};
use super::{Diff, Gate, words};
use crate::compare::{Comparison, Difference, Side as Of};
use crate::report::text::{self, MISSING, Side, code, cut, escape, one_line, table};

/// Comparisons as a document.
#[derive(Serialize)]
pub(in crate::report) struct View {
    base: String,
    head: String,
    /// How many figures have which verdict.
    counts: String,
    /// What the user asked to hold; `None` when nothing.
    gate: Option<GateView>,
    /// What was left out to fit, and where it is; `None` when nothing was.
    shortened: Option<String>,
    /// Reports that one side alone has.
    missing: Vec<String>,
    new: Vec<String>,
    reports: Vec<ReportView>,
    legend: Option<Legend>,
}

#[derive(Serialize)]
struct GateView {
    outcome: &'static str,
    limits: String,
    /// What breaks them; empty when they hold.
    breaches: Vec<String>,
}

#[derive(Serialize)]
struct ReportView {
    title: String,
    file: String,
    sides: String,
    /// The keys that differ; `None` when nothing keeps the sides from being compared.
    differing: Option<String>,
    forced: bool,
    /// What differs and the control makes up for; `None` when nothing does.
    tolerated: Option<String>,
    /// The control that figures are ratios to.
    relative_to: Option<String>,
    /// What is said of an unchanged control; `None` without one.
    control: Option<String>,
    /// As above; `None` when this is the only report.
    counts: Option<String>,
    worst: Vec<String>,
    totals: Option<String>,
    tables: Vec<TableView>,
}

#[derive(Serialize)]
struct TableView {
    heading: String,
    rows: usize,
    folded: bool,
    /// Of each section; empty when no row of it is shown.
    groups: Vec<GroupView>,
    left_out: usize,
}

#[derive(Serialize)]
struct GroupView {
    section: String,
    table: String,
}

#[derive(Serialize)]
struct Legend {
    margin: String,
    level: String,
    confidence: String,
}

/// The view with as many as `rows` rows of tables; `whole` is where all of them are.
pub(super) fn view(diff: &Diff, contents: &[Content<'_>], rows: usize, whole: &str) -> View {
    let dealt = content::deal(contents, rows);
    let all: usize = contents.iter().flat_map(|content| &content.tables).map(Table::len).sum();
    let gate = diff.gate();
    let first = contents.first().map(|content| &content.report.comparison);
    View {
        base: code(&cut(&diff.base, NAME_LIMIT)),
        head: code(&cut(&diff.head, NAME_LIMIT)),
        counts: words::counts(diff.comparable_reports()),
        gate: gate.as_ref().zip(diff.limits.as_ref()).map(|(gate, limits)| GateView {
            outcome: gate.in_words(),
            limits: words::limits(limits),
            breaches: if let Gate::Broken(breaches) = gate { several(breaches) } else { vec![] },
        }),
        shortened: (rows < all).then(|| {
            format!(
                "Shortened to fit: {rows} of {all} rows are shown, the most telling ones. The whole: {}",
                cut(&one_line(whole), NAME_LIMIT)
            )
        }),
        missing: several(&diff.missing),
        new: several(&diff.new),
        reports: contents.iter().zip(&dealt).map(|(content, dealt)| report(diff, content, dealt)).collect(),
        legend: first.map(|comparison| Legend {
            margin: words::share(comparison.margin),
            level: words::share(comparison.level),
            confidence: words::share(1.0 - comparison.level),
        }),
    }
}

fn report(diff: &Diff, content: &Content<'_>, dealt: &[usize]) -> ReportView {
    let comparison = &content.report.comparison;
    let forced = !comparison.comparable() && diff.forced;
    ReportView {
        title: escape(&cut(&comparison.title, NAME_LIMIT)),
        file: escape(&content.report.file),
        sides: sides(comparison),
        differing: differences(&comparison.differing),
        tolerated: differences(&comparison.tolerated),
        forced,
        relative_to: comparison.relative_to.as_deref().map(escape),
        control: comparison.control.as_ref().map(|control| escape(&words::control(control))),
        counts: (diff.reports.len() > 1 && comparison.comparable())
            .then(|| words::counts(std::iter::once(content.report))),
        // What breaks a limit has been said.
        worst: if diff.broken() { vec![] } else { content.worst.iter().map(|line| escape(line)).collect() },
        totals: (!content.tables.is_empty()).then(|| totals(comparison)),
        tables: content
            .tables
            .iter()
            .zip(dealt)
            .map(|(table, shown)| table_view(table, *shown, forced))
            .collect(),
    }
}

fn table_view(table: &Table, shown: usize, forced: bool) -> TableView {
    let header: Vec<(String, Side)> =
        table.columns.iter().map(|column| (column.title.clone(), column.side)).collect();
    let row = |row: &Vec<String>| row.iter().map(|cell| escape(&cut(cell, NAME_LIMIT))).collect();
    let mut left = shown;
    let mut groups = Vec::new();
    for group in table.groups.iter() {
        let rows: Vec<Vec<String>> = group.rows.iter().take(left).map(row).collect();
        left -= rows.len();
        if !rows.is_empty() {
            let section = escape(&cut(&group.section, NAME_LIMIT));
            groups.push(GroupView { section, table: text::table(&header, &rows) });
        }
    }
    TableView {
        heading: escape(&cut(&table.heading(), NAME_LIMIT)),
        rows: table.len(),
        // Without verdicts these are all there is to see.
        folded: matches!(table.class, Class::New | Class::Unclear | Class::Same) && !forced,
        groups,
        left_out: table.len() - shown,
    }
}

/// What both sides are.
fn sides(comparison: &Comparison) -> String {
    let (base, head) = (&comparison.base, &comparison.head);
    let row = |title: &str, of: &dyn Fn(&Of) -> String| vec![title.to_owned(), of(base), of(head)];
    let rows = [
        row("Results", &|side| cell_code(&side.name)),
        row("Commit", &|side| escape(&words::commit(side.commit.as_deref()))),
        row("Measured", &|side| side.started_at.as_deref().map_or_else(|| MISSING.into(), escape)),
    ];
    table(
        &[("", Side::Left), ("Base", Side::Left), ("Head", Side::Left)].map(|(t, s)| (t.to_owned(), s)),
        &rows,
    )
}

/// A name as code where it can be: a pipe would end a table's cell in a code span too.
fn cell_code(name: &str) -> String {
    let name = cut(name, NAME_LIMIT);
    if name.contains('|') { escape(&name) } else { code(&name) }
}

/// Keys with both values; `None` without any.
fn differences(differences: &[Difference]) -> Option<String> {
    let shown = differences.iter().take(DIFFERENCES);
    let row = |d: &Difference| [&d.key, &d.base, &d.head].map(|text| escape(&cut(text, NAME_LIMIT))).to_vec();
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    let header = ["Differs", "Base", "Head"].map(|title| (title.to_owned(), Side::Left));
    (!rows.is_empty()).then(|| table(&header, &rows))
}

fn totals(comparison: &Comparison) -> String {
    let ratio = comparison.relative_to.is_some();
    let header = [
        ("Figure", Side::Left),
        ("Worse", Side::Right),
        ("Better", Side::Right),
        ("The same", Side::Right),
        ("Cannot tell", Side::Right),
        ("Geometric mean", Side::Right),
        ("Cells in it", Side::Right),
    ];
    let rows: Vec<Vec<String>> = comparison
        .totals
        .iter()
        .map(|total| {
            let counts = [total.worse, total.better, total.same, total.cannot_tell].map(|n| n.to_string());
            let mean = [words::signed(total.geometric_mean), total.cells.to_string()];
            let title = words::title(total.metric, ratio).to_owned();
            std::iter::once(title).chain(counts).chain(mean).collect()
        })
        .collect();
    table(&header.map(|(title, side)| (title.to_owned(), side)), &rows)
}

/// The first lines, and how many more there are.
fn several(lines: &[String]) -> Vec<String> {
    let mut shown: Vec<String> =
        lines.iter().take(LINES).map(|line| escape(&cut(line, NAME_LIMIT))).collect();
    if lines.len() > LINES {
        shown.push(format!("and {} more", lines.len() - LINES));
    }
    shown
}

const NAME_LIMIT: usize = 300;
const LINES: usize = 10;
const DIFFERENCES: usize = 50;
