//! Owns what is read from `/proc` and `/sys`: text to structs (pure), a process tree's CPU and
//! memory at an instant, and the facts of the machine.

use crate::results::{Environment, Finding, ServerSample};
use crate::scenario::Machine;
use crate::time::Instant;

/// Everything read of a process tree, and of the CPUs it is pinned to, at one edge of a window.
#[derive(Clone, Debug)]
pub struct TreeSnapshot {
    /// When it was taken.
    pub at: Instant,
}

/// Follows the process tree below a supervisor; see `server::supervise`.
#[derive(Debug)]
pub struct TreeSampler {
    _root: u32,
}

impl TreeSampler {
    /// A sampler of all descendants of process `root` (itself left out), and of `cpus`.
    pub fn new(root: u32, cpus: &[u32]) -> Self {
        let _ = cpus;
        Self { _root: root }
    }

    /// Reads the tree now.
    pub fn snapshot(&mut self) -> TreeSnapshot {
        unimplemented!("sampler helper")
    }
}

/// What the tree used between two snapshots, taken for edges due at `opened` and `closed`;
/// `ok` responses were counted meanwhile.
pub fn difference(
    open: &TreeSnapshot,
    close: &TreeSnapshot,
    opened: Instant,
    closed: Instant,
    ok: u64,
) -> ServerSample {
    let _ = (open, close, opened, closed, ok);
    unimplemented!("sampler helper")
}

/// The facts scenarios are checked against.
pub fn machine() -> Machine {
    unimplemented!("sampler helper")
}

/// The environment table of a report. `scenario_dir` is where its commit is looked up.
pub fn environment(
    scenario_dir: &std::path::Path,
    server_cpus: &[u32],
    generator_cpus: &[u32],
) -> Environment {
    let _ = (scenario_dir, server_cpus, generator_cpus);
    unimplemented!("sampler helper")
}

/// What `bench doctor` finds; `ports` are listen ports of a scenario, empty without one.
pub fn doctor(server_cpus: &[u32], generator_cpus: &[u32], ports: &[u16]) -> Vec<Finding> {
    let _ = (server_cpus, generator_cpus, ports);
    unimplemented!("sampler helper")
}
