//! Owns the conversion of what workers recorded into the [`Measurement`] that is kept: done once, at
//! the end, where the identities of counting are checked.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::plan::{Limit, LoadPlan};
use super::quic::QuicTotals;
use super::record::{Counts, Latencies, Record, Sample, Stage};
use super::worker::{Outcome, Usage};
use super::{LoadError, Prepared, tls};
use crate::results::{
    Connections, Generator, GeneratorThread, Latency, Measurement, Phase, QuicHealth, Requests,
    ResponseSample, Resumption, Transfer, WaitMode, Warning, Window, histogram, stats,
};
use crate::time::{Instant, Span};

/// Merges the workers' outcomes.
///
/// # Errors
/// When the counts contradict each other, which is a fault of this program and not to be published.
pub(super) fn measurement(
    plan: &LoadPlan,
    prepared: &Prepared,
    threads: u32,
    interrupted: bool,
    outcomes: Vec<Outcome>,
) -> Result<Measurement, LoadError> {
    let mut record = Record::new();
    for outcome in &outcomes {
        record.merge(&outcome.record);
    }
    let edges =
        outcomes.iter().filter_map(|outcome| outcome.window).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let counts = &record.stages[Stage::Window as usize];
    let length = edges.map(|(opened, closed)| closed.since(opened)).filter(|length| !length.is_zero());
    let per_second = length.map(|length| counts.requests.ok as f64 / length.as_secs_f64());
    let latency = latency(record.latencies());
    let in_flight =
        per_second.zip(latency.as_ref()).and_then(|(rate, latency)| stats::little_law(rate, latency.mean));
    let lifetime = lifetime(&record);
    check_identities(&record, lifetime)?;
    let mut measurement = Measurement {
        url: plan.target.url.clone(),
        protocol: plan.protocol,
        negotiated: record.negotiated.clone(),
        addresses: vec![prepared.address.to_string()],
        threads,
        connections: plan.connections,
        concurrency: plan.concurrency,
        keepalive: plan.keepalive,
        requests_per_connection: plan.requests_per_connection,
        resumption: plan.resumption,
        window: window(plan, &record, edges, length),
        interrupted,
        requests: counts.requests,
        requests_per_second: per_second,
        transfer: Transfer {
            received_bytes: counts.received,
            sent_bytes: counts.sent,
            body_bytes: counts.body,
        },
        latency_us: latency,
        first_byte_us: histogram::latency(&record.first_bytes()),
        in_flight,
        statuses: statuses(counts),
        interim_responses: counts.interim,
        errors: errors(&record, edges.is_some()),
        connection: connections(plan, &outcomes, &record),
        seconds: record.seconds(),
        generator: generator(plan, prepared, &outcomes, &record, length),
        lifetime,
        multiplexing: record.multiplexing(),
        stalls: record.stalls.clone(),
        quic: quic(plan, &outcomes),
        warnings: Vec::new(),
        sample: record.sample.as_deref().and_then(sample),
    };
    measurement.warnings = warnings(plan, &measurement);
    measurement.warnings.extend(unfulfilled(plan, &measurement));
    measurement.warnings.extend(late_edge(&outcomes, length));
    measurement.warnings.extend(early_answers(plan, &measurement));
    Ok(measurement)
}

/// The response that was sampled, if one was completed.
fn sample(sample: &Sample) -> Option<ResponseSample> {
    let (status, fields) = sample.head.clone()?;
    let body = BASE64_STANDARD.encode(&sample.body);
    Some(ResponseSample { status, fields, body, truncated: sample.truncated })
}

/// What QUIC did in the window, of all workers.
fn quic(plan: &LoadPlan, outcomes: &[Outcome]) -> Option<QuicHealth> {
    let mut totals = outcomes.iter().filter_map(|outcome| outcome.quic.as_ref());
    let mut sum = totals.next()?.clone();
    totals.for_each(|other| sum.merge(other));
    let QuicTotals { health, socket, max_ack_delay, mut round_trips, .. } = sum;
    round_trips.sort_unstable();
    Some(QuicHealth {
        socket: plan.quic.socket,
        pacing: plan.quic.pacing,
        datagrams_sent: health.datagrams_sent,
        send_calls: sum.traffic.send_calls,
        datagrams_received: health.datagrams_received,
        receive_calls: sum.traffic.receive_calls,
        bytes_sent: sum.traffic.bytes_sent,
        bytes_received: sum.traffic.bytes_received,
        packets_lost: health.packets_lost,
        spurious_losses: health.spurious_losses,
        probe_timeouts: health.probe_timeouts,
        retries: health.retries,
        stray_packets: health.stray_packets,
        duplicate_packets: health.duplicate_packets,
        key_updates: health.key_updates,
        receive_drops: sum.traffic.receive_drops,
        send_drops: sum.traffic.send_drops,
        smoothed_rtt_us: round_trips.get(round_trips.len() / 2).map(|span| span.as_micros_f64()),
        max_ack_delay_us: max_ack_delay.map(|span| span.as_nanos() / 1000),
        max_payload: sum.max_payload,
        receive_buffer_bytes: socket.map(|socket| socket.receive_buffer.into()),
        send_buffer_bytes: socket.map(|socket| socket.send_buffer.into()),
    })
}

fn window(
    plan: &LoadPlan,
    record: &Record,
    edges: Option<(Instant, Instant)>,
    length: Option<Span>,
) -> Window {
    let warmup = Span::from_nanos(plan.warmup_ns);
    let warm = &record.stages[Stage::Warmup as usize].requests;
    Window {
        opened_at_ns: edges.map(|(opened, _)| opened.as_nanos()),
        closed_at_ns: edges.map(|(_, closed)| closed.as_nanos()),
        length_s: length.map(Span::as_secs_f64),
        asked_s: match plan.limit {
            Limit::DurationNs(length) => Some(Span::from_nanos(length).as_secs_f64()),
            Limit::Requests(_) => None,
        },
        asked_requests: match plan.limit {
            Limit::DurationNs(_) => None,
            Limit::Requests(count) => Some(count),
        },
        warmup_s: warmup.as_secs_f64(),
        warmup_requests_per_second: (!warmup.is_zero() && edges.is_some())
            .then(|| warm.ok as f64 / warmup.as_secs_f64()),
    }
}

/// Requests over all stages: what is carried from one into the next is one request.
fn lifetime(record: &Record) -> Requests {
    let stages = record.stages.iter().map(|counts| counts.requests);
    let last =
        record.stages.iter().rev().map(|counts| counts.requests).find(|r| r.started > 0).unwrap_or_default();
    let (ok, failed) = stages.clone().fold((0, 0), |(ok, failed), r| (ok + r.ok, failed + r.failed));
    Requests {
        started: stages.map(|r| r.started - r.carried_in).sum(),
        carried_in: 0,
        ok,
        failed,
        unfinished: last.unfinished,
        oldest_unfinished_us: last.oldest_unfinished_us,
        replayed: record.stages.iter().map(|counts| counts.requests.replayed).sum(),
        interrupted: record.stages.iter().map(|counts| counts.requests.interrupted).sum(),
    }
}

/// started = ok + failed + unfinished in every stage and over all; answers = statuses.
fn check_identities(record: &Record, lifetime: Requests) -> Result<(), LoadError> {
    let adds_up = |r: &Requests| r.started == r.ok + r.failed + r.unfinished;
    let stages_add_up = record.stages.iter().all(|counts| {
        let answered: u64 = counts.statuses.iter().sum();
        let unexpected: u64 = counts
            .errors
            .iter()
            .filter(|((phase, _), _)| *phase == Phase::Unexpected)
            .map(|(_, (count, ..))| count)
            .sum();
        adds_up(&counts.requests) && answered == counts.requests.ok + unexpected
    });
    if stages_add_up && adds_up(&lifetime) {
        return Ok(());
    }
    Err(LoadError::System(format!(
        "the counts of this run contradict each other ({lifetime:?}); this is a bug in bench, please report it"
    )))
}

fn statuses(counts: &Counts) -> BTreeMap<String, u64> {
    counts
        .statuses
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| (status.to_string(), *count))
        .collect()
}

/// The window's errors; a run that had none to measure shows those before it.
fn errors(record: &Record, opened: bool) -> Vec<crate::results::ErrorCount> {
    let stage = if opened { Stage::Window } else { Stage::Warmup };
    record.stages[stage as usize].error_counts()
}

fn connections(plan: &LoadPlan, outcomes: &[Outcome], record: &Record) -> Connections {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum();
    Connections {
        attempted: sum(|o| o.attempted),
        opened: sum(|o| o.opened),
        reopened: sum(|o| o.reopened),
        reopened_in_window: Some(record.reopened),
        failed: sum(|o| o.failed),
        peak: sum(|o| o.peak),
        stalled: sum(|o| o.stalled),
        setup_us: latency(&record.setups),
        first_response_us: latency(&record.first_responses),
        handshakes: plan.protocol.is_tls().then_some(record.handshakes),
    }
}

fn generator(
    plan: &LoadPlan,
    prepared: &Prepared,
    outcomes: &[Outcome],
    record: &Record,
    length: Option<Span>,
) -> Generator {
    let ok = record.stages[Stage::Window as usize].requests.ok;
    let per_request = |span: fn(&Usage) -> f64| {
        (ok > 0).then(|| outcomes.iter().map(|o| span(&o.usage)).sum::<f64>().max(0.0) / ok as f64)
    };
    Generator {
        engine: "io_uring".into(),
        features: outcomes.first().map(|o| o.features.by_name()).unwrap_or_default(),
        wait: plan.wait,
        waited: if prepared.poll { WaitMode::Poll } else { WaitMode::Sleep },
        tls: prepared.tls.as_ref().map(|_| tls::LIBRARY.into()),
        cpu_user_us_per_request: per_request(|usage| usage.work_user().as_micros_f64()),
        cpu_system_us_per_request: per_request(|usage| usage.system.as_micros_f64()),
        completions_per_wait: (record.waits > 0).then(|| {
            let answers: u64 = record.stages[Stage::Window as usize].statuses.iter().sum();
            answers as f64 / record.waits as f64
        }),
        threads: outcomes
            .iter()
            .enumerate()
            .map(|(index, outcome)| thread(plan, index, &outcome.usage, length))
            .collect(),
        peak_rss_kib: resident_kib(),
    }
}

fn thread(plan: &LoadPlan, index: usize, usage: &Usage, length: Option<Span>) -> GeneratorThread {
    let micros = |span: Span| span.as_nanos() / 1000;
    GeneratorThread {
        cpu: plan.cpus.get(index % plan.cpus.len().max(1)).copied(),
        user_us: micros(usage.user),
        system_us: micros(usage.system),
        polling_us: micros(usage.polling),
        // The two clocks differ by a tick; a thread is never more than busy.
        busy: length.map(|length| {
            ((usage.work_user() + usage.system).as_secs_f64() / length.as_secs_f64()).clamp(0.0, 1.0)
        }),
    }
}

/// Largest resident memory of this process so far in KiB (`VmHWM` of proc_pid_status(5)). What getrusage(2)
/// has is at least what the process had that started this one, since execve(2) passes it on.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// Figures of what a worker recorded: quantiles from the histogram, mean and extremes exact.
fn latency(latencies: &Latencies) -> Option<Latency> {
    let (mean, (min, max)) = latencies.mean_ns().zip(latencies.extremes_ns())?;
    let mut latency = histogram::latency(&latencies.to_histogram())?;
    (latency.min, latency.mean, latency.max) = (min as f64 / 1e3, mean / 1e3, max as f64 / 1e3);
    let Latency { p50, p75, p90, p95, p99, p99_9, p99_99, .. } = &mut latency;
    for quantile in [p50, p75, p90, p95, p99, p99_9, p99_99] {
        // A bucket is up to 0.1 % wide; its middle may lie beyond the extremes.
        *quantile = quantile.clamp(min as f64 / 1e3, max as f64 / 1e3);
    }
    Some(latency)
}

/// A worker that noticed the end of its window late was kept from running.
fn late_edge(outcomes: &[Outcome], length: Option<Span>) -> Option<Warning> {
    let late = outcomes.iter().map(|outcome| outcome.late).max()?;
    (late > LATE && length.is_some_and(|length| late.as_secs_f64() > 0.01 * length.as_secs_f64())).then(|| Warning {
        code: "generator-stalled".into(),
        text: format!(
            "a generator thread noticed the end of the window {:.0} ms late: it was kept from running; give it a CPU of its own",
            late.as_secs_f64() * 1e3
        ),
    })
}

/// Responses that came before the requests were sent, whose rest then was not (RFC 9113 §8.1).
fn early_answers(plan: &LoadPlan, m: &Measurement) -> Option<Warning> {
    // Of base64, give or take the padding.
    let body = (plan.request.body.len() / 4 * 3) as u64;
    let early = body > 0 && m.transfer.sent_bytes < m.requests.ok.saturating_mul(body) / 2;
    early.then(|| Warning {
        code: "early-answers".into(),
        text: format!(
            "{} bytes were sent for {} answers to requests with some {body} each: the server answers before it has the \
             bodies, and their rest is not sent",
            m.transfer.sent_bytes, m.requests.ok
        ),
    })
}

/// What was asked for and did not come about.
fn unfulfilled(plan: &LoadPlan, m: &Measurement) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String| warnings.push(Warning { code: code.into(), text });
    if let (Some(asked), Some(_), false) = (m.window.asked_requests, m.window.length_s, m.interrupted)
        && m.requests.started < asked
    {
        warn(
            "count-not-reached",
            format!(
                "{} of {asked} requests were sent: the server was gone for good, or could not be reached any more",
                m.requests.started
            ),
        );
    }
    if let Some(handshakes) = m.connection.handshakes
        && plan.resumption != Resumption::Off
        && handshakes.resumed == 0
    {
        warn(
            "nothing-resumed",
            "no connection of the window resumed a session: sessions are resumed by connections that take the place of \
             others (--disable-keepalive, --requests-per-connection), and where the server gives tickets"
                .into(),
        );
    }
    warnings
}

/// What a user should know before believing the figures, and what to do.
fn warnings(plan: &LoadPlan, m: &Measurement) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String| warnings.push(Warning { code: code.into(), text });
    let offered = f64::from(plan.connections) * f64::from(plan.concurrency);
    let busiest = m.generator.threads.iter().filter_map(|t| t.busy).fold(0.0, f64::max);
    if busiest >= 0.9 {
        warn(
            "generator-saturated",
            format!(
                "a generator thread was {:.0} % busy: the generator may be the limit; use more threads (-t) on CPUs of their own",
                busiest * 100.0
            ),
        );
    }
    let failures: u64 = m.errors.iter().map(|e| e.count).sum();
    let spoilt = failures as f64 > 0.001 * m.requests.ok as f64;
    if spoilt {
        warn(
            "failures",
            format!(
                "{failures} errors beside {} ok requests: rates and latencies describe the ok ones alone; connections that fail \
                 again and again are retried after 10 ms to 1.28 s",
                m.requests.ok
            ),
        );
    }
    let to_be_kept = m.keepalive && m.requests_per_connection.is_none();
    if to_be_kept && m.lifetime.ok > 0 && m.connection.reopened > m.lifetime.ok / 10 {
        warn(
            "not-kept-alive",
            format!(
                "{} connections were opened again for {} requests: the server closes them; look at its keep-alive settings",
                m.connection.reopened, m.lifetime.ok
            ),
        );
    }
    if let Some(in_flight) = m.in_flight
        && !spoilt
        && stats::starved(in_flight, offered)
        && m.window.asked_s.is_some()
    {
        warn(
            "starved",
            format!(
                "only {in_flight:.1} of {offered:.0} requests were in flight on average: latencies describe those, not {offered:.0}; \
                 look for failures, reconnects or a generator at its limit"
            ),
        );
    }
    if m.requests.unfinished > 0
        && m.requests.oldest_unfinished_us > m.latency_us.as_ref().map(|l| l.max as u64)
    {
        warn(
            "max-is-lower-bound",
            format!(
                "{} requests were unanswered at the end, the oldest for {:.1} ms: the maximum is a lower bound",
                m.requests.unfinished,
                m.requests.oldest_unfinished_us.unwrap_or(0) as f64 / 1e3
            ),
        );
    }
    if m.connection.stalled > 0 {
        warn("stalled", format!("{} connections had no answer in the last second", m.connection.stalled));
    }
    if m.errors.iter().any(|e| e.kind == "EADDRNOTAVAIL") {
        warn(
            "ephemeral-ports",
            "ephemeral ports ran out: widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, or use keep-alive".into(),
        );
    }
    if m.errors.iter().any(|e| e.kind == "EMFILE" || e.kind == "ENFILE") {
        warn("fd-limit", "file descriptors ran out: raise `ulimit -n` or use fewer connections".into());
    }
    if let Some(latency) = &m.latency_us
        && (38_000.0..46_000.0).contains(&latency.p50)
        && busiest < 0.5
        && !plan.protocol.is_quic()
    {
        warn(
            "delayed-ack",
            format!(
                "a median of {:.1} ms on idle CPUs suggests Nagle's algorithm against delayed acknowledgements: set TCP_NODELAY in the server",
                latency.p50 / 1e3
            ),
        );
    }
    if let Some(setup) = &m.connection.setup_us
        && setup.max >= 1e6
        && !plan.protocol.is_quic()
    {
        warn(
            "slow-connect",
            format!(
                "a connection took {:.1} s to establish: a SYN was probably lost to a full accept queue; raise the server's backlog and net.core.somaxconn",
                setup.max / 1e6
            ),
        );
    }
    warnings
}

/// A worker sleeps at most until the edge, so that it is late by scheduling alone.
const LATE: Span = Span::from_millis(20);
