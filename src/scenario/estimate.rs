//! Owns the estimate of a run: how many windows and starts it has and how long they take.

use super::model::{Cell, Scenario, Section, SectionLimit};
use crate::results::SectionKind;
use crate::time::Span;

/// What a scenario will take, before anything is built or started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// Cells of one round: over every section, protocol and server that offers it.
    pub cells: u64,
    /// Windows over all rounds.
    pub windows: u64,
    /// Of `windows`: those ended by a count, whose length is a guess.
    pub counted: u64,
    /// Server starts over all rounds.
    pub starts: u64,
    /// Warm-ups and windows.
    pub load: Span,
    /// Drains at their longest. A server that answers ends them at once.
    pub drains: Span,
    /// Pauses after starts.
    pub settling: Span,
    /// Probes and gates at their longest.
    pub tools: Span,
}

impl Estimate {
    /// All of it; building, starting and stopping the servers comes on top.
    pub fn total(&self) -> Span {
        self.load + self.drains + self.settling + self.tools
    }
}

impl Scenario {
    /// The time this scenario takes when every cell completes.
    pub fn estimate(&self) -> Estimate {
        let rounds = u64::from(self.run.rounds);
        let mut estimate = Estimate::default();
        for section in &self.sections {
            let mut starts = 0u64;
            let mut cells = 0u64;
            for (protocol, server) in
                section.protocols.iter().flat_map(|p| self.servers.iter().map(move |s| (*p, s)))
            {
                let measured = |cell: &Cell| self.obstacle(section, server, protocol, *cell).is_none();
                let of_server = section.cells_of(protocol).filter(measured).count() as u64;
                starts = starts.saturating_add(of_server.min(1));
                cells = cells.saturating_add(of_server);
            }
            let windows = cells.saturating_mul(rounds);
            let window = match section.limit {
                SectionLimit::Duration(window) => window,
                SectionLimit::Requests(count) => {
                    estimate.counted = estimate.counted.saturating_add(windows);
                    guess(section, count)
                }
            };
            estimate.cells = estimate.cells.saturating_add(cells);
            estimate.windows = estimate.windows.saturating_add(windows);
            estimate.starts = estimate.starts.saturating_add(starts.saturating_mul(rounds));
            estimate.load = estimate.load + times(section.warmup + window, windows);
            estimate.drains = estimate.drains + times(self.run.drain, windows);
        }
        estimate.settling = times(self.run.settle, estimate.starts);
        let gates = self.servers.iter().filter_map(|server| server.gate.as_ref());
        let deadlines = self.probes.iter().map(|probe| probe.deadline).chain(gates.map(|gate| gate.deadline));
        estimate.tools = deadlines.fold(Span::ZERO, |sum, deadline| sum + deadline);
        estimate
    }
}

/// The length of a window of `section` that `count` requests end.
fn guess(section: &Section, count: u64) -> Span {
    let time = |count: u64, per_second| Span::from_micros(count.saturating_mul(1_000_000) / per_second);
    let each = section.cells.iter().find_map(|cell| cell.requests_per_connection).unwrap_or(1);
    match section.kind {
        SectionKind::ClosedLoop | SectionKind::Generators | SectionKind::Ratio => {
            time(count, USUAL_REQUESTS_PER_SECOND)
        }
        SectionKind::Setup => time(count, USUAL_SETUPS_PER_SECOND),
        SectionKind::Handshake => {
            time(count / u64::from(each.max(1)), USUAL_HANDSHAKES_PER_SECOND)
                + time(count, USUAL_REQUESTS_PER_SECOND)
        }
    }
}

fn times(span: Span, count: u64) -> Span {
    Span::from_nanos(span.as_nanos().saturating_mul(count))
}

/// A middling server on one core; good enough for a progress bar.
const USUAL_REQUESTS_PER_SECOND: u64 = 20_000;

/// Handshakes of a middling server on one core.
const USUAL_SETUPS_PER_SECOND: u64 = 2_000;

/// Handshakes one after the other, each of which waits for the one before.
const USUAL_HANDSHAKES_PER_SECOND: u64 = 500;

#[cfg(test)]
mod tests {
    use super::super::tests::{checked, server, text};

    #[test]
    fn an_estimate_counts_each_protocol_a_server_offers() {
        let scenario = checked(&text(
            "[run]\nrounds = 2\nduration = \"3s\"\nwarmup = \"1s\"\ndrain = \"500ms\"\nsettle = \"100ms\"\n",
            &[server("a", "[\"h1\", \"h1s\"]"), server("b", "[\"h1s\"]")].concat(),
            "[[section]]\ntitle = \"t\"\nkind = \"closed-loop\"\nprotocol = \"h1s\"\ncells = [\"1x1\", \"2x1\"]\n\
             [[section]]\ntitle = \"s\"\nkind = \"setup\"\nprotocols = [\"h1\", \"h1s\"]\nconnections = 4000\n",
        ));
        let estimate = scenario.estimate();
        // h1s: two servers, two cells; setup: a over h1, a and b over h1s, one cell each.
        assert_eq!(estimate.cells, 4 + 3);
        assert_eq!((estimate.windows, estimate.counted, estimate.starts), (14, 6, 10));
        // Eight windows of 1 s + 3 s, six of 4000 connections at 2000 a second.
        assert_eq!(estimate.load.as_secs_f64(), 8.0 * 4.0 + 6.0 * 2.0);
        assert_eq!(estimate.drains.as_secs_f64(), 14.0 * 0.5);
        assert_eq!(estimate.settling.as_secs_f64(), 1.0);
        assert_eq!(estimate.total().as_secs_f64(), 44.0 + 7.0 + 1.0);
    }

    #[test]
    fn an_estimate_saturates() {
        let mut scenario = checked(&text("", &server("a", "[\"h1\"]"), ""));
        scenario.run.rounds = u32::MAX;
        scenario.run.drain = crate::time::Span::from_nanos(u64::MAX);
        assert_eq!(scenario.estimate().total().as_nanos(), u64::MAX);
    }
}
