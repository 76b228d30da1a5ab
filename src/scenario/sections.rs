//! Owns `[[section]]`: kinds, protocols, cells and what ends a window. What is said of connections is in
//! `handshake`, what of answers in `answers`.

use std::collections::{BTreeMap, HashSet};

use super::ScenarioError;
use super::answers;
use super::file::{KINDS, RawSection};
use super::handshake;
use super::model::{Cell, Machine, RunSettings, Section, SectionLimit, ServerSpec};
use super::settings::positive;
use super::source::At;
use crate::results::{Protocol, Resumption, SectionKind};

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
            let kinds: Vec<String> = KINDS.iter().map(|(name, _)| format!("`{name}`")).collect();
            raw.place.missing("kind").mistake(format_args!("missing; write one of {}", kinds.join(", ")))
        })?
        .value;
    let protocols = protocols(raw, kind)?;
    match kind {
        SectionKind::Ratio => check_pair(&protocols, servers)?,
        SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Setup | SectionKind::Handshake => {
            check_offered(&protocols, servers)?;
        }
    }
    let resumptions = handshake::resumptions(raw, kind, &protocols)?;
    let (cells, limit) = match kind {
        SectionKind::Handshake => handshake::cells(raw, &resumptions, machine)?,
        SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Setup | SectionKind::Ratio => {
            let mut cells = cells(raw, kind, &protocols, machine)?;
            for cell in &mut cells {
                cell.resumption = resumptions.first().copied().unwrap_or_default();
            }
            let limit = limit(raw, kind, run, &cells)?;
            (cells, limit)
        }
    };
    let warmup = handshake::warmup(raw, kind, &cells, run)?;
    let (socket, pacing) = handshake::quic(raw, &protocols, run)?;
    let (headers, runs) = answers::of(raw, kind, &protocols)?;
    let protocols = protocols.iter().map(|protocol| protocol.value).collect();
    Ok(Section { title, kind, protocols, cells, limit, warmup, socket, pacing, headers, runs })
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
                Protocol::ALL.map(Protocol::name).join(", ")
            )));
        }
    };
    if list.value.is_empty() {
        return Err(list.mistake("no protocol in the list; name at least one"));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = list.value.iter().find(|protocol| !seen.insert(protocol.value)) {
        return Err(twice.mistake(format_args!("{} is listed twice; leave one out", twice.value.name())));
    }
    match (kind, list.value.as_slice()) {
        (SectionKind::ClosedLoop | SectionKind::Generators, [_, second, ..]) => Err(second.mistake(
            "such a section is a table of one protocol; write another [[section]] for the second, or \
             `kind = \"ratio\"` to set them beside each other",
        )),
        _ => Ok(list.value.clone()),
    }
}

/// Each protocol is that of some server.
fn check_offered(protocols: &[At<Protocol>], servers: &[ServerSpec]) -> Result<(), ScenarioError> {
    let offered = |protocol: Protocol| servers.iter().any(|server| server.protocols.contains(&protocol));
    protocols.iter().find(|protocol| !offered(protocol.value)).map_or(Ok(()), |protocol| {
        Err(protocol.mistake(format_args!(
            "no server offers {0}; add `\"{0}\"` to a server's `protocols`, or take it out here",
            protocol.value.name()
        )))
    })
}

/// A ratio is of two protocols that one listener serves, the first against the second.
fn check_pair(protocols: &[At<Protocol>], servers: &[ServerSpec]) -> Result<(), ScenarioError> {
    let (first, second) = match protocols {
        [first, second] => (first, second),
        [first] => {
            return Err(first.mistake(format_args!(
                "one protocol where a ratio compares two; write `protocols = {}`",
                pair_with(first.value)
            )));
        }
        [_, _, third, ..] => {
            return Err(third.mistake(
                "a third protocol where a ratio compares two, the first against the second; write another \
                 [[section]] for it",
            ));
        }
        [] => return Ok(()),
    };
    if first.value.is_tls() != second.value.is_tls() {
        let transport = |protocol: Protocol| match protocol {
            _ if protocol.is_quic() => "over QUIC",
            _ if protocol.is_tls() => "over TLS",
            _ => "in cleartext",
        };
        return Err(second.mistake(format_args!(
            "{} runs {} and {} {}, on different listeners; a ratio compares two protocols of one, like `{}`",
            first.value.name(),
            transport(first.value),
            second.value.name(),
            transport(second.value),
            pair_with(first.value)
        )));
    }
    let both = |server: &ServerSpec| {
        server.protocols.contains(&first.value) && server.protocols.contains(&second.value)
    };
    if servers.iter().any(both) {
        return Ok(());
    }
    Err(second.mistake(format_args!(
        "no server offers both {0} and {1}; add both to a server's `protocols`",
        first.value.name(),
        second.value.name()
    )))
}

/// The pair with this protocol that a ratio can compare: a version of HTTP against the one before it, on
/// one port.
fn pair_with(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::H3 => "[\"h3\", \"h2\"]",
        Protocol::H2 | Protocol::H1s => "[\"h2\", \"h1s\"]",
        Protocol::H2c | Protocol::H1 => "[\"h2c\", \"h1\"]",
    }
}

fn cells(
    raw: &RawSection,
    kind: SectionKind,
    protocols: &[At<Protocol>],
    machine: &Machine,
) -> Result<Vec<Cell>, ScenarioError> {
    if let Some(count) = &raw.concurrency {
        return Err(raw.keys.concurrency.as_ref().unwrap_or(&count.place).mistake(
            "belongs to a handshake section; say how many requests are on each connection in `cells`, like \
             `10x4`",
        ));
    }
    // The first protocol on whose connections there is one request at a time.
    let single = protocols.iter().map(|protocol| protocol.value).find(|protocol| !protocol.multiplexes());
    let Some(list) = &raw.cells else {
        return match kind {
            SectionKind::Setup => Ok(vec![DEFAULT_SETUP_CELL]),
            SectionKind::ClosedLoop
            | SectionKind::Generators
            | SectionKind::Ratio
            | SectionKind::Handshake => {
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
        check_cell(cell, kind, single, machine).map_err(|what| text.mistake(what))?;
        if cells.contains(&cell) {
            return Err(text.mistake(format_args!("{cell} is listed twice; leave one out")));
        }
        cells.push(cell);
    }
    Ok(cells)
}

/// `single` is the protocol of the section that keeps M to one.
fn check_cell(
    cell: Cell,
    kind: SectionKind,
    single: Option<Protocol>,
    machine: &Machine,
) -> Result<(), String> {
    let offered = u64::from(cell.connections) * u64::from(cell.concurrency);
    match (kind, single) {
        _ if cell.concurrency == 1 => {}
        (SectionKind::Setup, _) => {
            return Err(format!(
                "{cell} in a setup section, where each connection carries one request; write `{}x1`",
                cell.connections
            ));
        }
        (SectionKind::ClosedLoop | SectionKind::Generators, Some(single)) => {
            return Err(format!(
                "{cell} asks for {} requests at once on a connection, {} has one; write `{offered}x1`",
                cell.concurrency,
                single.version()
            ));
        }
        (SectionKind::Ratio, Some(single)) => {
            return Err(format!(
                "{cell} asks for {} requests at once on a connection of both protocols, {} has one; write \
                 `{}x1`",
                cell.concurrency,
                single.version(),
                cell.connections
            ));
        }
        (SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Ratio, None)
        | (SectionKind::Handshake, _) => {}
    }
    if offered > MOST_OFFERED {
        return Err(format!(
            "{cell} keeps {offered} requests in flight, more than the {MOST_OFFERED} a generator has memory \
             for; write smaller numbers"
        ));
    }
    check_files(cell.connections, machine).map_err(|what| format!("{cell}: {what}"))
}

/// Refuses more connections at the same time than there can be open files.
///
/// # Errors
/// The number needed, and what to write.
pub(super) fn check_files(connections: u32, machine: &Machine) -> Result<(), String> {
    let needed = u64::from(connections) + FILES_BESIDE_CONNECTIONS;
    if needed > machine.fd_hard_limit {
        return Err(format!(
            "{connections} connections need {needed} open files and the hard limit is {}; write at most {} \
             connections, or raise the limit as root with `ulimit -Hn {needed}`",
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
        SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Ratio | SectionKind::Handshake => {
            if let (Some(count), place) = (&raw.connections, &raw.keys.connections) {
                return Err(place.as_ref().unwrap_or(&count.place).mistake(
                    "counts fresh connections, which only setup and handshake sections open; write `requests`, \
                     or say how many connections in `cells`",
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
    Ok(Cell::new(within(connections, "connections")?, within(concurrency, "requests on each")?))
}

/// Cells meant on the command line: a size, `CxM`, with every resumption, or `CxM/ticket` with one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CellPattern {
    size: Cell,
    resumption: Option<Resumption>,
}

impl CellPattern {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong and what to write instead.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let Some((size, word)) = text.split_once('/') else {
            return Ok(Self { size: parse_cell(text)?, resumption: None });
        };
        let Some(resumption) = Resumption::ALL.into_iter().find(|resumption| resumption.name() == word)
        else {
            return Err(format!(
                "`{word}` is no resumption; write `{size}/off`, `{size}/ticket` or `{size}/0rtt`"
            ));
        };
        Ok(Self { size: parse_cell(size)?, resumption: Some(resumption) })
    }

    /// Whether `cell` is meant.
    pub(super) fn matches(self, cell: Cell) -> bool {
        (cell.connections, cell.concurrency) == (self.size.connections, self.size.concurrency)
            && self.resumption.is_none_or(|resumption| resumption == cell.resumption)
    }
}

/// Enough connections that a server's accept queue never runs dry, few enough that no server's
/// default backlog overflows.
const DEFAULT_SETUP_CELL: Cell = Cell::new(20, 1);

/// Files a generator or a server has open besides its connections: ring, listeners, logs, libraries.
const FILES_BESIDE_CONNECTIONS: u64 = 64;

/// The largest C and M: beyond it one machine runs out of memory and ports, and a number is a slip.
pub(super) const MOST_IN_CELL: u32 = 1_000_000;

/// The largest C·M: each request in flight has its place in the generator's memory.
const MOST_OFFERED: u64 = 1_000_000;

impl Section {
    /// Whether the section has cells of `server`, be they measured or not. One that compares generators is
    /// about the servers that can show them alone: it has a table for each.
    pub fn takes_part(&self, server: &ServerSpec) -> bool {
        self.kind != SectionKind::Generators || self.protocols.iter().all(|p| server.protocols.contains(p))
    }

    /// Why this section does not measure `server` over `protocol`, for the places its figures would
    /// have; `None` when it does. A ratio needs both of its protocols.
    pub fn obstacle(&self, server: &ServerSpec, protocol: Protocol) -> Option<String> {
        let needed = if self.kind == SectionKind::Ratio { self.protocols.as_slice() } else { &[protocol] };
        let absent = needed.iter().filter(|needed| !server.protocols.contains(needed));
        let absent: Vec<&str> = absent.map(|protocol| protocol.name()).collect();
        let why = if self.kind == SectionKind::Ratio { ", and a ratio needs both" } else { "" };
        (!absent.is_empty()).then(|| format!("{} does not offer {}{why}", server.label, absent.join(" or ")))
    }
}

impl Cell {
    /// C connections that are kept, with M requests on each.
    pub const fn new(connections: u32, concurrency: u32) -> Self {
        Self {
            connections,
            concurrency,
            resumption: Resumption::Off,
            requests_per_connection: None,
            generator: None,
        }
    }
}

/// As `--cell` takes it; the resumption stands there where a section may have several.
impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.connections, self.concurrency)?;
        if self.requests_per_connection.is_some() || self.resumption != Resumption::Off {
            write!(f, "/{}", self.resumption.name())?;
        }
        Ok(())
    }
}
