//! Owns a load generator run as a command: its words for a cell, what is done once for each before the first
//! round, and what its run came to. What it prints is read in `output`.

mod output;

use std::collections::BTreeMap;
use std::path::Path;

use super::cell::{Ending, Watched};
use super::interrupt::Halt;
use crate::load::plan::{Limit, LoadPlan};
use crate::results::{CellStatus, ExternalRun, GeneratorRecord, Unavailable};
use crate::scenario::{GeneratorSpec, OWN_PROGRAM, PROTOCOL_FLAGS, format_cpus, protocol_flags};
use crate::server::{self, Host, How, Ran, Tool, fill};
use crate::time::Span;

pub(crate) use output::number;

/// A generator of which nothing is known but what the scenario says.
pub(crate) fn planned(spec: &GeneratorSpec) -> GeneratorRecord {
    GeneratorRecord {
        name: spec.name.clone(),
        label: spec.label.clone(),
        kind: spec.kind,
        version: None,
        command: spec.command.clone(),
        unavailable: None,
    }
}

/// What is found out about a generator before the first round: whether it is installed, its version.
pub(crate) fn prepare(spec: &GeneratorSpec, exe: &Path) -> GeneratorRecord {
    let none = BTreeMap::new();
    let version: Vec<String> = spec.version.iter().map(|word| own_program(word, exe)).collect();
    let absent = server::installed(&spec.requires, &spec.dir, None).err();
    GeneratorRecord {
        version: if absent.is_none() { server::first_line_of(&version, &spec.dir, &none) } else { None },
        unavailable: absent.map(|error| Unavailable {
            status: CellStatus::Absent,
            reason: error.reason,
            log_tail: error.log_tail,
        }),
        ..planned(spec)
    }
}

/// Runs a generator on the load of `plan`, whose window a duration ends, for `allowed` at most.
pub(crate) fn run(
    spec: &GeneratorSpec,
    plan: &LoadPlan,
    allowed: Span,
    host: &Host,
    halt: &Halt,
) -> Result<(Ran, ExternalRun), Watched> {
    let command = command(spec, plan, &host.exe);
    let tool = Tool {
        name: &format!("{}.generator", spec.name),
        command: &command,
        dir: &spec.dir,
        env: &BTreeMap::new(),
        cpus: &plan.cpus,
        deadline: allowed,
    };
    let ran = tool
        .run(host, &mut || halt.reason())
        .map_err(|error| Watched::without(Ending::Failed(format!("{}: {}", spec.label, error.reason))))?;
    let external = ExternalRun {
        command,
        asked_s: window(plan).as_secs_f64(),
        wall_s: ran.took().as_secs_f64(),
        cpu_user_us: ran.cpu_user_us,
        cpu_system_us: ran.cpu_system_us,
        output: ran.output.clone(),
        ..output::read(spec, &ran.output)
    };
    Ok((ran, external))
}

/// How a cell ended whose generator ran like this.
pub(crate) fn ending(spec: &GeneratorSpec, ran: &Ran, run: &ExternalRun) -> Ending {
    match (&ran.how, run.ok) {
        (How::Halted(reason), _) => Ending::Cut(reason.clone()),
        (How::Badly(how), _) => Ending::Failed(format!("{} {how}", spec.label)),
        (How::Well, None) => {
            Ending::Failed(format!("what {} printed has no count of ok responses", spec.label))
        }
        (How::Well, Some(0)) => Ending::Failed(format!("{} counted no ok response", spec.label)),
        (How::Well, Some(_)) => Ending::Measured,
    }
}

/// The command of a generator for the load of `plan`.
fn command(spec: &GeneratorSpec, plan: &LoadPlan, exe: &Path) -> Vec<String> {
    let values = BTreeMap::from([
        ("url", plan.target.url.clone()),
        ("protocol", plan.protocol.name().to_owned()),
        ("connections", plan.connections.to_string()),
        ("concurrency", plan.concurrency.to_string()),
        ("threads", plan.threads.to_string()),
        ("cpus", format_cpus(&plan.cpus)),
        ("duration_s", window(plan).as_secs_f64().to_string()),
        ("dir", spec.dir.clone()),
    ]);
    let mut command = Vec::with_capacity(spec.command.len() + 2);
    for word in &spec.command {
        let word = own_program(word, exe);
        let flags = protocol_flags(spec.kind, plan.protocol).unwrap_or_default();
        let words: &[&str] = if word == PROTOCOL_FLAGS { flags } else { &[&word] };
        for word in words {
            let filled =
                fill(word, |name| Ok::<_, std::convert::Infallible>(values.get(name).map(String::as_str)));
            match filled {
                Ok(word) => command.push(word),
                Err(never) => match never {},
            }
        }
    }
    command
}

fn own_program(word: &str, exe: &Path) -> String {
    if word == OWN_PROGRAM { exe.to_string_lossy().into_owned() } else { word.to_owned() }
}

/// A count is refused in sections that compare generators, see `scenario`.
fn window(plan: &LoadPlan) -> Span {
    match plan.limit {
        Limit::DurationNs(nanos) => Span::from_nanos(nanos),
        Limit::Requests(_) => Span::ZERO,
    }
}
