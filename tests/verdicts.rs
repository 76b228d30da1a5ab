//! Owns the tests of how a cell is judged: starvation, what bound it, and each verdict by the figure
//! that brings it about.

#[path = "common/results.rs"]
mod build;

use bench::results::handshake::others;
use bench::results::stats::{little_law, median, percentile_key, spread, starved, summarise};
use bench::results::*;
use build::{cell, counts, handshake, idle, lost_round, measured, settings, short_connections, with_rounds};
use proptest::prelude::*;

fn summary(cell: &CellRecord) -> Summary {
    summarise(cell, SectionKind::ClosedLoop, &settings())
}

/// A cell of 50 x 1 that nothing speaks against, bent in each round.
fn bent(bend: impl Fn(&mut RoundRecord)) -> Summary {
    let mut cell = measured(cell("a", Protocol::H1, 50, 1), 50_000.0, 995.0);
    cell.rounds.iter_mut().for_each(bend);
    summary(&cell)
}

fn bent_measurement(bend: impl Fn(&mut Measurement)) -> Summary {
    bent(|round| bend(round.measurement.as_mut().unwrap()))
}

#[test]
fn little_law_is_rate_times_mean() {
    for (rate, mean_us, in_flight) in [
        (1_000.0, 60.0, Some(0.06)),
        (110_000.0, 700.0, Some(77.0)),
        (0.0, 5.0, Some(0.0)),
        (-1.0, 5.0, None),
        (1.0, -5.0, None),
        (f64::NAN, 5.0, None),
        (f64::INFINITY, 5.0, None),
        (f64::MAX, f64::MAX, None),
    ] {
        match (little_law(rate, mean_us), in_flight) {
            (Some(got), Some(want)) => assert!((got - want).abs() < 1e-9, "{rate} x {mean_us}: {got}"),
            (got, want) => assert_eq!(got, want, "{rate} x {mean_us}"),
        }
    }
}

#[test]
fn starvation_is_relative_and_absolute() {
    for (in_flight, offered, expected) in [
        // Published cells that were paced by their generator, and one that was not.
        (0.06, 1.0, true),
        (1.9, 10.0, true),
        (77.0, 100.0, true),
        (1.0, 1.0, false),
        // The edges: 90 % of what is offered, short by two, 80 %.
        (9.0, 10.0, false),
        (8.9, 10.0, false),
        (8.0, 10.0, true),
        (7.9, 10.0, true),
        (0.8, 1.0, false),
        (0.79, 1.0, true),
        (1.7, 2.0, false),
        (90.0, 100.0, false),
        (89.9, 100.0, true),
        (100.0, 100.0, false),
        (103.0, 100.0, false),
        (0.0, 1.0, true),
    ] {
        assert_eq!(starved(in_flight, offered), expected, "{in_flight} of {offered}");
    }
}

#[test]
fn a_cell_is_starved_by_its_mean_and_not_its_median() {
    // Rate, mean latency, and whether it is starved; the last has a median of 26.3 ms, which would
    // make 1.4 requests of one.
    for (c, m, rate, mean_us, in_flight) in [
        (1, 1, 1_000.0, 60.0, Some("~0.06 of 1 in flight")),
        (10, 1, 10_000.0, 190.0, Some("~1.9 of 10 in flight")),
        (1, 100, 110_000.0, 700.0, Some("~77.0 of 100 in flight")),
        (1, 1, 54.0, 18_500.0, None),
    ] {
        let s = summary(&with_rounds(cell("a", Protocol::H1, c, m), &[rate], mean_us));
        match in_flight {
            Some(reason) => {
                assert_eq!(s.verdict, Verdict::Starved, "{c}x{m}");
                assert_eq!(s.reasons[0], reason);
            }
            None => assert_eq!(s.verdict, Verdict::Valid, "{c}x{m}: {:?}", s.reasons),
        }
    }
}

#[test]
fn a_starved_setup_cell_counts_connections() {
    for (mean_us, starved) in [(1_980.0, false), (1_000.0, true)] {
        let mut setup = with_rounds(cell("a", Protocol::H1s, 20, 1), &[10_000.0], mean_us);
        setup.rounds[0].measurement.as_mut().unwrap().keepalive = false;
        let s = summarise(&setup, SectionKind::Setup, &settings());
        assert_eq!(s.verdicts.contains(&Verdict::Starved), starved, "{mean_us}");
        assert_eq!(s.reasons.first().is_some_and(|r| r == "~10.0 of 20 connections in use"), starved);
    }
}

#[test]
fn a_good_cell_is_valid_and_bound_by_its_server() {
    let s = bent(|_| {});
    assert_eq!((s.verdict, s.bound, s.rounds_measured), (Verdict::Valid, Some(Bound::Server), 3));
    assert_eq!(s.verdicts, [Verdict::Valid]);
    assert!(s.reasons.is_empty(), "{:?}", s.reasons);
    assert_eq!(s.requests_per_second, Some(50_000.0));
    assert!((s.spread.unwrap() - 0.01).abs() < 1e-9);
    assert_eq!(s.server_peak_rss_kib, Some(9_216));
}

#[test]
fn each_verdict_follows_from_its_figure() {
    for (name, s, verdict, reason) in [
        (
            "a TLS answer where cleartext was asked",
            bent_measurement(|m| m.negotiated.as_mut().unwrap().tls = Some("TLSv1.3".into())),
            Verdict::WrongProtocol,
            "asked for HTTP/1.1 in cleartext, got HTTP/1.1 TLSv1.3, ALPN none",
        ),
        (
            "every round cut short",
            bent_measurement(|m| m.interrupted = true),
            Verdict::Interrupted,
            "cut short by a signal",
        ),
        (
            "nothing but 404",
            bent_measurement(|m| {
                (m.requests.failed, m.requests.ok) = (m.requests.ok, 0);
                m.latency_us = None;
                m.requests_per_second = Some(0.0);
                m.errors = vec![ErrorCount {
                    phase: Phase::Unexpected,
                    kind: "status".into(),
                    count: 7,
                    requests: 7,
                    example: None,
                }];
            }),
            Verdict::Failed,
            "no ok response: 7 × unexpected status",
        ),
        (
            "an absent tool",
            bent(|r| *r = lost_round(r.round, CellStatus::Absent, "`caddy` is not on PATH", &[])),
            Verdict::Absent,
            "`caddy` is not on PATH",
        ),
        (
            "0.2 % of failures",
            bent_measurement(|m| {
                m.requests.failed = m.requests.ok / 500;
                m.requests.ok -= m.requests.failed;
            }),
            Verdict::Tainted,
            "(0.20 %)",
        ),
        (
            "connects that fail",
            bent_measurement(|m| m.connection.failed = m.requests.ok / 500),
            Verdict::Tainted,
            "(0.20 %)",
        ),
        (
            "a saturated generator",
            bent(|r| {
                r.measurement.as_mut().unwrap().generator.threads[1].busy = Some(0.97);
                let server = r.server.as_mut().unwrap();
                (server.cpus_busy, server.busiest_thread) = (Some(0.5), Some(0.6));
            }),
            Verdict::GeneratorBound,
            "a generator thread 97 % busy, the server's CPUs 50 %, its busiest thread 60 %",
        ),
        (
            "rounds far apart",
            bent(|r| {
                let m = r.measurement.as_mut().unwrap();
                let slower = if r.round == 3 { 0.8 } else { 1.0 };
                m.requests_per_second = m.requests_per_second.map(|rate| rate * slower);
            }),
            Verdict::Unstable,
            "more than the ±5 % allowed",
        ),
    ] {
        let why = s.reasons.join("; ");
        assert_eq!(s.verdict, verdict, "{name}: {why}");
        assert!(why.contains(reason), "{name}: {why}");
    }
}

#[test]
fn a_figure_that_cannot_be_true_fails_the_cell() {
    for (name, s, reason) in [
        (
            "a window cut by the clock",
            bent_measurement(|m| m.window.length_s = Some(9.8)),
            "a window of 10 s lasted 9.800 s",
        ),
        (
            "a window that would not end",
            bent_measurement(|m| m.window.length_s = Some(10.6)),
            "lasted 10.600 s",
        ),
        ("requests that vanish", bent_measurement(|m| m.requests.started += 1), "requests do not add up"),
        (
            "more in flight than offered",
            bent_measurement(|m| m.latency_us.as_mut().unwrap().mean *= 1.05),
            "counted twice",
        ),
        (
            "a negative latency",
            bent_measurement(|m| m.latency_us.as_mut().unwrap().min = -1.0),
            "negative or not a number",
        ),
        (
            "a rate that is not a number",
            bent_measurement(|m| m.requests_per_second = Some(f64::NAN)),
            "negative or not a number",
        ),
    ] {
        assert_eq!((s.verdict, s.requests_per_second), (Verdict::Failed, None), "{name}");
        assert!(s.reasons[0].contains(reason), "{name}: {:?}", s.reasons);
    }
}

#[test]
fn failures_up_to_a_thousandth_are_no_taint() {
    let s = bent_measurement(|m| {
        m.requests.failed = m.requests.ok / 1_001;
        m.requests.ok -= m.requests.failed;
    });
    assert_eq!(s.verdict, Verdict::Valid, "{:?}", s.reasons);
}

#[test]
fn what_bound_a_cell_is_read_from_both_sides() {
    let busy = |generator, cpus, thread| {
        bent(|r| {
            r.measurement.as_mut().unwrap().generator.threads[0].busy = generator;
            r.measurement.as_mut().unwrap().generator.threads[1].busy = generator;
            let server = r.server.as_mut().unwrap();
            (server.cpus_busy, server.busiest_thread) = (cpus, thread);
        })
    };
    for (generator, cpus, thread, bound, verdict) in [
        (Some(0.5), Some(0.95), Some(0.5), Some(Bound::Server), Verdict::Valid),
        // A single-threaded server on two CPUs leaves one idle however hard it is driven.
        (Some(0.5), Some(0.5), Some(0.99), Some(Bound::Server), Verdict::Valid),
        (Some(0.99), Some(0.92), None, Some(Bound::Server), Verdict::Valid),
        (Some(0.95), Some(0.89), None, Some(Bound::Generator), Verdict::GeneratorBound),
        (Some(0.94), Some(0.89), None, Some(Bound::Neither), Verdict::Valid),
        // Nothing shows that the server was busy, so the doubt goes against the cell.
        (Some(0.99), None, None, Some(Bound::Generator), Verdict::GeneratorBound),
        (None, Some(0.2), None, Some(Bound::Neither), Verdict::Valid),
        (None, None, None, None, Verdict::Valid),
    ] {
        let s = busy(generator, cpus, thread);
        assert_eq!((s.bound, s.verdict), (bound, verdict), "{generator:?} {cpus:?} {thread:?}");
    }
}

/// Somebody else's work on the server's CPUs is no limit of the server's.
#[test]
fn foreign_load_does_not_make_a_server_the_limit() {
    let s = bent(|r| {
        r.measurement.as_mut().unwrap().generator.threads.iter_mut().for_each(|t| t.busy = Some(0.5));
        let server = r.server.as_mut().unwrap();
        (server.cpus_busy, server.busiest_thread) = (Some(0.99), Some(0.05));
        (server.cpu_user_us, server.cpu_system_us) = (1_000, 1_000);
    });
    assert_eq!(s.bound, Some(Bound::Neither));
}

/// Errors that ended no request, such as bytes after every answer, taint a cell like failures.
#[test]
fn errors_beside_ok_answers_taint_a_cell() {
    let s = bent_measurement(|m| {
        m.errors = vec![ErrorCount {
            phase: Phase::Framing,
            kind: "unsolicited-bytes".into(),
            count: m.requests.ok,
            requests: 0,
            example: None,
        }];
    });
    assert_eq!(s.verdict, Verdict::Tainted);
    assert!(s.reasons[0].contains("unsolicited-bytes"), "{:?}", s.reasons);
}

#[test]
fn verdicts_stand_weightiest_first_each_with_its_reason() {
    let s = bent(|r| {
        let m = r.measurement.as_mut().unwrap();
        m.connection.failed = m.requests.ok;
        m.generator.threads[0].busy = Some(1.0);
        m.requests_per_second = m.requests_per_second.map(|rate| rate / f64::from(r.round));
        let server = r.server.as_mut().unwrap();
        (server.cpus_busy, server.busiest_thread) = (None, None);
    });
    assert_eq!(s.verdicts[0], s.verdict);
    let expected = [Verdict::Tainted, Verdict::GeneratorBound, Verdict::Starved, Verdict::Unstable];
    assert_eq!(s.verdicts, expected);
    assert_eq!(s.reasons.len(), expected.len());
}

#[test]
fn some_lost_rounds_leave_the_figures_and_a_reason() {
    let mut cell = measured(cell("a", Protocol::H1, 50, 1), 50_000.0, 995.0);
    cell.rounds[1] = lost_round(2, CellStatus::Failed, "exit status 1", &["panic"]);
    let s = summary(&cell);
    assert_eq!((s.verdict, s.rounds_measured), (Verdict::Valid, 2));
    assert_eq!(s.reasons, ["2 of 3 rounds; round 2: exit status 1"]);
    cell.rounds.truncate(1);
    assert_eq!(summary(&cell).reasons, ["1 of 3 rounds; the others were not reached"]);
}

#[test]
fn a_cell_without_rounds_says_so() {
    let s = summary(&cell("a", Protocol::H1, 1, 1));
    assert_eq!((s.verdict, s.requests_per_second), (Verdict::Interrupted, None));
    assert_eq!(s.reasons, ["not reached before the run ended"]);
    let mut lost = cell("a", Protocol::H1, 1, 1);
    lost.rounds = vec![
        lost_round(1, CellStatus::Failed, "no answer", &[]),
        lost_round(2, CellStatus::Failed, "exit status 1", &[]),
        lost_round(3, CellStatus::Failed, "exit status 1", &[]),
    ];
    let s = summary(&lost);
    assert_eq!(s.verdict, Verdict::Failed);
    assert_eq!(s.reasons, ["round 1: no answer; rounds 2, 3: exit status 1"]);
}

#[test]
fn one_wrong_or_impossible_round_spoils_the_cell() {
    let s = bent(|r| {
        if r.round == 2 {
            r.measurement.as_mut().unwrap().negotiated.as_mut().unwrap().http = "HTTP/2".into();
        }
    });
    assert_eq!((s.verdict, s.requests_per_second), (Verdict::WrongProtocol, None));
    assert!(s.reasons[0].starts_with("round 2: asked for"), "{:?}", s.reasons);
}

/// Where nothing came up there is nothing negotiated: the errors say what the server speaks.
#[test]
fn a_server_that_speaks_another_protocol_is_told_by_its_errors() {
    let error = |phase, kind: &str, example: Option<&str>| ErrorCount {
        phase,
        kind: kind.into(),
        count: 9,
        requests: 0,
        example: example.map(String::from),
    };
    for (name, protocol, error, reason) in [
        (
            "another choice by ALPN",
            Protocol::H2,
            error(Phase::Tls, "wrong-protocol", Some("asked for h2 by ALPN, the server chose http/1.1")),
            "no HTTP/2 over TLS: asked for h2 by ALPN, the server chose http/1.1",
        ),
        (
            "no choice by ALPN",
            Protocol::H1s,
            error(Phase::Tls, "alert-received-no-application-protocol", None),
            "no HTTP/1.1 over TLS: alert-received-no-application-protocol",
        ),
        (
            "no version of QUIC in common",
            Protocol::H3,
            error(Phase::Quic, "version-negotiation", Some("the server does not speak QUIC version 1")),
            "no HTTP/3 over QUIC: the server does not speak QUIC version 1",
        ),
        (
            "an answer of the other version",
            Protocol::H2c,
            error(Phase::Framing, "wrong-protocol", Some("the server answered HTTP/1.1")),
            "no HTTP/2 in cleartext: the server answered HTTP/1.1",
        ),
    ] {
        for (status, ok) in
            [(CellStatus::Failed, false), (CellStatus::Measured, false), (CellStatus::Measured, true)]
        {
            let mut cell = measured(cell("a", protocol, 50, 1), 50_000.0, 995.0);
            for round in &mut cell.rounds {
                round.status = status;
                let m = round.measurement.as_mut().unwrap();
                m.errors = vec![error.clone()];
                if !ok {
                    (m.negotiated, m.latency_us, m.requests_per_second) = (None, None, None);
                    m.requests = Requests::default();
                }
            }
            let s = summary(&cell);
            assert_eq!((s.verdict, s.requests_per_second), (Verdict::WrongProtocol, None), "{name}");
            assert_eq!(s.reasons, [reason], "{name}");
        }
    }
    // The probe met it before any cell was measured.
    let s = bent(|r| *r = lost_round(r.round, CellStatus::WrongProtocol, "no HTTP/1.1", &[]));
    assert_eq!((s.verdict, s.reasons), (Verdict::WrongProtocol, vec!["no HTTP/1.1".to_owned()]));
    // Another alert is a failure of TLS and no word about the protocol.
    let s = bent_measurement(|m| {
        m.requests = Requests::default();
        m.errors = vec![error(Phase::Tls, "alert-received-handshake-failure", None)];
    });
    assert_eq!(s.verdict, Verdict::Failed);
}

#[test]
fn only_what_was_negotiated_is_measured_under_its_name() {
    let negotiated = |http: &str, tls: Option<&str>, alpn: Option<&str>| Negotiated {
        http: http.into(),
        alpn: alpn.map(String::from),
        tls: tls.map(String::from),
        cipher: None,
        group: None,
    };
    let tls = Some("TLSv1.3");
    let all = [
        negotiated("HTTP/1.1", None, None),
        negotiated("HTTP/1.0", None, None),
        negotiated("HTTP/1.1", tls, None),
        negotiated("HTTP/1.1", tls, Some("http/1.1")),
        negotiated("HTTP/1.1", tls, Some("h2")),
        negotiated("HTTP/2", None, None),
        negotiated("HTTP/2", tls, Some("h2")),
        negotiated("HTTP/2", tls, Some("http/1.1")),
        negotiated("HTTP/2", tls, None),
        negotiated("HTTP/2", None, Some("h2")),
        negotiated("HTTP/3", tls, Some("h3")),
        negotiated("HTTP/3", tls, Some("h3-29")),
        negotiated("HTTP/3", tls, None),
        negotiated("HTTP/2", tls, Some("h3")),
    ];
    for (protocol, right) in [
        (Protocol::H1, &[0, 1][..]),
        (Protocol::H1s, &[2, 3]),
        (Protocol::H2c, &[5]),
        (Protocol::H2, &[6]),
        (Protocol::H3, &[10]),
    ] {
        for (index, negotiated) in all.iter().enumerate() {
            let mut cell = measured(cell("a", protocol, 50, 1), 50_000.0, 995.0);
            for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
                m.negotiated = Some(negotiated.clone());
            }
            let wrong = summary(&cell).verdict == Verdict::WrongProtocol;
            assert_eq!(wrong, !right.contains(&index), "{} {negotiated:?}", protocol.name());
        }
    }
}

/// The rule of starvation stays that of C x M, and the reason says who kept M down.
#[test]
fn a_server_that_allows_fewer_streams_is_no_failure() {
    for (concurrency, mean_us, allowed, verdict, reasons, effective) in [
        // Eight of a hundred.
        (
            100,
            1_000.0,
            [(8, 8), (8, 8), (8, 8)],
            Verdict::Starved,
            vec![
                "~8.0 of 100 in flight; the server allows 8 concurrent streams on a connection (M = 100 asked)",
            ],
            Some((8, 8)),
        ),
        // Nine of ten are enough not to be starved.
        (10, 1_125.0, [(9, 9), (10, 10), (9, 10)], Verdict::Valid, vec![], Some((9, 10))),
        (8, 1_000.0, [(8, 8), (8, 8), (8, 8)], Verdict::Valid, vec![], Some((8, 8))),
    ] {
        let mut cell = with_rounds(cell("a", Protocol::H2c, 1, concurrency), &[8_000.0; 3], mean_us);
        for (round, (least, most)) in cell.rounds.iter_mut().zip(allowed) {
            round.measurement.as_mut().unwrap().multiplexing =
                Some(Multiplexing { effective_least: least, effective_most: most, goaways: 0, refused: 0 });
        }
        let s = summary(&cell);
        assert_eq!((s.verdict, s.reasons), (verdict, reasons.iter().map(ToString::to_string).collect()));
        let effective = effective.map(|(least, most)| EffectiveConcurrency { least, most });
        assert_eq!(s.effective_concurrency, effective);
    }
    assert_eq!(bent(|_| {}).effective_concurrency, None, "HTTP/1.1 has no streams");
}

/// Nothing was busy, and what a request took is what an acknowledgement may be held back.
#[test]
fn a_wait_for_acknowledgements_is_told_by_its_length() {
    let reason = |protocol, mean_us: f64, bend: &dyn Fn(&mut RoundRecord)| {
        let mut cell = idle(measured(cell("a", protocol, 1, 1), 1e6 / mean_us * 0.99, mean_us));
        cell.rounds.iter_mut().for_each(bend);
        summary(&cell)
    };
    let of = |mean_us, delay: Option<u64>, rtt: Option<f64>| {
        let bend = move |r: &mut RoundRecord| {
            let m = r.measurement.as_mut().unwrap();
            m.latency_us.as_mut().unwrap().p50 = mean_us;
            let health = m.quic.as_mut().unwrap();
            (health.max_ack_delay_us, health.smoothed_rtt_us) = (delay, rtt);
        };
        reason(Protocol::H3, mean_us, &bend).bound_reason
    };
    let text = of(26_000.0, Some(25_000), Some(200.0)).unwrap();
    assert!(text.starts_with("each request costs about the server's max_ack_delay (25 ms; 25."), "{text}");
    assert!(of(100_000.0, Some(100_000), None).unwrap().contains("max_ack_delay (100 ms;"));
    assert!(of(25_500.0, None, None).is_some(), "25 ms is the default of RFC 9000");
    // Within a tenth of the delay and a round trip, and not beyond.
    for (mean_us, rtt, told) in [
        (23_000.0, 0.0, true),
        (22_000.0, 0.0, false),
        (27_300.0, 0.0, true),
        (28_500.0, 0.0, false),
        (28_500.0, 2_000.0, true),
        (50.0, 0.0, false),
    ] {
        assert_eq!(of(mean_us, Some(25_000), Some(rtt)).is_some(), told, "{mean_us} µs, {rtt} µs");
    }
    // Over TCP, or where somebody was busy, it is chance.
    let nothing = |_: &mut RoundRecord| {};
    let over_tcp = reason(Protocol::H2, 26_000.0, &nothing);
    assert_eq!((over_tcp.bound, over_tcp.bound_reason), (Some(Bound::Neither), None));
    let busy = |r: &mut RoundRecord| r.server.as_mut().unwrap().busiest_thread = Some(0.97);
    let busy = reason(Protocol::H3, 26_000.0, &busy);
    assert_eq!((busy.bound, busy.bound_reason), (Some(Bound::Server), None));
}

/// The rate follows from the mean; where a tail moves that, the median still tells.
#[test]
fn a_median_near_the_delay_tells_of_a_wait_too() {
    let mut cell = idle(measured(cell("a", Protocol::H3, 1, 1), 54.0, 18_500.0));
    for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
        m.latency_us.as_mut().unwrap().p50 = 26_300.0;
    }
    let text = summary(&cell).bound_reason.unwrap();
    assert!(text.contains("26.3 ms each"), "{text}");
}

fn of_handshakes(resumption: Resumption, handshakes: Handshakes) -> (CellRecord, Summary) {
    let mut cell = short_connections(handshake("a", Protocol::H3, resumption), 800.0, handshakes);
    let summary = summarise(&cell, SectionKind::Handshake, &settings());
    cell.summary = summary.clone();
    (cell, summary)
}

#[test]
fn handshakes_of_another_kind_are_told_and_none_of_the_kind_is_no_figure() {
    use Resumption::{Off, Ticket, ZeroRtt};
    for (resumption, handshakes, verdict, told) in [
        (Off, counts(1_000, 0, 0, 0), Verdict::Valid, None),
        (Ticket, counts(0, 1_000, 0, 0), Verdict::Valid, None),
        (ZeroRtt, counts(0, 1_000, 1_000, 0), Verdict::Valid, None),
        (Ticket, counts(1, 999, 0, 0), Verdict::Valid, Some("3 of 3\u{202f}000 handshakes were full")),
        (
            ZeroRtt,
            counts(2, 998, 990, 8),
            Verdict::Valid,
            Some("30 of 3\u{202f}000 handshakes took no early data (24 rejected it, 6 were full)"),
        ),
        (
            Ticket,
            counts(1_000, 0, 0, 0),
            Verdict::Absent,
            Some("no handshake was resumed, all 1\u{202f}000 were full"),
        ),
        (ZeroRtt, counts(0, 1_000, 0, 1_000), Verdict::Absent, Some("no early data was accepted")),
        // The tool's own fault.
        (
            Off,
            counts(1, 999, 0, 0),
            Verdict::Failed,
            Some("999 handshakes were resumed where none was to be"),
        ),
        (Ticket, counts(0, 1_000, 1_000, 0), Verdict::Failed, Some("had early data where none was to be")),
    ] {
        let (cell, summary) = of_handshakes(resumption, handshakes);
        assert_eq!(summary.verdict, verdict, "{resumption:?} {handshakes:?}: {:?}", summary.reasons);
        let found = others(&cell).or(summary.reasons.first().cloned());
        match told {
            None => assert_eq!(found, None),
            Some(text) => assert!(found.as_ref().is_some_and(|f| f.contains(text)), "{text}: {found:?}"),
        }
        assert_eq!(summary.handshake.is_some(), verdict == Verdict::Valid);
    }
}

/// Connections that outlive the window had their handshakes before it, of whatever kind.
#[test]
fn a_window_without_a_handshake_is_none_of_resumed_ones() {
    for (resumption, verdict) in [(Resumption::Off, Verdict::Valid), (Resumption::Ticket, Verdict::Absent)] {
        let (mut cell, _) = of_handshakes(resumption, counts(0, 1_000, 0, 0));
        for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
            m.connection.handshakes = Some(Handshakes::default());
        }
        let s = summarise(&cell, SectionKind::Handshake, &settings());
        assert_eq!(s.verdict, verdict, "{:?}", s.reasons);
        match s.handshake {
            Some(figures) => assert_eq!(figures.connections_per_second, None, "no rate of nothing"),
            None => {
                assert_eq!(s.reasons, ["no handshake was completed in the window; ask for more connections"]);
            }
        }
    }
}

#[test]
fn the_figures_of_connections_are_medians_over_the_rounds() {
    let (_, s) = of_handshakes(Resumption::Ticket, counts(1, 999, 0, 0));
    let figures = s.handshake.unwrap();
    let value = |median: Option<Median>| median.unwrap().value;
    assert_eq!(value(figures.connections_per_second), 100.0);
    assert_eq!(s.requests_per_second, Some(200.0), "two requests on each");
    let times = [figures.min_us, figures.p50_us, figures.p99_us, figures.first_response_p50_us].map(value);
    assert!(
        times.is_sorted_by(|a, b| *a <= *b * 1.3) && times[1] > 700.0 && times[3] > times[1],
        "{times:?}"
    );
    // 19.2 s of CPU over a thousand connections.
    assert_eq!(value(figures.server_cpu_us_per_connection), 19_200.0);
    assert_eq!(figures.handshakes, counts(3, 2_997, 0, 0));
    // In a closed loop the handshakes come before the window; without TLS there are none.
    let kept = summary(&measured(cell("a", Protocol::H3, 1, 1), 10_000.0, 99.0));
    assert_eq!(kept.handshake, None);
    let clear = summarise(
        &measured(cell("a", Protocol::H1, 20, 1), 10_000.0, 1_980.0),
        SectionKind::Setup,
        &settings(),
    );
    assert_eq!(clear.handshake, None);
}

/// One connection at a time leaves nothing to keep in flight.
#[test]
fn a_handshake_cell_is_never_starved() {
    let (_, s) = of_handshakes(Resumption::Off, counts(1_000, 0, 0, 0));
    assert!(s.in_flight.is_some_and(|n| n < 0.1), "{:?}", s.in_flight);
    assert_eq!(s.verdicts, [Verdict::Valid]);
}

#[test]
fn limits_of_streams_read_as_sentences() {
    use bench::results::verdict::stream_limit;
    for (least, most, asked, text) in [
        (8, 8, 100, Some("the server allows 8 concurrent streams on a connection (M = 100 asked)")),
        (1, 1, 2, Some("the server allows 1 concurrent stream on a connection (M = 2 asked)")),
        (1, 8, 100, Some("the server allows 1 to 8 concurrent streams on a connection (M = 100 asked)")),
        (100, 100, 100, None),
    ] {
        assert_eq!(stream_limit(EffectiveConcurrency { least, most }, asked).as_deref(), text);
    }
}

#[test]
fn an_old_unanswered_request_makes_the_maximum_a_lower_bound() {
    let s = bent_measurement(|m| m.requests.oldest_unfinished_us = Some(2_950_000));
    assert_eq!((s.max_is_lower_bound, s.latency_max_us), (true, Some(2_950_000.0)));
    assert!(!bent(|_| {}).max_is_lower_bound);
}

#[test]
fn every_listed_percentile_is_in_the_summary() {
    let listed = Settings { percentiles: vec![50.0, 97.5, 99.99, 100.0], ..settings() };
    let measured = measured(cell("a", Protocol::H1, 50, 1), 50_000.0, 995.0);
    let s = summarise(&measured, SectionKind::ClosedLoop, &listed);
    for p in [50.0, 90.0, 97.5, 99.0, 99.9, 99.99, 100.0] {
        assert!(s.latency_us[&percentile_key(p)].is_some(), "{p}");
    }
    assert_eq!(s.latency_us["100"], s.latency_max_us);
}

#[test]
fn spread_is_half_the_range_over_the_median() {
    assert_eq!(spread(&[90.0, 100.0, 110.0]), Some(0.1));
    assert_eq!(spread(&[100.0]), None);
    assert_eq!(spread(&[0.0, 0.0]), None);
    assert_eq!(spread(&[]), None);
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
}

proptest! {
    #[test]
    fn a_median_is_between_the_extremes_and_ignores_order(mut values in prop::collection::vec(0.0f64..1e12, 1..20)) {
        let middle = median(&values).unwrap();
        let (low, high) = values.iter().fold((f64::MAX, 0f64), |(l, h), v| (l.min(*v), h.max(*v)));
        prop_assert!(low <= middle && middle <= high);
        values.reverse();
        prop_assert_eq!(median(&values), Some(middle));
    }

    #[test]
    fn more_in_flight_never_makes_a_cell_starved(offered in 1u32..10_000, a in 0.0f64..1.2, b in 0.0f64..1.2) {
        let offered = f64::from(offered);
        let (less, more) = (a.min(b) * offered, a.max(b) * offered);
        prop_assert!(starved(less, offered) || !starved(more, offered));
        prop_assert!(!starved(0.9 * offered, offered));
    }

    #[test]
    fn counts_never_overflow(ok in 1u64.., failed in any::<u64>(), unfinished in any::<u64>()) {
        let s = bent_measurement(|m| {
            m.requests = Requests { started: ok, ok, failed, unfinished, ..Requests::default() };
            m.connection.failed = u64::MAX;
        });
        prop_assert!(s.verdict != Verdict::Valid);
    }
}

/// A cell of 8 x 1 that a generator drove as a command, bent in each round.
fn by_command(bend: impl Fn(&mut ExternalRun)) -> Summary {
    let mut cell = CellRecord { generator: Some(0), ..cell("a", Protocol::H1, 8, 1) };
    cell.rounds = (1..4)
        .map(|number| {
            let mut run = ExternalRun {
                command: vec![],
                asked_s: 10.0,
                wall_s: 10.1,
                cpu_user_us: 2_000_000,
                cpu_system_us: 3_000_000,
                ok: Some(500_000),
                failed: Some(0),
                requests_per_second: Some(50_000.0),
                latency_mean_us: Some(158.0),
                latency_max_us: Some(900.0 + f64::from(number)),
                latency_us: [("50".to_owned(), 150.0), ("99".to_owned(), 400.0)].into(),
                output: String::new(),
            };
            bend(&mut run);
            let ok = run.ok.unwrap_or(0).max(1) as f64;
            RoundRecord {
                server: Some(build::server_sample(ok)),
                external: Some(run),
                ..lost_round(number, CellStatus::Measured, "", &[])
            }
        })
        .collect();
    summarise(&cell, SectionKind::Generators, &settings())
}

#[test]
fn the_figures_of_a_command_are_its_own_and_its_cost_is_read_from_outside() {
    let summary = by_command(|_| ());
    assert_eq!(summary.verdicts, [Verdict::Valid], "{:?}", summary.reasons);
    assert_eq!((summary.requests_per_second, summary.rounds_measured), (Some(50_000.0), 3));
    assert_eq!(summary.generator_cpu_us_per_request, Some(10.0));
    assert!(summary.in_flight.is_some_and(|n| (n - 7.9).abs() < 1e-9), "{summary:?}");
    assert_eq!((summary.latency_us["50"], summary.latency_us["99"]), (Some(150.0), Some(400.0)));
    assert_eq!((summary.latency_us["99.9"], summary.latency_max_us), (None, Some(903.0)));
    assert!(summary.server_cpu_us_per_request.is_some() && summary.bound == Some(Bound::Server));
    // Two threads were given; this is a quarter of their time.
    assert!(summary.generator_busy.is_some_and(|busy| (busy - 0.2475).abs() < 0.001), "{summary:?}");
    let nothing = by_command(|run| (run.latency_mean_us, run.latency_max_us) = (None, None));
    assert_eq!((nothing.verdict, nothing.in_flight, nothing.latency_max_us), (Verdict::Valid, None, None));
}

#[test]
fn a_command_is_judged_by_what_it_says_and_what_it_cannot_have_meant() {
    type Bend = fn(&mut ExternalRun);
    let cases: [(Bend, Verdict, &str); 10] = [
        (|run| run.ok = None, Verdict::Failed, "its output has no count of ok responses"),
        (|run| run.ok = Some(0), Verdict::Failed, "no ok response"),
        (|run| run.requests_per_second = None, Verdict::Failed, "its output has no rate"),
        (
            |run| (run.ok, run.failed) = (Some(0), Some(70_000)),
            Verdict::Failed,
            "no ok response: 70\u{202f}000 requests failed",
        ),
        (
            |run| run.requests_per_second = Some(53_000.0),
            Verdict::Failed,
            "its rate of 53\u{202f}000 makes 530\u{202f}000 in 10 s",
        ),
        (
            |run| run.requests_per_second = Some(47_000.0),
            Verdict::Failed,
            "its rate of 47\u{202f}000 makes 470\u{202f}000 in 10 s",
        ),
        (
            |run| run.latency_mean_us = Some(-1.0),
            Verdict::Failed,
            "a rate or latency is negative or not a number",
        ),
        (
            |run| run.failed = Some(600),
            Verdict::Tainted,
            "1\u{202f}800 of 1\u{202f}501\u{202f}800 requests failed (0.12 %)",
        ),
        // A rate that has the failures in it is believed.
        (
            |run| (run.ok, run.failed) = (Some(300_000), Some(200_000)),
            Verdict::Tainted,
            "600\u{202f}000 of 1\u{202f}500\u{202f}000 requests failed (40.00 %)",
        ),
        (|run| run.latency_mean_us = Some(100.0), Verdict::Starved, "~5.0 of 8 in flight"),
    ];
    for (bend, verdict, reason) in cases {
        let summary = by_command(bend);
        assert_eq!(summary.verdict, verdict, "{reason}: {:?}", summary.reasons);
        assert!(summary.reasons[0].contains(reason), "{:?}", summary.reasons);
    }
    // What failed is in no rate: it is taken out of one that has it in it, few or many, and of no other.
    for (ok, failed, stated, rate) in [
        (300_000, 200_000, 50_000.0, 30_000.0),
        (490_000, 10_000, 50_000.0, 49_000.0),
        (490_000, 10_000, 49_000.0, 49_000.0),
        (500_000, 50_000, 54_450.0, 49_500.0),
        (300_000, 200_000, 30_000.0, 30_000.0),
        (499_999, 1, 49_999.9, 49_999.9),
    ] {
        let bend = |run: &mut ExternalRun| {
            (run.ok, run.failed, run.requests_per_second) = (Some(ok), Some(failed), Some(stated));
        };
        let told = by_command(bend).requests_per_second.expect("a rate");
        assert!((told - rate).abs() < 1e-6 * rate, "{ok} ok, {failed} failed, {stated}: {told}");
    }
    let neither = by_command(|run| (run.ok, run.failed) = (Some(300_000), Some(100_000)));
    assert_eq!(neither.verdict, Verdict::Failed, "{:?}", neither.reasons);
    // A window that took longer than asked for, as long as the process lived, is still one.
    let late = by_command(|run| (run.wall_s, run.requests_per_second) = (11.0, Some(46_000.0)));
    assert_eq!(late.verdict, Verdict::Valid, "{:?}", late.reasons);
    // That a generator is at its limit is what it is asked for.
    let busy = by_command(|run| run.cpu_user_us = 17_000_000);
    assert_eq!(busy.verdict, Verdict::Valid);
}
