//! Owns the structs of `results.json`: public data without behaviour. `docs/results-format.md`
//! explains them to readers, `docs/results.schema.json` is generated from them.
//!
//! A key this version does not know is an error, so that a misspelt or newer field is never dropped
//! in silence.
//!
//! Units stand in key names. A figure that is not defined (a mean over nothing) is `null`, never a
//! NaN or an infinity. Times inside a measurement are nanoseconds of `CLOCK_MONOTONIC`; times of day
//! are RFC 3339 in UTC.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An application protocol, named as in `docs/methodology.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Cleartext HTTP/1.1.
    H1,
    /// HTTP/1.1 over TLS.
    H1s,
    /// Cleartext HTTP/2 with prior knowledge.
    H2c,
    /// HTTP/2 over TLS, by ALPN.
    H2,
    /// HTTP/3 over QUIC version 1.
    H3,
}

/// What a new connection makes of an earlier one's session (RFC 8446 §2.2, §2.3).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Resumption {
    /// Nothing: every handshake is a full one.
    #[default]
    Off,
    /// It is resumed with a ticket, where one is held.
    Ticket,
    /// With a ticket, and the first request goes out as early data (0-RTT). HTTP/3 only.
    #[serde(rename = "0rtt")]
    ZeroRtt,
}

/// How QUIC connections share UDP sockets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SocketMode {
    /// Each has a socket of its own.
    #[default]
    PerConnection,
    /// All of a generator thread share one.
    Shared,
}

/// How a generator thread waits for completions; see `docs/methodology.md`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitMode {
    /// Poll when pinned to CPUs of its own and little is in flight, else sleep.
    #[default]
    Auto,
    /// Never sleep while requests are in flight.
    Poll,
    /// Always sleep in the kernel.
    Sleep,
}

/// In what order the servers of a round are started; see `docs/methodology.md`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerOrder {
    /// Each round begins one server further.
    #[default]
    Rotate,
    /// Every second round goes back the way of the one before it.
    Abba,
}

/// The whole file: one run of one scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// `major.minor` of this format; see `results::version`.
    pub format: String,
    /// The tool that measured: `bench <version>`.
    pub tool: String,
    /// The scenario's title.
    pub title: String,
    /// Base name of the report files, e.g. `HTTP_RESULTS`.
    pub report: String,
    /// Name of the report template, e.g. `http`.
    pub template: String,
    /// The scenario as it was read.
    pub scenario: ScenarioRecord,
    /// What the command line narrowed or overrode, one phrase each, e.g. `rounds = 1 (scenario: 3)`.
    pub overrides: Vec<String>,
    /// One entry for each invocation that measured into this file; more than one after `--resume`.
    pub sessions: Vec<Session>,
    /// The settings in force.
    pub settings: Settings,
    /// The servers, in scenario order.
    pub servers: Vec<ServerRecord>,
    /// The load generators compared with each other, in scenario order; empty where this tool's own
    /// drives every cell.
    #[serde(default)]
    pub generators: Vec<GeneratorRecord>,
    /// Commands that were run for figures of their own, in scenario order.
    #[serde(default)]
    pub probes: Vec<ProbeRecord>,
    /// The sections, in scenario order, with every cell of every server.
    pub sections: Vec<SectionRecord>,
    /// True once every cell of the plan has an outcome.
    pub complete: bool,
}

/// The scenario file a run was made from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRecord {
    /// Its path as given.
    pub path: String,
    /// Its text, verbatim.
    pub text: String,
}

/// One invocation of `bench run`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The command line.
    pub command: Vec<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC; `null` while it runs, or when it was killed.
    pub finished_at: Option<String>,
    /// Where it ran.
    pub environment: Environment,
    /// Order of server starts: `round / section / server`, as they happened.
    pub order: Vec<String>,
}

/// What a reader needs to know of the machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Host name, or the CI runner's description.
    pub host: String,
    /// `uname` system, release and machine.
    pub kernel: String,
    /// CPU model name.
    pub cpu: String,
    /// CPUs online.
    pub logical_cpus: u32,
    /// Frequency governor of the CPUs in use (`scaling_governor`), several joined by `, `; `null` where
    /// there is none to read, as on most virtual machines.
    #[serde(default)]
    pub governor: Option<String>,
    /// `MemTotal` in KiB.
    pub memory_kib: u64,
    /// Commit of the working tree the scenario stands in, with `-dirty` when it has changes.
    pub commit: Option<String>,
    /// Address of the CI run, when in CI.
    pub ci_run: Option<String>,
    /// One-minute load average when the run began.
    pub load_at_start: Option<f64>,
    /// Findings of `bench doctor` at the start.
    pub findings: Vec<Finding>,
}

/// Something about the machine that can spoil a measurement, or the statement that it does not.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Stable name of the check, e.g. `fd-limit`.
    pub check: String,
    /// How bad it is.
    pub level: FindingLevel,
    /// What was found, with the figure.
    pub found: String,
    /// What to do about it; absent when all is well.
    pub remedy: Option<String>,
}

/// Weight of a [`Finding`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingLevel {
    /// Nothing to do.
    Ok,
    /// Could not be read here; the reason is in `found`.
    Unknown,
    /// Measurements may be noisier or narrower than they could be.
    Warn,
    /// Measurements would be wrong or impossible.
    Bad,
}

/// The settings a run was made with, after overrides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Rounds asked for.
    pub rounds: u32,
    /// Length of one window in seconds.
    pub duration_s: f64,
    /// Warm-up before each window in seconds.
    pub warmup_s: f64,
    /// Longest drain after each window in seconds.
    pub drain_s: f64,
    /// Pause after a server became ready, before its first cell, in seconds.
    pub settle_s: f64,
    /// CPUs of the servers; empty when unpinned.
    pub server_cpus: Vec<u32>,
    /// CPUs of the generator; empty when unpinned.
    pub generator_cpus: Vec<u32>,
    /// Worker threads each server was told to use.
    pub workers: u32,
    /// Generator threads.
    pub generator_threads: u32,
    /// How the generator was told to wait.
    pub wait: WaitMode,
    /// What every response must be, as one phrase, e.g. `status 200, body of 14 bytes`.
    pub expect: String,
    /// Certificate used by TLS servers, as one phrase.
    pub certificate: String,
    /// Percentiles shown in the report, e.g. `[50, 99]`.
    pub percentiles: Vec<f64>,
    /// Relative spread over rounds above which a cell is `unstable`.
    pub unstable_above: f64,
    /// In what order the servers of a round were started.
    #[serde(default)]
    pub order: ServerOrder,
}

/// One server of the comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerRecord {
    /// Unique name.
    pub name: String,
    /// Name shown in tables.
    pub label: String,
    /// First line of its version command; `null` when it has none or could not run.
    pub version: Option<String>,
    /// Protocols it offers.
    pub protocols: Vec<Protocol>,
    /// The command it is started with, placeholders unresolved.
    pub command: Vec<String>,
    /// Why it could not be measured at all (a missing requirement, a failed build).
    pub unavailable: Option<Unavailable>,
    /// Seconds its build took; `null` when it has none.
    pub build_s: Option<f64>,
    /// Each start of it.
    pub starts: Vec<StartRecord>,
    /// One phrase on settings a reader should know, from its `server.toml`.
    pub note: Option<String>,
    /// What it is a variant of; `null` for a server in its own right.
    #[serde(default)]
    pub variant: Option<VariantRecord>,
    /// Worker threads it was told to use where they are not those of the settings.
    #[serde(default)]
    pub workers: Option<u32>,
    /// What its gate said; `null` when it has none.
    #[serde(default)]
    pub gate: Option<GateRecord>,
    /// The commit it was built from, where the run built it from one of its own.
    #[serde(default)]
    pub revision: Option<String>,
}

/// A server that differs from another one of the scenario in a few settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantRecord {
    /// Name of the server as the scenario has it.
    pub of: String,
    /// What tells this variant apart, e.g. `debug`, `2 workers`.
    pub label: String,
}

/// What came of a server's gate: a command that is to succeed before the server may be the best.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateRecord {
    /// The command, placeholders resolved.
    pub command: Vec<String>,
    /// What came of it.
    pub outcome: GateOutcome,
    /// How it ended or why it was not run; `null` when it passed.
    pub reason: Option<String>,
    /// Last lines of its output.
    pub log_tail: Vec<String>,
    /// Seconds it took; `null` when it was not run.
    pub took_s: Option<f64>,
}

/// Outcome of a gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// It exited with 0.
    Passed,
    /// It did not, or took too long.
    Failed,
    /// What it needs is not installed.
    NotRun,
}

/// One load generator of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorRecord {
    /// Unique name.
    pub name: String,
    /// Name shown in tables.
    pub label: String,
    /// How it is called and read.
    pub kind: GeneratorKind,
    /// First line of its version command; `null` when it could not run.
    pub version: Option<String>,
    /// The command, placeholders unresolved.
    pub command: Vec<String>,
    /// Why it could not be used at all.
    pub unavailable: Option<Unavailable>,
}

/// Generators whose command line and output are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorKind {
    /// This tool's own, as `bench load`.
    Builtin,
    /// `shb`.
    Shb,
    /// `h2load`, of nghttp2.
    H2load,
    /// `wrk`.
    Wrk,
    /// `oha`.
    Oha,
    /// Any other: its command and how its output is read stand in the scenario.
    Command,
}

/// A command that was run for figures of its own, apart from any server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    /// Unique name.
    pub name: String,
    /// Name shown in the table.
    pub label: String,
    /// The command.
    pub command: Vec<String>,
    /// First line of its version command; `null` when it has none or could not run.
    pub version: Option<String>,
    /// Index into `sessions`.
    pub session: u32,
    /// Whether it ran to its end.
    pub status: CellStatus,
    /// Why it did not.
    pub reason: Option<String>,
    /// Last lines of its output, for a failure.
    pub log_tail: Vec<String>,
    /// Seconds it took.
    pub took_s: Option<f64>,
    /// What it printed, the end of it when that was long: the figures can be read again from here.
    pub output: String,
    /// The figures lifted from its output.
    pub figures: Vec<ProbeFigure>,
}

/// One figure of a probe.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeFigure {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a bare number.
    pub unit: String,
    /// The regular expression whose first group it is.
    pub pattern: String,
    /// The figure; `null` when the pattern did not match.
    pub value: Option<f64>,
}

/// Why a server has no figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unavailable {
    /// `n/a` for an absent tool, `FAIL` for a failed build.
    pub status: CellStatus,
    /// The reason, with what to do.
    pub reason: String,
    /// Last lines of its log, when it has one.
    pub log_tail: Vec<String>,
}

/// One start of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRecord {
    /// Index into `sessions`.
    pub session: u32,
    /// Round, from 1.
    pub round: u32,
    /// Index into `sections`.
    pub section: u32,
    /// Milliseconds from spawn to the first expected response.
    pub ready_ms: Option<f64>,
    /// Milliseconds from the stop signal to the end of its last process.
    pub stop_ms: Option<f64>,
    /// True when the grace ran out and it was killed.
    pub killed: bool,
    /// Why it did not start or stop well.
    pub problem: Option<String>,
}

/// What a section measures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SectionKind {
    /// C connections, each with M requests always in flight.
    ClosedLoop,
    /// Every request on a connection of its own.
    Setup,
    /// Two protocols of the same server and listener beside each other, cell by cell.
    Ratio,
    /// Many short connections: the time a handshake takes, full, resumed, and with early data.
    Handshake,
    /// The same closed loops driven by several load generators, each as a command of its own.
    Generators,
}

/// One table of the report.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectionRecord {
    /// Its heading.
    pub title: String,
    /// What it measures.
    pub kind: SectionKind,
    /// Cells, in the order server (scenario order), protocol, cell, generator.
    pub cells: Vec<CellRecord>,
    /// Header fields that its requests carry beside those of every request.
    #[serde(default)]
    pub headers: Vec<HeaderField>,
    /// True when the report shows every round as a row.
    #[serde(default)]
    pub runs: bool,
}

/// A header field.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// Its value; bytes that are not UTF-8 are replaced.
    pub value: String,
}

/// One cell of one server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellRecord {
    /// Name of the server.
    pub server: String,
    /// Protocol driven.
    pub protocol: Protocol,
    /// C: connections.
    pub connections: u32,
    /// M: concurrent requests on each.
    pub concurrency: u32,
    /// What its connections make of earlier ones.
    #[serde(default)]
    pub resumption: Resumption,
    /// Requests after which a connection is replaced; `null`: never (for `setup`: one).
    #[serde(default)]
    pub requests_per_connection: Option<u32>,
    /// Index into `generators` of the one that drove it; `null`: this tool's own, by a plan.
    #[serde(default)]
    pub generator: Option<u32>,
    /// Every round, in order; the raw data.
    pub rounds: Vec<RoundRecord>,
    /// Figures and verdict over the rounds, a function of `rounds` and `settings` alone.
    pub summary: Summary,
}

/// Whether a round, a cell or a server came to a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellStatus {
    /// There is a measurement.
    Measured,
    /// It did not complete; the reason is beside it.
    Failed,
    /// The server speaks another protocol than the one asked for; the reason is beside it.
    WrongProtocol,
    /// Cut short by the user or a deadline.
    Interrupted,
    /// A tool it needs is absent, or it does not speak the protocol.
    Absent,
    /// Not yet measured.
    Pending,
}

/// One pass over one cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundRecord {
    /// Round, from 1.
    pub round: u32,
    /// Index into `sessions`.
    pub session: u32,
    /// Outcome.
    pub status: CellStatus,
    /// Why it failed or was interrupted.
    pub reason: Option<String>,
    /// The server's last log lines, for a failure.
    pub log_tail: Vec<String>,
    /// What the generator measured.
    pub measurement: Option<Measurement>,
    /// What the server used meanwhile.
    pub server: Option<ServerSample>,
    /// What a generator said that was run as a command; then there is no `measurement`.
    #[serde(default)]
    pub external: Option<ExternalRun>,
    /// What the server answered to the section's request before the window, where that was looked at.
    #[serde(default)]
    pub answer: Option<Answer>,
}

/// One run of a generator as a command, read from outside and from its own output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalRun {
    /// The command, placeholders resolved.
    pub command: Vec<String>,
    /// Window it was asked for in seconds.
    pub asked_s: f64,
    /// From its start to its end in seconds.
    pub wall_s: f64,
    /// Its user CPU in µs, that of children it waited for included (`RUSAGE_CHILDREN` of getrusage(2)
    /// in the process above it).
    pub cpu_user_us: u64,
    /// Its system CPU in µs.
    pub cpu_system_us: u64,
    /// Responses of status 2xx or 3xx; `null` when it does not say.
    pub ok: Option<u64>,
    /// Requests answered otherwise or not at all, those under way at the end apart; `null` when it does not
    /// say.
    pub failed: Option<u64>,
    /// Requests per second by its own account.
    pub requests_per_second: Option<f64>,
    /// Mean latency in µs by its own account.
    pub latency_mean_us: Option<f64>,
    /// Largest latency in µs by its own account.
    pub latency_max_us: Option<f64>,
    /// Latency percentiles in µs by its own account.
    pub latency_us: BTreeMap<String, f64>,
    /// What it printed, the end of it when that was long: the figures can be read again from here.
    pub output: String,
}

/// A server's answer to the request of a section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Its header fields, in order.
    pub fields: Vec<HeaderField>,
    /// Content coding, as `Content-Encoding` names it; `identity` without one (RFC 9110 §8.4).
    pub encoding: String,
    /// Bytes of the body as sent.
    pub encoded_bytes: u64,
    /// Bytes of the body after its coding is taken off; `null` when that did not work.
    pub body_bytes: Option<u64>,
    /// What is wrong with it; `null` when its decoded body is the expected one.
    pub problem: Option<String>,
    /// True when a second answer had the same bytes, so that every answer of the window is compared with
    /// them; false: a coded one is checked for status and framing alone in the window, one without a coding
    /// for what the scenario expects.
    pub repeats: bool,
}

/// Why a cell can, or cannot, be believed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing speaks against it.
    Valid,
    /// The closed loop did not keep C·M requests in flight.
    Starved,
    /// The generator was the limit: a floor, not a result.
    GeneratorBound,
    /// The rounds differ by more than the threshold.
    Unstable,
    /// Over 0.1 % of the requests failed or were not as expected.
    Tainted,
    /// What was negotiated is not what was asked for.
    WrongProtocol,
    /// Cut short.
    Interrupted,
    /// Did not complete.
    Failed,
    /// A tool the server needs is absent, or the server lacks what the cell is about.
    #[serde(rename = "n/a")]
    Absent,
}

/// What kept a cell from being faster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The server's CPUs were busy.
    Server,
    /// A generator thread was busy.
    Generator,
    /// Neither was: a timer, an acknowledgement, a lock.
    Neither,
}

/// Figures of a cell: medians over its measured rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The first and weightiest verdict.
    pub verdict: Verdict,
    /// Every verdict that holds, weightiest first.
    pub verdicts: Vec<Verdict>,
    /// One phrase for each verdict that is not `valid`, with its figures, in the order of `verdicts`;
    /// then, when some rounds have no measurement, one that says which and why.
    pub reasons: Vec<String>,
    /// What bound it; `null` when no CPU figure was read.
    pub bound: Option<Bound>,
    /// What is known of the cause when `bound` is `neither`, in words.
    #[serde(default)]
    pub bound_reason: Option<String>,
    /// Rounds that the figures are taken from.
    pub rounds_measured: u32,
    /// Ok responses per second (for `setup`: connections per second).
    pub requests_per_second: Option<f64>,
    /// Half the distance of the extreme rounds, relative to the median; `null` with one round.
    pub spread: Option<f64>,
    /// Mean latency in µs.
    pub latency_mean_us: Option<f64>,
    /// Latency quantiles in µs by percentile: the percentiles of the settings, and 50, 90, 99, 99.9.
    pub latency_us: BTreeMap<String, Option<f64>>,
    /// Spread over rounds of each of `latency_us`, defined as `spread` is.
    pub latency_spread: BTreeMap<String, Option<f64>>,
    /// True when a request was still unanswered at the end and older than every latency seen, so
    /// that the maximum is a lower bound.
    pub max_is_lower_bound: bool,
    /// Largest latency of any round in µs, or the age of that unanswered request.
    pub latency_max_us: Option<f64>,
    /// N_eff: requests per second times mean latency (Little's law).
    pub in_flight: Option<f64>,
    /// Effective M over the rounds; `null` for HTTP/1.1.
    #[serde(default)]
    pub effective_concurrency: Option<EffectiveConcurrency>,
    /// Server CPU per ok response in µs.
    pub server_cpu_us_per_request: Option<f64>,
    /// Spread over rounds of `server_cpu_us_per_request`, defined as `spread` is.
    pub server_cpu_spread: Option<f64>,
    /// Peak resident memory of the server's process tree in KiB, the largest of any round.
    pub server_peak_rss_kib: Option<u64>,
    /// Share of the server CPUs that were busy, 0 to 1.
    pub server_busy: Option<f64>,
    /// Share of the window the server's busiest thread ran, 0 to 1.
    pub server_busiest_thread: Option<f64>,
    /// Share of the busiest generator thread's time spent working, 0 to 1.
    pub generator_busy: Option<f64>,
    /// Generator CPU per ok response in µs, user and system, polling left out.
    pub generator_cpu_us_per_request: Option<f64>,
    /// Figures of single connections, for sections that open many; else `null`.
    #[serde(default)]
    pub handshake: Option<HandshakeFigures>,
}

/// What connections took, over the measured rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandshakeFigures {
    /// Handshakes completed in the window per second.
    pub connections_per_second: Option<Median>,
    /// Shortest time to establish a connection, TCP and TLS, or QUIC, in µs.
    pub min_us: Option<Median>,
    /// Median of that time in µs.
    pub p50_us: Option<Median>,
    /// Its 99th percentile in µs.
    pub p99_us: Option<Median>,
    /// Median time from the beginning of a connection to its first complete ok response, in µs.
    pub first_response_p50_us: Option<Median>,
    /// Server CPU, user and system, per completed handshake, with all that was asked on the
    /// connection, in µs.
    pub server_cpu_us_per_connection: Option<Median>,
    /// Handshakes by kind, summed over the rounds.
    pub handshakes: Handshakes,
}

/// A figure over the measured rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// Half the distance of the extreme rounds, relative to the median; `null` with one round.
    pub spread: Option<f64>,
}

/// Concurrent requests that the server allowed on a connection, at most M.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectiveConcurrency {
    /// The smallest that was in force on any connection in any round.
    pub least: u32,
    /// The largest one.
    pub most: u32,
}

/// What one run of the generator measured: the output of `bench load --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The URL driven.
    pub url: String,
    /// Protocol asked for.
    pub protocol: Protocol,
    /// What was agreed with the server; `null` when no connection came up.
    pub negotiated: Option<Negotiated>,
    /// Addresses used, in the order of first use.
    pub addresses: Vec<String>,
    /// Worker threads.
    pub threads: u32,
    /// C: connections.
    pub connections: u32,
    /// M: concurrent requests on each.
    pub concurrency: u32,
    /// False for a fresh connection for each request.
    pub keepalive: bool,
    /// Requests after which a connection was replaced; `null`: never, but see `keepalive`.
    #[serde(default)]
    pub requests_per_connection: Option<u32>,
    /// What its connections were to make of earlier ones.
    #[serde(default)]
    pub resumption: Resumption,
    /// The measured interval.
    pub window: Window,
    /// True when cut short by a signal.
    pub interrupted: bool,
    /// Requests of the window.
    pub requests: Requests,
    /// `requests.ok` divided by the window's length; `null` when the window never opened.
    pub requests_per_second: Option<f64>,
    /// Bytes of the window on the wire (above TCP or UDP).
    pub transfer: Transfer,
    /// Latency of ok responses, from send to the last byte of the final response. With a fresh
    /// connection for each request it begins with the connect, TLS included.
    pub latency_us: Option<Latency>,
    /// Time to the first byte of the final response of ok responses.
    pub first_byte_us: Option<Latency>,
    /// N_eff: `requests_per_second` × mean latency (Little's law).
    pub in_flight: Option<f64>,
    /// Final responses of the window by status code.
    pub statuses: BTreeMap<String, u64>,
    /// 1xx responses of the window.
    pub interim_responses: u64,
    /// Errors of the window by phase and kind, most frequent first.
    pub errors: Vec<ErrorCount>,
    /// Connections over the whole life of the generator.
    pub connection: Connections,
    /// The window second by second.
    pub seconds: Vec<Second>,
    /// The generator's own cost.
    pub generator: Generator,
    /// Requests over the whole life of the generator: warm-up, window and drain.
    pub lifetime: Requests,
    /// How the server bounded concurrent requests on a connection; `null` for HTTP/1.1, and when no
    /// connection came up.
    #[serde(default)]
    pub multiplexing: Option<Multiplexing>,
    /// Connections that made no progress for two seconds with requests in flight: what they waited for.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// How QUIC fared; `null` for other protocols.
    #[serde(default)]
    pub quic: Option<QuicHealth>,
    /// What a user should know before believing the figures.
    pub warnings: Vec<Warning>,
    /// The first final response, where the plan asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<ResponseSample>,
}

/// One response as it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseSample {
    /// Status code.
    pub status: u16,
    /// Its header fields, in order; trailers are left out.
    pub fields: Vec<HeaderField>,
    /// Its body after framing was taken off, content coding left on, base64.
    pub body: String,
    /// True when the body was longer than what is kept of it.
    pub truncated: bool,
}

/// How QUIC fared over the window: what was lost, and how well datagrams were batched. Counts are of
/// all connections of the generator.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicHealth {
    /// How connections shared sockets.
    pub socket: SocketMode,
    /// Whether sending was paced.
    pub pacing: bool,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// Calls that sent them; each may carry several (UDP GSO).
    pub send_calls: u64,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// Receive completions that brought them; each may carry several (UDP GRO).
    pub receive_calls: u64,
    /// Bytes of the datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of the datagrams received.
    pub bytes_received: u64,
    /// Packets of the generator declared lost (RFC 9002 §6.1).
    pub packets_lost: u64,
    /// Of these: acknowledged later after all.
    pub spurious_losses: u64,
    /// Probe timeouts (RFC 9002 §6.2).
    pub probe_timeouts: u64,
    /// Retry packets honoured (RFC 9000 §8.1.2), over the generator's whole life.
    pub retries: u64,
    /// Datagrams and packets that belonged to no connection or could not be decrypted.
    pub stray_packets: u64,
    /// Packets received twice.
    pub duplicate_packets: u64,
    /// Key updates, begun by either side (RFC 9001 §6).
    pub key_updates: u64,
    /// Datagrams the kernel dropped at the generator's sockets (SO_RXQ_OVFL, socket(7)).
    pub receive_drops: u64,
    /// Datagrams a send call refused for want of buffer space; they were sent later or count as lost.
    pub send_drops: u64,
    /// Median of the connections' smoothed round-trip times when the window closed, in µs.
    pub smoothed_rtt_us: Option<f64>,
    /// The server's `max_ack_delay` in µs (RFC 9000 §18.2).
    pub max_ack_delay_us: Option<u64>,
    /// Largest UDP payload the generator sent.
    pub max_payload: u32,
    /// Receive buffer of a socket as the kernel granted it, in bytes; `null` when it could not be read.
    pub receive_buffer_bytes: Option<u64>,
    /// Send buffer of a socket as the kernel granted it.
    pub send_buffer_bytes: Option<u64>,
}

/// Concurrent requests on a connection, as the server allowed them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multiplexing {
    /// Effective M: the smallest that was in force on any connection during the window, at most M.
    pub effective_least: u32,
    /// The largest one.
    pub effective_most: u32,
    /// GOAWAY frames of the window.
    pub goaways: u64,
    /// Streams refused (REFUSED_STREAM) in the window.
    pub refused: u64,
}

/// A connection on which nothing moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Requests in flight on it.
    pub in_flight: u32,
    /// For how long nothing had been received, in µs.
    pub idle_us: u64,
    /// Flow-control windows and states of its streams, in words.
    pub state: String,
}

/// What a connection was negotiated to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Negotiated {
    /// HTTP version of the responses: `HTTP/1.1`, `HTTP/1.0`, `HTTP/2` or `HTTP/3`.
    pub http: String,
    /// ALPN protocol; `null` when none was agreed or no TLS was used.
    pub alpn: Option<String>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub tls: Option<String>,
    /// Cipher suite.
    pub cipher: Option<String>,
    /// Key exchange group.
    pub group: Option<String>,
}

/// The measured interval of one cell in one round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Opening edge, nanoseconds of `CLOCK_MONOTONIC`; `null` when it never opened.
    pub opened_at_ns: Option<u64>,
    /// Closing edge.
    pub closed_at_ns: Option<u64>,
    /// Length in seconds.
    pub length_s: Option<f64>,
    /// Length asked for in seconds; `null` when a count was asked for.
    pub asked_s: Option<f64>,
    /// Requests asked for; `null` when a duration was asked for.
    pub asked_requests: Option<u64>,
    /// Warm-up before it in seconds.
    pub warmup_s: f64,
    /// Ok responses per second of the warm-up; `null` without one.
    pub warmup_requests_per_second: Option<f64>,
}

/// Counts of requests. Always `started = ok + failed + unfinished`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Requests in flight at the opening edge (`carried_in`) plus those sent inside.
    pub started: u64,
    /// Of `started`: already in flight at the opening edge.
    pub carried_in: u64,
    /// Answered as expected.
    pub ok: u64,
    /// Answered otherwise, or not at all.
    pub failed: u64,
    /// Still in flight at the closing edge.
    pub unfinished: u64,
    /// Age of the oldest unfinished one at the closing edge, in µs.
    pub oldest_unfinished_us: Option<u64>,
    /// How often a request was sent again because the server said that it had not processed it (GOAWAY,
    /// REFUSED_STREAM). Such a request counts once as started, and its latency runs from its first send.
    #[serde(default)]
    pub replayed: u64,
    /// Of `failed`: under way when the server reset their stream or ended their connection.
    #[serde(default)]
    pub interrupted: u64,
}

/// Bytes moved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Received.
    pub received_bytes: u64,
    /// Sent.
    pub sent_bytes: u64,
    /// Body bytes of final responses, after framing is taken off.
    pub body_bytes: u64,
}

/// A latency distribution: its figures and the histogram they are read from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// 99.99th percentile.
    pub p99_99: f64,
    /// Largest.
    pub max: f64,
    /// HdrHistogram V2 of nanoseconds, compressed, base64.
    pub histogram: String,
}

/// Errors of one phase and kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorCount {
    /// Where it happened.
    pub phase: Phase,
    /// What happened: an errno name, a violation, a TLS alert, `status`, `length`, `body`.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// Of `count`: how many ended a request (the rest hit a connection without one). Each request that
    /// an error of its connection ended counts.
    pub requests: u64,
    /// One example in words.
    pub example: Option<String>,
}

/// The phase an error belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Establishing the TCP connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The QUIC handshake and connection, HTTP/3 aside.
    Quic,
    /// Sending.
    Write,
    /// Receiving, and connections that end under a request.
    Read,
    /// A violation of HTTP.
    Framing,
    /// A response that did not come in time.
    Timeout,
    /// A stream reset by the server, or a connection ended with requests of many streams on it.
    Interrupted,
    /// A request that the server refused to process again and again.
    Refused,
    /// A well-formed response that is not the expected one.
    Unexpected,
}

/// Connections over the life of the generator.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Attempts.
    pub attempted: u64,
    /// Established, TLS included.
    pub opened: u64,
    /// Of `opened`: replacements of an earlier one.
    pub reopened: u64,
    /// Of `reopened`: in the window; `null` in files of format 1.0.
    #[serde(default)]
    pub reopened_in_window: Option<u64>,
    /// Attempts that failed.
    pub failed: u64,
    /// Most established at one time.
    pub peak: u64,
    /// Connections that had a request in flight and completed none in the window's last second.
    pub stalled: u64,
    /// Time to establish one, TCP and TLS, or QUIC.
    pub setup_us: Option<Latency>,
    /// Time from the beginning of a connection to its first complete ok response; `null` in files before
    /// format 1.2.
    #[serde(default)]
    pub first_response_us: Option<Latency>,
    /// What kind of handshakes the established ones had; `null` without TLS, and before format 1.2.
    #[serde(default)]
    pub handshakes: Option<Handshakes>,
}

/// Handshakes by kind, of the window. `full + resumed` are all that were completed in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handshakes {
    /// With a certificate.
    pub full: u64,
    /// With a ticket of an earlier connection.
    pub resumed: u64,
    /// Of `resumed`: the server took the early data.
    pub early_accepted: u64,
    /// Handshakes with early data that the server did not take; it was sent once more.
    pub early_rejected: u64,
}

/// One second of the window; the last may be shorter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// Ok responses.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
    /// Median latency in µs.
    pub p50_us: Option<f64>,
    /// 99th percentile in µs.
    pub p99_us: Option<f64>,
}

/// The generator's own cost over the window, and how it ran.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// `io_uring`.
    pub engine: String,
    /// Kernel features found and used, by name.
    pub features: BTreeMap<String, bool>,
    /// How it was told to wait.
    pub wait: WaitMode,
    /// How it did wait: `poll` or `sleep`.
    pub waited: WaitMode,
    /// TLS library and provider; `null` without TLS.
    pub tls: Option<String>,
    /// User CPU per ok response in µs, polling left out.
    pub cpu_user_us_per_request: Option<f64>,
    /// System CPU per ok response in µs, polling left out.
    pub cpu_system_us_per_request: Option<f64>,
    /// Responses received per wake-up, on average.
    pub completions_per_wait: Option<f64>,
    /// Each worker thread.
    pub threads: Vec<GeneratorThread>,
    /// Largest resident memory of the process in KiB.
    pub peak_rss_kib: u64,
}

/// One worker thread over the window.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorThread {
    /// The CPU it was pinned to.
    pub cpu: Option<u32>,
    /// User CPU in µs, polling included.
    pub user_us: u64,
    /// System CPU in µs, polling included.
    pub system_us: u64,
    /// Time spent polling without finding anything, in µs; not work.
    pub polling_us: u64,
    /// (user + system − polling) ÷ window, 0 to 1.
    pub busy: Option<f64>,
}

/// A diagnosis with what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Stable name, e.g. `starved`.
    pub code: String,
    /// What was seen, with the figure, and what to do.
    pub text: String,
}

/// What the server used during one window.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSample {
    /// User CPU of the process tree in µs.
    pub cpu_user_us: u64,
    /// System CPU of the process tree in µs.
    pub cpu_system_us: u64,
    /// Total by the scheduler's nanosecond clock (`schedstat`) in µs, where it could be read.
    pub cpu_schedstat_us: Option<u64>,
    /// (user + system) ÷ ok responses, in µs.
    pub cpu_us_per_request: Option<f64>,
    /// The same by `schedstat`, when it differs by over 2 %.
    pub cpu_us_per_request_schedstat: Option<f64>,
    /// Distance of the first sample from the opening edge in µs.
    pub opening_offset_us: i64,
    /// Distance of the second sample from the closing edge in µs.
    pub closing_offset_us: i64,
    /// Processes alive at the closing edge.
    pub processes: u32,
    /// Threads alive at the closing edge.
    pub threads: u32,
    /// Resident memory at the closing edge in KiB, summed over processes.
    pub rss_kib: u64,
    /// Largest resident memory (`VmHWM`) in KiB, summed over processes.
    pub peak_rss_kib: u64,
    /// Anonymous part of `rss_kib`.
    pub anonymous_kib: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Share of the server CPUs that were busy (all processes), 0 to 1; `null` when unpinned.
    pub cpus_busy: Option<f64>,
    /// CPU time of the busiest single thread over the window, 0 to 1: what shows a single-threaded server at its limit.
    pub busiest_thread: Option<f64>,
    /// Connections the kernel dropped from full accept queues (`ListenOverflows`), machine-wide.
    pub listen_overflows: Option<u64>,
    /// Datagrams the kernel dropped at the server's UDP sockets during the window (`drops` of
    /// `/proc/net/udp`, proc_net(5)); `null` when it has none.
    #[serde(default)]
    pub udp_drops: Option<u64>,
}
