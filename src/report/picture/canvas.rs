//! Owns the elements drawings are made of, how wide text is taken to be, and the SVG document around a
//! drawing.
//!
//! Why the elements are placed here and not by a plotting library: those that write SVG (looked at:
//! `plotters`, `charts-rs`, `poloto`) put colours into each element, so that a page could not give a
//! drawing its own theme; none has whiskers, words in the place of a bar and grouped bars with a figure
//! at each, and those that fit text measure fonts that the reader may not have. `svg` composes the
//! document: it escapes what it is given and writes attributes in order of their names, so that the same
//! drawing is the same bytes.

use svg::node::element::{Circle, Description, Group, Line, Path, Rectangle, SVG, Style, Text, Title};
use svg::node::{self, Node};

use super::theme::{self, Theme};
use crate::report::text::printable;

/// A drawing in the making. It uses classes of [`theme::rules`] and has no colour of its own.
#[derive(Debug)]
pub(super) struct Canvas {
    drawing: Group,
}

/// Which end of a text stands at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Self { drawing: Group::new() }
    }

    pub(super) fn into_drawing(self) -> Group {
        self.drawing
    }

    /// Text whose baseline begins, has its middle, or ends at a place, cut to `room`.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str, room: f64) {
        let mut element = Text::new(fit(&harmless(text), room, size(class)))
            .set("x", coordinate(x))
            .set("y", coordinate(y));
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => element = element.set("text-anchor", "middle"),
            Anchor::End => element = element.set("text-anchor", "end"),
        }
        self.push(classed(element, class));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let element = Line::new()
            .set("x1", coordinate(from.0))
            .set("y1", coordinate(from.1))
            .set("x2", coordinate(to.0))
            .set("y2", coordinate(to.1));
        self.push(classed(element, class));
    }

    pub(super) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let element = Rectangle::new()
            .set("x", coordinate(x))
            .set("y", coordinate(y))
            .set("width", coordinate(width.max(0.0)))
            .set("height", coordinate(height));
        self.push(classed(element, class));
    }

    /// A line through several places; nothing without two of them.
    pub(super) fn path(&mut self, places: &[(f64, f64)], class: &str) {
        if places.len() > 1 {
            self.push(classed(Path::new().set("d", outline(places)), class));
        }
    }

    /// The marker of a series around a place: each of twelve has a shape or a filling of its own.
    pub(super) fn marker(&mut self, (x, y): (f64, f64), series: usize) {
        let filling = if (series / SHAPES).is_multiple_of(2) { "dot" } else { "dot hollow" };
        let class = format!("{} {filling}", theme::class(series));
        let r = MARKER;
        let closed = |corners: &[(f64, f64)]| {
            let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
            Path::new().set("d", outline(&corners) + "Z")
        };
        let shape = match series % SHAPES {
            0 => {
                let circle = Circle::new().set("cx", coordinate(x)).set("cy", coordinate(y)).set("r", r);
                return self.push(classed(circle, &class));
            }
            1 => closed(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => closed(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            3 => closed(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            4 => closed(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            _ => closed(&CROSS),
        };
        self.push(classed(shape, &class));
    }

    fn push(&mut self, element: impl Into<Box<dyn Node>>) {
        self.drawing.append(element);
    }
}

/// A drawing as a document of its own: its colours are `theme`'s, and it brings its background along, so
/// that it can be read wherever it is shown.
pub(super) fn document(drawing: &Group, head: &Head<'_>, theme: Theme) -> String {
    let paper = Rectangle::new()
        .set("class", "paper")
        .set("width", coordinate(head.width))
        .set("height", coordinate(head.height));
    let svg = frame(head).add(Style::new(theme::sheet(theme))).add(paper).add(drawing.clone());
    format!("{svg}\n")
}

/// A drawing as a part of a page that has [`theme::rules`] in its style sheet.
pub(super) fn part(drawing: &Group, head: &Head<'_>) -> String {
    format!("{}\n", frame(head).add(drawing.clone()))
}

/// What is said of a drawing.
pub(super) struct Head<'a> {
    pub title: &'a str,
    pub description: &'a str,
    pub width: f64,
    pub height: f64,
}

fn frame(head: &Head<'_>) -> SVG {
    let description = Description::new().add(node::Text::new(harmless(head.description)));
    SVG::new()
        .set("class", "pic")
        .set("role", "img")
        .set("width", coordinate(head.width))
        .set("height", coordinate(head.height))
        .set("viewBox", format!("0 0 {} {}", coordinate(head.width), coordinate(head.height)))
        .add(Title::new(harmless(head.title)))
        .add(description)
}

fn classed<N: Node>(mut element: N, class: &str) -> N {
    if !class.is_empty() {
        element.assign("class", class);
    }
    element
}

fn outline(places: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (i, (x, y)) in places.iter().enumerate() {
        d.push(if i == 0 { 'M' } else { 'L' });
        d += &format!("{} {}", coordinate(*x), coordinate(*y));
    }
    d
}

/// A tenth of a pixel is as fine as anything is seen.
fn coordinate(value: f64) -> f64 {
    let rounded = (value * 10.0).round() / 10.0;
    // The zero that is negative prints with its sign.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// Text as XML 1.0 takes it (§2.2): without control characters, and none of the code points that are no
/// characters.
fn harmless(text: &str) -> String {
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// `text`, or as much of it as fits into `room` pixels with an ellipsis at the end.
fn fit(text: &str, room: f64, size: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut taken = width("…", size);
    let fitting = text.chars().take_while(|c| {
        taken += advance(*c) * size;
        taken <= room
    });
    let cut: String = fitting.collect();
    format!("{}…", cut.trim_end())
}

/// How wide `text` is in pixels, at most: fonts differ, and the reader's is not known.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Width of a character as a share of the font's size, on the wide side of common sans-serif fonts.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '|' | '.' | ',' | ':' | ';' | '\'' | '!' | ' ' => 0.34,
        '\u{202f}' => 0.25,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '°' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '—' | '…' | '∂' => 0.98,
        'a'..='z' | '0'..='9' => 0.62,
        'A'..='Z' => 0.74,
        // Signs: marks, arrows, comparisons.
        '\u{2000}'..='\u{2bff}' => 0.75,
        // East Asian characters and pictographs fill a square.
        '\u{1100}'.. => 1.1,
        _ => 0.75,
    }
}

/// The size of the font of a class for [`width`]: as [`theme::rules`] has it, more for bold, which is wider.
pub(super) fn size(class: &str) -> f64 {
    match class {
        "title" => 16.5,
        "soft" => 11.0,
        "best" => 13.5,
        _ => 12.0,
    }
}

/// Half the height of a marker.
const MARKER: f64 = 3.2;
/// Shapes of markers; the series after them have the same ones hollow.
const SHAPES: usize = 6;
/// Corners of an upright cross.
const CROSS: [(f64, f64); 12] = [
    (-0.4, -1.2),
    (0.4, -1.2),
    (0.4, -0.4),
    (1.2, -0.4),
    (1.2, 0.4),
    (0.4, 0.4),
    (0.4, 1.2),
    (-0.4, 1.2),
    (-0.4, 0.4),
    (-1.2, 0.4),
    (-1.2, -0.4),
    (-0.4, -0.4),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        assert_eq!(fit("Rust", 100.0, 12.0), "Rust");
        let cut = fit("a label of some forty characters, no less", 100.0, 12.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
        assert_eq!(fit("Rust", 0.0, 12.0), "…");
    }

    #[test]
    fn foreign_text_stays_text() {
        let mut canvas = Canvas::new();
        canvas.text((1.04, -0.01), Anchor::End, "best", "<script>&\u{1b}[31m\u{ffff}\u{0}\"", 900.0);
        let head = Head { title: "a<b", description: "]]>", width: 10.0, height: 5.0 };
        let text = part(&canvas.into_drawing(), &head);
        assert!(text.contains("\n&lt;script&gt;&amp;\u{fffd} \"\n"), "{text}");
        assert!(text.contains("x=\"1\" y=\"0\"") && text.contains("a&lt;b"), "{text}");
        assert!(text.contains("]]&gt;") && !text.contains('\u{1b}'), "{text}");
    }
}
