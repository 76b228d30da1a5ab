//! Owns the names of all keys, table by table. The parser refuses what is not listed here, and a
//! test holds `docs/scenarios.md` to it.

/// The keys of one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableKeys {
    /// The table as people write it, e.g. `[run]`.
    pub table: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
}

/// Keys above the first table.
pub const TOP: TableKeys = TableKeys {
    table: "the top level",
    keys: &[
        "format",
        "title",
        "report",
        "template",
        "run",
        "pin",
        "expect",
        "server",
        "generator",
        "probe",
        "section",
    ],
};

/// Rounds, times, deadlines.
pub const RUN: TableKeys = TableKeys {
    table: "[run]",
    keys: &[
        "rounds",
        "duration",
        "warmup",
        "drain",
        "settle",
        "timeout",
        "connect_timeout",
        "build_deadline",
        "start_deadline",
        "cell_grace",
        "server_deadline",
        "run_deadline",
        "percentiles",
        "unstable_above",
        "wait",
        "socket",
        "pacing",
        "order",
    ],
};

/// Who runs where.
pub const PIN: TableKeys =
    TableKeys { table: "[pin]", keys: &["servers", "generator", "workers", "generator_threads", "overlap"] };

/// What every response must be.
pub const EXPECT: TableKeys = TableKeys { table: "[expect]", keys: &["path", "status", "body", "length"] };

/// A server in a scenario.
pub const SERVER: TableKeys = TableKeys {
    table: "[[server]]",
    keys: &[
        "use",
        "dir",
        "variant",
        "name",
        "label",
        "requires",
        "build",
        "command",
        "env",
        "render",
        "protocols",
        "version",
        "stop",
        "port",
        "tls_port",
        "note",
        "workers",
        "gate",
    ],
};

/// A server in a `server.toml` of its own: the same, without what says where it stands and how the
/// scenario varies it.
pub const SERVER_FILE: TableKeys = TableKeys { table: "server.toml", keys: SERVER.keys.split_at(3).1 };

/// What a variant of a server has otherwise than the server.
pub const VARIANT: TableKeys = TableKeys {
    table: "[[server.variant]]",
    keys: &[
        "label",
        "name",
        "requires",
        "build",
        "command",
        "env",
        "render",
        "protocols",
        "version",
        "note",
        "workers",
    ],
};

/// How a server is stopped.
pub const STOP: TableKeys = TableKeys { table: "stop", keys: &["signal", "grace"] };

/// What a server must pass before it may be best.
pub const GATE: TableKeys =
    TableKeys { table: "gate", keys: &["command", "requires", "protocol", "deadline", "env"] };

/// A load generator to compare with others.
pub const GENERATOR: TableKeys = TableKeys {
    table: "[[generator]]",
    keys: &[
        "kind",
        "name",
        "label",
        "program",
        "args",
        "command",
        "output",
        "requires",
        "protocols",
        "version",
    ],
};

/// Where the figures of a generator stand in its output.
pub const OUTPUT: TableKeys = TableKeys {
    table: "output",
    keys: &[
        "ok",
        "failed",
        "requests_per_second",
        "latency_mean",
        "latency_max",
        "p50",
        "p75",
        "p90",
        "p95",
        "p99",
        "p99_9",
        "unit",
    ],
};

/// A command that is run for figures of its own.
pub const PROBE: TableKeys = TableKeys {
    table: "[[probe]]",
    keys: &["name", "label", "command", "figures", "requires", "version", "deadline", "env"],
};

/// One figure of a probe.
pub const FIGURES: TableKeys = TableKeys { table: "figures", keys: &["name", "unit", "pattern"] };

/// One table of the report.
pub const SECTION: TableKeys = TableKeys {
    table: "[[section]]",
    keys: &[
        "title",
        "kind",
        "protocol",
        "protocols",
        "cells",
        "duration",
        "requests",
        "connections",
        "concurrency",
        "resumption",
        "warmup",
        "socket",
        "pacing",
        "headers",
        "runs",
    ],
};

/// Every table a scenario can have, in the order of the reference.
pub const TABLES: &[TableKeys] =
    &[TOP, RUN, PIN, EXPECT, SERVER, VARIANT, STOP, GATE, GENERATOR, OUTPUT, PROBE, FIGURES, SECTION];
