//! Owns the table of load generators: each of them down, cells across, and what stands beside their rates.

use super::{Grid, Group, Row, Sheet, Shown, bound_name, percentile_name};
use crate::report::marks::Figure;
use crate::report::text::MISSING;
use crate::results::{Results, SectionRecord, ServerRecord};

/// The generators that drove cells of a server, in the order of the scenario.
pub(super) fn rows<'a>(
    results: &'a Results,
    section: &SectionRecord,
    server: &'a ServerRecord,
) -> Vec<Row<'a>> {
    let drives = |index: u32| {
        let mut cells = section.cells.iter().filter(|cell| cell.server == server.name);
        cells.any(|cell| cell.generator == Some(index))
    };
    let generators = (0u32..).zip(&results.generators).filter(|(index, _)| drives(*index));
    generators
        .map(|(index, generator)| Row { label: &generator.label, server, generator: Some(index) })
        .collect()
}

/// The table of figures.
pub(super) fn figures(sheet: &Sheet<'_>) -> Grid {
    let mut groups = vec![sheet.group("req/s", Figure::Rate)];
    for percentile in &sheet.results.settings.percentiles {
        let title = format!("{} (ms)", percentile_name(*percentile));
        groups.push(sheet.group(&title, Figure::Latency(*percentile)));
    }
    groups.push(sheet.group("generator CPU µs/req", Figure::GeneratorCpu));
    groups.push(sheet.group("server CPU µs/req", Figure::Cpu));
    groups.push(Group {
        title: "bound by".into(),
        rows: sheet.rows(&sheet.rows, &|cell| {
            let bound = cell.and_then(|cell| cell.summary.bound).map_or(MISSING, bound_name);
            Shown { text: bound.into(), best: false, marks: vec![] }
        }),
    });
    Grid { header: sheet.columns.iter().map(|column| column.title.clone()).collect(), groups }
}
