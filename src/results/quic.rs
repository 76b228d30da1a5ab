//! Owns what is said of QUIC's health: sums over the measured rounds of a cell, and when they
//! speak against its figures. Pure.

use super::verdict::used_rounds;
use super::{CellRecord, QuicHealth};
use crate::units::group_thousands;

/// Sums over the rounds that figures of a cell are taken from.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Health {
    /// UDP datagrams the generator sent.
    pub datagrams_sent: u64,
    /// Its packets declared lost.
    pub packets_lost: u64,
    /// Its probe timeouts.
    pub probe_timeouts: u64,
    /// Retry packets it honoured.
    pub retries: u64,
    /// Datagrams the kernel dropped at the generator's sockets.
    pub generator_drops: u64,
    /// Datagrams the kernel dropped at the server's; `None` when that could not be read.
    pub server_drops: Option<u64>,
    /// Datagrams of one send call.
    pub per_send: Option<f64>,
    /// Datagrams of one reception.
    pub per_receive: Option<f64>,
    /// Bytes of a datagram sent.
    pub bytes_sent: Option<f64>,
    /// Bytes of a datagram received.
    pub bytes_received: Option<f64>,
}

impl Health {
    /// Of a cell; `None` without a measurement over QUIC.
    pub(crate) fn of(cell: &CellRecord) -> Option<Self> {
        let rounds = used_rounds(cell);
        let measured = || rounds.iter().filter_map(|round| round.measurement.as_ref()?.quic.as_ref());
        measured().next()?;
        let sum = |count: fn(&QuicHealth) -> u64| measured().map(count).fold(0u64, u64::saturating_add);
        let each = |what: fn(&QuicHealth) -> u64, of: fn(&QuicHealth) -> u64| per(sum(what), sum(of));
        let server = rounds.iter().filter_map(|round| round.server.as_ref()?.udp_drops);
        Some(Self {
            datagrams_sent: sum(|h| h.datagrams_sent),
            packets_lost: sum(|h| h.packets_lost),
            probe_timeouts: sum(|h| h.probe_timeouts),
            retries: sum(|h| h.retries),
            generator_drops: sum(|h| h.receive_drops),
            server_drops: server.reduce(u64::saturating_add),
            per_send: each(|h| h.datagrams_sent, |h| h.send_calls),
            per_receive: each(|h| h.datagrams_received, |h| h.receive_calls),
            bytes_sent: each(|h| h.bytes_sent, |h| h.datagrams_sent),
            bytes_received: each(|h| h.bytes_received, |h| h.datagrams_received),
        })
    }

    /// Packets lost as a share of the datagrams sent.
    pub(crate) fn loss(&self) -> Option<f64> {
        per(self.packets_lost, self.datagrams_sent)
    }

    /// What speaks against figures taken over a loopback, which loses nothing by itself, in words;
    /// `None` when nothing does.
    pub(crate) fn trouble(&self) -> Option<String> {
        let mut found = Vec::new();
        let mut dropped = |at: &str, drops: u64| {
            if drops > 0 {
                found.push(format!("{} datagrams dropped at the {at}'s socket", group_thousands(drops)));
            }
        };
        dropped("server", self.server_drops.unwrap_or(0));
        dropped("generator", self.generator_drops);
        if let Some(loss) = self.loss().filter(|loss| *loss > LOSS_ABOVE) {
            let lost = group_thousands(self.packets_lost);
            found.push(format!("{lost} packets lost ({:.2} %)", loss * 100.0));
        }
        (!found.is_empty()).then(|| found.join(", "))
    }
}

/// `count ÷ of`; `None` of nothing.
pub(crate) fn per(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

/// Share of lost packets that is told: one in a thousand.
const LOSS_ABOVE: f64 = 0.001;
