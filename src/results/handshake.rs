//! Owns the figures of single connections, and whether their handshakes were of the kind that was
//! asked for. Pure; `docs/methodology.md`, "Handshakes", is its prose.

use super::stats::{Measured, median, spread};
use super::{
    CellRecord, HandshakeFigures, Handshakes, Latency, Measurement, Median, Resumption, SectionKind,
};
use crate::units::group_thousands;

/// The figures of a section that opens many connections; `None` for other kinds, without a round, and
/// when the kinds of handshakes are not known (cleartext, and files before format 1.2).
pub(super) fn figures(kind: SectionKind, rounds: &[Measured<'_>]) -> Option<HandshakeFigures> {
    if !matches!(kind, SectionKind::Setup | SectionKind::Handshake) {
        return None;
    }
    let handshakes = sum(rounds.iter().filter_map(|round| round.measurement.connection.handshakes))?;
    let over = |read: &dyn Fn(&Measured<'_>) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(read).collect();
        median(&values).map(|value| Median { value, spread: spread(&values) })
    };
    let setup =
        |read: fn(&Latency) -> f64| over(&|round| round.measurement.connection.setup_us.as_ref().map(read));
    Some(HandshakeFigures {
        connections_per_second: over(&|round| {
            let length = round.measurement.window.length_s.filter(|length| *length > 0.0)?;
            completed(round.measurement).map(|n| n as f64 / length)
        }),
        min_us: setup(|times| times.min),
        p50_us: setup(|times| times.p50),
        p99_us: setup(|times| times.p99),
        first_response_p50_us: over(&|round| {
            round.measurement.connection.first_response_us.as_ref().map(|times| times.p50)
        }),
        server_cpu_us_per_connection: over(&|round| {
            let sample = round.round.server.as_ref()?;
            let used = sample.cpu_user_us.saturating_add(sample.cpu_system_us);
            completed(round.measurement).map(|n| used as f64 / n as f64)
        }),
        handshakes,
    })
}

/// How many of the handshakes of a cell were of another kind than asked for, in words; `None` when
/// none was. They are in the figures, which they make worse and never better.
pub fn others(cell: &CellRecord) -> Option<String> {
    let counts = cell.summary.handshake.as_ref()?.handshakes;
    let all = total(&counts);
    let of_all = |n: u64| format!("{} of {}", group_thousands(n), group_thousands(all));
    let were = |n: u64| if n == 1 { "was" } else { "were" };
    match cell.resumption {
        Resumption::Off => None,
        Resumption::Ticket => (counts.full > 0)
            .then(|| format!("{} handshakes {} full", of_all(counts.full), were(counts.full))),
        Resumption::ZeroRtt => {
            let late = all.saturating_sub(counts.early_accepted);
            (late > 0).then(|| {
                format!(
                    "{} handshakes took no early data ({} rejected it, {} {} full)",
                    of_all(late),
                    group_thousands(counts.early_rejected),
                    group_thousands(counts.full),
                    were(counts.full)
                )
            })
        }
    }
}

/// Why a measurement of short connections is none of the resumption that its cell asks for: not one
/// handshake was of that kind.
pub(super) fn not_resumed(measurement: &Measurement, cell: &CellRecord) -> Option<String> {
    let counts = short_lived(measurement)?;
    let all = group_thousands(total(&counts));
    match cell.resumption {
        Resumption::Ticket | Resumption::ZeroRtt if total(&counts) == 0 => {
            Some("no handshake was completed in the window; ask for more connections".into())
        }
        Resumption::Ticket if counts.resumed == 0 => Some(format!(
            "no handshake was resumed, all {all} were full: the server gives no tickets, or takes none back"
        )),
        Resumption::ZeroRtt if counts.early_accepted == 0 => Some(format!(
            "no early data was accepted: of {all} handshakes {} were full and {} resumed without it, {} \
             rejected it",
            group_thousands(counts.full),
            group_thousands(counts.resumed),
            group_thousands(counts.early_rejected)
        )),
        _ => None,
    }
}

/// Handshakes that cannot have been, since the generator was not to offer them: a fault of the tool.
pub(super) fn contradiction(measurement: &Measurement, cell: &CellRecord) -> Option<String> {
    let counts = measurement.connection.handshakes?;
    let fault = |what: String| Some(format!("{what}; the generator resumed what it was not to"));
    match cell.resumption {
        Resumption::Off if counts.resumed > 0 => {
            fault(format!("{} handshakes were resumed where none was to be", group_thousands(counts.resumed)))
        }
        Resumption::Ticket if counts.early_accepted > 0 => fault(format!(
            "{} handshakes had early data where none was to be",
            group_thousands(counts.early_accepted)
        )),
        _ => None,
    }
}

/// The handshakes of a measurement whose connections are short, so that there are many in the window;
/// a connection that is kept had its handshake before.
fn short_lived(measurement: &Measurement) -> Option<Handshakes> {
    let short = !measurement.keepalive || measurement.requests_per_connection.is_some();
    measurement.connection.handshakes.filter(|_| short)
}

/// Handshakes of the window; `None` when there was none.
fn completed(measurement: &Measurement) -> Option<u64> {
    measurement.connection.handshakes.as_ref().map(total).filter(|n| *n > 0)
}

fn total(counts: &Handshakes) -> u64 {
    counts.full.saturating_add(counts.resumed)
}

fn sum(counts: impl Iterator<Item = Handshakes>) -> Option<Handshakes> {
    counts.reduce(|a, b| Handshakes {
        full: a.full.saturating_add(b.full),
        resumed: a.resumed.saturating_add(b.resumed),
        early_accepted: a.early_accepted.saturating_add(b.early_accepted),
        early_rejected: a.early_rejected.saturating_add(b.early_rejected),
    })
}
