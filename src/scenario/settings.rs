//! Owns `[run]` and `[expect]`: their defaults, each with its reason, and the ranges of their values.

use std::collections::BTreeSet;

use super::ScenarioError;
use super::file::{Maybe, RawExpect, RawRun};
use super::model::{Expected, RunSettings};
use super::source::At;
use crate::results::{ServerOrder, SocketMode, WaitMode};
use crate::time::Span;

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            // The smallest number with a median that is not an extreme.
            rounds: 3,
            // Long enough that ten thousands of requests stand behind a p99, short enough for many cells.
            duration: Span::from_secs(10),
            // Just-in-time compilers and allocators settle within it at benchmark rates.
            warmup: Span::from_secs(2),
            // What is still unanswered a second after the window is stuck, not slow.
            drain: Span::from_secs(1),
            // A server that answers as expected is ready; its warm-up does the rest.
            settle: Span::ZERO,
            // A cell ends at window + drain anyway: a late answer is counted there, not cut off.
            timeout: Span::ZERO,
            // Covers a lost SYN and two repeats of it (1 s, 2 s), which an overflowing queue causes.
            connect_timeout: Span::from_secs(5),
            // An optimised build of a server with its dependencies on two cores.
            build_deadline: Span::from_secs(600),
            // A large virtual machine or a cluster of workers on a slow disk.
            start_deadline: Span::from_secs(30),
            // The generator's own start and report, and connecting many clients.
            cell_grace: Span::from_secs(10),
            server_deadline: None,
            run_deadline: None,
            percentiles: vec![50.0, 99.0],
            // Saturated cells vary by this much on a quiet laptop.
            unstable_above: 0.1,
            wait: WaitMode::Auto,
            // As clients have it; some servers tell connections apart by the address.
            socket: SocketMode::PerConnection,
            // On loopback it only costs.
            pacing: false,
            // Each of many servers comes first in turn.
            order: ServerOrder::Rotate,
        }
    }
}

/// Checks `[run]` and fills in what it leaves out.
///
/// # Errors
/// The first value out of range.
pub(super) fn run(raw: &RawRun) -> Result<RunSettings, ScenarioError> {
    let default = RunSettings::default();
    Ok(RunSettings {
        rounds: match &raw.rounds {
            Some(rounds) => check_rounds(rounds.value).map_err(|what| rounds.mistake(what))?,
            None => default.rounds,
        },
        duration: positive(&raw.duration)?.unwrap_or(default.duration),
        warmup: any(&raw.warmup).unwrap_or(default.warmup),
        drain: any(&raw.drain).unwrap_or(default.drain),
        settle: any(&raw.settle).unwrap_or(default.settle),
        timeout: any(&raw.timeout).unwrap_or(default.timeout),
        connect_timeout: positive(&raw.connect_timeout)?.unwrap_or(default.connect_timeout),
        build_deadline: positive(&raw.build_deadline)?.unwrap_or(default.build_deadline),
        start_deadline: positive(&raw.start_deadline)?.unwrap_or(default.start_deadline),
        cell_grace: positive(&raw.cell_grace)?.unwrap_or(default.cell_grace),
        server_deadline: positive(&raw.server_deadline)?,
        run_deadline: positive(&raw.run_deadline)?,
        percentiles: percentiles(&raw.percentiles)?.unwrap_or(default.percentiles),
        unstable_above: match &raw.unstable_above {
            Some(spread) if spread.value > 0.0 && spread.value <= 1.0 => spread.value,
            Some(spread) => {
                return Err(spread.mistake(format_args!(
                    "a spread of {} is outside 0 to 1; write a share, like `0.1` for 10 %",
                    spread.value
                )));
            }
            None => default.unstable_above,
        },
        wait: raw.wait.as_ref().map_or(default.wait, |wait| wait.value),
        socket: raw.socket.as_ref().map_or(default.socket, |socket| socket.value),
        pacing: raw.pacing.as_ref().map_or(default.pacing, |pacing| pacing.value),
        order: raw.order.as_ref().map_or(default.order, |order| order.value),
    })
}

/// A number of rounds within bounds.
///
/// # Errors
/// What is wrong with it, without a place: the command line takes rounds too.
pub(super) fn check_rounds(rounds: i64) -> Result<u32, String> {
    match u32::try_from(rounds) {
        Ok(rounds) if (1..=MOST_ROUNDS).contains(&rounds) => Ok(rounds),
        _ => Err(format!("{rounds} rounds; write 1 to {MOST_ROUNDS}")),
    }
}

/// Checks `[expect]`.
///
/// # Errors
/// A path or status that cannot be, a body that contradicts the length or the status.
pub(super) fn expect(raw: &RawExpect) -> Result<Expected, ScenarioError> {
    let path = match &raw.path {
        Some(path) => check_path(path)?,
        None => "/".to_owned(),
    };
    let status = raw.status.as_ref().map(check_status).transpose()?;
    let length = raw.length.as_ref().map(check_length).transpose()?;
    if let (Some(body), Some(length), Some(at)) = (&raw.body, length, &raw.length)
        && body.value.len() as u64 != length
    {
        return Err(at.mistake(format_args!(
            "length {length} contradicts the body of {} bytes; leave `length` out",
            body.value.len()
        )));
    }
    let has_body = raw.body.as_ref().is_some_and(|body| !body.value.is_empty());
    if let (Some(204 | 304), Some(at)) = (status, &raw.status)
        && (has_body || length.is_some_and(|length| length > 0))
    {
        return Err(at.mistake(format_args!(
            "a response of status {} has no body (RFC 9110 section 6.4.1); leave `body` and `length` out, or \
             expect another status",
            at.value
        )));
    }
    let body = raw.body.as_ref().map(|body| body.value.clone().into_bytes());
    Ok(Expected { path, status, body, length })
}

fn check_path(path: &At<String>) -> Result<String, ScenarioError> {
    let text = &path.value;
    if !text.starts_with('/') {
        return Err(path.mistake(format_args!("path `{text}` does not start with `/`; write `/{text}`")));
    }
    if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        return Err(path.mistake(format_args!(
            "{bad:?} cannot stand in a request's path; percent-encode it (RFC 3986 section 2.1)"
        )));
    }
    Ok(text.clone())
}

fn check_status(status: &At<i64>) -> Result<u16, ScenarioError> {
    match u16::try_from(status.value) {
        Ok(code) if (200..=599).contains(&code) => Ok(code),
        _ => Err(status.mistake(format_args!(
            "{} is not the status of a final response; write 200 to 599",
            status.value
        ))),
    }
}

fn check_length(length: &At<i64>) -> Result<u64, ScenarioError> {
    u64::try_from(length.value).map_err(|_| {
        length.mistake(format_args!("{} bytes; write 0 or more, or leave it out to accept any", length.value))
    })
}

fn percentiles(raw: &Maybe<Vec<At<f64>>>) -> Result<Option<Vec<f64>>, ScenarioError> {
    let Some(list) = raw else { return Ok(None) };
    if list.value.is_empty() {
        return Err(list.mistake("no percentile; list at least one, or leave the key out for 50 and 99"));
    }
    let mut seen = BTreeSet::new();
    for percentile in &list.value {
        let value = percentile.value;
        if value <= 0.0 || value >= 100.0 {
            return Err(
                percentile.mistake(format_args!("{value} is not between 0 and 100; write one like `99.9`"))
            );
        }
        if !seen.insert(value.to_bits()) {
            return Err(percentile.mistake(format_args!("{value} is listed twice; leave one out")));
        }
    }
    Ok(Some(list.value.iter().map(|percentile| percentile.value).collect()))
}

fn any(span: &Maybe<Span>) -> Option<Span> {
    span.as_ref().map(|span| span.value)
}

/// A length of time that must not be zero.
pub(super) fn positive(span: &Maybe<Span>) -> Result<Option<Span>, ScenarioError> {
    match span {
        Some(span) if span.value.is_zero() => {
            Err(span.mistake("no time at all; write a duration above zero, like `10s`"))
        }
        span => Ok(any(span)),
    }
}

/// Rounds past which a larger number is a slip: at one cell of a second each, a quarter of an hour.
const MOST_ROUNDS: u32 = 1000;
