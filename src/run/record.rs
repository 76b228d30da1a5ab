//! Owns the records a run begins with: from a scenario to [`Results`] without any round, and the
//! outcome of a cell as a [`RoundRecord`]. Pure.

use super::cell::{Ending, Watched};
use super::schedule::Visit;
use super::{external, tools};
use crate::results::store::Entry;
use crate::results::{
    CellRecord, CellStatus, Environment, HeaderField, Protocol, Results, RoundRecord, ScenarioRecord,
    SectionRecord, ServerRecord, Session, Settings, Summary, Verdict, version,
};
use crate::scenario::{Cell, Expected, Scenario, Section, ServerSpec};

/// The run without any round, opened by one session.
pub(crate) fn results(scenario: &Scenario, session: Session) -> Results {
    Results {
        format: version::FORMAT.into(),
        tool: concat!("bench ", env!("CARGO_PKG_VERSION")).into(),
        title: scenario.title.clone(),
        report: scenario.report.clone(),
        template: scenario.template.clone(),
        scenario: ScenarioRecord { path: scenario.path.clone(), text: scenario.text.clone() },
        overrides: scenario.overrides.clone(),
        sessions: vec![session],
        settings: settings(scenario),
        servers: scenario.servers.iter().map(server).collect(),
        generators: scenario.generators.iter().map(external::planned).collect(),
        probes: scenario.probes.iter().map(tools::planned).collect(),
        sections: scenario.sections.iter().map(|section| self::section(scenario, section)).collect(),
        complete: false,
    }
}

/// The session that begins now.
pub(crate) fn session(command: Vec<String>, environment: Environment, started_at: String) -> Session {
    Session { command, started_at, finished_at: None, environment, order: Vec::new() }
}

/// A server of which nothing is known but what the scenario says.
pub(crate) fn server(spec: &ServerSpec) -> ServerRecord {
    ServerRecord {
        name: spec.name.clone(),
        label: spec.label.clone(),
        version: None,
        protocols: spec.protocols.clone(),
        command: spec.command.clone(),
        unavailable: None,
        build_s: None,
        starts: Vec::new(),
        note: spec.note.clone(),
        variant: spec.variant.clone(),
        workers: spec.workers,
        gate: None,
        revision: spec.revision.clone(),
    }
}

/// The journal entry of one outcome.
pub(crate) fn entry(scenario: &Scenario, visit: &Visit, round: RoundRecord) -> Entry {
    Entry::Round {
        section: index(visit.section),
        server: scenario.servers[visit.server].name.clone(),
        protocol: visit.protocol,
        connections: visit.cell.connections,
        concurrency: visit.cell.concurrency,
        resumption: visit.cell.resumption,
        requests_per_connection: visit.cell.requests_per_connection,
        generator: visit.cell.generator.map(index),
        round: Box::new(round),
    }
}

/// A round that has no measurement.
pub(crate) fn without_measurement(
    visit: &Visit,
    session: u32,
    status: CellStatus,
    reason: String,
    log_tail: Vec<String>,
) -> RoundRecord {
    RoundRecord {
        round: visit.round,
        session,
        status,
        reason: Some(reason),
        log_tail,
        measurement: None,
        server: None,
        external: None,
        answer: None,
    }
}

/// The outcome of a cell that was watched to its end. `death` is how its server ended, when it did:
/// that is then the reason, whatever the generator still measured. `log_tail` is read for a failure
/// only, and not where the generator said what failed.
pub(crate) fn round(
    visit: &Visit,
    session: u32,
    watched: Watched,
    death: Option<String>,
    log_tail: impl FnOnce() -> Vec<String>,
) -> RoundRecord {
    let dead = death.is_some();
    let (status, reason) = match (watched.ending, death) {
        (Ending::Cut(reason), _) => (CellStatus::Interrupted, Some(reason)),
        (_, Some(death)) => (CellStatus::Failed, Some(format!("the server {death} during the cell"))),
        (Ending::Measured, None) => (CellStatus::Measured, None),
        (Ending::Failed(reason), None) => (CellStatus::Failed, Some(reason)),
        (Ending::Refused(reason), None) => {
            (CellStatus::Failed, Some(format!("the generator could not measure: {reason}")))
        }
    };
    let (external, said) = watched.external.unzip();
    RoundRecord {
        round: visit.round,
        session,
        status,
        reason,
        log_tail: match said {
            _ if status != CellStatus::Failed => Vec::new(),
            Some(said) if !dead => said,
            _ => log_tail(),
        },
        measurement: watched.measurement.map(|measurement| *measurement),
        server: watched.sample,
        external: external.map(|external| *external),
        answer: watched.answer,
    }
}

/// A record with this one round, to be judged alone.
pub(crate) fn cell(scenario: &Scenario, visit: &Visit, rounds: Vec<RoundRecord>) -> CellRecord {
    planned(&scenario.servers[visit.server], visit.protocol, visit.cell, rounds)
}

fn planned(server: &ServerSpec, protocol: Protocol, cell: Cell, rounds: Vec<RoundRecord>) -> CellRecord {
    CellRecord {
        server: server.name.clone(),
        protocol,
        connections: cell.connections,
        concurrency: cell.concurrency,
        resumption: cell.resumption,
        requests_per_connection: cell.requests_per_connection,
        generator: cell.generator.map(index),
        rounds,
        summary: nothing_yet(),
    }
}

/// An index as the results file holds it. Scenarios have far fewer than 2³² of anything.
pub(crate) fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The settings in force.
pub(crate) fn settings(scenario: &Scenario) -> Settings {
    let run = &scenario.run;
    Settings {
        rounds: run.rounds,
        duration_s: run.duration.as_secs_f64(),
        warmup_s: run.warmup.as_secs_f64(),
        drain_s: run.drain.as_secs_f64(),
        settle_s: run.settle.as_secs_f64(),
        server_cpus: scenario.pin.servers.clone(),
        generator_cpus: scenario.pin.generator.clone(),
        workers: scenario.pin.workers,
        generator_threads: scenario.pin.generator_threads,
        wait: run.wait,
        expect: expectation(&scenario.expect),
        certificate: "self-signed, EC P-256, made for this run".into(),
        percentiles: run.percentiles.clone(),
        unstable_above: run.unstable_above,
        order: run.order,
    }
}

/// Cells in the order the results file promises: server, protocol, cell, generator.
fn section(scenario: &Scenario, section: &Section) -> SectionRecord {
    let mut cells = Vec::new();
    for spec in scenario.servers.iter().filter(|spec| section.takes_part(spec)) {
        for &protocol in &section.protocols {
            cells.extend(section.cells_of(protocol).map(|cell| planned(spec, protocol, cell, Vec::new())));
        }
    }
    SectionRecord {
        title: section.title.clone(),
        kind: section.kind,
        cells,
        headers: section
            .headers
            .iter()
            .map(|(name, value)| HeaderField { name: name.clone(), value: value.clone() })
            .collect(),
        runs: section.runs,
    }
}

/// What every response must be, as one phrase, e.g. `status 200, body of 14 bytes`.
fn expectation(expected: &Expected) -> String {
    let status = expected.status.map_or("status 2xx or 3xx".to_owned(), |status| format!("status {status}"));
    let length = expected.body.as_ref().map(|body| body.len() as u64).or(expected.length);
    match (length, &expected.body) {
        (None, _) => status,
        (Some(length), Some(_)) => format!("{status}, exactly this body of {length} bytes"),
        (Some(length), None) => format!("{status}, body of {length} bytes"),
    }
}

/// The summary of a cell without a round; every reader of a journal computes summaries anew.
fn nothing_yet() -> Summary {
    Summary {
        verdict: Verdict::Interrupted,
        verdicts: vec![Verdict::Interrupted],
        reasons: vec!["not measured yet".into()],
        bound: None,
        bound_reason: None,
        rounds_measured: 0,
        requests_per_second: None,
        spread: None,
        latency_mean_us: None,
        latency_us: std::collections::BTreeMap::new(),
        latency_spread: std::collections::BTreeMap::new(),
        max_is_lower_bound: false,
        latency_max_us: None,
        in_flight: None,
        effective_concurrency: None,
        server_cpu_us_per_request: None,
        server_cpu_spread: None,
        server_peak_rss_kib: None,
        server_busy: None,
        server_busiest_thread: None,
        generator_busy: None,
        generator_cpu_us_per_request: None,
        handshake: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture;
    use crate::run::schedule::visits;

    #[test]
    fn cells_stand_in_the_order_server_protocol_cell() {
        let scenario = fixture::scenario(1, &["a", "b"], &[&[Protocol::H1, Protocol::H1s]], &[1, 10]);
        let results = results(&scenario, session(vec![], fixture::environment(), "now".into()));
        let order: Vec<_> = results.sections[0]
            .cells
            .iter()
            .map(|cell| format!("{} {} {}", cell.server, cell.protocol.name(), cell.connections))
            .collect();
        let expected =
            ["a h1 1", "a h1 10", "a h1s 1", "a h1s 10", "b h1 1", "b h1 10", "b h1s 1", "b h1s 10"];
        assert_eq!(order, expected);
    }

    /// The plan of a run and its outcomes agree on what tells cells apart.
    #[test]
    fn cells_of_one_size_are_told_apart_by_their_resumption() {
        use crate::results::{Resumption, SectionKind, store};

        let mut scenario = fixture::scenario(1, &["a"], &[&[Protocol::H3, Protocol::H1s]], &[1]);
        scenario.sections[0].kind = SectionKind::Handshake;
        scenario.sections[0].cells = Resumption::ALL
            .map(|resumption| Cell { resumption, requests_per_connection: Some(2), ..Cell::new(1, 1) })
            .to_vec();
        let plan = results(&scenario, session(vec![], fixture::environment(), "now".into()));
        let names: Vec<String> = plan.sections[0].cells.iter().map(|cell| cell.key().to_string()).collect();
        let each = "requests on each connection";
        let ways = ["h3 1x1/off", "h3 1x1/ticket", "h3 1x1/0rtt", "h1s 1x1/off", "h1s 1x1/ticket"];
        assert_eq!(names, ways.map(|way| format!("{way}, 2 {each}")));
        let mut entries = vec![Entry::Plan(Box::new(plan))];
        for visit in visits(&scenario) {
            let reason = visit.key().to_string();
            let round = without_measurement(&visit, 0, CellStatus::Failed, reason, vec![]);
            entries.push(entry(&scenario, &visit, round));
        }
        let folded = store::assemble(&entries).unwrap();
        for cell in &folded.sections[0].cells {
            assert_eq!(cell.rounds.len(), 1);
            assert_eq!(cell.summary.reasons, [cell.key().to_string()]);
        }
    }

    #[test]
    fn the_death_of_a_server_is_the_reason() {
        let scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[1]);
        let visit = visits(&scenario)[0];
        let measured = || Watched {
            ending: Ending::Measured,
            measurement: Some(Box::new(fixture::measurement(5))),
            sample: None,
            external: None,
            answer: None,
        };
        let tail = || vec!["out of memory".to_owned()];
        let good = round(&visit, 0, measured(), None, tail);
        assert_eq!((good.status, good.reason, good.log_tail.len()), (CellStatus::Measured, None, 0));
        let dead = round(&visit, 0, measured(), Some("was killed by SIGKILL".into()), tail);
        assert_eq!(dead.status, CellStatus::Failed);
        assert_eq!(dead.reason.as_deref(), Some("the server was killed by SIGKILL during the cell"));
        assert_eq!(dead.log_tail, ["out of memory"]);
        assert!(dead.measurement.is_some());
        let cut = round(&visit, 0, Watched::without(Ending::Cut("why".into())), Some("ended".into()), tail);
        assert_eq!((cut.status, cut.reason.as_deref()), (CellStatus::Interrupted, Some("why")));
    }

    #[test]
    fn expectations_read_as_phrases() {
        let mut expected = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[1]).expect;
        assert_eq!(expectation(&expected), "status 200, exactly this body of 3 bytes");
        expected.body = None;
        expected.length = Some(1024);
        assert_eq!(expectation(&expected), "status 200, body of 1024 bytes");
        (expected.status, expected.length) = (None, None);
        assert_eq!(expectation(&expected), "status 2xx or 3xx");
    }
}
