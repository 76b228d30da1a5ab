//! Owns the turns that tests take which have ports allocated to them.

use nix::fcntl::{Flock, FlockArg};

/// Held by one test at a time, of all test processes; the next one waits.
pub(crate) struct Turn(#[expect(dead_code, reason = "it is held, not read")] Flock<std::fs::File>);

impl Turn {
    /// Waits for its turn. Runs at the same time would be given the same ports, and measure each
    /// other's load.
    pub(crate) fn take() -> Self {
        let file = std::fs::File::create(std::env::temp_dir().join("bench-tests-of-run.lock"));
        let lock = Flock::lock(file.expect("a lock file"), FlockArg::LockExclusive);
        Self(lock.expect("a lock that is waited for"))
    }
}
