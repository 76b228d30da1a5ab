//! Owns the command line: arguments in, exit code out. Each command has a file with its arguments
//! and what it prints; the work is done by the modules below.

pub mod check;
pub mod doctor;
pub mod load;
pub mod narrow;
pub mod report;
pub mod run;
pub mod supervise;

use clap::{Parser, Subcommand};

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
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Load(load::Args),
    Report(report::Args),
    Check(check::Args),
    Doctor(doctor::Args),
    #[command(hide = true)]
    Supervise(supervise::Args),
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
        Command::Load(args) => load::run(args),
        Command::Report(args) => report::run(args),
        Command::Check(args) => check::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Supervise(args) => supervise::run(args),
    }
}
