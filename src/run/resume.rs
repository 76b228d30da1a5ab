//! Owns what `--resume` may build on: whether an earlier run asked the same question, which of its
//! cells are done, and a journal for a run that only its results file is left of. Pure.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::record;
use super::schedule::{Visit, visits};
use crate::results::store::Entry;
use crate::results::{CellStatus, GateOutcome, GateRecord, Results};
use crate::scenario::{ProbeSpec, Scenario};

/// Refuses to continue `earlier` when `now` asks another question: figures of both would then stand
/// side by side in one table.
///
/// # Errors
/// Names the first difference, and what to do.
pub(crate) fn same_question(earlier: &Results, now: &Results) -> Result<(), String> {
    let difference = if earlier.scenario.text == now.scenario.text {
        difference("", &question(earlier), &question(now))
    } else {
        Some(first_other_line(&earlier.scenario.text, &now.scenario.text))
    };
    difference.map_or(Ok(()), |what| {
        Err(format!("cannot resume: {what}; put it back, or start over without --resume"))
    })
}

/// The visits that need not be made again: those with a measurement.
pub(crate) fn done(scenario: &Scenario, earlier: &Results) -> HashSet<Visit> {
    let measured = |visit: &Visit| {
        let name = &scenario.servers[visit.server].name;
        earlier.sections.get(visit.section).is_some_and(|section| {
            section.cells.iter().any(|cell| {
                cell.server == *name
                    && cell.key() == visit.key()
                    && cell
                        .rounds
                        .iter()
                        .any(|round| round.round == visit.round && round.status == CellStatus::Measured)
            })
        })
    };
    visits(scenario).into_iter().filter(|visit| measured(visit)).collect()
}

/// The probes that are to be run: those without figures.
pub(crate) fn probes_left<'a>(scenario: &'a Scenario, earlier: Option<&Results>) -> Vec<&'a ProbeSpec> {
    let done = |spec: &&ProbeSpec| {
        let probes = earlier.into_iter().flat_map(|results| &results.probes);
        let mut measured = probes.filter(|probe| probe.status == CellStatus::Measured);
        measured.any(|probe| probe.name == spec.name)
    };
    scenario.probes.iter().filter(|spec| !done(spec)).collect()
}

/// What an earlier run's gate of a server said, when it was run.
pub(crate) fn gate(earlier: &Results, server: &str) -> Option<GateRecord> {
    let gate = earlier.servers.iter().find(|record| record.name == server)?.gate.clone();
    gate.filter(|gate| gate.outcome != GateOutcome::NotRun)
}

/// A journal that folds into `results` again.
pub(crate) fn journal_of(results: &Results) -> Vec<Entry> {
    let mut plan = results.clone();
    for session in &mut plan.sessions {
        // The order is folded from the starts.
        session.order.clear();
    }
    for server in &mut plan.servers {
        server.starts.clear();
    }
    for cell in plan.sections.iter_mut().flat_map(|section| &mut section.cells) {
        cell.rounds.clear();
    }
    let sessions = std::mem::take(&mut plan.sessions);
    let mut entries = Vec::new();
    for (number, session) in sessions.into_iter().enumerate() {
        let finished_at = session.finished_at.clone();
        entries.push(Entry::Plan(Box::new(Results { sessions: vec![session], ..plan.clone() })));
        entries.extend(outcomes_of(results, record::index(number)));
        entries.extend(finished_at.map(|at| Entry::Finished { at }));
    }
    entries
}

/// Starts and rounds of one session. A cell that has no outcome but that its server is unavailable
/// gets it from the server's record.
fn outcomes_of(results: &Results, session: u32) -> Vec<Entry> {
    let mut entries = Vec::new();
    for server in &results.servers {
        for start in server.starts.iter().filter(|start| start.session == session) {
            entries.push(Entry::Start { server: server.name.clone(), start: start.clone() });
        }
    }
    // Starts are kept by server; the order they were made in is round, section, and then as told.
    let order = results.sessions.get(session as usize).map_or(&[][..], |session| &session.order);
    let mut told: Vec<&str> = order.iter().map(String::as_str).collect();
    entries.sort_by_cached_key(|entry| match entry {
        Entry::Start { server, start } => {
            let name = format!("{} / {} / {server}", start.round, start.section + 1);
            let place = told.iter().position(|told| *told == name);
            if let Some(place) = place {
                told[place] = "";
            }
            place.unwrap_or(usize::MAX)
        }
        _ => usize::MAX,
    });
    for (section, record) in results.sections.iter().enumerate() {
        for cell in &record.cells {
            let unavailable = results
                .servers
                .iter()
                .any(|server| server.name == cell.server && server.unavailable.is_some());
            for round in cell.rounds.iter().filter(|round| round.session == session) {
                if unavailable && round.status != CellStatus::Measured {
                    continue;
                }
                entries.push(Entry::Round {
                    section: record::index(section),
                    server: cell.server.clone(),
                    protocol: cell.protocol,
                    connections: cell.connections,
                    concurrency: cell.concurrency,
                    resumption: cell.resumption,
                    requests_per_connection: cell.requests_per_connection,
                    generator: cell.generator,
                    round: Box::new(round.clone()),
                });
            }
        }
    }
    entries
}

/// All that decides what is measured and how, by names a user knows.
fn question(results: &Results) -> Value {
    let servers: Vec<Value> = results
        .servers
        .iter()
        .map(
            |server| json!({ "name": server.name, "command": server.command, "protocols": server.protocols }),
        )
        .collect();
    let sections: Vec<Value> = results
        .sections
        .iter()
        .map(|section| {
            let cell = |cell: &crate::results::CellRecord| json!([cell.server, cell.key().to_string()]);
            let cells: Vec<Value> = section.cells.iter().map(cell).collect();
            json!({ "title": section.title, "kind": section.kind, "cells": cells })
        })
        .collect();
    json!({
        "version": results.tool,
        "overrides": results.overrides,
        "settings": results.settings,
        "servers": servers,
        "sections": sections,
    })
}

/// The first place where two values differ, with both values.
fn difference(place: &str, earlier: &Value, now: &Value) -> Option<String> {
    let told = |earlier: &Value, now: &Value| Some(format!("`{place}` was {earlier} and is now {now}"));
    match (earlier, now) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => a.iter().find_map(|(key, value)| {
            let dot = if place.is_empty() { "" } else { "." };
            difference(&format!("{place}{dot}{key}"), value, &b[key])
        }),
        // Lists that are phrases or numbers read best as a whole.
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() && a.iter().any(Value::is_object) => {
            a.iter().zip(b).enumerate().find_map(|(i, (a, b))| difference(&format!("{place}[{i}]"), a, b))
        }
        (a, b) if a == b => None,
        (a, b) => told(a, b),
    }
}

fn first_other_line(earlier: &str, now: &str) -> String {
    let same = earlier.lines().zip(now.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("").trim().to_owned();
    format!(
        "the scenario file has changed: line {} was `{}` and is now `{}`",
        same + 1,
        line(earlier),
        line(now)
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::results::{Protocol, Resumption, RoundRecord, StartRecord, store};
    use crate::run::fixture;
    use crate::run::record::{session, without_measurement};
    use crate::run::schedule::{self, Start};
    use crate::scenario::Cell;

    type Change<'a> = &'a dyn Fn(&mut Results);

    fn scenario() -> Scenario {
        let sections: [&[Protocol]; 2] = [&[Protocol::H1], &[Protocol::H1s, Protocol::H3]];
        let mut scenario = fixture::scenario(3, &["a", "b"], &sections, &[1, 10]);
        // Cells of one size, told apart by what becomes of their connections.
        scenario.sections[1].cells = [Resumption::Off, Resumption::Ticket]
            .map(|resumption| Cell { resumption, requests_per_connection: Some(1), ..Cell::new(1, 1) })
            .to_vec();
        scenario
    }

    fn plan(scenario: &Scenario) -> Results {
        record::results(scenario, session(vec![], fixture::environment(), "2026-01-31T09:30:00Z".into()))
    }

    #[test]
    fn another_question_is_refused_and_the_difference_named() {
        let scenario = scenario();
        let earlier = plan(&scenario);
        assert_eq!(same_question(&earlier, &earlier), Ok(()));
        let changes: [(Change<'_>, &str); 6] = [
            (&|r| r.scenario.text += "x = 1\n", "line 3 was `` and is now `x = 1`"),
            (&|r| r.settings.rounds = 5, "`settings.rounds` was 3 and is now 5"),
            (&|r| r.tool = "bench 9.9.9".into(), "is now \"bench 9.9.9\""),
            (
                &|r| r.overrides = vec!["rounds = 1 (scenario: 3)".into()],
                "`overrides` was [] and is now [\"rounds = 1 (scenario: 3)\"]",
            ),
            (
                &|r| r.servers[1].command = vec!["c".into()],
                "`servers[1].command` was [\"b\"] and is now [\"c\"]",
            ),
            (&|r| r.sections[1].title = "T".into(), "`sections[1].title` was \"Section 2\" and is now \"T\""),
        ];
        for (change, what) in changes {
            let mut now = earlier.clone();
            change(&mut now);
            let error = same_question(&earlier, &now).unwrap_err();
            assert!(error.contains(what) && error.contains("without --resume"), "{error}");
        }
    }

    #[test]
    fn where_and_when_it_ran_is_not_the_question() {
        let earlier = plan(&scenario());
        let mut now = earlier.clone();
        now.sessions[0].started_at = "later".into();
        now.servers[0].version = Some("1.2".into());
        assert_eq!(same_question(&earlier, &now), Ok(()));
    }

    /// A journal in which every visit up to `until` has the outcome that `status` gives it.
    fn journal(scenario: &Scenario, until: usize, status: impl Fn(usize) -> CellStatus) -> Vec<Entry> {
        let mut entries = vec![Entry::Plan(Box::new(plan(scenario)))];
        let starts = schedule::starts(scenario, &|_| true);
        let mut number = 0;
        for start in &starts {
            for visit in start.visits() {
                if number < until {
                    entries.push(record::entry(scenario, &visit, outcome(&visit, status(number))));
                }
                number += 1;
            }
            if number <= until {
                entries.push(started(scenario, start));
            }
        }
        entries
    }

    fn outcome(visit: &Visit, status: CellStatus) -> RoundRecord {
        if status == CellStatus::Measured {
            let mut round = without_measurement(visit, 0, status, String::new(), vec![]);
            round.measurement = Some(fixture::measurement(9));
            round.reason = None;
            return round;
        }
        without_measurement(visit, 0, status, "a reason".into(), vec!["a line".into()])
    }

    fn started(scenario: &Scenario, start: &Start) -> Entry {
        Entry::Start {
            server: scenario.servers[start.server].name.clone(),
            start: StartRecord {
                session: 0,
                round: start.round,
                section: record::index(start.section),
                ready_ms: Some(1.0),
                stop_ms: Some(2.0),
                killed: false,
                problem: None,
            },
        }
    }

    fn status(number: usize) -> CellStatus {
        [CellStatus::Measured, CellStatus::Failed, CellStatus::Interrupted][number % 3]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Resuming skips exactly the measured visits, wherever the earlier run was cut.
        #[test]
        fn exactly_the_measured_visits_are_skipped(until in 0usize..40) {
            let scenario = scenario();
            let earlier = store::assemble(&journal(&scenario, until, status)).unwrap();
            let done = done(&scenario, &earlier);
            let order: Vec<Visit> =
                schedule::starts(&scenario, &|_| true).iter().flat_map(Start::visits).collect();
            for (number, visit) in order.iter().enumerate() {
                let measured = number < until && status(number) == CellStatus::Measured;
                prop_assert_eq!(done.contains(visit), measured, "visit {}", number);
            }
            let left = schedule::starts(&scenario, &|visit| !done.contains(visit));
            prop_assert!(left.iter().flat_map(Start::visits).all(|visit| !done.contains(&visit)));
        }

        /// A results file is as good as the journal it came from.
        #[test]
        fn a_journal_made_from_results_folds_into_them(until in 0usize..40) {
            let scenario = scenario();
            let mut entries = journal(&scenario, until, status);
            entries.push(Entry::Finished { at: "2026-01-31T09:40:00Z".into() });
            entries.push(Entry::Plan(Box::new(plan(&scenario))));
            let results = store::assemble(&entries).unwrap();
            prop_assert_eq!(store::assemble(&journal_of(&results)).unwrap(), results);
        }
    }
}
