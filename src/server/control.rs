//! Owns the messages between orchestrator and supervisor: one JSON object a line, orders on the
//! supervisor's standard input, events on its standard output. The end of the orders is the last of
//! them: nobody is left who wants the server to run.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::time::{Instant, Span};

/// The longest line either side accepts. A command line of Linux may hold 2 MiB (execve(2)), far
/// more than any server needs.
pub(super) const LINE_LIMIT: usize = 1 << 20;

/// What is to run. It travels as an order rather than as arguments, so that a pattern that matches
/// the server's command line (`pkill -f`, used by some stop scripts) does not match its supervisor's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Absolute path of the program, then its arguments; never empty.
    pub(super) command: Vec<String>,
    /// Working directory.
    pub(super) dir: String,
    /// Variables taken out of the inherited environment.
    pub(super) unset: Vec<String>,
    /// Variables put into it.
    pub(super) env: BTreeMap<String, String>,
    /// CPUs it is pinned to; empty: unpinned.
    pub(super) cpus: Vec<u32>,
}

/// From the orchestrator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// The first order, and only the first.
    Start(Plan),
    /// Ask with `signal` (`TERM`), wait for `grace`, then kill; report and end.
    Stop {
        /// Name of the signal.
        signal: String,
        /// Time until SIGKILL.
        grace: Span,
    },
}

/// From the supervisor. After [`Event::NotStarted`], [`Event::Gone`] and [`Event::Stopped`] it ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// The main process runs.
    Started {
        /// Its process id.
        pid: i32,
        /// The instant before it was made.
        at: Instant,
    },
    /// It could not be made.
    NotStarted {
        /// Why.
        reason: String,
    },
    /// The main process ended. Others may still run.
    MainEnded {
        /// How.
        how: Ended,
        /// When it was noticed.
        at: Instant,
        /// CPU time of it and of all others waited for until then, see getrusage(2).
        used: Used,
    },
    /// No process is left, and nobody had asked for that.
    Gone,
    /// The order to stop was carried out.
    Stopped {
        /// From the signal to the end of the last process.
        took: Span,
        /// True when grace ran out.
        killed: bool,
        /// Processes that did not die of SIGKILL: `12 (name)`.
        left: Vec<String>,
    },
}

/// CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Used {
    /// In user mode, in µs.
    pub(super) user_us: u64,
    /// In the kernel, in µs.
    pub(super) system_us: u64,
}

/// How a process ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ended {
    /// It exited.
    Status(i32),
    /// A signal ended it: `SIGSEGV`.
    Signal(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exited with status {status}"),
            Self::Signal(name) => write!(f, "was killed by {name}"),
        }
    }
}

/// Writes one message.
///
/// # Errors
/// That of `to`, which for a pipe means that the other side is gone.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_it_holds() {
        let order = Order::Start(Plan {
            command: vec!["/bin/sh".into(), "-c".into(), "a\nb\u{2028}\"".into()],
            dir: "/".into(),
            unset: vec!["CARGO".into()],
            env: BTreeMap::from([("A".into(), "x\ny".into())]),
            cpus: vec![0, 3],
        });
        let mut wire = Vec::new();
        send(&mut wire, &order).unwrap();
        assert_eq!(wire.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<Order>(&wire).unwrap(), order);
    }
}
