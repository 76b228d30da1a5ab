//! Owns the tests of the runs table: every round as a row, and what servers answered to the section's headers.

#[path = "common/results.rs"]
mod build;
#[path = "common/results_runs.rs"]
mod runs;

use bench::report::markdown;
use bench::results::*;
use build::{cell, summarised, with_rounds};
use runs::compressed;

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
