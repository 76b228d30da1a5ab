//! Owns a run that compares generators, with probes and gates, in which nearly everything went wrong
//! somewhere.

use std::collections::BTreeMap;

use bench::results::*;

use super::build::*;

/// Two servers, one of which failed its gate; five generators, one of which is absent; probes of every end.
pub(crate) fn odd() -> Results {
    let mut results = empty();
    results.title = "Load generators compared".into();
    results.template = "generators".into();
    results.servers = vec![
        ServerRecord {
            gate: Some(gate(GateOutcome::Failed, Some("it exited with status 1"), &["3 tests failed"])),
            ..server("rust", "Rust", "1.0")
        },
        ServerRecord {
            gate: Some(gate(GateOutcome::NotRun, Some("`h2spec` is not installed: it is not on PATH"), &[])),
            ..server("go", "Go", "go1.25")
        },
        ServerRecord {
            gate: Some(gate(GateOutcome::Passed, None, &["all passed"])),
            ..server("c", "C", "2.0")
        },
    ];
    results.generators = vec![
        generator("builtin", "bench", GeneratorKind::Builtin, Some("bench 0.1.0")),
        generator("wrk", "wrk", GeneratorKind::Wrk, Some("wrk 4.1.0")),
        generator("oha", "oha", GeneratorKind::Oha, Some("oha 1.16.0")),
        generator("ab", "ab|old", GeneratorKind::Command, None),
        GeneratorRecord {
            unavailable: Some(Unavailable {
                status: CellStatus::Absent,
                reason: "`shb` is not installed: it is not on PATH".into(),
                log_tail: vec![],
            }),
            ..generator("shb", "shb", GeneratorKind::Shb, None)
        },
    ];
    results.probes = probes();
    let plain = ["rust", "go"].into_iter().flat_map(cells).collect();
    results.sections = vec![
        section("HTTP/1.1 in cleartext", SectionKind::Generators, plain),
        section(
            "Plain",
            SectionKind::ClosedLoop,
            ["rust", "go", "c"]
                .into_iter()
                .zip([90_000.0, 60_000.0, 50_000.0])
                .map(|(name, rate)| measured(cell(name, Protocol::H1, 10, 1), rate, 10.0 / rate * 1e6))
                .collect(),
        ),
    ];
    summarised(results)
}

/// Cells of each generator at one server, good and bad.
fn cells(server: &str) -> Vec<CellRecord> {
    let cell = |connections, generator| CellRecord {
        generator: Some(generator),
        ..cell(server, Protocol::H1, connections, 1)
    };
    let rounds = |mut cell: CellRecord, rates: [f64; 3], mean_us: Option<f64>, cpu_us: f64| {
        cell.rounds = (1..).zip(rates).map(|(n, rate)| driven(n, &external(rate, mean_us, cpu_us))).collect();
        cell
    };
    let steady = |rate: f64| [rate, rate * 0.99, rate * 1.01];
    let busy = |cell| rounds(cell, steady(100_000.0), Some(640.0), 9.9);
    let mut failing = cell(64, 3);
    failing.rounds =
        vec![lost_round(1, CellStatus::Failed, "ab|old exited with status 22", &["socket: too many"])];
    let mut tainted = rounds(cell(8, 3), steady(30_000.0), None, 12.0);
    for run in tainted.rounds.iter_mut().filter_map(|round| round.external.as_mut()) {
        run.failed = Some(6_000);
        run.latency_us.clear();
    }
    let mut liar = cell(64, 2);
    let mut run = external(80_000.0, Some(800.0), 7.0);
    run.ok = Some(400_000);
    liar.rounds = vec![driven(1, &run), driven(2, &external(40_000.0, Some(900.0), 7.0))];
    let mut never = cell(8, 4);
    let absent = "`shb` is not installed: it is not on PATH";
    never.rounds = vec![lost_round(1, CellStatus::Absent, absent, &[])];
    let mut never_too = cell(64, 4);
    never_too.rounds.clone_from(&never.rounds);
    vec![
        rounds(cell(8, 0), steady(80_000.0), Some(99.0), 5.0),
        // Its latencies hold more than the requests it sent.
        rounds(cell(8, 1), steady(80_500.0), Some(310.0), 4.9),
        rounds(cell(8, 2), [40_000.0, 30_000.0, 50_000.0], Some(150.0), 11.0),
        tainted,
        never,
        busy(cell(64, 0)),
        rounds(cell(64, 1), steady(110_000.0), Some(580.0), 4.2),
        liar,
        failing,
        never_too,
    ]
}

/// A run of ten seconds at this rate.
fn external(rate: f64, mean_us: Option<f64>, cpu_us: f64) -> ExternalRun {
    let ok = (rate * 10.0) as u64;
    let latency = |factor: f64| mean_us.map(|mean| mean * factor);
    let percentiles = [("50", 0.9), ("99", 4.0)];
    ExternalRun {
        command: ["wrk", "-c", "8", "http://localhost:20080/"].map(String::from).to_vec(),
        asked_s: 10.0,
        wall_s: 10.05,
        cpu_user_us: (ok as f64 * cpu_us * 0.25) as u64,
        cpu_system_us: (ok as f64 * cpu_us * 0.75) as u64,
        ok: Some(ok),
        failed: Some(0),
        requests_per_second: Some(rate),
        latency_mean_us: mean_us,
        latency_max_us: latency(20.0),
        latency_us: percentiles
            .into_iter()
            .filter_map(|(name, factor)| Some((name.to_owned(), latency(factor)?)))
            .collect::<BTreeMap<_, _>>(),
        output: "Requests/sec: ...\n".into(),
    }
}

fn driven(number: u32, run: &ExternalRun) -> RoundRecord {
    let ok = run.ok.unwrap_or(1).max(1) as f64;
    RoundRecord {
        reason: None,
        server: Some(server_sample(ok)),
        external: Some(run.clone()),
        ..lost_round(number, CellStatus::Measured, "", &[])
    }
}

fn generator(name: &str, label: &str, kind: GeneratorKind, version: Option<&str>) -> GeneratorRecord {
    GeneratorRecord {
        name: name.into(),
        label: label.into(),
        kind,
        version: version.map(String::from),
        command: vec![name.into(), "-c".into(), "{connections}".into(), "{url}".into()],
        unavailable: None,
    }
}

fn gate(outcome: GateOutcome, reason: Option<&str>, log: &[&str]) -> GateRecord {
    GateRecord {
        command: ["h2spec", "-p", "20443"].map(String::from).to_vec(),
        outcome,
        reason: reason.map(String::from),
        log_tail: log.iter().map(|line| (*line).into()).collect(),
        took_s: (outcome != GateOutcome::NotRun).then_some(2.5),
    }
}

fn probes() -> Vec<ProbeRecord> {
    let probe = |name: &str, status, reason: Option<&str>, values: [Option<f64>; 2]| ProbeRecord {
        name: name.into(),
        label: name.into(),
        command: ["openssl", "speed"].map(String::from).to_vec(),
        version: Some("OpenSSL 3.0.19".into()),
        session: 0,
        status,
        reason: reason.map(String::from),
        log_tail: if status == CellStatus::Failed { vec!["unknown cipher".into()] } else { vec![] },
        took_s: Some(1.0),
        output: values.iter().zip(["sign", "verify"]).fold(
            String::new(),
            |output, (value, name)| match value {
                Some(value) => format!("{output}{value} {name}\n"),
                None => output,
            },
        ),
        figures: [("signatures", "sign"), ("verifications", "verify")]
            .into_iter()
            .zip(values)
            .map(|((name, printed), value)| ProbeFigure {
                name: name.into(),
                unit: "1/s".into(),
                pattern: format!(r"(\S+) {printed}|never"),
                value,
            })
            .collect(),
    };
    vec![
        probe("good", CellStatus::Measured, None, [Some(41_006.9), Some(0.012_345)]),
        probe("half", CellStatus::Measured, None, [Some(12.0), None]),
        probe("bad", CellStatus::Failed, Some("it exited with status 1"), [None, None]),
        probe(
            "gone",
            CellStatus::Absent,
            Some("`openssl` is not installed: it is not on PATH"),
            [None, None],
        ),
    ]
}
