//! Owns the journal: the file a run appends every outcome to the moment it has it, and how its lines
//! fold into [`Results`]. A kill at any moment loses at most the outcome in the making.
//!
//! One JSON object a line. A line counts once its newline is there, so a line cut short by a kill is
//! no line; whoever opens the journal next removes it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::store::{StoreError, folder};
use super::{
    CellKey, CellRecord, CellStatus, GeneratorRecord, ProbeRecord, Protocol, Results, Resumption,
    RoundRecord, ServerRecord, StartRecord, Unavailable, stats, version,
};

/// One line of a journal, in the order of happening.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first line, and one more for each resumption: the run without any round. Its `sessions`
    /// hold the one session that it opens.
    Plan(Box<Results>),
    /// What was found out about a server after the plan was written: its version, its build, that it
    /// cannot be measured. Replaces the record of that name; its starts are kept.
    Server(Box<ServerRecord>),
    /// What was found out about a generator. Replaces the record of that name.
    Generator(Box<GeneratorRecord>),
    /// What came of a probe. Replaces the record of that name.
    Probe(Box<ProbeRecord>),
    /// A server was started and stopped.
    Start {
        /// Name of the server.
        server: String,
        /// The record.
        start: StartRecord,
    },
    /// A round of a cell has an outcome.
    Round {
        /// Index into `sections`.
        section: u32,
        /// Name of the server.
        server: String,
        /// Protocol.
        protocol: Protocol,
        /// C.
        connections: u32,
        /// M.
        concurrency: u32,
        /// What its connections make of earlier ones; absent before format 1.2.
        #[serde(default)]
        resumption: Resumption,
        /// Requests after which a connection is replaced, as in the record of the cell.
        #[serde(default)]
        requests_per_connection: Option<u32>,
        /// Index of the generator, as in the record of the cell.
        #[serde(default)]
        generator: Option<u32>,
        /// The record.
        round: Box<RoundRecord>,
    },
    /// A session ended by itself, having measured everything or not.
    Finished {
        /// RFC 3339, UTC.
        at: String,
    },
}

/// An append-only file of [`Entry`] lines beside the results file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens `path` for appending, creating it. A last line that a kill cut short is removed, so that
    /// the next one does not continue it.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            let whole = end_of_last_line(&mut file)?;
            file.set_len(whole)?;
            file.sync_all()?;
            File::open(folder(path))?.sync_all()?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(e) => Err(StoreError(format!("{}: journal cannot be opened: {e}", path.display()))),
        }
    }

    /// Appends one line and syncs it to disk.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let mut write = || -> io::Result<()> {
            let mut line = serde_json::to_vec(entry)?;
            line.push(b'\n');
            self.file.write_all(&line)?;
            self.file.sync_data()
        };
        write().map_err(|e| {
            StoreError(format!("{}: journal cannot be written: {e}; free some space", self.path.display()))
        })
    }

    /// Reads what is in `path`; a last line cut short by a kill is left out, any other bad line is
    /// an error. A missing file is an empty journal.
    ///
    /// # Errors
    /// Names the file, the line and the cause.
    pub fn read(path: &Path) -> Result<Vec<Entry>, StoreError> {
        let fault = |what: String| StoreError(format!("{}: {what}", path.display()));
        let mut reader = match File::open(path) {
            Ok(file) => BufReader::new(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fault(format!("journal cannot be read: {e}"))),
        };
        let mut entries = Vec::new();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(|e| fault(format!("journal cannot be read: {e}")))?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let entry = parse_line(&line)
                .map_err(|e| fault(format!("line {number}: {e}; start over without --resume")))?;
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Folds a journal into the results of its run, as far as it got. Pure, and the same whether the
/// entries come from one session or from several.
///
/// A later outcome of a round replaces an earlier one, unless only the earlier was measured. Cells of
/// a server that is unavailable take its reason. Summaries are computed anew.
///
/// # Errors
/// A journal that does not begin with a plan, or that names a cell or server its plan does not have.
pub fn assemble(entries: &[Entry]) -> Result<Results, StoreError> {
    let Some((Entry::Plan(plan), rest)) = entries.split_first() else {
        return Err(StoreError("the journal does not begin with a plan; start over without --resume".into()));
    };
    let mut results = plan.as_ref().clone();
    for entry in rest {
        fold(&mut results, entry)?;
    }
    for section in &mut results.sections {
        for cell in &mut section.cells {
            if cell.rounds.is_empty()
                && let Some(unavailable) = unavailable(&results.servers, &results.generators, cell)
            {
                cell.rounds.push(unavailable_round(unavailable));
            }
            cell.rounds.sort_by_key(|round| round.round);
            cell.summary = stats::summarise(cell, section.kind, &results.settings);
        }
    }
    results.complete = is_complete(&results);
    Ok(results)
}

fn fold(results: &mut Results, entry: &Entry) -> Result<(), StoreError> {
    let unknown =
        |what: String| StoreError(format!("the journal names {what}, which its plan does not have"));
    match entry {
        Entry::Plan(plan) => results.sessions.extend(plan.sessions.iter().cloned()),
        Entry::Server(record) => {
            let server = results
                .servers
                .iter_mut()
                .find(|s| s.name == record.name)
                .ok_or_else(|| unknown(format!("server {}", record.name)))?;
            let starts = std::mem::take(&mut server.starts);
            *server = record.as_ref().clone();
            server.starts = starts;
        }
        Entry::Generator(record) => {
            let generator = results.generators.iter_mut().find(|g| g.name == record.name);
            *generator.ok_or_else(|| unknown(format!("generator {}", record.name)))? =
                record.as_ref().clone();
        }
        Entry::Probe(record) => {
            let probe = results.probes.iter_mut().find(|p| p.name == record.name);
            *probe.ok_or_else(|| unknown(format!("probe {}", record.name)))? = record.as_ref().clone();
        }
        Entry::Start { server: name, start } => {
            let server = results
                .servers
                .iter_mut()
                .find(|s| s.name == *name)
                .ok_or_else(|| unknown(format!("server {name}")))?;
            server.starts.push(start.clone());
            if let Some(session) = results.sessions.get_mut(start.session as usize) {
                session.order.push(format!("{} / {} / {name}", start.round, start.section + 1));
            }
        }
        &Entry::Round {
            section,
            ref server,
            protocol,
            connections,
            concurrency,
            resumption,
            requests_per_connection,
            generator,
            ref round,
        } => {
            let key = CellKey {
                protocol,
                connections,
                concurrency,
                resumption,
                requests_per_connection,
                generator,
            };
            let cell = results
                .sections
                .get_mut(section as usize)
                .and_then(|s| s.cells.iter_mut().find(|c| c.server == *server && c.key() == key))
                .ok_or_else(|| unknown(format!("cell {server} {key}")))?;
            record(cell, round);
        }
        Entry::Finished { at } => {
            if let Some(session) = results.sessions.last_mut() {
                session.finished_at = Some(at.clone());
            }
        }
    }
    Ok(())
}

/// Puts a round where an earlier outcome of it stands, unless that would lose the only measurement.
fn record(cell: &mut CellRecord, round: &RoundRecord) {
    match cell.rounds.iter_mut().find(|r| r.round == round.round) {
        Some(earlier) => {
            if earlier.status != CellStatus::Measured || round.status == CellStatus::Measured {
                *earlier = round.clone();
            }
        }
        None => cell.rounds.push(round.clone()),
    }
}

/// Why a cell cannot be measured at all: for want of its server, or of its generator.
fn unavailable<'a>(
    servers: &'a [ServerRecord],
    generators: &'a [GeneratorRecord],
    cell: &CellRecord,
) -> Option<&'a Unavailable> {
    let server = servers.iter().find(|server| server.name == cell.server);
    let generator = cell.generator.and_then(|index| generators.get(index as usize));
    server
        .and_then(|server| server.unavailable.as_ref())
        .or(generator.and_then(|generator| generator.unavailable.as_ref()))
}

fn unavailable_round(unavailable: &Unavailable) -> RoundRecord {
    RoundRecord {
        round: 1,
        session: 0,
        status: unavailable.status,
        reason: Some(unavailable.reason.clone()),
        log_tail: unavailable.log_tail.clone(),
        measurement: None,
        server: None,
        external: None,
        answer: None,
    }
}

/// Every probe, and every round of every cell, came to an end of its own, or the server or the generator
/// cannot be used at all.
fn is_complete(results: &Results) -> bool {
    let pending = [CellStatus::Pending, CellStatus::Interrupted];
    let probed = results.probes.iter().all(|probe| !pending.contains(&probe.status));
    probed
        && results.sections.iter().flat_map(|section| &section.cells).all(|cell| {
            let ended = |wanted: u32| {
                cell.rounds.iter().any(|round| {
                    let own = [CellStatus::Measured, CellStatus::Failed, CellStatus::WrongProtocol];
                    round.round == wanted && own.contains(&round.status)
                })
            };
            unavailable(&results.servers, &results.generators, cell).is_some()
                || cell.rounds.iter().any(|round| round.status == CellStatus::Absent)
                || (1..=results.settings.rounds).all(ended)
        })
}

fn parse_line(line: &[u8]) -> Result<Entry, String> {
    // A plan states its format; one of another format may differ in any other way.
    #[derive(Deserialize)]
    struct Format {
        format: Option<String>,
    }
    let Format { format } = serde_json::from_slice(line).map_err(|e| format!("not a journal line: {e}"))?;
    if let Some(format) = format {
        version::may_read(&format)?;
    }
    serde_json::from_slice(line).map_err(|e| format!("not a journal line: {e}"))
}

/// Length of the file up to and with its last newline.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut end = 0u64;
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(end);
        }
        end = end.saturating_add(length as u64);
    }
}
