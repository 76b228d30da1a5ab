//! Owns a command that is run to its end: a load generator, a probe, a gate. It has a deadline, its output is
//! kept, its CPU time is accounted, and nothing it started outlives it.

use std::collections::BTreeMap;

use super::command::plan_plain;
use super::control::Ended;
use super::running::TAIL_LINES;
use super::supervised::{Awaited, Supervised};
use super::{Host, ServerError};
use crate::clock;
use crate::time::{Instant, Span};
use crate::units::format_duration;

/// A command, its placeholders filled in.
#[derive(Clone, Copy, Debug)]
pub struct Tool<'a> {
    /// Name of its log.
    pub name: &'a str,
    /// Program and arguments.
    pub command: &'a [String],
    /// Working directory.
    pub dir: &'a str,
    /// Environment added to that of this process, see `command` for what is taken out of it. Unless it has
    /// `LC_ALL`, that is `C`.
    pub env: &'a BTreeMap<String, String>,
    /// CPUs it is pinned to; empty: unpinned.
    pub cpus: &'a [u32],
    /// Longest run.
    pub deadline: Span,
}

/// What a run of a command came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Ran {
    /// How it ended.
    pub how: How,
    /// Just before its process was made.
    pub began: Instant,
    /// When its end was noticed.
    pub ended: Instant,
    /// User CPU in µs of its process and of the children it waited for.
    pub cpu_user_us: u64,
    /// System CPU in µs.
    pub cpu_system_us: u64,
    /// What it printed on both streams, the end of it when that was long.
    pub output: String,
    /// The last lines of that, fit for a terminal.
    pub log_tail: Vec<String>,
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// It exited with 0.
    Well,
    /// It did not, in words that follow its name: `exited with status 1`, `took longer than 5s`.
    Badly(String),
    /// It was ended because the run is to stop, for this reason.
    Halted(String),
}

impl Ran {
    /// From its start to its end.
    pub fn took(&self) -> Span {
        self.ended.since(self.began)
    }
}

impl Tool<'_> {
    /// Runs it, pinned, below a supervisor of its own, until it ends, its deadline comes, or `halted` gives
    /// a reason to stop. Then whatever it left running is killed.
    ///
    /// # Errors
    /// Why it could not be started; with `absent` when its program is not installed.
    pub fn run(&self, host: &Host, halted: &mut dyn FnMut() -> Option<String>) -> Result<Ran, ServerError> {
        let mut env = self.env.clone();
        // Its numbers are to be read: no comma in place of the point (setlocale(3)).
        env.entry("LC_ALL".into()).or_insert_with(|| "C".into());
        let plan = plan_plain(self.command, self.dir, &env, self.cpus)?;
        let (mut supervised, began) = Supervised::start(host, plan, self.name)?;
        let awaited = supervised.await_main(began + self.deadline, halted);
        let end = match &awaited {
            Awaited::Ended(end) => Some((end.at, end.used)),
            _ => None,
        };
        let (ended, used) = end.unwrap_or_else(|| (clock::now(), Default::default()));
        supervised.kill();
        let log = supervised.log();
        Ok(Ran {
            how: match awaited {
                Awaited::Ended(end) if end.how == Ended::Status(0) => How::Well,
                Awaited::Ended(end) => How::Badly(end.how.to_string()),
                Awaited::Lost(how) => How::Badly(how),
                Awaited::TooLong => {
                    How::Badly(format!("took longer than {}", format_duration(self.deadline)))
                }
                Awaited::Halted(reason) => How::Halted(reason),
            },
            began,
            ended,
            cpu_user_us: used.user_us,
            cpu_system_us: used.system_us,
            output: log.text(OUTPUT_LIMIT),
            log_tail: log.tail(TAIL_LINES),
        })
    }
}

/// Bytes of output that are kept: several times the longest report of a known generator.
const OUTPUT_LIMIT: usize = 64 * 1024;
