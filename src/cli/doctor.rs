//! Owns `bench doctor`: its arguments and what it prints.

use super::Exit;

/// Say what on this machine would spoil a measurement
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    Exit::CouldNot
}
