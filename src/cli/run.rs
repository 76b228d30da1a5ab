//! Owns `bench run`: its arguments, and what it prints beside the progress that `run` shows.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::Exit;
use super::narrow::Narrow;
use crate::report;
use crate::results::store;
use crate::run::{self, GeneratorCommand, Options, Outcome};
use crate::sampler;
use crate::scenario::{self, Checked, Scenario};
use crate::units::format_duration;

/// Run a scenario: start each server, measure every cell, write the report
///
/// Servers are built once, then started afresh for each round, section and protocol, and stopped
/// again. Ctrl-C stops in good order and saves what was measured; a second one ends at once.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bench run scenarios/quick.toml
  bench run scenarios/http.toml --server nginx --cell 50x1 --rounds 1 --duration 5s
  bench run scenarios/http.toml --out /tmp/before
  bench run scenarios/generators.toml --generator builtin --generator wrk --cell 64x1
  bench run scenarios/http.toml --resume

Exit codes: 0 every cell was measured (n/a apart); 1 some were not, a probe or a gate failed, or the run
was stopped; 2 nothing could be measured, the message says why.")]
pub struct Args {
    /// The scenario file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,

    /// Folder of the report files [default: `reports` beside the folder `scenarios` that the file
    /// stands in, else in the working directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Continue a run that was stopped; measures only what is missing or failed
    #[arg(long)]
    resume: bool,

    /// Keep the servers' logs also when all went well
    #[arg(long)]
    keep_logs: bool,

    #[command(flatten)]
    narrow: Narrow,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match measure(args) {
        Ok(outcome)
            if outcome.halted.is_none() && outcome.all_measured() && outcome.gates_failed().is_empty() =>
        {
            Exit::Measured
        }
        Ok(_) => Exit::Unmet,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            Exit::CouldNot
        }
    }
}

fn measure(args: Args) -> Result<Outcome, String> {
    let machine = sampler::machine();
    let overrides = args.narrow.overrides()?;
    let checked = scenario::check(&args.scenario, &scenario::read_from_disk, &machine, &overrides)
        .map_err(|error| error.to_string())?;
    announce(&checked);
    let options =
        Options { resume: args.resume, keep_logs: args.keep_logs, ..options(&checked.scenario, args.out)? };
    let outcome = carry_out(&checked.scenario, options)?;
    conclude(&outcome);
    Ok(outcome)
}

/// What a run of this scenario by this program has in common, whatever the command.
pub(super) fn options(scenario: &Scenario, out: Option<PathBuf>) -> Result<Options, String> {
    let exe = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let folder = Path::new(&scenario.path).parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(Options {
        out,
        resume: false,
        keep_logs: false,
        every_server: false,
        command: std::env::args().collect(),
        environment: sampler::environment(
            folder.unwrap_or_else(|| ".".as_ref()),
            &scenario.pin.servers,
            &scenario.pin.generator,
        ),
        generator: GeneratorCommand::of(exe.clone()),
        exe,
    })
}

/// Runs a scenario and writes its report.
pub(super) fn carry_out(scenario: &Scenario, options: Options) -> Result<Outcome, String> {
    let outcome = run::run(scenario, options).map_err(|error| error.to_string())?;
    let markdown = report::markdown(&outcome.results).map_err(|error| error.to_string())?;
    store::replace(&outcome.markdown_path, markdown.as_bytes()).map_err(|error| error.to_string())?;
    Ok(outcome)
}

/// Says what is about to be done and how long it will take.
pub(super) fn announce(checked: &Checked) {
    let (scenario, estimate) = (&checked.scenario, checked.scenario.estimate());
    let mut text = format!(
        "{}: {} cells in {} rounds, about {} under load; building and starting servers comes on top\n",
        scenario.title,
        estimate.cells,
        scenario.run.rounds,
        format_duration(crate::time::Span::from_secs(estimate.load.as_nanos().div_ceil(1_000_000_000))),
    );
    for warning in &checked.warnings {
        text += &format!("warning: {warning}\n");
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints the table, the files written, and what to do next.
fn conclude(outcome: &Outcome) {
    let mut text = report::terminal(&outcome.results, width());
    text += &format!("\nwritten: {}\n", outcome.markdown_path.display());
    text += &format!("         {}\n", outcome.results_path.display());
    if let Some(logs) = &outcome.logs {
        text += &format!("logs:    {}\n", logs.display());
    }
    if let Some(overhead) = outcome.overhead {
        text += &format!("overhead of the harness: {:.1} % of the time under load\n", overhead * 100.0);
    }
    // A reader that went away does not undo the files.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let failed = outcome.gates_failed();
    if !failed.is_empty() {
        let _ = writeln!(std::io::stderr(), "gates failed: {}; the report says why", failed.join(", "));
    }
    let stopped = match &outcome.halted {
        Some(reason) => format!("stopped: {reason}"),
        None if !outcome.all_measured() => "some cells were not measured; the report says why".into(),
        None => return,
    };
    let again = resume_command(std::env::args());
    let _ = writeln!(std::io::stderr(), "{stopped}; continue with: {again}");
}

/// The command line that continues this one, ready to paste into a shell.
fn resume_command(args: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = args.map(|word| quoted(&word)).collect();
    if !words.iter().any(|word| word == RESUME) {
        words.push(RESUME.into());
    }
    words.join(" ")
}

/// A word as a POSIX shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Columns of the terminal, or enough for a file.
pub(super) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stdout())
        .map_or(COLUMNS, |(terminal_size::Width(columns), _)| usize::from(columns))
}

const RESUME: &str = "--resume";

/// Width of output that goes to no terminal.
const COLUMNS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_resume_survives_a_shell() {
        let words = ["bench", "run", "my scenarios/it's.toml", "--section", "Plain HTTP"];
        let command = resume_command(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(command, r"bench run 'my scenarios/it'\''s.toml' --section 'Plain HTTP' --resume");
        assert_eq!(resume_command(["b".to_owned(), "--resume".to_owned()].into_iter()), "b --resume");
    }
}
