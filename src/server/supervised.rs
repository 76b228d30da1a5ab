//! Owns the orchestrator's end of a supervisor: starting it, its events, its orders, its end.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::control::{Ended, Event, LINE_LIMIT, Order, Plan, Used, send};
use super::logs::Log;
use super::supervise::KILL_LIMIT;
use super::{Host, ServerError, Stopped};
use crate::clock;
use crate::time::{Instant, Span};

/// How long a supervisor may take for what needs no waiting, on a machine that is busy.
const ANSWER: Span = Span::from_secs(10);

/// How long the last output may take to arrive after the last process has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// How long a reason to stop may go unnoticed: no longer than a user would.
const HALT_POLL: Span = Span::from_millis(50);

/// Pause between two looks at a supervisor that is to end.
const END_POLL: Span = Span::from_millis(1);

/// Something that runs below a supervisor of its own. Dropping it kills everything there and waits
/// for that.
#[derive(Debug)]
pub(super) struct Supervised {
    supervisor: Child,
    /// Closing it is the order to kill.
    orders: Option<ChildStdin>,
    events: Receiver<Event>,
    log: Log,
    /// How the main process ended, once it has.
    main: Option<MainEnd>,
    /// Set once nothing is left below.
    over: Option<Over>,
}

/// The end of a main process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MainEnd {
    pub(super) how: Ended,
    pub(super) at: Instant,
    pub(super) used: Used,
}

/// What came of waiting for a main process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Awaited {
    /// It ended. Others may still run.
    Ended(MainEnd),
    /// How it is not known, in words that follow its name.
    Lost(String),
    /// It takes longer than it may, and runs.
    TooLong,
    /// The run is to stop, for this reason; it runs.
    Halted(String),
}

/// How the last process below a supervisor came to its end.
#[derive(Clone, PartialEq, Debug)]
enum Over {
    /// By itself.
    Gone,
    /// By order.
    Stopped { took: Span, killed: bool, left: Vec<String> },
    /// Unknown: the supervisor ended without a word.
    Lost,
}

impl Supervised {
    /// Starts `plan`; output goes to a new log `name`. Returns it and the instant just before its
    /// main process was made.
    ///
    /// # Errors
    /// Why it could not be started; nothing is left running.
    pub(super) fn start(host: &Host, plan: Plan, name: &str) -> Result<(Self, Instant), ServerError> {
        let program = plan.command.first().cloned().unwrap_or_default();
        let told = |what: &str, error: io::Error| {
            ServerError::failed(format!("cannot {what} for `{program}`: {error}"))
        };
        let (log, output) = Log::create(&host.logs, name).map_err(|error| told("open a log", error))?;
        let mut supervised =
            Self::spawn(&host.exe, log, output).map_err(|error| told("start a supervisor", error))?;
        supervised.order(&Order::Start(plan)).map_err(|error| told("reach the supervisor", error))?;
        let reason = match supervised.events.recv_timeout(ANSWER.into()) {
            Ok(Event::Started { at, .. }) => return Ok((supervised, at)),
            Ok(Event::NotStarted { reason }) => reason,
            Ok(_) | Err(_) => "its supervisor ended".into(),
        };
        supervised.kill();
        let log_tail = supervised.log.tail(super::running::TAIL_LINES);
        Err(ServerError { log_tail, ..ServerError::failed(format!("cannot start `{program}`: {reason}")) })
    }

    fn spawn(exe: &Path, log: Log, output: io::PipeWriter) -> io::Result<Self> {
        let mut supervisor = Command::new(exe)
            .arg("supervise")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .spawn()?;
        let (sender, events) = sync_channel(16);
        let orders = supervisor.stdin.take();
        let stdout = supervisor.stdout.take();
        let supervised = Self { supervisor, orders, events, log, main: None, over: None };
        // From here on an error drops `supervised`, and with it the supervisor.
        let stdout = stdout.ok_or_else(|| io::Error::other("it has no standard output"))?;
        thread::Builder::new().name("supervisor".into()).spawn(move || {
            for event in events_of(stdout) {
                if sender.send(event).is_err() {
                    break;
                }
            }
        })?;
        Ok(supervised)
    }

    /// Process id of the supervisor.
    pub(super) fn root(&self) -> u32 {
        self.supervisor.id()
    }

    /// The log of what runs.
    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// Takes in what happened, and waits up to `limit` for something to happen.
    pub(super) fn watch(&mut self, limit: Span) {
        if self.over.is_some() {
            return;
        }
        match self.events.recv_timeout(limit.into()) {
            Ok(event) => self.take_in(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.end(Over::Lost),
        }
    }

    /// Takes in everything that happened until now.
    pub(super) fn catch_up(&mut self) {
        while self.over.is_none() {
            match self.events.try_recv() {
                Ok(event) => self.take_in(event),
                Err(std::sync::mpsc::TryRecvError::Empty) => return,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => self.end(Over::Lost),
            }
        }
    }

    fn take_in(&mut self, event: Event) {
        match event {
            Event::MainEnded { how, at, used } => self.main = Some(MainEnd { how, at, used }),
            Event::Gone => self.end(Over::Gone),
            Event::Stopped { took, killed, left } => self.end(Over::Stopped { took, killed, left }),
            Event::Started { .. } | Event::NotStarted { .. } => {}
        }
    }

    fn end(&mut self, over: Over) {
        self.over = Some(over);
        self.log.wait_end(LAST_OUTPUT);
    }

    /// Waits for the end of the main process, until `deadline` or a reason to stop that `halted` gives.
    pub(super) fn await_main(
        &mut self,
        deadline: Instant,
        halted: &mut dyn FnMut() -> Option<String>,
    ) -> Awaited {
        loop {
            match (&self.main, self.over()) {
                (Some(end), _) => return Awaited::Ended(end.clone()),
                (None, Some(how)) => return Awaited::Lost(how),
                (None, None) => {}
            }
            if let Some(reason) = halted() {
                return Awaited::Halted(reason);
            }
            let left = deadline.since(clock::now());
            if left.is_zero() {
                return Awaited::TooLong;
            }
            self.watch(left.min(HALT_POLL));
        }
    }

    /// In words how it ended, once nothing is left below.
    pub(super) fn over(&self) -> Option<String> {
        let over = self.over.as_ref()?;
        Some(match (over, &self.main) {
            (Over::Lost, _) => "lost its supervisor, which somebody killed".into(),
            (_, Some(end)) => end.how.to_string(),
            (_, None) => "ended".into(),
        })
    }

    /// Asks with `signal`, waits for `grace`, kills. Returns when nothing is left below, or after a
    /// further ten seconds.
    pub(super) fn stop(&mut self, signal: &str, grace: Span) -> Stopped {
        self.catch_up();
        if let Some(how) = self.over() {
            return Stopped {
                took: Span::ZERO,
                killed: false,
                problem: Some(format!("it {how} before it was asked to stop")),
            };
        }
        let began = clock::now();
        // When it cannot be reached it is about to say why.
        let _ = self.order(&Order::Stop { signal: signal.into(), grace });
        let deadline = began + grace + KILL_LIMIT + ANSWER;
        while self.over.is_none() && clock::now() < deadline {
            self.watch(deadline.since(clock::now()));
        }
        match self.over.clone() {
            Some(Over::Stopped { took, killed, left }) => {
                let problem =
                    (!left.is_empty()).then(|| format!("not even SIGKILL ended {}", left.join(", ")));
                Stopped { took, killed, problem }
            }
            Some(Over::Gone) => Stopped {
                took: clock::now().since(began),
                killed: false,
                problem: Some("it ended by itself when it was to be stopped".into()),
            },
            Some(Over::Lost) | None => {
                self.kill();
                let problem = Some("its supervisor was lost; look for processes that are left".into());
                Stopped { took: clock::now().since(began), killed: true, problem }
            }
        }
    }

    /// Kills everything below and waits for that.
    pub(super) fn kill(&mut self) {
        self.orders = None;
        let deadline = clock::now() + KILL_LIMIT + ANSWER;
        while matches!(self.supervisor.try_wait(), Ok(None)) {
            if clock::now() >= deadline {
                // What it could not kill will not be killed by waiting for it.
                let _ = self.supervisor.kill();
                let _ = self.supervisor.wait();
                break;
            }
            clock::sleep_until(clock::now() + END_POLL);
        }
        self.log.wait_end(LAST_OUTPUT);
    }

    fn order(&mut self, order: &Order) -> io::Result<()> {
        match &mut self.orders {
            Some(orders) => send(orders, order),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The events of a supervisor until its end, or until it says what is no event.
fn events_of(stdout: ChildStdout) -> impl Iterator<Item = Event> {
    let mut lines = BufReader::new(stdout);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        (&mut lines).take(LINE_LIMIT as u64).read_until(b'\n', &mut line).ok()?;
        serde_json::from_slice(&line).ok()
    })
}
