//! Owns `bench load`: its arguments and what it prints.

use super::Exit;

/// Drive one URL with the load generator
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    Exit::CouldNot
}
