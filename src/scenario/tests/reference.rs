//! Owns the tests that hold `docs/scenarios.md` to the code: keys, defaults of `[run]`, placeholders.

use std::collections::BTreeMap;

use super::*;
use crate::scenario::keys::TABLES;
use crate::units::format_duration;

const REFERENCE: &str = include_str!("../../../docs/scenarios.md");

/// Cells of the first Markdown table below a heading, its head left out; names without backticks.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let mut lines = REFERENCE.lines().skip_while(|line| *line != heading).skip(1);
    let table =
        lines.by_ref().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>()
    };
    table.skip(2).map(cells).collect()
}

#[test]
fn the_reference_lists_every_key_in_order() {
    for table in TABLES {
        let heading = match table.table {
            "the top level" => "## The top level".to_owned(),
            table => format!("## `{table}`"),
        };
        let documented: Vec<String> = rows(&heading).iter().map(|row| row[0].clone()).collect();
        assert_eq!(documented, table.keys, "{heading}");
    }
}

#[test]
fn the_reference_has_the_defaults_of_run() {
    let default = RunSettings::default();
    let optional = |span: Option<Span>| span.map_or("none".to_owned(), format_duration);
    let expected = BTreeMap::from([
        ("rounds", default.rounds.to_string()),
        ("duration", format_duration(default.duration)),
        ("warmup", format_duration(default.warmup)),
        ("drain", format_duration(default.drain)),
        ("settle", format_duration(default.settle)),
        ("timeout", format_duration(default.timeout)),
        ("connect_timeout", format_duration(default.connect_timeout)),
        ("build_deadline", format_duration(default.build_deadline)),
        ("start_deadline", format_duration(default.start_deadline)),
        ("cell_grace", format_duration(default.cell_grace)),
        ("server_deadline", optional(default.server_deadline)),
        ("run_deadline", optional(default.run_deadline)),
        ("percentiles", "[50, 99]".to_owned()),
        ("unstable_above", default.unstable_above.to_string()),
        ("wait", "auto".to_owned()),
        ("socket", "per-connection".to_owned()),
        ("pacing", default.pacing.to_string()),
        ("order", "rotate".to_owned()),
    ]);
    assert_eq!((default.percentiles, default.wait), (vec![50.0, 99.0], WaitMode::Auto));
    assert_eq!((default.socket, default.order), (SocketMode::PerConnection, ServerOrder::Rotate));
    let rows = rows("## `[run]`");
    let documented: BTreeMap<&str, String> =
        rows.iter().map(|row| (row[0].as_str(), row[2].clone())).collect();
    assert_eq!(documented, expected);
}

#[test]
fn the_reference_lists_every_placeholder() {
    let documented: Vec<(String, String)> =
        rows("### Placeholders").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let known: Vec<(String, String)> =
        PLACEHOLDERS.iter().map(|(name, meaning)| (format!("{{{name}}}"), (*meaning).to_owned())).collect();
    assert_eq!(documented, known);
}

#[test]
fn the_example_of_the_reference_is_right() {
    let example = REFERENCE.split("```").nth(1).and_then(|block| block.strip_prefix("toml\n"));
    let scenario = checked(example.expect("the reference begins with an example"));
    assert_eq!(scenario.servers.len(), 2);
}
