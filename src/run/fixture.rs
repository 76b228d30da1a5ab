//! Owns the small scenarios and measurements that the tests of this module share.

use std::collections::BTreeMap;

use crate::results::{
    Connections, Environment, Generator, Measurement, Protocol, Requests, SectionKind, ServerOrder,
    SocketMode, Transfer, WaitMode, Window,
};
use crate::scenario::{Cell, Expected, Pin, RunSettings, Scenario, Section, SectionLimit, ServerSpec};
use crate::time::Span;

/// A scenario with one section for each element of `sections` and cells `Cx1` for each of `cells`.
pub(crate) fn scenario(rounds: u32, servers: &[&str], sections: &[&[Protocol]], cells: &[u32]) -> Scenario {
    let cells: Vec<Cell> = cells.iter().map(|&connections| Cell::new(connections, 1)).collect();
    Scenario {
        path: "scenarios/small.toml".into(),
        text: "format = 1\ntitle = \"Small\"\n".into(),
        title: "Small".into(),
        report: "SMALL_RESULTS".into(),
        template: "http".into(),
        run: RunSettings {
            rounds,
            duration: Span::from_millis(100),
            warmup: Span::from_millis(20),
            drain: Span::from_millis(50),
            settle: Span::ZERO,
            timeout: Span::ZERO,
            connect_timeout: Span::from_secs(1),
            build_deadline: Span::from_secs(60),
            start_deadline: Span::from_secs(10),
            cell_grace: Span::from_secs(2),
            server_deadline: None,
            run_deadline: None,
            percentiles: vec![50.0, 99.0],
            unstable_above: 0.1,
            wait: WaitMode::Sleep,
            socket: SocketMode::PerConnection,
            pacing: false,
            order: ServerOrder::Rotate,
        },
        pin: Pin { servers: vec![], generator: vec![], workers: 1, generator_threads: 1 },
        expect: Expected { path: "/".into(), status: Some(200), body: Some(b"hi\n".to_vec()), length: None },
        servers: servers.iter().map(|name| server(name)).collect(),
        generators: vec![],
        probes: vec![],
        sections: sections
            .iter()
            .enumerate()
            .map(|(index, protocols)| Section {
                title: format!("Section {}", index + 1),
                kind: SectionKind::ClosedLoop,
                protocols: protocols.to_vec(),
                cells: cells.clone(),
                limit: SectionLimit::Duration(Span::from_millis(100)),
                warmup: Span::from_millis(20),
                socket: SocketMode::PerConnection,
                pacing: false,
                headers: vec![],
                runs: false,
            })
            .collect(),
        overrides: vec![],
    }
}

/// A server that speaks every protocol.
pub(crate) fn server(name: &str) -> ServerSpec {
    ServerSpec {
        name: name.into(),
        label: name.to_uppercase(),
        dir: "/".into(),
        requires: vec![],
        build: vec![],
        command: vec![name.into()],
        env: BTreeMap::new(),
        render: vec![],
        protocols: vec![Protocol::H1, Protocol::H1s],
        version: vec![],
        stop_signal: "TERM".into(),
        stop_grace: Span::from_secs(1),
        port: None,
        tls_port: None,
        note: None,
        gate: None,
        workers: None,
        variant: None,
        revision: None,
    }
}

/// A measurement of `ok` responses in a window of 100 ms.
pub(crate) fn measurement(ok: u64) -> Measurement {
    let requests = Requests { started: ok, ok, ..Requests::default() };
    Measurement {
        url: "http://localhost:1/".into(),
        protocol: Protocol::H1,
        negotiated: None,
        addresses: vec!["127.0.0.1:1".into()],
        threads: 1,
        connections: 1,
        concurrency: 1,
        keepalive: true,
        requests_per_connection: None,
        resumption: Default::default(),
        window: Window {
            opened_at_ns: Some(1_000_000_000),
            closed_at_ns: Some(1_100_000_000),
            length_s: Some(0.1),
            asked_s: Some(0.1),
            asked_requests: None,
            warmup_s: 0.02,
            warmup_requests_per_second: None,
        },
        interrupted: false,
        requests,
        requests_per_second: Some(ok as f64 / 0.1),
        transfer: Transfer::default(),
        latency_us: None,
        first_byte_us: None,
        in_flight: None,
        statuses: BTreeMap::new(),
        interim_responses: 0,
        errors: vec![],
        connection: Connections::default(),
        seconds: vec![],
        generator: Generator {
            engine: "io_uring".into(),
            features: BTreeMap::new(),
            wait: WaitMode::Sleep,
            waited: WaitMode::Sleep,
            tls: None,
            cpu_user_us_per_request: None,
            cpu_system_us_per_request: None,
            completions_per_wait: None,
            threads: vec![],
            peak_rss_kib: 0,
        },
        lifetime: requests,
        multiplexing: None,
        stalls: vec![],
        quic: None,
        warnings: vec![],
        sample: None,
    }
}

/// A machine of which nothing is known.
pub(crate) fn environment() -> Environment {
    Environment {
        host: "host".into(),
        kernel: "Linux".into(),
        cpu: "CPU".into(),
        logical_cpus: 2,
        governor: None,
        memory_kib: 1,
        commit: None,
        ci_run: None,
        load_at_start: None,
        findings: vec![],
    }
}
