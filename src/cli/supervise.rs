//! Owns `bench supervise`, a part of this program's own machinery rather than a command for people:
//! the process that stands between the orchestrator and a server. See `server::supervise`.

use std::io::{self, Write};

use super::Exit;
use crate::server::supervise::{become_server, supervise};

/// Stand between the orchestrator and one server (used by `bench run`)
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Become the server below this supervisor
    #[arg(long = "become", value_name = "PID", requires = "command")]
    below: Option<i32>,

    /// CPUs the server is pinned to
    #[arg(long, value_name = "LIST", requires = "below")]
    cpus: Option<String>,

    /// The server's program and arguments
    #[arg(last = true, requires = "below")]
    command: Vec<String>,
}

/// Runs the command. What is printed goes to the server's log.
pub fn run(args: Args) -> Exit {
    let error = match args.below {
        Some(supervisor) => match parse_cpus(args.cpus.as_deref().unwrap_or_default()) {
            Ok(cpus) => become_server(supervisor, &cpus, &args.command),
            Err(error) => io::Error::other(error),
        },
        None => match supervise() {
            Ok(()) => return Exit::Measured,
            Err(error) => error,
        },
    };
    // The log may have gone with the orchestrator.
    let _ = writeln!(io::stderr(), "bench supervise: {error}");
    Exit::CouldNot
}

/// Reads `0,2,3`; nothing is no CPU.
fn parse_cpus(list: &str) -> Result<Vec<u32>, String> {
    let number = |cpu: &str| cpu.parse().map_err(|_| format!("`{cpu}` in --cpus is no CPU number"));
    list.split(',').filter(|cpu| !cpu.is_empty()).map(number).collect()
}
