//! Owns the tables printed on a terminal: the figures of a report in plain text, no wider than asked.

use super::grid::{self, Grid, Sheet, Shown};
use super::marks;
use super::text::{cut, one_line};
use crate::results::Results;

/// Every section's figures; columns that do not fit follow below, under the servers' names again.
pub(super) fn terminal(results: &Results, width: usize) -> String {
    let mut out = String::new();
    for section in &results.sections {
        for sheet in grid::sheets(results, section) {
            out.push_str(&cut(&one_line(&sheet.title()), width.max(1) - 1));
            out.push_str("\n\n");
            push_grid(&mut out, &sheet.figures(), width);
            push_reasons(&mut out, results, &sheet);
            out.push('\n');
        }
    }
    if out.is_empty() {
        out.push_str("nothing was measured\n");
    }
    out
}

fn push_grid(out: &mut String, grid: &Grid, width: usize) {
    let labels: Vec<String> = grid
        .groups
        .iter()
        .flat_map(|group| group.rows.iter().map(|(label, _)| cut(&one_line(label), LABEL_LIMIT)))
        .collect();
    let measure = grid.groups.iter().map(|group| count(&group.title)).max().unwrap_or(0);
    let gap = if measure == 0 { 0 } else { GAP };
    let label = labels.iter().map(|label| count(label)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..grid.header.len())
        .map(|at| {
            let places =
                grid.groups.iter().flat_map(|group| &group.rows).map(|(_, row)| count(&place(&row[at])));
            places.chain([count(&grid.header[at])]).max().unwrap_or(0)
        })
        .collect();
    let lead = measure + gap + label + GAP;
    let mut from = 0;
    while from < widths.len() {
        let to = from + fitting(&widths[from..], width.saturating_sub(lead));
        let mut line = |title: &str, name: &str, places: &mut dyn Iterator<Item = String>| {
            let mut text = format!("{title:<0$}{name:<label$}", measure + gap);
            for (place, width) in places.zip(&widths[from..to]) {
                text.push_str(&format!("  {place:>width$}"));
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line("", "", &mut grid.header[from..to].iter().cloned());
        let mut labels = labels.iter();
        for group in &grid.groups {
            for ((i, (_, row)), name) in group.rows.iter().enumerate().zip(&mut labels) {
                let title = if i == 0 { group.title.as_str() } else { "" };
                line(title, name, &mut row[from..to].iter().map(place));
            }
        }
        out.push('\n');
        from = to;
    }
}

/// How many columns fit into `room`; one at least, so that every column is printed.
fn fitting(widths: &[usize], room: usize) -> usize {
    let mut taken = 0usize;
    let fit = widths.iter().take_while(|width| {
        taken = taken.saturating_add(**width + GAP);
        taken <= room + GAP
    });
    fit.count().max(1)
}

fn push_reasons(out: &mut String, results: &Results, sheet: &Sheet<'_>) {
    for blank in sheet.blanks() {
        let reason = cut(&one_line(&blank.reason), REASON_LIMIT);
        out.push_str(&format!("{}, {}: {}: {reason}\n", one_line(blank.label), blank.cells, blank.shows));
    }
    for (reason, names) in sheet.idle_reasons() {
        let names: Vec<String> = names.iter().map(|name| one_line(name)).collect();
        out.push_str(&format!("neither side was busy, {}: {}\n", names.join(", "), one_line(reason)));
    }
    for server in sheet.gates_failed() {
        let (label, reason) = (one_line(&server.label), one_line(&marks::gate_reason(server)));
        out.push_str(&format!("{} gate failed, {label}: {reason}\n", marks::GATE));
    }
    for (name, cell) in sheet.named_cells() {
        for mark in marks::marks(cell, &results.settings) {
            let (name, detail) = (one_line(&name), one_line(&marks::detail(mark, cell)));
            out.push_str(&format!("{} {}, {name}: {detail}\n", mark.sign(), mark.name()));
        }
    }
}

fn place(shown: &Shown) -> String {
    let best = if shown.best { "*" } else { "" };
    format!("{best}{}{}", shown.text, marks::signs(&shown.marks))
}

fn count(text: &str) -> usize {
    text.chars().count()
}

const GAP: usize = 2;
const LABEL_LIMIT: usize = 24;
const REASON_LIMIT: usize = 300;
