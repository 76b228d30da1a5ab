//! Owns `bench check`: its arguments and what it prints.

use super::Exit;

/// Validate a scenario and print its plan
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    Exit::CouldNot
}
