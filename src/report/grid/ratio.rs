//! Owns the table of a ratio: for each cell, the two protocols of every server beside each other.
//!
//! Nothing in it is bold. The protocols of one server are compared along a row, and which server has
//! the largest ratio is no contest: a slow HTTP/1.1 would win it.

use super::{Column, Grid, Group, Row, Sheet, Shown, blank, value};
use crate::report::marks::{self, Figure, Mark};
use crate::report::text::{self, MISSING};
use crate::results::{CellRecord, Protocol};

/// A size of cell, once over each protocol.
struct Pair<'c> {
    first: &'c Column,
    second: &'c Column,
}

/// The table of figures; `None` when the section does not hold two protocols.
pub(super) fn figures(sheet: &Sheet<'_>) -> Option<Grid> {
    let (first, second) = protocols(sheet)?;
    let title = |protocol: Protocol, figure: &str| format!("{} {figure}", protocol.version());
    let groups = pairs(sheet).map(|pair| Group {
        title: pair.first.size.clone(),
        rows: sheet.rows.iter().map(|of| (of.name(), row(sheet, *of, &pair))).collect(),
    });
    Some(Grid {
        header: vec![
            title(first, "req/s"),
            title(second, "req/s"),
            "ratio".into(),
            title(first, "p50 (ms)"),
            title(second, "p50 (ms)"),
        ],
        groups: groups.collect(),
    })
}

/// Places whose two rates are within noise of each other, by name: there the ratio tells nothing.
pub(super) fn even(sheet: &Sheet<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for pair in pairs(sheet) {
        for row in &sheet.rows {
            let rate = |column| {
                let summary = &sheet.cell(*row, column)?.summary;
                Some((summary.requests_per_second?, summary.spread?))
            };
            if let (Some((a, a_spread)), Some((b, b_spread))) = (rate(pair.first), rate(pair.second))
                && (a - b).abs() <= a * a_spread + b * b_spread
            {
                names.push(format!("{} {}", row.label, pair.first.size));
            }
        }
    }
    names
}

/// The protocol above the line and the one below it.
fn protocols(sheet: &Sheet<'_>) -> Option<(Protocol, Protocol)> {
    match sheet.protocols[..] {
        [first, second] => Some((first, second)),
        _ => None,
    }
}

fn pairs<'c>(sheet: &'c Sheet<'_>) -> impl Iterator<Item = Pair<'c>> {
    let (first, second) = protocols(sheet).unzip();
    let of = move |protocol: Option<Protocol>| {
        sheet.columns.iter().filter(move |column| Some(column.key.protocol) == protocol)
    };
    of(first).filter_map(move |first| {
        let second = of(second).find(|second| second.size == first.size)?;
        Some(Pair { first, second })
    })
}

fn row(sheet: &Sheet<'_>, of: Row<'_>, pair: &Pair<'_>) -> Vec<Shown> {
    let (first, second) = (sheet.cell(of, pair.first), sheet.cell(of, pair.second));
    let p50 = Figure::Latency(50.0);
    vec![
        sheet.shown(first, Figure::Rate),
        sheet.shown(second, Figure::Rate),
        ratio(sheet, first, second),
        sheet.shown(first, p50),
        sheet.shown(second, p50),
    ]
}

/// The first rate divided by the second, with every mark of either cell: what speaks against one of
/// them speaks against the ratio.
fn ratio(sheet: &Sheet<'_>, first: Option<&CellRecord>, second: Option<&CellRecord>) -> Shown {
    let plain = |text: &str| Shown { text: text.to_owned(), best: false, marks: vec![] };
    let (Some(first), Some(second)) = (first, second) else { return plain(MISSING) };
    let blanks: Vec<&str> = [first, second].iter().filter_map(|cell| blank(cell.summary.verdict)).collect();
    if let Some(shows) = ["FAIL", "cut", MISSING].into_iter().find(|shows| blanks.contains(shows)) {
        return plain(shows);
    }
    let rate = |cell: &CellRecord| value(&cell.summary, Figure::Rate);
    match (rate(first), rate(second)) {
        (Some(above), Some(below)) if below > 0.0 => {
            let mut all: Vec<Mark> =
                [first, second].iter().flat_map(|cell| marks::marks(cell, &sheet.results.settings)).collect();
            all.sort();
            all.dedup();
            Shown { text: text::times(above / below), best: false, marks: all }
        }
        _ => plain(MISSING),
    }
}
