//! Owns the tests of what the command line changes, and of the phrases that record it.

use proptest::prelude::*;

use super::*;
use crate::units::{format_duration, parse_duration};

fn with(change: impl FnOnce(&mut Overrides)) -> Result<Scenario, String> {
    let mut overrides = Overrides::default();
    change(&mut overrides);
    check_text(FULL, &overrides).map(|checked| checked.scenario).map_err(|error| error.to_string())
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn narrowing_keeps_what_is_named_and_says_so() {
    let scenario = with(|o| {
        o.servers = words(&["NGINX, warm"]);
        o.sections = words(&["3", "plain"]);
        o.cells = words(&["50x1"]);
    })
    .unwrap();
    let names: Vec<_> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
    let titles: Vec<_> = scenario.sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!((names, titles), (vec!["nginx"], vec!["Plaintext"]));
    assert_eq!(scenario.sections[0].cells, [Cell::new(50, 1)]);
    assert_eq!(
        scenario.overrides,
        [
            "servers = nginx (scenario: nginx, own)",
            "sections = \"Plaintext\", \"Set-up\" (scenario: \"Plaintext\", \"TLS\", \"Set-up\")",
            "cells = 50x1 (scenario: 1x1, 50x1, 20x1)",
        ]
    );
}

#[test]
fn what_the_scenario_does_not_have_is_named_with_what_it_has() {
    for (result, message) in [
        (
            with(|o| o.servers = words(&["ngnix"])),
            "--server ngnix: not in the scenario; did you mean `nginx`? it has nginx, own",
        ),
        (
            with(|o| o.sections = words(&["4"])),
            "--section 4: not in the scenario; it has 1 (Plaintext), 2 (TLS), 3 (Set-up)",
        ),
        (
            with(|o| o.sections = words(&[""])),
            "--section : not in the scenario; it has 1 (Plaintext), 2 (TLS), 3 (Set-up)",
        ),
        (
            with(|o| o.cells = words(&["9x9"])),
            "--cell 9x9: not in the scenario; it has 1x1, 50x1, 10x1, 20x1",
        ),
        (
            with(|o| o.cells = words(&["9"])),
            "--cell 9: `9` is not a cell; write connections x requests on each, like `9x1`",
        ),
        (
            with(|o| {
                o.servers = words(&["own"]);
                o.sections = words(&["TLS"]);
            }),
            "no server left by --server speaks the protocols of a section left by --section or --cell; widen \
             one of them",
        ),
        (with(|o| o.rounds = Some(0)), "--rounds: 0 rounds; write 1 to 1000"),
        (
            with(|o| o.duration = Some(Span::ZERO)),
            "--duration: no time at all; write a duration above zero, like `10s`",
        ),
    ] {
        assert_eq!(result.map(|_| ()).unwrap_err(), message);
    }
}

#[test]
fn a_server_with_half_of_a_ratio_leaves_nothing() {
    let ratio = "[[section]]\ntitle = \"r\"\nkind = \"ratio\"\nprotocols = [\"h2c\", \"h1\"]\ncells = [\"1x1\", \"9x1\"]\n";
    let servers = [server("both", "[\"h1\", \"h2c\"]"), server("new", "[\"h2c\"]")].concat();
    let with = |server: &str| {
        let overrides =
            Overrides { servers: words(&[server]), cells: words(&["9x1"]), ..Overrides::default() };
        check_text(&text("", &servers, ratio), &overrides)
    };
    let left = with("both").unwrap().scenario;
    assert_eq!((left.sections[0].protocols.len(), left.sections[0].cells.len()), (2, 1));
    assert!(
        with("new").unwrap_err().to_string().starts_with("no server left by --server speaks the protocols")
    );
}

#[test]
fn times_are_replaced_where_the_scenario_has_them() {
    let second = Span::from_secs(1);
    let scenario = with(|o| {
        o.rounds = Some(1);
        o.duration = Some(second);
        o.warmup = Some(Span::from_millis(100));
    })
    .unwrap();
    assert_eq!((scenario.run.rounds, scenario.run.duration), (1, second));
    let limits: Vec<_> = scenario.sections.iter().map(|section| section.limit).collect();
    assert_eq!(
        limits,
        [SectionLimit::Duration(second), SectionLimit::Requests(1000), SectionLimit::Requests(100)]
    );
    let warmups: Vec<_> = scenario.sections.iter().map(|section| section.warmup).collect();
    assert_eq!(warmups, [Span::from_millis(100), Span::from_millis(100), Span::ZERO]);
    assert_eq!(
        scenario.overrides,
        [
            "rounds = 1 (scenario: 5)",
            "duration = 1s (scenario: 1m)",
            "warmup = 100ms (scenario: 0s)",
            "warmup of \"TLS\" = 100ms (scenario: 1s)",
        ]
    );
}

#[test]
fn an_override_that_changes_nothing_is_not_recorded() {
    let scenario = with(|o| {
        o.rounds = Some(5);
        o.duration = Some(Span::from_secs(60));
        o.servers = words(&["own", "nginx"]);
    });
    assert_eq!(scenario.unwrap().overrides, Vec::<String>::new());
}

/// The values of a phrase `key = now (scenario: before)`.
fn values<'a>(phrases: &'a [String], key: &str) -> Option<(&'a str, &'a str)> {
    let phrase = phrases.iter().find_map(|phrase| phrase.strip_prefix(key)?.strip_prefix(" = "))?;
    phrase.strip_suffix(')')?.split_once(" (scenario: ")
}

proptest! {
    #[test]
    fn phrases_read_back_as_the_values_in_force(
        rounds in 1u32..=1000,
        duration in 1u64..100_000,
        warmup in 0u64..100_000,
    ) {
        let (duration, warmup) = (Span::from_millis(duration), Span::from_millis(warmup));
        let scenario = with(|o| {
            o.rounds = Some(rounds);
            o.duration = Some(duration);
            o.warmup = Some(warmup);
        }).unwrap();
        for (key, now, before) in [
            ("rounds", rounds.to_string(), "5".to_owned()),
            ("duration", format_duration(duration), "1m".to_owned()),
            ("warmup", format_duration(warmup), "0s".to_owned()),
        ] {
            match values(&scenario.overrides, key) {
                Some((phrase_now, phrase_before)) => {
                    prop_assert_eq!(phrase_now, now.as_str());
                    prop_assert_eq!(phrase_before, before.as_str());
                    prop_assert_ne!(now, before);
                }
                None => prop_assert_eq!(now, before),
            }
        }
        prop_assert_eq!(scenario.sections[0].limit, SectionLimit::Duration(duration));
        if let Some((now, _)) = values(&scenario.overrides, "duration") {
            prop_assert_eq!(parse_duration(now), Ok(duration));
        }
    }
}
