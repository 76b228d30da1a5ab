//! Owns what a generator is told and what it says while it runs: [`LoadPlan`] (JSON on standard
//! input of `bench load --plan -`) and [`Event`] (JSON lines on its standard output). Data only.
//!
//! The child prints, one JSON object a line: `connected` or, when no connection came up, straight
//! to `measurement`; then `window`, announced before it opens so that the orchestrator can sample
//! at its edges; then `measurement`, always last. Exit codes are those of `bench load`.

use serde::{Deserialize, Serialize};

use crate::results::{Measurement, Protocol, Resumption, SocketMode, WaitMode};

/// All that one run of the generator needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// Protocol to drive.
    pub protocol: Protocol,
    /// Where to connect and what to ask for.
    pub target: Target,
    /// The request, the same each time.
    pub request: Request,
    /// What an ok response is.
    pub expect: Expect,
    /// C: connections, at least 1.
    pub connections: u32,
    /// M: concurrent requests on each, at least 1; 1 for HTTP/1.1.
    pub concurrency: u32,
    /// Worker threads, at least 1 and at most `connections`.
    pub threads: u32,
    /// CPU of each worker, in order; empty: inherit the process's affinity.
    pub cpus: Vec<u32>,
    /// What ends the window.
    pub limit: Limit,
    /// Load before the window opens, not counted.
    pub warmup_ns: u64,
    /// Longest wait for requests in flight after the window closed.
    pub drain_ns: u64,
    /// A response that takes longer fails its request and its connection; 0: never.
    pub timeout_ns: u64,
    /// Longest wait for one connection, TLS included.
    pub connect_timeout_ns: u64,
    /// False: a fresh connection for each request.
    pub keepalive: bool,
    /// Requests after which a connection is replaced; `null`: never. With `keepalive` false it is 1.
    pub requests_per_connection: Option<u32>,
    /// What connections make of earlier ones' sessions.
    pub resumption: Resumption,
    /// What only QUIC needs.
    pub quic: Quic,
    /// How the worker waits for completions.
    pub wait: WaitMode,
    /// Receptions to wait for before a sleeping worker wakes up; 0: decided by load. A connection with
    /// several requests in flight may bring several responses in one.
    pub batch: u32,
    /// Check the server's certificate against the system's roots, or this PEM file; `null`: accept any.
    pub verify: Option<Verify>,
    /// Keep the response for the measurement: of one request on one connection.
    #[serde(default)]
    pub sample: bool,
}

/// Settings of QUIC connections.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quic {
    /// How connections share UDP sockets.
    pub socket: SocketMode,
    /// Spread a window's packets over the round-trip time (RFC 9002 §7.7); on loopback this only costs.
    pub pacing: bool,
    /// Several datagrams in one send (UDP GSO), where the kernel has it.
    pub gso: bool,
    /// Several datagrams in one reception (UDP GRO), where the kernel has it.
    pub gro: bool,
    /// Largest UDP payload to send, 1200 to 65507 bytes (RFC 9000 §14); the server may allow less.
    pub payload: u16,
    /// Packets after which the keys are updated; `null`: before the cipher's limit (RFC 9001 §6.6).
    pub key_update_after: Option<u64>,
}

impl Default for Quic {
    fn default() -> Self {
        Self {
            socket: SocketMode::PerConnection,
            pacing: false,
            gso: true,
            gro: true,
            payload: 1200,
            key_update_after: None,
        }
    }
}

/// Where requests go.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The URL as shown to people.
    pub url: String,
    /// Value of Host (or :authority).
    pub authority: String,
    /// Path and query, starting with `/`.
    pub path: String,
    /// TLS server name; empty without TLS.
    pub sni: String,
    /// Addresses to try in order (`127.0.0.1:80`, `[::1]:80`, `unix:/path`).
    pub addresses: Vec<String>,
}

/// The request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Extra header fields, in order; a `host` here replaces the authority.
    pub headers: Vec<(String, String)>,
    /// Body, base64.
    pub body: String,
}

/// What an ok response is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Exactly this status; `null`: any 2xx or 3xx.
    pub status: Option<u16>,
    /// Exactly this body, base64; `null`: any.
    pub body: Option<String>,
    /// Exactly this many body bytes; `null`: any.
    pub length: Option<u64>,
}

/// What ends the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A length in nanoseconds.
    DurationNs(u64),
    /// A number of requests over all connections.
    Requests(u64),
}

/// How a certificate is checked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Against the system's roots.
    System,
    /// Against the roots in this PEM file.
    Roots(String),
}

/// A line of `bench load --plan`'s standard output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Every connection is up, or has failed its first attempt.
    Connected {
        /// Connections that are up.
        up: u32,
        /// Connections asked for.
        of: u32,
        /// Address used.
        address: String,
    },
    /// When the window opens and closes, told in advance.
    Window {
        /// Opening edge, nanoseconds of `CLOCK_MONOTONIC`.
        opens_at_ns: u64,
        /// Closing edge; `null` when a count ends it, and then `window_closed` tells.
        closes_at_ns: Option<u64>,
    },
    /// The window closed early or by count.
    WindowClosed {
        /// Closing edge, nanoseconds of `CLOCK_MONOTONIC`.
        closed_at_ns: u64,
    },
    /// The result; always the last line.
    Measurement(Box<Measurement>),
    /// The generator could not measure; the last line in place of `measurement`.
    Error {
        /// What is wrong and what to do about it.
        message: String,
    },
}
