//! Owns the build of a server.

use super::command::Values;
use super::control::Ended;
use super::running::TAIL_LINES;
use super::supervised::{Awaited, Supervised};
use super::{Host, ServerError};
use crate::scenario::ServerSpec;
use crate::time::Span;
use crate::units::format_duration;

/// Runs the build command in the server's folder, output to `<logs>/<name>.build.log`; returns how
/// long it took, `None` without a build command.
///
/// It runs below a supervisor like the server itself, but unpinned. It is over when its main process
/// ends: a compile daemon it may have left behind is killed. The environment is that of this program
/// without what an outer `cargo run` puts there, see `command`.
///
/// # Errors
/// With `absent` when the program is not installed; else exit status, or that `deadline` passed, and
/// the last log lines. Nothing is left running.
pub fn build(host: &Host, spec: &ServerSpec, deadline: Span) -> Result<Option<Span>, ServerError> {
    if spec.build.is_empty() {
        return Ok(None);
    }
    let plan = Values::of_build(host, spec)?.plan_build(spec)?;
    let (mut supervised, began) = Supervised::start(host, plan, &format!("{}.build", spec.name))?;
    let reason = match supervised.await_main(began + deadline, &mut || None) {
        Awaited::Ended(end) if end.how == Ended::Status(0) => return Ok(Some(end.at.since(began))),
        Awaited::Ended(end) => format!("its build {}", end.how),
        Awaited::Lost(how) | Awaited::Halted(how) => format!("its build {how}"),
        Awaited::TooLong => format!("its build took longer than {}", format_duration(deadline)),
    };
    supervised.kill();
    let log = supervised.log();
    let reason = format!("{reason}; all of its output is in {}", log.path().display());
    Err(ServerError { log_tail: log.tail(TAIL_LINES), ..ServerError::failed(reason) })
}
