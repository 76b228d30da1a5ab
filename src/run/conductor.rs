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
    /// It speaks another protocol than the section's.
    OtherProtocol(ServerError),
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
                Err(NotStarted::OtherProtocol(error)) => {
                    self.keep_start(start, None, None, Some(error.reason.clone()))?;
                    return self.fail(&left, CellStatus::WrongProtocol, &error.reason, &error.log_tail);
                }
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
            let warmup = self.scenario.sections[visit.section].warmup;
            self.spent.load = self.spent.load + load_of(&round, warmup, clock::now().since(began));
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
        self.progress.cell(
            &progress::name(self.scenario, visit),
            &line,
            failed,
            planned(self.scenario, visit),
        );
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
fn load_of(round: &RoundRecord, warmup: Span, took: Span) -> Span {
    let length = |m: &Measurement| m.window.length_s.map(|window| m.window.warmup_s + window);
    let own = round.measurement.as_ref().and_then(length);
    let seconds = own.or(round.external.as_ref().map(|run| warmup.as_secs_f64() + run.wall_s));
    let seconds = seconds.filter(|_| round.status == CellStatus::Measured);
    seconds.map_or(took, |seconds| Span::from_nanos((seconds * 1e9) as u64).min(took))
}

fn milliseconds(span: Span) -> f64 {
    span.as_micros_f64() / 1e3
}

/// A count is given at least this long.
const LEAST_COUNT_ALLOWANCE: Span = Span::from_secs(60);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use nix::sys::signal::Signal;

    use super::*;
    use crate::results::Protocol;
    use crate::run::cell::Ending;
    use crate::run::fixture;

    /// What a fake server does when it is started or measured.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Act {
        Good,
        /// The generator measured nothing.
        Fails,
        /// The server ends during the cell.
        Dies,
        /// A signal comes during the cell.
        Signal,
        /// A signal comes while the server starts.
        SignalAtStart,
        NotReady,
        OtherProtocol,
        NoGenerator,
    }

    /// Acts in turn, `Good` after the last one, and notes what it is asked.
    struct Fake<'a> {
        halt: &'a Halt,
        starts: VecDeque<Act>,
        cells: VecDeque<Act>,
        log: &'a std::cell::RefCell<Vec<String>>,
    }

    struct Server {
        name: usize,
        dead: bool,
    }

    impl Stage for Fake<'_> {
        type Server = Server;

        fn start(&mut self, start: &Start) -> Result<(Server, Span), NotStarted> {
            self.log.borrow_mut().push(format!("start {}", start.server));
            match self.starts.pop_front().unwrap_or(Act::Good) {
                Act::NotReady => Err(NotStarted::Server(ServerError {
                    absent: false,
                    reason: "not ready".into(),
                    log_tail: vec!["line".into()],
                })),
                Act::OtherProtocol => Err(NotStarted::OtherProtocol(ServerError {
                    absent: false,
                    reason: "no HTTP/2 over TLS".into(),
                    log_tail: vec![],
                })),
                Act::NoGenerator => Err(NotStarted::Refused("io_uring is refused".into())),
                Act::SignalAtStart => {
                    self.halt.trigger(Signal::SIGINT);
                    Err(NotStarted::Halted)
                }
                _ => Ok((Server { name: start.server, dead: false }, Span::from_millis(3))),
            }
        }

        fn measure(&mut self, server: &mut Server, visit: &Visit) -> Watched {
            let cell = visit.cell.connections;
            self.log.borrow_mut().push(format!("measure {} {cell}", server.name));
            let measurement = Some(Box::new(fixture::measurement(10)));
            let act = self.cells.pop_front().unwrap_or(Act::Good);
            server.dead = act == Act::Dies;
            match act {
                Act::Fails => Watched::without(Ending::Failed("nothing".into())),
                Act::Signal => {
                    self.halt.trigger(Signal::SIGINT);
                    Watched {
                        ending: Ending::Cut("interrupted by SIGINT".into()),
                        measurement,
                        sample: None,
                        external: None,
                        answer: None,
                    }
                }
                _ => Watched {
                    ending: Ending::Measured,
                    measurement,
                    sample: None,
                    external: None,
                    answer: None,
                },
            }
        }

        fn exited(&mut self, server: &mut Server) -> Option<String> {
            server.dead.then(|| "exited with status 1".into())
        }

        fn log_tail(&self, _: &Server) -> Vec<String> {
            vec!["last words".into()]
        }

        fn stop(&mut self, server: Server) -> Stopped {
            self.log.borrow_mut().push(format!("stop {}", server.name));
            Stopped { took: Span::from_millis(2), killed: false, problem: None }
        }
    }

    #[derive(Default)]
    struct List {
        entries: Vec<Entry>,
        saves: usize,
    }

    impl Keep for List {
        fn keep(&mut self, entry: Entry) -> Result<(), RunError> {
            self.entries.push(entry);
            Ok(())
        }

        fn save(&mut self) -> Result<(), RunError> {
            self.saves += 1;
            Ok(())
        }
    }

    /// What a run came to.
    struct Ran {
        course: Result<Course, RunError>,
        asked: Vec<String>,
        kept: List,
    }

    impl Ran {
        /// The outcomes in order: server, cell, status and reason.
        fn outcomes(&self) -> Vec<(String, u32, CellStatus, Option<&str>)> {
            let round = |entry: &'_ Entry| match entry {
                Entry::Round { server, connections, round, .. } => {
                    Some((server.clone(), *connections, round.status))
                }
                _ => None,
            };
            let reasons = self.kept.entries.iter().filter_map(|entry| match entry {
                Entry::Round { round, .. } => Some(round.reason.as_deref()),
                _ => None,
            });
            let rounds = self.kept.entries.iter().filter_map(round);
            rounds
                .zip(reasons)
                .map(|((server, cell, status), reason)| (server, cell, status, reason))
                .collect()
        }

        fn starts(&self) -> Vec<&StartRecord> {
            let start = |entry: &'_ Entry| matches!(entry, Entry::Start { .. });
            let starts = self.kept.entries.iter().filter(|entry| start(entry));
            starts
                .map(|entry| match entry {
                    Entry::Start { start, .. } => start,
                    _ => unreachable!("only starts are left"),
                })
                .collect()
        }
    }

    /// Runs two servers, cells 1x1 and 10x1, for `rounds`, and checks what holds of every run: each
    /// outcome is saved, and what was started was stopped.
    fn conduct(rounds: u32, starts: &[Act], cells: &[Act], change: impl FnOnce(&mut Scenario)) -> Ran {
        let mut scenario = fixture::scenario(rounds, &["a", "b"], &[&[Protocol::H1]], &[1, 10]);
        change(&mut scenario);
        let halt = Halt::detached().unwrap();
        halt.arm(scenario.run.run_deadline);
        let (log, mut kept) = (std::cell::RefCell::default(), List::default());
        let stage = Fake {
            halt: &halt,
            starts: starts.iter().copied().collect(),
            cells: cells.iter().copied().collect(),
            log: &log,
        };
        let mut progress = Progress::lines(Box::new(std::io::sink()));
        let schedule = schedule::starts(&scenario, &|_| true);
        let conductor = Conductor {
            scenario: &scenario,
            stage,
            keep: &mut kept,
            halt: &halt,
            progress: &mut progress,
            session: 0,
            spent: Spent::default(),
        };
        let course = conductor.conduct(&schedule);
        let asked = log.into_inner();
        let ran = Ran { course, asked, kept };
        assert_eq!(ran.kept.saves, ran.outcomes().len());
        let count = |word: &str| ran.asked.iter().filter(|line| line.starts_with(word)).count();
        let failed = starts.iter().filter(|act| **act != Act::Good).count();
        assert_eq!(count("start") - failed, count("stop"));
        ran
    }

    #[test]
    fn servers_take_turns_and_every_cell_has_an_outcome() {
        let ran = conduct(2, &[], &[], |_| {});
        let round = |x, y| {
            [x, y]
                .map(|s| {
                    [
                        format!("start {s}"),
                        format!("measure {s} 1"),
                        format!("measure {s} 10"),
                        format!("stop {s}"),
                    ]
                })
                .concat()
        };
        assert_eq!(ran.asked, [round(0, 1), round(1, 0)].concat());
        assert!(ran.outcomes().iter().all(|outcome| outcome.2 == CellStatus::Measured));
        assert_eq!(ran.outcomes().len(), 8);
        let starts = ran.starts();
        assert_eq!((starts.len(), starts[0].ready_ms, starts[0].stop_ms), (4, Some(3.0), Some(2.0)));
        assert_eq!(ran.course.unwrap().halted, None);
    }

    #[test]
    fn a_failed_cell_is_followed_by_the_next() {
        let ran = conduct(1, &[], &[Act::Fails], |_| {});
        let statuses: Vec<_> = ran.outcomes().iter().map(|outcome| outcome.2).collect();
        use CellStatus::{Failed, Measured};
        assert_eq!(statuses, [Failed, Measured, Measured, Measured]);
        assert_eq!(ran.asked[..4], ["start 0", "measure 0 1", "measure 0 10", "stop 0"]);
    }

    #[test]
    fn a_server_that_dies_is_started_again_for_the_cells_left() {
        let ran = conduct(1, &[], &[Act::Dies], |_| {});
        assert_eq!(ran.asked[..6], ["start 0", "measure 0 1", "stop 0", "start 0", "measure 0 10", "stop 0"]);
        let first = &ran.outcomes()[0];
        assert_eq!(first.3, Some("the server exited with status 1 during the cell"));
        assert_eq!(ran.outcomes()[1].2, CellStatus::Measured);
        let problem = ran.starts()[0].problem.as_deref();
        assert_eq!(problem, Some("the server exited with status 1 during a h1 1x1 round 1"));
        assert_eq!(ran.starts()[1].problem, None);
    }

    #[test]
    fn a_server_that_dies_in_its_last_cell_is_not_started_again() {
        let ran = conduct(1, &[], &[Act::Good, Act::Dies], |_| {});
        assert_eq!(ran.asked[..5], ["start 0", "measure 0 1", "measure 0 10", "stop 0", "start 1"]);
    }

    #[test]
    fn a_failed_start_fails_its_cells_and_the_run_goes_on() {
        let ran = conduct(2, &[Act::NotReady], &[], |_| {});
        let outcomes = ran.outcomes();
        for outcome in &outcomes[..2] {
            assert_eq!(
                (outcome.2, outcome.3),
                (CellStatus::Failed, Some("the server did not start: not ready"))
            );
        }
        assert!(outcomes[2..].iter().all(|outcome| outcome.2 == CellStatus::Measured), "it is tried again");
        assert_eq!(outcomes.len(), 8);
        assert_eq!(ran.starts()[0].problem.as_deref(), Some("not ready"));
        assert_eq!(ran.starts()[0].ready_ms, None);
    }

    #[test]
    fn a_server_of_another_protocol_fails_by_that_name() {
        let ran = conduct(1, &[Act::OtherProtocol], &[], |_| {});
        for outcome in &ran.outcomes()[..2] {
            assert_eq!((outcome.2, outcome.3), (CellStatus::WrongProtocol, Some("no HTTP/2 over TLS")));
        }
        assert_eq!(ran.starts()[0].problem.as_deref(), Some("no HTTP/2 over TLS"));
    }

    #[test]
    fn a_generator_that_cannot_work_ends_the_run_with_one_message() {
        let ran = conduct(2, &[Act::NoGenerator], &[], |_| {});
        assert_eq!(ran.course, Err(RunError("io_uring is refused".into())));
        assert_eq!(ran.outcomes().len(), 0);
    }

    #[test]
    fn a_signal_stops_the_server_and_leaves_the_rest_for_later() {
        let ran = conduct(2, &[], &[Act::Good, Act::Good, Act::Signal], |_| {});
        assert_eq!(ran.asked[4..], ["start 1", "measure 1 1", "stop 1"]);
        let last = ran.outcomes().pop().unwrap();
        assert_eq!((last.2, last.3), (CellStatus::Interrupted, Some("interrupted by SIGINT")));
        assert_eq!(ran.outcomes().len(), 3);
        assert_eq!(ran.course.unwrap().halted.as_deref(), Some("interrupted by SIGINT"));
    }

    #[test]
    fn a_signal_during_a_start_gives_no_cell_an_outcome() {
        let ran = conduct(1, &[Act::Good, Act::SignalAtStart], &[], |_| {});
        assert_eq!(ran.outcomes().len(), 2);
        assert_eq!(ran.starts().len(), 1);
        assert_eq!(ran.asked.last().map(String::as_str), Some("start 1"));
    }

    #[test]
    fn the_deadline_of_the_run_ends_it_like_a_signal() {
        let ran = conduct(1, &[], &[], |scenario| scenario.run.run_deadline = Some(Span::ZERO));
        assert_eq!(ran.asked, Vec::<String>::new());
        assert_eq!(ran.course.unwrap().halted.as_deref(), Some("the run's deadline of 0s passed"));
    }

    #[test]
    fn the_deadline_of_a_server_fails_its_cells_only() {
        let ran = conduct(1, &[], &[], |scenario| scenario.run.server_deadline = Some(Span::ZERO));
        let reason = Some("its server's deadline of 0s passed");
        assert!(ran.outcomes().iter().all(|outcome| (outcome.2, outcome.3) == (CellStatus::Failed, reason)));
        assert_eq!(ran.outcomes().len(), 4);
        assert_eq!(ran.course.unwrap().halted, None);
    }

    #[test]
    fn overhead_is_what_is_neither_load_nor_servers() {
        let spent = |wall, load, servers| Spent {
            wall: Span::from_secs(wall),
            load: Span::from_secs(load),
            servers: Span::from_secs(servers),
        };
        assert_eq!(spent(115, 100, 10).overhead(), Some(0.05));
        assert_eq!(spent(10, 0, 10).overhead(), None);
        assert_eq!(spent(100, 100, 1).overhead(), Some(0.0));
    }
}
