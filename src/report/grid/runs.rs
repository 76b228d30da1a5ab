//! Owns the runs table: every round of every cell as a row, what was asked and answered in it, and what the
//! rounds of a cell amount to.

use super::{Column, Grid, Group, Row, Sheet, Shown, blank};
use crate::report::marks::{self, Figure};
use crate::report::text::{self, MISSING};
use crate::results::verdict::lost_rounds;
use crate::results::{Answer, CellRecord, Measurement, RoundRecord, SectionKind, Verdict, stats};
use crate::units::group_thousands;

/// Every round of a sheet.
pub(in crate::report) struct Runs {
    /// A row a round.
    pub rounds: Grid,
    /// A row a cell: its rates over the rounds.
    pub over: Grid,
    /// Rounds that no figure is taken from, and why.
    pub missing: Vec<String>,
}

/// The runs table; `None` for a section that does not ask for one.
pub(super) fn runs(sheet: &Sheet<'_>) -> Option<Runs> {
    if !sheet.section.runs {
        return None;
    }
    let (mut rounds, mut over, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for row in &sheet.rows {
        for column in &sheet.columns {
            let Some(cell) = sheet.cell(*row, column) else { continue };
            let name = name(sheet, *row, column);
            let lost = lost_rounds(cell);
            let outcome = |round: &RoundRecord| lost.iter().find(|lost| lost.0.round == round.round);
            let row = |round| of_round(sheet, cell, round, outcome(round).map(|lost| lost.1));
            rounds.extend(cell.rounds.iter().map(|round| (name.clone(), row(round))));
            over.extend(summary(sheet, cell).map(|row| (name.clone(), row)));
            missing.extend(why_missing(&name, cell, &lost));
        }
    }
    let grid = |header: &[&str], rows| Grid {
        header: header.iter().map(|&title| title.to_owned()).collect(),
        groups: vec![Group { title: String::new(), rows }],
    };
    Some(Runs { rounds: grid(&ROUNDS, rounds), over: grid(&OVER, over), missing })
}

/// What each server answered, in words; nothing where that was not looked at.
pub(super) fn answers(sheet: &Sheet<'_>) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    for row in &sheet.rows {
        let mut ways: Vec<String> = Vec::new();
        let cells = sheet.columns.iter().filter_map(|column| sheet.cell(*row, column));
        for answer in cells.flat_map(|cell| &cell.rounds).filter_map(|round| round.answer.as_ref()) {
            let way = in_words(answer);
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        if !ways.is_empty() {
            answers.push((row.name(), ways.join("; or ")));
        }
    }
    answers
}

/// `gzip, 312 of 1 024 bytes`.
fn in_words(answer: &Answer) -> String {
    let sent = group_thousands(answer.encoded_bytes);
    let size = match answer.body_bytes {
        Some(bytes) if answer.encoding != "identity" => format!("{sent} of {} bytes", group_thousands(bytes)),
        Some(_) => format!("{sent} bytes"),
        None => format!("{sent} bytes that were not decoded"),
    };
    let differing = if answer.repeats { "" } else { ", differing from answer to answer" };
    format!("{}, {size}{differing}", answer.encoding)
}

/// In a closed loop the row tells the size of the cell.
fn name(sheet: &Sheet<'_>, row: Row<'_>, column: &Column) -> String {
    match sheet.section.kind {
        SectionKind::ClosedLoop | SectionKind::Generators => row.name(),
        SectionKind::Setup | SectionKind::Ratio | SectionKind::Handshake => {
            format!("{} {}", row.name(), column.title)
        }
    }
}

/// A row of figures, none of which a lost round has.
fn of_round(sheet: &Sheet<'_>, cell: &CellRecord, round: &RoundRecord, lost: Option<Verdict>) -> Vec<Shown> {
    let measured = round.measurement.as_ref().filter(|_| lost.is_none());
    let count = |count: fn(&Measurement) -> u64| {
        plain(measured.map_or_else(|| MISSING.into(), |m| group_thousands(count(m))))
    };
    let agreed = |told: &dyn Fn(&Measurement) -> Option<String>| {
        plain(measured.and_then(told).unwrap_or_else(|| MISSING.into()))
    };
    vec![
        plain(round.round.to_string()),
        plain(users(cell)),
        count(|m| m.requests.ok.saturating_add(m.requests.failed)),
        match lost.and_then(blank) {
            Some(shows) => plain(shows.into()),
            None => rated(sheet, cell, measured.and_then(|m| m.requests_per_second)),
        },
        plain(round.answer.as_ref().map_or_else(|| MISSING.into(), |answer| text::escape(&answer.encoding))),
        agreed(&cipher),
        agreed(&protocol),
        count(|m| m.requests.started),
        count(|m| m.requests.ok),
    ]
}

/// The rates of a cell over the rounds its figures are taken from; `None` when none has one.
fn summary(sheet: &Sheet<'_>, cell: &CellRecord) -> Option<Vec<Shown>> {
    let measured: Vec<&Measurement> = super::measured(cell).collect();
    let rates: Vec<f64> = measured.iter().filter_map(|m| m.requests_per_second).collect();
    let least = rates.iter().copied().reduce(f64::min)?;
    let most = rates.iter().copied().reduce(f64::max)?;
    let sum = |count: fn(&Measurement) -> u64| measured.iter().map(|m| count(m)).fold(0, u64::saturating_add);
    let (ok, failed) = (sum(|m| m.requests.ok), sum(|m| m.requests.failed));
    let ended = ok.saturating_add(failed);
    // Rounded down: all is said of all alone.
    let succeeded = (ended > 0).then(|| format!("{:.2} %", (ok as f64 / ended as f64 * 1e4).floor() / 100.0));
    Some(vec![
        plain(users(cell)),
        plain(rates.len().to_string()),
        rated(sheet, cell, Some(least)),
        rated(sheet, cell, stats::mean(&rates)),
        rated(sheet, cell, Some(most)),
        rated(sheet, cell, stats::deviation(&rates)),
        plain(succeeded.unwrap_or_else(|| MISSING.into())),
    ])
}

/// A rate with the marks of its cell.
fn rated(sheet: &Sheet<'_>, cell: &CellRecord, rate: Option<f64>) -> Shown {
    let Some(rate) = rate else { return plain(MISSING.into()) };
    let marks = marks::marks_of(Figure::Rate, cell, sheet.section.kind, &sheet.results.settings);
    Shown { text: text::rate(rate), best: false, marks }
}

/// `nginx 1 x 1, rounds 2, 3: FAIL: …`, equal reasons together.
fn why_missing(name: &str, cell: &CellRecord, lost: &[(&RoundRecord, Verdict, String)]) -> Vec<String> {
    let mut found: Vec<(&'static str, &str, Vec<String>)> = Vec::new();
    for (round, verdict, reason) in lost {
        let Some(shows) = blank(*verdict) else { continue };
        match found.iter_mut().find(|(s, r, _)| *s == shows && r == reason) {
            Some((.., rounds)) => rounds.push(round.round.to_string()),
            None => found.push((shows, reason, vec![round.round.to_string()])),
        }
    }
    let line = |(shows, reason, rounds): (&str, &str, Vec<String>)| {
        let s = if rounds.len() == 1 { "" } else { "s" };
        format!("{name} {}, round{s} {}: {shows}: {reason}", users(cell), rounds.join(", "))
    };
    found.into_iter().map(line).collect()
}

fn users(cell: &CellRecord) -> String {
    format!("{} x {}", cell.connections, cell.concurrency)
}

fn cipher(m: &Measurement) -> Option<String> {
    let negotiated = m.negotiated.as_ref()?;
    let none = || negotiated.tls.is_none().then(|| "none".to_owned());
    negotiated.cipher.as_deref().map(text::escape).or_else(none)
}

/// `HTTP/2, TLSv1.3`.
fn protocol(m: &Measurement) -> Option<String> {
    let negotiated = m.negotiated.as_ref()?;
    let parts = [Some(negotiated.http.as_str()), negotiated.tls.as_deref()];
    Some(parts.into_iter().flatten().map(text::escape).collect::<Vec<_>>().join(", "))
}

fn plain(text: String) -> Shown {
    Shown { text, best: false, marks: vec![] }
}

const ROUNDS: [&str; 9] =
    ["round", "users", "requests", "req/s", "encoding", "cipher", "protocol", "started", "succeeded"];
const OVER: [&str; 7] = ["users", "rounds", "min", "mean", "max", "stdev", "succeeded"];
