//! Owns the scenario file: from TOML text to a checked [`Scenario`] whose cells are in order, or to
//! one message that says where the mistake is and what to write instead.
//!
//! Pure: the text of every file and the facts of the machine are passed in.

pub mod model;

pub use model::*;

/// A mistake in a scenario, ready to print: `file:line:column: key: what; suggestion`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ScenarioError(pub String);

/// What the command line narrows or overrides.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Overrides {
    /// Only these servers, by name or label.
    pub servers: Vec<String>,
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

/// Reads the text of a file a scenario refers to, e.g. `servers/nginx/server.toml`.
pub type ReadFile<'a> = &'a dyn Fn(&std::path::Path) -> std::io::Result<String>;

/// Reads and checks the scenario in `path`.
///
/// # Errors
/// The first mistake, with its position and a suggestion.
pub fn load(
    path: &std::path::Path,
    read: ReadFile<'_>,
    machine: &Machine,
    overrides: &Overrides,
) -> Result<Scenario, ScenarioError> {
    let _ = (path, read, machine, overrides);
    unimplemented!("scenario helper")
}
