//! Owns what is done once for each server and each generator before the first round: requirements,
//! build, version. What goes wrong makes its cells `n/a` or `FAIL`, and never stops the run.

use std::collections::{BTreeMap, BTreeSet};

use super::progress::Progress;
use super::schedule::Start;
use super::{RunError, external, record};
use crate::results::{CellStatus, GeneratorRecord, ServerRecord, Unavailable};
use crate::scenario::{Scenario, ServerSpec};
use crate::server::{self, Host, ServerError};
use crate::units::format_duration;

/// The records of the servers of which `wanted` holds, in scenario order.
///
/// # Errors
/// When every one is needed: the first that cannot be measured, with its last log lines.
pub(crate) fn servers(
    scenario: &Scenario,
    host: &Host,
    progress: &mut Progress,
    wanted: &dyn Fn(usize) -> bool,
    every_one: bool,
) -> Result<Vec<ServerRecord>, RunError> {
    let mut records = Vec::new();
    for (_, spec) in scenario.servers.iter().enumerate().filter(|(index, _)| wanted(*index)) {
        let record = server(scenario, spec, host, progress);
        if let Some(Unavailable { reason, log_tail, .. }) = record.unavailable.as_ref().filter(|_| every_one)
        {
            let log: String = log_tail.iter().map(|line| format!("\n  {line}")).collect();
            return Err(RunError(format!("{}: {reason}{log}", spec.label)));
        }
        records.push(record);
    }
    Ok(records)
}

/// The records of the generators that drive a cell of `starts`, by their places in the scenario.
pub(crate) fn generators(
    scenario: &Scenario,
    host: &Host,
    progress: &mut Progress,
    starts: &[Start],
) -> BTreeMap<usize, GeneratorRecord> {
    let wanted = starts.iter().flat_map(|start| &start.cells).filter_map(|cell| cell.generator);
    let wanted: BTreeSet<usize> = wanted.collect();
    let mut records = BTreeMap::new();
    for index in wanted {
        let record = external::prepare(&scenario.generators[index], &host.exe);
        if let Some(unavailable) = &record.unavailable {
            progress.say(&format!("{}: n/a: {}", record.name, unavailable.reason));
        }
        records.insert(index, record);
    }
    records
}

fn server(scenario: &Scenario, spec: &ServerSpec, host: &Host, progress: &mut Progress) -> ServerRecord {
    let mut record = record::server(spec);
    if !spec.build.is_empty() {
        progress.now(&format!("building {}", spec.label));
    }
    let built =
        server::requirements(spec).and_then(|()| server::build(host, spec, scenario.run.build_deadline));
    match built {
        Ok(took) => {
            if let Some(took) = took {
                progress.say(&format!("{}: built in {}", spec.name, format_duration(rounded(took))));
            }
            record.build_s = took.map(crate::time::Span::as_secs_f64);
            record.version = server::version(spec);
        }
        Err(error) => {
            let unavailable = unavailable(error);
            let word = if unavailable.status == CellStatus::Absent { "n/a" } else { "FAIL" };
            progress.say(&format!("{}: {word}: {}", spec.name, unavailable.reason));
            record.unavailable = Some(unavailable);
        }
    }
    record
}

fn unavailable(error: ServerError) -> Unavailable {
    let status = if error.absent { CellStatus::Absent } else { CellStatus::Failed };
    Unavailable { status, reason: error.reason, log_tail: error.log_tail }
}

/// To tenths of a second: builds are told to people.
fn rounded(span: crate::time::Span) -> crate::time::Span {
    const TENTH: u64 = 100_000_000;
    crate::time::Span::from_nanos(span.as_nanos().div_ceil(TENTH).saturating_mul(TENTH))
}
