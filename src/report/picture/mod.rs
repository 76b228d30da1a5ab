//! Owns the pictures of a report: for each table its figures as bars and its latencies as curves, and
//! figures over commits as lines. A pure function of what is drawn: no clock, no environment, no font of
//! this machine, and the same bytes each time.
//!
//! A drawing knows classes and no colours, so one drawing serves a light page, a dark one and one that is
//! either. As files there are two of each: GitHub shows images by `<img>`, and a style sheet within one
//! that asks for the reader's colour scheme is answered by the operating system and not by the theme
//! chosen on GitHub, so that a reader who differs in the two sees ink on ink; `<picture>` with a `media`
//! for each file is resolved by the page, which knows.

mod bars;
mod canvas;
mod curves;
mod scale;
mod series;
mod theme;

use svg::node::element;

pub(super) use bars::{Bar, Bars, Group, Panel as BarPanel, Row};
pub(super) use curves::{Curve, Curves, Panel as CurvePanel, percentiles};
pub use series::{Panel, Point, Series, series};
pub use theme::Theme;
pub(super) use theme::{properties, rules};

use super::grid::Sheet;
use super::text::one_line;

/// A drawing with what is said of it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What tells it apart from the others of a report, and may stand in a file name.
    name: String,
    title: String,
    description: String,
    height: f64,
    drawing: element::Group,
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

    /// The name of its file for a theme; files of one name show one drawing.
    pub fn file_name(&self, theme: Theme) -> String {
        format!("{}-{}.svg", self.name, theme.name())
    }

    /// The lines of Markdown that show it, from files in the folder at this relative address.
    pub(super) fn embedded(&self, folder: &str) -> String {
        let address = |theme| attribute(&format!("{folder}/{}", self.file_name(theme)));
        let text = attribute(&self.description);
        format!(
            "<picture>\n\
             <source media=\"(prefers-color-scheme: dark)\" srcset=\"{}\">\n\
             <img src=\"{}\" width=\"{WIDTH}\" alt=\"{text}\">\n\
             </picture>",
            address(Theme::Dark),
            address(Theme::Light),
        )
    }

    /// The SVG element for a page that has [`properties`] and [`rules`] in its style sheet.
    pub(super) fn part(&self) -> String {
        canvas::part(&self.drawing, &self.head())
    }

    fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    fn head(&self) -> canvas::Head<'_> {
        canvas::Head { title: &self.title, description: &self.description, width: WIDTH, height: self.height }
    }
}

/// The pictures of a table, in the order they are shown. `at` tells the table apart from the others of
/// the report, for people and in file names.
pub(super) fn of_sheet(sheet: &Sheet<'_>, at: &str) -> Vec<Picture> {
    let bars = bars::draw(&sheet.bars()).named(format!("{at}-figures"));
    let curves = sheet.curves().map(|curves| curves::draw(&curves).named(format!("{at}-latency")));
    std::iter::once(bars).chain(curves).collect()
}

/// The folder that the pictures of the report `name` stand in, beside it.
pub fn folder(name: &str) -> String {
    format!("{name}.pictures")
}

/// A relative address that leads to a file or folder of this name, whatever it is (RFC 3986 §2.1).
pub(super) fn address(name: &str) -> String {
    let mut address = String::new();
    for byte in name.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => address.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(byte)),
            byte => address += &format!("%{byte:02X}"),
        }
    }
    address
}

/// A foreign string as the value of an HTML attribute in double quotes, on one line.
fn attribute(text: &str) -> String {
    let text = one_line(text).replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// A foreign string as part of a file name and of an address: lower-case letters and digits, what stands
/// between them as one hyphen, of bounded length.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    if slug.len() > SLUG_LIMIT {
        // At the end of a word, where one ends.
        let end = slug[..=SLUG_LIMIT].rfind('-').unwrap_or(SLUG_LIMIT);
        slug.truncate(end);
    }
    slug.trim_end_matches('-').to_owned()
}

/// Characters of a [`slug`].
const SLUG_LIMIT: usize = 40;
/// Width of every picture in pixels: that of a page of text on GitHub.
const WIDTH: f64 = 840.0;
/// Room around a drawing.
const MARGIN: f64 = 12.0;
/// From the top to the baseline of the title.
const TITLE_BASE: f64 = 24.0;
