//! Owns the rendering of results: results file in, Markdown and terminal tables out. A pure function
//! of the results: no clock, no environment, and the same bytes each time.

pub mod diff;
mod grid;
mod load;
pub mod marks;
mod notes;
mod quic;
mod render;
mod terminal;
mod text;
mod tools;
mod view;

pub use load::measurement;
pub use render::templates;

use crate::results::Results;

/// A results file that cannot be rendered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub String);

/// The Markdown report of a run.
///
/// # Errors
/// An unknown template.
pub fn markdown(results: &Results) -> Result<String, RenderError> {
    render::render(&results.template, &view::view(results))
}

/// The table printed on the terminal at the end of a run; plain text, `width` columns at most where
/// a server's name and one figure fit into them. `*` stands before the best figures of a column.
pub fn terminal(results: &Results, width: usize) -> String {
    terminal::terminal(results, width)
}

/// A command line as a shell would take it.
fn quoted(command: &[String]) -> String {
    let word = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%{}".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}
