//! Owns the course of a run: starts in the order of the schedule, their cells one after the other,
//! an outcome for each, and what happens when a server dies, a deadline passes or a user stops the
//! run. One failing cell never stops it.
//!
//! Servers and generators stand behind [`Stage`], so the course is tested without either.

use super::RunError;
use super::cell::Watched;
use super::interrupt::Halt;
use super::ledger::Keep;
use super::progress::{self, Progress};
use super::record;
use super::schedule::{self, Start, Visit};
use crate::clock;
use crate::results::store::Entry;
use crate::results::{CellStatus, Measurement, RoundRecord, StartRecord, stats};
use crate::scenario::{Scenario, SectionLimit};
use crate::server::{ServerError, Stopped};
use crate::time::{Instant, Span};
use crate::units::format_duration;

/// What servers are started and measured with.
pub(crate) trait Stage {
    /// A server that runs.
    type Server;

    /// Starts the server of `start` and waits until it is ready; returns the time that took.
    ///
    /// # Errors
    /// Why there is no server; nothing is left running.
    fn start(&mut self, start: &Start) -> Result<(Self::Server, Span), NotStarted>;

    /// Measures one cell.
    fn measure(&mut self, server: &mut Self::Server, visit: &Visit) -> Watched;

    /// How the server ended, in words that follow "the server"; `None` while it runs.
    fn exited(&mut self, server: &mut Self::Server) -> Option<String>;

    /// The server's last log lines.
    fn log_tail(&self, server: &Self::Server) -> Vec<String>;

    /// Stops the server and everything below it.
    fn stop(&mut self, server: Self::Server) -> Stopped;
}

/// Why a server did not start.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum NotStarted {
    /// It did not do what it should.
    Server(ServerError),
    /// The run is to stop.
    Halted,
    /// The generator cannot work here at all: no cell could be measured.
    Refused(String),
}

/// What became of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Course {
    /// Why it ended before its schedule; `None` when it did not.
    pub(crate) halted: Option<String>,
    /// Where its time went.
    pub(crate) spent: Spent,
}

/// Where the time of a run went. What is left of `wall` is the harness's own.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Spent {
    /// From the first start to the last stop.
    pub(crate) wall: Span,
    /// Warm-ups and windows of measured cells, and all of the time of the others. Drains are left
    /// out, because a generator whose answers are all in does not wait for their end.
    pub(crate) load: Span,
    /// Servers becoming ready, settling, and stopping.
    pub(crate) servers: Span,
}

impl Spent {
    /// The harness's own time, relative to the time under load; `None` without load.
    pub(crate) fn overhead(&self) -> Option<f64> {
        let own = self.wall.as_secs_f64() - self.load.as_secs_f64() - self.servers.as_secs_f64();
        (!self.load.is_zero()).then(|| own.max(0.0) / self.load.as_secs_f64())
    }
}

/// Carries out a schedule.
pub(crate) struct Conductor<'a, S, K> {
    /// The scenario the schedule was made from.
    pub(crate) scenario: &'a Scenario,
    /// Servers and generators.
    pub(crate) stage: S,
    /// Where outcomes go.
    pub(crate) keep: &'a mut K,
    /// Reasons to stop.
    pub(crate) halt: &'a Halt,
    /// What the user sees.
    pub(crate) progress: &'a mut Progress,
    /// Index of the session that outcomes belong to.
    pub(crate) session: u32,
    /// Where the time went so far.
    pub(crate) spent: Spent,
}

impl<S: Stage, K: Keep> Conductor<'_, S, K> {
    /// Makes every start of `starts` until the run is to stop.
    ///
    /// # Errors
    /// When an outcome cannot be kept, or no generator can work here.
    pub(crate) fn conduct(mut self, starts: &[Start]) -> Result<Course, RunError> {
        let began = clock::now();
        for start in starts {
            if self.halt.reason().is_some() {
                break;
            }
            self.visit_all(start)?;
        }
        self.spent.wall = clock::now().since(began);
        Ok(Course { halted: self.halt.reason(), spent: self.spent })
    }

    /// Measures the cells of one start. A server that dies is started again for those after the one
    /// it died in.
    fn visit_all(&mut self, start: &Start) -> Result<(), RunError> {
        let limit = server_deadline(self.scenario, start);
        let deadline = clock::now() + limit;
        let mut left: Vec<Visit> = start.visits().collect();
        while !left.is_empty() && self.halt.reason().is_none() {
            if clock::now() >= deadline {
                let reason = format!("its server's deadline of {} passed", format_duration(limit));
                return self.fail(&left, CellStatus::Failed, &reason, &[]);
            }
            self.progress.now(&format!(
                "starting {} for {}",
                self.scenario.servers[start.server].label, self.scenario.sections[start.section].title
            ));
            match self.stage.start(start) {
                Ok((server, ready)) => {
                    self.spent.servers = self.spent.servers + ready;
                    let measured = self.visit_while_alive(start, &left, server, ready, deadline)?;
                    left.drain(..measured);
                }
                Err(NotStarted::Refused(message)) => return Err(RunError(message)),
                // The cells keep no outcome, so that a resumed run makes them.
                Err(NotStarted::Halted) => return Ok(()),
                Err(NotStarted::Server(error)) => {
                    self.keep_start(start, None, None, Some(error.reason.clone()))?;
                    let status = if error.absent { CellStatus::Absent } else { CellStatus::Failed };
                    let reason = format!("the server did not start: {}", error.reason);
                    return self.fail(&left, status, &reason, &error.log_tail);
                }
            }
        }
        Ok(())
    }

    /// Measures `visits` until the server dies, `deadline` passes or the run is to stop, then stops
    /// the server. Returns how many have an outcome.
    fn visit_while_alive(
        &mut self,
        start: &Start,
        visits: &[Visit],
        mut server: S::Server,
        ready: Span,
        deadline: Instant,
    ) -> Result<usize, RunError> {
        let settled = clock::now() + self.scenario.run.settle;
        self.halt.wait_until(settled);
        self.spent.servers = self.spent.servers + self.scenario.run.settle;
        let (mut measured, mut problem) = (0, None);
        for visit in visits {
            if self.halt.reason().is_some() || clock::now() >= deadline {
                break;
            }
            let name = progress::name(self.scenario, visit);
            self.progress.now(&name);
            let began = clock::now();
            let watched = self.stage.measure(&mut server, visit);
            let death = self.stage.exited(&mut server);
            let stage = &self.stage;
            let round =
                record::round(visit, self.session, watched, death.clone(), || stage.log_tail(&server));
            self.spent.load = self.spent.load + load_of(&round, clock::now().since(began));
            self.outcome(visit, round)?;
            measured += 1;
            if let Some(death) = death {
                problem = Some(format!("the server {death} during {name}"));
                break;
            }
        }
        let stopping = clock::now();
        let stopped = self.stage.stop(server);
        self.spent.servers = self.spent.servers + clock::now().since(stopping);
        self.keep_start(start, Some(ready), Some(&stopped), problem)?;
        Ok(measured)
    }

    /// Gives each of `visits` the same outcome without a measurement.
    fn fail(
        &mut self,
        visits: &[Visit],
        status: CellStatus,
        reason: &str,
        log_tail: &[String],
    ) -> Result<(), RunError> {
        for visit in visits {
            let round =
                record::without_measurement(visit, self.session, status, reason.into(), log_tail.to_vec());
            self.outcome(visit, round)?;
        }
        Ok(())
    }

    fn outcome(&mut self, visit: &Visit, round: RoundRecord) -> Result<(), RunError> {
        let kind = self.scenario.sections[visit.section].kind;
        let alone = record::cell(self.scenario, visit, vec![round.clone()]);
        let summary = stats::summarise(&alone, kind, &record::settings(self.scenario));
        let line = progress::outcome(&round, kind, &summary);
        let failed = round.status != CellStatus::Measured;
        self.keep.keep(record::entry(self.scenario, visit, round))?;
        self.keep.save()?;
        self.progress.cell(&progress::name(self.scenario, visit), &line, failed, planned(self.scenario, visit));
        Ok(())
    }

    fn keep_start(
        &mut self,
        start: &Start,
        ready: Option<Span>,
        stopped: Option<&Stopped>,
        problem: Option<String>,
    ) -> Result<(), RunError> {
        let server = self.scenario.servers[start.server].name.clone();
        let stop_problem = stopped.and_then(|stopped| stopped.problem.clone());
        if let Some(problem) = &stop_problem {
            self.progress.say(&format!("{server}: {problem}"));
        }
        let problems: Vec<String> = [problem, stop_problem].into_iter().flatten().collect();
        let start = StartRecord {
            session: self.session,
            round: start.round,
            section: record::index(start.section),
            ready_ms: ready.map(milliseconds),
            stop_ms: stopped.map(|stopped| milliseconds(stopped.took)),
            killed: stopped.is_some_and(|stopped| stopped.killed),
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
        };
        self.keep.keep(Entry::Start { server, start })
    }
}

/// The load a visit is to take, for estimates. A count is taken for a window of the usual length.
pub(crate) fn planned(scenario: &Scenario, visit: &Visit) -> Span {
    let (warmup, window) = schedule::asked(&scenario.sections[visit.section]);
    warmup + window.unwrap_or(scenario.run.duration)
}

/// The time a window that a count ends may take: the server decides it, and a slow one should still
/// get to the end.
pub(crate) fn count_allowance(scenario: &Scenario) -> Span {
    let tenfold = Span::from_nanos(scenario.run.duration.as_nanos().saturating_mul(10));
    tenfold.max(LEAST_COUNT_ALLOWANCE)
}

/// The time one server gets in one round of one section: what the scenario says, else twice its start
/// and the whole allowance of each cell, so that a server that dies in each cell ends some time.
fn server_deadline(scenario: &Scenario, start: &Start) -> Span {
    let run = &scenario.run;
    run.server_deadline.unwrap_or_else(|| {
        let section = &scenario.sections[start.section];
        let window = match section.limit {
            SectionLimit::Duration(window) => window,
            SectionLimit::Requests(_) => count_allowance(scenario),
        };
        let cell = run.connect_timeout + section.warmup + window + run.drain + run.cell_grace;
        start.cells.iter().fold(run.start_deadline + run.start_deadline + run.settle, |sum, _| sum + cell)
    })
}

/// The part of a cell's time that was load.
fn load_of(round: &RoundRecord, took: Span) -> Span {
    let length = |m: &Measurement| m.window.length_s.map(|window| m.window.warmup_s + window);
    let seconds = round.measurement.as_ref().filter(|_| round.status == CellStatus::Measured).and_then(length);
    seconds.map_or(took, |seconds| Span::from_nanos((seconds * 1e9) as u64).min(took))
}

fn milliseconds(span: Span) -> f64 {
    span.as_micros_f64() / 1e3
}

/// A count is given at least this long.
const LEAST_COUNT_ALLOWANCE: Span = Span::from_secs(60);
