//! Owns the life of a server under test: build, version, ports, certificate, pinned start under a
//! supervisor, logs, readiness, stop. What speaks HTTP to it is passed in as a probe.

use std::path::{Path, PathBuf};

use crate::results::Protocol;
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
    /// TLS protocols.
    pub https: u16,
}

/// What every start of a run has in common.
#[derive(Clone, Debug)]
pub struct Host {
    /// This program, for the supervisor.
    pub exe: PathBuf,
    /// Scratch folder of the run.
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

/// A server that runs, below a supervisor of its own. Dropping it kills everything below.
#[derive(Debug)]
pub struct Running {
    _placeholder: (),
}

impl Certificate {
    /// Makes one in `dir`.
    ///
    /// # Errors
    /// Names the file that could not be written.
    pub fn generate(dir: &Path) -> Result<Self, ServerError> {
        let _ = dir;
        unimplemented!("server helper")
    }
}

/// Checks `requires`.
///
/// # Errors
/// With `absent` when a program is missing; the reason names it.
pub fn requirements(spec: &ServerSpec) -> Result<(), ServerError> {
    let _ = spec;
    unimplemented!("server helper")
}

/// Runs the build command, output to `<logs>/<name>.build.log`; returns how long it took, `None`
/// without a build command.
///
/// # Errors
/// Exit status and last log lines, or that `deadline` passed.
pub fn build(host: &Host, spec: &ServerSpec, deadline: Span) -> Result<Option<Span>, ServerError> {
    let _ = (host, spec, deadline);
    unimplemented!("server helper")
}

/// First output line of the version command.
pub fn version(spec: &ServerSpec) -> Option<String> {
    let _ = spec;
    unimplemented!("server helper")
}

/// Two ports that are free now on IPv4 and IPv6, outside the ephemeral range, or the fixed ones.
///
/// # Errors
/// Names the port that is taken, and by which process when that can be seen.
pub fn allocate_ports(spec: &ServerSpec) -> Result<Ports, ServerError> {
    let _ = spec;
    unimplemented!("server helper")
}

impl Running {
    /// Starts `spec`, pinned, in a process group of its own, and waits until `probe` finds the
    /// expected response or `deadline` passed or it exited. Returns it and the time it took.
    ///
    /// # Errors
    /// Exit status, or what the last probe found, with the last log lines; nothing is left running.
    pub fn start(
        host: &Host,
        spec: &ServerSpec,
        protocol: Protocol,
        ports: Ports,
        deadline: Span,
        probe: &mut dyn FnMut() -> Probe,
    ) -> Result<(Self, Span), ServerError> {
        let _ = (host, spec, protocol, ports, deadline, probe);
        unimplemented!("server helper")
    }

    /// Process id of the supervisor: the root that `sampler::TreeSampler` follows.
    pub fn root(&self) -> u32 {
        unimplemented!("server helper")
    }

    /// Exit status in words when the server's main process has ended and left no descendant.
    pub fn exited(&mut self) -> Option<String> {
        unimplemented!("server helper")
    }

    /// Its last `lines` log lines.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        let _ = lines;
        unimplemented!("server helper")
    }

    /// Signal, grace, SIGKILL; returns when no descendant lives and its ports are free.
    pub fn stop(self) -> Stopped {
        unimplemented!("server helper")
    }
}
