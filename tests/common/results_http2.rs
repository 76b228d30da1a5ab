//! Owns the results of a run over HTTP/2 in which everything happened that HTTP/2 adds.

use bench::results::*;

use super::build::{self, cell, empty, lost_round, measured, section, server, summarised, with_rounds};

/// A run over HTTP/2 with all that it adds: limits, GOAWAYs, ratios of every kind, a server of the wrong
/// protocol, one that has half of a ratio.
pub(crate) fn odd() -> Results {
    let mut results = Results {
        title: "HTTP/2 server comparison".into(),
        report: "HTTP2_RESULTS".into(),
        template: "http2".into(),
        ..empty()
    };
    let all = vec![Protocol::H1, Protocol::H1s, Protocol::H2c, Protocol::H2];
    results.servers = [
        ("rust-hyper", "Rust", "hyper 1.12.0"),
        ("go", "Go", "go1.26"),
        ("node", "Node", "v22"),
        ("h2o", "H2O", "2.2.5"),
    ]
    .map(|(name, label, version)| ServerRecord { protocols: all.clone(), ..server(name, label, version) })
    .to_vec();
    results.servers[3].protocols = vec![Protocol::H2c, Protocol::H2, Protocol::H1s];
    results.sections = vec![
        section("HTTP/2 in cleartext", SectionKind::ClosedLoop, odd_h2c()),
        section("In cleartext: HTTP/2 against HTTP/1.1", SectionKind::Ratio, odd_ratio()),
        section("HTTP/2 over TLS", SectionKind::ClosedLoop, odd_h2()),
        section("Connection set-up", SectionKind::Setup, odd_h2_setup()),
    ];
    summarised(results)
}

/// The measurements of a cell, bent.
fn bent(mut cell: CellRecord, bend: impl Fn(&mut Measurement)) -> CellRecord {
    cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()).for_each(bend);
    cell
}

/// A cell whose server allows so many streams on a connection.
pub(crate) fn allowing(cell: CellRecord, least: u32, most: u32) -> CellRecord {
    bent(cell, |m| {
        m.multiplexing =
            Some(Multiplexing { effective_least: least, effective_most: most, goaways: 0, refused: 0 });
    })
}

fn odd_h2c() -> Vec<CellRecord> {
    let of = |server: &str, c, m| cell(server, Protocol::H2c, c, m);
    vec![
        measured(of("rust-hyper", 1, 1), 14_000.0, 70.0),
        measured(of("rust-hyper", 1, 100), 180_000.0, 550.0),
        measured(of("rust-hyper", 10, 10), 175_000.0, 565.0),
        measured(of("go", 1, 1), 11_000.0, 90.0),
        // Eight streams are far from a hundred, and nine of ten nearly all.
        allowing(measured(of("go", 1, 100), 190_000.0, 42.0), 8, 8),
        allowing(measured(of("go", 10, 10), 176_000.0, 520.0), 9, 10),
        // Connections that end after a thousand requests.
        bent(measured(of("node", 1, 1), 9_000.0, 108.0), |m| {
            m.multiplexing = m.multiplexing.map(|mux| Multiplexing { goaways: 90, ..mux });
            m.connection.reopened = 90;
        }),
        bent(measured(of("node", 1, 100), 60_000.0, 1_650.0), |m| {
            m.multiplexing = m.multiplexing.map(|mux| Multiplexing { goaways: 600, refused: 12, ..mux });
            m.connection.reopened = 601;
            m.requests.replayed = 1_234;
            m.requests.interrupted = 40;
            m.requests.failed = 40;
            m.requests.started += 40;
            m.errors = vec![ErrorCount {
                phase: Phase::Interrupted,
                kind: "cancel".into(),
                count: 40,
                requests: 40,
                example: Some("RST_STREAM(CANCEL)".into()),
            }];
        }),
        bent(measured(of("node", 10, 10), 61_000.0, 1_630.0), |m| {
            m.stalls = vec![Stall {
                in_flight: 10,
                idle_us: 2_300_000,
                state: "connection window 0; stream 9: half-closed (local), window 65535 | <b>".into(),
            }];
        }),
        measured(of("h2o", 1, 1), 14_050.0, 70.0),
        measured(of("h2o", 1, 100), 170_000.0, 580.0),
        measured(of("h2o", 10, 10), 150_000.0, 660.0),
    ]
}

fn odd_ratio() -> Vec<CellRecord> {
    let of = |server: &str, protocol, c| cell(server, protocol, c, 1);
    let (h2c, h1) = (Protocol::H2c, Protocol::H1);
    let lacks = |protocol, c| {
        let mut cell = of("h2o", protocol, c);
        cell.rounds =
            vec![lost_round(1, CellStatus::Absent, "H2O does not offer h1, and a ratio needs both", &[])];
        cell
    };
    let mut other = of("node", h2c, 10);
    other.rounds = (1..=3)
        .map(|n| {
            lost_round(
                n,
                CellStatus::WrongProtocol,
                "no HTTP/2 in cleartext: the server answered HTTP/1.1",
                &[],
            )
        })
        .collect();
    vec![
        measured(of("rust-hyper", h2c, 1), 14_000.0, 70.0),
        measured(of("rust-hyper", h2c, 10), 88_000.0, 112.0),
        measured(of("rust-hyper", h1, 1), 15_000.0, 65.0),
        measured(of("rust-hyper", h1, 10), 88_500.0, 111.0),
        // Starved above the line, unstable below it.
        measured(of("go", h2c, 1), 1_000.0, 60.0),
        measured(of("go", h2c, 10), 60_000.0, 165.0),
        measured(of("go", h1, 1), 12_000.0, 81.0),
        with_rounds(of("go", h1, 10), &[80_000.0, 60_000.0, 82_000.0], 120.0),
        measured(of("node", h2c, 1), 9_000.0, 108.0),
        other,
        measured(of("node", h1, 1), 8_000.0, 122.0),
        measured(of("node", h1, 10), 40_000.0, 245.0),
        lacks(h2c, 1),
        lacks(h2c, 10),
        lacks(h1, 1),
        lacks(h1, 10),
    ]
}

fn odd_h2() -> Vec<CellRecord> {
    let of = |server: &str, m| cell(server, Protocol::H2, 1, m);
    let fallen_back = |m| {
        bent(measured(of("go", m), 20_000.0, 45.0), |m| {
            let negotiated = m.negotiated.as_mut().unwrap();
            (negotiated.http, negotiated.alpn) = ("HTTP/1.1".into(), Some("http/1.1".into()));
        })
    };
    let refused = |m| {
        let mut cell = of("node", m);
        cell.rounds =
            (1..=3).map(|n| lost_round(n, CellStatus::Failed, "no connection came up", &[])).collect();
        for round in &mut cell.rounds {
            let mut m = build::measurement(&of("node", m), 0.0, 1.0);
            (m.negotiated, m.multiplexing, m.latency_us, m.requests_per_second) = (None, None, None, None);
            m.requests = Requests::default();
            m.errors = vec![ErrorCount {
                phase: Phase::Tls,
                kind: "wrong-protocol".into(),
                count: 8,
                requests: 0,
                example: Some("asked for h2 by ALPN, the server chose http/1.1".into()),
            }];
            round.measurement = Some(m);
        }
        cell
    };
    vec![
        measured(of("rust-hyper", 1), 11_000.0, 89.0),
        measured(of("rust-hyper", 100), 130_000.0, 765.0),
        fallen_back(1),
        fallen_back(100),
        refused(1),
        refused(100),
        allowing(measured(of("h2o", 1), 10_000.0, 98.0), 1, 1),
        allowing(measured(of("h2o", 100), 120_000.0, 815.0), 1, 100),
    ]
}

fn odd_h2_setup() -> Vec<CellRecord> {
    let rates = [("rust-hyper", 7_000.0, 7_700.0), ("go", 5_000.0, 6_100.0)];
    let cells = rates.into_iter().flat_map(|(name, h2, h1s)| {
        [(Protocol::H2, h2), (Protocol::H1s, h1s)].map(|(protocol, rate)| {
            bent(measured(cell(name, protocol, 20, 1), rate, 19.8 / rate * 1e6), |m| {
                m.keepalive = false;
                (m.window.asked_requests, m.window.asked_s) = (Some(20_000), None);
            })
        })
    });
    cells.collect()
}
