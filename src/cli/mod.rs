//! Owns the command line: arguments in, exit code out. Each command has a file with its arguments
//! and what it prints; the work is done by the modules below.

pub mod ab;
pub mod check;
pub mod comparing;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod load;
pub mod man;
pub mod narrow;
pub mod report;
pub mod run;
mod sides;
pub mod supervise;

use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};

/// How an invocation ended; the process's exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0: measured, and all that was asked to hold did.
    Measured = 0,
    /// 1: measured, but something asked to hold did not (a failed cell, nothing ok).
    Unmet = 1,
    /// 2: could not measure (a bad scenario or option, a missing kernel feature).
    CouldNot = 2,
}

#[derive(Parser, Debug)]
#[command(name = "bench", version, about = "Compare HTTP servers with figures that can be believed", long_about = None)]
#[command(after_help = "\
Examples:
  bench run scenarios/quick.toml                  start servers, measure, write reports/QUICK_RESULTS.md
  bench load -c 50 -z 10s http://127.0.0.1:8080/  drive a server that runs already
  bench ab --base main scenarios/http.toml --server rust-hyper
                                                  did a change make it slower?
  bench diff HEAD~1 HEAD                          what changed between two commits' reports
  bench doctor                                    is this machine fit for it?

Exit codes: 0 done; 1 done, but something asked to hold did not; 2 it could not be done.")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Ab(Box<ab::Args>),
    Load(Box<load::Args>),
    Report(report::Args),
    Diff(diff::Args),
    Check(check::Args),
    Doctor(doctor::Args),
    #[command(hide = true)]
    Supervise(supervise::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The definition of the whole command line, which help, completions and manual pages derive from.
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs `bench` with the process's arguments and returns how it ended.
pub fn main() -> Exit {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::CouldNot } else { Exit::Measured };
            let _ = error.print();
            return exit;
        }
    };
    match args.command {
        Command::Run(args) => run::run(args),
        Command::Ab(args) => ab::run(*args),
        Command::Load(args) => load::run(*args),
        Command::Report(args) => report::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Check(args) => check::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Supervise(args) => supervise::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}

/// Prints generated text; a reader that closed the pipe early wanted no more of it.
fn print(text: &[u8]) -> Exit {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Ok(()) => Exit::Measured,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Measured,
        Err(error) => {
            eprintln!("error: cannot write to standard output: {error}");
            Exit::CouldNot
        }
    }
}

/// The long options that help shows, by command; `bench` itself comes first.
#[cfg(test)]
fn visible_options() -> Vec<(String, Vec<String>)> {
    let mut root = command();
    root.build();
    let commands =
        root.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    std::iter::once(&root)
        .chain(commands)
        .map(|command| {
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            (
                command.get_name().to_owned(),
                shown.filter_map(|arg| arg.get_long()).map(str::to_owned).collect(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_do_not_contradict_each_other() {
        command().debug_assert();
    }
}
