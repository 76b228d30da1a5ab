//! Owns the tables of every round, one for each section, folded away: what the medians are taken from.

use super::grid;
use super::text::{self, MISSING, Side, escape, table};
use crate::results::{CellStatus, Results, RoundRecord, SectionRecord, external, histogram, stats};
use crate::units::group_thousands;

/// The tables, as Markdown under a heading of their own; nothing for a run without rounds.
pub(super) fn rounds(results: &Results) -> String {
    let tables: Vec<String> = results.sections.iter().filter_map(|section| of(results, section)).collect();
    if tables.is_empty() {
        return String::new();
    }
    format!("## Every round\n\n{}", tables.concat())
}

fn of(results: &Results, section: &SectionRecord) -> Option<String> {
    let mut rows = Vec::new();
    for sheet in grid::sheets(results, section) {
        let one_protocol = sheet.protocols().len() == 1;
        for (name, cell) in sheet.named_cells() {
            let name = if one_protocol { format!("{name} ({})", cell.protocol.name()) } else { name };
            rows.extend(cell.rounds.iter().map(|round| row(&name, round)));
        }
    }
    let side = |title: &str| if ["Cell", "Outcome"].contains(&title) { Side::Left } else { Side::Right };
    let header: Vec<_> = HEADER.iter().map(|title| ((*title).to_owned(), side(title))).collect();
    (!rows.is_empty()).then(|| {
        let summary = format!("<details><summary>{} rounds</summary>", group_thousands(rows.len() as u64));
        format!("### {}\n\n{summary}\n\n{}\n\n</details>\n\n", escape(&section.title), table(&header, &rows))
    })
}

fn row(name: &str, round: &RoundRecord) -> Vec<String> {
    let missing = || MISSING.to_owned();
    let show = |figure: Option<f64>, as_text: fn(f64) -> String| figure.map_or_else(missing, as_text);
    let m = round.measurement.as_ref();
    let server = round.server.as_ref();
    // A generator run as a command says what it says; there is no histogram behind it.
    let said = round.external.as_ref();
    let latency = |percentile: f64| match m {
        Some(m) => histogram::percentile(m.latency_us.as_ref()?, percentile).ok(),
        None if percentile == 100.0 => said?.latency_max_us,
        None => said?.latency_us.get(&stats::percentile_key(percentile)).copied(),
    };
    let count =
        |measured: Option<u64>, said: Option<u64>| measured.or(said).map_or_else(missing, group_thousands);
    vec![
        escape(name),
        round.round.to_string(),
        (round.session + 1).to_string(),
        show(m.map_or_else(|| external::rate(said?), |m| m.requests_per_second), text::rate),
        show(latency(50.0), text::millis),
        show(latency(90.0), text::millis),
        show(latency(99.0), text::millis),
        show(latency(99.9), text::millis),
        show(latency(100.0), text::millis),
        count(m.map(|m| m.requests.ok), said.and_then(|said| said.ok)),
        count(m.map(|m| m.requests.failed), said.and_then(|said| said.failed)),
        count(m.map(|m| m.requests.unfinished), None),
        show(server.and_then(|s| s.cpu_us_per_request), text::micros),
        show(server.and_then(|s| s.cpus_busy), text::percent),
        show(m.and_then(stats::generator_busy), text::percent),
        server.map_or_else(missing, |s| text::mebibytes(s.peak_rss_kib)),
        outcome(round),
    ]
}

fn outcome(round: &RoundRecord) -> String {
    let word = match round.status {
        CellStatus::Measured => "measured",
        CellStatus::Failed => "failed",
        CellStatus::WrongProtocol => "wrong protocol",
        CellStatus::Interrupted => "cut short",
        CellStatus::Absent => "absent",
        CellStatus::Pending => "not yet measured",
    };
    match &round.reason {
        Some(reason) => format!("{word}: {}", escape(&text::cut(reason, REASON_LIMIT))),
        None => word.to_owned(),
    }
}

const HEADER: [&str; 17] = [
    "Cell",
    "Round",
    "Session",
    "req/s",
    "p50 (ms)",
    "p90 (ms)",
    "p99 (ms)",
    "p99.9 (ms)",
    "max (ms)",
    "ok",
    "failed",
    "unfinished",
    "CPU µs/req",
    "server CPUs busy",
    "generator busy",
    "peak memory (MiB)",
    "Outcome",
];
const REASON_LIMIT: usize = 200;
