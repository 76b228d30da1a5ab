//! Owns the real [`Stage`]: servers below their supervisors, generators as children, samples of
//! `/proc`.

use super::answer::{self, Looked};
use super::cell::{self, Ending, Watched};
use super::conductor::{NotStarted, Stage, count_allowance};
use super::generator::{Generator, GeneratorCommand};
use super::interrupt::Halt;
use super::plan;
use super::probe::{self, Answer};
use super::schedule::{Start, Visit};
use super::{RunError, external, tools};
use crate::load::plan::{Limit, LoadPlan};
use crate::results::{GateRecord, verdict};
use crate::sampler::{self, TreeSampler};
use crate::scenario::{GeneratorSpec, Scenario};
use crate::server::{self, Host, Ports, Probe, Running, ServerError, Stopped};
use crate::time::Span;

/// Servers and generators of this machine.
#[derive(Debug)]
pub(crate) struct Machinery<'a> {
    /// The scenario.
    pub(crate) scenario: &'a Scenario,
    /// What every start has in common.
    pub(crate) host: &'a Host,
    /// How the generator is started.
    pub(crate) generator: &'a GeneratorCommand,
    /// Reasons to stop.
    pub(crate) halt: &'a Halt,
}

/// A server that runs, and what samples it.
#[derive(Debug)]
pub(crate) struct Live {
    running: Running,
    sampler: TreeSampler,
    ports: Ports,
    /// What it answers, once that was looked at.
    looked: Option<Looked>,
}

impl Machinery<'_> {
    /// Asks once whether a server is ready.
    fn ask(&self, plan: &LoadPlan) -> Answer {
        match Generator::spawn(self.generator, plan, self.halt) {
            Ok(mut generator) => probe::ask(&mut generator),
            Err(problem) => Answer::Refused(problem),
        }
    }

    /// What the server answers to the section's request: looked at once for each start, before the first cell.
    fn looked(&self, server: &mut Live, visit: &Visit) -> Result<Looked, Ending> {
        if let Some(looked) = &server.looked {
            return Ok(looked.clone());
        }
        let section = &self.scenario.sections[visit.section];
        let plan = plan::look(self.scenario, section, visit.protocol, server.ports);
        let look = || {
            let mut generator = Generator::spawn(self.generator, &plan, self.halt).map_err(Ending::Failed)?;
            probe::look(&mut generator)
        };
        let looked = answer::judge(&look()?, &look()?, &self.scenario.expect);
        Ok(server.looked.insert(looked).clone())
    }
}

impl Machinery<'_> {
    /// Has a generator drive a cell as a command, after the same load by this program's own as a warm-up, so
    /// that all of them find the server warmed by the same. The server is sampled right before its start and right after its end.
    fn drive(&self, server: &mut Live, spec: &GeneratorSpec, plan: &LoadPlan) -> Result<Watched, Ending> {
        let (run, warmup) = (&self.scenario.run, Span::from_nanos(plan.warmup_ns));
        let allowed =
            |plan: &LoadPlan| cell::time_allowed(plan, run.cell_grace, count_allowance(self.scenario));
        let plan = LoadPlan { warmup_ns: 0, ..plan.clone() };
        if !warmup.is_zero() {
            let plan = LoadPlan { limit: Limit::DurationNs(warmup.as_nanos()), ..plan.clone() };
            let mut own = Generator::spawn(self.generator, &plan, self.halt).map_err(Ending::Failed)?;
            let warmed = cell::watch(&mut own, &mut probe::Unsampled, allowed(&plan), run.drain);
            after_warmup(warmed)?;
        }
        let opening = server.sampler.snapshot();
        let (ran, external) = external::run(spec, &plan, allowed(&plan), self.host, self.halt)?;
        let closing = server.sampler.snapshot();
        let ok = external.ok.unwrap_or(0);
        Ok(Watched {
            ending: external::ending(spec, &ran, &external),
            measurement: None,
            sample: Some(sampler::difference(&opening, &closing, ran.began, ran.ended, ok)),
            external: Some((Box::new(external), ran.log_tail)),
            answer: None,
        })
    }

    /// Starts a server for its gate alone and runs that; `None` when the run is to stop.
    ///
    /// # Errors
    /// When the generator cannot work here, so that no server is ever found ready.
    pub(crate) fn gate(&mut self, server: usize) -> Result<Option<GateRecord>, RunError> {
        let spec = &self.scenario.servers[server];
        let Some(gate) = &spec.gate else { return Ok(None) };
        if let Some(not_run) = tools::gate_not_run(gate, &spec.dir) {
            return Ok(Some(not_run));
        }
        let start = Start { round: 1, section: 0, server, protocol: gate.protocol, cells: Vec::new() };
        let live = match self.start(&start) {
            Ok((live, _)) => live,
            Err(NotStarted::Halted) => return Ok(None),
            Err(NotStarted::Refused(message)) => return Err(RunError(message)),
            Err(NotStarted::Server(error) | NotStarted::OtherProtocol(error)) => {
                let reason = format!("the server did not start for it: {}", error.reason);
                return Ok(Some(tools::gate_failed(gate, &ServerError { reason, ..error })));
            }
        };
        let cpus = &self.scenario.pin.generator;
        let record = tools::gate(&spec.name, gate, &live.running, &spec.dir, cpus, (self.host, self.halt));
        self.stop(live);
        Ok(record)
    }
}

/// No generator but this tool's own checks answers, so what its warm-up met holds for the cell.
///
/// # Errors
/// The end of a cell whose warm-up failed, or had too many requests that did.
fn after_warmup(warmed: Watched) -> Result<(), Ending> {
    let measurement = warmed.measurement.as_deref();
    let reason = match warmed.ending {
        Ending::Measured => measurement.and_then(|measurement| verdict::tainted(&[measurement])),
        // That nothing was answered yet when a short warm-up was over speaks against nobody.
        Ending::Failed(_) if measurement.is_some_and(|m| m.connection.opened > 0 && m.errors.is_empty()) => {
            None
        }
        Ending::Failed(reason) => Some(reason),
        ending @ (Ending::Cut(_) | Ending::Refused(_)) => return Err(ending),
    };
    reason.map_or(Ok(()), |reason| Err(Ending::Failed(format!("the warm-up before it failed: {reason}"))))
}

impl Stage for Machinery<'_> {
    type Server = Live;

    fn start(&mut self, start: &Start) -> Result<(Live, Span), NotStarted> {
        let spec = &self.scenario.servers[start.server];
        let ports = server::allocate_ports(spec).map_err(NotStarted::Server)?;
        let section = &self.scenario.sections[start.section];
        let plan = plan::probe(self.scenario, Some(section), start.protocol, ports);
        let mut hopeless = None;
        let mut other_protocol = false;
        let mut probe = || match self.ask(&plan) {
            Answer::Server(probe) => probe,
            Answer::Halted(reason) => {
                hopeless = Some(NotStarted::Halted);
                Probe::GiveUp(reason)
            }
            Answer::Refused(message) => {
                hopeless = Some(NotStarted::Refused(message.clone()));
                Probe::GiveUp(message)
            }
            Answer::OtherProtocol(reason) => {
                other_protocol = true;
                Probe::GiveUp(reason)
            }
        };
        let deadline = self.scenario.run.start_deadline;
        let started = Running::start(self.host, spec, start.protocol, ports, deadline, &mut probe);
        match (started, hopeless) {
            (Ok((running, ready)), _) => {
                let sampler = TreeSampler::new(running.root(), &self.host.cpus);
                Ok((Live { running, sampler, ports, looked: None }, ready))
            }
            (Err(_), Some(hopeless)) => Err(hopeless),
            (Err(error), None) if other_protocol => Err(NotStarted::OtherProtocol(error)),
            (Err(error), None) => Err(NotStarted::Server(error)),
        }
    }

    fn measure(&mut self, server: &mut Live, visit: &Visit) -> Watched {
        let mut plan = plan::cell(self.scenario, visit, server.ports);
        if let Some(generator) = visit.cell.generator {
            let spec = &self.scenario.generators[generator];
            return self.drive(server, spec, &plan).unwrap_or_else(Watched::without);
        }
        let mut answer = None;
        if self.scenario.sections[visit.section].samples_answers() {
            let looked = match self.looked(server, visit) {
                Ok(looked) => looked,
                Err(ending) => return Watched::without(ending),
            };
            if let Some(problem) = &looked.answer.problem {
                let failed = Watched::without(Ending::Failed(problem.clone()));
                return Watched { answer: Some(looked.answer), ..failed };
            }
            plan.expect = looked.expect;
            answer = Some(looked.answer);
        }
        let run = &self.scenario.run;
        let allowed = cell::time_allowed(&plan, run.cell_grace, count_allowance(self.scenario));
        let watched = match Generator::spawn(self.generator, &plan, self.halt) {
            Ok(mut generator) => cell::watch(&mut generator, &mut server.sampler, allowed, run.drain),
            Err(problem) => Watched::without(Ending::Failed(problem)),
        };
        Watched { answer, ..watched }
    }

    fn exited(&mut self, server: &mut Live) -> Option<String> {
        server.running.exited()
    }

    fn log_tail(&self, server: &Live) -> Vec<String> {
        server.running.log_tail(LOG_LINES)
    }

    fn stop(&mut self, server: Live) -> Stopped {
        server.running.stop()
    }
}

/// Asks the generator for one request to a port of loopback that nobody listens on, to learn whether
/// it can work here at all before anything is built or started.
///
/// # Errors
/// What the generator says about this machine.
pub(crate) fn try_generator(
    scenario: &Scenario,
    generator: &GeneratorCommand,
    halt: &Halt,
) -> Result<(), String> {
    // The port was free a moment ago. Should somebody take it meanwhile, they see one short request.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no port of 127.0.0.1 can be had: {error}; is loopback up?"))?
        .port();
    let protocol = crate::results::Protocol::H1;
    let plan = plan::probe(scenario, None, protocol, Ports { http: port, https: port });
    let mut child = Generator::spawn(generator, &plan, halt)?;
    match probe::ask(&mut child) {
        Answer::Refused(message) => Err(message),
        Answer::Server(_) | Answer::OtherProtocol(_) | Answer::Halted(_) => Ok(()),
    }
}

/// Log lines kept with a failure.
const LOG_LINES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{ErrorCount, Measurement, Phase};
    use crate::run::fixture;

    #[test]
    fn a_generator_is_not_run_after_a_warmup_that_found_fault() {
        let met = |ok: u64, failed: u64| {
            let mut measurement = fixture::measurement(ok);
            (measurement.requests.failed, measurement.connection.opened) = (failed, 1);
            if failed > 0 {
                measurement.errors = vec![ErrorCount {
                    phase: Phase::Unexpected,
                    kind: "body".into(),
                    count: failed,
                    requests: failed,
                    example: None,
                }];
            }
            measurement
        };
        let ended = |ending, measurement: Option<Measurement>| {
            after_warmup(Watched { measurement: measurement.map(Box::new), ..Watched::without(ending) })
        };
        let failed = |reason: &str| Err(Ending::Failed(format!("the warm-up before it failed: {reason}")));
        let none = || Ending::Failed("no response in the window was as expected: 9 x unexpected body".into());
        for (ending, measurement, expected) in [
            (Ending::Measured, Some(met(1000, 0)), Ok(())),
            (Ending::Measured, Some(met(1000, 1)), Ok(())),
            (
                Ending::Measured,
                Some(met(997, 3)),
                failed("3 of 1\u{202f}000 requests failed (0.30 %): 3 × unexpected body"),
            ),
            (
                none(),
                Some(met(0, 9)),
                failed("no response in the window was as expected: 9 x unexpected body"),
            ),
            (Ending::Failed("no response in the window was as expected".into()), Some(met(0, 0)), Ok(())),
            (
                Ending::Failed("the generator printed nonsense".into()),
                None,
                failed("the generator printed nonsense"),
            ),
            (Ending::Cut("SIGINT".into()), None, Err(Ending::Cut("SIGINT".into()))),
            (Ending::Refused("no rings".into()), None, Err(Ending::Refused("no rings".into()))),
        ] {
            assert_eq!(ended(ending, measurement), expected);
        }
    }
}
