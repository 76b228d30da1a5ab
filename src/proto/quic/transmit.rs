//! Owns what a connection sends: which packets go into a datagram, and what goes into a packet.

use super::connection::{Connection, SMALLEST_PAYLOAD};
use super::frame;
use super::keys::seal;
use super::packet::{self, LONG_NUMBER, LongType};
use super::space::{LEVELS, Level};
use super::streams::Tracked;
use super::violation::Closed;
use crate::time::{Instant, Span};

impl<S> Connection<S> {
    /// Size of the datagrams that [`Connection::transmit`] makes.
    #[inline]
    pub fn segment(&self) -> usize {
        // What the peer takes is not known before the handshake is complete, nor what the path does.
        if self.established() { self.config.payload.into() } else { SMALLEST_PAYLOAD.into() }
    }

    /// Appends datagrams to `out`, at most `most`: all of [`Connection::segment`] bytes except the last,
    /// which may be shorter. Returns how many; 0: nothing to send now.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>, most: usize) -> usize {
        if let Some(closed) = self.closing.take() {
            self.write_close(now, out, &closed);
            self.health.datagrams_sent += 1;
            return 1;
        }
        if self.is_over() {
            return 0;
        }
        let segment = self.segment();
        let mut count = 0;
        while count < most {
            let start = out.len();
            if self.confirmed {
                let data = self.may_send_data(now);
                if !self.wants(Level::Data, data)
                    || !self.write_packet(now, Level::Data, out, start, data, false)
                {
                    break;
                }
            } else if !self.write_datagram(now, out, start) {
                break;
            }
            count += 1;
            self.paced((out.len() - start) as u64);
            if out.len() - start < segment {
                break;
            }
        }
        self.health.datagrams_sent += count as u64;
        count
    }

    /// A datagram during the handshake: a packet of each level that has something to say.
    fn write_datagram(&mut self, now: Instant, out: &mut Vec<u8>, start: usize) -> bool {
        let data = self.may_send_data(now);
        let wanted = LEVELS.map(|level| self.wants(level, data));
        let with_initial = wanted[0];
        let end = start + self.segment();
        let mut wrote = false;
        for level in LEVELS {
            if !wanted[level as usize] || (wrote && out.len() + LEAST_PACKET > end) {
                continue;
            }
            let last = !wanted[level as usize + 1..].contains(&true);
            wrote |= self.write_packet(now, level, out, start, data, with_initial && last);
            if level == Level::Handshake && wrote {
                // The server need not see Initial packets any more (RFC 9001 §4.9.1).
                self.discard(Level::Initial);
            }
        }
        wrote
    }

    #[inline]
    fn may_send_data(&mut self, now: Instant) -> bool {
        let room = self.congestion.has_room();
        if !self.config.pacing {
            return room;
        }
        // What waits for acknowledgements does not wait for its turn.
        self.pace.until = None;
        room && self.pace_allows(now)
    }

    /// Whether a level has something to say that may be said now.
    #[inline]
    fn wants(&self, level: Level, may_send_data: bool) -> bool {
        let space = &self.spaces[level as usize];
        let keys = match level {
            Level::Data => self.one_rtt.is_some() || space.keys.is_some(),
            _ => space.keys.is_some(),
        };
        if !keys {
            return false;
        }
        let data = level == Level::Data
            && may_send_data
            && (self.streams.has_output() || !self.challenges.is_empty());
        space.probes > 0 || data || (space.has_crypto() && may_send_data) || self.acks_now(level)
    }

    #[inline]
    fn acks_now(&self, level: Level) -> bool {
        let space = &self.spaces[level as usize];
        space.ack_now && (level != Level::Data || self.one_rtt.is_some())
    }

    /// Writes one packet; `start` is where its datagram begins, which is filled up with padding when `pad`.
    /// False, with nothing written, when there was nothing to say and nothing to fill up.
    fn write_packet(
        &mut self,
        now: Instant,
        level: Level,
        out: &mut Vec<u8>,
        start: usize,
        may_send_data: bool,
        pad: bool,
    ) -> bool {
        let packet_at = out.len();
        let number = self.spaces[level as usize].flight.next();
        let (number_len, length_at) = self.write_header(now, level, out, number);
        let number_at = out.len() - number_len;
        let body_at = out.len();
        let end = start + self.segment() - TAG;
        let eliciting = self.write_frames(now, level, out, end, may_send_data);
        // With `pad` what goes before it in the datagram relies on it, even if it is padding and nothing else.
        if out.len() == body_at && !pad {
            out.truncate(packet_at);
            return false;
        }
        let more =
            level == Level::Data && eliciting && may_send_data && self.confirmed && self.streams.has_output();
        if more || pad || (level == Level::Initial && out.len() + LEAST_PACKET > end) {
            // Datagrams of one send have one size; those with an Initial packet are full (RFC 9000 §14.1).
            out.resize(out.len().max(end), 0);
        }
        self.protect(level, out, (packet_at, number_at, number_len), length_at, number);
        let size = (out.len() - packet_at) as u16;
        let counted = if eliciting { size } else { 0 };
        self.congestion.sent(counted.into());
        let space = &mut self.spaces[level as usize];
        space.flight.sent(now, counted, eliciting);
        if eliciting {
            space.probes = space.probes.saturating_sub(1);
            self.asked.get_or_insert(now);
        }
        true
    }

    /// Ends a packet whose frames are written: its length is filled in, and it is protected. `places` are those
    /// of the packet, of its number, and the length of the latter.
    #[inline]
    fn protect(
        &mut self,
        level: Level,
        out: &mut Vec<u8>,
        places: (usize, usize, usize),
        length_at: Option<usize>,
        number: u64,
    ) {
        let number_at = places.1;
        // The sample for header protection begins 4 bytes after the packet number.
        let least = number_at + 4;
        if out.len() < least {
            out.resize(least, 0);
        }
        if let Some(length_at) = length_at {
            let length = out.len() - number_at + TAG;
            packet::set_length(out, length_at, length);
        }
        match (&mut self.one_rtt, &self.spaces[level as usize].keys) {
            (Some(keys), _) if level == Level::Data => keys.seal(out, places, number),
            (_, Some(keys)) => seal(&*keys.local.header, &*keys.local.packet, out, places, number),
            _ => (),
        }
    }

    /// Length of the packet number, and where a length field is to be filled in.
    #[inline]
    fn write_header(
        &mut self,
        now: Instant,
        level: Level,
        out: &mut Vec<u8>,
        number: u64,
    ) -> (usize, Option<usize>) {
        let destination = *self.peer.current();
        let (rtt, ack_delay) = (self.rtt, self.peer_ack_delay());
        let kind = match level {
            Level::Initial => LongType::Initial,
            Level::Handshake => LongType::Handshake,
            Level::Data => {
                let Some(keys) = &mut self.one_rtt else {
                    let source = self.local.id(0);
                    let at = packet::write_long(out, LongType::ZeroRtt, &destination, &source, &[], number);
                    return (LONG_NUMBER, Some(at));
                };
                let pause = || Span::from_nanos(3 * (rtt.probe_timeout() + ack_delay).as_nanos());
                self.health.key_updates += u64::from(keys.update_if_due(number, self.confirmed, now, pause));
                let acked = self.spaces[Level::Data as usize].flight.largest_acked;
                // A peer that can do without the fixed bit is sent packets without it (RFC 9287 §3).
                let without = number & 3 == 3 && self.params.as_ref().is_some_and(|p| p.grease_quic_bit);
                return (packet::write_short(out, &destination, keys.phase, number, acked, !without), None);
            }
        };
        let token = if kind == LongType::Initial { &self.token[..] } else { &[] };
        let at = packet::write_long(out, kind, &destination, &self.local.id(0), token, number);
        (LONG_NUMBER, Some(at))
    }

    /// Writes the frames of a packet; true when it asks for an acknowledgement.
    #[inline]
    fn write_frames(
        &mut self,
        now: Instant,
        level: Level,
        out: &mut Vec<u8>,
        end: usize,
        data: bool,
    ) -> bool {
        let space = &mut self.spaces[level as usize];
        let early = level == Level::Data && self.one_rtt.is_none();
        if space.unacked > 0 && !early {
            space.write_ack(out, end, now, ACK_DELAY_EXPONENT);
        }
        let probing = space.probes > 0;
        if !data && !probing {
            return false;
        }
        let before = out.len();
        if !early {
            space.write_crypto(out, end);
        }
        if level == Level::Data {
            if !early {
                self.write_own(out, end);
            }
            let flight = &mut self.spaces[Level::Data as usize].flight;
            self.streams.write(out, end, &mut |tracked| flight.carry(tracked));
        }
        if probing && out.len() == before && out.len() < end {
            out.push(frame::PING);
            self.spaces[level as usize].flight.carry(Tracked::Ping);
        }
        out.len() > before
    }

    /// Frames that only the connection can write.
    fn write_own(&mut self, out: &mut Vec<u8>, end: usize) {
        while out.len() + 9 <= end
            && let Some(data) = self.challenges.pop()
        {
            frame::write_path_response(out, data);
        }
        let waiting = &mut self.streams.pending;
        if !waiting.iter().any(|tracked| matches!(tracked, Tracked::NewCid(_))) {
            return;
        }
        let flight = &mut self.spaces[Level::Data as usize].flight;
        waiting.retain(|tracked| {
            let Tracked::NewCid(sequence) = *tracked else { return true };
            if out.len() + NEW_CONNECTION_ID > end {
                return true;
            }
            frame::write_new_connection_id(
                out,
                sequence,
                &self.local.id(sequence),
                self.local.reset_token(sequence),
            );
            flight.carry(*tracked);
            false
        });
    }

    /// A CONNECTION_CLOSE on each level that the peer may be able to read.
    fn write_close(&mut self, now: Instant, out: &mut Vec<u8>, closed: &Closed) {
        let start = out.len();
        for level in LEVELS {
            let usable = match level {
                Level::Data => self.one_rtt.is_some(),
                _ => self.spaces[level as usize].keys.is_some(),
            };
            if !usable || out.len() - start + LEAST_CLOSE > self.segment() {
                continue;
            }
            let packet_at = out.len();
            let number = self.spaces[level as usize].flight.next();
            let (number_len, length_at) = self.write_header(now, level, out, number);
            let number_at = out.len() - number_len;
            let text = closed.to_string();
            match closed {
                Closed::Application(error) if level == Level::Data => {
                    frame::write_close(out, true, error.code, 0, &text);
                }
                // What the application says is not shown before the handshake is over (RFC 9000 §10.2.3).
                Closed::Application(_) => frame::write_close(out, false, APPLICATION_ERROR, 0, ""),
                Closed::Violation(violation) => {
                    frame::write_close(out, false, violation.code(), violation.frame(), &text);
                }
                _ => (),
            }
            let last = level == Level::Initial && self.spaces[1].keys.is_none() && self.one_rtt.is_none();
            if last {
                out.resize((start + usize::from(SMALLEST_PAYLOAD) - TAG).max(out.len()), 0);
            }
            self.protect(level, out, (packet_at, number_at, number_len), length_at, number);
        }
    }

    /// Whether pacing lets another datagram leave.
    fn pace_allows(&mut self, now: Instant) -> bool {
        let burst = BURST * u64::from(self.config.payload);
        let round_trip = self.rtt.smoothed.as_nanos().max(1);
        if self.rtt.latest.is_none() {
            return true;
        }
        // A quarter above the rate that fills a window in each round trip (RFC 9002 §7.7).
        let per_second = u128::from(self.congestion.window) * 1_250_000_000 / u128::from(round_trip);
        let gained = u128::from(now.since(self.pace.at).as_nanos()) * per_second / 1_000_000_000;
        self.pace.allowance = burst.min(self.pace.allowance.saturating_add(gained.min(1 << 40) as u64));
        self.pace.at = now;
        let payload = u64::from(self.config.payload);
        if self.pace.allowance >= payload {
            return true;
        }
        let missing = u128::from(payload - self.pace.allowance);
        let wait = (missing * 1_000_000_000 / per_second.max(1)).min(1_000_000_000) as u64;
        self.pace.until = self.streams.has_output().then(|| now + Span::from_nanos(wait.max(1000)));
        false
    }

    #[inline]
    fn paced(&mut self, bytes: u64) {
        if self.config.pacing {
            self.pace.allowance = self.pace.allowance.saturating_sub(bytes);
        }
    }
}

const TAG: usize = 16;
/// A packet with less room than this is not begun.
const LEAST_PACKET: usize = 100;
const LEAST_CLOSE: usize = 300;
const NEW_CONNECTION_ID: usize = 1 + 8 + 1 + 1 + 8 + 16;
/// The exponent that the peer is told of (RFC 9000 §18.2): its default.
pub(super) const ACK_DELAY_EXPONENT: u8 = 3;
/// Datagrams that leave at once with pacing (RFC 9002 §7.7).
const BURST: u64 = 10;
/// APPLICATION_ERROR (RFC 9000 §20.1).
const APPLICATION_ERROR: u64 = 0x0c;
