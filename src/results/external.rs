//! Owns the figures and the judgement of cells that a load generator drove as a command: read from
//! outside and from its own output. Pure; `docs/methodology.md`, "Comparing generators", is its prose.

use super::stats::{self, Figures, median, percentile_key, percentiles, spread};
use super::verdict;
use super::{CellRecord, ExternalRun, RoundRecord, SectionKind, ServerSample, Settings, Summary, Verdict};
use crate::units::group_thousands;

/// A generator's rate and its count may differ by this share. Beyond it, one of the two counts something
/// else.
const DISAGREEMENT: f64 = 0.05;

/// Figures and verdict of such a cell over its rounds.
pub(super) fn summarise(cell: &CellRecord, settings: &Settings) -> Summary {
    let rounds = verdict::external_rounds(cell);
    let figures = figures(cell, &rounds, settings);
    // That a generator is at its limit is no flaw here: its limit is what is asked for.
    let bound = verdict::bound(&figures);
    let mut findings = Vec::new();
    findings.extend(tainted(&rounds));
    findings.extend(verdict::starved(cell, SectionKind::Generators, &figures));
    findings.extend(verdict::unstable(&figures, rounds.len(), settings));
    let summary = verdict::conclude(cell, settings, rounds.len(), findings, figures);
    Summary { bound, ..summary }
}

/// CPU time of the generator's process for each ok response of one run in µs, user and system, from its
/// start to its end.
pub fn cpu_us_per_request(run: &ExternalRun) -> Option<f64> {
    let ok = run.ok.filter(|ok| *ok > 0)?;
    Some(run.cpu_user_us.saturating_add(run.cpu_system_us) as f64 / ok as f64)
}

/// Spread over rounds of the generator's CPU time for each response; `None` in cells that no command drove.
pub fn cpu_spread(cell: &CellRecord) -> Option<f64> {
    let runs = verdict::external_rounds(cell).into_iter();
    spread(&runs.filter_map(|(_, run)| cpu_us_per_request(run)).collect::<Vec<_>>())
}

/// Ok responses per second, by the rate that a generator states: requests that failed are in the rates of some
/// (`wrk`, `h2load`, `oha`, `shb`), and are taken out of them. `None` when it states none, or one that its counts do not
/// make in any time between the one asked for and its whole life.
pub fn rate(run: &ExternalRun) -> Option<f64> {
    let (ok, stated) = (run.ok? as f64, run.requests_per_second?);
    let (least, most) = (stated * run.asked_s, stated * run.wall_s.max(run.asked_s));
    let agrees = |n: &f64| least <= n * (1.0 + DISAGREEMENT) && most >= n * (1.0 - DISAGREEMENT);
    let all = ok + run.failed.unwrap_or(0) as f64;
    // Where both could be meant, it is the one that takes nearer to the time asked for: the first of equals.
    let off = |n: &f64| (n - least).abs();
    let meant = [ok, all].into_iter().filter(agrees).min_by(|a, b| off(a).total_cmp(&off(b)))?;
    (meant > 0.0).then(|| stated * (ok / meant))
}

/// What cannot be true of a run's own figures, or is missing of what every figure needs.
pub(super) fn contradiction(run: &ExternalRun) -> Option<String> {
    let Some(ok) = run.ok else { return Some("its output has no count of ok responses".into()) };
    if ok == 0 {
        let failed = run.failed.filter(|failed| *failed > 0);
        let failed = failed.map_or_else(String::new, |n| format!(": {} requests failed", group_thousands(n)));
        return Some(format!("no ok response{failed}"));
    }
    let Some(stated) = run.requests_per_second else { return Some("its output has no rate".into()) };
    let own = [run.latency_mean_us, run.latency_max_us].into_iter().flatten();
    let own = own.chain([stated]).chain(run.latency_us.values().copied());
    if own.into_iter().any(|figure| !figure.is_finite() || figure < 0.0) {
        return Some("a rate or latency is negative or not a number".into());
    }
    rate(run).is_none().then(|| {
        format!(
            "it counts {} ok responses, and its rate of {} makes {} in {} s: one of the two counts something else",
            group_thousands(ok),
            group_thousands(stated as u64),
            group_thousands((stated * run.asked_s) as u64),
            run.asked_s
        )
    })
}

fn figures(cell: &CellRecord, rounds: &[(&RoundRecord, &ExternalRun)], settings: &Settings) -> Figures {
    let figure = |read: &dyn Fn(&ExternalRun) -> Option<f64>| {
        rounds.iter().filter_map(|(_, run)| read(run)).collect::<Vec<_>>()
    };
    let samples = || rounds.iter().filter_map(|(round, _)| round.server.as_ref());
    let server = |read: &dyn Fn(&ServerSample) -> Option<f64>| samples().filter_map(read).collect::<Vec<_>>();
    // What was used of the CPUs' time in one round; a generator has as many as it has threads.
    let share = |used_us: u64, run: &ExternalRun, cpus: f64| {
        let available = run.wall_s * 1e6 * cpus;
        (available > 0.0).then_some(used_us as f64 / available)
    };
    let threads = f64::from(settings.generator_threads.clamp(1, cell.connections.max(1)));
    let own = rounds.iter().filter_map(|(round, run)| {
        let sample = round.server.as_ref()?;
        let used = sample.cpu_user_us.saturating_add(sample.cpu_system_us);
        share(used, run, settings.server_cpus.len() as f64)
    });
    let rates = figure(&rate);
    let cpu = server(&|sample| sample.cpu_us_per_request);
    let mut figures = Figures {
        requests_per_second: median(&rates),
        spread: spread(&rates),
        latency_mean_us: median(&figure(&|run| run.latency_mean_us)),
        latency_max_us: figure(&|run| run.latency_max_us).into_iter().reduce(f64::max),
        in_flight: median(&figure(&|run| stats::little_law(rate(run)?, run.latency_mean_us?))),
        server_cpu_us_per_request: median(&cpu),
        server_cpu_spread: spread(&cpu),
        server_peak_rss_kib: samples().map(|sample| sample.peak_rss_kib).max(),
        server_busy: median(&server(&|sample| sample.cpus_busy)),
        server_own: median(&own.collect::<Vec<_>>()),
        server_busiest_thread: median(&server(&|sample| sample.busiest_thread)),
        generator_busy: median(&figure(&|run| {
            share(run.cpu_user_us.saturating_add(run.cpu_system_us), run, threads).map(|busy| busy.min(1.0))
        })),
        generator_cpu_us_per_request: median(&figure(&cpu_us_per_request)),
        ..Figures::default()
    };
    for percentile in percentiles(settings) {
        let key = percentile_key(percentile);
        let of_rounds = figure(&|run| run.latency_us.get(&key).copied());
        let value = if percentile == 100.0 { figures.latency_max_us } else { median(&of_rounds) };
        figures.latency_us.insert(key.clone(), value);
        figures.latency_spread.insert(key, spread(&of_rounds));
    }
    figures
}

fn tainted(rounds: &[(&RoundRecord, &ExternalRun)]) -> Option<(Verdict, String)> {
    let sum = |count: fn(&ExternalRun) -> Option<u64>| {
        rounds.iter().filter_map(|(_, run)| count(run)).fold(0u64, u64::saturating_add)
    };
    let failed = sum(|run| run.failed);
    Some((Verdict::Tainted, verdict::too_many_failed(failed, sum(|run| run.ok))?))
}
