//! Owns figures over an ordered list of labels, such as those of one cell over the commits that measured
//! it: a line a figure, each in a panel with a scale of its own, all above the same labels.

use super::canvas::{self, Anchor, Canvas};
use super::scale::{Scale, tick};
use super::{MARGIN, Picture, TITLE_BASE, WIDTH, slug, theme};

/// What is drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Heading of the picture.
    pub title: String,
    /// Its finding in words.
    pub description: String,
    /// What stands below the points, in order: abbreviated commits.
    pub labels: Vec<String>,
    /// Indices into `labels` before which something changed that keeps the points on either side from
    /// being compared. No line crosses them.
    pub breaks: Vec<usize>,
    /// One for each figure, from the top.
    pub panels: Vec<Panel>,
}

/// One figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Its name with the unit: `req/s`, `p99 (ms)`.
    pub title: String,
    /// One for each label; `None` where there is no figure.
    pub points: Vec<Option<Point>>,
}

/// A figure at a label, in the panel's unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The figure.
    pub value: f64,
    /// Its spread as a share of it, half the distance of the extremes; `None`: not known.
    pub spread: Option<f64>,
    /// Signs of the marks it carries; empty for a figure that nothing speaks against.
    pub marks: String,
}

/// Draws figures over labels. Points without a figure on either side stand alone; the scale of a panel
/// does not begin at zero, since a history is read for its changes.
pub fn series(series: &Series) -> Picture {
    let mut canvas = Canvas::new();
    canvas.text((MARGIN, TITLE_BASE), Anchor::Start, "title", &series.title, WIDTH - 2.0 * MARGIN);
    let across = Across { count: series.labels.len() };
    let mut top = TITLE_BASE + 10.0;
    for (n, panel) in series.panels.iter().enumerate() {
        draw(&mut canvas, series, panel, n, top, &across);
        top += PANEL + GAP;
    }
    let every = across.every(&series.labels);
    for (at, label) in series.labels.iter().enumerate().step_by(every) {
        let place = (across.at(at), top + 4.0);
        canvas.text(place, Anchor::Middle, "soft", label, LABEL_ROOM * 2.0);
    }
    Picture {
        name: slug(&series.title),
        title: series.title.clone(),
        description: series.description.clone(),
        height: top + 14.0,
        drawing: canvas.into_drawing(),
    }
}

/// Where labels stand.
struct Across {
    count: usize,
}

impl Across {
    /// The middle of the room that a label has.
    fn at(&self, index: usize) -> f64 {
        self.edge(index) + self.room() / 2.0
    }

    /// Where the room of a label begins.
    fn edge(&self, index: usize) -> f64 {
        LEFT + self.room() * index as f64
    }

    fn room(&self) -> f64 {
        (WIDTH - MARGIN - LEFT) / self.count.max(1) as f64
    }

    /// Of how many labels one is shown, so that they do not meet.
    fn every(&self, labels: &[String]) -> usize {
        let widest =
            labels.iter().map(|label| canvas::width(label, canvas::size("soft"))).fold(0.0, f64::max);
        let wanted = widest.min(LABEL_ROOM * 2.0) + 8.0;
        (wanted / self.room()).ceil().max(1.0) as usize
    }
}

fn draw(canvas: &mut Canvas, series: &Series, panel: &Panel, colour: usize, top: f64, across: &Across) {
    let points = || panel.points.iter().take(series.labels.len());
    let reach = |point: &Point| (point.value * point.spread.unwrap_or(0.0)).min(point.value);
    let extremes = points().flatten().map(|p| (p.value - reach(p), p.value + reach(p)));
    let (low, high) =
        extremes.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (low, high)| (a.min(low), b.max(high)));
    let scale = Scale::around(low, high, top + PANEL, top + PANEL_HEAD);
    canvas.text((LEFT, top + 10.0), Anchor::Start, "", &panel.title, WIDTH - LEFT - MARGIN);
    for value in scale.ticks(4) {
        let y = scale.at(value);
        canvas.line((LEFT, y), (WIDTH - MARGIN, y), "grid");
        canvas.text((LEFT - 6.0, y + 4.0), Anchor::End, "soft", &tick(value), LEFT - 10.0);
    }
    for at in series.breaks.iter().filter(|at| (1..series.labels.len()).contains(*at)) {
        let x = across.edge(*at);
        canvas.line((x, top + PANEL_HEAD), (x, top + PANEL), "break");
    }
    for run in runs(panel, series) {
        let places: Vec<_> = run.iter().map(|(at, point)| (across.at(*at), scale.at(point.value))).collect();
        canvas.path(&places, &format!("curve {}", theme::class(colour)));
    }
    for (at, point) in points().enumerate().filter_map(|(at, point)| Some((at, point.as_ref()?))) {
        let (x, y) = (across.at(at), scale.at(point.value));
        if reach(point) > 0.0 {
            let ends = [scale.at(point.value - reach(point)), scale.at(point.value + reach(point))];
            canvas.line((x, ends[0]), (x, ends[1]), "whisker");
        }
        canvas.marker((x, y), colour);
        if !point.marks.is_empty() {
            canvas.text((x + 6.0, y - 5.0), Anchor::Start, "soft", &point.marks, across.room());
        }
    }
    if points().all(Option::is_none) {
        canvas.text((LEFT + 8.0, top + PANEL / 2.0 + 10.0), Anchor::Start, "soft", "n/a", 100.0);
    }
}

/// Points that a line joins: neighbours with a figure, and no break between them.
fn runs<'a>(panel: &'a Panel, series: &Series) -> Vec<Vec<(usize, &'a Point)>> {
    let mut runs: Vec<Vec<(usize, &Point)>> = vec![Vec::new()];
    for (at, point) in panel.points.iter().take(series.labels.len()).enumerate() {
        if series.breaks.contains(&at) || point.is_none() {
            runs.push(Vec::new());
        }
        if let (Some(point), Some(run)) = (point, runs.last_mut()) {
            run.push((at, point));
        }
    }
    runs
}

/// Where the panels begin; the ticks stand left of it.
const LEFT: f64 = 70.0;
/// Height of a panel with its heading.
const PANEL: f64 = 130.0;
const PANEL_HEAD: f64 = 20.0;
const GAP: f64 = 14.0;
/// Half the room that a label takes at most.
const LABEL_ROOM: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: f64) -> Option<Point> {
        Some(Point { value, spread: Some(0.02), marks: String::new() })
    }

    fn history(points: Vec<Option<Point>>, breaks: Vec<usize>) -> Series {
        Series {
            title: "Rust C = 50".into(),
            description: "req/s over commits".into(),
            labels: (0..points.len()).map(|n| format!("c0ffee{n}")).collect(),
            breaks,
            panels: vec![Panel { title: "req/s".into(), points }],
        }
    }

    #[test]
    fn lines_break_where_nothing_joins_the_points() {
        let of = |points, breaks| {
            let series = history(points, breaks);
            let lengths = runs(&series.panels[0], &series).into_iter().map(|run| run.len());
            lengths.filter(|length| *length > 0).collect::<Vec<_>>()
        };
        let five = || (1..=5).map(|n| point(f64::from(n))).collect::<Vec<_>>();
        assert_eq!(of(five(), vec![]), [5]);
        assert_eq!(of(five(), vec![2]), [2, 3]);
        let mut gap = five();
        gap[1] = None;
        assert_eq!(of(gap, vec![4]), [1, 2, 1]);
        assert!(of(vec![None, None], vec![1, 7]).is_empty());
    }

    #[test]
    fn any_history_is_a_picture() {
        let mut marked = point(1e9);
        marked.as_mut().unwrap().marks = "†".into();
        for series in [
            history(vec![], vec![]),
            history(vec![None], vec![0]),
            history(vec![point(0.001), marked, None, point(0.0)], vec![1]),
            history((0..400).map(|n| point(f64::from(n))).collect(), vec![]),
        ] {
            let picture = super::series(&series);
            let svg = picture.svg(super::super::Theme::Dark);
            assert!(svg.contains("req/s") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(picture.svg(super::super::Theme::Dark), svg);
        }
    }
}
