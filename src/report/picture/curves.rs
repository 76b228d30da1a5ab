//! Owns curves of latency over percentiles: a panel for each cell, a curve for each server. Each further
//! nine of the percentile has the same room, because the tail is what such a curve is read for.

use super::canvas::{self, Anchor, Canvas};
use super::scale::{Scale, nines, percentile, tick};
use super::{MARGIN, Picture, TITLE_BASE, WIDTH, theme};

/// What is drawn.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Curves {
    pub title: String,
    /// The finding in words.
    pub description: String,
    /// What is drawn upwards, with its unit.
    pub unit: &'static str,
    /// Labels of the servers, and the index of each one's colour.
    pub legend: Vec<(String, usize)>,
    /// Cells.
    pub panels: Vec<Panel>,
    /// True where each panel belongs beside the next one.
    pub paired: bool,
}

/// One cell.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Panel {
    pub title: String,
    pub curves: Vec<Curve>,
    /// What stands in the place of a curve, with the servers it stands for: `FAIL`, `n/a`.
    pub words: Vec<(&'static str, Vec<String>)>,
}

/// One server in a cell.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Curve {
    pub series: usize,
    /// Milliseconds at each of [`percentiles`], from the first, as far as samples carry them.
    pub millis: Vec<f64>,
    /// True for one that describes another load than the others.
    pub dashed: bool,
    /// Signs of its marks.
    pub marks: String,
}

/// The percentiles at which curves are read. The smallest sample, the 0th, is left out: it is one request
/// of all, often far below the others, and would take half of the picture's height.
pub(in crate::report) fn percentiles() -> impl Iterator<Item = f64> {
    (1..=STEPS * NINES).map(|step| percentile(f64::from(step) / f64::from(STEPS)))
}

/// Where a panel stands.
struct Place {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// Draws curves.
pub(super) fn draw(curves: &Curves) -> Picture {
    let mut canvas = Canvas::new();
    canvas.text((MARGIN, TITLE_BASE), Anchor::Start, "title", &curves.title, WIDTH - 2.0 * MARGIN);
    let top = legend(&mut canvas, &curves.legend) + 16.0;
    let across = match curves.panels.len() {
        0 | 1 => 1,
        2 | 4 => 2,
        _ if curves.paired => 2,
        _ => 3,
    };
    let width = (WIDTH - 2.0 * MARGIN - GAP * (across - 1) as f64) / across as f64;
    let height = if across == 1 { TALL } else { LOW };
    let words = curves.panels.iter().map(|panel| words(panel, width).len()).max().unwrap_or(0);
    let foot = FOOT + WORDS * words as f64;
    for (n, panel) in curves.panels.iter().enumerate() {
        let place = Place {
            left: MARGIN + (width + GAP) * (n % across) as f64,
            top: top + (height + foot) * (n / across) as f64,
            width,
            height,
        };
        draw_panel(&mut canvas, panel, curves.unit, &place);
    }
    let bottom = top + (height + foot) * curves.panels.len().div_ceil(across) as f64;
    canvas.text((WIDTH - MARGIN, bottom + 4.0), Anchor::End, "soft", NOTE, WIDTH - 2.0 * MARGIN);
    Picture {
        name: String::new(),
        title: curves.title.clone(),
        description: curves.description.clone(),
        height: bottom + 14.0,
        drawing: canvas.into_drawing(),
    }
}

/// Labels with their markers, in as many lines as they need; where the last one ends.
fn legend(canvas: &mut Canvas, labels: &[(String, usize)]) -> f64 {
    let (mut x, mut y) = (MARGIN, TITLE_BASE + 22.0);
    for (label, series) in labels {
        let width = canvas::width(label, canvas::size("")).min(LABEL_LIMIT);
        if x > MARGIN && x + SAMPLE + width > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + 18.0);
        }
        let class = format!("curve {}", theme::class(*series));
        canvas.path(&[(x, y - 4.0), (x + SAMPLE - 6.0, y - 4.0)], &class);
        canvas.marker((x + (SAMPLE - 6.0) / 2.0, y - 4.0), *series);
        canvas.text((x + SAMPLE, y), Anchor::Start, "", label, LABEL_LIMIT);
        x += SAMPLE + width + 18.0;
    }
    y
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel, unit: &str, place: &Place) {
    let (left, right) = (place.left + TICK_ROOM, place.left + place.width - SIGN_ROOM);
    let (top, bottom) = (place.top + HEAD, place.top + place.height);
    let values = || panel.curves.iter().flat_map(|curve| curve.millis.iter().map(|ms| ms.max(LEAST)));
    let (low, high) = values().fold((f64::INFINITY, 0.0), |(a, b), v| (f64::min(a, v), f64::max(b, v)));
    let y = Scale::logarithmic(low, high, bottom, top);
    let x = |nines: f64| left + nines / f64::from(NINES) * (right - left);

    canvas.text((left, place.top + 10.0), Anchor::Start, "best", &panel.title, place.width / 2.0);
    canvas.text((right, place.top + 10.0), Anchor::End, "soft", unit, place.width / 2.0 - TICK_ROOM);
    for value in y.ticks(8) {
        canvas.line((left, y.at(value)), (right, y.at(value)), "grid");
        canvas.text((left - 5.0, y.at(value) + 4.0), Anchor::End, "soft", &tick(value), TICK_ROOM - 5.0);
    }
    for (n, name) in TICKS.iter().enumerate() {
        let at = x(n as f64);
        canvas.line((at, top), (at, bottom), "grid");
        canvas.text((at, bottom + 14.0), Anchor::Middle, "soft", name, place.width / 5.0);
    }
    canvas.line((left, bottom), (right, bottom), "axis");
    for curve in &panel.curves {
        draw_curve(canvas, curve, &x, &y);
    }
    signs(canvas, panel, &x, &y);
    for (n, line) in words(panel, place.width).iter().enumerate() {
        let base = bottom + 14.0 + WORDS * (n + 1) as f64;
        canvas.text((place.left, base), Anchor::Start, "soft", line, place.width);
    }
}

/// What stands in the place of curves, in two lines at most.
fn words(panel: &Panel, room: f64) -> Vec<String> {
    let list = panel.words.iter().map(|(word, labels)| format!("{word}: {}", labels.join(", ")));
    let list = list.collect::<Vec<_>>().join("; ");
    let mut lines: Vec<String> = Vec::new();
    for part in list.split_inclusive(", ") {
        // What does not fit into the second line is cut off where it is drawn.
        let fits =
            |line: &str| canvas::width(&format!("{line}{}", part.trim_end()), canvas::size("soft")) <= room;
        if lines.last().is_none_or(|line| lines.len() < 2 && !fits(line)) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(part);
        }
    }
    lines
}

fn draw_curve(canvas: &mut Canvas, curve: &Curve, x: &dyn Fn(f64) -> f64, y: &Scale) {
    let places: Vec<(f64, f64)> = places(curve, x, y).collect();
    let dashed = if curve.dashed { " dashed" } else { "" };
    canvas.path(&places, &format!("curve {}{dashed}", theme::class(curve.series)));
    // At the beginning, and at each nine.
    let nines = places.iter().skip(STEPS as usize - 1).step_by(STEPS as usize);
    for place in places.first().into_iter().chain(nines) {
        canvas.marker(*place, curve.series);
    }
}

/// Marks at the ends of the curves, moved down where they would stand on one another: two of one sign look
/// like another one.
fn signs(canvas: &mut Canvas, panel: &Panel, x: &dyn Fn(f64) -> f64, y: &Scale) {
    let marked = panel.curves.iter().filter(|curve| !curve.marks.is_empty());
    let mut ends: Vec<_> =
        marked.filter_map(|curve| Some((places(curve, x, y).last()?, &curve.marks))).collect();
    ends.sort_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for ((x, y), marks) in ends {
        let near = taken.iter().filter(|(other, _)| (x - other).abs() < SIGN_ROOM);
        let base = near.map(|(_, base)| base + SIGN_HEIGHT).fold(y + 3.0, f64::max);
        canvas.text((x + 6.0, base), Anchor::Start, "", marks, SIGN_ROOM * 2.0);
        taken.push((x, base));
    }
}

fn places<'a>(
    curve: &'a Curve,
    x: &'a dyn Fn(f64) -> f64,
    y: &'a Scale,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let at = move |(percentile, ms): (f64, &f64)| (x(nines(percentile)), y.at(ms.max(LEAST)));
    percentiles().zip(&curve.millis).map(at)
}

const NOTE: &str = "percentiles over all rounds together; a curve ends where fewer than ten samples are slower; dashed: starved";
/// What stands below the panels at each nine.
const TICKS: [&str; NINES as usize + 1] = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"];
/// Nines of the last percentile.
const NINES: u32 = 4;
/// Points of a curve for each nine.
const STEPS: u32 = 12;
/// Milliseconds below which nothing is told apart: a nanosecond, the unit of the clock.
const LEAST: f64 = 1e-6;
/// Heights of panels without what stands below them.
const LOW: f64 = 170.0;
const TALL: f64 = 260.0;
/// From the top of a panel to its plot.
const HEAD: f64 = 18.0;
/// From the end of a plot to the next panel.
const FOOT: f64 = 32.0;
const GAP: f64 = 16.0;
/// Left of a plot, for the ticks' figures.
const TICK_ROOM: f64 = 40.0;
/// Right of a plot, for marks.
const SIGN_ROOM: f64 = 20.0;
/// A piece of curve in the legend.
const SAMPLE: f64 = 30.0;
const LABEL_LIMIT: f64 = 190.0;
const SIGN_HEIGHT: f64 = 12.0;
/// Room for words below a panel's ticks.
const WORDS: f64 = 14.0;
