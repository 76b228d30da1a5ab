//! Owns a packet number space: what was received in it, what of the handshake is sent in it, what is under
//! way (RFC 9000 §12.3).

use std::collections::VecDeque;

use super::assembler::Assembler;
use super::frame;
use super::keys::LevelKeys;
use super::ranges::Ranges;
use super::recovery::Flight;
use super::streams::Tracked;
use super::varint;
use super::violation::Violation;
use crate::time::{Instant, Span};

/// Which space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// Initial packets.
    Initial = 0,
    /// Handshake packets.
    Handshake = 1,
    /// 0-RTT and 1-RTT packets.
    Data = 2,
}

/// All spaces, in order.
pub(super) const LEVELS: [Level; 3] = [Level::Initial, Level::Handshake, Level::Data];

/// A space.
#[derive(Debug)]
pub(super) struct Space {
    /// Keys of the handshake; of [`Level::Data`]: those of 0-RTT.
    pub keys: Option<LevelKeys>,
    /// Packets under way.
    pub flight: Flight<Tracked>,
    received: Ranges,
    /// Numbers below are taken for received.
    floor: u64,
    largest_at: Instant,
    /// Packets received that ask for an acknowledgement and have none.
    pub unacked: u32,
    /// When they must have it at the latest.
    pub ack_due: Option<Instant>,
    /// They are to have it with the next transmit.
    pub ack_now: bool,
    /// Handshake bytes to be sent, from the first.
    crypto: Vec<u8>,
    crypto_sent: usize,
    crypto_lost: VecDeque<(u64, u32)>,
    crypto_ahead: Assembler,
    crypto_read: u64,
    /// Packets to be sent whatever the congestion window says.
    pub probes: u8,
}

impl Space {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self {
            keys: None,
            flight: Flight::new(),
            received: Ranges::default(),
            floor: 0,
            largest_at: Instant::default(),
            unacked: 0,
            ack_due: None,
            ack_now: false,
            crypto: Vec::new(),
            crypto_sent: 0,
            crypto_lost: VecDeque::new(),
            crypto_ahead: Assembler::default(),
            crypto_read: 0,
            probes: 0,
        }
    }

    /// One above the largest packet number received.
    #[inline]
    pub(super) fn expected(&self) -> u64 {
        self.received.max().map_or(self.floor, |largest| largest + 1)
    }

    /// Whether this packet was received before.
    #[inline]
    pub(super) fn is_duplicate(&self, number: u64) -> bool {
        number < self.floor || self.received.contains(number)
    }

    /// A packet was received and handled.
    #[inline]
    pub(super) fn received(&mut self, number: u64, eliciting: bool, now: Instant, level: Level) {
        let expected = self.expected();
        if number >= expected {
            self.largest_at = now;
        }
        self.received.insert(number, number);
        if let Some(forgotten) = self.received.keep_highest(MOST_RANGES) {
            self.floor = self.floor.max(forgotten + 1);
        }
        if !eliciting {
            return;
        }
        self.unacked += 1;
        if level != Level::Data || number != expected || self.unacked >= ACK_EVERY {
            self.ack_now = true;
        }
        self.ack_due.get_or_insert(now + MAX_ACK_DELAY);
    }

    /// The peer knows what was acknowledged up to `largest`.
    pub(super) fn forget_up_to(&mut self, largest: u64) {
        // The largest stays, as what comes is decoded and ordered by it.
        if self.received.max().is_some_and(|max| max > largest) {
            self.received.remove_below(largest);
            self.floor = self.floor.max(largest);
        }
    }

    /// Writes an ACK frame, whose delay is in units of 2^`exponent` µs, if it fits within `end`.
    #[inline]
    pub(super) fn write_ack(&mut self, out: &mut Vec<u8>, end: usize, now: Instant, exponent: u8) {
        let Some(largest) = self.received.max() else { return };
        if out.len() + SHORTEST_ACK > end {
            return;
        }
        let delay = (now.since(self.largest_at).as_nanos() / 1000) >> exponent;
        let mut ranges = self.received.descending();
        let Some((low, _)) = ranges.next() else { return };
        // Each further range takes at most 16 bytes.
        let most = ranges.len().min((end - out.len() - SHORTEST_ACK) / 16);
        frame::write_ints(out, 0x02, &[largest, delay, most as u64, largest - low]);
        let mut above = low;
        for (low, high) in ranges.take(most) {
            varint::write(out, above - high - 2);
            varint::write(out, high - low);
            above = low;
        }
        self.flight.carry(Tracked::Ack(largest));
        (self.unacked, self.ack_due, self.ack_now) = (0, None, false);
    }

    /// Adds handshake bytes to be sent.
    pub(super) fn queue_crypto(&mut self, bytes: &[u8]) {
        self.crypto.extend_from_slice(bytes);
    }

    /// Handshake bytes wait to be sent.
    #[inline]
    pub(super) fn has_crypto(&self) -> bool {
        self.crypto_sent < self.crypto.len() || !self.crypto_lost.is_empty()
    }

    /// Writes CRYPTO frames until `out` has `end` bytes; true if any was.
    pub(super) fn write_crypto(&mut self, out: &mut Vec<u8>, end: usize) -> bool {
        let mut wrote = false;
        loop {
            let room = end.saturating_sub(out.len() + CRYPTO_HEAD);
            let (offset, len) = match self.crypto_lost.pop_front() {
                Some((offset, len)) => (offset, len as usize),
                None => (self.crypto_sent as u64, self.crypto.len() - self.crypto_sent),
            };
            let now = len.min(room);
            let from = offset as usize;
            if now < len && from < self.crypto_sent {
                self.crypto_lost.push_front((offset + now as u64, (len - now) as u32));
            }
            if now == 0 {
                return wrote;
            }
            frame::write_crypto(out, offset, now);
            out.extend_from_slice(&self.crypto[from..from + now]);
            self.flight.carry(Tracked::Crypto { offset, len: now as u32 });
            self.crypto_sent = self.crypto_sent.max(from + now);
            wrote = true;
        }
    }

    /// A part of the handshake was lost.
    pub(super) fn crypto_lost(&mut self, offset: u64, len: u32) {
        // Probes ask for it again and again. Twice in one packet is more than some servers bear: quiche has
        // forgotten by the second time that the first completed the handshake.
        if !self.crypto_lost.contains(&(offset, len)) {
            self.crypto_lost.push_back((offset, len));
        }
    }

    /// All of the handshake is to be sent again (Retry).
    pub(super) fn rewind_crypto(&mut self) {
        self.crypto_sent = 0;
        self.crypto_lost.clear();
    }

    /// Takes a CRYPTO frame in and gives the bytes that are there without a gap to `to`.
    ///
    /// # Errors
    /// Bytes too far ahead to be kept, or what `to` says.
    pub(super) fn receive_crypto(
        &mut self,
        offset: u64,
        data: &[u8],
        mut to: impl FnMut(&[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if offset + data.len() as u64 > self.crypto_read + CRYPTO_AHEAD {
            return Err(Violation::CryptoBuffer);
        }
        self.crypto_ahead.insert(self.crypto_read, offset, data).map_err(|_| Violation::CryptoBuffer)?;
        while let Some(bytes) = self.crypto_ahead.take(self.crypto_read) {
            self.crypto_read += bytes.len() as u64;
            to(&bytes)?;
        }
        Ok(())
    }
}

/// Ranges of received packet numbers that are remembered and acknowledged.
const MOST_RANGES: usize = 32;
/// So many packets are acknowledged at once (RFC 9000 §13.2.2); fewer wait for something to go with.
const ACK_EVERY: u32 = 2;
/// The delay that the peer is told of (RFC 9000 §18.2): its default.
pub(super) const MAX_ACK_DELAY: Span = Span::from_millis(25);
/// An ACK frame of one range, each integer at its longest.
const SHORTEST_ACK: usize = 1 + 8 + 8 + 4 + 8;
/// The head of a CRYPTO frame at its longest.
const CRYPTO_HEAD: usize = 1 + 8 + 4;
/// Handshake bytes kept that came ahead of a gap (RFC 9000 §7.5 asks for 4096 at least).
const CRYPTO_AHEAD: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_twice_is_sent_once() {
        let mut space = Space::new();
        space.queue_crypto(&[7; 36]);
        let mut out = Vec::new();
        assert!(space.write_crypto(&mut out, 1000));
        let once = out.clone();
        for _ in 0..3 {
            space.crypto_lost(0, 36);
        }
        out.clear();
        assert!(space.write_crypto(&mut out, 1000));
        assert_eq!(out, once);
    }
}
