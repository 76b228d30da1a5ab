//! Owns the figures derived from raw rounds: medians, spread, Little's law, starvation. Pure; the
//! judgement of a cell is in `verdict`. `docs/methodology.md` explains each figure to readers.

use std::collections::BTreeMap;

use super::{
    CellRecord, EffectiveConcurrency, ExternalRun, HandshakeFigures, Measurement, RoundRecord, SectionKind,
    ServerSample, Settings, Summary, external, handshake, histogram, verdict,
};

/// Figures and verdict of a cell over its rounds (`docs/methodology.md`). A function of the raw
/// rounds and the settings alone; the summary the cell already holds is not looked at.
///
/// Only rounds with a believable measurement count. When there is none, or when a round contradicts
/// itself, every figure is `None`.
pub fn summarise(cell: &CellRecord, kind: SectionKind, settings: &Settings) -> Summary {
    if kind == SectionKind::Generators {
        return external::summarise(cell, settings);
    }
    let rounds = verdict::usable_rounds(cell);
    let mut figures = Figures::of(&rounds, settings);
    figures.handshake = handshake::figures(kind, &rounds);
    verdict::judge(cell, kind, settings, &rounds, figures)
}

/// A round with its measurement: what figures are taken from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured<'a> {
    pub round: &'a RoundRecord,
    pub measurement: &'a Measurement,
}

/// The numeric part of a [`Summary`].
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Figures {
    pub requests_per_second: Option<f64>,
    pub spread: Option<f64>,
    pub latency_mean_us: Option<f64>,
    pub latency_us: BTreeMap<String, Option<f64>>,
    pub latency_spread: BTreeMap<String, Option<f64>>,
    pub max_is_lower_bound: bool,
    pub latency_max_us: Option<f64>,
    pub in_flight: Option<f64>,
    pub effective_concurrency: Option<EffectiveConcurrency>,
    pub server_cpu_us_per_request: Option<f64>,
    pub server_cpu_spread: Option<f64>,
    pub server_peak_rss_kib: Option<u64>,
    pub server_busy: Option<f64>,
    /// Share of the server CPUs' time used by the server's own processes.
    pub server_own: Option<f64>,
    pub server_busiest_thread: Option<f64>,
    pub generator_busy: Option<f64>,
    pub generator_cpu_us_per_request: Option<f64>,
    pub handshake: Option<HandshakeFigures>,
}

impl Figures {
    fn of(rounds: &[Measured<'_>], settings: &Settings) -> Self {
        let figure = |read: &dyn Fn(&Measurement) -> Option<f64>| {
            rounds.iter().filter_map(|r| read(r.measurement)).collect::<Vec<_>>()
        };
        let server = |read: &dyn Fn(&ServerSample) -> Option<f64>| {
            rounds.iter().filter_map(|r| r.round.server.as_ref().and_then(read)).collect::<Vec<_>>()
        };
        let rates = figure(&|m| m.requests_per_second);
        let cpu = server(&|s| s.cpu_us_per_request);
        let (max, max_is_lower_bound) = largest_latency(rounds);
        let mut figures = Self {
            requests_per_second: median(&rates),
            spread: spread(&rates),
            latency_mean_us: median(&figure(&|m| m.latency_us.as_ref().map(|l| l.mean))),
            max_is_lower_bound,
            latency_max_us: max,
            in_flight: median(&figure(&in_flight)),
            effective_concurrency: effective_concurrency(rounds),
            server_cpu_us_per_request: median(&cpu),
            server_cpu_spread: spread(&cpu),
            server_peak_rss_kib: rounds
                .iter()
                .filter_map(|r| r.round.server.as_ref().map(|s| s.peak_rss_kib))
                .max(),
            server_busy: median(&server(&|s| s.cpus_busy)),
            server_own: median(
                &rounds.iter().filter_map(|r| own_share(r, settings.server_cpus.len())).collect::<Vec<_>>(),
            ),
            server_busiest_thread: median(&server(&|s| s.busiest_thread)),
            generator_busy: median(&figure(&generator_busy)),
            generator_cpu_us_per_request: median(&figure(&|m| {
                Some(m.generator.cpu_user_us_per_request? + m.generator.cpu_system_us_per_request?)
            })),
            ..Self::default()
        };
        for percentile in percentiles(settings) {
            let of_rounds = figure(&|m| {
                // A damaged histogram leaves that round without the percentile; the figures that
                // stand beside it in the file are still good.
                m.latency_us.as_ref().and_then(|l| histogram::percentile(l, percentile).ok())
            });
            let key = percentile_key(percentile);
            let figure = if percentile == 100.0 { max } else { median(&of_rounds) };
            figures.latency_us.insert(key.clone(), figure);
            figures.latency_spread.insert(key, spread(&of_rounds));
        }
        figures
    }
}

/// The figures of one usable round, each as a summary takes its median.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundFigures {
    /// Round, from 1.
    pub round: u32,
    /// Ok responses per second.
    pub requests_per_second: Option<f64>,
    /// Median latency in µs.
    pub p50_us: Option<f64>,
    /// 99th percentile of latency in µs.
    pub p99_us: Option<f64>,
    /// Server CPU per ok response in µs.
    pub server_cpu_us_per_request: Option<f64>,
    /// Ok responses that the rate was counted from.
    pub ok: Option<u64>,
    /// Server CPU that was read, in µs; it comes in ticks of [`TICK_US`].
    pub server_cpu_us: Option<u64>,
}

/// A tick of the clock that process times are counted in, in µs (`CLK_TCK` is 100, see proc_pid_stat(5)).
pub const TICK_US: u64 = 10_000;

/// The figures of the rounds that the summary of a cell is taken from, in order.
pub fn of_rounds(cell: &CellRecord) -> Vec<RoundFigures> {
    let used = |sample: &ServerSample| sample.cpu_user_us.saturating_add(sample.cpu_system_us);
    let figures = |of: &Measured<'_>| {
        let latency = of.measurement.latency_us.as_ref();
        let percentile = |p| latency.and_then(|latency| histogram::percentile(latency, p).ok());
        RoundFigures {
            round: of.round.round,
            requests_per_second: of.measurement.requests_per_second,
            p50_us: percentile(50.0),
            p99_us: percentile(99.0),
            server_cpu_us_per_request: of.round.server.as_ref().and_then(|s| s.cpu_us_per_request),
            ok: Some(of.measurement.requests.ok),
            server_cpu_us: of.round.server.as_ref().map(used),
        }
    };
    let told = |(round, run): &(&RoundRecord, &ExternalRun)| {
        let percentile = |p| run.latency_us.get(&percentile_key(p)).copied();
        RoundFigures {
            round: round.round,
            requests_per_second: external::rate(run),
            p50_us: percentile(50.0),
            p99_us: percentile(99.0),
            server_cpu_us_per_request: round.server.as_ref().and_then(|s| s.cpu_us_per_request),
            ok: run.ok,
            server_cpu_us: round.server.as_ref().map(used),
        }
    };
    let measured = verdict::usable_rounds(cell);
    let external = verdict::external_rounds(cell);
    measured.iter().map(figures).chain(external.iter().map(told)).collect()
}

/// The middle value; of an even number of values, the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        // Halving first keeps the sum finite.
        _ => Some(sorted[middle - 1] / 2.0 + sorted[middle] / 2.0),
    }
}

/// Half the distance of the extremes, relative to the median: 0.05 reads "± 5 %". `None` with fewer
/// than two values, which say nothing about noise, or around a median of zero.
pub fn spread(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = median(values).filter(|m| *m > 0.0)?;
    let (low, high) = values.iter().fold((f64::INFINITY, 0f64), |(low, high), v| (low.min(*v), high.max(*v)));
    Some((high - low) / 2.0 / middle)
}

/// Arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of a sample, which estimates that of further rounds: the squares are divided by one less
/// than there are values. `None` with fewer than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// N_eff, the requests in flight on average: rate × **mean** latency (Little's law, L = λW). The
/// median latency would not do: it ignores the tail that holds the requests up.
///
/// `requests_per_second` in 1/s, `mean_us` in µs. `None` when either is negative or not finite.
pub fn little_law(requests_per_second: f64, mean_us: f64) -> Option<f64> {
    let in_flight = requests_per_second * (mean_us / 1e6);
    (requests_per_second >= 0.0 && mean_us >= 0.0 && in_flight.is_finite()).then_some(in_flight)
}

/// Whether a closed loop that was to keep `offered` = C·M requests in flight kept so few that its
/// latencies describe another load: below 90 % of it, and short by two requests or below 80 %. The
/// second condition keeps a rounding of one request in ten from counting; the third still catches
/// C = 1, which can never be short by two.
pub fn starved(in_flight: f64, offered: f64) -> bool {
    in_flight < 0.9 * offered && (offered - in_flight >= 2.0 || in_flight < 0.8 * offered)
}

/// C·M, the requests a cell was to keep in flight.
pub fn offered(cell: &CellRecord) -> f64 {
    f64::from(cell.connections) * f64::from(cell.concurrency)
}

/// The key of a percentile in [`Summary::latency_us`]: `50`, `99.9`.
pub fn percentile_key(percentile: f64) -> String {
    format!("{percentile}")
}

/// N_eff of one round. Where every request has a connection of its own, its latency begins with the
/// connect, so this counts the connections in use.
pub(super) fn in_flight(measurement: &Measurement) -> Option<f64> {
    little_law(measurement.requests_per_second?, measurement.latency_us.as_ref()?.mean)
}

/// CPU time of the server's processes in one round as a share of its `cpus` CPUs' time.
fn own_share(round: &Measured<'_>, cpus: usize) -> Option<f64> {
    let sample = round.round.server.as_ref()?;
    let available = round.measurement.window.length_s? * 1e6 * cpus as f64;
    (available > 0.0).then(|| sample.cpu_user_us.saturating_add(sample.cpu_system_us) as f64 / available)
}

/// Busiest generator thread of one round, 0 to 1.
pub fn generator_busy(measurement: &Measurement) -> Option<f64> {
    measurement.generator.threads.iter().filter_map(|t| t.busy).reduce(f64::max)
}

/// What the server allowed over all rounds.
fn effective_concurrency(rounds: &[Measured<'_>]) -> Option<EffectiveConcurrency> {
    let rounds = rounds.iter().filter_map(|r| r.measurement.multiplexing);
    rounds
        .map(|m| EffectiveConcurrency { least: m.effective_least, most: m.effective_most })
        .reduce(|a, b| EffectiveConcurrency { least: a.least.min(b.least), most: a.most.max(b.most) })
}

/// The largest latency in µs, and whether an unanswered request was older still: then its age is
/// what is known, and the true maximum lies above it.
fn largest_latency(rounds: &[Measured<'_>]) -> (Option<f64>, bool) {
    let latencies = rounds.iter().filter_map(|r| r.measurement.latency_us.as_ref());
    let Some(max) = latencies.map(|l| l.max).reduce(f64::max) else { return (None, false) };
    let oldest = rounds.iter().filter_map(|r| r.measurement.requests.oldest_unfinished_us).max();
    match oldest.map(|age| age as f64) {
        Some(age) if age > max => (Some(age), true),
        _ => (Some(max), false),
    }
}

/// The percentiles of the settings and the ones every summary has, ascending, each once.
pub(super) fn percentiles(settings: &Settings) -> Vec<f64> {
    let mut all = settings.percentiles.clone();
    all.extend(ALWAYS);
    all.retain(|p| (0.0..=100.0).contains(p));
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

const ALWAYS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
