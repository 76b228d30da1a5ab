//! Owns what the command line does to a scenario: narrowing it to some servers, sections and cells,
//! replacing rounds and times, and the phrases that record it.

use super::handshake;
use super::model::{Cell, Scenario, SectionLimit};
use super::sections::CellPattern;
use super::settings::check_rounds;
use super::suggest::nearest;
use super::{Overrides, ScenarioError};
use crate::results::SectionKind;
use crate::units::format_duration;

/// Applies `overrides` to a scenario and records each that changes something.
///
/// # Errors
/// A name, title or cell the scenario does not have, with those it has; a value out of range.
pub(super) fn apply(scenario: &mut Scenario, overrides: &Overrides) -> Result<(), ScenarioError> {
    narrow_servers(scenario, &overrides.servers).map_err(ScenarioError)?;
    narrow_generators(scenario, &overrides.generators).map_err(ScenarioError)?;
    narrow_sections(scenario, &overrides.sections).map_err(ScenarioError)?;
    narrow_cells(scenario, &overrides.cells).map_err(ScenarioError)?;
    let nothing_left = !scenario.sections.iter().any(|section| {
        let measured = |server, protocol| {
            let free = |cell| scenario.obstacle(section, server, protocol, cell).is_none();
            section.cells_of(protocol).any(free)
        };
        scenario.servers.iter().any(|server| section.protocols.iter().any(|p| measured(server, *p)))
    });
    if nothing_left {
        let (who, speaks) = match scenario.generators.is_empty() {
            true => ("no server left by --server", "speaks"),
            false => ("no server left by --server and no generator left by --generator", "speak"),
        };
        return Err(ScenarioError(format!(
            "{who} {speaks} the protocols of a section left by --section or --cell; widen one of them"
        )));
    }
    set_rounds(scenario, overrides).map_err(ScenarioError)?;
    set_durations(scenario, overrides).map_err(ScenarioError)?;
    set_warmups(scenario, overrides);
    Ok(())
}

fn narrow_servers(scenario: &mut Scenario, wanted: &[String]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = scenario.servers.iter().map(|server| server.name.clone()).collect();
    let is = |server: &super::ServerSpec, name: &str| {
        server.name.eq_ignore_ascii_case(name)
            || server.label.to_lowercase() == name.to_lowercase()
            || server.variant.as_ref().is_some_and(|variant| variant.of.eq_ignore_ascii_case(name))
    };
    for name in wanted {
        if !scenario.servers.iter().any(|server| is(server, name)) {
            return Err(unknown("--server", name, &names));
        }
    }
    scenario.servers.retain(|server| wanted.iter().any(|name| is(server, name)));
    let left: Vec<String> = scenario.servers.iter().map(|server| server.name.clone()).collect();
    record(scenario, "servers", left.join(", "), names.join(", "));
    Ok(())
}

/// Keeps the generators meant; the cells of the others go with them.
fn narrow_generators(scenario: &mut Scenario, wanted: &[String]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = scenario.generators.iter().map(|generator| generator.name.clone()).collect();
    if names.is_empty() {
        return Err(format!("--generator {}: the scenario compares no generators; leave it out", wanted[0]));
    }
    let is = |generator: &super::GeneratorSpec, name: &str| {
        generator.name.eq_ignore_ascii_case(name) || generator.label.to_lowercase() == name.to_lowercase()
    };
    for name in wanted {
        if !scenario.generators.iter().any(|generator| is(generator, name)) {
            return Err(unknown("--generator", name, &names));
        }
    }
    scenario.generators.retain(|generator| wanted.iter().any(|name| is(generator, name)));
    let left: Vec<String> = scenario.generators.iter().map(|generator| generator.name.clone()).collect();
    for section in &mut scenario.sections {
        section.cells.retain_mut(|cell| match cell.generator {
            Some(index) => {
                cell.generator = left.iter().position(|name| *name == names[index]);
                cell.generator.is_some()
            }
            None => true,
        });
    }
    record(scenario, "generators", left.join(", "), names.join(", "));
    Ok(())
}

fn narrow_sections(scenario: &mut Scenario, wanted: &[String]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let titles: Vec<String> = scenario.sections.iter().map(|section| section.title.clone()).collect();
    let mut keep = vec![false; titles.len()];
    for name in wanted {
        let found = matching_sections(name, &titles);
        if found.is_empty() {
            let numbered: Vec<String> =
                titles.iter().enumerate().map(|(index, title)| format!("{} ({title})", index + 1)).collect();
            return Err(unknown("--section", name, &numbered));
        }
        for index in found {
            keep[index] = true;
        }
    }
    let mut index = 0;
    scenario.sections.retain(|_| {
        index += 1;
        keep[index - 1]
    });
    let left: Vec<String> = scenario.sections.iter().map(|section| section.title.clone()).collect();
    record(scenario, "sections", quoted(&left), quoted(&titles));
    Ok(())
}

/// Indices of the sections meant: by number from 1, by whole title, by a part of it.
fn matching_sections(name: &str, titles: &[String]) -> Vec<usize> {
    if let Ok(number) = name.parse::<usize>() {
        return number.checked_sub(1).filter(|index| *index < titles.len()).into_iter().collect();
    }
    let name = name.to_lowercase();
    let lower: Vec<String> = titles.iter().map(|title| title.to_lowercase()).collect();
    if let Some(index) = lower.iter().position(|title| *title == name) {
        return vec![index];
    }
    (0..titles.len()).filter(|index| !name.trim().is_empty() && lower[*index].contains(&name)).collect()
}

fn narrow_cells(scenario: &mut Scenario, wanted: &[String]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let all = distinct_cells(scenario);
    let mut patterns: Vec<CellPattern> = Vec::with_capacity(wanted.len());
    for text in wanted {
        let pattern = CellPattern::parse(text).map_err(|what| format!("--cell {text}: {what}"))?;
        if !all.iter().any(|cell| pattern.matches(*cell)) {
            let names: Vec<String> = names(&all);
            return Err(unknown("--cell", text, &names));
        }
        patterns.push(pattern);
    }
    for section in &mut scenario.sections {
        section.cells.retain(|cell| patterns.iter().any(|pattern| pattern.matches(*cell)));
    }
    scenario.sections.retain(|section| !section.cells.is_empty());
    let left = distinct_cells(scenario);
    record(scenario, "cells", names(&left).join(", "), names(&all).join(", "));
    Ok(())
}

fn set_rounds(scenario: &mut Scenario, overrides: &Overrides) -> Result<(), String> {
    let Some(rounds) = overrides.rounds else { return Ok(()) };
    let rounds = check_rounds(rounds.into()).map_err(|what| format!("--rounds: {what}"))?;
    let before = std::mem::replace(&mut scenario.run.rounds, rounds);
    record(scenario, "rounds", rounds.to_string(), before.to_string());
    Ok(())
}

/// Replaces the length of every window that has one; a window ended by a count keeps its count.
fn set_durations(scenario: &mut Scenario, overrides: &Overrides) -> Result<(), String> {
    let Some(duration) = overrides.duration else { return Ok(()) };
    if duration.is_zero() {
        return Err("--duration: no time at all; write a duration above zero, like `10s`".into());
    }
    let usual = std::mem::replace(&mut scenario.run.duration, duration);
    record(scenario, "duration", format_duration(duration), format_duration(usual));
    for index in 0..scenario.sections.len() {
        let section = &mut scenario.sections[index];
        let SectionLimit::Duration(before) = section.limit else { continue };
        section.limit = SectionLimit::Duration(duration);
        if before != usual {
            let key = format!("duration of \"{}\"", section.title);
            record(scenario, &key, format_duration(duration), format_duration(before));
        }
    }
    Ok(())
}

/// Replaces every warm-up; a setup section without one stays without, and one that seeds tickets keeps
/// some.
fn set_warmups(scenario: &mut Scenario, overrides: &Overrides) {
    let Some(warmup) = overrides.warmup else { return };
    let usual = std::mem::replace(&mut scenario.run.warmup, warmup);
    record(scenario, "warmup", format_duration(warmup), format_duration(usual));
    for index in 0..scenario.sections.len() {
        let section = &mut scenario.sections[index];
        let many_connections = matches!(section.kind, SectionKind::Setup | SectionKind::Handshake);
        let seeds = handshake::seeds(section.kind, &section.cells);
        if (many_connections && section.warmup.is_zero()) || (seeds && warmup.is_zero()) {
            continue;
        }
        let before = std::mem::replace(&mut section.warmup, warmup);
        if before != usual {
            let key = format!("warmup of \"{}\"", section.title);
            record(scenario, &key, format_duration(warmup), format_duration(before));
        }
    }
}

/// Adds `key = now (scenario: before)`, unless nothing changed.
fn record(scenario: &mut Scenario, key: &str, now: String, before: String) {
    if now != before {
        scenario.overrides.push(format!("{key} = {now} (scenario: {before})"));
    }
}

fn unknown(option: &str, name: &str, known: &[String]) -> String {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let guess = nearest(name, &names).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("{option} {name}: not in the scenario; {guess}it has {}", known.join(", "))
}

fn distinct_cells(scenario: &Scenario) -> Vec<Cell> {
    let mut cells = Vec::new();
    for cell in scenario.sections.iter().flat_map(|section| &section.cells) {
        if !cells.contains(cell) {
            cells.push(*cell);
        }
    }
    cells
}

/// Cells by name, each name once.
fn names(cells: &[Cell]) -> Vec<String> {
    let mut names: Vec<String> = cells.iter().map(Cell::to_string).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn quoted(titles: &[String]) -> String {
    titles.iter().map(|title| format!("\"{title}\"")).collect::<Vec<_>>().join(", ")
}
