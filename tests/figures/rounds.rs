//! Owns what is computed of raw rounds, read as plain JSON.

use std::io::Read;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::Value;

use super::markdown::{Table, plain};

/// A section of the results.
pub(crate) struct Section<'a> {
    pub(crate) title: String,
    pub(crate) kind: &'a str,
    cells: Vec<Cell<'a>>,
}

/// A cell of one server.
pub(crate) struct Cell<'a> {
    pub(crate) json: &'a Value,
    label: String,
    /// What its table is headed by, where the section has several.
    sub: String,
    /// Title of its column.
    title: String,
    /// Threads a generator was given.
    threads: f64,
    kind: &'a str,
}

pub(crate) fn sections(results: &Value) -> Vec<Section<'_>> {
    let sections = results["sections"].as_array().expect("sections");
    sections.iter().map(|section| Section::of(results, section)).collect()
}

pub(crate) fn cells<'s, 'a>(section: &'s Section<'a>) -> impl Iterator<Item = &'s Cell<'a>> {
    section.cells.iter()
}

impl<'a> Section<'a> {
    fn of(results: &'a Value, json: &'a Value) -> Self {
        let kind = json["kind"].as_str().expect("a kind");
        let all = json["cells"].as_array().expect("cells");
        let label = |name: &Value| {
            let servers = results["servers"].as_array().expect("servers");
            let server = servers.iter().find(|server| server["name"] == *name).expect("the server of a cell");
            plain(server["label"].as_str().expect("a label"))
        };
        let generator = |cell: &Value| {
            let index = usize::try_from(cell["generator"].as_u64()?).expect("an index");
            Some(plain(results["generators"][index]["label"].as_str().expect("a label")))
        };
        let threads = results["settings"]["generator_threads"].as_f64().expect("threads");
        let cell = |cell: &'a Value| Cell {
            json: cell,
            label: generator(cell).unwrap_or_else(|| label(&cell["server"])),
            sub: generator(cell).map_or_else(|| prose(cell), |_| label(&cell["server"])),
            title: title(kind, all, cell),
            threads: threads.min(cell["connections"].as_f64().expect("connections")),
            kind,
        };
        Self {
            title: plain(json["title"].as_str().expect("a title")),
            kind,
            cells: all.iter().map(cell).collect(),
        }
    }

    /// The cell below a heading, in a row and a column.
    pub(crate) fn at(&self, sub: &str, label: &str, title: &str) -> Option<&Cell<'a>> {
        // The sign of a gate that failed stands beside the name.
        let label = label.trim_end_matches(" ✗");
        self.cells
            .iter()
            .find(|cell| cell.label == label && cell.title == title && (sub.is_empty() || cell.sub == sub))
    }

    /// The cell as a sentence names it: `nginx C = 10`, `Caddy 10x10`.
    pub(crate) fn named(&self, name: &str) -> Option<&Cell<'a>> {
        self.cells.iter().find(|cell| format!("{} {}", cell.label, cell.title.replace(" x ", "x")) == name)
    }

    /// Compares what stands below a table of what servers answered with the answers recorded: how many sizes there were.
    pub(crate) fn answers(&self, told: &str) -> usize {
        let mut expected: Vec<(&str, Vec<String>)> = Vec::new();
        let mut sizes = 0;
        for cell in &self.cells {
            let answers =
                cell.json["rounds"].as_array().expect("rounds").iter().map(|round| &round["answer"]);
            for answer in answers.filter(|answer| !answer.is_null()) {
                let size = |key: &str| answer[key].as_u64().map(spaced);
                let sent = size("encoded_bytes").expect("a size");
                let size = match (answer["encoding"] == "identity", size("body_bytes")) {
                    (true, Some(_)) => format!("{sent} bytes"),
                    (false, Some(body)) => format!("{sent} of {body} bytes"),
                    (_, None) => format!("{sent} bytes that were not decoded"),
                };
                let end = if answer["repeats"] == true { "" } else { ", differing from answer to answer" };
                let way = format!("{}, {size}{end}", answer["encoding"].as_str().expect("a coding"));
                match expected.iter_mut().find(|(label, _)| *label == cell.label) {
                    Some((_, ways)) if ways.contains(&way) => continue,
                    Some((_, ways)) => ways.push(way),
                    None => expected.push((&cell.label, vec![way])),
                }
                sizes += 1;
            }
        }
        let ways = |(label, ways): &(&str, Vec<String>)| format!("{label}: {}", ways.join("; or "));
        let expected: Vec<String> = expected.iter().map(ways).collect();
        // The sign of a gate that failed stands beside the name.
        let told = super::markdown::unescaped(told).replace(" ✗:", ":");
        assert_eq!(told, expected.join("; ") + ".");
        sizes
    }

    /// The versions of HTTP of its protocols, in order.
    pub(crate) fn versions(&self) -> Vec<&'static str> {
        let mut versions = Vec::new();
        for cell in &self.cells {
            if !versions.contains(&version(cell.json)) {
                versions.push(version(cell.json));
            }
        }
        versions
    }
}

fn version(cell: &Value) -> &'static str {
    match cell["protocol"].as_str() {
        Some("h1" | "h1s") => "HTTP/1.1",
        Some("h2c" | "h2") => "HTTP/2",
        _ => "HTTP/3",
    }
}

fn prose(cell: &Value) -> String {
    let tls = matches!(cell["protocol"].as_str(), Some("h1s" | "h2"));
    format!("{}{}", version(cell), if tls { " over TLS" } else { "" })
}

/// The title of a cell's column, as the tables of its kind have it.
fn title(kind: &str, all: &[Value], cell: &Value) -> String {
    let (c, m) = (&cell["connections"], &cell["concurrency"]);
    let alike: Vec<&Value> = all.iter().filter(|other| other["protocol"] == cell["protocol"]).collect();
    let single = alike.iter().all(|other| other["concurrency"] == 1);
    let size = if single { format!("C = {c}") } else { format!("{c} x {m}") };
    let one_size = single && alike.iter().all(|other| other["connections"] == *c);
    let of_size = if one_size { String::new() } else { format!(" ({size})") };
    let protocol = cell["protocol"].as_str().expect("a protocol");
    let one_version = all.iter().all(|cell| version(cell) == "HTTP/1.1");
    let name = match protocol {
        "h1" if one_version => "http",
        "h1s" if one_version => "https",
        name => name,
    };
    let resumption = match cell["resumption"].as_str() {
        Some("ticket") => "resumed",
        Some("0rtt") => "0-RTT",
        _ => "full",
    };
    match kind {
        "ratio" => format!("{} {size}", version(cell)),
        "setup" if resumption == "full" => format!("{name}{of_size}"),
        "setup" | "handshake" => format!("{name} {resumption}{of_size}"),
        _ => size,
    }
}

impl Cell<'_> {
    /// What `read` makes of each round that counts.
    pub(crate) fn over<T>(&self, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        self.rounds().filter_map(read).collect()
    }

    fn rounds(&self) -> impl Iterator<Item = &Value> {
        self.json["rounds"].as_array().expect("rounds").iter().filter(|round| self.counts(round))
    }

    /// Measured to its end, with an answer, and of the resumption it is about.
    fn counts(&self, round: &Value) -> bool {
        if self.by_command() {
            return round["status"] == "measured" && agrees(&round["external"]);
        }
        let m = &round["measurement"];
        let none = |key: &str| m["connection"]["handshakes"][key] == 0;
        let short = m["keepalive"] == false || !m["requests_per_connection"].is_null();
        let resumed = match self.json["resumption"].as_str() {
            Some("ticket") if short => !none("resumed"),
            Some("0rtt") if short => !none("early_accepted"),
            _ => true,
        };
        let rounds = self.json["rounds"].as_array().expect("rounds");
        answered(round) && resumed && !rounds.iter().any(|round| answered(round) && self.spoils(round))
    }

    /// A round that nothing of its cell is believed after: its requests do not add up, or it was answered over another
    /// protocol than the cell's.
    fn spoils(&self, round: &Value) -> bool {
        let requests = &round["measurement"]["requests"];
        let count = |key: &str| requests[key].as_u64().expect("a count");
        let got = &round["measurement"]["negotiated"];
        let (tls, alpn) = match self.json["protocol"].as_str() {
            Some("h1") | Some("h2c") => (false, [None, None]),
            Some("h1s") => (true, [None, Some("http/1.1")]),
            Some("h2") => (true, [Some("h2"); 2]),
            _ => (true, [Some("h3"); 2]),
        };
        let http = got["http"].as_str().map(|http| if http == "HTTP/1.0" { "HTTP/1.1" } else { http });
        let as_asked = got.is_null()
            || (http == Some(version(self.json))
                && got["tls"].is_null() != tls
                && alpn.contains(&got["alpn"].as_str()));
        count("ok") + count("failed") + count("unfinished") != count("started") || !as_asked
    }

    /// Whether a generator drove it as a command.
    pub(crate) fn by_command(&self) -> bool {
        !self.json["generator"].is_null()
    }

    /// What the generator's process used of the time of as many CPUs as it had threads.
    pub(crate) fn command_busy(&self) -> Option<f64> {
        let wall = |round: &Value| round["external"]["wall_s"].as_f64();
        median(&self.over(|round| Some((command_us(round)? / (wall(round)? * 1e6 * self.threads)).min(1.0))))
    }

    /// The largest latency, or the age of an unanswered request that is older.
    pub(crate) fn largest_us(&self) -> Option<f64> {
        let largest = |values: Vec<f64>| values.into_iter().reduce(f64::max);
        let max = largest(self.over(|round| round["measurement"]["latency_us"]["max"].as_f64()))?;
        let oldest =
            largest(self.over(|round| round["measurement"]["requests"]["oldest_unfinished_us"].as_f64()));
        Some(oldest.unwrap_or(0.0).max(max))
    }
}

/// Measured to its end, with an answer.
fn answered(round: &Value) -> bool {
    round["status"] == "measured" && round["measurement"]["interrupted"] == false && ok(round) > 0.0
}

pub(crate) fn ok(round: &Value) -> f64 {
    let own = round["measurement"]["requests"]["ok"].as_f64();
    own.or(round["external"]["ok"].as_f64()).unwrap_or(0.0)
}

/// CPU time of a generator that ran as a command.
pub(crate) fn command_us(round: &Value) -> Option<f64> {
    let run = &round["external"];
    Some(run["cpu_user_us"].as_f64()? + run["cpu_system_us"].as_f64()?)
}

/// Digits in groups of three, as sentences of reports have them.
fn spaced(number: u64) -> String {
    let digits = number.to_string();
    let group = |(at, digit): (usize, char)| {
        if at > 0 && (digits.len() - at).is_multiple_of(3) { format!(" {digit}") } else { format!("{digit}") }
    };
    digits.chars().enumerate().map(group).collect()
}

/// True when the rate that a generator states is that of its count over a time that it can have meant, or
/// of its count and its failures.
fn agrees(run: &Value) -> bool {
    run["ok"].as_f64().is_some_and(|good| good > 0.0) && command_rate(run).is_some()
}

/// Ok responses per second of a generator that ran as a command. Failures that its rate has in it are told by the time
/// that rate and count make: with them it is nearer to the one asked for, or possible at all.
fn command_rate(run: &Value) -> Option<f64> {
    let figure = |key: &str| run[key].as_f64().unwrap_or(0.0);
    let (good, stated) = (figure("ok"), run["requests_per_second"].as_f64()?);
    let all = good + figure("failed");
    let fits = |count: f64| {
        let took = count / stated;
        took * 1.05 >= figure("asked_s") && took * 0.95 <= figure("wall_s").max(figure("asked_s"))
    };
    let nearer = (all / stated - figure("asked_s")).abs() < (good / stated - figure("asked_s")).abs();
    match (fits(good), fits(all)) {
        (true, with_failed) if !with_failed || !nearer => Some(stated),
        (_, true) => Some(stated / all * good),
        _ => None,
    }
}

pub(crate) fn length_s(round: &Value) -> Option<f64> {
    round["measurement"]["window"]["length_s"].as_f64()
}

pub(crate) fn rate(round: &Value) -> Option<f64> {
    command_rate(&round["external"]).or_else(|| Some(ok(round) / length_s(round)?))
}

/// CPU time of the server.
pub(crate) fn cpu_us(round: &Value) -> Option<f64> {
    // Without it the processes were lost sight of, and their sums say nothing.
    round["server"]["cpu_us_per_request"].as_f64()?;
    Some(round["server"]["cpu_user_us"].as_f64()? + round["server"]["cpu_system_us"].as_f64()?)
}

/// Handshakes completed; `None` when there were none.
pub(crate) fn connections(round: &Value) -> Option<f64> {
    let handshakes = &round["measurement"]["connection"]["handshakes"];
    Some(handshakes["full"].as_f64()? + handshakes["resumed"].as_f64()?).filter(|n| *n > 0.0)
}

/// Connections that took the place of one that was to stay.
pub(crate) fn reopened(round: &Value) -> Option<f64> {
    let m = &round["measurement"];
    let stay = m["keepalive"] == true && m["requests_per_connection"].is_null();
    let connection = &m["connection"];
    let count = connection["reopened_in_window"].as_f64().or_else(|| connection["reopened"].as_f64())?;
    Some(if stay { count } else { 0.0 })
}

/// The busiest thread of the generator, polling left out.
pub(crate) fn generator_busy(round: &Value) -> Option<f64> {
    let window_us = length_s(round)? * 1e6;
    let threads = round["measurement"]["generator"]["threads"].as_array()?;
    let busy = threads.iter().filter_map(|thread| {
        thread["busy"].as_f64()?;
        let us = |key: &str| thread[key].as_f64();
        let user = (us("user_us")? - us("polling_us")?).max(0.0);
        Some(((user + us("system_us")?) / window_us).clamp(0.0, 1.0))
    });
    busy.reduce(f64::max)
}

/// A percentile of the histogram of a latency, within the extremes, which are known better.
pub(crate) fn percentile_us(latency: &Value, percentile: f64) -> Option<f64> {
    let compressed = BASE64_STANDARD.decode(latency["histogram"].as_str()?).expect("base64");
    // Behind a cookie and a length (HdrHistogram V2).
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(&compressed[8..]).read_to_end(&mut plain).expect("zlib");
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &plain[..]).expect("a histogram");
    let value = histogram.value_at_percentile(percentile) as f64 / 1e3;
    Some(value.clamp(latency["min"].as_f64()?, latency["max"].as_f64()?))
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

/// Half the range, relative to the median.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    (values.len() > 1).then(|| (most - least) / 2.0 / median(values).expect("there are values"))
}

/// One row of the runs table.
pub(crate) struct Row<'a>(&'a Value, bool);

/// The round that a row of the runs table is of.
pub(crate) fn row<'a>(section: &Section<'a>, table: &Table, row: &[String]) -> Row<'a> {
    let cell = of_row(section, table, row);
    let at = |title: &str| &row[table.header.iter().position(|t| t == title).expect("a column")];
    let number: u64 = at("round").parse().expect("a round");
    let rounds = cell.json["rounds"].as_array().expect("rounds");
    let round = rounds.iter().find(|round| round["round"] == number).expect("the round of a row");
    Row(round, cell.counts(round))
}

impl Row<'_> {
    /// Compares one place: numbers by `is`, words here.
    pub(crate) fn compare(&self, column: &str, printed: &str, is: &mut dyn FnMut(&str, Option<f64>)) {
        let Self(round, measured) = self;
        let m = &round["measurement"];
        let count = |keys: &[&str]| {
            measured.then(|| keys.iter().filter_map(|key| m["requests"][key].as_f64()).sum::<f64>())
        };
        let text = |value: &Value| value.as_str().unwrap_or("n/a").to_owned();
        match column {
            "requests" => is(printed, count(&["ok", "failed"])),
            "started" => is(printed, count(&["ok", "failed", "unfinished"])),
            "succeeded" => is(printed, count(&["ok"])),
            "req/s" => is(printed, measured.then(|| rate(round)).flatten()),
            "encoding" => assert_eq!(printed, text(&round["answer"]["encoding"])),
            "cipher" | "protocol" if !measured => assert_eq!(printed, "n/a"),
            "cipher" if m["negotiated"]["tls"].is_null() => assert_eq!(printed, "none"),
            "cipher" => assert_eq!(printed, text(&m["negotiated"]["cipher"])),
            "protocol" => {
                let tls = m["negotiated"]["tls"].as_str().map_or(String::new(), |tls| format!(", {tls}"));
                assert_eq!(printed, text(&m["negotiated"]["http"]) + &tls);
            }
            // They say which row it is.
            "round" | "users" => {}
            other => panic!("nobody computes `{other}` of a round"),
        }
    }
}

/// A figure over the rounds of a cell, as the table below the rounds has it.
pub(crate) fn over(section: &Section<'_>, table: &Table, row: &[String], column: &str) -> Option<f64> {
    let cell = of_row(section, table, row);
    let rounds: Vec<&Value> = cell.rounds().collect();
    let rates: Vec<f64> = rounds.iter().filter_map(|round| rate(round)).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let total =
        |key: &str| rounds.iter().filter_map(|r| r["measurement"]["requests"][key].as_f64()).sum::<f64>();
    match column {
        "rounds" => Some(rates.len() as f64),
        "min" => rates.into_iter().reduce(f64::min),
        "mean" => Some(mean),
        "max" => rates.into_iter().reduce(f64::max),
        "stdev" if rates.len() < 2 => None,
        "stdev" => {
            let squares: f64 = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
            Some((squares / (rates.len() as f64 - 1.0)).sqrt())
        }
        "succeeded" => {
            // It is printed rounded down.
            let share = total("ok") / (total("ok") + total("failed")) * 100.0;
            Some((share * 100.0).floor() / 100.0)
        }
        "users" => None,
        other => panic!("nobody computes `{other}` over rounds"),
    }
}

/// The cell of a row that begins with a server's label, or its label and the title of a column.
fn of_row<'s, 'a>(section: &'s Section<'a>, table: &Table, row: &[String]) -> &'s Cell<'a> {
    let users = &row[table.header.iter().position(|title| title == "users").expect("users")];
    let found = section.cells.iter().find(|cell| {
        let name = match cell.kind {
            "closed-loop" => cell.label.clone(),
            _ => format!("{} {}", cell.label, cell.title),
        };
        let size = format!("{} x {}", cell.json["connections"], cell.json["concurrency"]);
        name == row[0] && size == *users && (table.sub.is_empty() || prose(cell.json) == table.sub)
    });
    found.unwrap_or_else(|| panic!("no cell of the row {row:?}"))
}
