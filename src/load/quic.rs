//! Owns what of the event loop only connections of datagrams have: their sockets, their timers, and the
//! counts of what the kernel did with them.

use std::cmp::Reverse;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use nix::errno::Errno;

use super::client::{Birth, Step};
use super::plan::Quic;
use super::uring::{Completion, DatagramOptions, DatagramSocket, MOST_DATAGRAM_BYTES, MOST_SEGMENTS};
use super::worker::{Link, Worker, errno_fault};
use crate::proto::quic::Health;
use crate::results::{Phase, SocketMode};
use crate::time::{Instant, Span};

/// The sockets of a worker.
#[derive(Debug)]
pub(super) struct Datagrams {
    options: DatagramOptions,
    /// The file of the socket that all connections share.
    pub(super) shared: Option<u32>,
    /// What the last socket opened was given.
    given: Option<DatagramSocket>,
    counts: Counts,
    /// Drops the kernel told of, by file, the last time.
    dropped: Vec<u32>,
    /// Round-trip time and the server's delay on the last connection that is over.
    last_timing: Option<(Span, Span)>,
    /// Memory for the next send.
    spare: Vec<u8>,
}

/// What a worker counted over its whole life.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    traffic: Traffic,
    strays: u64,
    /// Of connections that are over.
    gone: Health,
}

/// What passed through the sockets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Calls that sent datagrams.
    pub send_calls: u64,
    /// Receptions.
    pub receive_calls: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Datagrams the kernel dropped on the way in.
    pub receive_drops: u64,
    /// Datagrams it refused on the way out.
    pub send_drops: u64,
}

impl Traffic {
    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            send_calls: of(self.send_calls, other.send_calls),
            receive_calls: of(self.receive_calls, other.receive_calls),
            bytes_sent: of(self.bytes_sent, other.bytes_sent),
            bytes_received: of(self.bytes_received, other.bytes_received),
            receive_drops: of(self.receive_drops, other.receive_drops),
            send_drops: of(self.send_drops, other.send_drops),
        }
    }
}

/// What QUIC and its sockets did in the window.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QuicTotals {
    /// Counted by the connections.
    pub health: Health,
    /// Counted at the sockets.
    pub traffic: Traffic,
    /// Smoothed round-trip time of each connection, at the end.
    pub round_trips: Vec<Span>,
    /// The longest that the server waits before it acknowledges.
    pub max_ack_delay: Option<Span>,
    /// What sockets were given.
    pub socket: Option<DatagramSocket>,
    /// Bytes of the longest datagrams that connections sent at the end.
    pub max_payload: u32,
}

impl QuicTotals {
    /// What came after `before`.
    pub(super) fn since(mut self, before: &Self) -> Self {
        // Retries come with new connections, most of which are made before the window.
        let retries = self.health.retries;
        self.health = Health { retries, ..self.health.since(before.health) };
        self.traffic = self.traffic.with(before.traffic, |after, before| after - before);
        self
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        self.health = self.health.plus(other.health);
        self.traffic = self.traffic.with(other.traffic, |a, b| a + b);
        self.round_trips.extend(&other.round_trips);
        self.max_ack_delay = self.max_ack_delay.max(other.max_ack_delay);
        self.socket = self.socket.or(other.socket);
        self.max_payload = self.max_payload.max(other.max_payload);
    }
}

impl Datagrams {
    pub(super) fn new(quic: &Quic, connections: u32) -> Self {
        let options = DatagramOptions {
            gso: quic.gso.then_some(quic.payload),
            gro: quic.gro,
            receive_buffer: SOCKET_BUFFER,
            send_buffer: SOCKET_BUFFER,
            source: None,
        };
        Self {
            options,
            shared: (quic.socket == SocketMode::Shared).then_some(connections),
            given: None,
            counts: Counts::default(),
            dropped: vec![0; connections as usize + 1],
            last_timing: None,
            spare: Vec::new(),
        }
    }

    /// Datagrams that one send may carry when each is of `segment` bytes.
    fn most(&self, segment: usize) -> usize {
        let cut = self.given.is_some_and(|given| given.gso);
        if cut && self.options.gso.map(usize::from) == Some(segment) {
            MOST_SEGMENTS.min(MOST_DATAGRAM_BYTES / segment)
        } else {
            1
        }
    }

    fn note_drops(&mut self, file: u32, dropped: Option<u32>) {
        if let (Some(dropped), Some(last)) = (dropped, self.dropped.get_mut(file as usize)) {
            self.counts.traffic.receive_drops +=
                u64::from(dropped.wrapping_sub(std::mem::replace(last, dropped)));
        }
    }
}

impl Worker<'_> {
    /// Opens the socket that connections share, where they do.
    pub(super) fn open_shared(&mut self) -> io::Result<()> {
        let Some(datagrams) = &mut self.datagrams else { return Ok(()) };
        let Some(file) = datagrams.shared else { return Ok(()) };
        datagrams.given = Some(self.ring.open_datagrams(file, 0, &datagrams.options)?);
        self.ring.recv_datagrams(file, file, 0)
    }

    /// Begins a connection: there is nothing to wait for before the first datagram.
    pub(super) fn connect_datagrams(&mut self, index: u32) -> io::Result<()> {
        let Some(datagrams) = &mut self.datagrams else { return Ok(()) };
        let slot = &mut self.slots[index as usize];
        if datagrams.shared.is_none() {
            match self.ring.open_datagrams(index, 0, &datagrams.options) {
                Ok(given) => datagrams.given = Some(given),
                Err(error) => {
                    let fault = errno_fault(Phase::Connect, -error.raw_os_error().unwrap_or(0));
                    // No socket could be made: the failure counts twice, so that the next try waits.
                    slot.failures += 1;
                    return self.replace(index, Some(fault));
                }
            }
            datagrams.dropped[index as usize] = 0;
            slot.receiving = true;
            self.ring.recv_datagrams(index, index, slot.generation)?;
        }
        let step = slot.client.connected(&self.job, self.now);
        self.after(index, step)
    }

    /// Takes what one reception brought.
    pub(super) fn on_datagrams(&mut self, completion: &Completion) -> io::Result<()> {
        let Some(datagrams) = &mut self.datagrams else { return Ok(()) };
        if datagrams.shared.is_some() {
            return self.on_shared_datagrams(completion);
        }
        let (index, generation) = (completion.token.slot, completion.token.generation);
        let Some(slot) = self.slots.get_mut(index as usize).filter(|slot| slot.generation == generation)
        else {
            return Ok(());
        };
        slot.receiving = completion.more;
        let ok = self.record.now().requests.ok;
        let mut step = Step::Going;
        if completion.result >= 0 {
            if let Some(received) = self.ring.datagrams(completion) {
                datagrams.note_drops(index, received.dropped);
                datagrams.counts.traffic.receive_calls += 1;
                datagrams.counts.traffic.bytes_received += received.bytes.len() as u64;
                self.record.now().received += received.bytes.len() as u64;
                for datagram in received.bytes.chunks_mut(received.segment) {
                    let next =
                        slot.client.received_datagram(&mut self.job, &mut self.record, self.now, datagram);
                    if next != Step::Going {
                        step = next;
                    }
                    if matches!(step, Step::Finished | Step::Failed(_)) {
                        break;
                    }
                }
            }
        } else {
            step = self.receive_failed(index, completion.result);
        }
        self.handshaken(index);
        self.slots[index as usize].note_first_response(&mut self.record, ok, self.now);
        self.after(index, step)?;
        let slot = &mut self.slots[index as usize];
        if !completion.more && slot.generation == generation && slot.link != Link::Down {
            slot.receiving = true;
            self.ring.recv_datagrams(index, index, generation)?;
        }
        Ok(())
    }

    /// Notes a handshake that is complete, though what came with its end may have ended the connection as well.
    fn handshaken(&mut self, index: u32) {
        let slot = &self.slots[index as usize];
        if slot.link != Link::Connecting {
            return;
        }
        let Some(handshake) = slot.client.quic_handshake() else { return };
        self.established(index);
        self.record.handshake(handshake.resumed);
        if let Some(accepted) = handshake.early {
            self.record.early_data(accepted);
        }
    }

    fn receive_failed(&self, index: u32, negated: i32) -> Step {
        let (nobody, no_buffers) = (-(Errno::ECONNREFUSED as i32), -(Errno::ENOBUFS as i32));
        match negated {
            // The buffers were all in use; they come back with this batch.
            errno if errno == no_buffers => Step::Going,
            errno if errno == nobody && self.slots[index as usize].link == Link::Connecting => {
                Step::Failed(errno_fault(Phase::Connect, errno))
            }
            errno => Step::Failed(errno_fault(Phase::Read, errno)),
        }
    }

    /// The same for a socket of many connections, each of which is found by the connection id.
    fn on_shared_datagrams(&mut self, completion: &Completion) -> io::Result<()> {
        let Some(file) = self.datagrams.as_ref().and_then(|datagrams| datagrams.shared) else {
            return Ok(());
        };
        let mut at = 0;
        // Each datagram may end its connection, for which the ring is needed, so it is looked at anew.
        while completion.result >= 0
            && let Some(datagrams) = &mut self.datagrams
            && let Some(received) = self.ring.datagrams(completion)
        {
            if at == 0 {
                datagrams.note_drops(file, received.dropped);
                datagrams.counts.traffic.receive_calls += 1;
                datagrams.counts.traffic.bytes_received += received.bytes.len() as u64;
                self.record.now().received += received.bytes.len() as u64;
            }
            let Some(datagram) = received.bytes.chunks_mut(received.segment).nth(at) else { break };
            at += 1;
            let slot = owner(datagram).and_then(|(index, generation)| {
                let slot = self.slots.get_mut(index as usize)?;
                (slot.generation & GENERATION == generation).then_some((index, slot))
            });
            let Some((index, slot)) = slot else {
                datagrams.counts.strays += 1;
                continue;
            };
            let ok = self.record.now().requests.ok;
            let step = slot.client.received_datagram(&mut self.job, &mut self.record, self.now, datagram);
            slot.note_first_response(&mut self.record, ok, self.now);
            self.handshaken(index);
            self.after(index, step)?;
        }
        if !completion.more {
            self.ring.recv_datagrams(file, file, 0)?;
        }
        Ok(())
    }

    /// Sends what a connection has to send.
    #[inline]
    pub(super) fn transmit_datagrams(&mut self, index: u32) -> io::Result<()> {
        let Some(datagrams) = &mut self.datagrams else { return Ok(()) };
        let slot = &mut self.slots[index as usize];
        if matches!(slot.link, Link::Down | Link::Waiting) {
            return Ok(());
        }
        let file = datagrams.shared.unwrap_or(index);
        let most = datagrams.most(slot.client.segment());
        loop {
            let mut out = std::mem::take(&mut datagrams.spare);
            out.clear();
            if slot.client.datagrams(self.now, &mut out, most) == 0 {
                datagrams.spare = out;
                break;
            }
            datagrams.counts.traffic.send_calls += 1;
            datagrams.counts.traffic.bytes_sent += out.len() as u64;
            self.record.now().sent += out.len() as u64;
            datagrams.spare = self.ring.send_datagrams(file, index, slot.generation, out)?;
        }
        if let Some(at) = slot.client.deadline()
            && slot.timer.is_none_or(|timer| at < timer)
        {
            slot.timer = Some(at);
            self.timers.push(Reverse((at, index)));
        }
        Ok(())
    }

    /// A send was refused.
    #[cold]
    pub(super) fn on_unsent(&mut self, completion: &Completion, current: bool) -> io::Result<()> {
        let index = completion.token.slot;
        let lost = self.ring.unsent_datagrams(completion).unwrap_or_default();
        let Some(datagrams) = self.datagrams.as_mut().filter(|_| current) else { return Ok(()) };
        let slot = &mut self.slots[index as usize];
        let count = lost.len().div_ceil(slot.client.segment().max(1)) as u64;
        match Errno::from_raw(-completion.result) {
            // What was not sent is as good as lost on the way, and sent again for that.
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM | Errno::EPERM => {
                datagrams.counts.traffic.send_drops += count;
            }
            Errno::EMSGSIZE => {
                datagrams.counts.traffic.send_drops += count;
                slot.client.shrink();
            }
            Errno::ECONNREFUSED => {
                let step = self.receive_failed(index, completion.result);
                return self.after(index, step);
            }
            _ => {
                let fault = errno_fault(Phase::Write, completion.result);
                return self.after(index, Step::Failed(fault));
            }
        }
        Ok(())
    }

    /// Lets connections do what is due.
    #[inline]
    pub(super) fn run_timers(&mut self) -> io::Result<()> {
        while let Some(Reverse((at, index))) = self.timers.peek().copied() {
            if at > self.now {
                break;
            }
            self.timers.pop();
            let slot = &mut self.slots[index as usize];
            if slot.timer != Some(at) {
                // Of an earlier life, or overtaken by an earlier entry.
                continue;
            }
            slot.timer = None;
            let Some(due) =
                slot.client.deadline().filter(|_| !matches!(slot.link, Link::Down | Link::Waiting))
            else {
                continue;
            };
            if due > self.now {
                slot.timer = Some(due);
                self.timers.push(Reverse((due, index)));
                continue;
            }
            let step = slot.client.elapse(&self.job, self.now);
            self.after(index, step)?;
        }
        Ok(())
    }

    /// Says farewell on a connection that is to be replaced, and keeps what it counted.
    pub(super) fn leave(&mut self, index: u32) -> io::Result<()> {
        let slot = &mut self.slots[index as usize];
        slot.client.close();
        self.transmit_datagrams(index)?;
        if self.datagrams.as_ref().is_some_and(|datagrams| datagrams.shared.is_none()) {
            // The slot's next socket must not get it.
            self.ring.enter(0, Span::ZERO, None)?;
        }
        let client = &self.slots[index as usize].client;
        if let (Some(datagrams), Some(health)) = (&mut self.datagrams, client.health()) {
            datagrams.counts.gone = datagrams.counts.gone.plus(health);
            datagrams.last_timing = client.timing().or(datagrams.last_timing);
        }
        Ok(())
    }

    /// Says farewell on all connections: the server need not wait for them to be idle. It is of no
    /// account whether that arrives.
    pub(super) fn part(&mut self) {
        if self.datagrams.is_none() {
            return;
        }
        for index in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[index as usize];
            if matches!(slot.link, Link::Up | Link::Connecting) {
                slot.client.close();
                let _ = self.transmit_datagrams(index);
            }
        }
        let _ = self.ring.enter(0, Span::ZERO, None);
    }

    /// What was counted so far.
    pub(super) fn quic_totals(&self) -> Option<QuicTotals> {
        let datagrams = self.datagrams.as_ref()?;
        let counts = datagrams.counts;
        let clients = || self.slots.iter().map(|slot| &slot.client);
        let mut health = clients().filter_map(|client| client.health()).fold(counts.gone, Health::plus);
        health.stray_packets += counts.strays;
        let timings = clients().filter_map(|client| client.timing());
        let (mut round_trips, mut delays): (Vec<_>, Vec<_>) = timings.unzip();
        if let Some((round_trip, delay)) = datagrams.last_timing.filter(|_| round_trips.is_empty()) {
            round_trips.push(round_trip);
            delays.push(delay);
        }
        Some(QuicTotals {
            health,
            traffic: counts.traffic,
            round_trips,
            max_ack_delay: delays.into_iter().max(),
            socket: datagrams.given,
            max_payload: clients().map(|client| client.segment()).max().unwrap_or(0) as u32,
        })
    }
}

/// What new connections are made from.
#[derive(Debug)]
pub(super) struct Births {
    random: RandomState,
    count: u64,
}

impl Births {
    pub(super) fn new() -> Self {
        Self { random: RandomState::new(), count: 0 }
    }

    /// For the next connection of a slot.
    pub(super) fn next(&mut self, now: Instant, slot: u32, generation: u32) -> Birth {
        self.count += 1;
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.count);
        Birth { now, connection_id: connection_id(slot, generation), seed: hasher.finish() }
    }
}

/// A connection id that names the slot and its life; the last two bytes are the id's number.
fn connection_id(slot: u32, generation: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(generation & GENERATION) << 16
}

/// Slot and life of the connection that a datagram is for, by the connection id of its first packet
/// (RFC 9000 §17).
fn owner(datagram: &[u8]) -> Option<(u32, u32)> {
    let at = if datagram.first()? & 0x80 == 0 {
        1
    } else {
        // Version, then the length of the id.
        (*datagram.get(5)? == 8).then_some(6)?
    };
    let id = u64::from_be_bytes(datagram.get(at..at + 8)?.try_into().ok()?);
    Some(((id >> 32) as u32, (id >> 16) as u32 & GENERATION))
}

const GENERATION: u32 = 0xffff;
/// Bytes asked for on each side of a socket: more than a server sends between two looks.
const SOCKET_BUFFER: u32 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_finds_its_connection() {
        let id = (connection_id(7, 0x1_2345) | 3).to_be_bytes();
        let short = [&[0x40], &id[..], &[0; 20]].concat();
        let long = [&[0xc0, 0, 0, 0, 1, 8], &id[..], &[0; 20]].concat();
        assert_eq!(owner(&short), Some((7, 0x2345)));
        assert_eq!(owner(&long), Some((7, 0x2345)));
        for cut in [&[][..], &short[..8], &long[..13], &[0xc0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(owner(cut), None);
        }
    }
}
