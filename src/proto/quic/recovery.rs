//! Owns loss detection and congestion control (RFC 9002): round-trip times, what is under way, when a
//! packet counts as lost, how much may be sent.

use std::collections::VecDeque;

use super::violation::Violation;
use crate::time::{Instant, Span};

/// A packet that was sent, until it is acknowledged or lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When.
    pub at: Instant,
    /// Bytes, when it counts towards the congestion window; else 0.
    pub size: u16,
    /// It asks for an acknowledgement.
    pub eliciting: bool,
    /// It is neither acknowledged nor lost.
    pub outstanding: bool,
    /// How many frames it carried that are kept track of.
    frames: u16,
}

/// The packets of one packet number space that are under way, with what they carried; `F` is a frame.
#[derive(Debug)]
pub(super) struct Flight<F> {
    /// The number of the first packet in `packets`.
    base: u64,
    packets: VecDeque<Sent>,
    /// The frames of all packets in `packets`, in order.
    frames: VecDeque<F>,
    /// Frames of the packet that is being made.
    fresh: u16,
    /// Largest packet number acknowledged.
    pub largest_acked: Option<u64>,
    /// When a packet that is overtaken counts as lost.
    pub loss_at: Option<Instant>,
    /// When the last packet was sent that asks for an acknowledgement.
    pub last_eliciting: Instant,
    /// Packets outstanding that ask for an acknowledgement.
    pub eliciting: u32,
    /// The last packets declared lost, to find out when that was wrong.
    lost: VecDeque<u64>,
}

/// What an acknowledgement did.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Acked {
    /// When the largest packet newly acknowledged was sent, if it asked for an acknowledgement.
    pub sample: Option<Instant>,
    /// Bytes newly acknowledged, of packets sent after [`Congestion`]'s recovery began or not.
    pub any: bool,
    /// A packet that asked for it was newly acknowledged.
    pub eliciting: bool,
    /// Packets acknowledged that had been declared lost.
    pub spurious: u64,
}

impl<F: Copy> Flight<F> {
    /// Nothing under way.
    pub(super) fn new() -> Self {
        Self {
            base: 0,
            packets: VecDeque::new(),
            frames: VecDeque::new(),
            fresh: 0,
            largest_acked: None,
            loss_at: None,
            last_eliciting: Instant::default(),
            eliciting: 0,
            lost: VecDeque::new(),
        }
    }

    /// The number of the next packet.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// The packet being made carries this frame.
    #[inline]
    pub(super) fn carry(&mut self, frame: F) {
        self.frames.push_back(frame);
        self.fresh += 1;
    }

    /// The packet being made is sent; ACK-only packets are not `eliciting` and have no `size`.
    #[inline]
    pub(super) fn sent(&mut self, at: Instant, size: u16, eliciting: bool) {
        let frames = std::mem::take(&mut self.fresh);
        self.packets.push_back(Sent { at, size, eliciting, outstanding: true, frames });
        if eliciting {
            self.last_eliciting = at;
            self.eliciting += 1;
        }
    }

    /// Takes an acknowledgement of ranges, highest first. `on_acked` is called for each packet newly
    /// acknowledged, `on_frame` for each of its frames.
    ///
    /// # Errors
    /// A packet that was never sent is acknowledged.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        ranges: impl Iterator<Item = (u64, u64)>,
        mut on_acked: impl FnMut(&Sent),
        mut on_frame: impl FnMut(F),
    ) -> Result<Acked, Violation> {
        let mut acked = Acked::default();
        // Places in `packets` and `frames` while going down from the top.
        let mut at = self.packets.len();
        let mut frames_end = self.frames.len() - usize::from(self.fresh);
        for (low, high) in ranges {
            if high >= self.next() {
                return Err(Violation::Protocol("an acknowledgement of a packet that was not sent"));
            }
            self.note_spurious(low, high, &mut acked);
            if high < self.base {
                // Older ones, and all that follow, are known already; only spurious losses are of interest.
                if self.lost.is_empty() {
                    break;
                }
                continue;
            }
            let (first, last) = (low.max(self.base) - self.base, high - self.base);
            while at > last as usize + 1 {
                at -= 1;
                frames_end -= usize::from(self.packets[at].frames);
            }
            while at > first as usize {
                at -= 1;
                let packet = &mut self.packets[at];
                let frames_begin = frames_end - usize::from(packet.frames);
                if packet.outstanding {
                    packet.outstanding = false;
                    self.eliciting -= u32::from(packet.eliciting);
                    if !acked.any && packet.eliciting && self.base + at as u64 == high {
                        acked.sample = Some(packet.at);
                    }
                    acked.any = true;
                    acked.eliciting |= packet.eliciting;
                    on_acked(packet);
                    for frame in self.frames.range(frames_begin..frames_end) {
                        on_frame(*frame);
                    }
                }
                frames_end = frames_begin;
            }
            self.largest_acked = self.largest_acked.max(Some(high));
        }
        self.forget();
        Ok(acked)
    }

    fn note_spurious(&mut self, low: u64, high: u64, acked: &mut Acked) {
        if self.lost.is_empty() {
            return;
        }
        let before = self.lost.len();
        self.lost.retain(|number| !(low..=high).contains(number));
        acked.spurious += (before - self.lost.len()) as u64;
    }

    /// Declares packets lost that were overtaken by three or by `delay` (RFC 9002 §6.1). Returns when the
    /// first and the last of them were sent.
    pub(super) fn detect_lost(
        &mut self,
        now: Instant,
        delay: Span,
        mut on_lost: impl FnMut(&Sent),
        mut on_frame: impl FnMut(F),
    ) -> Option<(Instant, Instant)> {
        self.loss_at = None;
        let largest = self.largest_acked.filter(|largest| *largest >= self.base)?;
        let mut span: Option<(Instant, Instant)> = None;
        let mut frames_begin = 0;
        for at in 0..(largest - self.base) as usize {
            let number = self.base + at as u64;
            let packet = &mut self.packets[at];
            let frames_end = frames_begin + usize::from(packet.frames);
            if packet.outstanding {
                let due = packet.at + delay;
                if number + PACKET_THRESHOLD <= largest || due <= now {
                    packet.outstanding = false;
                    self.eliciting -= u32::from(packet.eliciting);
                    on_lost(packet);
                    for frame in self.frames.range(frames_begin..frames_end) {
                        on_frame(*frame);
                    }
                    if packet.eliciting {
                        span = Some((span.map_or(packet.at, |span| span.0), packet.at));
                    }
                    if self.lost.len() == LOST_REMEMBERED {
                        self.lost.pop_front();
                    }
                    self.lost.push_back(number);
                } else {
                    self.loss_at = Some(self.loss_at.map_or(due, |at| at.min(due)));
                }
            }
            frames_begin = frames_end;
        }
        self.forget();
        span
    }

    /// Calls `on_frame` for the frames of the oldest packets outstanding, at most `most` packets.
    pub(super) fn oldest(&self, most: usize, mut on_frame: impl FnMut(F)) -> usize {
        let mut frames_begin = 0;
        let mut found = 0;
        for packet in &self.packets {
            let frames_end = frames_begin + usize::from(packet.frames);
            if packet.outstanding && packet.eliciting && found < most {
                found += 1;
                for frame in self.frames.range(frames_begin..frames_end) {
                    on_frame(*frame);
                }
            }
            frames_begin = frames_end;
        }
        found
    }

    /// Gives up all that is outstanding: `on_gone` is called for each packet, `on_frame` for each frame.
    pub(super) fn abandon(&mut self, mut on_gone: impl FnMut(&Sent), mut on_frame: impl FnMut(F)) {
        let mut frames_begin = 0;
        for packet in &mut self.packets {
            let frames_end = frames_begin + usize::from(packet.frames);
            if std::mem::take(&mut packet.outstanding) {
                on_gone(packet);
                for frame in self.frames.range(frames_begin..frames_end) {
                    on_frame(*frame);
                }
            }
            frames_begin = frames_end;
        }
        self.eliciting = 0;
        self.loss_at = None;
        self.forget();
    }

    /// Drops packets from the front that are not outstanding.
    #[inline]
    fn forget(&mut self) {
        while let Some(packet) = self.packets.front().filter(|packet| !packet.outstanding) {
            self.frames.drain(..usize::from(packet.frames));
            self.packets.pop_front();
            self.base += 1;
        }
    }
}

/// Estimates of the round-trip time (RFC 9002 §5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// The last sample; `None` before the first.
    pub latest: Option<Span>,
    min: Span,
    /// Smoothed.
    pub smoothed: Span,
    variation: Span,
}

impl RoundTrip {
    /// Takes a sample; `ack_delay` is what the peer says it waited.
    pub(super) fn sample(&mut self, latest: Span, ack_delay: Span) {
        if self.latest.is_none() {
            *self = Self {
                latest: Some(latest),
                min: latest,
                smoothed: latest,
                variation: Span::from_nanos(latest.as_nanos() / 2),
            };
            return;
        }
        self.latest = Some(latest);
        self.min = self.min.min(latest);
        let (latest, delay) = (latest.as_nanos(), ack_delay.as_nanos());
        let adjusted = if latest >= self.min.as_nanos() + delay { latest - delay } else { latest };
        let smoothed = self.smoothed.as_nanos();
        let variation = (3 * self.variation.as_nanos() + smoothed.abs_diff(adjusted)) / 4;
        self.variation = Span::from_nanos(variation);
        self.smoothed = Span::from_nanos((7 * smoothed + adjusted) / 8);
    }

    /// How long after a later packet's acknowledgement one counts as lost (RFC 9002 §6.1.2).
    pub(super) fn loss_delay(&self) -> Span {
        let longest = self.latest.map_or(INITIAL_RTT, |latest| latest.max(self.smoothed));
        Span::from_nanos(longest.as_nanos() + longest.as_nanos() / 8).max(GRANULARITY)
    }

    /// The probe timeout without back-off and without the peer's delay (RFC 9002 §6.2.1).
    pub(super) fn probe_timeout(&self) -> Span {
        if self.latest.is_none() {
            return Span::from_nanos(3 * INITIAL_RTT.as_nanos());
        }
        self.smoothed + Span::from_nanos(4 * self.variation.as_nanos()).max(GRANULARITY)
    }
}

/// NewReno (RFC 9002 §7).
///
/// The window begins at [`INITIAL_PACKETS`] full packets, above the 10 that RFC 9002 recommends: a generator on
/// loopback measures the server and not how a window grows. Not more, so that the uploads of many
/// connections at once do not overrun a server's socket buffer before anything is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// Bytes that may be under way.
    pub window: u64,
    threshold: u64,
    /// Bytes under way.
    pub in_flight: u64,
    recovery_began: Option<Instant>,
    payload: u64,
}

impl Congestion {
    /// For datagrams of `payload` bytes.
    pub(super) fn new(payload: u64) -> Self {
        let window = INITIAL_PACKETS * payload;
        Self { window, threshold: u64::MAX, in_flight: 0, recovery_began: None, payload }
    }

    /// Whether another datagram may be sent.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.in_flight + self.payload <= self.window
    }

    /// A packet is under way.
    #[inline]
    pub(super) fn sent(&mut self, size: u64) {
        self.in_flight += size;
    }

    /// A packet was acknowledged. `limited`: the window was what held sending back.
    #[inline]
    pub(super) fn acked(&mut self, packet: &Sent, limited: bool) {
        let size = u64::from(packet.size);
        self.in_flight = self.in_flight.saturating_sub(size);
        if !limited || self.recovery_began.is_some_and(|began| packet.at <= began) {
            return;
        }
        if self.window < self.threshold {
            self.window += size;
        } else {
            self.window += (self.payload * size / self.window.max(1)).max(1);
        }
        self.window = self.window.min(LARGEST_WINDOW);
    }

    /// A packet is under way no longer, for whatever reason.
    pub(super) fn gone(&mut self, packet: &Sent) {
        self.in_flight = self.in_flight.saturating_sub(u64::from(packet.size));
    }

    /// Packets were lost, the last of which was sent at `last`.
    pub(super) fn lost(&mut self, last: Instant, now: Instant) {
        if self.recovery_began.is_some_and(|began| last <= began) {
            return;
        }
        self.recovery_began = Some(now);
        self.window = (self.window / 2).max(2 * self.payload);
        self.threshold = self.window;
    }

    /// Nothing came through for so long that the path is taken to be congested for good (RFC 9002 §7.6).
    pub(super) fn collapse(&mut self) {
        self.window = 2 * self.payload;
        self.recovery_began = None;
    }
}

/// Full packets under way before anything is known of the path.
const INITIAL_PACKETS: u64 = 32;
const LARGEST_WINDOW: u64 = 1 << 26;
const PACKET_THRESHOLD: u64 = 3;
const LOST_REMEMBERED: usize = 256;
const INITIAL_RTT: Span = Span::from_millis(333);
const GRANULARITY: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn flight(packets: u64) -> Flight<u64> {
        let mut flight = Flight::new();
        for number in 0..packets {
            flight.carry(number * 10);
            flight.carry(number * 10 + 1);
            flight.sent(at(number), 100, true);
        }
        flight
    }

    fn ack(flight: &mut Flight<u64>, ranges: &[(u64, u64)]) -> (Acked, Vec<u64>) {
        let mut frames = Vec::new();
        let acked = flight.acknowledge(ranges.iter().copied(), |_| (), |frame| frames.push(frame)).unwrap();
        frames.sort_unstable();
        (acked, frames)
    }

    fn lost(flight: &mut Flight<u64>, now: u64, delay: u64) -> Vec<u64> {
        let mut frames = Vec::new();
        flight.detect_lost(at(now), Span::from_millis(delay), |_| (), |frame| frames.push(frame));
        frames
    }

    #[test]
    fn each_frame_is_acknowledged_or_lost_once() {
        let mut flight = flight(10);
        let (acked, frames) = ack(&mut flight, &[(8, 8), (2, 3)]);
        assert_eq!((acked.sample, frames), (Some(at(8)), vec![20, 21, 30, 31, 80, 81]));
        // Overtaken by three: 0, 1, 4, 5. Not yet: 6, 7.
        assert_eq!(lost(&mut flight, 10, 100), [0, 1, 10, 11, 40, 41, 50, 51]);
        assert_eq!(flight.loss_at, Some(at(106)));
        assert_eq!(lost(&mut flight, 107, 100), [60, 61, 70, 71]);
        let (acked, frames) = ack(&mut flight, &[(0, 9)]);
        assert_eq!((acked.spurious, frames), (6, vec![90, 91]));
        assert_eq!((flight.next(), flight.eliciting), (10, 0));
        assert!(ack(&mut flight, &[(0, 9)]).1.is_empty());
    }

    #[test]
    fn what_was_not_sent_cannot_be_acknowledged() {
        let mut flight = flight(3);
        assert!(flight.acknowledge([(0, 3)].into_iter(), |_| (), |_| ()).is_err());
        assert!(flight.acknowledge([(2, 2)].into_iter(), |_| (), |_| ()).is_ok());
    }

    #[test]
    fn round_trips_are_smoothed_and_the_delay_is_taken_off() {
        let ms = Span::from_millis;
        let mut rtt = RoundTrip::default();
        assert_eq!(rtt.probe_timeout(), ms(999));
        rtt.sample(ms(10), ms(5));
        assert_eq!((rtt.smoothed, rtt.probe_timeout()), (ms(10), ms(30)));
        rtt.sample(ms(23), ms(5));
        assert_eq!(rtt.smoothed, Span::from_micros(11_000));
        rtt.sample(ms(12), ms(5));
        assert_eq!(rtt.smoothed, Span::from_micros((7 * 11_000 + 12_000) / 8), "not below the least");
    }

    #[test]
    fn the_window_halves_once_for_each_round_trip_and_grows_only_when_used() {
        let mut congestion = Congestion::new(1200);
        let sent = |ms| Sent { at: at(ms), size: 1200, eliciting: true, outstanding: true, frames: 0 };
        congestion.acked(&sent(0), false);
        assert_eq!(congestion.window, INITIAL_PACKETS * 1200);
        congestion.acked(&sent(0), true);
        assert_eq!(congestion.window, INITIAL_PACKETS * 1200 + 1200);
        congestion.lost(at(5), at(10));
        congestion.lost(at(9), at(11));
        assert_eq!(congestion.window, (INITIAL_PACKETS * 1200 + 1200) / 2);
        congestion.acked(&sent(10), true);
        assert_eq!(congestion.window, (INITIAL_PACKETS * 1200 + 1200) / 2, "sent before recovery began");
        congestion.acked(&sent(11), true);
        assert!(congestion.window < (INITIAL_PACKETS * 1200 + 1200) / 2 + 100);
        congestion.collapse();
        assert_eq!(congestion.window, 2400);
    }
}
