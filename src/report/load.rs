//! Owns the text that `bench load` prints: one measurement, for people.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::quic::per;
use super::text::{MISSING, one_line};
use crate::results::verdict::stream_limit;
use crate::results::{
    EffectiveConcurrency, Latency, Measurement, QuicHealth, Resumption, SocketMode, Stall, WaitMode,
    histogram,
};
use crate::units::{format_bytes, group_thousands};

/// One measurement as text.
pub fn measurement(m: &Measurement) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, m);
    out.truncate(out.trim_end().len());
    out
}

fn write(out: &mut String, m: &Measurement) -> std::fmt::Result {
    head(out, m)?;
    figures(out, m)?;
    if let Some(latency) = &m.latency_us {
        distribution(out, latency)?;
    }
    outcome(out, m)?;
    if let Some(health) = &m.quic {
        quic(out, health)?;
    }
    stalls(out, &m.stalls)?;
    generator(out, m)?;
    if m.interrupted {
        writeln!(out, "\nInterrupted: the window was cut short.")?;
    }
    for warning in &m.warnings {
        writeln!(out, "\nWarning ({}): {}", warning.code, warning.text)?;
    }
    Ok(())
}

fn head(out: &mut String, m: &Measurement) -> std::fmt::Result {
    write!(out, "{}  {}", m.url, m.protocol.prose())?;
    if let Some(n) = &m.negotiated {
        if n.http != m.protocol.version() {
            write!(out, ", server speaks {}", n.http)?;
        }
        for part in [&n.tls, &n.cipher, &n.group].into_iter().flatten() {
            write!(out, ", {part}")?;
        }
    }
    writeln!(out)?;
    let reuse = match m.requests_per_connection {
        Some(requests @ 2..) => format!("one for each {requests} requests"),
        _ if m.keepalive => "kept alive".into(),
        _ => "one for each request".into(),
    };
    writeln!(
        out,
        "{} connection{} ({reuse}) to {}, {} thread{}",
        m.connections,
        plural(u64::from(m.connections)),
        m.addresses.join(", "),
        m.threads,
        plural(u64::from(m.threads))
    )
}

fn figures(out: &mut String, m: &Measurement) -> std::fmt::Result {
    let r = &m.requests;
    let length = m.window.length_s.map_or("n/a".into(), |s| format!("{s:.2} s"));
    writeln!(out)?;
    row(out, "Requests/s", &m.requests_per_second.map_or("n/a".into(), rate))?;
    row(
        out,
        "Requests",
        &format!(
            "{} ok, {} failed, {} unfinished in {length}",
            group_thousands(r.ok),
            group_thousands(r.failed),
            group_thousands(r.unfinished)
        ),
    )?;
    if let (Some(rate), true) = (m.window.warmup_requests_per_second, m.window.warmup_s > 0.0) {
        row(
            out,
            "Warm-up",
            &format!("{:.1} s at {}/s", m.window.warmup_s, group_thousands(rate.round() as u64)),
        )?;
    }
    if let Some(length) = m.window.length_s {
        row(
            out,
            "Transfer",
            &format!(
                "{}/s in, {}/s out ({} of bodies)",
                format_bytes(m.transfer.received_bytes as f64 / length),
                format_bytes(m.transfer.sent_bytes as f64 / length),
                format_bytes(m.transfer.body_bytes as f64)
            ),
        )?;
    }
    if let Some(in_flight) = m.in_flight {
        let offered = u64::from(m.connections) * u64::from(m.concurrency);
        let whose = if m.requests.failed > 0 { ", those that failed left out" } else { "" };
        row(out, "In flight", &format!("{in_flight:.2} of {offered} on average{whose}"))?;
    }
    streams(out, m)
}

/// What became of concurrent requests on a connection, where it was not what was asked for.
fn streams(out: &mut String, m: &Measurement) -> std::fmt::Result {
    let r = &m.requests;
    if let Some(mux) = &m.multiplexing {
        let allowed = EffectiveConcurrency { least: mux.effective_least, most: mux.effective_most };
        if let Some(limit) = stream_limit(allowed, m.concurrency) {
            row(out, "Streams", &limit)?;
        }
        if mux.goaways > 0 || mux.refused > 0 {
            let what = format!(
                "{} GOAWAY, {} stream{} refused",
                group_thousands(mux.goaways),
                group_thousands(mux.refused),
                plural(mux.refused)
            );
            row(out, "Server", &what)?;
        }
    }
    if r.replayed > 0 {
        let what = format!("{} sent again, not processed by the server before", group_thousands(r.replayed));
        row(out, "Replayed", &what)?;
    }
    if r.interrupted > 0 {
        let what = format!("{} of the failed: ended under way by the server", group_thousands(r.interrupted));
        row(out, "Interrupted", &what)?;
    }
    Ok(())
}

fn distribution(out: &mut String, l: &Latency) -> std::fmt::Result {
    writeln!(
        out,
        "\nLatency (ms)   min {}   mean {}   sd {}   max {}",
        ms(l.min),
        ms(l.mean),
        ms(l.stdev),
        ms(l.max)
    )?;
    let quantiles = [
        ("50", l.p50),
        ("75", l.p75),
        ("90", l.p90),
        ("95", l.p95),
        ("99", l.p99),
        ("99.9", l.p99_9),
        ("99.99", l.p99_99),
    ];
    for (percent, value) in quantiles {
        writeln!(out, "  {percent:>5} % in {:>10}", ms(value))?;
    }
    histogram::decode(l).map_or(Ok(()), |histogram| bars(out, &histogram))
}

/// Bars over bins of equal ratio, from the fastest to the slowest response.
fn bars(out: &mut String, histogram: &Histogram<u64>) -> std::fmt::Result {
    let (low, high) = (histogram.min().max(1) as f64, histogram.max().max(1) as f64);
    let ratio = (high / low).powf(1.0 / BINS as f64).max(1.05);
    let mut bins: Vec<(f64, u64)> = Vec::new();
    let (mut from, mut edge) = (0u64, low);
    while bins.len() < BINS && (from as f64) < high {
        edge *= ratio;
        let to = if bins.len() + 1 == BINS { u64::MAX } else { edge as u64 };
        bins.push((edge.min(high), histogram.count_between(from, to)));
        from = to.saturating_add(1);
    }
    let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    writeln!(out)?;
    for (edge, count) in bins {
        let bar = "■".repeat((count as f64 / most as f64 * BAR_WIDTH as f64).round() as usize);
        writeln!(out, "  up to {:>9} ms {:>11} {bar}", ms(edge / 1e3), group_thousands(count))?;
    }
    Ok(())
}

fn outcome(out: &mut String, m: &Measurement) -> std::fmt::Result {
    if !m.statuses.is_empty() {
        writeln!(out, "\nStatus")?;
        for (status, count) in &m.statuses {
            writeln!(out, "  {status}  {}", group_thousands(*count))?;
        }
    }
    if m.interim_responses > 0 {
        writeln!(out, "  1xx  {} (interim, not completions)", group_thousands(m.interim_responses))?;
    }
    if !m.errors.is_empty() {
        writeln!(out, "\nErrors")?;
        for e in &m.errors {
            let phase = serde_json::to_value(e.phase).ok();
            let phase = phase.as_ref().and_then(|v| v.as_str()).unwrap_or("");
            let example = e.example.as_deref().map(|text| format!("  ({text})")).unwrap_or_default();
            writeln!(out, "  {phase:<10} {:<24} {:>9}{example}", e.kind, group_thousands(e.count))?;
        }
    }
    let c = &m.connection;
    write!(out, "\nConnections  {} opened", group_thousands(c.opened))?;
    if m.keepalive && m.requests_per_connection.is_none() {
        write!(out, " ({} reopened)", group_thousands(c.reopened))?;
    }
    write!(out, ", {} failed", group_thousands(c.failed))?;
    match &c.setup_us {
        Some(setup) => writeln!(out, "; set up in p50 {} ms, max {} ms", ms(setup.p50), ms(setup.max))?,
        None => writeln!(out)?,
    }
    handshakes(out, m)
}

/// Kinds of handshakes, where there was something to resume, and what short connections took.
fn handshakes(out: &mut String, m: &Measurement) -> std::fmt::Result {
    let c = &m.connection;
    if let Some(h) = c.handshakes.filter(|h| m.resumption != Resumption::Off || h.resumed > 0) {
        let mut what = format!("{} full, {} resumed", group_thousands(h.full), group_thousands(h.resumed));
        if m.resumption == Resumption::ZeroRtt || h.early_accepted > 0 {
            what += &format!(
                "; early data accepted on {}, rejected on {}",
                group_thousands(h.early_accepted),
                group_thousands(h.early_rejected)
            );
        }
        row(out, "Handshakes", &what)?;
    }
    let short = !m.keepalive || m.requests_per_connection.is_some();
    if let (Some(first), true) = (&c.first_response_us, short) {
        let what = format!("p50 {} ms, p99 {} ms from the connect", ms(first.p50), ms(first.p99));
        row(out, "First answer", &what)?;
    }
    Ok(())
}

/// How QUIC fared.
fn quic(out: &mut String, health: &QuicHealth) -> std::fmt::Result {
    let each = |count, of| per(count, of).map_or_else(|| MISSING.to_owned(), |n| format!("{n:.2}"));
    let bytes = |bytes, of| per(bytes, of).map_or_else(|| MISSING.to_owned(), |n| format!("{n:.0}"));
    let socket = match health.socket {
        SocketMode::PerConnection => "a socket for each connection",
        SocketMode::Shared => "shared sockets",
    };
    writeln!(
        out,
        "QUIC         {socket}{}, payload up to {} bytes{}",
        if health.pacing { ", paced" } else { "" },
        health.max_payload,
        health.smoothed_rtt_us.map(|rtt| format!(", round trip {} ms", ms(rtt))).unwrap_or_default()
    )?;
    let (sent, received) = (health.datagrams_sent, health.datagrams_received);
    row(
        out,
        "Datagrams",
        &format!(
            "{} sent, {} a call, {} bytes each; {} received, {} a call, {} bytes each",
            group_thousands(sent),
            each(sent, health.send_calls),
            bytes(health.bytes_sent, sent),
            group_thousands(received),
            each(received, health.receive_calls),
            bytes(health.bytes_received, received)
        ),
    )?;
    let troubles = [
        ("packets lost", health.packets_lost),
        ("of them spurious", health.spurious_losses),
        ("probe timeouts", health.probe_timeouts),
        ("Retry", health.retries),
        ("dropped at the receive buffer", health.receive_drops),
        ("refused by the send buffer", health.send_drops),
        ("duplicate", health.duplicate_packets),
        ("stray", health.stray_packets),
        ("key updates", health.key_updates),
    ];
    let met: Vec<String> = troubles
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{} {what}", group_thousands(*count)))
        .collect();
    let met = if met.is_empty() { "nothing lost".to_owned() } else { met.join(", ") };
    row(out, "Path", &met)
}

/// Connections on which nothing moved, and what they waited for.
fn stalls(out: &mut String, stalls: &[Stall]) -> std::fmt::Result {
    if stalls.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nStalls")?;
    for stall in stalls.iter().take(SHOWN_STALLS) {
        writeln!(
            out,
            "  {} in flight, nothing received for {:.1} s: {}",
            stall.in_flight,
            stall.idle_us as f64 / 1e6,
            one_line(&stall.state)
        )?;
    }
    if stalls.len() > SHOWN_STALLS {
        writeln!(out, "  and {} more; --json has all", stalls.len() - SHOWN_STALLS)?;
    }
    Ok(())
}

fn generator(out: &mut String, m: &Measurement) -> std::fmt::Result {
    let g = &m.generator;
    let waited = if g.waited == WaitMode::Poll { "polling" } else { "sleeping" };
    if let (Some(user), Some(system)) = (g.cpu_user_us_per_request, g.cpu_system_us_per_request) {
        let busy: Vec<String> =
            g.threads.iter().filter_map(|t| t.busy).map(|busy| format!("{:.0} %", busy * 100.0)).collect();
        writeln!(
            out,
            "Generator    {:.2} µs CPU/request ({user:.2} user, {system:.2} system), threads busy {}, {waited}",
            user + system,
            busy.join(", ")
        )?;
    }
    Ok(())
}

fn row(out: &mut String, name: &str, value: &str) -> std::fmt::Result {
    writeln!(out, "{name:<12} {value}")
}

fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.2}") } else { group_thousands(per_second.round() as u64) }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Microseconds as milliseconds with three significant decimals.
fn ms(us: f64) -> String {
    format!("{:.3}", us / 1e3)
}

const SHOWN_STALLS: usize = 5;
const BINS: usize = 12;
const BAR_WIDTH: usize = 40;
