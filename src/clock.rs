//! Owns the clocks: the only place in the program that reads monotonic or wall time.

use nix::time::{ClockId, clock_gettime};

use crate::time::{Instant, Span};

/// The monotonic clock (`CLOCK_MONOTONIC`, clock_gettime(2)): common to all processes of this
/// machine and never set back.
pub fn now() -> Instant {
    let t = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux always has CLOCK_MONOTONIC");
    Instant::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Wall-clock time in UTC as RFC 3339 with whole seconds, e.g. `2026-01-31T09:30:00Z`.
pub fn wall_rfc3339() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// CPU time of the calling thread so far (`CLOCK_THREAD_CPUTIME_ID`), in nanoseconds of precision.
pub fn thread_cpu() -> Span {
    let t = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux always has a thread CPU clock");
    Span::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Blocks the calling thread until `deadline`; returns at once when it has passed.
pub fn sleep_until(deadline: Instant) {
    let left = deadline.since(now());
    if !left.is_zero() {
        std::thread::sleep(left.into());
    }
}
