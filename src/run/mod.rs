//! Owns the orchestrator: servers, sections, cells and rounds in order, from a checked scenario to a
//! results file. It makes no load itself: the generator is a child process, so that it can be pinned,
//! sampled and killed apart, and a crash costs one cell.
//!
//! Read in the order a run takes: `outputs` (files and lock), `resume` (what an earlier run left),
//! `prepare` (builds), `tools` (probes and gates), `schedule` (the order), `conductor` (the course),
//! `stage` (real servers), `answer` (what they answer), `cell` and `generator` (one cell), `external` (one
//! cell by another generator), `ledger` (what is kept).

mod answer;
mod cell;
mod conductor;
mod external;
#[cfg(test)]
mod fixture;
mod generator;
mod interrupt;
mod ledger;
mod limits;
mod outputs;
mod plan;
mod prepare;
mod probe;
mod progress;
mod record;
mod resume;
mod schedule;
mod stage;
mod tools;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

pub use generator::GeneratorCommand;

use crate::clock;
use crate::results::store::{self, Entry, Journal, StoreError};
use crate::results::{CellStatus, Environment, GateOutcome, GeneratorRecord, Results, ServerRecord};
use crate::scenario::Scenario;
use crate::server::{Certificate, Host, ServerError};
use crate::time::Span;
use conductor::{Conductor, Course};
use interrupt::Halt;
use ledger::{Keep, Ledger};
use outputs::Outputs;
use progress::Progress;
use schedule::{Start, Visit};
use stage::Machinery;

/// All that decides a run beside its scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Folder of the report files; `None`: `reports` beside the scenario's folder.
    pub out: Option<PathBuf>,
    /// Continue an unfinished run, or measure again what failed in a finished one.
    pub resume: bool,
    /// Keep the servers' logs also when all went well.
    pub keep_logs: bool,
    /// Measure nothing unless every server can be built and started here.
    pub every_server: bool,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The machine, for the record. Read before anything is built, because a build is load.
    pub environment: Environment,
    /// This program: it supervises servers.
    pub exe: PathBuf,
    /// How the generator is started.
    pub generator: GeneratorCommand,
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The results, as saved.
    pub results: Results,
    /// Where the results are.
    pub results_path: PathBuf,
    /// Where the report belongs.
    pub markdown_path: PathBuf,
    /// Where the logs are, when they were kept.
    pub logs: Option<PathBuf>,
    /// Why the run ended before its last cell.
    pub halted: Option<String>,
    /// The harness's own time relative to the time under load; `None` when nothing was measured.
    pub overhead: Option<f64>,
}

/// Why a run could not measure at all. Everything that goes wrong with a server is in [`Results`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunError(pub String);

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self(error.0)
    }
}

impl From<ServerError> for RunError {
    fn from(error: ServerError) -> Self {
        Self(error.reason)
    }
}

impl Outcome {
    /// True when every cell has a measurement in every round, and every probe ran, those of absent tools
    /// apart.
    pub fn all_measured(&self) -> bool {
        let done = |status| matches!(status, CellStatus::Measured | CellStatus::Absent);
        let cells = self.results.sections.iter().flat_map(|section| &section.cells);
        self.results.complete
            && cells.into_iter().all(|cell| cell.rounds.iter().all(|round| done(round.status)))
            && self.results.probes.iter().all(|probe| done(probe.status))
    }

    /// The names of the servers whose gate failed.
    pub fn gates_failed(&self) -> Vec<&str> {
        let failed = |server: &&ServerRecord| {
            server.gate.as_ref().is_some_and(|gate| gate.outcome == GateOutcome::Failed)
        };
        self.results.servers.iter().filter(failed).map(|server| server.name.as_str()).collect()
    }
}

/// Runs `scenario` and saves its results, cell by cell. Says on standard error how far it is.
///
/// Signals: see `interrupt`; this function installs handlers that stay.
///
/// # Errors
/// An output that cannot be written or is in use, a run that cannot be resumed, a generator that
/// cannot work on this machine.
pub fn run(scenario: &Scenario, options: Options) -> Result<Outcome, RunError> {
    let halt = Halt::install().map_err(|error| RunError(format!("signals cannot be handled: {error}")))?;
    let folder = options.out.clone().unwrap_or_else(|| outputs::default_folder(Path::new(&scenario.path)));
    let outputs = Outputs::open(&folder, &scenario.report)?;
    let mut progress = Progress::on_stderr();
    let outcome = run_into(scenario, options, &outputs, &halt, &mut progress);
    progress.end();
    outcome
}

fn run_into(
    scenario: &Scenario,
    options: Options,
    outputs: &Outputs,
    halt: &Halt,
    progress: &mut Progress,
) -> Result<Outcome, RunError> {
    let session = record::session(options.command, options.environment, clock::wall_rfc3339());
    let plan = record::results(scenario, session);
    let earlier = earlier_run(outputs, options.resume, &plan, progress)?;
    let done = earlier.as_ref().map_or_else(HashSet::new, |(_, results)| resume::done(scenario, results));
    let starts =
        schedule::starts(scenario, &|visit| obstacle(scenario, visit).is_none() && !done.contains(visit));
    let probes = resume::probes_left(scenario, earlier.as_ref().map(|(_, results)| results));
    if let Some((_, results)) = &earlier
        && results.complete
        && starts.is_empty()
        && probes.is_empty()
    {
        progress.say("nothing to resume: every cell has been measured");
        return Ok(outcome(results.clone(), outputs, None, &Course::default()));
    }

    limits::raise_open_files(scenario);
    stage::try_generator(scenario, &options.generator, halt).map_err(RunError)?;
    let scratch = scratch_folder()?;
    let host = Host {
        exe: options.exe,
        scratch: scratch.path().to_owned(),
        logs: outputs.logs(),
        certificate: Certificate::generate(scratch.path())?,
        cpus: scenario.pin.servers.clone(),
        workers: scenario.pin.workers,
    };
    let wanted = |server: usize| starts.iter().any(|start| start.server == server);
    let mut prepared = prepare::servers(scenario, &host, progress, &wanted, options.every_server)?;
    for record in &mut prepared {
        record.gate = earlier.as_ref().and_then(|(_, results)| resume::gate(results, &record.name));
    }
    let generators = prepare::generators(scenario, &host, progress, &starts);
    let starts = without_unavailable(scenario, starts, &prepared, &generators);

    let sessions_before = earlier.as_ref().map_or(0, |(_, results)| results.sessions.len());
    let session = record::index(sessions_before);
    let mut ledger = Ledger::open(outputs, earlier.map(|(entries, _)| entries).unwrap_or_default(), plan)?;
    for server in &prepared {
        ledger.keep(Entry::Server(Box::new(server.clone())))?;
    }
    for generator in generators.into_values() {
        ledger.keep(Entry::Generator(Box::new(generator)))?;
    }
    for entry in unspoken(scenario, session) {
        ledger.keep(entry)?;
    }
    ledger.save()?;

    halt.arm(scenario.run.run_deadline);
    for spec in probes {
        if halt.reason().is_none() {
            progress.now(&format!("probing {}", spec.label));
            let record = tools::probe(spec, &host, halt, session);
            progress.say(&progress::probed(&record));
            ledger.keep(Entry::Probe(Box::new(record)))?;
            ledger.save()?;
        }
    }
    let mut stage = Machinery { scenario, host: &host, generator: &options.generator, halt };
    for mut record in prepared {
        gate(&mut stage, &mut record, &mut ledger, progress)?;
    }
    ledger.save()?;

    let planned = starts.iter().flat_map(Start::visits).map(|visit| conductor::planned(scenario, &visit));
    let planned: Vec<Span> = planned.collect();
    progress.begin(planned.len(), planned.iter().fold(Span::ZERO, |sum, cell| sum + *cell));
    let conductor = Conductor {
        scenario,
        stage,
        keep: &mut ledger,
        halt,
        progress,
        session,
        spent: conductor::Spent::default(),
    };
    let course = conductor.conduct(&starts)?;
    let results = ledger.close(clock::wall_rfc3339())?;
    let mut outcome = outcome(results, outputs, Some(outputs.logs()), &course);
    if outcome.all_measured() && !options.keep_logs {
        // They were only for the failures there were none of.
        let _ = std::fs::remove_dir_all(outputs.logs());
    }
    outcome.logs = outcome.logs.filter(|logs| logs.exists());
    Ok(outcome)
}

/// Runs the gate of a server that has one without an outcome, and keeps what came of it.
fn gate(
    stage: &mut Machinery<'_>,
    record: &mut ServerRecord,
    ledger: &mut Ledger<'_>,
    progress: &mut Progress,
) -> Result<(), RunError> {
    let server = stage.scenario.servers.iter().position(|spec| spec.name == record.name);
    let Some(server) = server.filter(|_| record.unavailable.is_none() && record.gate.is_none()) else {
        return Ok(());
    };
    if stage.scenario.servers[server].gate.is_none() || stage.halt.reason().is_some() {
        return Ok(());
    }
    progress.now(&format!("gate of {}", record.label));
    record.gate = stage.gate(server)?;
    if let Some(gate) = &record.gate {
        progress.say(&progress::gated(&record.name, gate));
        ledger.keep(Entry::Server(Box::new(record.clone())))?;
    }
    Ok(())
}

/// What an earlier run left, when it is to be continued: its entries and what they fold into. Says
/// what was found and not used.
fn earlier_run(
    outputs: &Outputs,
    resume: bool,
    plan: &Results,
    progress: &mut Progress,
) -> Result<Option<(Vec<Entry>, Results)>, RunError> {
    let (journal, file) = (outputs.journal(), outputs.results());
    if !resume {
        if journal.exists() {
            progress.say(&format!(
                "starting over: an unfinished run is set aside as {}; --resume would have continued it",
                outputs.old_journal().display()
            ));
        }
        return Ok(None);
    }
    let mut entries = Journal::read(&journal)?;
    if entries.is_empty() && file.exists() {
        entries = resume::journal_of(&store::load(&file)?);
    }
    if entries.is_empty() {
        progress.say("nothing to resume here: starting from the beginning");
        return Ok(None);
    }
    let results = store::assemble(&entries)?;
    resume::same_question(&results, plan).map_err(RunError)?;
    Ok(Some((entries, results)))
}

/// Leaves out the starts of servers, and the cells of generators, that cannot be used at all.
fn without_unavailable(
    scenario: &Scenario,
    mut starts: Vec<Start>,
    prepared: &[ServerRecord],
    generators: &BTreeMap<usize, GeneratorRecord>,
) -> Vec<Start> {
    let unavailable = |start: &Start| {
        let name = &scenario.servers[start.server].name;
        prepared.iter().any(|server| server.name == *name && server.unavailable.is_some())
    };
    for start in &mut starts {
        start.cells.retain(|cell| {
            let generator = cell.generator.and_then(|index| generators.get(&index));
            generator.is_none_or(|generator| generator.unavailable.is_none())
        });
    }
    starts.into_iter().filter(|start| !unavailable(start) && !start.cells.is_empty()).collect()
}

/// Why a visit cannot be made, whatever the machine: its server or generator does not speak what it needs.
fn obstacle(scenario: &Scenario, visit: &Visit) -> Option<String> {
    let (section, server) = (&scenario.sections[visit.section], &scenario.servers[visit.server]);
    scenario.obstacle(section, server, visit.protocol, visit.cell)
}

/// One outcome for each cell whose protocols its server does not speak.
fn unspoken(scenario: &Scenario, session: u32) -> Vec<Entry> {
    let first = schedule::visits(scenario).into_iter().filter(|visit| visit.round == 1);
    first
        .filter_map(|visit| {
            let reason = obstacle(scenario, &visit)?;
            let round = record::without_measurement(&visit, session, CellStatus::Absent, reason, Vec::new());
            Some(record::entry(scenario, &visit, round))
        })
        .collect()
}

/// The scratch folder of this run, removed when it ends. Servers may run as another user, so others
/// may enter it.
fn scratch_folder() -> Result<tempfile::TempDir, RunError> {
    tempfile::Builder::new()
        .prefix("bench-run.")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .map_err(|error| RunError(format!("no scratch folder can be made: {error}; set TMPDIR")))
}

fn outcome(results: Results, outputs: &Outputs, logs: Option<PathBuf>, course: &Course) -> Outcome {
    Outcome {
        results,
        results_path: outputs.results(),
        markdown_path: outputs.markdown(),
        logs,
        halted: course.halted.clone(),
        overhead: course.spent.overhead(),
    }
}
