//! Owns `bench report`: its arguments and what it prints.

use super::Exit;

/// Render a results file again, measuring nothing
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    Exit::CouldNot
}
