//! Owns what a template is given: every string of a report, already Markdown, so that a template
//! holds layout and prose only. The one place of `report` that knows serialisation.

use serde::Serialize;

use super::grid::{self, Blank, Grid, Runs, Sheet, Shown, Tie};
use super::marks::{self, Mark};
use super::picture::{self, Picture};
use super::text::{self, MISSING, Side, code, escape, table};
use super::tools::{self, Told};
use super::{notes, quoted};
use crate::results::{
    BUSY_LOAD, CellRecord, Environment, Protocol, Results, Resumption, SectionKind, SectionRecord,
    ServerOrder, ServerRecord, Session, Settings, SocketMode, Verdict, WaitMode, stats,
};
use crate::time::Span;
use crate::units::{format_duration, group_thousands};

/// A whole report.
#[derive(Serialize)]
pub(super) struct View {
    title: String,
    /// When the run ended, or began when it did not end by itself.
    generated_at: String,
    command: String,
    /// What must be known before any figure is read: overrides, mixed or incomplete runs.
    notices: Vec<String>,
    environment: String,
    settings: String,
    sections: Vec<SectionView>,
    /// `None` when no server was planned.
    servers: Option<String>,
    /// What came of the servers' gates.
    gates: Vec<BlankView>,
    /// How load generators that are compared were called; `None` without any.
    generators: Option<String>,
    /// Figures of probes; `None` without any.
    probes: Option<String>,
    /// Why some of them are missing.
    probe_problems: Vec<BlankView>,
    legend: Vec<String>,
    notes: Vec<String>,
    expect: String,
    /// The pictures its tables refer to.
    #[serde(skip)]
    pub(super) pictures: Vec<Picture>,
}

/// How a report shows its pictures.
#[derive(Clone, Copy)]
pub(super) enum Placement<'a> {
    /// From files in the folder at this relative address.
    Files(&'a str),
    /// By [`placeholder`]s, for a page that has them within itself.
    Within,
}

/// What stands in the place of a picture of [`View::pictures`] until a page has it.
pub(super) fn placeholder(index: usize) -> String {
    format!("<!-- picture {index} -->")
}

#[derive(Serialize)]
struct SectionView {
    title: String,
    /// `closed-loop`, `setup`, `ratio` or `handshake`: which part renders it.
    kind: &'static str,
    /// True when HTTP/2 is among its protocols.
    http2: bool,
    /// True when HTTP/3 is.
    http3: bool,
    /// What its handshakes are, where they are all to be of one kind that is not the full one.
    resumption: Option<&'static str>,
    /// Requests on each connection of a handshake section.
    requests: u32,
    /// Connections at the same time of a handshake section.
    concurrency: u32,
    /// The two protocols of a ratio.
    pair: Option<PairView>,
    /// Header fields of its requests; `None` without any.
    headers: Option<String>,
    tables: Vec<TableView>,
}

/// What a ratio compares.
#[derive(Serialize)]
struct PairView {
    /// `HTTP/2`.
    first: &'static str,
    second: &'static str,
    tls: bool,
}

#[derive(Serialize)]
struct TableView {
    /// What tells it from the other tables of the section.
    heading: String,
    figures: String,
    /// What shows the pictures of the figures.
    pictures: Vec<String>,
    /// `None` when no cell of the table has figures.
    background: Option<String>,
    /// QUIC's health; `None` when no cell of the table was measured over QUIC.
    quic: Option<String>,
    /// Cells that neither side kept from being faster, with what did, in words.
    idle: Vec<String>,
    /// One line a mark: its sign, and each cell that carries it.
    footnotes: Vec<String>,
    /// Ties of the rate, in words.
    ties: Option<String>,
    /// Places of a ratio at which both protocols are equal within noise.
    even: Option<String>,
    blanks: Vec<BlankView>,
    /// What each server answered; `None` where that was not looked at.
    answers: Option<String>,
    /// Every round; `None` where the section does not ask for them.
    runs: Option<RunsView>,
}

/// The rounds of a table.
#[derive(Serialize)]
struct RunsView {
    rounds: String,
    /// `None` when no round has a rate.
    over: Option<String>,
    missing: Vec<String>,
    /// Too long to stand open.
    folded: bool,
}

#[derive(Serialize)]
struct BlankView {
    text: String,
    /// A fenced block, or nothing.
    log: Option<String>,
}

pub(super) fn view(results: &Results, placement: Placement<'_>) -> View {
    let mut pictures = Vec::new();
    let sections = (1..).zip(&results.sections);
    let sections = sections.map(|(number, section)| {
        section_view(results, section, &mut |sheet, of_several| {
            let new = picture::of_sheet(sheet, &sheet_name(number, of_several, &section.title));
            let shown = new.iter().enumerate().map(|(n, picture)| match placement {
                Placement::Files(folder) => picture.embedded(folder),
                Placement::Within => placeholder(pictures.len() + n),
            });
            let shown = shown.collect();
            pictures.extend(new);
            shown
        })
    });
    let sections = sections.collect();
    let last = results.sessions.last();
    let at = last.map(|s| s.finished_at.as_deref().unwrap_or(&s.started_at));
    View {
        title: escape(&results.title),
        generated_at: at.map_or_else(|| MISSING.into(), escape),
        command: last.map_or_else(|| MISSING.into(), |s| code(&quoted(&s.command))),
        notices: notices(results),
        environment: pairs("Item", environment(results)),
        settings: pairs("Setting", settings(results)),
        sections,
        servers: (!results.servers.is_empty()).then(|| servers(results)),
        gates: tools::gates(results).into_iter().map(told_view).collect(),
        generators: tools::generators(results),
        probes: tools::probes(results),
        probe_problems: tools::probe_problems(results).into_iter().map(told_view).collect(),
        legend: legend(results),
        notes: notes::notes(results),
        expect: escape(&results.settings.expect),
        pictures,
    }
}

/// `2-http-2-over-tls`, or `2-1-http-2-over-tls`: a table by the number of its section, its own number where
/// it is one of several, and the title.
fn sheet_name(section: usize, sheet: Option<usize>, title: &str) -> String {
    let numbers = [Some(section), sheet].into_iter().flatten().map(|number| number.to_string());
    let parts: Vec<String> = numbers.chain([picture::slug(title)]).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

fn notices(results: &Results) -> Vec<String> {
    let mut notices = Vec::new();
    if !results.complete {
        let rounds = results.settings.rounds as usize;
        let cells = || results.sections.iter().flat_map(|section| &section.cells);
        let outcomes = |cell: &CellRecord| match cell.summary.verdict {
            Verdict::Absent => rounds,
            _ => cell.rounds.len().min(rounds),
        };
        let done: usize = cells().map(outcomes).sum();
        notices.push(format!(
            "**Incomplete run**: {done} of {} windows have an outcome; the others were not reached.",
            cells().count() * rounds
        ));
    }
    if !results.overrides.is_empty() {
        let list: Vec<String> = results.overrides.iter().map(|phrase| escape(phrase)).collect();
        notices.push(format!("**Not the scenario as written**: {}.", list.join("; ")));
    }
    if results.sessions.len() > 1 {
        notices.push(format!(
            "**Mixed run**: measured in {} sessions, so drift of the machine between them is in the \
             comparison.",
            results.sessions.len()
        ));
        notices.extend(
            (1..).zip(&results.sessions).map(|(number, session)| session_line(results, number, session)),
        );
    }
    notices
}

fn session_line(results: &Results, number: u32, session: &Session) -> String {
    let rounds = results.sections.iter().flat_map(|s| &s.cells).flat_map(|c| &c.rounds);
    let measured = rounds
        .filter(|r| r.session == number - 1 && (r.measurement.is_some() || r.external.is_some()))
        .count();
    let end = session
        .finished_at
        .as_deref()
        .map_or_else(|| "was killed".into(), |at| format!("ended {}", escape(at)));
    let first = &results.sessions[0].environment;
    let differing: Vec<&str> = machine_rows(first)
        .into_iter()
        .zip(machine_rows(&session.environment))
        .filter(|(a, b)| a.1 != b.1)
        .map(|(a, _)| a.0)
        .collect();
    let differing = match differing[..] {
        [] => String::new(),
        _ => format!("; **differs from session 1** in {}", differing.join(", ")),
    };
    format!(
        "Session {number}: began {}, {end}; windows measured: {measured}{differing}.",
        escape(&session.started_at)
    )
}

/// The rows that tell one machine from another.
fn machine_rows(environment: &Environment) -> Vec<(&'static str, String)> {
    let optional = |text: &Option<String>| text.as_deref().map_or_else(|| MISSING.into(), escape);
    vec![
        ("Host", escape(&environment.host)),
        ("Kernel", escape(&environment.kernel)),
        ("CPU", format!("{} ({} logical cores)", escape(&environment.cpu), environment.logical_cpus)),
        ("Memory", format!("{} MiB", text::mebibytes(environment.memory_kib))),
        ("Commit", optional(&environment.commit)),
    ]
}

fn environment(results: &Results) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let Some(session) = results.sessions.first() else { return rows };
    rows.extend(machine_rows(&session.environment).into_iter().map(|(item, value)| (item.to_owned(), value)));
    if let Some(run) = &session.environment.ci_run {
        rows.push(("CI run".into(), escape(run)));
    }
    for server in &results.servers {
        let version = server.version.as_deref().map_or_else(|| MISSING.into(), escape);
        let of = server.revision.as_deref().map(|commit| format!(", built from commit {}", escape(commit)));
        rows.push((escape(&server.label), version + &of.unwrap_or_default()));
    }
    for generator in &results.generators {
        let version = generator.version.as_deref().map_or_else(|| MISSING.into(), escape);
        rows.push((format!("{} (generator)", escape(&generator.label)), version));
    }
    rows.push(("Load generator".into(), generator(results)));
    rows
}

/// Tool, engine, TLS and the kernel features found and used.
fn generator(results: &Results) -> String {
    let mut parts = vec![escape(&results.tool)];
    let measured = || {
        let rounds = results.sections.iter().flat_map(|s| &s.cells).flat_map(|c| &c.rounds);
        rounds.filter_map(|round| round.measurement.as_ref()).map(|m| &m.generator)
    };
    if let Some(generator) = measured().next() {
        let used = generator.features.iter().filter(|(_, used)| **used);
        let used: Vec<String> = used.map(|(name, _)| escape(name)).collect();
        let used = if used.is_empty() { String::new() } else { format!(" ({})", used.join(", ")) };
        parts.push(format!("{}{used}", escape(&generator.engine)));
    }
    parts.extend(measured().find_map(|generator| generator.tls.as_deref()).map(escape));
    parts.join("; ")
}

fn settings(results: &Results) -> Vec<(String, String)> {
    let s = &results.settings;
    let kind = |kind| results.sections.iter().any(|section| section.kind == kind);
    let mut rows = Vec::new();
    if kind(SectionKind::ClosedLoop) || results.sections.is_empty() {
        let length = windows(results, SectionKind::ClosedLoop);
        let what = format!("median of {} x {length} closed-loop windows, keep-alive", s.rounds);
        rows.push(("Throughput and latency", what));
        rows.push(("Cells (C x M)", cells(results, SectionKind::ClosedLoop)));
    }
    if kind(SectionKind::Ratio) {
        let length = windows(results, SectionKind::Ratio);
        let what = format!("median of {} x {length} closed-loop windows", s.rounds);
        let of = cells(results, SectionKind::Ratio);
        let ratios = results.sections.iter().filter(|section| section.kind == SectionKind::Ratio);
        let udp = ratios.flat_map(|section| &section.cells).any(|cell| cell.protocol.is_quic());
        let place = if udp { "host and port" } else { "listener" };
        rows.push(("Ratios", format!("{what} over each of two protocols of one {place}; {of}")));
    }
    if kind(SectionKind::Generators) {
        let length = windows(results, SectionKind::Generators);
        let what = format!("median of {} x {length} runs, each a command of its own", s.rounds);
        rows.push(("Generators", format!("{what}; {}", cells(results, SectionKind::Generators))));
    }
    if kind(SectionKind::Setup) {
        let what = format!("median of {} windows, each request on a fresh connection", s.rounds);
        rows.push(("Connection set-up", format!("{what}; {}", setup_limits(results))));
    }
    if kind(SectionKind::Handshake) {
        let what = format!("median of {} windows of many short connections", s.rounds);
        rows.push(("Handshakes", format!("{what}; {}", handshake_limits(results))));
    }
    rows.extend(quic(results).map(|quic| ("QUIC", quic)));
    rows.push(("Warm-up", format!("{} before each window, not counted", warmups(results))));
    rows.push(("Expected response", escape(&s.expect)));
    rows.push(("TLS certificate", escape(&s.certificate)));
    rows.push(("Core isolation", isolation(s)));
    rows.push(("Worker threads", workers(results)));
    if s.order == ServerOrder::Abba {
        rows.push(("Order of servers", "every second round goes back the way of the one before it".into()));
    }
    if !only_generators(results) {
        rows.push(("Waiting of the generator", waiting(results)));
    }
    rows.push(("Machine load", machine_load(results)));
    if !results.overrides.is_empty() {
        let list: Vec<String> = results.overrides.iter().map(|phrase| escape(phrase)).collect();
        rows.push(("Overridden", list.join("; ")));
    }
    rows.into_iter().map(|(setting, value)| (setting.to_owned(), value)).collect()
}

/// The lengths of the windows of a kind of section as they were asked for: a section may have its own.
fn windows(results: &Results, kind: SectionKind) -> String {
    let rounds = results.sections.iter().filter(|s| s.kind == kind).flat_map(|s| &s.cells);
    let asked = rounds.flat_map(|cell| &cell.rounds).filter_map(|round| {
        let own = round.measurement.as_ref().map(|m| (m.window.asked_requests, m.window.asked_s));
        match own.or_else(|| round.external.as_ref().map(|run| (None, Some(run.asked_s))))? {
            (Some(requests), _) => Some(format!("{} requests", group_thousands(requests))),
            (None, asked) => asked.map(seconds),
        }
    });
    either(asked, seconds(results.settings.duration_s))
}

/// The warm-ups as they were asked for.
fn warmups(results: &Results) -> String {
    let rounds = results.sections.iter().flat_map(|s| &s.cells).flat_map(|cell| &cell.rounds);
    let asked = rounds.filter_map(|round| round.measurement.as_ref()).map(|m| m.window.warmup_s);
    let asked = asked.map(|warmup| if warmup == 0.0 { "none".into() } else { seconds(warmup) });
    either(asked, seconds(results.settings.warmup_s))
}

/// Each text once: `2s or 500ms`; the other one where there is none.
fn either(texts: impl Iterator<Item = String>, otherwise: String) -> String {
    let mut each: Vec<String> = Vec::new();
    for text in texts {
        if !each.contains(&text) {
            each.push(text);
        }
    }
    if each.is_empty() { otherwise } else { each.join(" or ") }
}

/// True when no cell was driven by this tool's own generator by a plan.
fn only_generators(results: &Results) -> bool {
    let sections = &results.sections;
    !sections.is_empty() && sections.iter().all(|section| section.kind == SectionKind::Generators)
}

fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return MISSING.into();
    }
    format_duration(Span::from_nanos((seconds * 1e9).round() as u64))
}

/// The sizes of the cells of a kind, each once, in order.
fn cells(results: &Results, kind: SectionKind) -> String {
    let mut sizes: Vec<String> = Vec::new();
    for cell in results.sections.iter().filter(|s| s.kind == kind).flat_map(|s| &s.cells) {
        let size = format!("{} x {}", cell.connections, cell.concurrency);
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    if sizes.is_empty() { MISSING.into() } else { sizes.join(", ") }
}

/// What ended the windows of set-up cells, as they recorded it.
fn setup_limits(results: &Results) -> String {
    let mut limits: Vec<String> = Vec::new();
    let sections = results.sections.iter().filter(|section| section.kind == SectionKind::Setup);
    for cell in sections.flat_map(|section| &section.cells) {
        for window in cell.rounds.iter().filter_map(|r| r.measurement.as_ref()).map(|m| &m.window) {
            let limit = match (window.asked_requests, window.asked_s) {
                (Some(requests), _) => {
                    format!("{} connections at C = {}", group_thousands(requests), cell.connections)
                }
                (None, Some(asked)) => format!("{} at C = {}", seconds(asked), cell.connections),
                (None, None) => continue,
            };
            if !limits.contains(&limit) {
                limits.push(limit);
            }
        }
    }
    if limits.is_empty() { cells(results, SectionKind::Setup) } else { limits.join(", ") }
}

/// How many connections the handshake cells have, as they recorded it.
fn handshake_limits(results: &Results) -> String {
    let mut limits: Vec<String> = Vec::new();
    let sections = results.sections.iter().filter(|section| section.kind == SectionKind::Handshake);
    for cell in sections.flat_map(|section| &section.cells) {
        let each = cell.requests_per_connection.unwrap_or(1);
        let windows = cell.rounds.iter().filter_map(|r| r.measurement.as_ref()).map(|m| &m.window);
        for requests in windows.filter_map(|window| window.asked_requests) {
            let limit = format!(
                "{} connections with {each} request{} each, {}",
                group_thousands(requests / u64::from(each.max(1))),
                if each == 1 { "" } else { "s" },
                match cell.connections {
                    1 => "one after the other".to_owned(),
                    many => format!("{many} at the same time"),
                }
            );
            if !limits.contains(&limit) {
                limits.push(limit);
            }
        }
    }
    if limits.is_empty() { cells(results, SectionKind::Handshake) } else { limits.join("; ") }
}

/// How QUIC used its sockets, as the cells recorded it; `None` without a cell over QUIC.
fn quic(results: &Results) -> Option<String> {
    let mut ways: Vec<String> = Vec::new();
    let rounds = results.sections.iter().flat_map(|s| &s.cells).flat_map(|c| &c.rounds);
    for health in rounds.filter_map(|round| round.measurement.as_ref()?.quic.as_ref()) {
        let socket = match health.socket {
            SocketMode::PerConnection => "a socket for each connection",
            SocketMode::Shared => "one socket for all connections of a thread",
        };
        let pacing = if health.pacing { "paced" } else { "not paced" };
        let buffer = match health.receive_buffer_bytes {
            Some(bytes) => format!(", receive buffer {} KiB", group_thousands(bytes / 1024)),
            None => String::new(),
        };
        let way = format!("{socket}, {pacing}, payload up to {} bytes{buffer}", health.max_payload);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    (!ways.is_empty()).then(|| ways.join("; "))
}

fn isolation(settings: &Settings) -> String {
    let cpus = |cpus: &[u32]| match cpus {
        [] => "not pinned".to_owned(),
        [only] => format!("on CPU {only}"),
        _ => format!("on CPUs {}", cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    format!("servers {}, generator {}", cpus(&settings.server_cpus), cpus(&settings.generator_cpus))
}

/// The number of worker threads that the servers were told to use, and which were told another.
fn workers(results: &Results) -> String {
    let settings = &results.settings;
    let told = |server: &ServerRecord| {
        let workers = server.workers.filter(|workers| *workers != settings.workers)?;
        Some(format!("{} {workers}", escape(&server.label)))
    };
    let others: Vec<String> = results.servers.iter().filter_map(told).collect();
    let others = if others.is_empty() { String::new() } else { format!(", but {}", others.join(", ")) };
    format!("{} per server{others}; generator {}", settings.workers, settings.generator_threads)
}

fn waiting(results: &Results) -> String {
    let told = results.settings.wait.name();
    let rounds = || {
        let rounds = results.sections.iter().flat_map(|s| &s.cells).flat_map(|c| &c.rounds);
        rounds.filter_map(|round| round.measurement.as_ref())
    };
    if rounds().next().is_none() {
        return told.into();
    }
    let polled = rounds().filter(|m| m.generator.waited == WaitMode::Poll).count();
    format!("{told}; polled in {polled} of {} windows, slept in the others", rounds().count())
}

/// Load at the start of each session.
fn machine_load(results: &Results) -> String {
    let loads = results.sessions.iter().map(|session| {
        let cpus = f64::from(session.environment.logical_cpus);
        match session.environment.load_at_start {
            Some(load) => {
                format!("{load:.2} at start ({})", if load > BUSY_LOAD * cpus { "busy" } else { "quiet" })
            }
            None => MISSING.into(),
        }
    });
    loads.collect::<Vec<_>>().join("; ")
}

fn section_view(
    results: &Results,
    section: &SectionRecord,
    illustrate: &mut dyn FnMut(&Sheet<'_>, Option<usize>) -> Vec<String>,
) -> SectionView {
    let sheets = grid::sheets(results, section);
    let protocols: Vec<Protocol> = sheets.iter().flat_map(Sheet::protocols).copied().collect();
    let first = section.cells.first();
    SectionView {
        title: escape(&section.title),
        kind: match section.kind {
            SectionKind::ClosedLoop => "closed-loop",
            SectionKind::Setup => "setup",
            SectionKind::Ratio => "ratio",
            SectionKind::Handshake => "handshake",
            SectionKind::Generators => "generators",
        },
        http2: protocols.iter().any(|protocol| protocol.version() == "HTTP/2"),
        http3: protocols.iter().any(|protocol| protocol.is_quic()),
        resumption: first
            .map(|cell| cell.resumption)
            .filter(|resumption| section.kind == SectionKind::Setup && *resumption != Resumption::Off)
            .map(Resumption::prose),
        requests: first.and_then(|cell| cell.requests_per_connection).unwrap_or(1),
        concurrency: first.map_or(1, |cell| cell.connections),
        pair: match protocols[..] {
            [first, second] if section.kind == SectionKind::Ratio => {
                Some(PairView { first: first.version(), second: second.version(), tls: first.is_tls() })
            }
            _ => None,
        },
        headers: headers(section),
        tables: (1..)
            .zip(&sheets)
            .map(|(n, sheet)| {
                let of_several = (sheets.len() > 1).then_some(n);
                table_view(results, sheet, illustrate(sheet, of_several))
            })
            .collect(),
    }
}

fn table_view(results: &Results, sheet: &Sheet<'_>, pictures: Vec<String>) -> TableView {
    let of = sheet.of();
    TableView {
        heading: escape(sheet.heading()),
        figures: grid_table(&sheet.figures(), of),
        pictures,
        background: sheet.background().as_ref().map(|grid| grid_table(grid, of)),
        quic: sheet.health().as_ref().map(|grid| grid_table(grid, of)),
        idle: idle(sheet),
        footnotes: footnotes(results, sheet),
        ties: ties(sheet),
        even: even(sheet),
        blanks: sheet.blanks().iter().map(blank_view).collect(),
        answers: answers(sheet),
        runs: sheet.runs().map(|runs| runs_view(&runs, of)),
    }
}

fn headers(section: &SectionRecord) -> Option<String> {
    let fields = section.headers.iter().map(|field| code(&format!("{}: {}", field.name, field.value)));
    let fields: Vec<String> = fields.collect();
    (!fields.is_empty()).then(|| fields.join(", "))
}

fn answers(sheet: &Sheet<'_>) -> Option<String> {
    let answers = sheet.answers();
    let each = answers.iter().map(|(label, answer)| format!("{}: {}", escape(label), escape(answer)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

fn runs_view(runs: &Runs, of: &str) -> RunsView {
    let rows = |grid: &Grid| grid.groups.iter().map(|group| group.rows.len()).sum::<usize>();
    RunsView {
        rounds: grid_table(&runs.rounds, of),
        over: (rows(&runs.over) > 0).then(|| grid_table(&runs.over, of)),
        missing: runs.missing.iter().map(|line| escape(&text::cut(line, REASON_LIMIT))).collect(),
        folded: rows(&runs.rounds) > OPEN_ROWS,
    }
}

/// A grid as Markdown, its rows of servers or whatever `of` says: a measure's name stands in the first row of its group.
fn grid_table(grid: &Grid, of: &str) -> String {
    let named = grid.groups.iter().any(|group| !group.title.is_empty());
    let mut header = vec![(of.to_owned(), Side::Left)];
    if named {
        header.insert(0, (String::new(), Side::Left));
    }
    header.extend(grid.header.iter().map(|title| (title.clone(), Side::Right)));
    let mut rows = Vec::new();
    for group in &grid.groups {
        for (i, (label, places)) in group.rows.iter().enumerate() {
            let mut row = Vec::new();
            if named {
                row.push(if i == 0 { format!("**{}**", group.title) } else { String::new() });
            }
            row.push(escape(label));
            row.extend(places.iter().map(place));
            rows.push(row);
        }
    }
    table(&header, &rows)
}

fn place(shown: &Shown) -> String {
    let signs = marks::signs(&shown.marks);
    if shown.best { format!("**{}**{signs}", shown.text) } else { format!("{}{signs}", shown.text) }
}

fn footnotes(results: &Results, sheet: &Sheet<'_>) -> Vec<String> {
    let note = |mark: Mark| {
        let marked =
            sheet.named_cells().filter(|(_, cell)| marks::marks(cell, &results.settings).contains(&mark));
        let cells: Vec<String> = marked
            .map(|(name, cell)| format!("{}: {}", escape(&name), escape(&marks::detail(mark, cell))))
            .collect();
        (!cells.is_empty()).then(|| format!("{} {}: {}.", mark.sign(), mark.name(), cells.join("; ")))
    };
    let gates: Vec<String> = sheet
        .gates_failed()
        .map(|server| format!("{}: {}", escape(&server.label), escape(&marks::gate_reason(server))))
        .collect();
    let gates = (!gates.is_empty()).then(|| format!("{} gate failed: {}.", marks::GATE, gates.join("; ")));
    Mark::ALL.into_iter().filter_map(note).chain(gates).collect()
}

fn ties(sheet: &Sheet<'_>) -> Option<String> {
    let columns: Vec<String> = sheet
        .ties()
        .into_iter()
        .map(|Tie { column, servers }| {
            let servers: Vec<String> = servers
                .into_iter()
                .map(|(label, cpu)| {
                    format!("{} {}", escape(label), cpu.map_or_else(|| MISSING.into(), text::micros))
                })
                .collect();
            format!("{column}: {}", servers.join(", "))
        })
        .collect();
    (!columns.is_empty()).then(|| columns.join("; "))
}

/// `Go 1x1, Go 10x1: each request costs …`.
fn idle(sheet: &Sheet<'_>) -> Vec<String> {
    let line = |(reason, names): (&str, Vec<String>)| {
        let names: Vec<String> = names.iter().map(|name| escape(name)).collect();
        format!("{}: {}", names.join(", "), escape(reason))
    };
    sheet.idle_reasons().into_iter().map(line).collect()
}

fn even(sheet: &Sheet<'_>) -> Option<String> {
    let names: Vec<String> = sheet.even().iter().map(|name| escape(name)).collect();
    (!names.is_empty()).then(|| names.join("; "))
}

fn told_view((text, log_tail): Told<'_>) -> BlankView {
    let last = &log_tail[log_tail.len().saturating_sub(LOG_LINES)..];
    BlankView { text, log: (!last.is_empty()).then(|| indent(&text::fenced(last))) }
}

fn blank_view(blank: &Blank<'_>) -> BlankView {
    let text = format!(
        "**{}**, {}: {}: {}",
        escape(blank.label),
        blank.cells,
        blank.shows,
        escape(&text::cut(&blank.reason, REASON_LIMIT))
    );
    told_view((text, blank.log_tail))
}

/// Two spaces before each line: a block inside a list item.
fn indent(block: &str) -> String {
    block.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The marks used anywhere, and what stands in places without figures.
fn legend(results: &Results) -> Vec<String> {
    let cells = || results.sections.iter().flat_map(|section| &section.cells);
    let used = |mark: &Mark| cells().any(|cell| marks::marks(cell, &results.settings).contains(mark));
    let mut legend: Vec<String> = Mark::ALL
        .into_iter()
        .filter(used)
        .map(|mark| format!("{} {}.", mark.sign(), mark.meaning()))
        .collect();
    let blanks: Vec<&str> = results
        .sections
        .iter()
        .flat_map(|section| grid::sheets(results, section))
        .flat_map(|sheet| sheet.blanks().into_iter().map(|blank| blank.shows).collect::<Vec<_>>())
        .collect();
    if results.servers.iter().any(marks::gate_failed) {
        legend.push(format!("{} {}.", marks::GATE, marks::GATE_MEANING));
    }
    let who = if results.generators.is_empty() { "the server" } else { "the server or the generator" };
    for (shows, meaning) in [
        (MISSING, format!("`n/a`: a tool {who} needs is absent, or the figure does not exist.")),
        ("FAIL", format!("`FAIL`: {who} did not complete the cell, or not over the protocol asked for.")),
        ("cut", "`cut`: the run ended before the cell was measured.".into()),
    ] {
        if blanks.contains(&shows) {
            legend.push(meaning);
        }
    }
    legend
}

fn servers(results: &Results) -> String {
    let header = ["Server", "Ready after (ms)", "Built in", "Peak memory (MiB)", "Command", "Note"];
    let side = |title: &&str| {
        let figure = title.contains('(') || title.starts_with("Built");
        ((*title).to_owned(), if figure { Side::Right } else { Side::Left })
    };
    let rows: Vec<Vec<String>> = results.servers.iter().map(|server| server_row(results, server)).collect();
    table(&header.iter().map(side).collect::<Vec<_>>(), &rows)
}

fn server_row(results: &Results, server: &ServerRecord) -> Vec<String> {
    let ready: Vec<f64> = server.starts.iter().filter_map(|start| start.ready_ms).collect();
    let cells = results.sections.iter().flat_map(|s| &s.cells).filter(|cell| cell.server == server.name);
    let peak = cells.filter_map(|cell| cell.summary.server_peak_rss_kib).max();
    let missing = || MISSING.to_owned();
    vec![
        escape(&server.label),
        stats::median(&ready).map_or_else(missing, text::rate),
        server.build_s.map_or_else(missing, |s| seconds((s * 10.0).round() / 10.0)),
        peak.map_or_else(missing, text::mebibytes),
        escape(&quoted(&server.command)),
        server.note.as_deref().map(escape).unwrap_or_default(),
    ]
}

/// A table of two columns.
fn pairs(item: &str, rows: Vec<(String, String)>) -> String {
    let header = [(item.to_owned(), Side::Left), ("Value".to_owned(), Side::Left)];
    table(&header, &rows.into_iter().map(|(item, value)| vec![item, value]).collect::<Vec<_>>())
}

/// Log lines shown with a failure; the JSON holds the others.
const LOG_LINES: usize = 8;
const REASON_LIMIT: usize = 600;
/// Rounds that stand open below a table; more are folded.
const OPEN_ROWS: usize = 20;
