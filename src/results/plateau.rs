//! Owns what is known of the cause when neither side was busy: requests that each wait for an
//! acknowledgement. Pure; `docs/methodology.md`, "What bound a cell", is its prose.

use super::stats::{Figures, Measured, median};
use super::{Bound, CellRecord};

/// Why nothing was busy, in words; `None` when it is not known. `bound` is that of the cell.
pub(super) fn reason(
    cell: &CellRecord,
    bound: Option<Bound>,
    figures: &Figures,
    rounds: &[Measured<'_>],
) -> Option<String> {
    if bound != Some(Bound::Neither) || !cell.protocol.is_quic() {
        return None;
    }
    let health = || rounds.iter().filter_map(|round| round.measurement.quic.as_ref());
    let delays: Vec<f64> = health().filter_map(|h| h.max_ack_delay_us).map(|delay| delay as f64).collect();
    let trips: Vec<f64> = health().filter_map(|h| h.smoothed_rtt_us).collect();
    let delay = median(&delays).unwrap_or(DEFAULT_MAX_ACK_DELAY_US);
    let interval = delay + median(&trips).unwrap_or(0.0);
    let near = |latency: &f64| (latency - interval).abs() <= TOLERANCE * interval;
    let typical = figures.latency_us.get("50").copied().flatten();
    let latency = figures.latency_mean_us.filter(near).or(typical.filter(near))?;
    Some(format!(
        "each request costs about the server's max_ack_delay ({} ms; {:.1} ms each): it waits for an \
         acknowledgement",
        delay / 1e3,
        latency / 1e3
    ))
}

/// What an endpoint that does not say has (RFC 9000 §18.2).
const DEFAULT_MAX_ACK_DELAY_US: f64 = 25_000.0;

/// How near a latency is to be, relative to the delay and a round trip.
const TOLERANCE: f64 = 0.1;
