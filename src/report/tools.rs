//! Owns what a report says of the commands that ran beside the load: generators, probes, gates.

use super::quoted;
use super::text::{self, MISSING, Side, code, escape, table};
use crate::results::{
    CellStatus, ExternalRun, GateOutcome, GateRecord, ProbeRecord, Results, ServerRecord, external, stats,
};

/// A line, and the last lines of the log that belongs to it.
pub(super) type Told<'a> = (String, &'a [String]);

/// The table of generators: how each is called; `None` without any.
pub(super) fn generators(results: &Results) -> Option<String> {
    let header = ["Generator", "Version", "Command"].map(|title| (title.to_owned(), Side::Left));
    let rows: Vec<Vec<String>> = results
        .generators
        .iter()
        .map(|generator| {
            vec![
                escape(&generator.label),
                generator.version.as_deref().map_or_else(|| MISSING.into(), escape),
                escape(&quoted(&generator.command)),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| table(&header, &rows))
}

/// The table of probes; `None` without any.
pub(super) fn probes(results: &Results) -> Option<String> {
    let left = |title: &str| (title.to_owned(), Side::Left);
    let header =
        [left("Probe"), left("Version"), left("Figure"), ("Value".to_owned(), Side::Right), left("Unit")];
    let mut rows = Vec::new();
    for probe in &results.probes {
        for (i, figure) in probe.figures.iter().enumerate() {
            let version = probe.version.as_deref().map_or_else(|| MISSING.into(), escape);
            let (label, version) =
                if i == 0 { (escape(&probe.label), version) } else { (String::new(), String::new()) };
            let value = match (figure.value, probe.status) {
                (Some(value), _) => text::plain(value),
                (None, CellStatus::Failed) => "FAIL".into(),
                (None, _) => MISSING.into(),
            };
            rows.push(vec![label, version, escape(&figure.name), value, escape(&figure.unit)]);
        }
    }
    (!rows.is_empty()).then(|| table(&header, &rows))
}

/// Why figures of probes are missing.
pub(super) fn probe_problems(results: &Results) -> Vec<Told<'_>> {
    results.probes.iter().filter_map(problem).collect()
}

fn problem(probe: &ProbeRecord) -> Option<Told<'_>> {
    let label = escape(&probe.label);
    let reason = probe.reason.as_deref().map_or_else(|| "not run".into(), escape);
    let line = match probe.status {
        CellStatus::Measured => {
            let missing = probe.figures.iter().filter(|figure| figure.value.is_none());
            let missing: Vec<String> = missing
                .map(|figure| format!("{} ({})", escape(&figure.name), code(&figure.pattern)))
                .collect();
            if missing.is_empty() {
                return None;
            }
            format!("**{label}**: its output has no match for {}", missing.join(", "))
        }
        CellStatus::Failed | CellStatus::WrongProtocol => {
            format!("**{label}**: FAIL: {}: {reason}", code(&quoted(&probe.command)))
        }
        CellStatus::Absent => format!("**{label}**: n/a: {reason}"),
        CellStatus::Interrupted | CellStatus::Pending => format!("**{label}**: cut: {reason}"),
    };
    Some((line, &probe.log_tail))
}

/// What came of each gate.
pub(super) fn gates(results: &Results) -> Vec<Told<'_>> {
    results.servers.iter().filter_map(|server| Some(gate_line(server, server.gate.as_ref()?))).collect()
}

fn gate_line<'a>(server: &ServerRecord, gate: &'a GateRecord) -> Told<'a> {
    let label = escape(&server.label);
    let command = code(&quoted(&gate.command));
    let reason = gate.reason.as_deref().map_or_else(|| MISSING.into(), escape);
    match gate.outcome {
        GateOutcome::Passed => (format!("**{label}**: passed {command}"), &[]),
        GateOutcome::Failed => {
            (format!("**{label}**: FAIL: {command}: {reason}; it is best nowhere"), &gate.log_tail)
        }
        GateOutcome::NotRun => (format!("**{label}**: not run: {reason}"), &[]),
    }
}

/// What does not fit together in the figures of a generator, by its own account.
pub(super) fn beyond_offered(runs: &[&ExternalRun], offered: f64) -> Option<String> {
    let in_flight = |run: &&ExternalRun| stats::little_law(external::rate(run)?, run.latency_mean_us?);
    let in_flight = stats::median(&runs.iter().filter_map(in_flight).collect::<Vec<_>>())?;
    (in_flight > offered * BEYOND).then(|| {
        format!(
            "its rate and mean latency make {in_flight:.1} requests in flight where {offered} were offered: its \
             latencies hold more than the requests it sent (wrk adds some, to correct for coordinated omission)"
        )
    })
}

/// A mean and a rate are not quite of the same interval.
const BEYOND: f64 = 1.1;
