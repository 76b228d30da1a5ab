//! Owns the reasons to stop a run before its end: a signal, and the deadline of the whole run.
//!
//! The first SIGINT, SIGTERM or SIGHUP asks the run to stop in good order, the second ends the
//! process at once; the supervisors below it then kill what they hold. Until measuring begins there
//! is nothing to save, so the first one already ends the process.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;

use crate::clock;
use crate::time::{Instant, Span};
use crate::units::format_duration;

/// Whether, and why, the run is to stop.
#[derive(Debug)]
pub(crate) struct Halt {
    /// Number of the first signal; 0 while there was none.
    signal: Arc<AtomicUsize>,
    /// True when the next signal ends the process.
    abort_next: Arc<AtomicBool>,
    /// Readable once a signal came, and never read from, so that it stays so.
    wake: UnixStream,
    /// The other end, held open.
    waker: UnixStream,
    /// When the whole run must end, and how long it was given.
    deadline: Cell<Option<(Instant, Span)>>,
}

impl Halt {
    /// Without signal handlers: only [`Halt::trigger`] and the deadline stop the run.
    ///
    /// # Errors
    /// When no socket pair can be had.
    pub(crate) fn detached() -> std::io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        Ok(Self {
            signal: Arc::default(),
            abort_next: Arc::new(AtomicBool::new(true)),
            wake,
            waker,
            deadline: Cell::new(None),
        })
    }

    /// With handlers for SIGINT, SIGTERM and SIGHUP, which stay installed for the rest of the
    /// process.
    ///
    /// # Errors
    /// When no socket pair can be had or a handler is refused.
    pub(crate) fn install() -> std::io::Result<Self> {
        let halt = Self::detached()?;
        for signal in SIGNALS {
            // Handlers run in the order of their registration: the one that ends the process must
            // look at the flag before the next one sets it.
            let number = signal as i32;
            signal_hook::flag::register_conditional_shutdown(number, ABORTED, halt.abort_next.clone())?;
            signal_hook::flag::register(number, halt.abort_next.clone())?;
            signal_hook::flag::register_usize(number, halt.signal.clone(), number as usize)?;
            signal_hook::low_level::pipe::register(number, halt.waker.try_clone()?)?;
        }
        Ok(halt)
    }

    /// Measuring begins: from now on the first signal stops in good order, and `limit` runs.
    pub(crate) fn arm(&self, limit: Option<Span>) {
        self.deadline.set(limit.map(|limit| (clock::now() + limit, limit)));
        self.abort_next.store(false, Ordering::SeqCst);
    }

    /// Acts as if `signal` had come.
    #[cfg(test)]
    pub(crate) fn trigger(&self, signal: Signal) {
        use std::io::Write;
        self.signal.store(signal as usize, Ordering::SeqCst);
        (&self.waker).write_all(&[0]).expect("the other end is open");
    }

    /// Why the run is to stop, in words; `None` while it is not.
    pub(crate) fn reason(&self) -> Option<String> {
        let number = self.signal.load(Ordering::SeqCst);
        if number != 0 {
            let name = Signal::try_from(number as i32).map_or("a signal", Signal::as_str);
            return Some(format!("interrupted by {name}"));
        }
        let (deadline, limit) = self.deadline.get()?;
        (clock::now() >= deadline).then(|| format!("the run's deadline of {} passed", format_duration(limit)))
    }

    /// When [`Halt::reason`] will hold even without a signal.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get().map(|(deadline, _)| deadline)
    }

    /// Polls readable once a signal came.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Blocks until `until`, or until the run is to stop.
    pub(crate) fn wait_until(&self, until: Instant) {
        let until = self.deadline().map_or(until, |deadline| deadline.min(until));
        while self.reason().is_none() && clock::now() < until {
            wait(&mut [PollFd::new(self.fd(), PollFlags::POLLIN)], until);
        }
    }
}

/// Waits until one of `fds` is ready or `until` came (ppoll(2), whose timeout counts nanoseconds; an
/// interrupted call returns early, and callers look again anyway).
pub(crate) fn wait(fds: &mut [PollFd<'_>], until: Instant) {
    let left = until.since(clock::now());
    match ppoll(fds, Some(TimeSpec::from_duration(left.into())), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        // Out of kernel memory is the only other error of valid descriptors. A short pause keeps the
        // caller's loop from spinning until the kernel has some again.
        Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
    }
}

/// Signals that ask a run to stop: the terminal's Ctrl-C, a service manager, a closed terminal.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Exit status of a process that a second signal ended.
const ABORTED: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_reason_and_ends_a_wait() {
        let halt = Halt::detached().unwrap();
        halt.arm(None);
        assert_eq!(halt.reason(), None);
        halt.trigger(Signal::SIGTERM);
        halt.wait_until(clock::now() + Span::from_secs(3600));
        assert_eq!(halt.reason().as_deref(), Some("interrupted by SIGTERM"));
    }

    #[test]
    fn the_deadline_is_a_reason_and_ends_a_wait() {
        let halt = Halt::detached().unwrap();
        halt.arm(Some(Span::from_millis(1)));
        halt.wait_until(clock::now() + Span::from_secs(3600));
        assert_eq!(halt.reason().as_deref(), Some("the run's deadline of 1ms passed"));
    }
}
