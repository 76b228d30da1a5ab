//! Owns the promise that no figure in a report is from anywhere but its JSON: each number of each table is
//! computed again here, from the raw rounds and by other code than the program's, and compared as printed. Of the lines
//! outside of tables those of starved and unstable cells, of servers within noise and of answers' sizes are; shares of failed requests, rounds
//! that are missing and the notes are not, whose words tests/verdicts.rs and the snapshots of tests/report.rs hold.
//! Figures of probes are read again from what they printed. Those of generators are not: their raw rounds begin with what was
//! read, whose reading `run/external/output.rs` tests.
//!
//! What is no figure, or is checked elsewhere, stands in [`NO_FIGURES`] and [`WORDS`] with its reason. A table or
//! measure that is in neither list and that nobody computes here fails the test.

#[path = "common/results.rs"]
mod build;
#[path = "common/results_generators.rs"]
mod generators;
#[path = "figures/markdown.rs"]
mod markdown;
#[path = "figures/rounds.rs"]
mod rounds;
#[path = "common/results_runs.rs"]
mod runs;

use std::fs;
use std::path::{Path, PathBuf};

use bench::results::{Results, stats};
use regex::Regex;
use serde_json::Value;

use markdown::{Table, number};
use rounds::{Cell, Section, cells, median};

/// Tables of facts, by their heading.
const NO_FIGURES: [(&str, &str); 3] = [
    ("Environment", "what the machine and its programs are called, as recorded"),
    ("Generators", "how each is called"),
    ("Settings", "what was asked for, and what the generator says of itself"),
];

/// Contents of cells that are no figures.
const WORDS: [(&str, &str); 9] = [
    ("n/a", "there is no figure"),
    ("FAIL", "the reason stands below the table"),
    ("cut", "the reason stands below the table"),
    ("server", "a verdict; tests/verdicts.rs"),
    ("generator", "a verdict; tests/verdicts.rs"),
    ("neither", "a verdict; tests/verdicts.rs"),
    ("within 2 %", "both clocks agree, so there is one figure, in the table above"),
    ("none", "no cipher"),
    ("", "nothing to say"),
];

#[test]
fn the_committed_reports_follow_from_their_json() {
    let mut checked = 0;
    for entry in fs::read_dir(in_project("reports")).expect("the project has reports") {
        let json = entry.expect("the folder can be listed").path();
        if json.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(json.with_extension("md")).expect("a report beside its results");
            checked += check(&json.to_string_lossy(), &read(&json), &text);
        }
    }
    assert!(checked > 4000, "only {checked} figures were found");
}

/// Every oddity that the builders of results know, of each format there was, and the runs table.
#[test]
fn the_reports_of_the_fixtures_follow_from_their_json() {
    let fixture = |version: &str| read(&in_project(&format!("tests/data/results-{version}.json")));
    let mut checked = 0;
    for (name, mut json) in [
        ("1.0", fixture("1.0")),
        ("1.1", fixture("1.1")),
        ("1.2", fixture("1.2")),
        ("1.3", fixture("1.3")),
        ("generators", serde_json::to_value(generators::odd()).expect("results are JSON")),
        ("runs", serde_json::to_value(runs::compressed()).expect("results are JSON")),
    ] {
        straighten(&mut json);
        let mut results: Results = serde_json::from_value(json.clone()).expect("a fixture can be read");
        for section in &mut results.sections {
            for cell in &mut section.cells {
                cell.summary = stats::summarise(cell, section.kind, &results.settings);
            }
        }
        checked += check(name, &json, &bench::report::markdown(&results).expect("a report"));
    }
    assert!(checked > 500, "only {checked} figures were found");
}

/// Another last digit is another figure.
#[test]
#[should_panic(expected = "is not")]
fn a_figure_that_does_not_follow_is_found() {
    let json = in_project("reports/HTTP_RESULTS.json");
    let text = fs::read_to_string(json.with_extension("md")).expect("a report");
    let line = text.lines().find(|line| line.starts_with("| **req/s**")).expect("a table of rates");
    let digit = line.rfind(|c: char| c.is_ascii_digit()).expect("a rate");
    let other = if line[digit..].starts_with('9') { "8" } else { "9" };
    let changed = format!("{}{other}{}", &line[..digit], &line[digit + 1..]);
    check("changed", &read(&json), &text.replace(line, &changed));
}

/// The builders bend the server's CPU time per request and the generator's load without the times they are made of.
fn straighten(results: &mut Value) {
    let sections = results["sections"].as_array_mut().expect("sections");
    let cells = sections.iter_mut().flat_map(|section| section["cells"].as_array_mut().expect("cells"));
    for round in cells.flat_map(|cell| cell["rounds"].as_array_mut().expect("rounds")) {
        let ok = rounds::ok(round);
        let per_request = |us: Option<f64>| us.map(|us| Value::from(us / ok)).unwrap_or_default();
        let used = per_request(rounds::cpu_us(round));
        let finer = per_request(round["server"]["cpu_schedstat_us"].as_f64());
        for (key, figure) in [("cpu_us_per_request", used), ("cpu_us_per_request_schedstat", finer)] {
            if let Some(place) = round["server"].get_mut(key).filter(|place| !place.is_null()) {
                *place = figure;
            }
        }
        let Some(window_us) = rounds::length_s(round).map(|length| length * 1e6) else { continue };
        let threads = round["measurement"]["generator"]["threads"].as_array_mut().expect("threads");
        for thread in threads {
            if let Some(busy) = thread["busy"].as_f64() {
                thread["system_us"] = 0.into();
                thread["user_us"] = ((busy * window_us).round() as u64).into();
                thread["polling_us"] = 0.into();
            }
        }
    }
}

fn read(json: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(json).expect("results")).expect("results are JSON")
}

fn in_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares every number of every table; how many there were.
fn check(report: &str, results: &Value, text: &str) -> usize {
    let sections = rounds::sections(results);
    let mut checked = 0;
    for table in markdown::tables(text) {
        let place = format!("{report}, {}, {}", table.heading, table.summary);
        let compare = Compare { place, checked: &mut checked };
        if let Some(section) = sections.iter().find(|section| section.title == table.heading) {
            of_section(section, &table, compare);
        } else if table.heading == "Servers" {
            of_servers(results, &table, compare);
        } else if table.heading == "Probes" {
            of_probes(results, &table, compare);
        } else {
            let known = NO_FIGURES.iter().any(|(heading, _)| *heading == table.heading);
            assert!(known, "{report}: nobody computes the table below `{}`", table.heading);
        }
    }
    for line in text.lines() {
        checked += markdown::heading_of(text, line).map_or(0, |heading| {
            // Where generators are compared a name is found below each server; tests/verdicts.rs has the words.
            let own = |section: &&Section<'_>| section.title == heading && section.kind != "generators";
            let section = sections.iter().find(own);
            section.map_or(0, |section| of_line(section, line, report))
        });
    }
    checked
}

/// Where a figure stands, and how many were compared.
struct Compare<'a> {
    place: String,
    checked: &'a mut usize,
}

impl Compare<'_> {
    /// The number printed is `expected`, rounded to the digits there are.
    fn is(&mut self, printed: &str, expected: Option<f64>, what: &str) {
        let place = format!("{}: {what}: `{printed}`", self.place);
        let Some((value, half)) = number(printed) else {
            assert!(WORDS.iter().any(|(word, _)| *word == printed), "{place} is no number and no known word");
            return;
        };
        let expected = expected.unwrap_or_else(|| panic!("{place} follows from nothing"));
        assert!((value - expected).abs() <= half * (1.0 + 1e-9), "{place} is not {expected}");
        *self.checked += 1;
    }
}

/// The figures of probes are read again from what each printed, by its patterns.
fn of_probes(results: &Value, table: &Table, mut compare: Compare<'_>) {
    let probes = results["probes"].as_array().expect("probes");
    let figures = probes.iter().flat_map(|probe| {
        let figures = probe["figures"].as_array().expect("figures");
        figures.iter().map(move |figure| (probe, figure))
    });
    for (row, (probe, figure)) in table.rows.iter().zip(figures) {
        assert_eq!(row[2], figure["name"].as_str().expect("a name"));
        let pattern = Regex::new(figure["pattern"].as_str().expect("a pattern")).expect("a pattern");
        let printed = probe["output"].as_str().filter(|_| probe["status"] == "measured");
        let found = printed.and_then(|printed| pattern.captures(printed)?.get(1));
        let value = found.and_then(|found| found.as_str().replace(',', "").parse().ok());
        assert_eq!(figure["value"].as_f64(), value, "{}: {}", compare.place, row[2]);
        compare.is(&row[3], value, &row[2]);
    }
}

fn of_section(section: &Section<'_>, table: &Table, mut compare: Compare<'_>) {
    let grouped = table.header[0].is_empty();
    let mut group = String::new();
    for row in &table.rows {
        if grouped && !row[0].is_empty() {
            group.clone_from(&row[0]);
        }
        let first = usize::from(grouped);
        let label = &row[first];
        for (column, printed) in table.header.iter().zip(row).skip(first + 1) {
            let what = format!("{group} of {label}, {column}");
            if table.summary.starts_with("QUIC") {
                quic(section, table, label, &group, column, printed, &mut compare);
            } else if table.header.iter().any(|title| title == "round") {
                rounds::row(section, table, row).compare(column, printed, &mut |text, expected| {
                    compare.is(text, expected, &what);
                });
            } else if table.header.iter().any(|title| title == "stdev") {
                let expected = rounds::over(section, table, row, column);
                if !matches!(column.as_str(), "users") {
                    compare.is(printed, expected, &what);
                }
            } else {
                let (measure, title) = measure_and_column(section, &group, column, &table.summary);
                let found = section.at(&table.sub, label, &title);
                streams_or(found, &measure, printed, |text| {
                    compare.is(text, expected(section, label, &table.sub, &measure, &title), &what);
                });
            }
        }
    }
}

/// `1 to 8` is two figures.
fn streams_or(cell: Option<&Cell<'_>>, measure: &str, printed: &str, then: impl FnOnce(&str)) {
    match (measure, printed.split_once(" to "), cell) {
        ("streams allowed", Some((least, most)), Some(cell)) => {
            let told = [least, most].map(|text| text.parse::<f64>().expect("a count"));
            let allowed = |key: &str| cell.over(|round| round["measurement"]["multiplexing"][key].as_f64());
            let (all_least, all_most) = (allowed("effective_least"), allowed("effective_most"));
            let extreme = |values: &[f64], pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
            assert_eq!(Some(told[0]), extreme(&all_least, f64::min));
            assert_eq!(Some(told[1]), extreme(&all_most, f64::max));
        }
        _ => then(printed),
    }
}

/// What a place shows, and the title of its column.
fn measure_and_column(section: &Section<'_>, group: &str, column: &str, summary: &str) -> (String, String) {
    let figures = summary.is_empty();
    match section.kind {
        "ratio" if figures => (column.to_owned(), group.to_owned()),
        "setup" if figures => {
            let cut = ["conn/s", "handshakes/s", "CPU µs/conn"]
                .into_iter()
                .find_map(|measure| Some((measure, column.strip_suffix(measure)?.trim_end())));
            let (measure, title) = cut.unwrap_or_else(|| panic!("nobody computes `{column}` of a set-up"));
            let measure = if measure == "CPU µs/conn" { "CPU µs/req" } else { "req/s" };
            (measure.into(), title.into())
        }
        _ => (group.to_owned(), column.to_owned()),
    }
}

/// The figure of a place, computed anew.
fn expected(section: &Section<'_>, label: &str, sub: &str, measure: &str, title: &str) -> Option<f64> {
    if section.kind == "ratio" && !BACKGROUND.contains(&measure) && measure != "CPU µs/req" {
        let versions: Vec<&str> = section.versions();
        let of = |version: &str, measure: &str| {
            section.at(sub, label, &format!("{version} {title}")).and_then(|cell| figure(cell, measure))
        };
        if measure == "ratio" {
            return Some(of(versions[0], "req/s")? / of(versions[1], "req/s")?);
        }
        let (version, measure) = measure.split_once(' ').expect("a version and a measure");
        return of(version, measure);
    }
    figure(section.at(sub, label, title)?, measure)
}

/// Measures of the folded table that have a figure.
const BACKGROUND: [&str; 15] = [
    "bound by",
    "server CPUs busy",
    "its busiest thread",
    "generator busy",
    "requests in flight",
    "spread of the rate",
    "peak memory (MiB)",
    "CPU µs/req by the scheduler",
    "full handshakes",
    "resumed",
    "early data accepted",
    "early data rejected",
    "streams allowed",
    "connections reopened",
    "requests sent again",
];

/// A measure of a cell over its rounds.
fn figure(cell: &Cell<'_>, measure: &str) -> Option<f64> {
    if let Some(percentile) = measure.strip_suffix(" (ms)").and_then(|name| name.strip_prefix('p')) {
        if cell.by_command() {
            let own = cell.over(|round| round["external"]["latency_us"][percentile].as_f64());
            return median(&own).map(|micros| micros / 1e3);
        }
        let percentile: f64 = percentile.parse().expect("a percentile");
        return median(
            &cell.over(|round| rounds::percentile_us(&round["measurement"]["latency_us"], percentile)),
        )
        .map(|micros| micros / 1e3);
    }
    let measured = |key: &'static str| move |round: &Value| round["measurement"]["connection"][key].clone();
    let setup = |percentile: Option<f64>, key: &'static str| {
        let times = cell.over(|round| {
            let latency = measured(key)(round);
            percentile.map_or_else(|| latency["min"].as_f64(), |p| rounds::percentile_us(&latency, p))
        });
        median(&times).map(|micros| micros / 1e3)
    };
    let share =
        |key: &str| median(&cell.over(|round| round["server"][key].as_f64())).map(|share| share * 100.0);
    let handshakes =
        |key: &str| sum(&cell.over(|round| round["measurement"]["connection"]["handshakes"][key].as_f64()));
    match measure {
        "req/s" => median(&cell.over(rounds::rate)),
        "max (ms)" => cell.largest_us().map(|micros| micros / 1e3),
        "generator CPU µs/req" => {
            median(&cell.over(|round| Some(rounds::command_us(round)? / rounds::ok(round))))
        }
        "CPU µs/req" | "server CPU µs/req" => {
            median(&cell.over(|round| rounds::cpu_us(round).map(|used| used / rounds::ok(round))))
        }
        "handshake min (ms)" => setup(None, "setup_us"),
        "handshake p50 (ms)" => setup(Some(50.0), "setup_us"),
        "handshake p99 (ms)" => setup(Some(99.0), "setup_us"),
        "first response p50 (ms)" => setup(Some(50.0), "first_response_us"),
        "conn/s" => median(&cell.over(|round| Some(rounds::connections(round)? / rounds::length_s(round)?))),
        "CPU µs/conn" => {
            median(&cell.over(|round| Some(rounds::cpu_us(round)? / rounds::connections(round)?)))
        }
        "bound by" => None,
        "server CPUs busy" => share("cpus_busy"),
        "its busiest thread" => share("busiest_thread"),
        "generator busy" if cell.by_command() => cell.command_busy().map(|share| share * 100.0),
        "generator busy" => median(&cell.over(rounds::generator_busy)).map(|share| share * 100.0),
        "requests in flight" => median(&cell.over(|round| {
            let own = round["measurement"]["latency_us"]["mean"].as_f64();
            Some(rounds::rate(round)? * own.or(round["external"]["latency_mean_us"].as_f64())? / 1e6)
        })),
        "spread of the rate" => rounds::spread(&cell.over(rounds::rate)).map(|spread| spread * 100.0),
        "peak memory (MiB)" => {
            let peaks = cell.over(|round| round["server"]["peak_rss_kib"].as_f64());
            peaks.into_iter().reduce(f64::max).map(|kib| kib / 1024.0)
        }
        "CPU µs/req by the scheduler" => median(&cell.over(|round| {
            // Kept where the clocks differ.
            round["server"]["cpu_us_per_request_schedstat"].as_f64()?;
            Some(round["server"]["cpu_schedstat_us"].as_f64()? / rounds::ok(round))
        })),
        "full handshakes" => handshakes("full"),
        "resumed" => handshakes("resumed"),
        "early data accepted" => handshakes("early_accepted"),
        "early data rejected" => handshakes("early_rejected"),
        "streams allowed" => {
            let least = cell.over(|round| round["measurement"]["multiplexing"]["effective_least"].as_f64());
            least.into_iter().reduce(f64::min)
        }
        "connections reopened" => sum(&cell.over(rounds::reopened)),
        "requests sent again" => {
            sum(&cell.over(|round| round["measurement"]["requests"]["replayed"].as_f64()))
        }
        "requests interrupted" => {
            sum(&cell.over(|round| round["measurement"]["requests"]["interrupted"].as_f64()))
        }
        other => panic!("nobody computes `{other}`"),
    }
}

fn sum(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(|a, b| a + b)
}

/// The table of QUIC's health, whose groups are the columns of the others.
fn quic(
    section: &Section<'_>,
    table: &Table,
    label: &str,
    group: &str,
    column: &str,
    printed: &str,
    compare: &mut Compare<'_>,
) {
    let cell = section.at(&table.sub, label, group).unwrap_or_else(|| panic!("{}: no cell", compare.place));
    let of = |key: &str| sum(&cell.over(|round| round["measurement"]["quic"][key].as_f64()));
    let per = |count: &str, of_these: &str| Some(of(count)? / of(of_these).filter(|n| *n > 0.0)?);
    let what = format!("{group} of {label}, {column}");
    let expected = match column {
        "packets lost" => {
            if let Some((lost, share)) = printed.split_once(" (") {
                compare.is(lost, of("packets_lost"), &what);
                let share = share.trim_end_matches(')');
                return compare.is(share, per("packets_lost", "datagrams_sent").map(|x| x * 100.0), &what);
            }
            of("packets_lost")
        }
        "PTOs" => of("probe_timeouts"),
        "Retries" => of("retries"),
        "drops, server" => sum(&cell.over(|round| round["server"]["udp_drops"].as_f64())),
        "drops, generator" => of("receive_drops"),
        "datagrams/send" => per("datagrams_sent", "send_calls"),
        "datagrams/receive" => per("datagrams_received", "receive_calls"),
        "bytes/datagram sent" => per("bytes_sent", "datagrams_sent"),
        "bytes/datagram received" => per("bytes_received", "datagrams_received"),
        other => panic!("nobody computes `{other}`"),
    };
    compare.is(printed, expected, &what);
}

fn of_servers(results: &Value, table: &Table, mut compare: Compare<'_>) {
    for row in &table.rows {
        let servers = results["servers"].as_array().expect("servers");
        let server = servers
            .iter()
            .find(|server| markdown::plain(server["label"].as_str().expect("a label")) == row[0])
            .unwrap_or_else(|| panic!("{}: no server {}", compare.place, row[0]));
        for (column, printed) in table.header.iter().zip(row).skip(1) {
            let what = format!("{} of {}", column, row[0]);
            match column.as_str() {
                "Ready after (ms)" => {
                    let starts = server["starts"].as_array().expect("starts");
                    let ready: Vec<f64> =
                        starts.iter().filter_map(|start| start["ready_ms"].as_f64()).collect();
                    compare.is(printed, median(&ready), &what);
                }
                "Peak memory (MiB)" => {
                    let all = rounds::sections(results);
                    let all = all.iter().flat_map(cells).filter(|cell| cell.json["server"] == server["name"]);
                    let peaks =
                        all.flat_map(|cell| cell.over(|round| round["server"]["peak_rss_kib"].as_f64()));
                    compare.is(printed, peaks.reduce(f64::max).map(|kib| kib / 1024.0), &what);
                }
                "Built in" => {
                    let took =
                        markdown::duration_s(printed).or_else(|| (printed == "n/a").then_some(f64::NAN));
                    let took = took.unwrap_or_else(|| panic!("{what}: `{printed}`"));
                    let close = server["build_s"].as_f64().map(|build_s| (build_s - took).abs() < 0.051);
                    assert!(close.unwrap_or_else(|| took.is_nan()), "{what}: `{printed}`");
                }
                // As recorded.
                "Command" | "Note" => {}
                other => panic!("nobody computes `{other}` of a server"),
            }
        }
    }
}

/// Figures of the lines below a table: how many were compared.
fn of_line(section: &Section<'_>, line: &str, report: &str) -> usize {
    let mut checked = 0;
    let mut compare = |name: &str, printed: &str, of: &dyn Fn(&Cell<'_>) -> Option<f64>| {
        let cell = section.named(name).unwrap_or_else(|| panic!("{report}: `{name}` in: {line}"));
        let place = format!("{report}, {}, below", section.title);
        Compare { place, checked: &mut checked }.is(printed, of(cell), name);
    };
    if let Some(cells) = line.strip_prefix("‡ starved: ") {
        for one in cells.trim_end_matches('.').split("; ") {
            let (name, said) = one.rsplit_once(": ~").expect("a name and a figure");
            let printed = said.strip_suffix(" in flight").expect("requests in flight");
            compare(name, printed, &|cell| figure(cell, "requests in flight"));
        }
    } else if let Some(cells) = line.strip_prefix("† unstable: ") {
        for one in cells.trim_end_matches('.').split("; ") {
            let (name, said) = one.rsplit_once(": ±").expect("a name and a figure");
            let (printed, rest) = said.split_once(" % ").expect("a share");
            assert!(rest.starts_with("req/s over "), "{report}: nobody computes: {line}");
            compare(name, printed, &|cell| figure(cell, "spread of the rate"));
        }
    } else if let Some(servers) = line.strip_prefix("Answered, before the windows: ") {
        return section.answers(servers);
    } else if let Some((_, columns)) =
        line.strip_prefix("Within noise of each other in rate").and_then(|l| l.split_once(": "))
    {
        for column in columns.trim_end_matches('.').split("; ") {
            let (title, servers) = column.split_once(": ").expect("a column and servers");
            for one in servers.split(", ") {
                let (label, printed) = one.rsplit_once(' ').expect("a label and a figure");
                let name = format!("{label} {}", title.replace(" x ", "x"));
                compare(&name, printed, &|cell| figure(cell, "CPU µs/req"));
            }
        }
    }
    checked
}
