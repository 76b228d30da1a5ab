//! Owns the order of a run: which server is started when, and which cells it then answers. Pure.
//!
//! Rounds are the outermost loop and servers are rotated from round to round (A, B, C; then B, C, A;
//! ...), so that a drift of the machine is shared by all servers instead of being charged to the
//! one that always runs last. Where two servers are compared pair by pair, every second round goes back
//! the way of the one before it (A, B; B, A): a steady drift then adds the same to both.

use super::record;
use crate::results::{CellKey, Protocol, SectionKind, ServerOrder};
use crate::scenario::{Cell, Scenario, Section, SectionLimit};
use crate::time::Span;

/// One cell of one server in one round: the unit that is measured, recorded and resumed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Visit {
    /// Round, from 1.
    pub(crate) round: u32,
    /// Index into the scenario's sections.
    pub(crate) section: usize,
    /// Index into the scenario's servers.
    pub(crate) server: usize,
    /// Protocol driven.
    pub(crate) protocol: Protocol,
    /// C x M.
    pub(crate) cell: Cell,
}

impl Visit {
    /// What it asks for, as the results tell cells apart.
    pub(crate) fn key(&self) -> CellKey {
        let Cell { connections, concurrency, resumption, requests_per_connection, generator } = self.cell;
        CellKey {
            protocol: self.protocol,
            connections,
            concurrency,
            resumption,
            requests_per_connection,
            generator: generator.map(record::index),
        }
    }
}

/// One fresh start of a server, and the cells measured before it is stopped again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    /// Round, from 1.
    pub(crate) round: u32,
    /// Index into the scenario's sections.
    pub(crate) section: usize,
    /// Index into the scenario's servers.
    pub(crate) server: usize,
    /// Protocol driven, and the one its readiness is judged by.
    pub(crate) protocol: Protocol,
    /// Cells in the section's order; never empty.
    pub(crate) cells: Vec<Cell>,
}

impl Start {
    /// Its cells as visits.
    pub(crate) fn visits(&self) -> impl Iterator<Item = Visit> + '_ {
        self.cells.iter().map(|&cell| Visit {
            round: self.round,
            section: self.section,
            server: self.server,
            protocol: self.protocol,
            cell,
        })
    }
}

/// Every start of the run in order, with the cells for which `wanted` holds. Starts without such a
/// cell are left out, so a server that is absent or done is never started.
pub(crate) fn starts(scenario: &Scenario, wanted: &dyn Fn(&Visit) -> bool) -> Vec<Start> {
    let mut starts = Vec::new();
    for round in 1..=scenario.run.rounds {
        for (index, section) in scenario.sections.iter().enumerate() {
            let takes_part = |server: &usize| section.takes_part(&scenario.servers[*server]);
            for server in servers(scenario, round).into_iter().filter(takes_part) {
                for protocol in protocols(section, round) {
                    let mut start = Start {
                        round,
                        section: index,
                        server,
                        protocol,
                        cells: in_turn(section, section.cells_of(protocol).collect(), round),
                    };
                    let cells = start.visits().filter(wanted).map(|visit| visit.cell).collect();
                    start.cells = cells;
                    if !start.cells.is_empty() {
                        starts.push(start);
                    }
                }
            }
        }
    }
    starts
}

/// Every visit of the scenario, in no order that matters.
pub(crate) fn visits(scenario: &Scenario) -> Vec<Visit> {
    starts(scenario, &|_| true).iter().flat_map(Start::visits).collect()
}

/// The load of one cell that the scenario asks for: warm-up and window. `None` for the window of a
/// count, whose length only the server decides.
pub(crate) fn asked(section: &Section) -> (Span, Option<Span>) {
    match section.limit {
        SectionLimit::Duration(window) => (section.warmup, Some(window)),
        SectionLimit::Requests(_) => (section.warmup, None),
    }
}

/// The servers in the order of a round.
fn servers(scenario: &Scenario, round: u32) -> Vec<usize> {
    let count = scenario.servers.len();
    match scenario.run.order {
        ServerOrder::Rotate => rotated(count, round).collect(),
        ServerOrder::Abba => {
            // Each pair of rounds begins one server further, there and back.
            let mut servers: Vec<usize> = rotated(count, round.div_ceil(2)).collect();
            if round.is_multiple_of(2) {
                servers.reverse();
            }
            servers
        }
    }
}

/// The protocols of a section in the order of a round. A ratio compares them with each other, so they
/// take turns in being first.
fn protocols(section: &Section, round: u32) -> impl Iterator<Item = Protocol> + '_ {
    let turn = if section.kind == SectionKind::Ratio { round } else { 1 };
    rotated(section.protocols.len(), turn).map(|index| section.protocols[index])
}

/// The cells of a start in the order of a round. Where several generators drive each of them, those of one
/// cell come one after the other, and take turns in being first.
fn in_turn(section: &Section, mut cells: Vec<Cell>, round: u32) -> Vec<Cell> {
    if section.kind == SectionKind::Generators {
        let one = |a: &Cell, b: &Cell| Cell { generator: b.generator, ..*a } == *b;
        for generators in cells.chunk_by_mut(one) {
            let first = (round as usize).saturating_sub(1) % generators.len();
            generators.rotate_left(first);
        }
    }
    cells
}

/// Indices `0..count`, beginning one further in each round.
fn rotated(count: usize, round: u32) -> impl Iterator<Item = usize> {
    let first = (round as usize).saturating_sub(1);
    (0..count).map(move |i| (first + i) % count)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::run::fixture;

    #[test]
    fn servers_rotate_from_round_to_round() {
        let scenario = fixture::scenario(3, &["a", "b", "c"], &[&[Protocol::H1]], &[1]);
        let order: Vec<_> =
            starts(&scenario, &|_| true).iter().map(|start| (start.round, start.server)).collect();
        assert_eq!(order, [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 0), (3, 2), (3, 0), (3, 1)]);
    }

    #[test]
    fn there_and_back_again() {
        for (names, expected) in [
            (&["a", "b"][..], &[[0, 1], [1, 0], [1, 0], [0, 1]].concat()),
            (&["a", "b", "c"], &[[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]].concat()),
        ] {
            let mut scenario = fixture::scenario(4, names, &[&[Protocol::H1]], &[1]);
            scenario.run.order = ServerOrder::Abba;
            let order: Vec<usize> = starts(&scenario, &|_| true).iter().map(|start| start.server).collect();
            assert_eq!(order, *expected);
        }
    }

    #[test]
    fn a_section_comes_after_the_one_before_it_in_each_round() {
        let scenario = fixture::scenario(2, &["a"], &[&[Protocol::H1, Protocol::H1s], &[Protocol::H1]], &[1]);
        let order: Vec<_> = starts(&scenario, &|_| true)
            .iter()
            .map(|start| (start.round, start.section, start.protocol))
            .collect();
        let round = |n| [(n, 0, Protocol::H1), (n, 0, Protocol::H1s), (n, 1, Protocol::H1)];
        assert_eq!(order, [round(1), round(2)].concat());
    }

    #[test]
    fn the_protocols_of_a_ratio_take_turns() {
        use Protocol::{H1, H2c};
        let mut scenario = fixture::scenario(3, &["a"], &[&[H2c, H1], &[H2c, H1]], &[1]);
        scenario.sections[0].kind = SectionKind::Ratio;
        let order = |section| -> Vec<Protocol> {
            let all = starts(&scenario, &|_| true);
            all.iter().filter(|start| start.section == section).map(|start| start.protocol).collect()
        };
        assert_eq!(order(0), [H2c, H1, H1, H2c, H2c, H1]);
        assert_eq!(order(1), [H2c, H1, H2c, H1, H2c, H1]);
    }

    #[test]
    fn generators_take_turns_in_being_first_on_each_cell() {
        let mut scenario = fixture::scenario(3, &["a", "mute"], &[&[Protocol::H1]], &[1, 10]);
        scenario.servers[1].protocols = vec![Protocol::H3];
        let section = &mut scenario.sections[0];
        section.kind = SectionKind::Generators;
        section.cells = [1, 10]
            .into_iter()
            .flat_map(|c| (0..3).map(move |generator| Cell { generator: Some(generator), ..Cell::new(c, 1) }))
            .collect();
        let orders: Vec<String> = starts(&scenario, &|_| true)
            .iter()
            .map(|start| {
                assert_eq!(start.server, 0, "the other one has no part in it");
                let name = |cell: &Cell| format!("{}:{}", cell.connections, cell.generator.unwrap());
                start.cells.iter().map(name).collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(
            orders,
            ["1:0 1:1 1:2 10:0 10:1 10:2", "1:1 1:2 1:0 10:1 10:2 10:0", "1:2 1:0 1:1 10:2 10:0 10:1"]
        );
    }

    proptest! {
        /// Of any two servers each comes first equally often, and a drift that is the same from start to
        /// start adds the same to all of them; over enough rounds each server begins as often as another.
        #[test]
        fn no_side_of_an_abba_order_is_favoured(servers in 1usize..6, pairs in 1u32..8) {
            let names: Vec<String> = (0..servers).map(|i| format!("s{i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut scenario = fixture::scenario(2 * pairs, &names, &[&[Protocol::H1]], &[1]);
            scenario.run.order = ServerOrder::Abba;
            let order: Vec<usize> = starts(&scenario, &|_| true).iter().map(|start| start.server).collect();
            let rounds: Vec<&[usize]> = order.chunks(servers).collect();
            let place = |round: &[usize], server| round.iter().position(|other| *other == server);
            for a in 0..servers {
                for b in (0..servers).filter(|b| *b != a) {
                    let first = rounds.iter().filter(|round| place(round, a) < place(round, b)).count();
                    prop_assert_eq!(first, pairs as usize);
                }
            }
            let drift = |server| -> usize {
                order.iter().enumerate().filter(|(_, other)| **other == server).map(|(at, _)| at).sum()
            };
            prop_assert!((1..servers).all(|server| drift(server) == drift(0)));
            let begun = |server| rounds.iter().filter(|round| round[0] == server).count();
            if (pairs as usize).is_multiple_of(servers) {
                prop_assert!((0..servers).all(|server| begun(server) == rounds.len() / servers));
            }
        }

        /// Whatever is already done, the rest is visited once each, in scenario order of its cells.
        #[test]
        fn each_wanted_visit_comes_exactly_once(
            rounds in 1u32..4,
            servers in 1usize..5,
            cells in prop::collection::hash_set(1u32..300, 1..5),
            done in any::<u64>(),
        ) {
            let names: Vec<String> = (0..servers).map(|i| format!("s{i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let cells: Vec<u32> = cells.into_iter().collect();
            let both = [Protocol::H1, Protocol::H1s];
            let scenario = fixture::scenario(rounds, &names, &[&both[..1], &both], &cells);
            let all = visits(&scenario);
            prop_assert_eq!(all.len(), rounds as usize * servers * 3 * cells.len());
            let is_done = |visit: &Visit| {
                let position = all.iter().position(|other| other == visit).expect("a visit of this scenario");
                done >> (position % 64) & 1 == 1
            };
            let wanted: HashSet<Visit> = all.iter().copied().filter(|visit| !is_done(visit)).collect();
            let planned = starts(&scenario, &|visit| !is_done(visit));
            let visited: Vec<Visit> = planned.iter().flat_map(Start::visits).collect();
            prop_assert_eq!(visited.len(), wanted.len());
            prop_assert_eq!(visited.into_iter().collect::<HashSet<_>>(), wanted);
            for start in planned {
                let places: Vec<_> = start.cells.iter()
                    .map(|cell| scenario.sections[start.section].cells.iter().position(|c| c == cell))
                    .collect();
                prop_assert!(!places.is_empty() && places.is_sorted());
            }
        }
    }
}
