//! Owns a started server as the orchestrator sees it: start until ready, watch, stop.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::command::Values;
use super::supervise::parse_signal;
use super::supervised::Supervised;
use super::{Host, Ports, Probe, ServerError, Stopped, ports};
use crate::clock;
use crate::results::Protocol;
use crate::scenario::{GateSpec, ServerSpec};
use crate::time::{Instant, Span};
use crate::units::format_duration;

/// Log lines that go with an error.
pub(super) const TAIL_LINES: usize = 20;

/// First pause between two probes; each is half as long again as the one before.
const FIRST_PAUSE: Span = Span::from_millis(5);

/// Longest pause between two probes: what it may add to a start-up time.
const LONGEST_PAUSE: Span = Span::from_millis(50);

/// A server that runs, below a supervisor of its own. Dropping it kills everything below, and so
/// does the end of this process, however that comes about.
#[derive(Debug)]
pub struct Running {
    supervised: Supervised,
    spec: ServerSpec,
    ports: Ports,
    /// What its placeholders stand for.
    values: Values,
    /// Removed with it; after the processes that use it, which are dropped first.
    _run_dir: TempDir,
}

impl Running {
    /// Starts `spec`, pinned, in a session and process group of its own, and waits until `probe`
    /// finds the expected response. Returns it and the time from the moment before its process was
    /// made to the end of the probe that found it ready.
    ///
    /// `probe` is called at once and then in pauses of 5 to 50 ms. It must return in reasonable time:
    /// `deadline`, counted from the same moment, does not interrupt it.
    ///
    /// A main process that ends and leaves a descendant behind is no failure: the descendant is
    /// taken for the server.
    ///
    /// # Errors
    /// A port that is taken, a file that cannot be rendered, the status it exited with, or what the
    /// last probe found when `deadline` passed, with the last log lines; nothing is left running.
    pub fn start(
        host: &Host,
        spec: &ServerSpec,
        protocol: Protocol,
        ports: Ports,
        deadline: Span,
        probe: &mut dyn FnMut() -> Probe,
    ) -> Result<(Self, Span), ServerError> {
        parse_signal(&spec.stop_signal).map_err(ServerError::failed)?;
        ports::require_free(ports)?;
        let run_dir = run_dir(&host.scratch, &spec.name)?;
        let values = Values::of_start(host, spec, protocol, ports, run_dir.path())?;
        values.render_files(spec, run_dir.path())?;
        let plan = values.plan_start(spec, &host.cpus)?;
        let (supervised, began) = Supervised::start(host, plan, &spec.name)?;
        let mut running = Self { supervised, spec: spec.clone(), ports, values, _run_dir: run_dir };
        match running.wait_ready(probe, began, deadline) {
            Ok(()) => Ok((running, clock::now().since(began))),
            Err(reason) => {
                running.supervised.kill();
                Err(ServerError { log_tail: running.log_tail(TAIL_LINES), ..ServerError::failed(reason) })
            }
        }
    }

    fn wait_ready(
        &mut self,
        probe: &mut dyn FnMut() -> Probe,
        began: Instant,
        deadline: Span,
    ) -> Result<(), String> {
        let mut pause = FIRST_PAUSE;
        loop {
            let found = probe();
            // Looked at after the probe: an answer of a server that is gone is not its own.
            if let Some(how) = self.exited() {
                return Err(format!("it {how} before it was ready"));
            }
            let last = match found {
                Probe::Ready => return Ok(()),
                Probe::NotYet(what) => what,
                Probe::Wrong(what) => format!("it answers, but not as expected: {what}"),
                Probe::GiveUp(what) => return Err(what),
            };
            if clock::now() >= began + deadline {
                return Err(format!("not ready within {}: {last}", format_duration(deadline)));
            }
            self.supervised.watch(pause);
            pause = Span::from_nanos(pause.as_nanos() * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    /// Process id of the supervisor: the root that `sampler::TreeSampler` follows.
    pub fn root(&self) -> u32 {
        self.supervised.root()
    }

    /// Exit status in words (`exited with status 1`, `was killed by SIGSEGV`) when the server's main
    /// process has ended and left no descendant. Its log is complete then.
    pub fn exited(&mut self) -> Option<String> {
        self.supervised.catch_up();
        self.supervised.over()
    }

    /// Its gate's command and environment, placeholders filled in.
    ///
    /// # Errors
    /// Names a placeholder without a value.
    pub fn expand_gate(
        &self,
        gate: &GateSpec,
    ) -> Result<(Vec<String>, BTreeMap<String, String>), ServerError> {
        Ok((self.values.expand_all("gate", &gate.command)?, self.values.expand_env(&gate.env)?))
    }

    /// Its last `lines` log lines, without control characters.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        self.supervised.log().tail(lines)
    }

    /// Where its log is kept: the first and the last 512 KiB of what it printed.
    pub fn log_path(&self) -> &Path {
        self.supervised.log().path()
    }

    /// Signal, grace, SIGKILL; returns when no descendant lives and its ports are free.
    pub fn stop(mut self) -> Stopped {
        let mut stopped = self.supervised.stop(&self.spec.stop_signal, self.spec.stop_grace);
        let problems = [stopped.problem.take(), ports::wait_free(self.ports)];
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        stopped.problem = (!problems.is_empty()).then(|| problems.join("; "));
        stopped
    }
}

/// Makes the scratch folder of one start. Others may enter it: servers started by root read their
/// files as somebody else.
fn run_dir(scratch: &Path, name: &str) -> Result<TempDir, ServerError> {
    let told = |error: std::io::Error| {
        ServerError::failed(format!("cannot make a folder in {}: {error}", scratch.display()))
    };
    fs::create_dir_all(scratch).map_err(told)?;
    tempfile::Builder::new()
        .prefix(&format!("{name}."))
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(scratch)
        .map_err(told)
}
