//! Owns the structs of a checked scenario. Every value in them is valid: counts are positive, pin
//! sets exist and are disjoint, placeholders are known.

use std::collections::BTreeMap;

use super::generators::GeneratorSpec;
use super::tools::{GateSpec, ProbeSpec};
use crate::results::{Protocol, Resumption, SectionKind, ServerOrder, SocketMode, VariantRecord, WaitMode};
use crate::time::Span;

/// A whole scenario, after `use` was resolved and command-line overrides were applied.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Path as given.
    pub path: String,
    /// Text of the file, verbatim.
    pub text: String,
    /// Title of the report.
    pub title: String,
    /// Base name of the report files.
    pub report: String,
    /// Template name.
    pub template: String,
    /// Rounds and times.
    pub run: RunSettings,
    /// Who runs where.
    pub pin: Pin,
    /// What every response must be.
    pub expect: Expected,
    /// Servers in order.
    pub servers: Vec<ServerSpec>,
    /// Load generators to compare, in order.
    pub generators: Vec<GeneratorSpec>,
    /// Probes in order.
    pub probes: Vec<ProbeSpec>,
    /// Sections in order.
    pub sections: Vec<Section>,
    /// What the command line narrowed or overrode, one phrase each.
    pub overrides: Vec<String>,
}

/// `[run]`.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSettings {
    /// Passes over all cells.
    pub rounds: u32,
    /// Window of a cell.
    pub duration: Span,
    /// Load before the window.
    pub warmup: Span,
    /// Longest wait for answers after the window.
    pub drain: Span,
    /// Pause after a server became ready.
    pub settle: Span,
    /// Longest wait for one response; zero: none.
    pub timeout: Span,
    /// Longest wait for one connection.
    pub connect_timeout: Span,
    /// Deadline of one build.
    pub build_deadline: Span,
    /// Deadline of one start, spawn to first expected response.
    pub start_deadline: Span,
    /// Deadline of one cell beyond its warm-up, window and drain.
    pub cell_grace: Span,
    /// Deadline of one server in one round and section; `None`: derived from its cells.
    pub server_deadline: Option<Span>,
    /// Deadline of the whole run; `None`: none.
    pub run_deadline: Option<Span>,
    /// Percentiles shown in the report.
    pub percentiles: Vec<f64>,
    /// Relative spread over rounds above which a cell is `unstable`.
    pub unstable_above: f64,
    /// How the generator waits.
    pub wait: WaitMode,
    /// How QUIC connections share UDP sockets.
    pub socket: SocketMode,
    /// Whether QUIC connections spread their packets over the round-trip time.
    pub pacing: bool,
    /// In what order the servers of a round are started.
    pub order: ServerOrder,
}

/// `[pin]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pin {
    /// CPUs of the servers; empty: unpinned.
    pub servers: Vec<u32>,
    /// CPUs of the generator; empty: unpinned.
    pub generator: Vec<u32>,
    /// Worker threads of each server that does not name its own number: `{workers}`.
    pub workers: u32,
    /// Generator threads.
    pub generator_threads: u32,
}

/// `[expect]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Path asked for.
    pub path: String,
    /// Status; `None`: any 2xx or 3xx.
    pub status: Option<u16>,
    /// Exact body.
    pub body: Option<Vec<u8>>,
    /// Exact length of the body.
    pub length: Option<u64>,
}

/// One server: how to build, start, version and stop it. Strings may hold `{placeholders}`, see
/// [`PLACEHOLDERS`].
#[derive(Clone, PartialEq, Debug)]
pub struct ServerSpec {
    /// Unique name: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Name in tables.
    pub label: String,
    /// Folder it stands in: `{dir}`, and the working directory of its commands. Absolute.
    pub dir: String,
    /// Programs that must be on PATH (or absolute); a missing one makes its cells n/a.
    pub requires: Vec<String>,
    /// Build command, run once in `dir`; empty: none.
    pub build: Vec<String>,
    /// Start command; must stay in the foreground or leave descendants that do the work.
    pub command: Vec<String>,
    /// Environment added to the harness's own.
    pub env: BTreeMap<String, String>,
    /// Config files of `dir` to render into the run folder; `{config}` is the first one's path.
    pub render: Vec<String>,
    /// Protocols it can be driven over.
    pub protocols: Vec<Protocol>,
    /// Command whose first output line is its version; empty: none.
    pub version: Vec<String>,
    /// Signal that asks it to stop, e.g. `TERM`.
    pub stop_signal: String,
    /// Time from that signal to SIGKILL.
    pub stop_grace: Span,
    /// Fixed port of cleartext protocols.
    pub port: Option<u16>,
    /// Fixed port of TLS protocols, on UDP that of HTTP/3.
    pub tls_port: Option<u16>,
    /// One phrase for the report.
    pub note: Option<String>,
    /// What is to succeed before it may be best.
    pub gate: Option<GateSpec>,
    /// Worker threads, `{workers}`, where they are not those of [`Pin`].
    pub workers: Option<u32>,
    /// What it is a variant of; `None`: a server in its own right.
    pub variant: Option<VariantRecord>,
    /// The commit that `dir` is a checkout of, where it is one made for the run.
    pub revision: Option<String>,
}

/// Placeholders of a [`ServerSpec`]'s strings, with their meaning.
pub const PLACEHOLDERS: &[(&str, &str)] = &[
    ("port", "the port the section's protocol is driven on"),
    ("http_port", "the port of cleartext protocols"),
    ("https_port", "the port of TLS protocols, on UDP that of HTTP/3"),
    ("cert", "path of the run's certificate, PEM"),
    ("key", "path of its private key, PEM (PKCS #8)"),
    ("workers", "worker threads to use"),
    ("dir", "folder of the server's server.toml"),
    ("run_dir", "scratch folder of this start, removed afterwards"),
    ("config", "path of the first rendered config file"),
];

/// One table.
#[derive(Clone, PartialEq, Debug)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What it measures.
    pub kind: SectionKind,
    /// Protocols, at least one; `closed-loop` has exactly one, `ratio` two of one listener.
    pub protocols: Vec<Protocol>,
    /// Cells in order, of all protocols; see [`Section::cells_of`].
    pub cells: Vec<Cell>,
    /// What ends a window: the run's duration unless the section says otherwise.
    pub limit: SectionLimit,
    /// Warm-up of its cells.
    pub warmup: Span,
    /// How its QUIC connections share UDP sockets.
    pub socket: SocketMode,
    /// Whether they spread their packets over the round-trip time.
    pub pacing: bool,
    /// Header fields of its requests beside those of every request, by name.
    pub headers: Vec<(String, String)>,
    /// Whether the report shows every round as a row.
    pub runs: bool,
}

impl Section {
    /// Whether a server's answer is looked at before the cells: what comes back is part of what is asked.
    pub fn samples_answers(&self) -> bool {
        self.runs || !self.headers.is_empty()
    }
}

/// C x M, and what becomes of connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    /// C: connections.
    pub connections: u32,
    /// M: concurrent requests on each.
    pub concurrency: u32,
    /// What connections make of earlier ones.
    pub resumption: Resumption,
    /// Requests after which a connection is replaced: those of a `handshake` section; `None` in others.
    pub requests_per_connection: Option<u32>,
    /// The generator that drives it, as an index into the scenario's; `None`: this program's own, by a
    /// plan.
    pub generator: Option<usize>,
}

/// What ends the windows of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionLimit {
    /// A length.
    Duration(Span),
    /// A number of requests (for `setup`: of connections; for `handshake`: on all connections together).
    Requests(u64),
}

/// Facts of the machine a scenario is checked against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// CPUs this process may use, ascending.
    pub cpus: Vec<u32>,
    /// SMT siblings: groups of CPUs that share a core.
    pub cores: Vec<Vec<u32>>,
    /// Hard limit of open files.
    pub fd_hard_limit: u64,
    /// First and last ephemeral port.
    pub ephemeral_ports: (u16, u16),
    /// Ports inside that range that are reserved (`ip_local_reserved_ports`).
    pub reserved_ports: Vec<(u16, u16)>,
}
