//! Owns grouped bars: a group of rows for each cell, a row for each server, a panel for each figure. Bars
//! lie down, so that every one has its server's name before it and its figure behind it, however many
//! there are.

use super::canvas::{self, Anchor, Canvas};
use super::scale::{Scale, tick};
use super::{MARGIN, Picture, TITLE_BASE, WIDTH, theme};

/// What is drawn.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Bars {
    pub title: String,
    /// The finding in words.
    pub description: String,
    /// Figures beside each other.
    pub panels: Vec<Panel>,
    /// Cells below each other.
    pub groups: Vec<Group>,
}

/// One figure.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Panel {
    /// Its name with the unit: `req/s`.
    pub title: String,
    /// Which way is better, or what a bar says; in words.
    pub hint: &'static str,
    /// True when its scale is that of the panel before it.
    pub same_scale: bool,
    /// A value to compare bars with.
    pub reference: Option<f64>,
}

/// One cell.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Group {
    pub title: String,
    pub rows: Vec<Row>,
}

/// One server in a cell.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Row {
    pub label: String,
    /// Index of its colour.
    pub series: usize,
    /// One for each panel.
    pub bars: Vec<Bar>,
}

/// One figure of one server in a cell.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::report) struct Bar {
    /// `None`: its text is a word that says why, and stands in the place of the bar.
    pub value: Option<f64>,
    /// Half the distance of the extreme rounds as a share of the value.
    pub spread: Option<f64>,
    /// The figure with its marks, as the table has it.
    pub text: String,
    pub best: bool,
    pub marked: bool,
}

/// Where the columns stand.
struct Layout {
    /// Right ends of the labels.
    labels: f64,
    label_room: f64,
    group_room: f64,
    /// Left ends of the panels, and the scale of each.
    panels: Vec<(f64, Scale)>,
    panel_width: f64,
    row: f64,
}

/// Draws bars.
pub(super) fn draw(bars: &Bars) -> Picture {
    let mut canvas = Canvas::new();
    let layout = layout(bars);
    canvas.text((MARGIN, TITLE_BASE), Anchor::Start, "title", &bars.title, WIDTH - 2.0 * MARGIN);
    heads(&mut canvas, bars, &layout);
    let bottom = bars.groups.iter().fold(TOP, |top, group| top + layout.height(group) + GROUP_GAP);
    axes(&mut canvas, bars, &layout, bottom);
    let mut top = TOP;
    for group in &bars.groups {
        let room = layout.group_room;
        canvas.text((MARGIN, layout.baseline(top)), Anchor::Start, "best", &group.title, room);
        for (n, row) in group.rows.iter().enumerate() {
            draw_row(&mut canvas, row, &layout, top + n as f64 * layout.row);
        }
        top += layout.height(group) + GROUP_GAP;
    }
    let note = (WIDTH - MARGIN, bottom + 36.0);
    canvas.text(note, Anchor::End, "soft", NOTE, WIDTH - 2.0 * MARGIN);
    Picture {
        name: String::new(),
        title: bars.title.clone(),
        description: bars.description.clone(),
        height: bottom + 46.0,
        drawing: canvas.into_drawing(),
    }
}

impl Layout {
    fn height(&self, group: &Group) -> f64 {
        self.row * group.rows.len().max(1) as f64
    }

    /// Of text in a row that begins at `top`.
    fn baseline(&self, top: f64) -> f64 {
        top + self.row / 2.0 + 4.0
    }
}

fn layout(bars: &Bars) -> Layout {
    let rows = || bars.groups.iter().flat_map(|group| &group.rows);
    let widest = |texts: &mut dyn Iterator<Item = &str>, class, limit: f64| {
        let widths = texts.map(|text| canvas::width(text, canvas::size(class)));
        widths.fold(0.0, f64::max).ceil().min(limit)
    };
    let group_room = widest(&mut bars.groups.iter().map(|g| g.title.as_str()), "best", GROUP_LIMIT);
    let label_room = widest(&mut rows().map(|r| r.label.as_str()), "", LABEL_LIMIT);
    let labels = MARGIN + group_room + COLUMN_GAP + label_room;
    let left = labels + 6.0;
    let count = bars.panels.len().max(1) as f64;
    let panel_width = (WIDTH - MARGIN - left - PANEL_GAP * (count - 1.0)) / count;
    let figures = |panel: usize| rows().filter_map(move |row| row.bars.get(panel));
    let mut panels: Vec<(f64, Scale)> = Vec::new();
    for n in 0..bars.panels.len() {
        // Panels of one scale form a run; it reaches as far as the longest bar in any of them.
        let first = (0..=n).rev().find(|m| !bars.panels[*m].same_scale).unwrap_or(0);
        let last = (n + 1..bars.panels.len()).take_while(|m| bars.panels[*m].same_scale).last().unwrap_or(n);
        let of_run = || (first..=last).flat_map(figures);
        let high = of_run().filter_map(|bar| bar.value).chain(bars.panels[n].reference).fold(0.0, f64::max);
        let reach = of_run().filter_map(ends).map(|(_, to)| to).fold(high, f64::max);
        let text = widest(&mut of_run().map(|bar| bar.text.as_str()), "best", panel_width / 2.0) + 8.0;
        let x = left + (panel_width + PANEL_GAP) * n as f64;
        panels.push((x, Scale::from_zero(reach.min(high * REACH), x, x + panel_width - text)));
    }
    let row = if rows().count() > MANY { DENSE_ROW } else { ROW };
    Layout { labels, label_room, group_room, panels, panel_width, row }
}

/// The ends of a bar's whisker.
fn ends(bar: &Bar) -> Option<(f64, f64)> {
    let (value, spread) = (bar.value?, bar.spread?);
    (spread > 0.0).then(|| ((value * (1.0 - spread)).max(0.0), value * (1.0 + spread)))
}

/// Names of the panels.
fn heads(canvas: &mut Canvas, bars: &Bars, layout: &Layout) {
    for (panel, (x, _)) in bars.panels.iter().zip(&layout.panels) {
        canvas.text((*x, HEAD_BASE), Anchor::Start, "best", &panel.title, layout.panel_width);
        let taken = canvas::width(&panel.title, canvas::size("best")) + 8.0;
        let room = layout.panel_width - taken;
        if canvas::width(panel.hint, canvas::size("soft")) <= room {
            canvas.text((x + taken, HEAD_BASE), Anchor::Start, "soft", panel.hint, room);
        }
    }
}

fn axes(canvas: &mut Canvas, bars: &Bars, layout: &Layout, bottom: f64) {
    for (n, (panel, (x, scale))) in bars.panels.iter().zip(&layout.panels).enumerate() {
        canvas.line((*x, TOP - 4.0), (*x, bottom), "axis");
        let rows = bars.groups.iter().flat_map(|group| &group.rows);
        if rows.filter_map(|row| row.bars.get(n)).all(|bar| bar.value.is_none()) {
            // Without a figure there is nothing to measure against.
            continue;
        }
        for value in scale.ticks(5) {
            let at = scale.at(value);
            canvas.line((at, TOP - 4.0), (at, bottom), "grid");
            canvas.text((at, bottom + 14.0), Anchor::Middle, "soft", &tick(value), layout.panel_width);
        }
        if let Some(value) = panel.reference {
            let at = scale.at(value);
            canvas.line((at, TOP - 4.0), (at, bottom), "break");
        }
    }
}

fn draw_row(canvas: &mut Canvas, row: &Row, layout: &Layout, top: f64) {
    let base = layout.baseline(top);
    canvas.text((layout.labels, base), Anchor::End, "", &row.label, layout.label_room);
    for (bar, (x, scale)) in row.bars.iter().zip(&layout.panels) {
        let right = x + layout.panel_width;
        let Some(value) = bar.value else {
            canvas.text((x + 5.0, base), Anchor::Start, "soft", &bar.text, layout.panel_width);
            continue;
        };
        let marked = if bar.marked { " marked" } else { "" };
        let class = format!("{}{marked}", theme::class(row.series));
        let height = layout.row - 4.0;
        canvas.rectangle((*x, top + 2.0), (scale.at(value) - x, height), &class);
        let mut end = scale.at(value);
        if let Some((low, high)) = ends(bar) {
            let middle = top + layout.row / 2.0;
            canvas.line((scale.at(low), middle), (scale.at(high), middle), "whisker");
            for cap in [low, high].into_iter().filter(|end| scale.holds(*end)) {
                let at = scale.at(cap);
                canvas.line((at, middle - 2.5), (at, middle + 2.5), "whisker");
            }
            end = scale.at(high);
        }
        let class = if bar.best { "best" } else { "" };
        canvas.text((end + 5.0, base), Anchor::Start, class, &bar.text, right - end - 5.0);
    }
}

const NOTE: &str =
    "bar: median of the rounds; whisker: ± their spread; pale: carries a mark, explained below the table";
/// Baseline of the panels' names.
const HEAD_BASE: f64 = 48.0;
/// Where the first row begins.
const TOP: f64 = 60.0;
const ROW: f64 = 15.0;
/// Of pictures with more than [`MANY`] rows.
const DENSE_ROW: f64 = 13.0;
const MANY: usize = 40;
const GROUP_GAP: f64 = 9.0;
const COLUMN_GAP: f64 = 10.0;
const PANEL_GAP: f64 = 20.0;
const GROUP_LIMIT: f64 = 130.0;
const LABEL_LIMIT: f64 = 160.0;
/// How far whiskers may reach beyond the longest bar before they are cut off.
const REACH: f64 = 1.25;
