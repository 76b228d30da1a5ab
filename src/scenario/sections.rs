//! Owns `[[section]]`: kinds, protocols, cells and what ends a window.

use std::collections::{BTreeMap, HashSet};

use super::ScenarioError;
use super::file::{PROTOCOLS, RawSection};
use super::model::{Cell, Machine, RunSettings, Section, SectionLimit, ServerSpec};
use super::settings::positive;
use super::source::At;
use crate::results::{Protocol, SectionKind};
use crate::time::Span;

/// The name a protocol has in scenarios and on the command line.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    PROTOCOLS.iter().find(|(_, known)| *known == protocol).map_or("?", |(name, _)| name)
}

/// Checks the sections against the settings, the servers and the machine.
///
/// # Errors
/// The first mistake.
pub(super) fn sections(
    raw: &[RawSection],
    run: &RunSettings,
    servers: &[ServerSpec],
    machine: &Machine,
) -> Result<Vec<Section>, ScenarioError> {
    let mut titles = BTreeMap::new();
    let mut sections = Vec::with_capacity(raw.len());
    for (index, section) in raw.iter().enumerate() {
        let section = check(section, run, servers, machine)?;
        if let Some(first) = titles.insert(section.title.clone(), index + 1) {
            let place = raw[index].title.as_ref().map_or(&raw[index].place, |title| &title.place);
            return Err(place.mistake(format_args!(
                "section {first} has the title `{}` too; give each its own",
                section.title
            )));
        }
        sections.push(section);
    }
    Ok(sections)
}

fn check(
    raw: &RawSection,
    run: &RunSettings,
    servers: &[ServerSpec],
    machine: &Machine,
) -> Result<Section, ScenarioError> {
    let title = raw.title.as_ref().ok_or_else(|| {
        raw.place.missing("title").mistake("missing; give the section the heading of its table")
    })?;
    let title = super::expand::one_line(title)?;
    let kind = raw
        .kind
        .as_ref()
        .ok_or_else(|| {
            raw.place.missing("kind").mistake("missing; write `kind = \"closed-loop\"` or `kind = \"setup\"`")
        })?
        .value;
    let protocols = protocols(raw, kind)?;
    for protocol in &protocols {
        if !servers.iter().any(|server| server.protocols.contains(&protocol.value)) {
            return Err(protocol.mistake(format_args!(
                "no server offers {0}; add `\"{0}\"` to a server's `protocols`, or take it out here",
                protocol_name(protocol.value)
            )));
        }
    }
    let cells = cells(raw, kind, machine)?;
    let limit = limit(raw, kind, run, &cells)?;
    let warmup = match (&raw.warmup, kind) {
        (Some(warmup), _) => warmup.value,
        (None, SectionKind::ClosedLoop | SectionKind::Ratio) => run.warmup,
        // Every connection is new, so that there is little a warm-up would warm.
        (None, SectionKind::Setup) => Span::ZERO,
    };
    let protocols = protocols.iter().map(|protocol| protocol.value).collect();
    Ok(Section { title, kind, protocols, cells, limit, warmup })
}

fn protocols(raw: &RawSection, kind: SectionKind) -> Result<Vec<At<Protocol>>, ScenarioError> {
    let list = match (&raw.protocol, &raw.protocols) {
        (Some(_), Some(both)) => {
            let place = raw.keys.protocols.as_ref().unwrap_or(&both.place);
            return Err(place.mistake("contradicts `protocol`; leave one of them out"));
        }
        (Some(one), None) => return Ok(vec![one.clone()]),
        (None, Some(list)) => list,
        (None, None) => {
            return Err(raw.place.missing("protocol").mistake(format_args!(
                "missing; write one of {}",
                PROTOCOLS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
            )));
        }
    };
    if list.value.is_empty() {
        return Err(list.mistake("no protocol in the list; name at least one"));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = list.value.iter().find(|protocol| !seen.insert(protocol.value)) {
        return Err(
            twice.mistake(format_args!("{} is listed twice; leave one out", protocol_name(twice.value)))
        );
    }
    match (kind, list.value.as_slice()) {
        (SectionKind::ClosedLoop, [_, second, ..]) => Err(second.mistake(
            "a closed-loop section is a table of one protocol; write another [[section]] for the second",
        )),
        _ => Ok(list.value.clone()),
    }
}

fn cells(raw: &RawSection, kind: SectionKind, machine: &Machine) -> Result<Vec<Cell>, ScenarioError> {
    let Some(list) = &raw.cells else {
        return match kind {
            SectionKind::Setup => Ok(vec![DEFAULT_SETUP_CELL]),
            SectionKind::ClosedLoop | SectionKind::Ratio => {
                Err(raw.place.missing("cells").mistake("missing; write cells like `[\"1x1\", \"50x1\"]`"))
            }
        };
    };
    if list.value.is_empty() {
        return Err(list.mistake("no cell in the list; write cells like `[\"1x1\", \"50x1\"]`"));
    }
    let mut cells: Vec<Cell> = Vec::with_capacity(list.value.len());
    for text in &list.value {
        let cell = parse_cell(&text.value).map_err(|what| text.mistake(what))?;
        check_cell(cell, kind, machine).map_err(|what| text.mistake(what))?;
        if cells.contains(&cell) {
            return Err(text.mistake(format_args!("{cell} is listed twice; leave one out")));
        }
        cells.push(cell);
    }
    Ok(cells)
}

fn check_cell(cell: Cell, kind: SectionKind, machine: &Machine) -> Result<(), String> {
    if cell.concurrency > 1 {
        let instead = u64::from(cell.connections) * u64::from(cell.concurrency);
        return Err(match kind {
            SectionKind::Setup => format!(
                "{cell} in a setup section, where each connection carries one request; write \
                 `{}x1`",
                cell.connections
            ),
            // Every protocol this version knows is HTTP/1.1.
            SectionKind::ClosedLoop | SectionKind::Ratio => format!(
                "{cell} asks for {} requests at once on a connection, HTTP/1.1 has one; write `{instead}x1`",
                cell.concurrency
            ),
        });
    }
    let needed = u64::from(cell.connections) + FILES_BESIDE_CONNECTIONS;
    if needed > machine.fd_hard_limit {
        return Err(format!(
            "{cell} needs {needed} open files and the hard limit is {}; write at most `{}x1`, or raise the \
             limit as root with `ulimit -Hn {needed}`",
            machine.fd_hard_limit,
            machine.fd_hard_limit.saturating_sub(FILES_BESIDE_CONNECTIONS).max(1)
        ));
    }
    Ok(())
}

fn limit(
    raw: &RawSection,
    kind: SectionKind,
    run: &RunSettings,
    cells: &[Cell],
) -> Result<SectionLimit, ScenarioError> {
    let (count, key, place) = match kind {
        SectionKind::ClosedLoop | SectionKind::Ratio => {
            if let (Some(count), place) = (&raw.connections, &raw.keys.connections) {
                return Err(place.as_ref().unwrap_or(&count.place).mistake(
                    "counts fresh connections, which only a setup section opens; write `requests`, or say how \
                     many connections in `cells`",
                ));
            }
            (&raw.requests, "requests", &raw.keys.requests)
        }
        SectionKind::Setup => {
            if let (Some(count), place) = (&raw.requests, &raw.keys.requests) {
                return Err(place
                    .as_ref()
                    .unwrap_or(&count.place)
                    .mistake("a setup section counts connections; write `connections`"));
            }
            (&raw.connections, "connections", &raw.keys.connections)
        }
    };
    let Some(count) = count else {
        return Ok(SectionLimit::Duration(positive(&raw.duration)?.unwrap_or(run.duration)));
    };
    if raw.duration.is_some() {
        return Err(place
            .as_ref()
            .unwrap_or(&count.place)
            .mistake("contradicts `duration`: one of them ends the window; leave the other out"));
    }
    let offered = cells.iter().map(|cell| u64::from(cell.connections) * u64::from(cell.concurrency)).max();
    match u64::try_from(count.value) {
        Ok(number) if number >= 1 && Some(number) >= offered => Ok(SectionLimit::Requests(number)),
        _ => Err(count.mistake(format_args!(
            "{} {key} are too few to fill the largest cell once; write {} or more",
            count.value,
            offered.unwrap_or(1)
        ))),
    }
}

/// Reads a cell: `CxM`, both from 1 to [`MOST_IN_CELL`].
///
/// # Errors
/// What is wrong and what to write instead.
pub(super) fn parse_cell(text: &str) -> Result<Cell, String> {
    let number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u64>().unwrap_or(u64::MAX))
    };
    let parts = |text: &str| text.split_once('x').and_then(|(c, m)| Some((number(c)?, number(m)?)));
    let Some((connections, concurrency)) = parts(text) else {
        let plain: String = text.to_lowercase().split_whitespace().collect();
        let instead = match (parts(&plain), number(&plain)) {
            (Some(_), _) => plain,
            (None, Some(_)) => plain + "x1",
            (None, None) => "10x1".to_owned(),
        };
        return Err(format!(
            "`{text}` is not a cell; write connections x requests on each, like `{instead}`"
        ));
    };
    let within = |number: u64, what: &str| match u32::try_from(number) {
        Ok(number) if (1..=MOST_IN_CELL).contains(&number) => Ok(number),
        _ => Err(format!("the {what} in `{text}` are out of range; write 1 to {MOST_IN_CELL}")),
    };
    Ok(Cell {
        connections: within(connections, "connections")?,
        concurrency: within(concurrency, "requests on each")?,
    })
}

/// Enough connections that a server's accept queue never runs dry, few enough that no server's
/// default backlog overflows.
const DEFAULT_SETUP_CELL: Cell = Cell { connections: 20, concurrency: 1 };

/// Files a generator or a server has open besides its connections: ring, listeners, logs, libraries.
const FILES_BESIDE_CONNECTIONS: u64 = 64;

/// The largest C and M: beyond it one machine runs out of memory and ports, and a number is a slip.
const MOST_IN_CELL: u32 = 1_000_000;

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.connections, self.concurrency)
    }
}
