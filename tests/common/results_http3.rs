//! Owns the results of a run over HTTP/3 in which everything happened that HTTP/3 adds.

use bench::results::*;

use super::build::{
    cell, counts, empty, handshake, idle, lost_round, measured, section, server, short_connections,
    summarised,
};

/// A run over HTTP/3 with all that it adds: starvation, drops, a server that waits for acknowledgements,
/// one that does not answer over UDP, one that is not there, resumption of every degree.
pub(crate) fn odd() -> Results {
    let mut results = Results {
        title: "HTTP/3 server comparison".into(),
        report: "HTTP3_RESULTS".into(),
        template: "http3".into(),
        ..empty()
    };
    results.servers = [
        ("rust-quinn", "Rust", "quinn 0.11.9"),
        ("go-quic", "Go", "quic-go v0.59.0"),
        ("caddy", "Caddy", "v2.10.2"),
        ("python-aioquic", "Python", "aioquic 1.3.0"),
        ("nginx", "nginx", ""),
    ]
    .map(|(name, label, version)| ServerRecord {
        protocols: vec![Protocol::H1s, Protocol::H2, Protocol::H3],
        ..server(name, label, version)
    })
    .to_vec();
    results.servers[4].version = None;
    results.servers[4].unavailable =
        Some(Unavailable { status: CellStatus::Absent, reason: NO_MODULE.into(), log_tail: vec![] });
    results.sections = vec![
        section("HTTP/3 over QUIC", SectionKind::ClosedLoop, with_nginx(odd_h3())),
        section("Same host and port: HTTP/3 against HTTP/2", SectionKind::Ratio, odd_ratio()),
        section("Connection set-up", SectionKind::Setup, odd_setup()),
        section("Handshakes: full, resumed, 0-RTT", SectionKind::Handshake, odd_handshakes()),
    ];
    summarised(results)
}

/// The cells of the first server again, absent.
fn with_nginx(mut cells: Vec<CellRecord>) -> Vec<CellRecord> {
    let first = cells[0].server.clone();
    let own: Vec<_> = cells.iter().filter(|cell| cell.server == first).map(CellRecord::key).collect();
    for key in own {
        let mut cell = cell("nginx", key.protocol, key.connections, key.concurrency);
        cell.rounds = vec![lost_round(1, CellStatus::Absent, NO_MODULE, &[])];
        cells.push(cell);
    }
    cells
}

/// The health of a cell, bent, and the datagrams its server lost.
pub(crate) fn lossy(
    mut cell: CellRecord,
    server_drops: Option<u64>,
    bend: impl Fn(&mut QuicHealth),
) -> CellRecord {
    for round in &mut cell.rounds {
        round.server.as_mut().unwrap().udp_drops = server_drops;
        bend(round.measurement.as_mut().unwrap().quic.as_mut().unwrap());
    }
    cell
}

fn odd_h3() -> Vec<CellRecord> {
    let of = |server: &str, c, m| cell(server, Protocol::H3, c, m);
    let refused = |c, m| {
        let mut cell = of("caddy", c, m);
        cell.rounds = (1..=3)
            .map(|n| {
                lost_round(
                    n,
                    CellStatus::WrongProtocol,
                    "no HTTP/3 over QUIC: asked for h3 by ALPN, the server has no protocol in common",
                    &["{\"level\":\"info\",\"msg\":\"enabling HTTP/2\"}"],
                )
            })
            .collect();
        cell
    };
    vec![
        lossy(measured(of("rust-quinn", 1, 1), 20_000.0, 49.0), Some(0), |_| {}),
        // Starved, with hundreds of streams in few datagrams.
        lossy(measured(of("rust-quinn", 1, 100), 180_000.0, 400.0), Some(0), |h| {
            (h.send_calls, h.receive_calls) = (h.datagrams_sent / 12, h.datagrams_received / 20);
            (h.bytes_sent, h.bytes_received) = (h.datagrams_sent * 1150, h.datagrams_received * 1180);
        }),
        lossy(measured(of("rust-quinn", 50, 10), 150_000.0, 3_300.0), Some(0), |_| {}),
        // Each request costs an acknowledgement that is held back.
        idle(measured(of("go-quic", 1, 1), 38.2, 26_150.0)),
        measured(of("go-quic", 1, 100), 90_000.0, 1_100.0),
        // The server's buffer ran over, and so did the generator's.
        lossy(measured(of("go-quic", 50, 10), 80_000.0, 6_200.0), Some(412), |h| {
            (h.receive_drops, h.packets_lost, h.probe_timeouts) = (7, 2_400, 31);
            (h.spurious_losses, h.retries) = (12, 50);
        }),
        refused(1, 1),
        refused(1, 100),
        refused(50, 10),
        measured(of("python-aioquic", 1, 1), 900.0, 1_090.0),
        // One in five hundred lost, and nobody knows where.
        lossy(measured(of("python-aioquic", 1, 100), 1_500.0, 66_000.0), None, |h| h.packets_lost = 60),
        {
            let mut cell = of("python-aioquic", 50, 10);
            cell.rounds = (1..=3)
                .map(|n| {
                    lost_round(
                        n,
                        CellStatus::Failed,
                        "the server did not start: not ready within 30s: no HTTP/3: nothing answers QUIC on the UDP \
                         port of https://localhost:20443/ (ECONNREFUSED)",
                        &["OSError: [Errno 98] address in use"],
                    )
                })
                .collect();
            cell
        },
    ]
}

fn odd_ratio() -> Vec<CellRecord> {
    let of = |server: &str, protocol, c| cell(server, protocol, c, 1);
    let (h3, h2) = (Protocol::H3, Protocol::H2);
    vec![
        measured(of("rust-quinn", h3, 1), 20_000.0, 49.0),
        measured(of("rust-quinn", h3, 50), 90_000.0, 545.0),
        measured(of("rust-quinn", h2, 1), 16_000.0, 61.0),
        measured(of("rust-quinn", h2, 50), 91_000.0, 540.0),
        idle(measured(of("go-quic", h3, 1), 38.2, 26_150.0)),
        lossy(measured(of("go-quic", h3, 50), 60_000.0, 825.0), Some(9), |_| {}),
        measured(of("go-quic", h2, 1), 14_000.0, 70.0),
        measured(of("go-quic", h2, 50), 75_000.0, 660.0),
    ]
}

fn odd_setup() -> Vec<CellRecord> {
    let rates = [("rust-quinn", [4_000.0, 6_800.0, 7_500.0]), ("go-quic", [2_500.0, 5_000.0, 6_100.0])];
    let protocols = [Protocol::H3, Protocol::H2, Protocol::H1s];
    let cells = rates.into_iter().flat_map(|(name, rates)| {
        protocols.into_iter().zip(rates).map(move |(protocol, rate)| {
            let mut cell = measured(cell(name, protocol, 20, 1), rate, 19.8 / rate * 1e6);
            for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
                m.keepalive = false;
                (m.window.asked_requests, m.window.asked_s) = (Some(20_000), None);
                m.connection.handshakes = Some(Handshakes { full: 20_000, ..Handshakes::default() });
            }
            cell
        })
    });
    cells.collect()
}

fn odd_handshakes() -> Vec<CellRecord> {
    use Resumption::{Off, Ticket, ZeroRtt};
    let of = |server: &str, protocol, resumption, setup_us, handshakes| {
        short_connections(handshake(server, protocol, resumption), setup_us, handshakes)
    };
    let (h3, h2) = (Protocol::H3, Protocol::H2);
    let all_full = counts(1_000, 0, 0, 0);
    let mut absent = handshake("caddy", h3, ZeroRtt);
    absent.rounds = vec![lost_round(1, CellStatus::Absent, "Caddy does not offer h3", &[])];
    vec![
        of("rust-quinn", h3, Off, 900.0, all_full),
        of("rust-quinn", h3, Ticket, 520.0, counts(0, 1_000, 0, 0)),
        of("rust-quinn", h3, ZeroRtt, 530.0, counts(0, 1_000, 1_000, 0)),
        of("rust-quinn", h2, Off, 1_000.0, all_full),
        of("rust-quinn", h2, Ticket, 640.0, counts(0, 1_000, 0, 0)),
        of("go-quic", h3, Off, 1_100.0, all_full),
        // A few of its tickets had run out.
        of("go-quic", h3, Ticket, 700.0, counts(31, 969, 0, 0)),
        // It takes early data, but not always.
        of("go-quic", h3, ZeroRtt, 710.0, counts(1, 999, 900, 99)),
        of("go-quic", h2, Off, 1_300.0, all_full),
        of("go-quic", h2, Ticket, 800.0, counts(0, 1_000, 0, 0)),
        of("python-aioquic", h3, Off, 4_000.0, all_full),
        // It gives no tickets at all, and so takes no early data.
        of("python-aioquic", h3, Ticket, 4_000.0, all_full),
        of("python-aioquic", h3, ZeroRtt, 4_000.0, counts(1_000, 0, 0, 1_000)),
        absent,
    ]
}

const NO_MODULE: &str = "`nginx` is built without http_v3_module; install one that has it";
