//! Owns the commands that are run once in a run beside the load: probes before the first server starts, and
//! the gate of each server before the first round. What goes wrong is an outcome and never stops the run.

use std::collections::BTreeMap;

use super::external::number;
use super::interrupt::Halt;
use crate::results::{CellStatus, GateOutcome, GateRecord, ProbeFigure, ProbeRecord};
use crate::scenario::{GateSpec, ProbeSpec};
use crate::server::{self, Host, How, Ran, Running, ServerError, Tool};
use crate::time::Span;

/// A probe that was not run yet.
pub(crate) fn planned(spec: &ProbeSpec) -> ProbeRecord {
    ProbeRecord {
        name: spec.name.clone(),
        label: spec.label.clone(),
        command: spec.command.clone(),
        version: None,
        session: 0,
        status: CellStatus::Pending,
        reason: None,
        log_tail: Vec::new(),
        took_s: None,
        output: String::new(),
        figures: figures(spec, ""),
    }
}

/// Runs a probe on the servers' CPUs.
pub(crate) fn probe(spec: &ProbeSpec, host: &Host, halt: &Halt, session: u32) -> ProbeRecord {
    let command: Vec<String> = spec.command.iter().map(|word| word.replace("{dir}", &spec.dir)).collect();
    let version: Vec<String> = spec.version.iter().map(|word| word.replace("{dir}", &spec.dir)).collect();
    let env: BTreeMap<String, String> =
        spec.env.iter().map(|(name, value)| (name.clone(), value.replace("{dir}", &spec.dir))).collect();
    let tool = Tool {
        name: &format!("{}.probe", spec.name),
        command: &command,
        dir: &spec.dir,
        env: &env,
        cpus: &host.cpus,
        deadline: spec.deadline,
    };
    let ran = server::installed(&spec.requires, &spec.dir, env.get("PATH"))
        .and_then(|()| tool.run(host, &mut || halt.reason()));
    let (status, reason) = match &ran {
        Ok(Ran { how: How::Well, .. }) => (CellStatus::Measured, None),
        Ok(Ran { how: How::Badly(how), .. }) => (CellStatus::Failed, Some(format!("it {how}"))),
        Ok(Ran { how: How::Halted(reason), .. }) => (CellStatus::Interrupted, Some(reason.clone())),
        Err(error) if error.absent => (CellStatus::Absent, Some(error.reason.clone())),
        Err(error) => (CellStatus::Failed, Some(error.reason.clone())),
    };
    let log_tail = match &ran {
        Ok(ran) if status == CellStatus::Failed => ran.log_tail.clone(),
        Ok(_) => Vec::new(),
        Err(error) => error.log_tail.clone(),
    };
    let output = ran.as_ref().map_or("", |ran| &ran.output);
    ProbeRecord {
        version: server::first_line_of(&version, &spec.dir, &env).filter(|_| status != CellStatus::Absent),
        session,
        status,
        reason,
        log_tail,
        took_s: ran.as_ref().ok().map(|ran| ran.took().as_secs_f64()),
        // What a command printed that failed is no figure.
        figures: figures(spec, if status == CellStatus::Measured { output } else { "" }),
        output: output.to_owned(),
        ..planned(spec)
    }
}

/// The figures of a probe in what it printed; those that do not stand there are `None`.
fn figures(spec: &ProbeSpec, output: &str) -> Vec<ProbeFigure> {
    let figure = |figure: &crate::scenario::FigureSpec| ProbeFigure {
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        pattern: figure.pattern.as_str().to_owned(),
        value: figure.pattern.find(output).and_then(number).filter(|value| *value >= 0.0),
    };
    spec.figures.iter().map(figure).collect()
}

/// A gate whose requirements are not there: the record that says so; `None` when it can be run.
pub(crate) fn gate_not_run(gate: &GateSpec, dir: &str) -> Option<GateRecord> {
    let path = gate.env.get("PATH");
    let error = server::installed(&gate.requires, dir, path).err()?;
    Some(GateRecord { outcome: GateOutcome::NotRun, ..gate_failed(gate, &error) })
}

/// Runs the gate of a server that is ready, on `cpus`; `None` when the run is to stop.
pub(crate) fn gate(
    name: &str,
    gate: &GateSpec,
    server: &Running,
    dir: &str,
    cpus: &[u32],
    (host, halt): (&Host, &Halt),
) -> Option<GateRecord> {
    let run = || {
        let (command, env) = server.expand_gate(gate)?;
        let (name, deadline) = (format!("{name}.gate"), gate.deadline);
        let tool = Tool { name: &name, command: &command, dir, env: &env, cpus, deadline };
        tool.run(host, &mut || halt.reason()).map(|ran| (command.clone(), ran))
    };
    let (command, ran) = match run() {
        Ok(ran) => ran,
        Err(error) => {
            let outcome = if error.absent { GateOutcome::NotRun } else { GateOutcome::Failed };
            return Some(GateRecord { outcome, ..gate_failed(gate, &error) });
        }
    };
    let (outcome, reason) = match ran.how.clone() {
        How::Well => (GateOutcome::Passed, None),
        How::Badly(how) => (GateOutcome::Failed, Some(format!("it {how}"))),
        How::Halted(_) => return None,
    };
    let took_s = Some(Span::as_secs_f64(ran.took()));
    Some(GateRecord { command, outcome, reason, log_tail: ran.log_tail, took_s })
}

/// A gate that found no server, or could not be started.
pub(crate) fn gate_failed(gate: &GateSpec, error: &ServerError) -> GateRecord {
    GateRecord {
        command: gate.command.clone(),
        outcome: GateOutcome::Failed,
        reason: Some(error.reason.clone()),
        log_tail: error.log_tail.clone(),
        took_s: None,
    }
}
