//! Owns the pictures of a report: for each table its figures as bars and its latencies as curves, and
//! figures over commits as lines. A pure function of what is drawn: no clock, no environment, no font of
//! this machine, and the same bytes each time.
//!
//! A drawing knows classes and no colours, so one drawing serves a light page, a dark one and one that is
//! either. As files there are two of each: GitHub shows images by `<img>`, and a style sheet within one
//! that asks for the reader's colour scheme is answered by the operating system and not by the theme
//! chosen on GitHub, so that a reader who differs in the two sees ink on ink; `<picture>` with a `media`
//! for each file is resolved by the page, which knows.

mod canvas;
mod scale;
mod series;
mod theme;

use svg::node::element::Group;

pub use series::{Panel, Point, Series, series};
pub use theme::Theme;

/// A drawing with what is said of it.
#[derive(Clone, Debug)]
pub struct Picture {
    title: String,
    description: String,
    height: f64,
    drawing: Group,
}

impl Picture {
    /// Its finding in words, as plain text: what stands in its place where it cannot be seen.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The SVG document for a theme.
    pub fn svg(&self, theme: Theme) -> String {
        canvas::document(&self.drawing, &self.head(), theme)
    }

    fn head(&self) -> canvas::Head<'_> {
        canvas::Head { title: &self.title, description: &self.description, width: WIDTH, height: self.height }
    }
}

/// Width of every picture in pixels: that of a page of text on GitHub.
const WIDTH: f64 = 840.0;
/// Room around a drawing.
const MARGIN: f64 = 12.0;
/// From the top to the baseline of the title.
const TITLE_BASE: f64 = 24.0;
