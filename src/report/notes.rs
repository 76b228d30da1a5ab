//! Owns the notes at the end of a report: what a reader should know of the machine, the servers and
//! single cells that no verdict covers. Each note is one line of Markdown.

use super::grid::{self, sum};
use super::quic::Health;
use super::text::{self, code, escape};
use super::tools;
use crate::results::verdict::{phase_name, used_rounds};
use crate::results::{
    CellRecord, ExternalRun, FindingLevel, Measurement, Results, RoundRecord, ServerRecord, Stall,
    StartRecord, Verdict, stats,
};
use crate::time::Span;
use crate::units::{format_duration, group_thousands};

/// Every note, at most [`LIMIT`] about single cells.
pub(super) fn notes(results: &Results) -> Vec<String> {
    let mut notes = settings(results);
    notes.extend(machine(results));
    notes.extend(results.servers.iter().flat_map(starts));
    notes.extend(clocks(results));
    let mut cells = cells(results);
    let more = cells.len().saturating_sub(LIMIT);
    cells.truncate(LIMIT);
    notes.extend(cells);
    if more > 0 {
        notes.push(format!("{more} more notes on single cells follow from the JSON beside this file."));
    }
    notes
}

fn settings(results: &Results) -> Vec<String> {
    let settings = &results.settings;
    let mut notes = Vec::new();
    if settings.rounds < 2 {
        notes.push(
            "One round says nothing about noise: no spread is known, ties cannot be told from wins, and no \
             cell can be found unstable."
                .into(),
        );
    }
    if settings.server_cpus.is_empty() || settings.generator_cpus.is_empty() {
        notes.push(
            "Servers and generator were not kept on CPUs of their own, so each took time from the other: \
             CPU µs/req is inflated and must not be compared with that of a pinned run."
                .into(),
        );
    }
    let workers = |server| grid::worker_threads(results, server);
    let mut numbers: Vec<u32> = results.servers.iter().map(workers).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > 1 {
        notes.push(
            "The servers had unequal numbers of worker threads, see the settings. CPU µs/req rises with the \
             number, whatever the server, so it says nothing between unequal ones: where a table has both, \
             none is the best."
                .into(),
        );
    }
    notes
}

/// Findings that speak against the machine, each once.
fn machine(results: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    for finding in results.sessions.iter().flat_map(|session| &session.environment.findings) {
        let word = match finding.level {
            FindingLevel::Ok | FindingLevel::Unknown => continue,
            FindingLevel::Warn => "Machine",
            FindingLevel::Bad => "**Machine**",
        };
        let remedy = finding.remedy.as_deref().map(|r| format!("; {}", escape(r))).unwrap_or_default();
        let note = format!("{word}, {}: {}{remedy}.", escape(&finding.check), escape(&finding.found));
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// Starts and stops that did not go well, equal ones counted.
fn starts(server: &ServerRecord) -> Vec<String> {
    let label = escape(&server.label);
    let mut notes = Vec::new();
    let killed = server.starts.iter().filter(|start| start.killed).count();
    if killed > 0 {
        notes.push(format!(
            "{label}: did not stop within its grace and was killed after {killed} of {} starts.",
            server.starts.len()
        ));
    }
    let mut problems: Vec<(&str, Vec<&StartRecord>)> = Vec::new();
    for start in &server.starts {
        let Some(problem) = start.problem.as_deref() else { continue };
        match problems.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, starts)) => starts.push(start),
            None => problems.push((problem, vec![start])),
        }
    }
    for (problem, starts) in problems {
        notes.push(match starts[..] {
            [only] => format!("{label}, round {}: {}.", only.round, escape(problem)),
            _ => format!("{label}, {} starts: {}.", starts.len(), escape(problem)),
        });
    }
    notes
}

/// Short windows make this common, so it is one note; the tables have the figures.
fn clocks(results: &Results) -> Option<String> {
    let cells = results.sections.iter().flat_map(|section| &section.cells);
    let differ = cells.filter(|cell| grid::other_clock(cell).is_some()).count();
    (differ > 0).then(|| {
        let cells = if differ == 1 { "cell" } else { "cells" };
        format!(
            "The kernel's two clocks of CPU time, ticks and the scheduler's, differ by over 2 % in {differ} {cells}; \
             the tables folded away below the sections have both."
        )
    })
}

fn cells(results: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    for section in &results.sections {
        for sheet in grid::sheets(results, section) {
            let title = sheet.title();
            for (name, cell) in sheet.named_cells() {
                for what in observations(cell) {
                    notes.push(format!("{}, {}: {what}.", escape(&title), escape(&name)));
                }
            }
        }
    }
    notes
}

/// What stands out in the raw rounds of a cell that has figures.
fn observations(cell: &CellRecord) -> Vec<String> {
    if cell.summary.rounds_measured == 0 {
        return Vec::new();
    }
    let rounds = || cell.rounds.iter().filter_map(|round| Some((round, round.measurement.as_ref()?)));
    let external: Vec<&ExternalRun> =
        used_rounds(cell).into_iter().filter_map(|round| round.external.as_ref()).collect();
    let sum = |count| sum(cell, count).unwrap_or(0);
    let mut notes = Vec::new();
    notes.extend(tools::beyond_offered(&external, stats::offered(cell)));
    let failed = sum(|m| m.requests.failed);
    if failed > 0 && !cell.summary.verdicts.contains(&Verdict::Tainted) {
        let errors = rounds().flat_map(|(_, m)| &m.errors);
        let commonest = errors.max_by_key(|error| error.count);
        let kind = commonest.map(|e| format!(", mostly {} {}", phase_name(e.phase), escape(&e.kind)));
        notes.push(format!(
            "{} of {} requests failed{}",
            group_thousands(failed),
            group_thousands(failed.saturating_add(sum(|m| m.requests.ok))),
            kind.unwrap_or_default()
        ));
    }
    let interrupted = sum(|m| m.requests.interrupted);
    // Over HTTP/1.1 the kinds of errors say as much.
    if interrupted > 0 && cell.protocol.multiplexes() {
        notes.push(format!(
            "{} of the failed requests were under way when the server ended their stream or connection",
            group_thousands(interrupted)
        ));
    }
    let stalled = sum(|m| m.connection.stalled);
    if stalled > 0 {
        notes.push(format!("{stalled} connections completed nothing in the last second of the window"));
    }
    let reopened = sum(grid::reopened);
    if reopened > 0 {
        let goaways = sum(|m| m.multiplexing.map_or(0, |m| m.goaways));
        let how = if goaways > 0 {
            format!(", {} of them announced by GOAWAY", group_thousands(goaways.min(reopened)))
        } else {
            String::new()
        };
        notes.push(format!(
            "connections ended and were opened again {} times{how}; their set-up is part of the figures",
            group_thousands(reopened)
        ));
    }
    let replayed = sum(|m| m.requests.replayed);
    if replayed > 0 {
        notes.push(format!(
            "{} requests that the server had not processed were sent again; each counts once, with its latency \
             from the first time",
            group_thousands(replayed)
        ));
    }
    let rejected = sum(|m| m.connection.handshakes.map_or(0, |h| h.early_rejected));
    if rejected > 0 {
        notes.push(format!(
            "early data was rejected on {} connections; its requests were sent once more, and each counts once",
            group_thousands(rejected)
        ));
    }
    notes.extend(datagrams(cell));
    let stalls: Vec<&Stall> = rounds().flat_map(|(_, m)| &m.stalls).collect();
    if let Some(longest) = stalls.iter().max_by_key(|stall| stall.idle_us) {
        notes.push(format!(
            "nothing moved for two seconds and more on {} connections with requests in flight, the longest {}: {}",
            stalls.len(),
            format_duration(Span::from_millis(longest.idle_us / 1000)),
            escape(&text::cut(&longest.state, STATE_LIMIT))
        ));
    }
    if rounds().any(|(_, m)| m.negotiated.as_ref().is_some_and(|n| n.http == "HTTP/1.0")) {
        notes.push("the server answered as HTTP/1.0".into());
    }
    notes.extend(server_side(cell));
    for (round, measurement) in rounds() {
        notes.extend(slow_seconds(round, measurement));
    }
    // The first of its kind: the rounds differ in its figure only.
    let mut said: Vec<&str> = COVERED.to_vec();
    for warning in rounds().flat_map(|(_, measurement)| &measurement.warnings) {
        if !said.contains(&warning.code.as_str()) {
            said.push(&warning.code);
            notes.push(format!("{}: {}", code(&warning.code), escape(warning.text.trim_end_matches('.'))));
        }
    }
    notes
}

/// What was lost on a path that loses nothing by itself, and where to look.
fn datagrams(cell: &CellRecord) -> Option<String> {
    let health = Health::of(cell)?;
    let trouble = health.trouble()?;
    let remedy = if health.server_drops.unwrap_or(0) > 0 {
        "; the server's socket buffer was full: it reads too rarely, or asks for too small a one (SO_RCVBUF, \
         net.core.rmem_max)"
    } else if health.generator_drops > 0 {
        "; the generator's socket buffer was full: raise net.core.rmem_max, or give it more CPUs"
    } else {
        ""
    };
    Some(format!("{trouble}{remedy}"))
}

fn server_side(cell: &CellRecord) -> Vec<String> {
    let samples = || cell.rounds.iter().filter_map(|round| round.server.as_ref());
    let mut notes = Vec::new();
    let overflows = samples().filter_map(|s| s.listen_overflows).fold(0u64, u64::saturating_add);
    if overflows > 0 {
        notes.push(format!(
            "{} connections found an accept queue full and had to try again",
            group_thousands(overflows)
        ));
    }
    notes
}

/// Whole seconds of a round with less than half the responses of its median second.
fn slow_seconds(round: &RoundRecord, measurement: &Measurement) -> Option<String> {
    let whole = measurement.window.length_s.map_or(0, |length| length as usize);
    let counts: Vec<f64> = measurement.seconds.iter().take(whole).map(|second| second.ok as f64).collect();
    let median = stats::median(&counts).filter(|_| counts.len() >= 3)?;
    let slow = counts.iter().filter(|count| **count < median / 2.0).count();
    (slow > 0).then(|| {
        format!(
            "round {}: {slow} of {} seconds had less than half the usual responses",
            round.round,
            counts.len()
        )
    })
}

/// Notes on single cells in one report; the JSON holds what they are drawn from.
const LIMIT: usize = 40;
/// Characters of a stall's state in a note.
const STATE_LIMIT: usize = 300;
/// Warnings of the generator that a mark, a table or a note above says already.
const COVERED: [&str; 3] = ["starved", "generator-saturated", "stalled"];
