//! Owns `bench run`: its arguments and what it prints.

use super::Exit;

/// Run a scenario: start each server, measure every cell, write the report
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    Exit::CouldNot
}
