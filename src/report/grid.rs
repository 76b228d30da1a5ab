//! Owns the tables of a section as rows and columns of figures, for Markdown and the terminal alike:
//! which servers and cells stand in them, what each place shows, what is best, and why a place has no
//! figure.

mod generators;
mod handshake;
mod health;
mod plot;
mod ratio;
mod runs;
mod workers;

pub(super) use workers::worker_threads;

use super::marks::{self, Candidate, Figure, Mark, SetupTime};
use super::text::{self, MISSING};
use crate::results::external;
use crate::results::stats::{self, percentile_key};
use crate::results::verdict::used_rounds;
use crate::results::{
    Bound, CellKey, CellRecord, EffectiveConcurrency, Measurement, Median, Protocol, Results, Resumption,
    SectionKind, SectionRecord, ServerRecord, Summary, Verdict,
};
use crate::units::group_thousands;

pub(super) use self::runs::Runs;

/// The cells of a section that share a table: servers, or the generators of one, down, cells across.
pub(super) struct Sheet<'a> {
    results: &'a Results,
    section: &'a SectionRecord,
    /// Its protocols in the order of the section; in a ratio the first against the second.
    protocols: Vec<Protocol>,
    columns: Vec<Column>,
    rows: Vec<Row<'a>>,
}

/// What stands down the side: a server, or a generator that drove it.
#[derive(Clone, Copy)]
struct Row<'a> {
    label: &'a str,
    server: &'a ServerRecord,
    /// Index of the generator.
    generator: Option<u32>,
}

/// One cell across.
pub(super) struct Column {
    key: CellKey,
    /// `C = 10`, `1 x 10`.
    size: String,
    /// The size, or for `setup` `https`, for `ratio` `HTTP/2 C = 10`, for `handshake` `h3 resumed`.
    pub title: String,
}

/// Groups of rows under one header.
pub(super) struct Grid {
    /// Titles of the figure columns.
    pub header: Vec<String>,
    /// One group a measure.
    pub groups: Vec<Group>,
}

/// One measure of every server.
pub(super) struct Group {
    /// `req/s`, `p99 (ms)`; empty when the header says it.
    pub title: String,
    /// Label of a server, and what its row shows.
    pub rows: Vec<(String, Vec<Shown>)>,
}

/// What one place of a table shows.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub text: String,
    pub best: bool,
    pub marks: Vec<Mark>,
}

/// Cells of one server without figures, for one reason.
pub(super) struct Blank<'a> {
    pub label: &'a str,
    /// `every cell`, or the columns' titles.
    pub cells: String,
    /// What their places show.
    pub shows: &'static str,
    pub reason: String,
    pub log_tail: &'a [String],
}

/// Servers whose rates in one column are within noise of each other.
pub(super) struct Tie<'a> {
    pub column: String,
    /// Labels with server CPU per request in µs, the lowest first.
    pub servers: Vec<(&'a str, Option<f64>)>,
}

/// The sheets of a section: for `closed-loop` one a protocol, for the other kinds one with all of them.
pub(super) fn sheets<'a>(results: &'a Results, section: &'a SectionRecord) -> Vec<Sheet<'a>> {
    let mut protocols: Vec<Protocol> = Vec::new();
    for cell in &section.cells {
        if !protocols.contains(&cell.protocol) {
            protocols.push(cell.protocol);
        }
    }
    match section.kind {
        _ if protocols.is_empty() => Vec::new(),
        SectionKind::ClosedLoop => {
            protocols.sort();
            protocols.into_iter().map(|p| Sheet::new(results, section, vec![p])).collect()
        }
        SectionKind::Generators => results
            .servers
            .iter()
            .map(|server| generators::rows(results, section, server))
            .filter(|rows| !rows.is_empty())
            .map(|rows| Sheet { rows, ..Sheet::new(results, section, protocols.clone()) })
            .collect(),
        SectionKind::Setup | SectionKind::Handshake | SectionKind::Ratio => {
            vec![Sheet::new(results, section, protocols)]
        }
    }
}

impl<'a> Sheet<'a> {
    fn new(results: &'a Results, section: &'a SectionRecord, protocols: Vec<Protocol>) -> Self {
        let columns = columns(section, &protocols);
        let cells = || section.cells.iter().filter(|cell| protocols.contains(&cell.protocol));
        let servers = results.servers.iter().filter(|server| cells().any(|cell| cell.server == server.name));
        let rows = servers.map(|server| Row { label: &server.label, server, generator: None }).collect();
        Self { results, section, protocols, columns, rows }
    }

    /// Its protocols in the order of the section, at least one.
    pub(super) fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// What tells it from the other tables of its section: the protocol, or the server.
    pub(super) fn heading(&self) -> &'a str {
        match (self.section.kind, self.rows.first()) {
            (SectionKind::Generators, Some(row)) => &row.server.label,
            _ => self.protocols.first().map_or(MISSING, |protocol| protocol.prose()),
        }
    }

    /// The title of its section, with the server where that stands in no row.
    pub(super) fn title(&self) -> String {
        match self.section.kind {
            SectionKind::Generators => format!("{}, {}", self.section.title, self.heading()),
            _ => self.section.title.clone(),
        }
    }

    /// What its rows are of.
    pub(super) fn of(&self) -> &'static str {
        if self.section.kind == SectionKind::Generators { "Generator" } else { "Server" }
    }

    /// The servers down the side whose gate failed.
    pub(super) fn gates_failed(&self) -> impl Iterator<Item = &'a ServerRecord> {
        let servers = self.rows.iter().filter(|row| row.generator.is_none()).map(|row| row.server);
        servers.filter(|server| marks::gate_failed(server))
    }

    /// The table of figures.
    pub(super) fn figures(&self) -> Grid {
        match self.section.kind {
            SectionKind::Ratio => ratio::figures(self).unwrap_or_else(|| self.by_measure()),
            SectionKind::ClosedLoop => self.by_measure(),
            SectionKind::Generators => generators::figures(self),
            SectionKind::Setup => self.by_connection(),
            SectionKind::Handshake => handshake::figures(self),
        }
    }

    /// A group of rows for each measure.
    fn by_measure(&self) -> Grid {
        let mut groups = vec![self.group("req/s", Figure::Rate)];
        for percentile in &self.results.settings.percentiles {
            let name = percentile_name(*percentile);
            groups.push(self.group(&format!("{name} (ms)"), Figure::Latency(*percentile)));
        }
        groups.push(self.group("CPU µs/req", Figure::Cpu));
        Grid { header: self.columns.iter().map(|c| c.title.clone()).collect(), groups }
    }

    /// One row for each server: connections per second and what each cost.
    fn by_connection(&self) -> Grid {
        let rates = self.group("", Figure::Rate).rows;
        let cpu = self.group("", Figure::Cpu).rows;
        let rows = rates.into_iter().zip(cpu);
        let rows = rows.map(|((label, rates), (_, cpu))| (label, [rates, cpu].concat())).collect();
        let one_version = self.protocols.iter().all(|protocol| protocol.is_http1());
        let per_second = self.columns.iter().map(|column| {
            let unit = if one_version && column.key.protocol.is_tls() { "handshakes/s" } else { "conn/s" };
            format!("{} {unit}", column.title)
        });
        let cpu = self.columns.iter().map(|column| format!("{} CPU µs/conn", column.title));
        Grid { header: per_second.chain(cpu).collect(), groups: vec![Group { title: String::new(), rows }] }
    }

    /// The table of what stands behind the figures, for the servers that have any; `None` when none
    /// has.
    pub(super) fn background(&self) -> Option<Grid> {
        let measured = |row: &Row<'_>| {
            let cells = self.columns.iter().filter_map(|column| self.cell(*row, column));
            cells.into_iter().any(|cell| cell.summary.rounds_measured > 0)
        };
        let measured: Vec<Row<'_>> = self.rows.iter().copied().filter(measured).collect();
        let of_cell = |title: &str, show: &dyn Fn(&CellRecord) -> Option<String>| Group {
            title: title.to_owned(),
            rows: self.rows(&measured, &|cell| {
                let text = cell.and_then(show).unwrap_or_else(|| MISSING.into());
                Shown { text, best: false, marks: vec![] }
            }),
        };
        let group = |title: &str, show: &dyn Fn(&Summary) -> Option<String>| {
            of_cell(title, &|cell| show(&cell.summary))
        };
        let mut groups = vec![
            group("bound by", &|s| s.bound.map(|bound| bound_name(bound).to_owned())),
            group("server CPUs busy", &|s| s.server_busy.map(text::percent)),
            group("its busiest thread", &|s| s.server_busiest_thread.map(text::percent)),
            group("generator busy", &|s| s.generator_busy.map(text::percent)),
            group("spread of the rate", &|s| s.spread.map(text::plus_minus)),
            group("peak memory (MiB)", &|s| s.server_peak_rss_kib.map(text::mebibytes)),
        ];
        if self.section.kind != SectionKind::Handshake {
            groups.insert(4, group("requests in flight", &|s| s.in_flight.map(|n| format!("{n:.2}"))));
        }
        if self.section.kind == SectionKind::Generators {
            // The table of figures has it.
            groups.remove(0);
        }
        if self.section.kind == SectionKind::Ratio {
            groups.insert(0, group("CPU µs/req", &|s| s.server_cpu_us_per_request.map(text::micros)));
        }
        if self.cells().any(|cell| other_clock(cell).is_some()) {
            groups.push(of_cell("CPU µs/req by the scheduler", &|cell| match other_clock(cell) {
                None if cell.summary.rounds_measured == 0 => None,
                None => Some("within 2 %".into()),
                Some(micros) => Some(text::micros(micros)),
            }));
        }
        for (title, kind) in handshake::KINDS {
            let count = |cell: &CellRecord| handshake::count(cell, kind);
            let worth_it = self.section.kind == SectionKind::Handshake
                || self.cells().any(|cell| cell.resumption != Resumption::Off);
            if worth_it && self.cells().any(|cell| count(cell).is_some()) {
                groups.push(of_cell(title, &|cell| count(cell).map(group_thousands)));
            }
        }
        if self.cells().any(|cell| allowed(cell).is_some_and(|m| m.least < cell.concurrency)) {
            groups.push(of_cell("streams allowed", &|cell| allowed(cell).map(streams)));
        }
        // What servers of HTTP/2 and HTTP/3 do to their connections; mostly nothing.
        for (title, count) in EVENTS {
            let sum = |cell: &CellRecord| sum(cell, count);
            if self.cells().any(|cell| cell.protocol.multiplexes() && sum(cell).is_some_and(|n| n > 0)) {
                groups.push(of_cell(title, &|cell| sum(cell).map(group_thousands)));
            }
        }
        let header = self.columns.iter().map(|column| column.title.clone()).collect();
        (!measured.is_empty()).then_some(Grid { header, groups })
    }

    /// The table of QUIC's health; `None` when no cell was measured over QUIC.
    pub(super) fn health(&self) -> Option<Grid> {
        health::table(self)
    }

    fn cells(&self) -> impl Iterator<Item = &'a CellRecord> {
        self.named_cells().map(|(_, cell)| cell)
    }

    /// Why nothing was busy, where it is known, with the names of the cells that say so.
    pub(super) fn idle_reasons(&self) -> Vec<(&'a str, Vec<String>)> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for (name, cell) in self.named_cells() {
            let Some(reason) = cell.summary.bound_reason.as_deref() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(name),
                None => reasons.push((reason, vec![name])),
            }
        }
        reasons
    }

    /// Every round as a row; `None` for a section that does not ask for it.
    pub(super) fn runs(&self) -> Option<Runs> {
        runs::runs(self)
    }

    /// What each server answered, by its label.
    pub(super) fn answers(&self) -> Vec<(String, String)> {
        runs::answers(self)
    }

    /// The places of a ratio at which both protocols are equal within noise, by name.
    pub(super) fn even(&self) -> Vec<String> {
        if self.section.kind == SectionKind::Ratio { ratio::even(self) } else { Vec::new() }
    }

    /// The cells with their names: label of the row and title of the column.
    pub(super) fn named_cells(&self) -> impl Iterator<Item = (String, &'a CellRecord)> {
        self.rows.iter().flat_map(move |row| {
            self.columns.iter().filter_map(move |column| {
                let cell = self.cell(*row, column)?;
                Some((format!("{} {}", row.label, column.short()), cell))
            })
        })
    }

    /// The columns in which several servers are best within noise, each with those servers ordered
    /// by CPU per request, the lowest first: what still tells them apart.
    pub(super) fn ties(&self) -> Vec<Tie<'a>> {
        let mut ties = Vec::new();
        if matches!(self.section.kind, SectionKind::Ratio | SectionKind::Handshake) {
            // Nothing wins in the one, and it is no rate that the other is about.
            return ties;
        }
        if !self.equal_workers() {
            // CPU per request cannot tell these apart.
            return ties;
        }
        for column in &self.columns {
            let best = self.best(column, Figure::Rate);
            let mut tied: Vec<(&str, Option<f64>)> = self
                .rows
                .iter()
                .zip(best)
                .filter(|(_, best)| *best)
                .map(|(row, _)| {
                    let of_generator = self.section.kind == SectionKind::Generators;
                    let figure = if of_generator { Figure::GeneratorCpu } else { Figure::Cpu };
                    (row.label, self.cell(*row, column).and_then(|cell| value(&cell.summary, figure)))
                })
                .collect();
            if tied.len() > 1 {
                tied.sort_by(|(_, a), (_, b)| a.unwrap_or(f64::MAX).total_cmp(&b.unwrap_or(f64::MAX)));
                ties.push(Tie { column: column.title.clone(), servers: tied });
            }
        }
        ties
    }

    /// The places without figures and why, equal reasons of a server together.
    pub(super) fn blanks(&self) -> Vec<Blank<'a>> {
        let mut blanks = Vec::new();
        for row in &self.rows {
            let mut found: Vec<(&'static str, String, &[String], Vec<&Column>)> = Vec::new();
            for column in &self.columns {
                let Some(cell) = self.cell(*row, column) else { continue };
                let Some(shows) = blank(cell.summary.verdict) else { continue };
                let reason = cell.summary.reasons.join("; ");
                let mut logs = cell.rounds.iter().map(|round| round.log_tail.as_slice());
                let log = logs.rfind(|log| !log.is_empty()).unwrap_or_default();
                match found.iter_mut().find(|(s, r, ..)| *s == shows && *r == reason) {
                    Some((.., columns)) => columns.push(column),
                    None => found.push((shows, reason, log, vec![column])),
                }
            }
            for (shows, reason, log_tail, columns) in found {
                let cells = self.named_together(&columns);
                blanks.push(Blank { label: row.label, cells, shows, reason, log_tail });
            }
        }
        blanks
    }

    /// Several columns in words: `every cell`, `every HTTP/2 cell`, or their titles.
    fn named_together(&self, columns: &[&Column]) -> String {
        if columns.len() == self.columns.len() {
            return "every cell".into();
        }
        let of = |protocol| self.columns.iter().filter(move |column| column.key.protocol == protocol).count();
        match columns {
            [first, _, ..]
                if self.section.kind == SectionKind::Ratio
                    && of(first.key.protocol) == columns.len()
                    && columns.iter().all(|column| column.key.protocol == first.key.protocol) =>
            {
                format!("every {} cell", first.key.protocol.version())
            }
            _ => columns.iter().map(|column| column.title.as_str()).collect::<Vec<_>>().join(", "),
        }
    }

    fn cell(&self, row: Row<'_>, column: &Column) -> Option<&'a CellRecord> {
        let key = CellKey { generator: row.generator, ..column.key };
        self.section.cells.iter().find(|cell| cell.server == row.server.name && cell.key() == key)
    }

    fn group(&self, title: &str, figure: Figure) -> Group {
        let mut rows = self.rows(&self.rows, &|cell| self.shown(cell, figure));
        for (at, column) in self.columns.iter().enumerate() {
            for (row, best) in rows.iter_mut().zip(self.best(column, figure)) {
                row.1[at].best = best;
            }
        }
        Group { title: title.to_owned(), rows }
    }

    fn rows(
        &self,
        rows: &[Row<'_>],
        show: &dyn Fn(Option<&CellRecord>) -> Shown,
    ) -> Vec<(String, Vec<Shown>)> {
        let row = |row: &Row<'_>| {
            let places = self.columns.iter().map(|column| show(self.cell(*row, column)));
            (row.name(), places.collect())
        };
        rows.iter().map(row).collect()
    }

    /// Which rows are best in a column. With one of them there is nothing to be best of. Figures
    /// that print alike are equal to a reader, so what prints as the best does is best too.
    fn best(&self, column: &Column, figure: Figure) -> Vec<bool> {
        if self.rows.len() < 2 || (figure.is_cpu() && !self.equal_workers()) {
            return vec![false; self.rows.len()];
        }
        let (kind, settings) = (self.section.kind, &self.results.settings);
        let cells: Vec<Option<&CellRecord>> = self.rows.iter().map(|row| self.cell(*row, column)).collect();
        let candidates: Vec<Candidate> = cells
            .iter()
            .zip(&self.rows)
            .map(|(cell, row)| match cell {
                Some(cell) => Candidate {
                    value: value(&cell.summary, figure),
                    spread: spread(cell, figure),
                    eligible: marks::may_win(figure, cell, kind, settings)
                        && (row.generator.is_some() || !marks::gate_failed(row.server)),
                },
                None => Candidate { value: None, spread: None, eligible: false },
            })
            .collect();
        let mut winners = marks::winners(figure, &candidates);
        // A floor that beats the best of the others shows that it is not the best.
        let floors = cells.iter().zip(&candidates).filter(|(cell, _)| {
            cell.is_some_and(|cell| {
                marks::marks_of(figure, cell, kind, settings).contains(&Mark::GeneratorBound)
            })
        });
        let floor =
            floors.filter_map(|(_, candidate)| candidate.value).reduce(|a, b| marks::better(figure, a, b));
        let best = candidates.iter().zip(&winners).filter(|(_, won)| **won).filter_map(|(c, _)| c.value);
        if let (Some(floor), Some(best)) = (floor, best.reduce(|a, b| marks::better(figure, a, b)))
            && floor != best
            && marks::better(figure, floor, best) == floor
        {
            winners.fill(false);
        }
        let texts: Vec<String> = cells.iter().map(|cell| self.shown(*cell, figure).text).collect();
        let best: Vec<&String> =
            texts.iter().zip(&winners).filter(|(_, won)| **won).map(|(t, _)| t).collect();
        texts.iter().zip(&candidates).map(|(text, c)| c.eligible && best.contains(&text)).collect()
    }

    fn shown(&self, cell: Option<&CellRecord>, figure: Figure) -> Shown {
        let plain = |text: &str| Shown { text: text.to_owned(), best: false, marks: vec![] };
        let Some(cell) = cell else { return plain(MISSING) };
        let summary = &cell.summary;
        if let Some(shows) = blank(summary.verdict) {
            return plain(shows);
        }
        let Some(value) = value(summary, figure) else { return plain(MISSING) };
        let text = match figure {
            Figure::Rate | Figure::Connections => text::rate(value),
            Figure::Latency(100.0) if summary.max_is_lower_bound => format!("≥ {}", text::millis(value)),
            Figure::Latency(_) | Figure::Setup(_) | Figure::FirstResponse => text::millis(value),
            Figure::Cpu | Figure::GeneratorCpu | Figure::CpuPerConnection => text::micros(value),
        };
        let marks = marks::marks_of(figure, cell, self.section.kind, &self.results.settings);
        Shown { text, best: false, marks }
    }
}

impl Row<'_> {
    /// Its label with the sign of a gate that failed.
    fn name(&self) -> String {
        if marks::gate_failed(self.server) && self.generator.is_none() {
            return format!("{} {}", self.label, marks::GATE);
        }
        self.label.to_owned()
    }
}

impl Column {
    /// The title as it stands within a sentence: `C = 10`, `1x10`.
    fn short(&self) -> String {
        self.title.replace(" x ", "x")
    }
}

/// The columns of these protocols, each in the order of its cells; in a ratio those of one size stand
/// together.
fn columns(section: &SectionRecord, protocols: &[Protocol]) -> Vec<Column> {
    let one_version = protocols.iter().all(|protocol| protocol.is_http1());
    let mut columns: Vec<Column> = Vec::new();
    for &protocol in protocols {
        let mut keys: Vec<CellKey> = Vec::new();
        for cell in section.cells.iter().filter(|cell| cell.protocol == protocol) {
            // The generator is told by the row.
            let key = CellKey { generator: None, ..cell.key() };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let single = keys.iter().all(|key| key.concurrency == 1);
        let one_size = keys.iter().all(|key| key.connections == keys[0].connections) && single;
        // Where there is one version of HTTP, its transports are what tells the columns apart.
        let name = if one_version { protocol.scheme() } else { protocol.name() };
        for &key in &keys {
            let CellKey { connections, concurrency, resumption, .. } = key;
            let size =
                if single { format!("C = {connections}") } else { format!("{connections} x {concurrency}") };
            let of_size = if one_size { String::new() } else { format!(" ({size})") };
            let title = match section.kind {
                SectionKind::ClosedLoop | SectionKind::Generators => size.clone(),
                SectionKind::Ratio => format!("{} {size}", protocol.version()),
                SectionKind::Setup if resumption == Resumption::Off => format!("{name}{of_size}"),
                SectionKind::Setup | SectionKind::Handshake => {
                    format!("{name} {}{of_size}", resumption.prose())
                }
            };
            columns.push(Column { key, size, title });
        }
    }
    if section.kind == SectionKind::Ratio {
        let order: Vec<String> = columns.iter().map(|column| column.size.clone()).collect();
        columns.sort_by_key(|column| order.iter().position(|size| *size == column.size));
    }
    columns
}

/// CPU time per request by the scheduler's clock in µs, where it differs from the figure of the table.
pub(super) fn other_clock(cell: &CellRecord) -> Option<f64> {
    let rounds = used_rounds(cell).into_iter();
    let finer = rounds.filter_map(|round| round.server.as_ref()?.cpu_us_per_request_schedstat);
    stats::median(&finer.collect::<Vec<_>>())
}

/// What the server allowed on a connection.
fn allowed(cell: &CellRecord) -> Option<EffectiveConcurrency> {
    cell.summary.effective_concurrency
}

/// `8`, or `1 to 8` when it changed.
fn streams(allowed: EffectiveConcurrency) -> String {
    let EffectiveConcurrency { least, most } = allowed;
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// A count of one measurement.
type Count = fn(&Measurement) -> u64;

/// A count over the rounds that figures of a cell are taken from; `None` without one.
pub(super) fn sum(cell: &CellRecord, count: Count) -> Option<u64> {
    measured(cell).map(count).reduce(u64::saturating_add)
}

/// The measurements that figures of a cell are taken from.
fn measured(cell: &CellRecord) -> impl Iterator<Item = &Measurement> {
    used_rounds(cell).into_iter().filter_map(|round| round.measurement.as_ref())
}

/// Connections of the window that took the place of one that ended; over the whole life in files that
/// know no better.
pub(super) fn reopened(m: &Measurement) -> u64 {
    let of_the_window = m.connection.reopened_in_window.unwrap_or(m.connection.reopened);
    // Where connections are meant to be short, every one of them takes the place of another.
    if m.keepalive && m.requests_per_connection.is_none() { of_the_window } else { 0 }
}

/// What happens to the connections and requests of a cell, over all rounds.
const EVENTS: [(&str, Count); 3] = [
    ("connections reopened", reopened),
    ("requests sent again", |m| m.requests.replayed),
    ("requests interrupted", |m| m.requests.interrupted),
];

/// `p99.9`; the 100th percentile is the maximum.
pub(super) fn percentile_name(percentile: f64) -> String {
    if percentile == 100.0 { "max".into() } else { format!("p{}", percentile_key(percentile)) }
}

fn value(summary: &Summary, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Rate => summary.requests_per_second,
        Figure::Latency(percentile) => summary.latency_us.get(&percentile_key(percentile)).copied().flatten(),
        Figure::Cpu => summary.server_cpu_us_per_request,
        Figure::GeneratorCpu => summary.generator_cpu_us_per_request,
        _ => of_connections(summary, figure).map(|median| median.value),
    }
}

/// A figure of single connections.
fn of_connections(summary: &Summary, figure: Figure) -> Option<Median> {
    let figures = summary.handshake.as_ref()?;
    match figure {
        Figure::Connections => figures.connections_per_second,
        Figure::Setup(SetupTime::Least) => figures.min_us,
        Figure::Setup(SetupTime::P50) => figures.p50_us,
        Figure::Setup(SetupTime::P99) => figures.p99_us,
        Figure::FirstResponse => figures.first_response_p50_us,
        Figure::CpuPerConnection => figures.server_cpu_us_per_connection,
        Figure::Rate | Figure::Latency(_) | Figure::Cpu | Figure::GeneratorCpu => None,
    }
}

fn spread(cell: &CellRecord, figure: Figure) -> Option<f64> {
    let summary = &cell.summary;
    match figure {
        Figure::Rate => summary.spread,
        Figure::Latency(percentile) => {
            summary.latency_spread.get(&percentile_key(percentile)).copied().flatten()
        }
        Figure::Cpu => summary.server_cpu_spread,
        Figure::GeneratorCpu => external::cpu_spread(cell),
        _ => of_connections(summary, figure)?.spread,
    }
}

/// What stands in the place of a cell without figures; `None` for a cell that has them.
fn blank(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Absent => Some(MISSING),
        Verdict::Failed | Verdict::WrongProtocol => Some("FAIL"),
        Verdict::Interrupted => Some("cut"),
        Verdict::Valid
        | Verdict::Starved
        | Verdict::GeneratorBound
        | Verdict::Unstable
        | Verdict::Tainted => None,
    }
}

fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::Server => "server",
        Bound::Generator => "generator",
        Bound::Neither => "neither",
    }
}
