//! Owns the life of a server under test: build, version, ports, certificate, pinned start under a
//! supervisor, logs, readiness, stop. What speaks HTTP to it is passed in as a probe. Other commands of a
//! scenario run under a supervisor as well (`tool`).
//!
//! A server never runs directly below the orchestrator. Between the two stands a *supervisor*, a
//! process of this same program (`bench supervise`) that is the subreaper of everything the server
//! starts: whatever forks twice, moves to a session of its own or loses its parent stays below it.
//! So "is anything left?" is one question to the kernel (`waitpid` says there is no child), what is
//! to be killed is exactly what stands below it and nothing else, and the CPU time of every process
//! that ends is added to the supervisor's `cutime` and `cstime`. The supervisor dies only after all
//! below it, and kills all below it as soon as the orchestrator is gone, however that went.
//!
//! [`Running`] is the orchestrator's view; `supervise` is the supervisor's.

mod build;
mod certificate;
mod command;
mod control;
mod logs;
mod ports;
mod running;
pub mod supervise;
mod supervised;
mod tool;

pub use build::build;
pub(crate) use command::fill;
pub use command::{first_line_of, installed, requirements, version};
pub use running::Running;
pub use tool::{How, Ran, Tool};

use std::path::PathBuf;

use crate::scenario::ServerSpec;
use crate::time::Span;

/// The certificate of a run: self-signed EC P-256 for `localhost`, 127.0.0.1 and ::1.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// PEM file of the certificate.
    pub cert: PathBuf,
    /// PEM file of the key (PKCS #8), mode 0600.
    pub key: PathBuf,
}

/// The two ports of one start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Cleartext protocols.
    pub http: u16,
    /// TLS protocols, and HTTP/3 on UDP.
    pub https: u16,
}

/// What every start of a run has in common.
#[derive(Clone, Debug)]
pub struct Host {
    /// This program, for the supervisor.
    pub exe: PathBuf,
    /// Scratch folder of the run. Servers that give up their privileges must be able to enter it.
    pub scratch: PathBuf,
    /// Folder the logs are kept in.
    pub logs: PathBuf,
    /// Certificate.
    pub certificate: Certificate,
    /// CPUs of the servers; empty: unpinned.
    pub cpus: Vec<u32>,
    /// `{workers}`.
    pub workers: u32,
}

/// Why a server could not be built, started or stopped, with its last log lines.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ServerError {
    /// True when a required tool is absent: `n/a` rather than `FAIL`.
    pub absent: bool,
    /// What went wrong and what to do.
    pub reason: String,
    /// Last lines of its log.
    pub log_tail: Vec<String>,
}

/// What a probe of readiness found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Probe {
    /// The expected response.
    Ready,
    /// Nothing yet: refused, reset, timed out. Ask again.
    NotYet(String),
    /// It answered, and not as expected. Ask again until the deadline, then say this.
    Wrong(String),
    /// Asking again is of no use, for this reason: end the start at once.
    GiveUp(String),
}

/// How a stop went.
#[derive(Clone, PartialEq, Debug)]
pub struct Stopped {
    /// From the signal to the end of the last process.
    pub took: Span,
    /// True when grace ran out and it was killed.
    pub killed: bool,
    /// What is left to say, e.g. `port 20080 still taken`.
    pub problem: Option<String>,
}

/// Two ports that are free now on IPv4 and IPv6, for TCP and UDP, outside the ephemeral range, or
/// the fixed ones. The search always starts at the same number, so that one machine gives one
/// server the same ports in every run.
///
/// # Errors
/// Names the port that is taken, and by which process when that can be seen.
pub fn allocate_ports(spec: &ServerSpec) -> Result<Ports, ServerError> {
    ports::allocate(spec)
}

impl ServerError {
    /// Something went wrong: the server's cells fail.
    fn failed(reason: impl Into<String>) -> Self {
        Self { absent: false, reason: reason.into(), log_tail: Vec::new() }
    }

    /// Something is not installed: the server's cells are n/a.
    fn absent(reason: impl Into<String>) -> Self {
        Self { absent: true, ..Self::failed(reason) }
    }
}
