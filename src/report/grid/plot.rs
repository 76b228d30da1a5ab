//! Owns what the pictures of a table show: its figures as bars, and the distributions behind its
//! latencies as curves.

use super::{Column, Row, Sheet, Shown, blank, ratio, spread, value};
use crate::report::marks::{self, Figure, Mark, SetupTime};
use crate::report::picture::{self, Bar, BarPanel, Bars, Curve, CurvePanel, Curves, percentiles};
use crate::report::text::{self, MISSING};
use crate::results::{CellRecord, Latency, Measurement, SectionKind, histogram};

impl Sheet<'_> {
    /// Its figures as bars.
    pub(in crate::report) fn bars(&self) -> Bars {
        if self.section.kind == SectionKind::Ratio
            && let Some(bars) = ratio::bars(self)
        {
            return bars;
        }
        let measures = match self.section.kind {
            SectionKind::Setup => [("conn/s", Figure::Rate), ("CPU µs/conn", Figure::Cpu)],
            SectionKind::Handshake => {
                [("conn/s", Figure::Connections), ("CPU µs/conn", Figure::CpuPerConnection)]
            }
            SectionKind::Generators => {
                [("req/s", Figure::Rate), ("generator CPU µs/req", Figure::GeneratorCpu)]
            }
            SectionKind::ClosedLoop | SectionKind::Ratio => {
                [("req/s", Figure::Rate), ("CPU µs/req", Figure::Cpu)]
            }
        };
        let tables = measures.map(|(title, figure)| (figure, self.group(title, figure)));
        let groups = self.columns.iter().enumerate().map(|(at, column)| picture::Group {
            title: column.title.clone(),
            rows: self
                .rows
                .iter()
                .enumerate()
                .map(|(n, row)| {
                    let cell = self.cell(*row, column);
                    let bar =
                        |(figure, table): &(Figure, super::Group)| bar(cell, *figure, &table.rows[n].1[at]);
                    self.bars_of(*row, tables.iter().map(bar).collect())
                })
                .collect(),
        });
        let findings = measures.map(|(title, figure)| self.finding(title, figure));
        Bars {
            title: format!("{}: {} and {}", self.short_title(), measures[0].0, measures[1].0),
            description: format!("{}. {}.", self.subject(), findings.join(". ")),
            panels: measures
                .map(|(title, figure)| BarPanel {
                    title: title.into(),
                    hint: if figure.is_rate() { "more is better" } else { "less is better" },
                    same_scale: false,
                    reference: None,
                })
                .into(),
            groups: groups.collect(),
        }
    }

    /// The distributions behind its latencies as curves; `None` without any. Other generators than this
    /// tool's tell some percentiles at most.
    pub(in crate::report) fn curves(&self) -> Option<Curves> {
        let (what, figure, read): (_, _, fn(&Measurement) -> Option<&Latency>) = match self.section.kind {
            SectionKind::Handshake => {
                ("time of a handshake", Figure::Setup(SetupTime::P99), |m| m.connection.setup_us.as_ref())
            }
            SectionKind::Setup => {
                ("time from the connect to the answer", Figure::Latency(99.0), |m| m.latency_us.as_ref())
            }
            SectionKind::ClosedLoop | SectionKind::Ratio => {
                ("latency", Figure::Latency(99.0), |m| m.latency_us.as_ref())
            }
            SectionKind::Generators => return None,
        };
        let panels: Vec<CurvePanel> =
            self.columns.iter().map(|column| self.panel(column, figure, read)).collect();
        if panels.iter().all(|panel| panel.curves.is_empty()) {
            return None;
        }
        Some(Curves {
            title: format!("{}: {what} by percentile", self.short_title()),
            description: format!(
                "{}: {what} up to the 99.99th percentile. {}.",
                self.subject(),
                self.finding("p99 (ms)", figure)
            ),
            unit: "ms, log scale",
            legend: self.rows.iter().map(|row| (row.name(), self.series(*row))).collect(),
            panels,
            paired: self.section.kind == SectionKind::Ratio,
        })
    }

    fn panel(
        &self,
        column: &Column,
        figure: Figure,
        read: fn(&Measurement) -> Option<&Latency>,
    ) -> CurvePanel {
        let mut panel = CurvePanel { title: column.title.clone(), curves: vec![], words: vec![] };
        for row in &self.rows {
            let cell = self.cell(*row, column);
            match cell.and_then(|cell| millis(cell, read)) {
                Some(millis) => {
                    let shown = self.shown(cell, figure);
                    panel.curves.push(Curve {
                        series: self.series(*row),
                        millis,
                        dashed: shown.marks.contains(&Mark::Starved),
                        marks: marks::signs(&shown.marks),
                    });
                }
                None => {
                    let word = cell.and_then(|cell| blank(cell.summary.verdict)).unwrap_or(MISSING);
                    match panel.words.iter_mut().find(|(known, _)| *known == word) {
                        Some((_, labels)) => labels.push(row.name()),
                        None => panel.words.push((word, vec![row.name()])),
                    }
                }
            }
        }
        panel
    }

    pub(super) fn bars_of(&self, row: Row<'_>, bars: Vec<Bar>) -> picture::Row {
        picture::Row { label: row.name(), series: self.series(row), bars }
    }

    /// A server has the same colour in every picture of a report, and a generator has.
    fn series(&self, row: Row<'_>) -> usize {
        let servers = &self.results.servers;
        let of_server = || servers.iter().position(|known| known.name == row.server.name);
        row.generator.map(|index| index as usize).or_else(of_server).unwrap_or(0)
    }

    /// Title of the section, with what tells it from the other tables of the section where there are any.
    pub(super) fn whole_title(&self) -> String {
        let others = self.section.cells.iter().any(|cell| !self.protocols.contains(&cell.protocol));
        let title = &self.section.title;
        if others || self.section.kind == SectionKind::Generators {
            format!("{title}, {}", self.heading())
        } else {
            title.clone()
        }
    }

    /// The title, with room for what a picture says of it.
    pub(super) fn short_title(&self) -> String {
        text::cut(&self.whole_title(), TITLE_LIMIT)
    }

    /// `HTTP/2 over TLS: 5 servers at 1 x 1, 10 x 10`.
    fn subject(&self) -> String {
        let columns: Vec<&str> = self.columns.iter().map(|column| column.title.as_str()).collect();
        format!("{}: {} at {}", self.whole_title(), self.count(), columns.join(", "))
    }

    pub(super) fn count(&self) -> String {
        match &self.rows[..] {
            [only] => only.name(),
            many => format!("{} {}s", many.len(), self.of().to_lowercase()),
        }
    }

    /// What a reader would take from a figure: the best of each column, or the figures of an only server.
    fn finding(&self, title: &str, figure: Figure) -> String {
        let group = self.group(title, figure);
        let alone = group.rows.len() == 1;
        let columns = self.columns.iter().enumerate().filter_map(|(at, column)| {
            let named = group.rows.iter().filter(|(_, places)| alone || places[at].best);
            let named: Vec<String> = named
                .map(|(label, places)| match alone {
                    true => written(&places[at]),
                    false => format!("{label} {}", written(&places[at])),
                })
                .collect();
            (!named.is_empty()).then(|| format!("at {} {}", column.title, named.join(", ")))
        });
        let columns: Vec<String> = columns.collect();
        match (&columns[..], alone) {
            ([], _) => format!("No best {title}"),
            (_, true) => format!("{title}: {}", columns.join("; ")),
            (_, false) => format!("Best {title}: {}", columns.join("; ")),
        }
    }
}

/// A figure of a cell as a bar, with the text that the table has in its place.
pub(super) fn bar(cell: Option<&CellRecord>, figure: Figure, shown: &Shown) -> Bar {
    let summary = cell.map(|cell| &cell.summary).filter(|summary| blank(summary.verdict).is_none());
    Bar {
        value: summary.and_then(|summary| value(summary, figure)),
        spread: cell.filter(|_| summary.is_some()).and_then(|cell| spread(cell, figure)),
        text: written(shown),
        best: shown.best,
        marked: !shown.marks.is_empty(),
    }
}

/// A place of a table as plain text.
pub(super) fn written(shown: &Shown) -> String {
    format!("{}{}", shown.text, marks::signs(&shown.marks))
}

/// A distribution over all measured rounds in ms at the percentiles of curves, as far as ten samples are
/// slower; `None` without one that can be read.
fn millis(cell: &CellRecord, read: fn(&Measurement) -> Option<&Latency>) -> Option<Vec<f64>> {
    blank(cell.summary.verdict).is_none().then_some(())?;
    let rounds = super::measured(cell).filter_map(read);
    let merged = histogram::merge(rounds).ok().flatten()?;
    let carried = |percentile: &f64| merged.len() as f64 * (100.0 - percentile) / 100.0 >= SLOWER;
    let at = |percentile: f64| merged.value_at_percentile(percentile) as f64 / NANOS_PER_MILLI;
    Some(percentiles().take_while(carried).map(at).collect())
}

/// Characters of a title before what a picture shows.
const TITLE_LIMIT: usize = 60;
const NANOS_PER_MILLI: f64 = 1e6;
/// Samples beyond the last point of a curve; a percentile with fewer beyond it is chance.
const SLOWER: f64 = 10.0;
