//! Owns the tests of what a report says of variants: worker threads of their own, revisions, the order.

#[path = "common/results.rs"]
mod build;

use bench::report::{markdown, terminal};
use bench::results::{Protocol, Results, SectionKind, ServerOrder, VariantRecord};
use build::{cell, empty, measured, section, server, summarised};

/// Two variants of one server, the second the slower one, with these numbers of worker threads.
fn two(workers: [Option<u32>; 2]) -> Results {
    let mut results = empty();
    let of = |label: &str, workers| {
        let mut record = server(&format!("rust-{label}"), &format!("Rust, {label}"), "1.0");
        record.variant = Some(VariantRecord { of: "rust".into(), label: label.into() });
        record.workers = workers;
        record
    };
    results.servers = vec![of("one", workers[0]), of("two", workers[1])];
    let of = |server: &str, rate| measured(cell(server, Protocol::H1, 10, 1), rate, 1e7 / rate);
    let cells = vec![of("rust-one", 20_000.0), of("rust-two", 10_000.0)];
    results.sections = vec![section("Plain", SectionKind::ClosedLoop, cells)];
    summarised(results)
}

/// How many of both servers are best in a measure of the report's first table.
fn best(report: &str, measure: &str) -> usize {
    let rows = report.lines().skip_while(|line| !line.starts_with(&format!("| **{measure}**"))).take(2);
    let places: Vec<&str> = rows.filter_map(|row| row.rsplit('|').nth(1)).collect();
    assert_eq!(places.len(), 2, "{report}");
    places.iter().filter(|place| place.contains("**")).count()
}

#[test]
fn cpu_per_request_is_best_among_equal_numbers_of_workers_only() {
    for (workers, equal, told) in [
        ([None, None], true, "| Worker threads | 2 per server; generator 2 |"),
        ([Some(2), None], true, "| Worker threads | 2 per server; generator 2 |"),
        (
            [Some(4), Some(4)],
            true,
            "| Worker threads | 2 per server, but Rust, one 4, Rust, two 4; generator 2 |",
        ),
        ([Some(1), None], false, "| Worker threads | 2 per server, but Rust, one 1; generator 2 |"),
        (
            [Some(1), Some(4)],
            false,
            "| Worker threads | 2 per server, but Rust, one 1, Rust, two 4; generator 2 |",
        ),
    ] {
        let results = two(workers);
        let report = markdown(&results).expect("the template is there");
        let squeezed = report.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(told), "{workers:?}: {squeezed}");
        assert_eq!(best(&report, "req/s"), 1, "other figures are compared: {report}");
        assert_eq!(best(&report, "CPU µs/req") > 0, equal, "{workers:?}: {report}");
        assert_eq!(report.contains("unequal numbers of worker threads"), !equal, "{workers:?}");
        // The terminal marks what is best with a star.
        let shown = terminal(&results, 100);
        let cpu =
            shown.lines().skip_while(|line| !line.starts_with("CPU")).take(2).any(|line| line.contains('*'));
        assert_eq!(cpu, equal, "{workers:?}: {shown}");
    }
}

/// Equal rates are told apart by CPU per request, where that can be compared.
#[test]
fn ties_are_not_broken_by_cpu_across_unequal_numbers_of_workers() {
    for (workers, told) in [([None, None], true), ([Some(1), None], false)] {
        let mut results = two(workers);
        let same = |server: &str| measured(cell(server, Protocol::H1, 10, 1), 20_000.0, 500.0);
        results.sections[0].cells = vec![same("rust-one"), same("rust-two")];
        let report = markdown(&summarised(results)).expect("the template is there");
        assert_eq!(report.contains("in order of CPU µs per request"), told, "{report}");
        assert_eq!(best(&report, "req/s"), 2, "{report}");
    }
}

#[test]
fn a_revision_and_the_order_are_told() {
    let mut results = two([None, None]);
    results.servers[0].revision = Some("0123abc".into());
    results.settings.order = ServerOrder::Abba;
    let report = markdown(&results).expect("the template is there");
    assert!(report.contains("1.0, built from commit 0123abc"), "{report}");
    assert!(report.contains("every second round goes back the way of the one before it"), "{report}");
}
