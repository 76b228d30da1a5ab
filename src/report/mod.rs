//! Owns the rendering of results: results file in, Markdown and terminal tables out.

mod load;

pub use load::measurement;

use crate::results::Results;

/// A results file that cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub String);

/// The Markdown report of a run.
///
/// # Errors
/// An unknown template.
pub fn markdown(results: &Results) -> Result<String, RenderError> {
    let _ = results;
    unimplemented!("report helper")
}

/// The table printed on the terminal at the end of a run; plain text, `width` columns at most.
pub fn terminal(results: &Results, width: usize) -> String {
    let _ = (results, width);
    unimplemented!("report helper")
}
