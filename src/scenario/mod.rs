//! Owns the scenario file: from TOML text to a checked [`Scenario`] whose cells are in order, or to
//! one message that says where the mistake is and what to write instead.
//!
//! Pure: the text of every file and the facts of the machine are passed in. [`read_from_disk`] is
//! the reader that programs pass.

mod answers;
mod estimate;
mod expand;
mod file;
mod generators;
mod handshake;
pub mod keys;
pub mod model;
mod overrides;
mod pin;
mod reader;
mod sections;
mod servers;
mod settings;
mod source;
mod suggest;
#[cfg(test)]
mod tests;
mod tools;
mod variants;

use std::io::Read;
use std::path::Path;

pub use estimate::Estimate;
pub use expand::TEMPLATES;
pub use file::FORMAT;
pub use generators::{
    GENERATOR_PLACEHOLDERS, GeneratorSpec, LatencyUnit, OWN_PROGRAM, OutputSpec, PROTOCOL_FLAGS,
    protocol_flags,
};
pub use model::*;
pub use pin::{Split, format_cpus, parse_cpus, split};
pub use servers::started_by;
pub use tools::{FigureSpec, GateSpec, Pattern, ProbeSpec};

/// A mistake in a scenario, ready to print: `file:line:column: key: what; suggestion`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ScenarioError(pub String);

/// What the command line narrows or overrides.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Overrides {
    /// Only these servers, by name or label.
    pub servers: Vec<String>,
    /// Only these generators, by name or label.
    pub generators: Vec<String>,
    /// Only these sections, by number from 1, title or part of it.
    pub sections: Vec<String>,
    /// Only these cells, `CxM`.
    pub cells: Vec<String>,
    /// Rounds.
    pub rounds: Option<u32>,
    /// Window.
    pub duration: Option<crate::time::Span>,
    /// Warm-up.
    pub warmup: Option<crate::time::Span>,
}

/// Reads the text of a file a scenario refers to, e.g. `servers/nginx/server.toml`. For a folder it
/// gives the names in it, one a line, or an error of kind `IsADirectory` when it does not list.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// A checked scenario, with what a user should know of it before it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Checked {
    /// The scenario.
    pub scenario: Scenario,
    /// Why the CPUs are split the way they are, in one phrase.
    pub pin_reason: String,
    /// What is possible and still spoils figures, one sentence each.
    pub warnings: Vec<String>,
}

/// Reads and checks the scenario in `path`.
///
/// # Errors
/// The first mistake, with its position and a suggestion.
pub fn load(
    path: &Path,
    read: ReadFile<'_>,
    machine: &Machine,
    overrides: &Overrides,
) -> Result<Scenario, ScenarioError> {
    check(path, read, machine, overrides).map(|checked| checked.scenario)
}

/// Reads and checks the scenario in `path`; like [`load`], with warnings.
///
/// # Errors
/// The first mistake, with its position and a suggestion.
pub fn check(
    path: &Path,
    read: ReadFile<'_>,
    machine: &Machine,
    overrides: &Overrides,
) -> Result<Checked, ScenarioError> {
    let mut checked = expand::expand(path, read, machine)?;
    overrides::apply(&mut checked.scenario, overrides)?;
    checked.warnings.extend(expand::cell_warnings(&checked.scenario, machine));
    Ok(checked)
}

/// The [`ReadFile`] of the file system.
///
/// # Errors
/// Those of the file system, and files that are too large for a scenario or a server's configuration.
pub fn read_from_disk(path: &Path) -> std::io::Result<String> {
    if path.is_dir() && !path.ends_with("servers") {
        return Err(std::io::Error::new(
            std::io::ErrorKind::IsADirectory,
            "it is a folder; name a file in it",
        ));
    }
    if path.is_dir() {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        return Ok(names.join("\n"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        let what = format!("larger than {LARGEST_FILE} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

/// A thousand times the size of a usual scenario.
const LARGEST_FILE: u64 = 1 << 20;
