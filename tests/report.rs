//! Owns the tests of reports: a whole one with every oddity as a snapshot, the schema, the command,
//! and what must hold for any results.

#[path = "common/results.rs"]
mod build;
#[path = "common/results_generators.rs"]
mod generators;
#[path = "common/results_http2.rs"]
mod http2;
#[path = "common/results_http3.rs"]
mod http3;

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use bench::report::marks::{Candidate, Figure, Mark, SetupTime, marks, marks_of, may_win, winners};
use bench::report::{markdown, report, terminal};
use bench::results::store::{load, save, to_json};
use bench::results::*;
use build::{cell, empty, lost_round, measured, section, server, session, settings, summarised, with_rounds};
use predicates::prelude::*;
use proptest::prelude::*;

/// A run in which nearly everything went wrong somewhere: the report that shows every mark, notice
/// and note there is.
fn odd() -> Results {
    let mut results = empty();
    results.overrides = vec!["duration = 10s (scenario: 30s)".into(), "section: 1, 2, 3".into()];
    results.settings.percentiles = vec![50.0, 97.5, 99.0, 100.0];
    results.complete = false;
    results.servers = odd_servers();
    results.sessions = odd_sessions();
    results.sections = vec![odd_plaintext(), odd_tls(), odd_setup()];
    summarised(results)
}

fn odd_servers() -> Vec<ServerRecord> {
    let start = |round, killed, problem: Option<&str>| StartRecord {
        session: 0,
        round,
        section: 0,
        ready_ms: Some(11.0 + f64::from(round)),
        stop_ms: Some(4.0),
        killed,
        problem: problem.map(String::from),
    };
    let mut rust = server("rust-hyper", "Rust", "hyper 1.7.0");
    rust.build_s = Some(41.27);
    rust.starts = (1..=3).map(|round| start(round, false, None)).collect();
    rust.note = Some("tokio, multi-threaded".into());
    let mut node = server("node", "Node | <b>`js`</b>", "v22.23.3");
    node.starts = vec![
        start(1, true, None),
        start(2, true, Some("port 20080 still taken")),
        start(3, false, Some("port 20080 still taken")),
    ];
    let mut caddy = server("caddy", "Caddy", "");
    caddy.version = None;
    caddy.unavailable = Some(Unavailable {
        status: CellStatus::Absent,
        reason: "`caddy` is not on PATH; install it or leave the server out".into(),
        log_tail: vec![],
    });
    vec![rust, server("go", "Go", "go1.25.4 linux/amd64"), node, caddy]
}

fn odd_sessions() -> Vec<Session> {
    let mut first = session("2026-11-30T12:00:00Z", None);
    first.environment.findings = vec![
        Finding { check: "io-uring".into(), level: FindingLevel::Ok, found: "6.12".into(), remedy: None },
        Finding {
            check: "governor".into(),
            level: FindingLevel::Warn,
            found: "CPU 2 runs the `powersave` governor".into(),
            remedy: Some("set it to `performance`".into()),
        },
    ];
    let mut second = session("2026-11-30T14:00:00Z", Some("2026-11-30T14:11:00Z"));
    second.command.extend(["--resume".into(), "--out".into(), "my reports".into()]);
    second.environment.kernel = "Linux 6.12.1 x86_64".into();
    second.environment.load_at_start = Some(3.5);
    vec![first, second]
}

fn odd_plaintext() -> SectionRecord {
    let h1 = |server: &str, c| cell(server, Protocol::H1, c, 1);
    let mut cells = vec![
        measured(h1("rust-hyper", 1), 15_000.0, 65.0),
        // A tie with Go, within noise, that CPU per request decides.
        measured(h1("rust-hyper", 10), 90_000.0, 110.0),
        measured(h1("rust-hyper", 50), 130_000.0, 380.0),
        // Starved: 145 of 200.
        measured(h1("rust-hyper", 200), 145_000.0, 1_000.0),
        measured(h1("go", 1), 12_000.0, 81.0),
        measured(h1("go", 10), 90_500.0, 109.0),
        // Unstable.
        with_rounds(h1("go", 50), &[120_000.0, 80_000.0, 123_000.0], 400.0),
        measured(h1("go", 200), 120_000.0, 1_650.0),
    ];
    for round in &mut cells[5].rounds {
        round.server.as_mut().unwrap().cpu_us_per_request = Some(19.5);
    }
    cells.extend(odd_node());
    cells.extend([1, 10, 50, 200].map(|c| {
        let mut caddy = h1("caddy", c);
        caddy.rounds = vec![lost_round(
            1,
            CellStatus::Absent,
            "`caddy` is not on PATH; install it or leave the server out",
            &[],
        )];
        caddy
    }));
    section("Plaintext | HTTP/1.1", SectionKind::ClosedLoop, cells)
}

/// The cells of a server with a failed round, a stalled one, and a tainted one; the last failed.
fn odd_node() -> Vec<CellRecord> {
    let h1 = |c| cell("node", Protocol::H1, c, 1);
    let mut resumed = measured(h1(1), 9_000.0, 108.0);
    resumed.rounds[2].session = 1;
    let third = resumed.rounds[2].measurement.as_mut().unwrap();
    third.seconds[4].ok = 12;
    third.warnings = vec![
        Warning { code: "fd-limit".into(), text: "the limit of 1024 files was raised.".into() },
        Warning { code: "starved".into(), text: "said by a mark".into() },
    ];
    let mut partial = measured(h1(10), 40_000.0, 245.0);
    partial.rounds[1] = lost_round(2, CellStatus::Failed, "the server ended: exit status 1", &["boom"]);
    let mut tainted = measured(h1(50), 41_000.0, 1_200.0);
    for m in tainted.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
        m.requests.failed = 4_100;
        m.requests.started += 4_100;
        m.errors = vec![ErrorCount {
            phase: Phase::Read,
            kind: "ECONNRESET".into(),
            count: 4_100,
            requests: 4_100,
            example: None,
        }];
        m.connection.stalled = 2;
        m.connection.reopened = 1_234;
        m.requests.oldest_unfinished_us = Some(2_950_000);
    }
    let mut failed = h1(200);
    let log = ["FATAL ```heap``` out of memory", "<script>alert(1)</script>\u{1b}[0m", "  at main | line 3"];
    failed.rounds = (1..=3)
        .map(|n| lost_round(n, CellStatus::Failed, "the server ended: signal 6 (SIGABRT)", &log))
        .collect();
    vec![resumed, partial, tainted, failed]
}

fn odd_tls() -> SectionRecord {
    let h1s = |server: &str, c| cell(server, Protocol::H1s, c, 1);
    let mut bound = measured(h1s("rust-hyper", 50), 100_000.0, 495.0);
    for round in &mut bound.rounds {
        round.measurement.as_mut().unwrap().generator.threads[0].busy = Some(0.99);
        let sample = round.server.as_mut().unwrap();
        (sample.cpus_busy, sample.busiest_thread) = (Some(0.61), Some(0.7));
        sample.cpu_us_per_request_schedstat = Some(12.5);
        sample.listen_overflows = Some(3);
    }
    let mut wrong = measured(h1s("go", 1), 9_000.0, 100.0);
    for round in &mut wrong.rounds {
        round.measurement.as_mut().unwrap().negotiated.as_mut().unwrap().alpn = Some("h2".into());
    }
    let mut cut = h1s("go", 50);
    cut.rounds = vec![lost_round(1, CellStatus::Interrupted, "interrupted by Ctrl-C", &[])];
    let cells = vec![
        measured(h1s("rust-hyper", 1), 11_000.0, 89.0),
        bound,
        wrong,
        cut,
        h1s("node", 1),
        h1s("node", 50),
    ];
    section("TLS", SectionKind::ClosedLoop, cells)
}

fn odd_setup() -> SectionRecord {
    let mut cells = Vec::new();
    for (name, http, https) in [("rust-hyper", 26_000.0, 7_700.0), ("go", 20_000.0, 9_900.0)] {
        for (protocol, rate) in [(Protocol::H1, http), (Protocol::H1s, https)] {
            // Go's handshakes leave the generator waiting.
            let share = if name == "go" && protocol == Protocol::H1s { 0.66 } else { 0.99 };
            let mut cell = measured(cell(name, protocol, 20, 1), rate, 20.0 / rate * 1e6 * share);
            for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
                m.keepalive = false;
                m.window.asked_requests = Some(20_000);
                m.window.asked_s = None;
            }
            cells.push(cell);
        }
    }
    section("Connection set-up", SectionKind::Setup, cells)
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn a_report_with_every_oddity() {
    insta::assert_snapshot!(markdown(&odd()).unwrap());
}

#[test]
fn a_terminal_with_every_oddity() {
    insta::assert_snapshot!(terminal(&odd(), 80));
}

#[test]
fn a_report_of_http2_with_every_oddity() {
    insta::assert_snapshot!(markdown(&http2::odd()).unwrap());
}

#[test]
fn a_terminal_of_http2_with_every_oddity() {
    insta::assert_snapshot!(terminal(&http2::odd(), 100));
}

#[test]
fn a_report_of_http3_with_every_oddity() {
    insta::assert_snapshot!(markdown(&http3::odd()).unwrap());
}

#[test]
fn a_terminal_of_http3_with_every_oddity() {
    insta::assert_snapshot!(terminal(&http3::odd(), 120));
}

#[test]
fn a_report_of_generators_with_every_oddity() {
    insta::assert_snapshot!(markdown(&generators::odd()).unwrap());
}

#[test]
fn a_terminal_of_generators_with_every_oddity() {
    insta::assert_snapshot!(terminal(&generators::odd(), 100));
}

/// What `bench load` prints of one measurement where a server of HTTP/2 did what it may do.
#[test]
fn the_text_of_a_measurement_tells_what_became_of_its_streams() {
    let of = |protocol, m| build::measurement(&cell("a", protocol, 1, m), 9_000.0, 100.0);
    let plain = bench::report::measurement(&of(Protocol::H2c, 10));
    for word in ["Streams", "GOAWAY", "Replayed", "Interrupted", "Stalls"] {
        assert!(!plain.contains(word), "{word} in {plain}");
    }
    assert!(plain.starts_with("http://localhost:20080/  HTTP/2\n"), "{plain}");
    let old = bench::report::measurement(&Measurement {
        negotiated: Some(Negotiated { http: "HTTP/1.0".into(), ..of(Protocol::H1, 1).negotiated.unwrap() }),
        ..of(Protocol::H1, 1)
    });
    assert!(old.starts_with("http://localhost:20080/  HTTP/1.1, server speaks HTTP/1.0\n"), "{old}");

    let mut m = of(Protocol::H2, 100);
    m.multiplexing = Some(Multiplexing { effective_least: 1, effective_most: 8, goaways: 2, refused: 1 });
    (m.requests.replayed, m.requests.interrupted) = (1_200, 3);
    let stall =
        Stall { in_flight: 8, idle_us: 2_340_000, state: "stream 1: open,\n\u{1b}[31mwindow 0".into() };
    m.stalls = vec![stall; 7];
    let text = bench::report::measurement(&m);
    for line in [
        "https://localhost:20080/  HTTP/2 over TLS, TLSv1.3, TLS13_AES_128_GCM_SHA256, X25519",
        "Streams      the server allows 1 to 8 concurrent streams on a connection (M = 100 asked)",
        "Server       2 GOAWAY, 1 stream refused",
        "Replayed     1\u{202f}200 sent again, not processed by the server before",
        "Interrupted  3 of the failed: ended under way by the server",
        "Stalls",
        "  8 in flight, nothing received for 2.3 s: stream 1: open, window 0",
        "  and 2 more; --json has all",
    ] {
        assert!(text.lines().any(|l| l == line), "`{line}` is not in {text}");
    }
}

/// What `bench load` prints of one measurement over QUIC with short connections.
#[test]
fn the_text_of_a_measurement_tells_how_quic_fared() {
    let counts = build::counts(4, 996, 990, 6);
    let short = build::handshake("a", Protocol::H3, Resumption::ZeroRtt);
    let mut m = build::short_connections(short, 800.0, counts).rounds[0].measurement.clone().unwrap();
    let text = bench::report::measurement(&m);
    for line in [
        "https://localhost:20080/  HTTP/3, TLSv1.3, TLS13_AES_128_GCM_SHA256, X25519",
        "1 connection (one for each 2 requests) to 127.0.0.1:20080, 2 threads",
        "Handshakes   4 full, 996 resumed; early data accepted on 990, rejected on 6",
        "First answer p50 0.456 ms, p99 0.577 ms from the connect",
        "QUIC         a socket for each connection, payload up to 1200 bytes, round trip 0.150 ms",
        "Datagrams    4\u{202f}000 sent, 2.00 a call, 80 bytes each; 3\u{202f}000 received, 1.50 a call, 100 bytes each",
        "Path         nothing lost",
    ] {
        assert!(text.lines().any(|l| l == line), "`{line}` is not in {text}");
    }
    m.quic = Some(QuicHealth { packets_lost: 3, retries: 1, receive_drops: 2, ..QuicHealth::default() });
    let text = bench::report::measurement(&m);
    for line in [
        "Datagrams    0 sent, n/a a call, n/a bytes each; 0 received, n/a a call, n/a bytes each",
        "Path         3 packets lost, 1 Retry, 2 dropped at the receive buffer",
    ] {
        assert!(text.lines().any(|l| l == line), "`{line}` is not in {text}");
    }
    let kept = build::measurement(&cell("a", Protocol::H2, 1, 1), 9_000.0, 100.0);
    let text = bench::report::measurement(&kept);
    assert!(["QUIC", "Handshakes", "First answer"].iter().all(|word| !text.contains(word)), "{text}");
}

#[test]
fn lost_datagrams_and_other_handshakes_are_marked_and_may_win() {
    let settings = settings();
    let summary = |cell: CellRecord, kind| {
        let summary = stats::summarise(&cell, kind, &settings);
        CellRecord { summary, ..cell }
    };
    let h3 = || measured(cell("a", Protocol::H3, 1, 1), 10_000.0, 98.0);
    let closed = |drops, bend: &dyn Fn(&mut QuicHealth)| {
        summary(http3::lossy(h3(), drops, bend), SectionKind::ClosedLoop)
    };
    for (name, cell, marked) in [
        ("nothing", closed(Some(0), &|_| {}), false),
        ("unknown", closed(None, &|_| {}), false),
        ("one at the server", closed(Some(1), &|_| {}), true),
        ("one at the generator", closed(Some(0), &|h| h.receive_drops = 1), true),
        // A thousandth of the datagrams sent, and one more.
        ("few lost", closed(None, &|h| h.packets_lost = h.datagrams_sent / 1000), false),
        ("more lost", closed(None, &|h| h.packets_lost = h.datagrams_sent / 1000 + 1), true),
    ] {
        assert_eq!(marks(&cell, &settings), if marked { vec![Mark::Datagrams] } else { vec![] }, "{name}");
        for (figure, on_it) in [(Figure::Rate, true), (Figure::Latency(99.0), true), (Figure::Cpu, false)] {
            let carried = marks_of(figure, &cell, SectionKind::ClosedLoop, &settings);
            assert_eq!(!carried.is_empty(), marked && on_it, "{name}");
            assert!(may_win(figure, &cell, SectionKind::ClosedLoop, &settings), "{name}");
        }
    }
    let kind = SectionKind::Handshake;
    let of = |resumption, counts| {
        let short = build::handshake("a", Protocol::H3, resumption);
        summary(build::short_connections(short, 800.0, counts), kind)
    };
    let mixed = of(Resumption::Ticket, build::counts(1, 999, 0, 0));
    assert_eq!(marks(&mixed, &settings), [Mark::OtherHandshakes]);
    let p50 = Figure::Setup(SetupTime::P50);
    assert!(may_win(p50, &mixed, kind, &settings));
    assert_eq!(marks_of(p50, &mixed, kind, &settings), [Mark::OtherHandshakes]);
    assert!(marks_of(Figure::Rate, &mixed, kind, &settings).is_empty());
    let none = of(Resumption::Ticket, build::counts(1_000, 0, 0, 0));
    assert!(marks(&none, &settings).is_empty() && !may_win(p50, &none, kind, &settings));
}

#[test]
fn an_empty_run_is_a_report() {
    insta::assert_snapshot!(markdown(&empty()).unwrap());
    let http2 = markdown(&Results { template: "http2".into(), ..empty() }).unwrap();
    assert!(http2.contains("**ratio**") && !http2.contains("\n\n\n"), "{http2}");
    let http3 = markdown(&Results { template: "http3".into(), ..empty() }).unwrap();
    assert!(http3.contains("**0-RTT**") && !http3.contains("\n\n\n"), "{http3}");
    assert_eq!(terminal(&empty(), 80), "nothing was measured\n");
}

#[test]
fn the_fixture_of_this_format_shows_what_is_new_in_it() {
    // A format once released keeps its file; the earlier ones show what is older.
    let path = data(&format!("results-{}.json", version::FORMAT));
    let text = to_json(&http3::odd()).unwrap();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "run with UPDATE_FIXTURES=1 before a release");
}

#[test]
fn a_report_from_memory_and_from_its_file_are_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("X.json");
    save(&path, &odd()).unwrap();
    assert_eq!(markdown(&odd()).unwrap(), markdown(&load(&path).unwrap()).unwrap());
}

#[test]
fn an_unknown_template_is_named_with_the_known_ones() {
    let error = markdown(&Results { template: "htpp".into(), ..empty() }).unwrap_err().0;
    assert_eq!(error, "no report template `htpp`; there is http, http2, http3, encodings, generators");
    // What a scenario may name is what there is: its own list says so before anything is measured.
    assert_eq!(bench::report::templates().collect::<Vec<_>>(), bench::scenario::TEMPLATES);
}

#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/results.schema.json");
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(&path, schema::json()).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    assert_eq!(committed, schema::json(), "write `bench report --schema` to docs/results.schema.json");
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(&schema::json()).unwrap()).unwrap()
}

#[test]
fn results_follow_the_schema_and_strangers_do_not() {
    let validator = validator();
    let planned = section("Empty", SectionKind::ClosedLoop, vec![cell("a", Protocol::H1, 1, 1)]);
    let with_empty_cell =
        Results { servers: vec![server("a", "A", "1")], sections: vec![planned], ..empty() };
    for results in [empty(), with_empty_cell, odd(), http2::odd(), http3::odd(), generators::odd()] {
        let value = serde_json::from_str(&to_json(&results).unwrap()).unwrap();
        let faults: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
    for (pointer, stranger) in [
        ("/settings/rounds", serde_json::json!(-1)),
        ("/settings", serde_json::json!({})),
        ("/complete", serde_json::json!("yes")),
        ("/sections", serde_json::json!([{"title": "x", "kind": "closed-loop", "cells": [], "more": 1}])),
    ] {
        let mut value = serde_json::to_value(empty()).unwrap();
        *value.pointer_mut(pointer).unwrap() = stranger;
        assert!(!validator.is_valid(&value), "{pointer}");
    }
}

/// The committed reports are real runs: they follow the schema, and every summary in them is what
/// their rounds give.
#[test]
fn committed_results_follow_the_schema_and_from_their_rounds() {
    let validator = validator();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let mut seen = 0;
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let faults: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:?}", path.display());
        let results = load(&path).unwrap();
        for section in &results.sections {
            for cell in &section.cells {
                assert_eq!(cell.summary, stats::summarise(cell, section.kind, &results.settings));
            }
        }
        seen += 1;
    }
    assert!(seen > 0, "reports/ holds the results of scenarios/http.toml");
}

#[test]
fn marks_follow_from_verdicts() {
    let settings = settings();
    let summary = |c, rates: &[f64], mean_us| {
        let mut cell = with_rounds(cell("a", Protocol::H1, c, 1), rates, mean_us);
        cell.summary = stats::summarise(&cell, SectionKind::ClosedLoop, &settings);
        cell
    };
    let p50 = Figure::Latency(50.0);
    let starved = summary(100, &[110_000.0; 3], 660.0);
    let unstable = summary(1, &[10_000.0, 8_000.0, 10_100.0], 98.0);
    let valid = summary(1, &[10_000.0; 3], 98.0);
    let fewer = summary(1, &[10_000.0; 2], 98.0);
    let mut limited = http2::allowing(measured(cell("a", Protocol::H2, 10, 10), 90_000.0, 1_100.0), 9, 9);
    limited.summary = stats::summarise(&limited, SectionKind::ClosedLoop, &settings);
    let closed = SectionKind::ClosedLoop;
    for (name, s, carried, figure, on_figure, wins) in [
        ("starved latency", &starved, vec![Mark::Starved], p50, true, false),
        ("starved rate", &starved, vec![Mark::Starved], Figure::Rate, false, true),
        ("starved CPU", &starved, vec![Mark::Starved], Figure::Cpu, false, true),
        ("unstable latency", &unstable, vec![Mark::Unstable], p50, true, false),
        ("unstable rate", &unstable, vec![Mark::Unstable], Figure::Rate, true, false),
        ("valid latency", &valid, vec![], p50, false, true),
        ("limited latency", &limited, vec![Mark::Limited], p50, true, false),
        ("limited rate", &limited, vec![Mark::Limited], Figure::Rate, true, true),
        ("limited CPU", &limited, vec![Mark::Limited], Figure::Cpu, false, true),
        ("fewer rounds, rate", &fewer, vec![Mark::FewerRounds], Figure::Rate, true, true),
        ("fewer rounds, latency", &fewer, vec![Mark::FewerRounds], p50, false, true),
    ] {
        assert_eq!(marks(s, &settings), carried, "{name}");
        assert_eq!(!marks_of(figure, s, closed, &settings).is_empty(), on_figure, "{name}");
        assert_eq!(may_win(figure, s, closed, &settings), wins, "{name}");
    }
    // All a set-up section shows is its rate, so starvation marks that.
    assert!(!may_win(Figure::Rate, &starved, SectionKind::Setup, &settings));
    let nothing = summary(1, &[], 1.0);
    assert!(marks(&nothing, &settings).is_empty() && !may_win(p50, &nothing, closed, &settings));
}

#[test]
fn the_best_and_what_is_within_its_noise_win() {
    let candidate = |value, spread, eligible| Candidate { value, spread, eligible };
    let rates = |list: &[(f64, f64, bool)]| {
        let list: Vec<_> = list.iter().map(|(v, s, e)| candidate(Some(*v), Some(*s), *e)).collect();
        winners(Figure::Rate, &list)
    };
    assert_eq!(rates(&[(100.0, 0.01, true), (97.0, 0.01, true)]), [true, false]);
    assert_eq!(rates(&[(100.0, 0.02, true), (97.0, 0.02, true)]), [true, true]);
    assert_eq!(rates(&[(100.0, 0.01, false), (97.0, 0.01, true)]), [false, true]);
    assert_eq!(rates(&[(100.0, 0.0, false)]), [false]);
    let none = candidate(None, None, true);
    let nan = candidate(Some(f64::NAN), None, true);
    let lowest = [candidate(Some(2.0), None, true), none, nan, candidate(Some(1.0), None, true)];
    assert_eq!(winners(Figure::Latency(50.0), &lowest), [false, false, false, true]);
    assert_eq!(winners(Figure::Cpu, &[none]), [false]);
    assert!(winners(Figure::Cpu, &[]).is_empty());
}

#[test]
fn the_command_renders_checks_and_says_what_differs() {
    let bench = || Command::new(env!("CARGO_BIN_EXE_bench"));
    let folder = tempfile::tempdir().unwrap();
    let (json, md) = (folder.path().join("X.json"), folder.path().join("X.md"));
    save(&json, &odd()).unwrap();
    let markdown = |results: &Results| report(results, "X").unwrap().text;
    let check = || bench().args(["report", "--check"]).arg(&json).assert();
    check().code(1).stderr(predicate::str::contains("X.md: cannot be read"));
    bench().arg("report").arg(&json).assert().code(0).stdout(predicate::str::contains("X.md"));
    assert_eq!(fs::read_to_string(&md).unwrap(), markdown(&odd()));
    check().code(0).stderr("");
    fs::write(&md, markdown(&odd()).replacen("Do not edit", "Do edit", 1)).unwrap();
    check().code(1).stderr(predicate::str::contains("line 3 is `Generated"));
    bench().args(["report", "--stdout"]).arg(&json).assert().code(0).stdout(markdown(&odd()));
    bench().args(["report", "--schema"]).assert().code(0).stdout(schema::json());

    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    bench().arg("report").arg(&json).arg("--out").arg(&out).assert().code(0);
    assert_eq!(fs::read_to_string(out.join("X.md")).unwrap(), markdown(&odd()));
    // One bad file fails the command, and the good one is still rendered.
    fs::remove_file(&md).unwrap();
    fs::write(folder.path().join("bad.json"), "{\"format\": \"7.0\"}").unwrap();
    let both = bench().arg("report").arg(folder.path().join("bad.json")).arg(&json).assert();
    both.code(2).stderr(predicate::str::contains("bad.json: format 7.0 is newer"));
    assert!(md.exists());
    bench().arg("report").assert().code(2);
}

/// Any outcome of a round, believable or not.
fn any_round(number: u32) -> impl Strategy<Value = RoundRecord> {
    let reason = "\\PC{0,30}|[|`<>\\n*_]{0,10}";
    let lost = (
        prop::sample::select(vec![
            CellStatus::Failed,
            CellStatus::Interrupted,
            CellStatus::Absent,
            CellStatus::Pending,
        ]),
        reason,
        prop::collection::vec(reason, 0..4),
    )
        .prop_map(move |(status, reason, log)| {
            let log: Vec<&str> = log.iter().map(String::as_str).collect();
            lost_round(number, status, &reason, &log)
        });
    let good =
        (0.0f64..1e6, 0.1f64..1e7, 0.0f64..1.2, any::<bool>()).prop_map(move |(rate, mean, busy, odd)| {
            let of = cell("a", Protocol::H1, 7, 1);
            let mut m = build::measurement(&of, rate, mean);
            m.generator.threads[0].busy = Some(busy);
            m.interrupted = odd && busy > 1.0;
            m.requests.failed = if odd { m.requests.ok / 100 } else { 0 };
            m.requests.started += m.requests.failed;
            m.connection.handshakes = odd.then(|| build::counts(m.requests.ok, 0, 0, 0));
            m.connection.first_response_us = m.latency_us.clone();
            build::round(number, m)
        });
    prop_oneof![lost, good]
}

fn any_results() -> impl Strategy<Value = Results> {
    let cell = (any_round(1), any_round(2), 0usize..3).prop_map(|(first, second, rounds)| {
        let mut cell = cell("a", Protocol::H1, 7, 1);
        cell.rounds = [first, second].into_iter().take(rounds).collect();
        cell
    });
    let cells = prop::collection::vec(cell, 0..4);
    let kinds = vec![SectionKind::ClosedLoop, SectionKind::Setup, SectionKind::Ratio, SectionKind::Handshake];
    let label = "\\PC{0,20}|[|`<>\\n*_]{0,10}";
    (cells, label, prop::sample::select(kinds), any::<bool>()).prop_map(|(mut cells, label, kind, paired)| {
        for (i, cell) in cells.iter_mut().enumerate() {
            // In pairs, as a ratio has them, or each server alone.
            let server = if paired { i / 2 } else { i };
            cell.server = format!("s{server}");
            cell.protocol = if paired && i % 2 == 1 { Protocol::H2c } else { Protocol::H1 };
        }
        let servers = (0..cells.len()).map(|i| server(&format!("s{i}"), &label, &label)).collect();
        let sections = vec![section(&label, kind, cells)];
        summarised(Results { title: label, servers, sections, ..empty() })
    })
}

/// Columns of a GFM table row: pipes that no backslash protects.
fn columns(line: &str) -> usize {
    let mut protected = false;
    let pipes = line.chars().filter(|c| {
        let pipe = *c == '|' && !protected;
        protected = *c == '\\' && !protected;
        pipe
    });
    pipes.count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_results_round_trip_follow_the_schema_and_render(results in any_results(), width in 0usize..200) {
        let text = to_json(&results).unwrap();
        prop_assert_eq!(&store::parse(&text).unwrap(), &results);
        prop_assert!(validator().is_valid(&serde_json::from_str(&text).unwrap()));

        let report = markdown(&results).unwrap();
        prop_assert_eq!(&markdown(&results).unwrap(), &report);
        let _ = terminal(&results, width);
        let mut fence: Option<usize> = None;
        let mut table = None;
        for line in report.lines() {
            let run = line.trim_start().chars().take_while(|c| *c == '`').count();
            match fence {
                None if run >= 3 => fence = Some(run),
                Some(open) if run >= open && line.trim().len() == run => fence = None,
                _ => {}
            }
            if fence.is_some() { continue; }
            if line.starts_with('|') {
                let expected = *table.get_or_insert(columns(line));
                prop_assert_eq!(columns(line), expected, "{}", line);
            } else {
                table = None;
            }
            // Labels here hold any text, but a figure never stands in a cell as one of these.
            for cell in line.split('|').map(|cell| cell.trim().trim_matches('*')) {
                let lower = cell.trim_end_matches(['‡', '§', '†', '¶', '◊', '°', '×']);
                prop_assert!(!["NaN", "inf", "-inf", "±NaN %"].contains(&lower), "{}", line);
            }
        }
    }
}
