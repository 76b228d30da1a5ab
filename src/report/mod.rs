//! Owns the rendering of results: results file in, Markdown and terminal tables out. A pure function
//! of the results: no clock, no environment, and the same bytes each time.

pub mod diff;
mod grid;
pub mod history;
mod load;
mod notes;
mod page;
pub mod picture;
mod render;
mod rounds;
mod terminal;
mod text;
mod tools;
mod view;

pub use crate::results::marks;
pub use load::measurement;
pub use render::templates;

use crate::results::{Results, quic};

/// A results file that cannot be rendered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub String);

/// The report of a run with the pictures it shows.
#[derive(Clone, Debug)]
pub struct Report {
    /// The report, in Markdown.
    pub text: String,
    /// What it shows from files in [`picture::folder`] beside it, one for each [`picture::Theme`].
    pub pictures: Vec<picture::Picture>,
}

/// The report of a run that is to stand in a file of this name, without the ending.
///
/// # Errors
/// An unknown template.
pub fn report(results: &Results, name: &str) -> Result<Report, RenderError> {
    let folder = picture::address(&picture::folder(name));
    let view = view::view(results, view::Placement::Files(&folder));
    let text = render::render(&results.template, &view)?;
    Ok(Report { text, pictures: view.pictures })
}

/// The Markdown report of a run, in a file of the name that the run gave it.
///
/// # Errors
/// An unknown template.
pub fn markdown(results: &Results) -> Result<String, RenderError> {
    Ok(report(results, &results.report)?.text)
}

/// The report as one page of HTML that needs nothing beside it: tables, pictures, every round, the
/// scenario. It has no script and asks for nothing over a network.
///
/// # Errors
/// An unknown template.
pub fn page(results: &Results) -> Result<String, RenderError> {
    page::page(results)
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
