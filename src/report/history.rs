//! Owns how the figures of a cell went over the commits of its report: which cells are followed, where the
//! conditions changed between two commits, and the table, JSON and picture of that.

use serde::Serialize;

use super::marks::{self, Figure, Mark};
use super::picture::{self, Picture, Series};
use super::text::{self, MISSING, Side, cut, escape, table};
use crate::compare::{self, CellName, Difference, Metric};
use crate::results::{CellRecord, Results, SectionRecord, Settings, stats};

/// Which cells are followed; what is not given is any.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    /// The title of its section or a part of it, in any case.
    pub section: Option<String>,
    /// Name or label of its server.
    pub server: Option<String>,
    /// `10x10`, or in full: `h2 10x10`.
    pub cell: Option<String>,
}

/// One figure of some cells of a report over the commits that touched it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct History {
    /// Path of the report.
    report: String,
    metric: Metric,
    /// The oldest first.
    commits: Vec<Commit>,
    cells: Vec<Line>,
    #[serde(skip)]
    filter: Filter,
    /// Of the last report that could be read.
    #[serde(skip)]
    previous: Option<Results>,
}

/// A commit that touched the report.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Commit {
    hash: String,
    at: String,
    subject: String,
    /// What differs from the conditions of the report before: figures before and after cannot be compared.
    changed: Vec<Difference>,
    /// Why there are no figures at all.
    problem: Option<String>,
}

/// One cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    name: CellName,
    /// One for each commit; `null` where the report does not have the cell.
    points: Vec<Option<Point>>,
}

/// A figure at a commit.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Point {
    /// In the metric's unit; `null` when the cell has none.
    figure: Option<f64>,
    /// Half the distance of the extreme rounds, relative to the figure.
    spread: Option<f64>,
    /// What speaks against it.
    marks: Vec<&'static str>,
    #[serde(skip)]
    signs: String,
}

impl Filter {
    fn takes(&self, name: &CellName) -> bool {
        let section = self
            .section
            .as_ref()
            .is_none_or(|part| name.section.to_lowercase().contains(&part.to_lowercase()));
        let server = self.server.as_ref().is_none_or(|s| [&name.server, &name.label].contains(&s));
        let asked = name.key.to_string();
        let size = asked.split_once(' ').map_or("", |(_, size)| size);
        let cell = self.cell.as_ref().is_none_or(|cell| *cell == name.cell || *cell == asked || cell == size);
        section && server && cell
    }
}

impl History {
    /// A history without commits yet.
    pub fn new(report: &str, metric: Metric, filter: Filter) -> Self {
        Self { report: report.to_owned(), metric, commits: vec![], cells: vec![], filter, previous: None }
    }

    /// Adds the next commit's report, or why it has none that can be read.
    pub fn push(&mut self, (hash, at, subject): (&str, &str, &str), results: Result<&Results, String>) {
        let mut commit = Commit {
            hash: hash.to_owned(),
            at: at.to_owned(),
            subject: subject.to_owned(),
            changed: Vec::new(),
            problem: None,
        };
        match results {
            Ok(results) => {
                let before = self.previous.replace(results.clone());
                commit.changed = before.map(|b| compare::differences(&b, results)).unwrap_or_default();
                for section in &results.sections {
                    section.cells.iter().for_each(|cell| self.add(results, section, cell));
                }
            }
            Err(problem) => commit.problem = Some(problem),
        }
        self.commits.push(commit);
        for line in &mut self.cells {
            line.points.resize(self.commits.len(), None);
        }
    }

    /// True when no commit has a cell that was asked for.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The sections, servers and cells that are followed, as messages name them.
    pub fn known(&self) -> String {
        let each = |read: &dyn Fn(&CellName) -> &String| {
            let mut names: Vec<&str> = Vec::new();
            for name in self.cells.iter().map(|line| read(&line.name).as_str()) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names.join(", ")
        };
        format!(
            "the sections {}; the servers {}; the cells {}",
            each(&|name| &name.section),
            each(&|name| &name.server),
            each(&|name| &name.cell)
        )
    }

    fn add(&mut self, results: &Results, section: &SectionRecord, cell: &CellRecord) {
        let name = compare::cell_name(results, section, cell);
        if !self.filter.takes(&name) {
            return;
        }
        let same = |line: &&mut Line| {
            // A label may change without the cell being another one.
            (&line.name.section, &line.name.server, &line.name.cell)
                == (&name.section, &name.server, &name.cell)
        };
        let point = point(self.metric, cell, section, &results.settings);
        let at = self.commits.len();
        match self.cells.iter_mut().find(same) {
            // Of two sections with one title the first is followed.
            Some(line) if line.points.len() > at => {}
            Some(line) => line.points.push(Some(point)),
            None => {
                let mut points = vec![None; at];
                points.push(Some(point));
                self.cells.push(Line { name, points });
            }
        }
    }

    /// The tables as Markdown, one for each cell.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "# {} of {} over {} commits\n",
            self.metric.title(),
            text::code(&self.report),
            self.commits.len()
        );
        for line in &self.cells {
            let name = format!("{} {}, {}", line.name.label, line.name.cell, line.name.section);
            out += &format!("\n## {}\n\n{}\n", escape(&name), self.table(line));
        }
        out
    }

    fn table(&self, line: &Line) -> String {
        let left = |title: &str| (title.to_owned(), Side::Left);
        let right = |title: &str| (title.to_owned(), Side::Right);
        let header = [
            left("Commit"),
            left("Date"),
            left("Subject"),
            right(self.metric.title()),
            right("Spread"),
            left("Marks"),
        ];
        let mut rows = Vec::new();
        for (commit, point) in self.commits.iter().zip(&line.points) {
            if !commit.changed.is_empty() {
                let changed: Vec<String> = commit.changed.iter().map(in_words).collect();
                let changed = cut(&format!("conditions changed: {}", changed.join("; ")), TEXT_LIMIT);
                let mut row = vec![String::new(); header.len()];
                row[2] = format!("**{}**", escape(&changed));
                rows.push(row);
            }
            let [figure, spread, marks] = match (point, &commit.problem) {
                (_, Some(problem)) => [MISSING.into(), String::new(), escape(&cut(problem, TEXT_LIMIT))],
                (None, None) => [MISSING.into(), String::new(), "not in this report".into()],
                (Some(point), None) => [
                    format!("{}{}", self.figure(point.figure), point.signs),
                    point.spread.map_or_else(String::new, text::plus_minus),
                    point.marks.join(", "),
                ],
            };
            let date = commit.at.get(..10).unwrap_or(&commit.at);
            let subject = escape(&cut(&commit.subject, SUBJECT_LIMIT));
            rows.push(vec![
                text::short_hash(&commit.hash).to_owned(),
                escape(date),
                subject,
                figure,
                spread,
                marks,
            ]);
        }
        table(&header, &rows)
    }

    fn figure(&self, figure: Option<f64>) -> String {
        let Some(figure) = figure else { return MISSING.into() };
        match self.metric {
            Metric::Rate => text::rate(figure),
            Metric::P50 | Metric::P99 => text::millis(figure),
            Metric::Cpu => text::micros(figure),
        }
    }

    /// A picture with a panel for each cell: points joined, except across changed conditions.
    pub fn picture(&self) -> Picture {
        let scale = if matches!(self.metric, Metric::P50 | Metric::P99) { 1e3 } else { 1.0 };
        let point = |point: &Point| {
            let value = point.figure? / scale;
            Some(picture::Point { value, spread: point.spread, marks: point.signs.clone() })
        };
        let panel = |line: &Line| picture::Panel {
            title: format!(
                "{} {}, {}: {}",
                line.name.label,
                line.name.cell,
                line.name.section,
                self.metric.title()
            ),
            points: line.points.iter().map(|at| at.as_ref().and_then(point)).collect(),
        };
        let broken = |(at, commit): (usize, &Commit)| (!commit.changed.is_empty()).then_some(at);
        let title = format!("{} of {} over {} commits", self.metric.title(), self.report, self.commits.len());
        picture::series(&Series {
            description: format!(
                "{title}, the oldest first; no line joins figures measured under other conditions"
            ),
            title,
            labels: self.commits.iter().map(|commit| commit.hash.chars().take(LABEL).collect()).collect(),
            breaks: self.commits.iter().enumerate().filter_map(broken).collect(),
            panels: self.cells.iter().map(panel).collect(),
        })
    }

    /// Number of cells that are followed.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// All of it as JSON; `docs/comparing.md` explains it.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a history can be written as JSON") + "\n"
    }
}

fn point(metric: Metric, cell: &CellRecord, section: &SectionRecord, settings: &Settings) -> Point {
    let summary = &cell.summary;
    let latency = |percentile: f64| {
        let key = stats::percentile_key(percentile);
        let of = |map: &std::collections::BTreeMap<String, Option<f64>>| map.get(&key).copied().flatten();
        (Figure::Latency(percentile), of(&summary.latency_us), of(&summary.latency_spread))
    };
    let (kind, figure, spread) = match metric {
        Metric::Rate => (Figure::Rate, summary.requests_per_second, summary.spread),
        Metric::P50 => latency(50.0),
        Metric::P99 => latency(99.0),
        Metric::Cpu => (Figure::Cpu, summary.server_cpu_us_per_request, summary.server_cpu_spread),
    };
    let marks = marks::marks_of(kind, cell, section.kind, settings);
    Point {
        figure,
        spread,
        marks: marks.iter().map(|mark| mark.name()).collect(),
        signs: marks.into_iter().map(Mark::sign).collect(),
    }
}

fn in_words(difference: &Difference) -> String {
    format!("{} from {} to {}", difference.key, difference.base, difference.head)
}

/// Characters of a hash below a picture.
const LABEL: usize = 8;
const SUBJECT_LIMIT: usize = 60;
const TEXT_LIMIT: usize = 300;
