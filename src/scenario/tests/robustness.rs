//! Owns the property tests: whatever the text, there is a scenario or one message, never a panic.

use proptest::prelude::*;

use super::*;
use crate::scenario::sections::parse_cell;

/// Pieces that mean something to TOML or to this format.
const PIECES: &[&str] = &[
    "\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\n",
    "0",
    "-1",
    "1e999",
    "0xffffffffffffffffff",
    "nan",
    "\u{0}",
    "\u{e9}",
    "\u{1f600}",
    "\"99999999999x9999999999\"",
    "\"0-4294967295\"",
    "9223372036854775807",
    "format = 1",
    "[run]",
    "[pin]",
    "pin = \"auto\"",
    "[[server]]",
    "[[section]]",
    "use = \"nginx\"",
    "{config}",
    "{",
    "x",
    "'''",
    "1979-05-27",
    "true",
    "\"10x1\"",
    "\"h1s\"",
];

fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0usize..12, prop::sample::select(PIECES));
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text: Vec<char> = FULL.chars().collect();
        for (at, removed, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn a_mutated_scenario_never_panics(text in mutated()) {
        match check_text(&text, &Overrides::default()) {
            Ok(checked) => {
                prop_assert!(!checked.scenario.sections.is_empty());
                prop_assert!(checked.scenario.estimate().total() >= checked.scenario.estimate().load);
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(!error.contains('\n'), "{}", error);
                // A position is in a file of the tree and inside its text.
                let rest = error.strip_prefix("/r/scenarios/a.toml:").or(error
                    .strip_prefix("/r/servers/slip/server.toml:"));
                let line = rest.and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
                prop_assert!(line.is_some_and(|line| line <= text.matches('\n').count() + 1), "{}", error);
            }
        }
    }

    #[test]
    fn cells_read_back(connections in 1u32..=1_000_000, concurrency in 1u32..=1_000_000) {
        let cell = Cell::new(connections, concurrency);
        prop_assert_eq!(parse_cell(&cell.to_string()), Ok(cell));
    }

    #[test]
    fn cpu_lists_read_back(cpus in prop::collection::btree_set(0u32..300, 1..40)) {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        prop_assert_eq!(parse_cpus(&format_cpus(&cpus)), Ok(cpus));
    }

    #[test]
    fn words_of_any_kind_never_panic(text in "\\PC{0,20}") {
        let _ = parse_cell(&text);
        let _ = parse_cpus(&text);
    }
}
