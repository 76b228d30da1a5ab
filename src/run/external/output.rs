//! Owns what load generators print: from the output of each to the same figures. Pure, and told nothing by
//! the run: the figures can be read again from the output that the results keep.
//!
//! An ok response has status 2xx or 3xx, whatever the generator calls a success: `oha` and `shb` count
//! every response, `wrk` and `h2load` have the others in their rates.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::results::{ExternalRun, GeneratorKind};
use crate::scenario::{GeneratorSpec, LatencyUnit, OutputSpec};

/// The figures in what a generator printed; those that are not there are `None`, and all that is not a
/// figure is left empty.
pub(super) fn read(spec: &GeneratorSpec, text: &str) -> ExternalRun {
    match (spec.kind, &spec.output) {
        (GeneratorKind::Builtin, _) => json(text, builtin),
        (GeneratorKind::Shb, _) => json(text, shb),
        (GeneratorKind::Oha, _) => json(text, oha),
        (GeneratorKind::Wrk, _) => wrk(text),
        (GeneratorKind::H2load, _) => h2load(text),
        (GeneratorKind::Command, Some(output)) => by_patterns(output, text),
        (GeneratorKind::Command, None) => nothing(),
    }
}

/// A number as people and programs write it: `12345`, `12,345.6`, `1e3`. What parts its digits stands between groups
/// of three; `1,5` is no number, for who wrote it may have meant 1.5.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (whole, rest) = text.split_at(text.find(['.', 'e', 'E']).unwrap_or(text.len()));
    let digits = |group: &str, most: usize| {
        (1..=most).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some((first, others)) = whole.split_once(SEPARATORS) {
        let others_fit = others.split(SEPARATORS).all(|group| group.len() == 3 && digits(group, 3));
        if !digits(first.trim_start_matches(['-', '+']), 3) || !others_fit {
            return None;
        }
    }
    let plain = whole.replace(SEPARATORS, "") + rest;
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

fn nothing() -> ExternalRun {
    ExternalRun {
        command: Vec::new(),
        asked_s: 0.0,
        wall_s: 0.0,
        cpu_user_us: 0,
        cpu_system_us: 0,
        ok: None,
        failed: None,
        requests_per_second: None,
        latency_mean_us: None,
        latency_max_us: None,
        latency_us: BTreeMap::new(),
        output: String::new(),
    }
}

/// Reads the first JSON object that has a count of ok responses, in a text with other lines around it, some of which
/// may begin like JSON or be some.
fn json(text: &str, read: fn(&Value) -> ExternalRun) -> ExternalRun {
    let starts = text.match_indices('{').map(|(at, _)| at);
    let starts = starts.filter(|at| *at == 0 || text[..*at].ends_with(['\n', '\r']));
    let objects =
        starts.filter_map(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok());
    objects.map(|object| read(&object)).find(|run| run.ok.is_some()).unwrap_or_else(nothing)
}

fn builtin(json: &Value) -> ExternalRun {
    let latency = |key: &str| json["latency_us"][key].as_f64();
    let percentiles = [
        ("p50", "50"),
        ("p75", "75"),
        ("p90", "90"),
        ("p95", "95"),
        ("p99", "99"),
        ("p99_9", "99.9"),
        ("p99_99", "99.99"),
    ];
    ExternalRun {
        ok: json["requests"]["ok"].as_u64(),
        failed: json["requests"]["failed"].as_u64(),
        requests_per_second: json["requests_per_second"].as_f64(),
        latency_mean_us: latency("mean"),
        latency_max_us: latency("max"),
        latency_us: percentiles
            .into_iter()
            .filter_map(|(key, name)| Some((name.to_owned(), latency(key)?)))
            .collect(),
        ..nothing()
    }
}

fn shb(json: &Value) -> ExternalRun {
    let statuses = &json["statusCodes"];
    let ok = of_status(statuses, good);
    let total = json["requests"]["total"].as_u64();
    let latency = &json["latencySeconds"];
    ExternalRun {
        ok,
        failed: total.zip(ok).and_then(|(total, ok)| total.checked_sub(ok)),
        requests_per_second: json["requestsPerSec"].as_f64(),
        latency_mean_us: seconds(&latency["mean"]),
        latency_max_us: seconds(&latency["max"]),
        latency_us: percentiles(&latency["percentiles"]),
        ..nothing()
    }
}

fn oha(json: &Value) -> ExternalRun {
    let statuses = &json["statusCodeDistribution"];
    // What is under way when the time is over is no failure.
    let errors = json["errorDistribution"].as_object().map(|errors| {
        let of = errors.iter().filter(|(what, _)| !what.starts_with(OHA_UNFINISHED));
        of.filter_map(|(_, count)| count.as_u64()).fold(0, u64::saturating_add)
    });
    let others = of_status(statuses, |status| !good(status));
    ExternalRun {
        ok: of_status(statuses, good),
        failed: others.zip(errors).map(|(others, errors)| others.saturating_add(errors)),
        requests_per_second: json["summary"]["requestsPerSec"].as_f64(),
        latency_mean_us: seconds(&json["summary"]["average"]),
        latency_max_us: seconds(&json["summary"]["slowest"]),
        latency_us: percentiles(&json["latencyPercentiles"]),
        ..nothing()
    }
}

fn wrk(text: &str) -> ExternalRun {
    let mut run = nothing();
    let mut others = 0;
    let mut errors = 0u64;
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [all, "requests", "in", ..] => run.ok = all.parse().ok(),
            ["Requests/sec:", rate] => run.requests_per_second = number(rate),
            ["Latency", mean, _, max, ..] if mean != "Distribution" => {
                run.latency_mean_us = micros(mean, LatencyUnit::Seconds);
                run.latency_max_us = micros(max, LatencyUnit::Seconds);
            }
            [percent, time] if percent.ends_with('%') => {
                let name = percent.trim_end_matches('%').trim_end_matches(".000");
                if let Some(time) = micros(time, LatencyUnit::Seconds) {
                    run.latency_us.insert(name.to_owned(), time);
                }
            }
            ["Non-2xx", "or", "3xx", "responses:", count] => others = count.parse().unwrap_or(0),
            ["Socket", "errors:", ref counts @ ..] => {
                let counts = counts.iter().filter_map(|word| word.trim_end_matches(',').parse::<u64>().ok());
                errors = counts.fold(0, u64::saturating_add);
            }
            _ => {}
        }
    }
    run.ok = run.ok.map(|all| all.saturating_sub(others));
    run.failed = run.ok.map(|_| others.saturating_add(errors));
    run
}

fn h2load(text: &str) -> ExternalRun {
    let mut run = nothing();
    let mut header: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = |unit: &str| {
            let at = words.iter().position(|word| word.trim_end_matches(',') == unit)?;
            words.get(at.checked_sub(1)?)?.trim_end_matches(',').parse::<u64>().ok()
        };
        match words[..] {
            ["finished", "in", _, rate, ..] => run.requests_per_second = number(rate),
            ["requests:", ..] => run.failed = before("failed"),
            ["status", "codes:", ..] => {
                run.ok = before("2xx").zip(before("3xx")).map(|(a, b)| a.saturating_add(b));
            }
            ["min", "max", ..] => header.clone_from(&words),
            // By versions of nghttp2 the row has one name or the other, and the columns differ.
            ["time", "for", "request:", ref times @ ..] | ["request", ":", ref times @ ..] => {
                for (column, time) in header.iter().zip(times) {
                    let time = micros(time, LatencyUnit::Seconds);
                    match (*column, time) {
                        ("mean", time) => run.latency_mean_us = time,
                        ("max", time) => run.latency_max_us = time,
                        ("median", Some(time)) => drop(run.latency_us.insert("50".into(), time)),
                        ("p95" | "p99", Some(time)) => drop(run.latency_us.insert(column[1..].into(), time)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if run.ok == Some(0) {
        // It prints zeros where there is nothing to say.
        (run.latency_mean_us, run.latency_max_us) = (None, None);
        run.latency_us.clear();
    }
    run
}

fn by_patterns(output: &OutputSpec, text: &str) -> ExternalRun {
    let count = |found: &str| number(found).filter(|n| *n >= 0.0).map(|n| n.round() as u64);
    let time = |found: &str| micros(found, output.unit);
    ExternalRun {
        ok: output.ok.find(text).and_then(count),
        failed: output.failed.as_ref().and_then(|pattern| pattern.find(text)).and_then(count),
        requests_per_second: output.requests_per_second.find(text).and_then(number),
        latency_mean_us: output.latency_mean.as_ref().and_then(|pattern| pattern.find(text)).and_then(time),
        latency_max_us: output.latency_max.as_ref().and_then(|pattern| pattern.find(text)).and_then(time),
        latency_us: output
            .percentiles
            .iter()
            .filter_map(|(name, pattern)| Some(((*name).to_owned(), time(pattern.find(text)?)?)))
            .collect(),
        ..nothing()
    }
}

/// Responses counted by status, those for which `counted` holds; `None` without such counts.
fn of_status(statuses: &Value, counted: fn(&str) -> bool) -> Option<u64> {
    let counts = statuses.as_object()?.iter().filter(|(status, _)| counted(status));
    Some(counts.filter_map(|(_, count)| count.as_u64()).fold(0, u64::saturating_add))
}

fn good(status: &str) -> bool {
    status.starts_with(['2', '3'])
}

/// `{ "p99.9": 0.003 }` in seconds.
fn percentiles(json: &Value) -> BTreeMap<String, f64> {
    let named = json.as_object().into_iter().flatten();
    named.filter_map(|(name, value)| Some((name.strip_prefix('p')?.to_owned(), seconds(value)?))).collect()
}

fn seconds(json: &Value) -> Option<f64> {
    json.as_f64().map(|seconds| seconds * 1e6)
}

/// A time in µs: a number with a unit of its own, `1.43ms`, or in `unit`.
fn micros(text: &str, unit: LatencyUnit) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let scale = match (&text[end..], unit) {
        ("ns", _) => 1e-3,
        ("us" | "µs" | "μs", _) | ("", LatencyUnit::Micros) => 1.0,
        ("ms", _) | ("", LatencyUnit::Millis) => 1e3,
        ("s", _) | ("", LatencyUnit::Seconds) => 1e6,
        ("m", _) => 60e6,
        ("h", _) => 3600e6,
        _ => return None,
    };
    number(&text[..end]).map(|number| number * scale)
}

/// What parts the digits of large numbers.
const SEPARATORS: [char; 3] = [',', '_', ' '];

/// How `oha` names what was under way when the time was over.
const OHA_UNFINISHED: &str = "aborted due to deadline";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::results::Protocol;

    fn spec(kind: GeneratorKind, output: Option<OutputSpec>) -> GeneratorSpec {
        GeneratorSpec {
            name: "g".into(),
            label: "G".into(),
            kind,
            command: vec![],
            requires: vec![],
            protocols: vec![Protocol::H1],
            version: vec![],
            output,
            dir: "/".into(),
        }
    }

    /// `ok`, `failed`, rate, mean and largest latency, and percentiles.
    type Figures<'a> =
        (Option<u64>, Option<u64>, Option<f64>, Option<f64>, Option<f64>, &'a [(&'a str, f64)]);

    /// What bench 0.1.0, shb and oha 1.16.0 print as JSON.
    #[test]
    fn json_is_read_and_a_success_is_a_good_status() {
        use GeneratorKind::{Builtin, Oha, Shb};
        let cases: &[(GeneratorKind, &str, Figures<'_>)] = &[
            (
                Builtin,
                include_str!("../../../tests/data/generators/builtin-h1.txt"),
                (
                    Some(46_328),
                    Some(0),
                    Some(46_328.0),
                    Some(1374.968),
                    Some(12_422.02),
                    &[("50", 338.943), ("99.9", 12_345.343)],
                ),
            ),
            (
                Builtin,
                "error: nothing was ok: 64 of ECONNREFUSED (connection refused)\n",
                (None, None, None, None, None, &[]),
            ),
            (
                Shb,
                include_str!("../../../tests/data/generators/shb-h1s.txt"),
                (
                    Some(19_263),
                    Some(0),
                    Some(38_237.78),
                    Some(206.724),
                    Some(8315.331),
                    &[("50", 54.647), ("99", 4083.562)],
                ),
            ),
            // It counts every response as ok.
            (
                Shb,
                include_str!("../../../tests/data/generators/shb-404.txt"),
                (Some(0), Some(25_328), Some(50_299.708), Some(19.69), Some(8748.592), &[("50", 9.466)]),
            ),
            (
                Shb,
                include_str!("../../../tests/data/generators/shb-refused.txt"),
                (Some(0), Some(14_690), Some(0.0), None, None, &[]),
            ),
            (
                Oha,
                include_str!("../../../tests/data/generators/oha-h2.txt"),
                (
                    Some(52_939),
                    Some(0),
                    Some(52_859.04),
                    Some(574.326),
                    Some(14_015.399),
                    &[("50", 169.451), ("99.9", 9457.655)],
                ),
            ),
            // It calls every response a success.
            (
                Oha,
                include_str!("../../../tests/data/generators/oha-404.txt"),
                (Some(0), Some(23_612), Some(47_020.359), Some(20.354), Some(6047.147), &[("99", 30.216)]),
            ),
            // Its rate is one of refused connections.
            (
                Oha,
                include_str!("../../../tests/data/generators/oha-refused.txt"),
                (Some(0), Some(77_669), Some(77_543.794), None, None, &[]),
            ),
        ];
        cases.iter().for_each(check);
    }

    /// What h2load 1.52.0 and wrk 4.1.0 print.
    #[test]
    fn text_is_read_and_what_failed_is_no_response() {
        use GeneratorKind::{H2load, Wrk};
        let cases: &[(GeneratorKind, &str, Figures<'_>)] = &[
            (
                H2load,
                include_str!("../../../tests/data/generators/h2load-h1.txt"),
                (Some(77_588), Some(0), Some(77_588.0), Some(102.0), Some(5630.0), &[]),
            ),
            (
                H2load,
                include_str!("../../../tests/data/generators/h2load-h2.txt"),
                (Some(31_871), Some(0), Some(63_742.0), Some(446.0), Some(5800.0), &[]),
            ),
            (
                H2load,
                include_str!("../../../tests/data/generators/h2load-404.txt"),
                (Some(0), Some(44_445), Some(44_445.0), None, None, &[]),
            ),
            // It exits with 0 all the same.
            (
                H2load,
                include_str!("../../../tests/data/generators/h2load-refused.txt"),
                (Some(0), Some(0), Some(0.0), None, None, &[]),
            ),
            (
                Wrk,
                include_str!("../../../tests/data/generators/wrk-h1.txt"),
                (
                    Some(96_567),
                    Some(0),
                    Some(96_524.53),
                    Some(285.36),
                    Some(12_240.0),
                    &[("50", 66.0), ("99", 4290.0)],
                ),
            ),
            (
                Wrk,
                include_str!("../../../tests/data/generators/wrk-404.txt"),
                (Some(0), Some(68_973), Some(68_907.61), Some(297.06), Some(5410.0), &[("90", 1170.0)]),
            ),
            (
                Wrk,
                include_str!("../../../tests/data/generators/wrk-errors.txt"),
                (Some(1861), Some(2792), Some(1859.5), Some(1080.0), Some(8750.0), &[("50", 237.0)]),
            ),
            (
                Wrk,
                include_str!("../../../tests/data/generators/wrk-refused.txt"),
                (None, None, None, None, None, &[]),
            ),
        ];
        cases.iter().for_each(check);
    }

    fn check((kind, text, (ok, failed, rate, mean, max, latencies)): &(GeneratorKind, &str, Figures<'_>)) {
        let run = read(&spec(*kind, None), text);
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 0.001,
            (a, b) => a == b,
        };
        assert_eq!((run.ok, run.failed), (*ok, *failed), "{kind:?}: {text}");
        assert!(near(run.requests_per_second, *rate), "{kind:?}: {run:?}");
        assert!(near(run.latency_mean_us, *mean) && near(run.latency_max_us, *max), "{kind:?}: {run:?}");
        for (name, value) in *latencies {
            assert!(near(run.latency_us.get(*name).copied(), Some(*value)), "{kind:?} p{name}: {run:?}");
        }
        assert_eq!(run.latency_us.is_empty(), latencies.is_empty(), "{kind:?}: {run:?}");
    }

    /// Neither a line of a log that begins like JSON, nor one that is some, hides what stands below it.
    #[test]
    fn json_is_found_among_lines_that_look_like_it() {
        let report = include_str!("../../../tests/data/generators/oha-h2.txt");
        let spec = spec(GeneratorKind::Oha, None);
        let alone = read(&spec, report);
        assert_eq!(alone.ok, Some(52_939));
        for before in [
            "warning: {connections} are few\n",
            "{connections} are few\n",
            "{\"level\": \"info\", \"text\": \"begun\"}\n",
            "{\"level\": \n",
            "progress 10 %\rprogress 100 %\r",
        ] {
            assert_eq!(read(&spec, &format!("{before}{report}{{\"level\": \"info\"}}\n")), alone, "{before}");
        }
    }

    /// The columns are found by their names.
    #[test]
    fn h2load_may_have_more_columns() {
        let text = "status codes: 5 2xx, 1 3xx, 0 4xx, 0 5xx\n\
                    min  max  median  p95  p99  mean  sd  +/- sd\n\
                    request     :  49us  2.93ms  250us  1.00ms  2.00ms  300us  10us  94.05%\n";
        let run = read(&spec(GeneratorKind::H2load, None), text);
        assert_eq!((run.ok, run.latency_mean_us, run.latency_max_us), (Some(6), Some(300.0), Some(2930.0)));
        let expected = [("50", 250.0), ("95", 1000.0), ("99", 2000.0)];
        assert_eq!(run.latency_us, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn numbers_and_times_are_read_as_people_write_them() {
        for (text, value) in [
            ("12", Some(12.0)),
            ("1,234.5", Some(1234.5)),
            ("1e3", Some(1000.0)),
            (" 12,345,678 ", Some(12_345_678.0)),
            ("-1_000.5", Some(-1000.5)),
            ("12 345", Some(12_345.0)),
            ("1,5", None),
            ("1,50", None),
            ("1,2345", None),
            ("1234,567", None),
            (",123", None),
            ("1.5,6", None),
            ("12,345.678,9", None),
            ("-", None),
            ("", None),
            ("inf", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
        for (text, unit, value) in [
            ("1.5", LatencyUnit::Millis, Some(1500.0)),
            ("1.5", LatencyUnit::Seconds, Some(1_500_000.0)),
            ("250", LatencyUnit::Micros, Some(250.0)),
            ("1.5ms", LatencyUnit::Seconds, Some(1500.0)),
            ("2 µs", LatencyUnit::Millis, Some(2.0)),
            ("500ns", LatencyUnit::Millis, Some(0.5)),
            ("1.20m", LatencyUnit::Millis, Some(72_000_000.0)),
            ("3 parsecs", LatencyUnit::Millis, None),
        ] {
            assert_eq!(micros(text, unit), value, "{text}");
        }
    }

    proptest! {
        /// Whatever is printed, no figure is NaN, infinite or made up.
        #[test]
        fn no_output_breaks_a_reader(text in "(\\PC|\n){0,200}|[{}\"a-z0-9:%. \n,]{0,200}") {
            for kind in [
                GeneratorKind::Builtin,
                GeneratorKind::Shb,
                GeneratorKind::H2load,
                GeneratorKind::Wrk,
                GeneratorKind::Oha,
            ] {
                let run = read(&spec(kind, None), &text);
                let figures = [run.requests_per_second, run.latency_mean_us, run.latency_max_us];
                prop_assert!(figures.into_iter().flatten().chain(run.latency_us.into_values()).all(f64::is_finite));
            }
        }
    }
}
