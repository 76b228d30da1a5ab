//! Owns the tests of how a comparison is shown: whole ones as snapshots, cut ones, foreign strings.

use bench::compare::gate::Limits;
use bench::compare::{self, Options};
use bench::report::diff::{Diff, Report, Room, json, markdown, terminal};
use bench::results::*;
use proptest::prelude::*;

use crate::build::{self, cell, lost_round, section};
use crate::fixture::{diff, diff_of, run, scaled, summarised};

/// Two runs with everything that can come of a comparison.
fn odd() -> Diff {
    let base = odd_run(run(1.0));
    let mut head = odd_run(scaled(run(0.999), &|server| match server {
        "rust" => 0.9,
        "go" => 1.08,
        _ => 1.0,
    }));
    let plaintext = &mut head.sections[0].cells;
    // Unstable on the head alone.
    let rates: Vec<f64> = (0..10).map(|n| if n % 2 == 0 { 8_000.0 } else { 6_000.0 }).collect();
    plaintext[4] = build::with_rounds(plaintext[4].clone(), &rates, 120.0);
    plaintext[5].rounds =
        (1..=10).map(|n| lost_round(n, CellStatus::Failed, "the server ended", &[])).collect();
    head.sections[1].cells.remove(0);
    head.sections[1].cells.push(cell_of("go", Protocol::H1s, 10, 4_000.0));
    head.sessions[0].started_at = "2026-12-01T12:00:00Z".into();
    head.sessions[0].environment.commit = Some("fedcba9876543210fedcba9876543210fedcba98-dirty".into());
    let mut diff = diff(&base, &summarised(head), &Options::default());
    diff.missing = vec!["HTTP2_RESULTS.json".into()];
    diff.new = vec!["HTTP3_RESULTS.json".into()];
    diff.limits = Some(Limits::parse(&["5%", "p99=50%"]).unwrap());
    diff
}

fn odd_run(mut results: Results) -> Results {
    let cells = vec![cell_of("rust", Protocol::H1s, 1, 3_000.0), cell_of("go", Protocol::H1s, 1, 2_000.0)];
    results.sections.push(section("TLS | <b>1.3</b>", SectionKind::ClosedLoop, cells));
    summarised(results)
}

fn cell_of(server: &str, protocol: Protocol, c: u32, rate: f64) -> CellRecord {
    let rates: Vec<f64> = (0..10).map(|n| rate * (1.0 + 0.002 * f64::from(n))).collect();
    build::with_rounds(cell(server, protocol, c, 1), &rates, f64::from(c) * 0.98e6 / rate)
}

#[test]
fn markdown_with_every_outcome() {
    insta::assert_snapshot!(markdown(&odd(), None, "").unwrap());
}

#[test]
fn a_terminal_with_every_outcome() {
    insta::assert_snapshot!(terminal(&odd(), 80, false));
}

#[test]
fn markdown_of_sides_that_cannot_be_compared() {
    let mut head = run(0.9);
    head.settings.duration_s = 5.0;
    head.sessions[0].environment.cpu = "Other | CPU".into();
    let whole = diff(&run(1.0), &head, &Options::default());
    insta::assert_snapshot!(markdown(&whole, None, "").unwrap());
    let forced = Diff { forced: true, ..whole };
    let text = markdown(&forced, None, "").unwrap();
    assert!(
        text.contains("so the figures below have no verdicts") && !text.contains("<details><summary>Cannot"),
        "{text}"
    );
}

#[test]
fn colour_adds_nothing_but_colour() {
    let odd = odd();
    let (plain, coloured) = (terminal(&odd, 80, false), terminal(&odd, 80, true));
    assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let mut stripped = String::new();
    for (i, part) in coloured.split('\u{1b}').enumerate() {
        let rest = if i == 0 { part } else { part.split_once('m').expect("a sequence ends in m").1 };
        stripped.push_str(rest);
    }
    assert_eq!(stripped, plain);
}

#[test]
fn tables_fit_the_terminal() {
    let odd = odd();
    for width in [60, 80, 100, 200] {
        let text = terminal(&odd, width, false);
        let tables =
            text.lines().filter(|line| ["req/s", "p50 (ms)", "Figure"].iter().any(|f| line.contains(f)));
        let rows: Vec<&str> = tables.filter(|line| line.trim_start().contains("  ")).collect();
        assert!(rows.len() > 10, "{text}");
        for line in rows {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    // However narrow, it is printed.
    terminal(&odd, 0, true);
}

/// Case (g): 600 cells.
#[test]
fn a_long_comparison_is_cut_to_what_the_platform_takes() {
    let long = |factor: f64| {
        let mut diff = diff(&run(1.0), &run(factor), &Options::default());
        let cells = &mut diff.reports[0].comparison.cells;
        *cells = cells.iter().cycle().take(600).cloned().collect();
        for (number, cell) in cells.iter_mut().enumerate() {
            cell.name.cell = format!("h1 {number}x1");
        }
        diff
    };
    let (same, worse) = (long(1.0001), long(0.8));
    for (diff, room) in [
        (&same, Room::Comment),
        (&worse, Room::Comment),
        (&many(&worse, 5), Room::Comment),
        (&many(&worse, 12), Room::Summary),
        (&many(&diff_of_nothing(), 3_000), Room::Comment),
    ] {
        let (length, limit): (fn(&str) -> usize, usize) = match room {
            Room::Comment => (|text| text.chars().count(), 65_536),
            Room::Summary => (str::len, 1 << 20),
        };
        let whole = markdown(diff, None, "").unwrap();
        assert!(length(&whole) >= limit, "the case is no case");
        let text = markdown(diff, Some(room), "https://example.invalid/whole.md").unwrap();
        assert!(length(&text) < limit, "{}", length(&text));
        assert!(text.contains("https://example.invalid/whole.md"));
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert_eq!(text, markdown(diff, Some(room), "https://example.invalid/whole.md").unwrap());
    }
    let cut = markdown(&worse, Some(Room::Comment), "x").unwrap();
    assert!(length_is_used(&cut), "room is left for rows: {}", cut.chars().count());
    assert!(cut.contains("rows are shown") && cut.contains("### Worse ("), "the worst come first");
    // What fits is not cut.
    let short = odd();
    assert_eq!(markdown(&short, Some(Room::Comment), "x"), markdown(&short, None, "x"));
}

fn length_is_used(text: &str) -> bool {
    text.chars().count() > 60_000
}

fn many(diff: &Diff, count: usize) -> Diff {
    let report = &diff.reports[0];
    let reports =
        (0..count).map(|n| Report { file: format!("{n}.json"), comparison: report.comparison.clone() });
    Diff { reports: reports.collect(), ..diff.clone() }
}

fn diff_of_nothing() -> Diff {
    let empty = build::empty();
    diff_of(compare::runs(("a", &empty), ("b", &empty), &Options::default()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever figures and names there are: no crash, and no figure that is none.
    #[test]
    fn no_figure_is_ever_nan(
        rates in prop::collection::vec(prop_oneof![Just(0.0), Just(1e-9), 0.0..1e9f64, Just(1e15)], 8),
        split in 0usize..8,
        label in "\\PC{0,20}|[|`<>*\n\u{1b}]{0,8}",
    ) {
        let with = |rates: &[f64]| {
            let mut results = build::empty();
            results.servers = vec![build::server("rust", &label, "1")];
            let mut cell = build::with_rounds(cell("rust", Protocol::H1, 1, 1), rates, 100.0);
            for (round, rate) in cell.rounds.iter_mut().zip(rates) {
                round.server.as_mut().unwrap().cpu_us_per_request = Some(*rate);
                round.measurement.as_mut().unwrap().requests_per_second = Some(*rate);
            }
            results.sections = vec![section(&label, SectionKind::ClosedLoop, vec![cell])];
            summarised(results)
        };
        let mut diff = diff(&with(&rates[..split]), &with(&rates[split..]), &Options::default());
        diff.limits = Some(Limits::parse(&["0%"]).unwrap());
        let texts = [markdown(&diff, None, "").unwrap(), terminal(&diff, 80, false), json(&diff)];
        for text in texts {
            let lower = text.to_lowercase().replace(&label.to_lowercase(), "");
            prop_assert!(!lower.contains("nan") && !lower.contains(" inf"), "{}", text);
        }
    }
}
