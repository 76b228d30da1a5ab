//! Owns the tests of the runs table: every round as a row, and what servers answered to the section's headers.

#[path = "common/results.rs"]
mod build;

use bench::report::markdown;
use bench::results::*;
use build::{cell, empty, lost_round, section, server, summarised, with_rounds};

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

/// A server that compresses, one that does not and failed twice, one that answers nonsense.
fn compressed() -> Results {
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

    let mut results = empty();
    results.servers = vec![
        server("nginx", "nginx", "1.28"),
        server("caddy", "Caddy", "2.11"),
        server("odd", "Odd_one", "0"),
    ];
    let cells =
        vec![answered(nginx, &answer("gzip", 312)), answered(caddy, &answer("identity", 16_384)), odd];
    let mut section = section("HTTP/2 over TLS, gzip", SectionKind::ClosedLoop, cells);
    section.headers = vec![field("Accept-Encoding", "gzip"), field("X-Odd", "`|<b>")];
    section.runs = true;
    results.sections = vec![section];
    summarised(results)
}

#[test]
fn every_round_is_a_row() {
    insta::assert_snapshot!(the_section(&markdown(&compressed()).expect("a report")));
}

/// What stands under the section's heading.
fn the_section(report: &str) -> &str {
    let start = report.find("## HTTP/2 over TLS, gzip").expect("the section");
    let end = report[start..].find("\n## Servers").expect("what follows it");
    &report[start..start + end]
}

#[test]
fn many_rounds_are_folded_and_a_section_without_runs_has_none() {
    let mut results = compressed();
    let (rates, few) = (vec![10_000.0; 20], [10_000.0; 15]);
    results.sections[0].cells.truncate(1);
    let of = |rates: &[f64], results: &mut Results| {
        let cell = with_rounds(results.sections[0].cells[0].clone(), rates, 900.0);
        results.sections[0].cells[0] = cell;
        results.settings.rounds = rates.len() as u32;
        markdown(&summarised(results.clone())).expect("a report")
    };
    assert!(!of(&rates, &mut results).contains("<summary>Every round</summary>"), "20 rows are open");
    assert!(of(&[rates.as_slice(), &few].concat(), &mut results).contains("<summary>Every round</summary>"));
    results.sections[0].runs = false;
    let report = of(&few, &mut results);
    assert!(!report.contains("TLS13\\_AES") && !report.contains("| round |"), "{report}");
}

/// One round has no deviation, and what was not looked at is not told.
#[test]
fn what_is_not_defined_is_not_there() {
    let mut results = compressed();
    results.sections[0].cells = vec![
        with_rounds(cell("nginx", Protocol::H1, 1, 1), &[100.0], 900.0),
        cell("caddy", Protocol::H1, 1, 1),
    ];
    results.settings.rounds = 1;
    let report = markdown(&summarised(results)).expect("a report");
    let over = report.lines().find(|line| line.contains("100.00 %")).expect("the summary of the rounds");
    let places: Vec<&str> = over.split('|').map(str::trim).collect();
    assert_eq!(places[1..9], ["nginx", "1 x 1", "1", "100", "100", "100", "n/a", "100.00 %"]);
    assert!(!report.contains("Answered, before the windows"));
    assert!(report.contains("HTTP/1.1 |"), "cleartext has its version alone: {report}");
}
