//! Owns the judgement of a cell: which of its rounds can be used, every verdict that holds with its
//! reason, and what bound the cell. Pure; `docs/methodology.md`, "Verdicts", is its prose.

use std::collections::BTreeMap;

use super::stats::{self, Figures, Measured};
use super::{
    Bound, CellRecord, CellStatus, EffectiveConcurrency, ErrorCount, ExternalRun, Measurement, Negotiated,
    Phase, Protocol, RoundRecord, SectionKind, Settings, Summary, Verdict, external, handshake, plateau,
};
use crate::units::group_thousands;

/// Share of the server CPUs' time that has to be its own processes' for busy CPUs to be its limit.
const SERVER_OWN: f64 = 0.6;
/// A thread or a set of CPUs at or above this share of its time is at its limit.
const SERVER_AT_LIMIT: f64 = 0.9;
/// A generator thread at or above this share of its time is at its limit.
const GENERATOR_AT_LIMIT: f64 = 0.95;
/// Share of requests that may fail before the figures of the others are doubted.
const TAINTED_ABOVE: f64 = 0.001;
/// Requests for each that is offered, below which the end of a counted window weighs too much.
const TAIL_SHARE: f64 = 20.0;
/// A window this much shorter or longer than asked for was not the window.
const WINDOW_TOLERANCE: std::ops::RangeInclusive<f64> = 0.99..=1.05;
/// N_eff this far above what was offered is an error of counting.
const IN_FLIGHT_TOLERANCE: f64 = 0.02;

/// The rounds figures may be taken from: measured to the end, over the right protocol, with at least
/// one ok response. None at all when any round contradicts itself or was answered over another
/// protocol, because then the others are not to be believed either.
pub(super) fn usable_rounds(cell: &CellRecord) -> Vec<Measured<'_>> {
    let mut usable = Vec::new();
    for round in &cell.rounds {
        match outcome(round, cell) {
            Outcome::Usable(measurement) => usable.push(Measured { round, measurement }),
            Outcome::Lost { spoils_cell: true, .. } => return Vec::new(),
            Outcome::Lost { .. } | Outcome::External(_) => {}
        }
    }
    usable
}

/// The rounds figures of a generator may be taken from that ran as a command.
pub(super) fn external_rounds(cell: &CellRecord) -> Vec<(&RoundRecord, &ExternalRun)> {
    let usable = |round| match outcome(round, cell) {
        Outcome::External(run) => Some((round, run)),
        Outcome::Usable(_) | Outcome::Lost { .. } => None,
    };
    cell.rounds.iter().filter_map(usable).collect()
}

/// The rounds that figures of a cell are taken from, whoever drove it, in order.
pub fn used_rounds(cell: &CellRecord) -> Vec<&RoundRecord> {
    if cell.generator.is_some() {
        return external_rounds(cell).into_iter().map(|(round, _)| round).collect();
    }
    usable_rounds(cell).into_iter().map(|of| of.round).collect()
}

/// The other rounds: what each came to, and why.
pub fn lost_rounds(cell: &CellRecord) -> Vec<(&RoundRecord, Verdict, String)> {
    let outcomes = || cell.rounds.iter().map(|round| (round, outcome(round, cell)));
    let spoiled = outcomes().find_map(|(round, outcome)| match outcome {
        Outcome::Lost { verdict, spoils_cell: true, .. } => Some((round.round, verdict)),
        _ => None,
    });
    let lost = |(round, outcome)| match (outcome, spoiled) {
        (Outcome::Lost { verdict, reason, .. }, _) => Some((round, verdict, reason)),
        (Outcome::Usable(_), Some((by, verdict))) => {
            Some((round, verdict, format!("no round of the cell is believed after round {by}")))
        }
        (Outcome::Usable(_) | Outcome::External(_), _) => None,
    };
    outcomes().filter_map(lost).collect()
}

/// Completes a summary: `figures` were taken from `rounds`, the result of [`usable_rounds`].
pub(super) fn judge(
    cell: &CellRecord,
    kind: SectionKind,
    settings: &Settings,
    rounds: &[Measured<'_>],
    figures: Figures,
) -> Summary {
    let bound = bound(&figures);
    let bound_reason = plateau::reason(cell, bound, &figures, rounds);
    let mut findings = Vec::new();
    if !rounds.is_empty() {
        let measurements: Vec<&Measurement> = rounds.iter().map(|round| round.measurement).collect();
        findings.extend(tainted(&measurements).map(|reason| (Verdict::Tainted, reason)));
        findings.extend(generator_bound(&figures, bound));
        findings.extend(starved(cell, kind, &figures));
        findings.extend(unstable(&figures, rounds.len(), settings));
    }
    let summary = conclude(cell, settings, rounds.len(), findings, figures);
    Summary { bound, bound_reason, ..summary }
}

/// A summary of `figures`, taken from so many rounds, and of what was found against them, weightiest
/// first. Without a round the cell's own outcome is what there is to say.
pub(super) fn conclude(
    cell: &CellRecord,
    settings: &Settings,
    rounds: usize,
    mut findings: Vec<(Verdict, String)>,
    figures: Figures,
) -> Summary {
    if rounds == 0 {
        findings = vec![unusable(cell)];
    }
    if findings.is_empty() {
        findings.push((Verdict::Valid, String::new()));
    }
    let verdicts: Vec<Verdict> = findings.iter().map(|(verdict, _)| *verdict).collect();
    let mut reasons: Vec<String> =
        findings.into_iter().map(|(_, reason)| reason).filter(|r| !r.is_empty()).collect();
    if rounds > 0 {
        reasons.extend(missing_rounds(cell, rounds, settings.rounds));
    }
    Summary {
        verdict: verdicts[0],
        verdicts,
        reasons,
        bound: None,
        bound_reason: None,
        rounds_measured: u32::try_from(rounds).unwrap_or(u32::MAX),
        requests_per_second: figures.requests_per_second,
        spread: figures.spread,
        latency_mean_us: figures.latency_mean_us,
        latency_us: figures.latency_us,
        latency_spread: figures.latency_spread,
        max_is_lower_bound: figures.max_is_lower_bound,
        latency_max_us: figures.latency_max_us,
        in_flight: figures.in_flight,
        effective_concurrency: figures.effective_concurrency,
        server_cpu_us_per_request: figures.server_cpu_us_per_request,
        server_cpu_spread: figures.server_cpu_spread,
        server_peak_rss_kib: figures.server_peak_rss_kib,
        server_busy: figures.server_busy,
        server_busiest_thread: figures.server_busiest_thread,
        generator_busy: figures.generator_busy,
        generator_cpu_us_per_request: figures.generator_cpu_us_per_request,
        handshake: figures.handshake,
    }
}

/// What a round came to.
enum Outcome<'a> {
    /// Figures can be taken from it.
    Usable(&'a Measurement),
    /// Figures can be taken from it that a command gave.
    External(&'a ExternalRun),
    /// They cannot.
    Lost { verdict: Verdict, reason: String, spoils_cell: bool },
}

fn outcome<'a>(round: &'a RoundRecord, cell: &CellRecord) -> Outcome<'a> {
    let lost = |verdict, reason: String| Outcome::Lost { verdict, reason, spoils_cell: false };
    let stated = |default: &str| round.reason.clone().unwrap_or_else(|| default.to_owned());
    let wrong = |reason| Outcome::Lost { verdict: Verdict::WrongProtocol, reason, spoils_cell: true };
    let met = round.measurement.as_ref().and_then(|m| other_protocol(&m.errors));
    if let (CellStatus::Measured | CellStatus::Failed, Some(met)) = (round.status, met) {
        return wrong(not_spoken(cell.protocol, met));
    }
    match (round.status, &round.measurement) {
        (CellStatus::WrongProtocol, _) => wrong(stated("the server speaks another protocol")),
        (CellStatus::Absent, _) => lost(Verdict::Absent, stated("the server cannot be run here")),
        (CellStatus::Failed, _) => lost(Verdict::Failed, stated("the round failed")),
        (CellStatus::Interrupted, _) => lost(Verdict::Interrupted, stated("cut short")),
        (CellStatus::Pending, _) => lost(Verdict::Interrupted, stated(NOT_REACHED)),
        (CellStatus::Measured, None) => match &round.external {
            Some(run) => match external::contradiction(run) {
                Some(reason) => lost(Verdict::Failed, reason),
                None => Outcome::External(run),
            },
            None => lost(Verdict::Failed, stated("no measurement was kept")),
        },
        (CellStatus::Measured, Some(m)) if m.interrupted => {
            lost(Verdict::Interrupted, stated("cut short by a signal"))
        }
        (CellStatus::Measured, Some(m)) => {
            let other = m.negotiated.as_ref().and_then(|n| wrong_protocol(cell.protocol, n));
            if let Some(reason) = other {
                wrong(reason)
            } else if m.requests.ok == 0 {
                lost(Verdict::Failed, format!("no ok response{}", errors_in_words(&m.errors)))
            } else if let Some(reason) = contradiction(m, cell) {
                Outcome::Lost { verdict: Verdict::Failed, reason, spoils_cell: true }
            } else if let Some(reason) = handshake::not_resumed(m, cell) {
                // What the server lacks, as if it did not speak the protocol.
                lost(Verdict::Absent, reason)
            } else {
                Outcome::Usable(m)
            }
        }
    }
}

/// How what was negotiated differs from what was asked for. An HTTP/1.0 answer over the right
/// transport is the protocol asked for, spoken by an old server.
fn wrong_protocol(asked: Protocol, negotiated: &Negotiated) -> Option<String> {
    let http1 = ["HTTP/1.1", "HTTP/1.0"].contains(&negotiated.http.as_str());
    let alpn = negotiated.alpn.as_deref();
    let version = if asked.is_http1() { http1 } else { negotiated.http == asked.version() };
    // Many servers of HTTP/1.1 over TLS agree on nothing by ALPN, which then is what they speak.
    let agreed = alpn == asked.alpn() || (asked == Protocol::H1s && alpn.is_none());
    let right = version && agreed && negotiated.tls.is_some() == asked.is_tls();
    (!right).then(|| {
        format!(
            "asked for {}, got {} {}, ALPN {}",
            in_full(asked),
            negotiated.http,
            negotiated.tls.as_deref().unwrap_or("in cleartext"),
            alpn.unwrap_or("none"),
        )
    })
}

/// `no HTTP/2 over TLS`, and what was met in its place.
pub fn not_spoken(asked: Protocol, met: &str) -> String {
    format!("no {}: {met}", in_full(asked))
}

fn in_full(protocol: Protocol) -> String {
    let transport = match protocol {
        _ if protocol.is_quic() => "over QUIC",
        _ if protocol.is_tls() => "over TLS",
        _ => "in cleartext",
    };
    format!("{} {transport}", protocol.version())
}

/// What the server said when it turned out to speak another protocol, among the errors of a
/// generator: another choice by ALPN, no protocol in common (RFC 7301 §3.2), no version of QUIC in common
/// (RFC 9000 §6), or an answer that is of another version of HTTP. `None` when no error says so.
pub fn other_protocol(errors: &[ErrorCount]) -> Option<&str> {
    let error = errors.iter().find(|error| OTHER_PROTOCOL.contains(&error.kind.as_str()))?;
    Some(error.example.as_deref().unwrap_or(&error.kind))
}

/// Figures that cannot be true. Each is a fault of the tool or of its clock, not of the server.
fn contradiction(m: &Measurement, cell: &CellRecord) -> Option<String> {
    let r = &m.requests;
    let accounted = r.ok.checked_add(r.failed).and_then(|n| n.checked_add(r.unfinished));
    if accounted != Some(r.started) {
        return Some(format!(
            "requests do not add up: {} started, but {} ok + {} failed + {} unfinished",
            r.started, r.ok, r.failed, r.unfinished
        ));
    }
    let Some(length) = m.window.length_s.filter(|l| l.is_finite() && *l > 0.0) else {
        return Some("the window has no length, but requests were counted in it".into());
    };
    if let Some(asked) = m.window.asked_s
        && !WINDOW_TOLERANCE.contains(&(length / asked))
    {
        return Some(format!("a window of {asked} s lasted {length:.3} s; the machine or its clock stalled"));
    }
    let latency = m.latency_us.as_ref();
    let mut figures = vec![m.requests_per_second];
    if let Some(l) = latency {
        figures.extend([l.min, l.mean, l.stdev, l.p50, l.p90, l.p99, l.p99_9, l.max].map(Some));
    }
    if figures.iter().flatten().any(|f| !f.is_finite() || *f < 0.0) {
        return Some("a rate or latency is negative or not a number".into());
    }
    if let Some(reason) = handshake::contradiction(m, cell) {
        return Some(reason);
    }
    // A request that was in flight when the window opened counts with its whole latency, so each
    // slot can account for the window and one latency more. Beyond that, time was counted twice.
    let overhang = latency.map_or(0.0, |l| l.max / 1e6 / length);
    let limit = stats::offered(cell) * (1.0 + IN_FLIGHT_TOLERANCE + overhang);
    stats::in_flight(m).filter(|in_flight| *in_flight > limit).map(|in_flight| {
        format!(
            "{in_flight:.1} requests in flight where {} were offered; requests or time were counted twice",
            stats::offered(cell)
        )
    })
}

/// The verdict of a cell without a usable round: the weightiest of its rounds' outcomes, and their
/// reasons, equal ones once.
fn unusable(cell: &CellRecord) -> (Verdict, String) {
    let lost: Vec<_> = cell
        .rounds
        .iter()
        .filter_map(|round| match outcome(round, cell) {
            Outcome::Lost { verdict, reason, spoils_cell } => {
                Some((spoils_cell, verdict, reason, round.round))
            }
            Outcome::Usable(_) | Outcome::External(_) => None,
        })
        .collect();
    // A round that spoils the cell is the reason, whatever became of the others.
    let spoiled = lost.iter().any(|(spoils, ..)| *spoils);
    let causes: Vec<_> = lost.iter().filter(|(spoils, ..)| *spoils == spoiled).collect();
    let Some(verdict) = causes.iter().map(|(_, verdict, ..)| *verdict).min_by_key(|v| weight(*v)) else {
        return (Verdict::Interrupted, NOT_REACHED.into());
    };
    let reasons =
        causes.iter().filter(|(_, v, ..)| *v == verdict).map(|(.., reason, n)| (reason.as_str(), *n));
    (verdict, by_reason(reasons, cell.rounds.len()))
}

/// Joins reasons, naming the rounds of each unless one holds for all of `rounds`.
fn by_reason<'a>(reasons: impl Iterator<Item = (&'a str, u32)>, rounds: usize) -> String {
    let mut grouped: Vec<(&str, Vec<String>)> = Vec::new();
    for (reason, round) in reasons {
        match grouped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, rounds)) => rounds.push(round.to_string()),
            None => grouped.push((reason, vec![round.to_string()])),
        }
    }
    let phrases: Vec<String> = grouped
        .into_iter()
        .map(|(reason, in_rounds)| match in_rounds.len() {
            n if n == rounds => reason.to_owned(),
            1 => format!("round {}: {reason}", in_rounds[0]),
            _ => format!("rounds {}: {reason}", in_rounds.join(", ")),
        })
        .collect();
    phrases.join("; ")
}

/// How the server kept M down, in words; `None` when it allowed as many requests on a connection as the
/// cell asks for.
pub fn stream_limit(allowed: EffectiveConcurrency, asked: u32) -> Option<String> {
    let EffectiveConcurrency { least, most } = allowed;
    let streams = |n: u32| if n == 1 { "stream" } else { "streams" };
    let allowed = if least == most {
        format!("{least} concurrent {}", streams(least))
    } else {
        format!("{least} to {most} concurrent streams")
    };
    (least < asked).then(|| format!("the server allows {allowed} on a connection (M = {asked} asked)"))
}

/// What is to be said of a cell some of whose rounds are missing from its figures.
fn missing_rounds(cell: &CellRecord, usable: usize, asked: u32) -> Option<String> {
    let asked = asked as usize;
    if usable >= asked {
        return None;
    }
    let lost: Vec<_> = cell
        .rounds
        .iter()
        .filter_map(|round| match outcome(round, cell) {
            Outcome::Lost { reason, .. } => Some((reason, round.round)),
            Outcome::Usable(_) | Outcome::External(_) => None,
        })
        .collect();
    let why = by_reason(lost.iter().map(|(reason, round)| (reason.as_str(), *round)), usize::MAX);
    let why = if why.is_empty() { "the others were not reached".to_owned() } else { why };
    Some(format!("{usable} of {asked} rounds; {why}"))
}

/// Why the figures of these measurements are doubted: more failed in them than may.
pub fn tainted(measurements: &[&Measurement]) -> Option<String> {
    let sum = |count: fn(&Measurement) -> u64| {
        measurements.iter().fold(0u64, |total, m| total.saturating_add(count(m)))
    };
    // Errors that ended no request count as well: a server that breaks the framing after each answer
    // is not to be believed. Failed connections of all stages are in no window's errors.
    let failed = sum(|m| {
        let errors = m.errors.iter().fold(0u64, |total, error| total.saturating_add(error.count));
        errors.max(m.requests.failed.saturating_add(m.connection.failed))
    });
    let reason = too_many_failed(failed, sum(|m| m.requests.ok))?;
    let mut by_kind: BTreeMap<(Phase, &str), u64> = BTreeMap::new();
    for error in measurements.iter().flat_map(|m| &m.errors) {
        let count = by_kind.entry((error.phase, &error.kind)).or_default();
        *count = count.saturating_add(error.count);
    }
    let mut errors: Vec<ErrorCount> = by_kind
        .into_iter()
        .map(|((phase, kind), count)| ErrorCount {
            phase,
            kind: kind.into(),
            count,
            requests: count,
            example: None,
        })
        .collect();
    errors.sort_by_key(|e| std::cmp::Reverse(e.count));
    Some(format!("{reason}{}", errors_in_words(&errors)))
}

/// `12 of 1 000 requests failed (1.20 %)`, when that is more than may be.
pub(super) fn too_many_failed(failed: u64, ok: u64) -> Option<String> {
    let all = ok.saturating_add(failed);
    let share = failed as f64 / all as f64;
    (all > 0 && share > TAINTED_ABOVE).then(|| {
        let (failed, all) = (group_thousands(failed), group_thousands(all));
        format!("{failed} of {all} requests failed ({:.2} %)", share * 100.0)
    })
}

/// `: 12 × unexpected status, 3 × read ECONNRESET`, the most frequent three.
fn errors_in_words(errors: &[ErrorCount]) -> String {
    if errors.is_empty() {
        return String::new();
    }
    let words: Vec<String> = errors
        .iter()
        .take(3)
        .map(|e| format!("{} × {} {}", group_thousands(e.count), phase_name(e.phase), e.kind))
        .collect();
    let rest = if errors.len() > 3 { ", …" } else { "" };
    format!(": {}{rest}", words.join(", "))
}

/// The name of a phase as it stands in the JSON.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "connect",
        Phase::Tls => "tls",
        Phase::Quic => "quic",
        Phase::Write => "write",
        Phase::Read => "read",
        Phase::Framing => "framing",
        Phase::Timeout => "timeout",
        Phase::Unexpected => "unexpected",
        Phase::Interrupted => "interrupted",
        Phase::Refused => "refused",
    }
}

/// A server is at its limit when the CPUs it was given are, or when its busiest thread is: a
/// single-threaded server on two CPUs leaves one of them idle however hard it is driven.
pub(super) fn bound(figures: &Figures) -> Option<Bound> {
    let server = [figures.server_busy, figures.server_busiest_thread].into_iter().flatten().reduce(f64::max);
    if server.is_none() && figures.generator_busy.is_none() {
        return None;
    }
    let at_limit = |share: Option<f64>| share.is_some_and(|busy| busy >= SERVER_AT_LIMIT);
    // CPUs that were busy with somebody else's work are no limit of the server's.
    let own = figures.server_own.is_none_or(|own| own >= SERVER_OWN);
    Some(if at_limit(figures.server_busiest_thread) || (at_limit(figures.server_busy) && own) {
        Bound::Server
    } else if figures.generator_busy.is_some_and(|busy| busy >= GENERATOR_AT_LIMIT) {
        Bound::Generator
    } else {
        Bound::Neither
    })
}

fn generator_bound(figures: &Figures, bound: Option<Bound>) -> Option<(Verdict, String)> {
    if bound != Some(Bound::Generator) {
        return None;
    }
    let percent = |share: Option<f64>| share.map_or("n/a".into(), |s| format!("{:.0} %", s * 100.0));
    let reason = format!(
        "a generator thread {} busy, the server's CPUs {}, its busiest thread {}",
        percent(figures.generator_busy),
        percent(figures.server_busy),
        percent(figures.server_busiest_thread)
    );
    Some((Verdict::GeneratorBound, reason))
}

pub(super) fn starved(cell: &CellRecord, kind: SectionKind, figures: &Figures) -> Option<(Verdict, String)> {
    if kind == SectionKind::Handshake {
        // One connection after the other is to be timed; there is no load to keep up.
        return None;
    }
    let offered = stats::offered(cell);
    // A counted window ends with fewer and fewer requests in flight, which shows when it is short.
    let short = |m: &Measurement| m.window.asked_requests.is_some_and(|n| (n as f64) < TAIL_SHARE * offered);
    if cell.rounds.iter().filter_map(|round| round.measurement.as_ref()).any(short) {
        return None;
    }
    let in_flight = figures.in_flight.filter(|n| stats::starved(*n, offered))?;
    let what = match kind {
        SectionKind::ClosedLoop | SectionKind::Ratio | SectionKind::Handshake | SectionKind::Generators => {
            "in flight"
        }
        SectionKind::Setup => "connections in use",
    };
    let limit = figures.effective_concurrency.and_then(|allowed| stream_limit(allowed, cell.concurrency));
    let why = limit.map(|limit| format!("; {limit}")).unwrap_or_default();
    Some((Verdict::Starved, format!("{} of {offered} {what}{why}", approximate(in_flight))))
}

/// An in-flight figure as footnotes print it: `~72.6`, and `~0.06` below one.
pub fn approximate(in_flight: f64) -> String {
    if in_flight < 1.0 { format!("~{in_flight:.2}") } else { format!("~{in_flight:.1}") }
}

pub(super) fn unstable(figures: &Figures, rounds: usize, settings: &Settings) -> Option<(Verdict, String)> {
    let spread = figures.spread.filter(|s| rounds >= 2 && *s > settings.unstable_above)?;
    let reason = format!(
        "±{:.1} % req/s over {rounds} rounds, more than the ±{} % allowed",
        spread * 100.0,
        // Printed from a whole number of tenths: 0.07 × 100 is not 7 in binary.
        (settings.unstable_above * 1000.0).round() / 10.0
    );
    Some((Verdict::Unstable, reason))
}

/// Rank of a verdict, weightiest first.
fn weight(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::WrongProtocol => 0,
        Verdict::Interrupted => 1,
        Verdict::Failed => 2,
        Verdict::Absent => 3,
        Verdict::Tainted => 4,
        Verdict::GeneratorBound => 5,
        Verdict::Starved => 6,
        Verdict::Unstable => 7,
        Verdict::Valid => 8,
    }
}

/// Kinds of errors by which a generator says that the server speaks another protocol.
const OTHER_PROTOCOL: [&str; 3] =
    ["wrong-protocol", "alert-received-no-application-protocol", "version-negotiation"];

const NOT_REACHED: &str = "not reached before the run ended";
