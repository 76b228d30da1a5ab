//! Owns `bench ab`: its arguments, the run it makes of a scenario, and the comparison that follows.

mod versions;

use std::io::Write;
use std::path::PathBuf;

use super::Exit;
use super::comparing::{Comparing, Rules};
use super::narrow::Narrow;
use super::run::{announce, carry_out, options};
use crate::compare::{self, Comparison};
use crate::report::diff::{self, Diff};
use crate::results::{Results, ServerOrder};
use crate::run::{Options, Outcome};
use crate::sampler;
use crate::scenario::{self, Checked, Machine, ServerSpec};
use versions::Versions;

/// Compare two versions of one server, measured in turns beside an unchanged control
///
/// `--server` names the one server. Both versions are built apart and run in one job, A B and then B A, for
/// ten rounds unless `--rounds` says otherwise, so that a drift of the machine falls on both
/// alike. The versions are two revisions of the git repository that the server stands in, two folders in
/// place of its own, or two commands in place of its own. The control does not change: the base once
/// more, or another server of the scenario measured twice. Where it seems to, there are no verdicts.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("versions").required(true).args(["base", "base_dir", "base_command"])))]
#[command(after_help = "\
Examples:
  bench ab --base main scenarios/http.toml --server rust-hyper        the working tree against main
  bench ab --base v1.0 --head v1.1 scenarios/http.toml --server rust-hyper --cell 50x1 --fail-on 5%
  bench ab --base-dir ../old/server --head-dir server scenarios/http.toml --server ours
  bench ab --base-command './old --port {port}' --head-command './new --port {port}' s.toml --server ours
  bench ab --base origin/main scenarios/http.toml --server ours --limit comment > comment.md

Exit codes: 0 compared, and nothing that --fail-on names; 1 something it names, a cell that was not measured,
or the run was stopped; 2 a version cannot be built or nothing could be compared.")]
pub struct Args {
    /// The scenario file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,

    /// The older version: a revision of the repository that the server's folder is in, built in a worktree
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// The newer version [default: the working tree as it is]
    #[arg(long, value_name = "REV", requires = "base")]
    head: Option<String>,

    /// The older version as a folder in place of the server's
    #[arg(long, value_name = "DIR", requires = "head_dir")]
    base_dir: Option<PathBuf>,

    /// The newer version as a folder
    #[arg(long, value_name = "DIR", requires = "base_dir")]
    head_dir: Option<PathBuf>,

    /// The older version as a command in place of the server's, in shell words; nothing is built
    #[arg(long, value_name = "CMD", requires = "head_command")]
    base_command: Option<String>,

    /// The newer version as a command
    #[arg(long, value_name = "CMD", requires = "base_command")]
    head_command: Option<String>,

    /// What is measured beside them and does not change: a server of the scenario, measured twice in
    /// each round [default: the base once more]
    #[arg(long, value_name = "NAME")]
    control: Option<String>,

    /// Folder of AB_RESULTS.json and AB_RESULTS.md [default: as for `bench run`]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    narrow: Narrow,

    #[command(flatten)]
    comparing: Comparing,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match compared(&args) {
        Ok(exit) => exit,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            Exit::CouldNot
        }
    }
}

fn compared(args: &Args) -> Result<Exit, String> {
    let rules = args.comparing.rules()?;
    let machine = sampler::machine();
    let (mut checked, tested) = scenario_of(args, &machine)?;
    let versions = Versions::of(args, &tested, &machine)?;
    let control = control(args, &machine, &versions.base)?;
    arrange(&mut checked, &tested, &versions, &control);
    announce(&checked);
    let options = Options { every_server: true, ..options(&checked.scenario, args.out.clone())? };
    let outcome = carry_out(&checked.scenario, options)?;
    let _ = writeln!(
        std::io::stderr(),
        "written: {}\n         {}",
        outcome.markdown_path.display(),
        outcome.results_path.display()
    );
    if let Some(reason) = &outcome.halted {
        let _ = writeln!(std::io::stderr(), "stopped: {reason}; nothing is compared");
        return Ok(Exit::Unmet);
    }
    let mut comparison = comparison(&outcome.results, &tested, &control, &rules)?;
    (comparison.base.name, comparison.head.name) = (versions.base.label.clone(), versions.head.label.clone());
    let diff = Diff {
        base: versions.base.label.clone(),
        head: versions.head.label.clone(),
        reports: vec![diff::Report { file: file_name(&outcome), comparison }],
        missing: Vec::new(),
        new: Vec::new(),
        limits: rules.limits.clone(),
        forced: false,
    };
    let exit = rules.conclude(&diff, &format!("`{}`", outcome.results_path.display()));
    Ok(if exit == Exit::Measured && !outcome.all_measured() { Exit::Unmet } else { exit })
}

/// The scenario, narrowed as the command line says, and its server that is compared.
fn scenario_of(args: &Args, machine: &Machine) -> Result<(Checked, ServerSpec), String> {
    if args.narrow.servers.len() != 1 {
        return Err("--server: name the one server whose versions are compared".into());
    }
    let mut overrides = args.narrow.overrides()?;
    overrides.rounds.get_or_insert(ROUNDS);
    let checked = scenario::check(&args.scenario, &scenario::read_from_disk, machine, &overrides)
        .map_err(|error| error.to_string())?;
    let tested = only("--server", &checked)?.clone();
    Ok((checked, tested))
}

/// The one server that is left of a scenario.
fn only<'a>(option: &str, checked: &'a Checked) -> Result<&'a ServerSpec, String> {
    match &checked.scenario.servers[..] {
        [server] => Ok(server),
        several => {
            let names: Vec<&str> = several.iter().map(|server| server.name.as_str()).collect();
            Err(format!("{option}: there are several of this name; take one of {}", names.join(", ")))
        }
    }
}

/// The control: two servers that are the same, of which the first may be the base.
fn control(args: &Args, machine: &Machine, base: &ServerSpec) -> Result<Vec<ServerSpec>, String> {
    let Some(name) = &args.control else {
        // It is built already.
        let again = ServerSpec { build: Vec::new(), ..base.clone() };
        return Ok(vec![named(again, CONTROL, "control (base again)")]);
    };
    let overrides = scenario::Overrides { servers: vec![name.clone()], ..args.narrow.overrides()? };
    let checked = scenario::check(&args.scenario, &scenario::read_from_disk, machine, &overrides)
        .map_err(|error| error.to_string().replace("--server", "--control"))?;
    let control = only("--control", &checked)?;
    let label = format!("control ({})", control.label);
    let again = ServerSpec { build: Vec::new(), ..control.clone() };
    Ok(vec![
        named(control.clone(), CONTROL, &label),
        named(again, CONTROL_AGAIN, &format!("control ({}), again", control.label)),
    ])
}

/// A server under another name; it stands for itself, not as a variant of another.
fn named(spec: ServerSpec, name: &str, label: &str) -> ServerSpec {
    ServerSpec { name: name.into(), label: label.into(), variant: None, ..spec }
}

/// Puts the versions and the control in the place of the scenario's servers.
fn arrange(checked: &mut Checked, tested: &ServerSpec, versions: &Versions, control: &[ServerSpec]) {
    let scenario = &mut checked.scenario;
    scenario.title = format!("{}: {} against {}", tested.label, versions.head.label, versions.base.label);
    scenario.report = REPORT.into();
    scenario.servers = [&[versions.base.clone(), versions.head.clone()], control].concat();
    scenario.run.order = ServerOrder::Abba;
    let names: Vec<&str> = scenario.servers.iter().map(|server| server.label.as_str()).collect();
    scenario.overrides.push(format!("{} measured as {}, in turns", tested.label, names.join(", ")));
    if !scenario.run.rounds.is_multiple_of(2) {
        checked.warnings.push(format!(
            "of {} rounds one side comes first once more than the other; take an even number",
            scenario.run.rounds
        ));
    }
}

/// Base against head, without the verdicts that the control does not bear out.
///
/// # Errors
/// The base has no figure at all.
fn comparison(
    results: &Results,
    tested: &ServerSpec,
    control: &[ServerSpec],
    rules: &Rules,
) -> Result<Comparison, String> {
    let mut comparison = compare::servers(results, BASE, HEAD, &rules.options);
    let changes = || comparison.cells.iter().flat_map(|cell| &cell.changes);
    if changes().all(|change| change.base.is_none()) {
        let cells = results.sections.iter().flat_map(|section| &section.cells);
        let reason = cells.filter(|cell| cell.server == BASE).find_map(|cell| cell.summary.reasons.first());
        let reason = reason.map_or("no cell was planned", String::as_str);
        return Err(format!("the base was not measured, so there is nothing to compare with: {reason}"));
    }
    let (a, b) = match control {
        [again] => (BASE, again.name.as_str()),
        _ => (CONTROL, CONTROL_AGAIN),
    };
    let of_control = compare::servers(results, a, b, &rules.options);
    compare::withhold(&mut comparison, &control[0].label, &of_control);
    // To a reader both sides are the server of the scenario.
    let cells = comparison.cells.iter_mut().map(|cell| &mut cell.name);
    for name in cells.chain(&mut comparison.missing).chain(&mut comparison.new) {
        (name.server, name.label) = (tested.name.clone(), tested.label.clone());
    }
    Ok(comparison)
}

/// The file that the comparison is made from, without its folder.
fn file_name(outcome: &Outcome) -> String {
    outcome.results_path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Names of the sides in the results.
const BASE: &str = "base";
const HEAD: &str = "head";
const CONTROL: &str = "control";
/// The second measurement of a control that is not the base.
const CONTROL_AGAIN: &str = "control-again";

/// Base name of the report files.
const REPORT: &str = "AB_RESULTS";

/// Enough that a change of the size of the noise can be told, see `docs/methodology.md`.
const ROUNDS: u32 = 10;
