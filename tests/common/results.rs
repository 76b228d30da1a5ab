//! Owns results built by hand for tests: plausible figures, one place to bend each of them.

#![allow(dead_code, reason = "each test file uses its own part of the builders")]
#![allow(unreachable_pub, reason = "a module of several test crates, each of which is its whole world")]

use std::collections::BTreeMap;

use bench::results::*;
use hdrhistogram::Histogram;

/// A results file without servers and sections, on a machine that never existed.
pub fn empty() -> Results {
    Results {
        format: version::FORMAT.into(),
        tool: "bench 0.1.0".into(),
        title: "HTTP server comparison".into(),
        report: "HTTP_RESULTS".into(),
        template: "http".into(),
        scenario: ScenarioRecord { path: "scenarios/http.toml".into(), text: "format = 1\n".into() },
        overrides: vec![],
        sessions: vec![session("2026-11-30T12:00:00Z", Some("2026-11-30T12:20:00Z"))],
        settings: settings(),
        servers: vec![],
        generators: vec![],
        probes: vec![],
        sections: vec![],
        complete: true,
    }
}

pub fn settings() -> Settings {
    Settings {
        rounds: 3,
        duration_s: 10.0,
        warmup_s: 2.0,
        drain_s: 1.0,
        settle_s: 0.2,
        server_cpus: vec![0, 1],
        generator_cpus: vec![2, 3],
        workers: 2,
        generator_threads: 2,
        wait: WaitMode::Auto,
        expect: "status 200, body of 14 bytes".into(),
        certificate: "self-signed EC P-256, CN=localhost".into(),
        percentiles: vec![50.0, 99.0],
        unstable_above: 0.05,
        order: Default::default(),
    }
}

pub fn session(started: &str, finished: Option<&str>) -> Session {
    Session {
        command: ["bench", "run", "scenarios/http.toml"].map(String::from).to_vec(),
        started_at: started.into(),
        finished_at: finished.map(String::from),
        environment: Environment {
            host: "example".into(),
            kernel: "Linux 6.12.0 x86_64".into(),
            cpu: "Example CPU 9000".into(),
            logical_cpus: 4,
            governor: None,
            memory_kib: 16_384_000,
            commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
            ci_run: None,
            load_at_start: Some(0.42),
            findings: vec![],
        },
        order: vec![],
    }
}

pub fn section(title: &str, kind: SectionKind, cells: Vec<CellRecord>) -> SectionRecord {
    SectionRecord { title: title.into(), kind, cells, headers: vec![], runs: false }
}

pub fn server(name: &str, label: &str, version: &str) -> ServerRecord {
    ServerRecord {
        name: name.into(),
        label: label.into(),
        version: Some(version.into()),
        protocols: vec![Protocol::H1, Protocol::H1s],
        command: vec![name.into(), "--port".into(), "{port}".into()],
        unavailable: None,
        build_s: None,
        starts: vec![],
        note: None,
        variant: None,
        workers: None,
        gate: None,
        revision: None,
    }
}

/// A cell whose rounds are yet to be given.
pub fn cell(server: &str, protocol: Protocol, connections: u32, concurrency: u32) -> CellRecord {
    let mut cell = CellRecord {
        server: server.into(),
        protocol,
        connections,
        concurrency,
        resumption: Default::default(),
        requests_per_connection: None,
        generator: None,
        rounds: vec![],
        summary: empty_summary(),
    };
    cell.summary = stats::summarise(&cell, SectionKind::ClosedLoop, &settings());
    cell
}

fn empty_summary() -> Summary {
    Summary {
        verdict: Verdict::Interrupted,
        verdicts: vec![],
        reasons: vec![],
        bound: None,
        bound_reason: None,
        rounds_measured: 0,
        requests_per_second: None,
        spread: None,
        latency_mean_us: None,
        latency_us: BTreeMap::new(),
        latency_spread: BTreeMap::new(),
        max_is_lower_bound: false,
        latency_max_us: None,
        in_flight: None,
        effective_concurrency: None,
        server_cpu_us_per_request: None,
        server_cpu_spread: None,
        server_peak_rss_kib: None,
        server_busy: None,
        server_busiest_thread: None,
        generator_busy: None,
        generator_cpu_us_per_request: None,
        handshake: None,
    }
}

/// Three rounds of the given rate and mean latency, 1 % apart, the server at its limit.
pub fn measured(cell: CellRecord, requests_per_second: f64, mean_us: f64) -> CellRecord {
    let rates = [1.0, 0.99, 1.01].map(|f| f * requests_per_second);
    with_rounds(cell, &rates, mean_us)
}

pub fn with_rounds(mut cell: CellRecord, rates: &[f64], mean_us: f64) -> CellRecord {
    cell.rounds =
        (1..).zip(rates).map(|(number, rate)| round(number, measurement(&cell, *rate, mean_us))).collect();
    cell
}

/// Summaries of every cell, as a run would leave them.
pub fn summarised(mut results: Results) -> Results {
    for section in &mut results.sections {
        for cell in &mut section.cells {
            cell.summary = stats::summarise(cell, section.kind, &results.settings);
        }
    }
    results
}

pub fn round(number: u32, measurement: Measurement) -> RoundRecord {
    let ok = measurement.requests.ok.max(1) as f64;
    RoundRecord {
        round: number,
        session: 0,
        status: CellStatus::Measured,
        reason: None,
        log_tail: vec![],
        server: Some(server_sample(ok)),
        external: None,
        answer: None,
        measurement: Some(measurement),
    }
}

pub fn lost_round(number: u32, status: CellStatus, reason: &str, log: &[&str]) -> RoundRecord {
    RoundRecord {
        round: number,
        session: 0,
        status,
        reason: Some(reason.into()),
        log_tail: log.iter().map(|line| (*line).into()).collect(),
        measurement: None,
        server: None,
        external: None,
        answer: None,
    }
}

/// Two CPUs of a ten-second window, nearly all of them used.
pub fn server_sample(ok: f64) -> ServerSample {
    let (user, system) = (7_000_000u64, 12_200_000u64);
    ServerSample {
        cpu_user_us: user,
        cpu_system_us: system,
        cpu_schedstat_us: Some(19_150_000),
        cpu_us_per_request: Some((user + system) as f64 / ok),
        cpu_us_per_request_schedstat: None,
        opening_offset_us: -12,
        closing_offset_us: 31,
        processes: 1,
        threads: 3,
        rss_kib: 9_000,
        peak_rss_kib: 9_216,
        anonymous_kib: 4_000,
        voluntary_switches: 1_000,
        involuntary_switches: 200,
        cpus_busy: Some(0.96),
        busiest_thread: Some(0.97),
        listen_overflows: Some(0),
        udp_drops: None,
    }
}

/// Ten seconds at a rate and mean latency, consistent in every count.
pub fn measurement(cell: &CellRecord, requests_per_second: f64, mean_us: f64) -> Measurement {
    let length = 10.0;
    let ok = (requests_per_second * length).round() as u64;
    let in_flight = u64::from(cell.connections) * u64::from(cell.concurrency);
    let protocol = cell.protocol;
    let tls = protocol.is_tls();
    let latency = latencies(ok, mean_us);
    let requests = Requests {
        started: ok + in_flight,
        carried_in: in_flight,
        ok,
        failed: 0,
        unfinished: in_flight,
        oldest_unfinished_us: Some(mean_us as u64),
        ..Requests::default()
    };
    Measurement {
        url: format!("http{}://localhost:20080/", if tls { "s" } else { "" }),
        protocol: cell.protocol,
        negotiated: Some(Negotiated {
            http: protocol.version().into(),
            alpn: protocol.alpn().map(String::from),
            tls: tls.then(|| "TLSv1.3".into()),
            cipher: tls.then(|| "TLS13_AES_128_GCM_SHA256".into()),
            group: tls.then(|| "X25519".into()),
        }),
        addresses: vec!["127.0.0.1:20080".into()],
        threads: 2,
        connections: cell.connections,
        concurrency: cell.concurrency,
        keepalive: true,
        requests_per_connection: None,
        resumption: Default::default(),
        window: Window {
            opened_at_ns: Some(1_000_000_000),
            closed_at_ns: Some(11_000_000_000),
            length_s: Some(length),
            asked_s: Some(length),
            asked_requests: None,
            warmup_s: 2.0,
            warmup_requests_per_second: Some(requests_per_second * 0.98),
        },
        interrupted: false,
        requests,
        requests_per_second: Some(ok as f64 / length),
        transfer: Transfer { received_bytes: ok * 120, sent_bytes: ok * 40, body_bytes: ok * 14 },
        first_byte_us: latency.clone(),
        in_flight: latency.as_ref().and_then(|l| stats::little_law(ok as f64 / length, l.mean)),
        latency_us: latency,
        statuses: [("200".to_owned(), ok)].into(),
        interim_responses: 0,
        errors: vec![],
        connection: Connections {
            attempted: u64::from(cell.connections),
            opened: u64::from(cell.connections),
            peak: u64::from(cell.connections),
            setup_us: latencies(u64::from(cell.connections), 100.0),
            ..Connections::default()
        },
        seconds: vec![Second { ok: ok / 10, failed: 0, p50_us: Some(mean_us), p99_us: Some(mean_us) }; 10],
        generator: Generator {
            engine: "io_uring".into(),
            features: [("DEFER_TASKRUN".to_owned(), true), ("RECV_BUNDLE".to_owned(), false)].into(),
            wait: WaitMode::Auto,
            waited: if in_flight == 1 { WaitMode::Poll } else { WaitMode::Sleep },
            tls: tls.then(|| "rustls 0.23, ring".into()),
            cpu_user_us_per_request: Some(1.5),
            cpu_system_us_per_request: Some(3.0),
            completions_per_wait: Some(4.0),
            threads: vec![
                GeneratorThread {
                    cpu: Some(2),
                    user_us: 1_500_000,
                    system_us: 3_000_000,
                    polling_us: 0,
                    busy: Some(0.45),
                };
                2
            ],
            peak_rss_kib: 6_000,
        },
        lifetime: requests,
        multiplexing: protocol.multiplexes().then_some(Multiplexing {
            effective_least: cell.concurrency,
            effective_most: cell.concurrency,
            goaways: 0,
            refused: 0,
        }),
        stalls: vec![],
        quic: protocol.is_quic().then(|| health(ok)),
        warnings: vec![],
        sample: None,
    }
}

/// A window over QUIC in which nothing was lost, with a datagram or two for each of `ok` responses.
fn health(ok: u64) -> QuicHealth {
    QuicHealth {
        datagrams_sent: ok * 2,
        send_calls: ok,
        datagrams_received: ok * 3 / 2,
        receive_calls: ok,
        bytes_sent: ok * 2 * 80,
        bytes_received: ok * 3 / 2 * 100,
        smoothed_rtt_us: Some(150.0),
        max_ack_delay_us: Some(25_000),
        max_payload: 1200,
        receive_buffer_bytes: Some(2 << 20),
        send_buffer_bytes: Some(2 << 20),
        ..QuicHealth::default()
    }
}

/// A cell of a section of kind `handshake`, two requests on each connection.
pub fn handshake(server: &str, protocol: Protocol, resumption: Resumption) -> CellRecord {
    CellRecord { resumption, requests_per_connection: Some(2), ..cell(server, protocol, 1, 1) }
}

/// Handshakes of each kind.
pub fn counts(full: u64, resumed: u64, early_accepted: u64, early_rejected: u64) -> Handshakes {
    Handshakes { full, resumed, early_accepted, early_rejected }
}

/// A cell of a section of kind `handshake`: a thousand short connections, one at a time, established in
/// so many µs each, with handshakes of these kinds in each round.
pub fn short_connections(mut cell: CellRecord, setup_us: f64, handshakes: Handshakes) -> CellRecord {
    let requests = cell.requests_per_connection.unwrap_or(1);
    let all = handshakes.full + handshakes.resumed;
    let rate = all as f64 * f64::from(requests) / 10.0;
    cell = measured(cell, rate, 60.0);
    for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
        m.keepalive = requests > 1;
        m.requests_per_connection = Some(requests);
        m.resumption = cell.resumption;
        (m.window.asked_requests, m.window.asked_s) = (Some(all * u64::from(requests)), None);
        m.connection.setup_us = latencies(all, setup_us);
        // An answer in the first flight is there before the handshake is complete.
        let early = handshakes.early_accepted * 2 > all;
        m.connection.first_response_us = latencies(all, setup_us * if early { 0.6 } else { 1.3 });
        m.connection.handshakes = Some(handshakes);
    }
    cell
}

/// Neither side of a cell busy.
pub fn idle(mut cell: CellRecord) -> CellRecord {
    for round in &mut cell.rounds {
        round.measurement.as_mut().unwrap().generator.threads.iter_mut().for_each(|t| t.busy = Some(0.02));
        let sample = round.server.as_mut().unwrap();
        (sample.cpu_user_us, sample.cpu_system_us) = (90_000, 160_000);
        sample.cpu_us_per_request = Some(640.0);
        (sample.cpus_busy, sample.busiest_thread) = (Some(0.03), Some(0.02));
    }
    cell
}

/// A distribution of `count` samples with exactly this mean, up to the histogram's resolution: most a
/// little below it, one in eleven a little above, one in a hundred far above.
pub fn latencies(count: u64, mean_us: f64) -> Option<Latency> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    let far = count / 100;
    let above = count * 9 / 100;
    for (n, factor) in [(far, 3.7), (above, 1.2), (count - far - above, 0.95)] {
        histogram.record_n((mean_us * factor * 1e3) as u64, n).unwrap();
    }
    histogram::latency(&histogram)
}
