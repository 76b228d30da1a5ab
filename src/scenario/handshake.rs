//! Owns what is said in `[[section]]` of connections rather than of requests on them: the cells of
//! kind `handshake`, resumption, and how QUIC uses its sockets.

use std::collections::HashSet;

use super::ScenarioError;
use super::file::{Maybe, RawSection, Resumptions};
use super::model::{Cell, Machine, RunSettings, Section, SectionLimit};
use super::sections::{MOST_IN_CELL, check_files};
use super::source::{At, Place};
use crate::results::{Protocol, Resumption, SectionKind, SocketMode};
use crate::time::Span;

/// The cells of a handshake section, one for each resumption, and the requests that end a window.
///
/// # Errors
/// The first mistake.
pub(super) fn cells(
    raw: &RawSection,
    resumptions: &[Resumption],
    machine: &Machine,
) -> Result<(Vec<Cell>, SectionLimit), ScenarioError> {
    if let (Some(cells), place) = (&raw.cells, &raw.keys.cells) {
        return Err(place.as_ref().unwrap_or(&cells.place).mistake(
            "a handshake section has one load; write `connections` for how many in all, and `concurrency` for \
             how many at the same time",
        ));
    }
    if let (Some(duration), place) = (&raw.duration, &raw.keys.duration) {
        return Err(place.as_ref().unwrap_or(&duration.place).mistake(
            "a window of a handshake section ends with a number of connections; write `connections`",
        ));
    }
    let all = count(&raw.connections, "connections", DEFAULT_CONNECTIONS)?;
    let requests = count(&raw.requests, "requests on each connection", 1)?;
    let concurrency = count(&raw.concurrency, "connections at the same time", 1)?;
    if all < concurrency {
        let at = raw.connections.as_ref().map(|at| &at.place);
        let place = at.or(raw.concurrency.as_ref().map(|at| &at.place)).unwrap_or(&raw.place);
        return Err(place.mistake(format_args!(
            "{all} connections in all are too few for {concurrency} at the same time; write {concurrency} or \
             more"
        )));
    }
    let cell = |resumption| Cell {
        resumption,
        requests_per_connection: Some(requests),
        ..Cell::new(concurrency, 1)
    };
    let cells: Vec<Cell> = resumptions.iter().copied().map(cell).collect();
    if let Some(at) = &raw.concurrency {
        check_files(concurrency, machine).map_err(|what| at.mistake(what))?;
    }
    Ok((cells, SectionLimit::Requests(u64::from(all) * u64::from(requests))))
}

fn count(raw: &Maybe<i64>, what: &str, default: u32) -> Result<u32, ScenarioError> {
    let Some(count) = raw else { return Ok(default) };
    match u32::try_from(count.value) {
        Ok(number) if (1..=MOST_IN_CELL).contains(&number) => Ok(number),
        _ => Err(count.mistake(format_args!("{} {what}; write 1 to {MOST_IN_CELL}", count.value))),
    }
}

/// What connections make of earlier ones: one way, and in a handshake section one or several.
///
/// # Errors
/// A way that the section's kind or none of its protocols has.
pub(super) fn resumptions(
    raw: &RawSection,
    kind: SectionKind,
    protocols: &[At<Protocol>],
) -> Result<Vec<Resumption>, ScenarioError> {
    if kind == SectionKind::Handshake
        && let Some(cleartext) = protocols.iter().find(|protocol| !protocol.value.is_tls())
    {
        return Err(cleartext.mistake(format_args!(
            "{} has no handshake; write `h3`, `h2` or `h1s`, or `kind = \"setup\"` for how fast connections open",
            cleartext.value.name()
        )));
    }
    let Some(given) = &raw.resumption else { return Ok(vec![Resumption::Off]) };
    let key = raw.keys.resumption.as_ref().unwrap_or(&given.place);
    if kind == SectionKind::Ratio {
        return Err(key.mistake(
            "a ratio compares connections that are kept, whose handshakes come before the window; leave it out, \
             or write `kind = \"handshake\"`",
        ));
    }
    let list = match &given.value {
        Resumptions::One(one) => vec![At { value: *one, place: given.place.clone() }],
        Resumptions::List(_) if kind != SectionKind::Handshake => {
            return Err(given.mistake(
                "a list, of which only a handshake section makes a column each; write one word, or `kind = \
                 \"handshake\"`",
            ));
        }
        Resumptions::List(list) => list.clone(),
    };
    if list.is_empty() {
        return Err(given.mistake("no resumption in the list; write at least one of off, ticket, 0rtt"));
    }
    let mut seen = HashSet::new();
    for resumption in &list {
        if !seen.insert(resumption.value) {
            return Err(resumption
                .mistake(format_args!("{} is listed twice; leave one out", resumption.value.name())));
        }
        check_possible(resumption, kind, protocols)?;
    }
    Ok(list.iter().map(|resumption| resumption.value).collect())
}

/// A handshake section leaves out the protocols that a resumption is not possible over; in the others
/// one way holds for all of them.
fn check_possible(
    resumption: &At<Resumption>,
    kind: SectionKind,
    protocols: &[At<Protocol>],
) -> Result<(), ScenarioError> {
    let without: Vec<Protocol> = protocols
        .iter()
        .map(|protocol| protocol.value)
        .filter(|protocol| !resumption.value.possible_over(*protocol))
        .collect();
    let refused = match kind {
        SectionKind::Handshake => without.len() == protocols.len(),
        _ => !without.is_empty(),
    };
    let (Some(first), true) = (without.first(), refused) else { return Ok(()) };
    Err(resumption.mistake(match resumption.value {
        Resumption::ZeroRtt => format!(
            "early data is sent over h3 alone, and {} cannot have it; write `\"ticket\"`, or another protocol",
            first.name()
        ),
        _ => format!(
            "sessions are resumed over TLS, and {} is cleartext; leave it out, or write another protocol",
            first.name()
        ),
    }))
}

/// The warm-up of a section. With resumption, connections of the warm-up get the tickets that those of
/// the window present.
///
/// # Errors
/// No warm-up where tickets are needed.
pub(super) fn warmup(
    raw: &RawSection,
    kind: SectionKind,
    cells: &[Cell],
    run: &RunSettings,
) -> Result<Span, ScenarioError> {
    let seeds = seeds(kind, cells);
    match (&raw.warmup, kind) {
        (Some(warmup), _) if warmup.value.is_zero() && seeds => Err(warmup.mistake(
            "no warm-up, in which the first connections get the tickets that later ones present; write one like \
             `500ms`, or leave it out",
        )),
        (Some(warmup), _) => Ok(warmup.value),
        (None, SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Ratio) => Ok(run.warmup),
        (None, SectionKind::Setup | SectionKind::Handshake) if seeds => Ok(SEEDING),
        // Every connection is new, so that there is little a warm-up would warm.
        (None, SectionKind::Setup | SectionKind::Handshake) => Ok(Span::ZERO),
    }
}

/// True when the window's connections need tickets from before it.
pub(super) fn seeds(kind: SectionKind, cells: &[Cell]) -> bool {
    matches!(kind, SectionKind::Setup | SectionKind::Handshake)
        && cells.iter().any(|cell| cell.resumption != Resumption::Off)
}

/// Socket mode and pacing: the section's own, else the run's.
///
/// # Errors
/// Either in a section without QUIC.
pub(super) fn quic(
    raw: &RawSection,
    protocols: &[At<Protocol>],
    run: &RunSettings,
) -> Result<(SocketMode, bool), ScenarioError> {
    let has_quic = protocols.iter().any(|protocol| protocol.value.is_quic());
    let given: [Option<&Place>; 2] = [raw.keys.socket.as_ref(), raw.keys.pacing.as_ref()];
    if let (Some(place), false) = (given.into_iter().flatten().next(), has_quic) {
        return Err(place.mistake("is about QUIC, and the section has no h3; leave it out"));
    }
    let socket = raw.socket.as_ref().map_or(run.socket, |socket| socket.value);
    Ok((socket, raw.pacing.as_ref().map_or(run.pacing, |pacing| pacing.value)))
}

impl Section {
    /// The cells of one of its protocols: those whose resumption is possible over it.
    pub fn cells_of(&self, protocol: Protocol) -> impl Iterator<Item = Cell> + '_ {
        self.cells.iter().copied().filter(move |cell| cell.resumption.possible_over(protocol))
    }
}

/// Enough that ten samples stand behind a p99.
const DEFAULT_CONNECTIONS: u32 = 1000;

/// Hundreds of handshakes of a middling server, each of which brings at least one ticket.
const SEEDING: Span = Span::from_millis(500);
