//! Owns what the pictures of a table show: its figures as bars, and the distributions behind its
//! latencies as curves.

use super::{Column, Sheet, Shown, blank, ratio, spread, value};
use crate::report::marks::{self, Figure, Mark, SetupTime};
use crate::report::picture::{Bar, BarPanel, Bars, Curve, CurvePanel, Curves, Group, Row, percentiles};
use crate::report::text;
use crate::results::{CellRecord, Latency, Measurement, SectionKind, ServerRecord, histogram};

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
            SectionKind::ClosedLoop | SectionKind::Ratio | SectionKind::Generators => {
                [("req/s", Figure::Rate), ("CPU µs/req", Figure::Cpu)]
            }
        };
        let tables = measures.map(|(title, figure)| (figure, self.group(title, figure)));
        let groups = self.columns.iter().enumerate().map(|(at, column)| Group {
            title: column.title.clone(),
            rows: self
                .servers
                .iter()
                .enumerate()
                .map(|(row, server)| {
                    let cell = self.cell(server, column);
                    let bar =
                        |(figure, table): &(Figure, super::Group)| bar(cell, *figure, &table.rows[row].1[at]);
                    self.row(server, tables.iter().map(bar).collect())
                })
                .collect(),
        });
        let findings = measures.map(|(title, figure)| self.finding(title, figure));
        Bars {
            title: format!("{}: {} and {}", self.short_heading(), measures[0].0, measures[1].0),
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

    /// The distributions behind its latencies as curves; `None` without any.
    pub(in crate::report) fn curves(&self) -> Option<Curves> {
        let (what, figure, read): (_, _, fn(&Measurement) -> Option<&Latency>) = match self.section.kind {
            SectionKind::Handshake => {
                ("time of a handshake", Figure::Setup(SetupTime::P99), |m| m.connection.setup_us.as_ref())
            }
            SectionKind::Setup => {
                ("time from the connect to the answer", Figure::Latency(99.0), |m| m.latency_us.as_ref())
            }
            SectionKind::ClosedLoop | SectionKind::Ratio | SectionKind::Generators => {
                ("latency", Figure::Latency(99.0), |m| m.latency_us.as_ref())
            }
        };
        let panels: Vec<CurvePanel> =
            self.columns.iter().map(|column| self.panel(column, figure, read)).collect();
        if panels.iter().all(|panel| panel.curves.is_empty()) {
            return None;
        }
        Some(Curves {
            title: format!("{}: {what} by percentile", self.short_heading()),
            description: format!(
                "{}: {what} up to the 99.99th percentile. {}.",
                self.subject(),
                self.finding("p99 (ms)", figure)
            ),
            unit: "ms, log scale",
            legend: self.servers.iter().map(|server| (server.label.clone(), self.series(server))).collect(),
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
        for server in &self.servers {
            let cell = self.cell(server, column);
            match cell.and_then(|cell| millis(cell, read)) {
                Some(millis) => {
                    let shown = self.shown(cell, figure);
                    panel.curves.push(Curve {
                        series: self.series(server),
                        millis,
                        dashed: shown.marks.contains(&Mark::Starved),
                        marks: marks::signs(&shown.marks),
                    });
                }
                None => {
                    let word = self.shown(cell, figure).text;
                    match panel.words.iter_mut().find(|(known, _)| *known == word) {
                        Some((_, labels)) => labels.push(server.label.clone()),
                        None => panel.words.push((word, vec![server.label.clone()])),
                    }
                }
            }
        }
        panel
    }

    pub(super) fn row(&self, server: &ServerRecord, bars: Vec<Bar>) -> Row {
        Row { label: server.label.clone(), series: self.series(server), bars }
    }

    /// A server has the same colour in every picture of a report.
    fn series(&self, server: &ServerRecord) -> usize {
        self.results.servers.iter().position(|known| known.name == server.name).unwrap_or(0)
    }

    /// Title of the section, with the protocol where it has a table for each of several.
    pub(super) fn heading(&self) -> String {
        let several = self.section.cells.iter().any(|cell| !self.protocols.contains(&cell.protocol));
        match (several, &self.protocols[..]) {
            (true, [only]) => format!("{}, {}", self.section.title, only.prose()),
            _ => self.section.title.clone(),
        }
    }

    /// The heading, with room for what a picture says of it.
    pub(super) fn short_heading(&self) -> String {
        text::cut(&self.heading(), HEADING_LIMIT)
    }

    /// `HTTP/2 over TLS: 5 servers at 1 x 1, 10 x 10`.
    fn subject(&self) -> String {
        let columns: Vec<&str> = self.columns.iter().map(|column| column.title.as_str()).collect();
        format!("{}: {} at {}", self.heading(), self.count(), columns.join(", "))
    }

    pub(super) fn count(&self) -> String {
        match &self.servers[..] {
            [only] => only.label.clone(),
            many => format!("{} servers", many.len()),
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
        spread: summary.and_then(|summary| spread(summary, figure)),
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

/// Characters of a heading before what a picture shows.
const HEADING_LIMIT: usize = 60;
const NANOS_PER_MILLI: f64 = 1e6;
/// Samples beyond the last point of a curve; a percentile with fewer beyond it is chance.
const SLOWER: f64 = 10.0;
