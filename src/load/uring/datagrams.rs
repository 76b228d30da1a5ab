//! Owns datagrams in the ring: how received ones lie in a buffer, and the memory of those being sent.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// How a UDP socket is to be opened. Each option the kernel lacks is left out, and the
/// [`DatagramSocket`] says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramOptions {
    /// A send of more than so many bytes leaves as several datagrams of this size, the last of which
    /// may be shorter (`UDP_SEGMENT`, udp(7)); `None`: a send is a datagram.
    pub gso: Option<u16>,
    /// Datagrams of one size may be received together (`UDP_GRO`, udp(7)).
    pub gro: bool,
    /// Receive buffer to ask for in bytes (`SO_RCVBUFFORCE` where permitted, else `SO_RCVBUF`); 0: the
    /// kernel's default.
    pub receive_buffer: u32,
    /// Send buffer to ask for in bytes (`SO_SNDBUFFORCE` where permitted, else `SO_SNDBUF`); 0: the
    /// kernel's default.
    pub send_buffer: u32,
    /// Address to send from.
    pub source: Option<Ipv4Addr>,
}

/// What a UDP socket was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramSocket {
    /// Sends are cut into datagrams.
    pub gso: bool,
    /// Receptions may hold several datagrams.
    pub gro: bool,
    /// Receive buffer in bytes as the kernel counts it: up to twice what was asked for, less where
    /// net.core.rmem_max limits it (socket(7)).
    pub receive_buffer: u32,
    /// Send buffer, counted in the same way.
    pub send_buffer: u32,
    /// Receptions tell how many datagrams the kernel dropped (`SO_RXQ_OVFL`).
    pub overflow: bool,
    /// Path MTU of the route in bytes, headers included (`IP_MTU`, `IPV6_MTU`).
    pub mtu: Option<u32>,
}

/// What one reception brought.
#[derive(PartialEq, Eq, Debug)]
pub struct Datagrams<'a> {
    /// The payloads, one after the other.
    pub bytes: &'a mut [u8],
    /// Length of each but the last, which may be shorter; at least 1, so that `bytes` can be cut by it.
    pub segment: usize,
    /// Datagrams that the kernel dropped since the socket was opened because its receive buffer was
    /// full; `None`: none so far, or not known. Wraps.
    pub dropped: Option<u32>,
}

/// Most payload of one UDP datagram, or of one send that is cut into several (RFC 768 over RFC 791). The
/// loopback device cuts sends of more than 65 473 bytes at once, so that they are not received together.
pub const MOST_DATAGRAM_BYTES: usize = 65_507;
/// Most datagrams of one send (`UDP_MAX_SEGMENTS` of every kernel that has `UDP_SEGMENT`).
pub const MOST_SEGMENTS: usize = 64;

/// Room for control messages in each buffer: `UDP_GRO` and `SO_RXQ_OVFL`, an int each.
pub(super) const CONTROL_BYTES: usize = 2 * (CMSG_HEADER + CMSG_ALIGN);
/// Bytes in front of the payload that a reception writes into its buffer.
pub(super) const HEADROOM: usize = OUT_HEADER + CONTROL_BYTES;

/// The payload lies where the kernel says; it was longer than the buffer, or control messages are missing, and
/// cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Truncated;

/// Reads what a multishot recvmsg wrote: `struct io_uring_recvmsg_out`, control messages in their
/// fixed room, the payload (io_uring_prep_recvmsg_multishot(3)). No length in it is trusted.
#[inline]
pub(super) fn parse(buffer: &mut [u8]) -> Result<Datagrams<'_>, Truncated> {
    let (head, payload) = buffer.split_at_mut_checked(HEADROOM).ok_or(Truncated)?;
    let word =
        |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
    let [Some(control), Some(length), Some(flags)] = [word(4), word(8), word(12)] else {
        return Err(Truncated);
    };
    let bytes = payload.get_mut(..length as usize).ok_or(Truncated)?;
    if flags as libc::c_int & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(Truncated);
    }
    let control = head[OUT_HEADER..].get(..control as usize).ok_or(Truncated)?;
    let (mut segment, mut dropped) = (0, None);
    let mut rest = control;
    while let Some((level, kind, data)) = next_control(&mut rest) {
        let value = data.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes));
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => segment = value.unwrap_or(0) as usize,
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => dropped = value,
            _ => (),
        }
    }
    let whole = bytes.len().max(1);
    let segment = if (1..whole).contains(&segment) { segment } else { whole };
    Ok(Datagrams { bytes, segment, dropped })
}

/// Takes one `struct cmsghdr` and its data off `rest` (cmsg(3)): level, type, data.
#[inline]
fn next_control<'a>(rest: &mut &'a [u8]) -> Option<(libc::c_int, libc::c_int, &'a [u8])> {
    let length = usize::from_ne_bytes(*rest.first_chunk()?);
    let level = libc::c_int::from_ne_bytes(*rest.get(8..)?.first_chunk()?);
    let kind = libc::c_int::from_ne_bytes(*rest.get(12..)?.first_chunk()?);
    let data = rest.get(CMSG_HEADER..length)?;
    *rest = rest.get(length.checked_next_multiple_of(CMSG_ALIGN)?..).unwrap_or_default();
    Some((level, kind, data))
}

/// The bytes of sends, by a number that travels with each. They stay until the kernel has taken the send
/// and whoever handles its failure has had a chance to.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    kept: VecDeque<Kept>,
    /// Number of the first in `kept`.
    first: u64,
    /// Sends below this number were taken by the kernel.
    submitted: u64,
    /// Those below it had their failures handed out by the last reap,
    delivered: u64,
    /// and those below it by the one before, so that they were handled.
    settled: u64,
}

#[derive(Debug)]
struct Kept {
    slot: u32,
    generation: u32,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Number of the send to be kept next.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Keeps the bytes of a send that was queued; they stay where they lie in memory.
    #[inline]
    pub(super) fn keep(&mut self, slot: u32, generation: u32, bytes: Vec<u8>) {
        self.kept.push_back(Kept { slot, generation, bytes });
    }

    /// Memory of an earlier send that may be used again; empty when there is none.
    #[inline]
    pub(super) fn reuse(&mut self) -> Vec<u8> {
        let spare = self.pop_settled().unwrap_or_default();
        // After a burst its memory is given back, a send at a time.
        if self.kept.len() > MOST_KEPT {
            drop(self.pop_settled());
        }
        spare
    }

    #[inline]
    fn pop_settled(&mut self) -> Option<Vec<u8>> {
        if self.first >= self.settled {
            return None;
        }
        let kept = self.kept.pop_front()?;
        self.first += 1;
        Some(kept.bytes)
    }

    /// The kernel has taken every send kept so far.
    #[inline]
    pub(super) fn submitted(&mut self) {
        self.submitted = self.next();
    }

    /// The failures of what was submitted are handed out.
    #[inline]
    pub(super) fn reaped(&mut self) {
        self.settled = self.delivered;
        self.delivered = self.submitted;
    }

    /// Slot and generation of a send.
    pub(super) fn owner(&self, number: u64) -> Option<(u32, u32)> {
        let kept = self.kept.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        Some((kept.slot, kept.generation))
    }

    /// Takes the bytes of a send that failed.
    pub(super) fn take(&mut self, number: u64) -> Option<Vec<u8>> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        if number >= self.submitted {
            return None;
        }
        Some(std::mem::take(&mut self.kept.get_mut(at)?.bytes)).filter(|bytes| !bytes.is_empty())
    }
}

/// `struct io_uring_recvmsg_out`: lengths of name, control and payload, and the message's flags.
const OUT_HEADER: usize = 16;
const CMSG_HEADER: usize = size_of::<libc::cmsghdr>();
const CMSG_ALIGN: usize = size_of::<usize>();
/// Sends whose memory is kept for those to come.
const MOST_KEPT: usize = 128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn control(level: i32, kind: i32, value: u32) -> Vec<u8> {
        let mut out = 20usize.to_ne_bytes().to_vec();
        out.extend(level.to_ne_bytes());
        out.extend(kind.to_ne_bytes());
        out.extend(value.to_ne_bytes());
        out.extend([0; 4]);
        out
    }

    fn reception(control: &[u8], payload: &[u8], length: u32, flags: i32) -> Vec<u8> {
        let mut out = Vec::new();
        for word in [0, control.len() as u32, length, flags as u32] {
            out.extend(word.to_ne_bytes());
        }
        out.extend(control);
        out.resize(HEADROOM, 0);
        out.extend(payload);
        out
    }

    #[test]
    fn receptions_are_read() {
        let gro = control(libc::SOL_UDP, libc::UDP_GRO, 3);
        let drops = control(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 9);
        let both = [gro.clone(), drops.clone()].concat();
        let other = [control(1, 2, 3), gro.clone()].concat();
        for (control, payload, segment, dropped) in [
            (&[][..], &b"abcdefgh"[..], 8, None),
            (&gro, b"abcdefgh", 3, None),
            (&drops, b"abcdefgh", 8, Some(9)),
            (&both, b"abcdefgh", 3, Some(9)),
            (&other, b"abcdefgh", 3, None),
            // A segment that is no cut, and a datagram of nothing.
            (&gro, b"ab", 2, None),
            (&drops, b"", 1, Some(9)),
        ] {
            let mut buffer = reception(control, payload, payload.len() as u32, 0);
            let bytes = &mut payload.to_vec()[..];
            assert_eq!(parse(&mut buffer), Ok(Datagrams { bytes, segment, dropped }), "{control:?}");
        }
    }

    #[test]
    fn what_is_cut_short_is_said_to_be() {
        for buffer in [
            reception(&[], b"abc", 3, libc::MSG_TRUNC),
            reception(&[], b"abc", 3, libc::MSG_CTRUNC),
            reception(&[], b"abc", 4, 0),
            reception(&[0; CONTROL_BYTES], b"", 0, 0)[..HEADROOM - 1].to_vec(),
            {
                let mut buffer = reception(&[], b"abc", 3, 0);
                buffer[4..8].copy_from_slice(&(CONTROL_BYTES as u32 + 1).to_ne_bytes());
                buffer
            },
        ] {
            assert_eq!(parse(&mut buffer.clone()), Err(Truncated), "{buffer:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(mut buffer in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(datagrams) = parse(&mut buffer) {
                prop_assert!(datagrams.segment >= 1);
                prop_assert!(datagrams.segment <= datagrams.bytes.len().max(1));
            }
        }

        #[test]
        fn no_control_messages_are_too_strange(
            control in proptest::collection::vec(0u8..24, 0..=CONTROL_BYTES),
            payload in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut buffer = reception(&control, &payload, payload.len() as u32, 0);
            let read = parse(&mut buffer).map(|datagrams| datagrams.bytes.to_vec());
            prop_assert_eq!(read, Ok(payload));
        }
    }

    #[test]
    fn bytes_are_kept_until_their_failure_could_be_handled() {
        let mut outbox = Outbox::default();
        let bytes = b"first".to_vec();
        let (first, start) = (outbox.next(), bytes.as_ptr());
        outbox.keep(7, 8, bytes);
        assert_eq!(outbox.owner(first), Some((7, 8)));
        assert_eq!(outbox.take(first), None, "the kernel has not taken it yet");
        outbox.reaped();
        outbox.reaped();
        assert!(outbox.reuse().is_empty(), "nor however often was reaped");
        outbox.submitted();
        outbox.reaped();
        assert!(outbox.reuse().is_empty(), "its failure may just have been handed out");
        let second = outbox.next();
        assert_eq!(second, first + 1);
        outbox.keep(1, 2, b"second".to_vec());
        outbox.submitted();
        outbox.reaped();
        let reused = outbox.reuse();
        assert_eq!((reused.as_slice(), reused.as_ptr()), (&b"first"[..], start));
        assert_eq!(outbox.owner(first), None);
        assert_eq!(outbox.take(second).as_deref(), Some(&b"second"[..]));
        assert_eq!(outbox.take(second), None, "once");
    }

    #[test]
    fn the_memory_of_a_burst_is_given_back() {
        let mut outbox = Outbox::default();
        let round = |outbox: &mut Outbox, sends: usize| {
            for _ in 0..sends {
                outbox.reuse();
                outbox.keep(0, 0, vec![0; 8]);
            }
            outbox.submitted();
            outbox.reaped();
        };
        round(&mut outbox, 1000);
        for _ in 0..1000 {
            round(&mut outbox, 2);
        }
        assert!(outbox.kept.len() <= MOST_KEPT + 2, "{}", outbox.kept.len());
    }
}
