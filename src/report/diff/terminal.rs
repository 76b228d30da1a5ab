//! Owns a comparison as tables on a terminal, no wider than asked, with colour where asked.

use anstyle::{AnsiColor, Style};

use super::content::{Class, Column, Content, Group};
use super::{Diff, Gate, words};
use crate::compare::Difference;
use crate::report::text::{MISSING, Side, cut, one_line};

/// Every report's tables, the unchanged figures last, then what came of it all.
pub(super) fn terminal(diff: &Diff, width: usize, colour: bool) -> String {
    let mut out = Screen { text: String::new(), width: width.max(1), colour };
    for report in &diff.reports {
        out.report(&Content::of(report, diff));
    }
    for (files, what) in [(&diff.missing, "missing on the head"), (&diff.new, "new on the head")] {
        for file in files {
            out.line(&format!("{file}: the report is {what}"));
        }
    }
    out.conclusion(diff);
    out.text
}

struct Screen {
    text: String,
    width: usize,
    colour: bool,
}

impl Screen {
    fn report(&mut self, content: &Content<'_>) {
        let comparison = &content.report.comparison;
        self.styled(&format!("{} ({})", comparison.title, content.report.file), Style::new().bold());
        for (title, side) in [("base", &comparison.base), ("head", &comparison.head)] {
            let (commit, at) = (words::commit(side.commit.as_deref()), side.started_at.as_deref());
            self.line(&format!(
                "{title}: {}, commit {commit}, measured {}",
                side.name,
                at.unwrap_or(MISSING)
            ));
        }
        if let Some(control) = &comparison.relative_to {
            self.line(&format!(
                "every figure is a ratio to that of {control}, which is assumed not to have changed"
            ));
        }
        if let Some(control) = &comparison.control {
            self.line(&words::control(control));
        }
        self.text.push('\n');
        self.differences("cannot be compared: not measured under the same conditions", &comparison.differing);
        self.differences("the machines differ, which the control is to make up for", &comparison.tolerated);
        for table in &content.tables {
            self.styled(&table.heading(), style(table.class));
            self.table(&table.columns, &table.groups);
            self.text.push('\n');
        }
        self.totals(content);
    }

    fn differences(&mut self, what: &str, differences: &[Difference]) {
        if differences.is_empty() {
            return;
        }
        self.styled(what, style(Class::Worse));
        let row = |d: &Difference| vec![d.key.clone(), d.base.clone(), d.head.clone()];
        let columns =
            ["Differs", "Base", "Head"].map(|title| Column { title: title.into(), side: Side::Left });
        let rows = differences.iter().map(row).collect();
        self.table(&columns, &[Group { section: String::new(), rows }]);
        self.text.push('\n');
    }

    fn totals(&mut self, content: &Content<'_>) {
        let comparison = &content.report.comparison;
        if content.tables.is_empty() {
            return;
        }
        for total in &comparison.totals {
            let title = words::title(total.metric, comparison.relative_to.is_some());
            let mean = words::signed(total.geometric_mean);
            self.line(&format!("{title}: {mean} in the geometric mean of {} cells", total.cells));
        }
        for line in &content.worst {
            self.styled(&format!("worse: {line}"), style(Class::Worse));
        }
        self.text.push('\n');
    }

    fn conclusion(&mut self, diff: &Diff) {
        self.styled(&words::counts(diff.comparable_reports()), Style::new().bold());
        let Some((gate, limits)) = diff.gate().zip(diff.limits.as_ref()) else { return };
        let style = style(match gate {
            Gate::Broken(_) => Class::Worse,
            Gate::Holds => Class::Better,
            Gate::Unjudged => Class::Unclear,
        });
        self.styled(&format!("{}: {}", gate.in_words(), words::limits(limits)), style);
        if let Gate::Broken(breaches) = gate {
            breaches.iter().for_each(|line| self.line(&format!("  {line}")));
        }
    }

    /// A table whose widest columns of text give way until it fits. Where that is not enough, columns
    /// that can be derived from others go.
    fn table(&mut self, columns: &[Column], groups: &[Group]) {
        let mut shown: Vec<usize> = (0..columns.len()).collect();
        let mut widths: Vec<usize> = (columns.iter().enumerate())
            .map(|(at, column)| {
                groups
                    .iter()
                    .flat_map(|group| &group.rows)
                    .map(|row| count(&one_line(&row[at])))
                    .chain([count(&column.title)])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let whole = |shown: &[usize], widths: &[usize]| {
            shown.iter().map(|at| widths[*at] + GAP).sum::<usize>().saturating_sub(GAP)
        };
        while whole(&shown, &widths) > self.width {
            let wide = |at: &&usize| columns[**at].side == Side::Left && widths[**at] > LEAST;
            if let Some(widest) = shown.iter().filter(wide).max_by_key(|at| widths[**at]) {
                widths[*widest] -= 1;
            } else if let Some(least) = EXPENDABLE
                .iter()
                .find_map(|title| shown.iter().position(|at| columns[*at].title.ends_with(title)))
            {
                shown.remove(least);
            } else {
                break;
            }
        }
        let line = |cells: &dyn Fn(usize) -> String| {
            let padded = shown.iter().map(|at| {
                let width = widths[*at];
                let cell = fitted(&cells(*at), width);
                match columns[*at].side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                }
            });
            padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned() + "\n"
        };
        self.text += &line(&|at| columns[at].title.clone());
        for group in groups {
            if !group.section.is_empty() {
                let section = fitted(&group.section, self.width);
                self.styled(&section, Style::new().underline());
            }
            for row in &group.rows {
                self.text += &line(&|at| row[at].clone());
            }
        }
    }

    fn line(&mut self, text: &str) {
        self.styled(text, Style::new());
    }

    /// A line in a style; foreign text in it cannot bring one of its own.
    fn styled(&mut self, text: &str, style: Style) {
        let indent = text.len() - text.trim_start().len();
        let text = format!("{}{}", " ".repeat(indent), one_line(text));
        let line = match self.colour && style != Style::new() {
            true => format!("{style}{text}{style:#}\n"),
            false => text + "\n",
        };
        self.text.push_str(&line);
    }
}

fn style(class: Class) -> Style {
    match class {
        Class::Worse | Class::Missing => AnsiColor::Red.on_default().bold(),
        Class::Better => AnsiColor::Green.on_default().bold(),
        Class::Unclear | Class::Marks => AnsiColor::Yellow.on_default().bold(),
        Class::New | Class::Same => Style::new().bold(),
    }
}

/// A foreign text in so many columns; the sign of a cut is one of them.
fn fitted(text: &str, width: usize) -> String {
    let text = one_line(text);
    if count(&text) > width { cut(&text, width.saturating_sub(1)) } else { text }
}

fn count(text: &str) -> usize {
    text.chars().count()
}

const GAP: usize = 2;
/// Columns of text are cut to no less.
const LEAST: usize = 8;
/// Columns a narrow terminal goes without, in this order.
const EXPENDABLE: [&str; 2] = ["interval", "Base"];
