//! Owns results of sections that have headers and ask for their rounds, built by hand.

#![allow(dead_code, reason = "each test file uses its own part of the builders")]

use bench::results::*;

use super::build::{cell, empty, lost_round, section, server, summarised, with_rounds};

fn field(name: &str, value: &str) -> HeaderField {
    HeaderField { name: name.into(), value: value.into() }
}

fn answer(encoding: &str, encoded_bytes: u64) -> Answer {
    Answer {
        status: 200,
        fields: vec![field("content-encoding", encoding)],
        encoding: encoding.into(),
        encoded_bytes,
        body_bytes: Some(16_384),
        problem: None,
        repeats: true,
    }
}

fn answered(mut cell: CellRecord, answer: &Answer) -> CellRecord {
    for round in &mut cell.rounds {
        round.answer = Some(answer.clone());
    }
    cell
}

/// A server that compresses, one that does not and failed twice, one that answers nonsense, one without an ok answer in a
/// round that was measured, one with a round whose requests do not add up.
pub(crate) fn compressed() -> Results {
    let mut nginx = with_rounds(cell("nginx", Protocol::H2, 10, 10), &[9_036.0, 10_247.0, 14_282.0], 900.0);
    nginx.rounds[2].measurement.as_mut().unwrap().requests.failed = 7;
    nginx.rounds[2].measurement.as_mut().unwrap().requests.started += 7;
    let mut caddy = with_rounds(cell("caddy", Protocol::H2, 10, 10), &[5.25], 900.0);
    caddy.rounds.push(lost_round(2, CellStatus::Failed, "the server was killed | by SIGKILL", &[]));
    caddy.rounds.push(lost_round(3, CellStatus::Interrupted, "interrupted by SIGINT", &[]));
    let mut odd = cell("odd", Protocol::H2, 10, 10);
    let problem = "the body, after gzip is taken off, is 900 bytes, expected 16384";
    odd.rounds = (1..=3).map(|number| lost_round(number, CellStatus::Failed, problem, &[])).collect();
    let mut wrong = answer("gzip", 300);
    (wrong.body_bytes, wrong.problem, wrong.repeats) = (Some(900), Some(problem.into()), false);
    let mut broken = wrong.clone();
    (broken.encoding, broken.body_bytes) = ("br|*x*".into(), None);
    let mut odd = answered(odd, &wrong);
    odd.rounds[2].answer = Some(broken);

    let mut part = with_rounds(cell("part", Protocol::H2, 10, 10), &[10_050.0, 0.0, 9_950.0], 9_900.0);
    part.rounds[1].measurement.as_mut().unwrap().errors = vec![ErrorCount {
        phase: Phase::Unexpected,
        kind: "body".into(),
        count: 9,
        requests: 9,
        example: None,
    }];
    let mut liar = with_rounds(cell("liar", Protocol::H2, 10, 10), &[99_000.0, 98_000.0, 97_000.0], 900.0);
    liar.rounds[1].measurement.as_mut().unwrap().requests.started += 1;

    let mut results = empty();
    results.servers = vec![
        server("nginx", "nginx", "1.28"),
        server("caddy", "Caddy", "2.11"),
        server("odd", "Odd_one", "0"),
        server("part", "Part", "0"),
        server("liar", "Liar", "0"),
    ];
    let cells = vec![
        answered(nginx, &answer("gzip", 312)),
        answered(caddy, &answer("identity", 16_384)),
        odd,
        answered(part, &answer("identity", 16_384)),
        answered(liar, &answer("identity", 16_384)),
    ];
    let mut section = section("HTTP/2 over TLS, gzip", SectionKind::ClosedLoop, cells);
    section.headers = vec![field("Accept-Encoding", "gzip"), field("X-Odd", "`|<b>")];
    section.runs = true;
    results.sections = vec![section];
    summarised(results)
}
