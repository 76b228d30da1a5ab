//! Owns packet headers (RFC 9000 §17, RFC 8999) and packet numbers: parsing what arrives, writing what
//! leaves, the integrity of Retry (RFC 9001 §5.8).

use std::ops::Range;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::varint;

/// A connection id: up to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CID],
}

impl ConnectionId {
    /// From at most 20 bytes; `None` for more.
    pub(super) fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_CID];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self { len: from.len() as u8, bytes })
    }
}

impl std::ops::Deref for ConnectionId {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(MAX_CID)]
    }
}

impl std::fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Packets with a long header that are protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LongType {
    /// Initial.
    Initial,
    /// 0-RTT; a server never sends it.
    ZeroRtt,
    /// Handshake.
    Handshake,
}

/// One packet of a datagram, its header read as far as it is not protected. Ranges are offsets from the
/// packet's first byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Packet {
    /// Of the 1-RTT kind; it takes the whole rest of the datagram.
    Short {
        /// Where the packet number begins.
        number_at: usize,
    },
    /// Initial, 0-RTT or Handshake.
    Long {
        /// Which.
        kind: LongType,
        /// The sender's connection id.
        source: ConnectionId,
        /// Where the packet number begins.
        number_at: usize,
        /// Where the packet ends.
        end: usize,
    },
    /// Retry; it takes the whole rest of the datagram.
    Retry {
        /// The sender's connection id.
        source: ConnectionId,
        /// The token to be sent in every Initial from now on.
        token: Range<usize>,
    },
    /// Version Negotiation.
    Versions {
        /// The connection id it answers with.
        source: ConnectionId,
        /// Versions the server offers.
        offered: Vec<u32>,
    },
}

/// Reads the header of the first packet in `bytes` for an endpoint whose connection ids are `own_len` bytes
/// long, together with the destination connection id; `None`: this is no packet that could be used.
pub(super) fn parse(bytes: &[u8], own_len: usize) -> Option<(ConnectionId, Packet)> {
    let first = *bytes.first()?;
    if first & LONG == 0 {
        let destination = ConnectionId::new(bytes.get(1..1 + own_len)?)?;
        return Some((destination, Packet::Short { number_at: 1 + own_len }));
    }
    let version = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?);
    let (destination, at) = read_cid(bytes, 5)?;
    let (source, at) = read_cid(bytes, at)?;
    let packet = match version {
        0 => {
            let offered = bytes.get(at..)?.chunks_exact(4);
            let offered =
                offered.filter_map(|four| Some(u32::from_be_bytes(four.try_into().ok()?))).collect();
            Packet::Versions { source, offered }
        }
        V1 => parse_v1(bytes, first, source, at)?,
        _ => return None,
    };
    Some((destination, packet))
}

fn parse_v1(bytes: &[u8], first: u8, source: ConnectionId, mut at: usize) -> Option<Packet> {
    let kind = match first >> 4 & 3 {
        0 => LongType::Initial,
        1 => LongType::ZeroRtt,
        2 => LongType::Handshake,
        _ => {
            let end = bytes.len().checked_sub(RETRY_TAG).filter(|end| *end >= at)?;
            return Some(Packet::Retry { source, token: at..end });
        }
    };
    if kind == LongType::Initial {
        let (len, took) = varint::read(&bytes[at..])?;
        at = at.checked_add(took)?.checked_add(usize::try_from(len).ok()?)?;
    }
    let (len, took) = varint::read(bytes.get(at..)?)?;
    let number_at = at + took;
    let end = number_at.checked_add(usize::try_from(len).ok()?).filter(|end| *end <= bytes.len())?;
    Some(Packet::Long { kind, source, number_at, end })
}

fn read_cid(bytes: &[u8], at: usize) -> Option<(ConnectionId, usize)> {
    let len = usize::from(*bytes.get(at)?);
    let end = at + 1 + len;
    Some((ConnectionId::new(bytes.get(at + 1..end)?)?, end))
}

/// Writes a long header up to and with the packet number (2 bytes). The length field, 2 bytes, is to be
/// filled in by [`set_length`] at the returned offset.
pub(super) fn write_long(
    out: &mut Vec<u8>,
    kind: LongType,
    destination: &[u8],
    source: &[u8],
    token: &[u8],
    number: u64,
) -> usize {
    let kind_bits = match kind {
        LongType::Initial => 0,
        LongType::ZeroRtt => 1,
        LongType::Handshake => 2,
    };
    out.push(LONG | FIXED | kind_bits << 4 | (LONG_NUMBER as u8 - 1));
    out.extend_from_slice(&V1.to_be_bytes());
    out.push(destination.len() as u8);
    out.extend_from_slice(destination);
    out.push(source.len() as u8);
    out.extend_from_slice(source);
    if kind == LongType::Initial {
        varint::write(out, token.len() as u64);
        out.extend_from_slice(token);
    }
    let length_at = out.len();
    out.extend_from_slice(&[0x40, 0]);
    out.extend_from_slice(&(number as u32).to_be_bytes()[4 - LONG_NUMBER..]);
    length_at
}

/// Fills in the length field of a long header: what follows it, the tag included, at most 16383 bytes.
pub(super) fn set_length(out: &mut [u8], length_at: usize, length: usize) {
    out[length_at..length_at + 2].copy_from_slice(&(length as u16 & 0x3fff | 0x4000).to_be_bytes());
}

/// Writes a short header and returns the length of its packet number.
#[inline]
pub(super) fn write_short(
    out: &mut Vec<u8>,
    destination: &[u8],
    phase: bool,
    number: u64,
    largest_acked: Option<u64>,
    fixed: bool,
) -> usize {
    let len = number_length(number, largest_acked);
    let fixed = if fixed { FIXED } else { 0 };
    out.push(fixed | u8::from(phase) << 2 | (len as u8 - 1));
    out.extend_from_slice(destination);
    out.extend_from_slice(&(number as u32).to_be_bytes()[4 - len..]);
    len
}

/// Bytes that a packet number needs so that the peer can tell it from all that may be under way
/// (RFC 9000 §A.2).
#[inline]
pub(super) fn number_length(number: u64, largest_acked: Option<u64>) -> usize {
    let unacked = largest_acked.map_or(number + 1, |acked| number.saturating_sub(acked));
    match unacked {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    }
}

/// The packet number of which `len` bytes were sent (RFC 9000 §A.3); `expected` is one above the largest
/// one received.
#[inline]
pub(super) fn decode_number(expected: u64, truncated: u64, len: usize) -> u64 {
    let window = 1u64 << (len * 8);
    let candidate = (expected & !(window - 1)) | truncated;
    if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Whether the last 16 bytes of a Retry packet vouch for it, given the destination connection id of the
/// Initial that it answers.
pub(super) fn retry_is_genuine(packet: &[u8], original: &[u8]) -> bool {
    let Some(at) = packet.len().checked_sub(RETRY_TAG) else { return false };
    let mut pseudo = vec![original.len() as u8];
    pseudo.extend_from_slice(original);
    pseudo.extend_from_slice(&packet[..at]);
    let Ok(key) = UnboundKey::new(&AES_128_GCM, &RETRY_KEY) else { return false };
    let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
    let tag = LessSafeKey::new(key).seal_in_place_separate_tag(nonce, Aad::from(pseudo), &mut []);
    tag.is_ok_and(|tag| tag.as_ref() == &packet[at..])
}

const MAX_CID: usize = 20;
/// QUIC version 1.
pub(super) const V1: u32 = 1;
/// Bytes of a packet number in long headers as written here: more are never under way in a handshake.
pub(super) const LONG_NUMBER: usize = 2;
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const RETRY_TAG: usize = 16;
/// RFC 9001 §5.8.
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// RFC 9001 §A.4, and RFC 9000 §A.2 and §A.3.
    #[test]
    fn the_examples_of_the_rfcs_hold() {
        let retry = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
        let original = hex("8394c8f03e515708");
        assert!(retry_is_genuine(&retry, &original));
        assert!(!retry_is_genuine(&retry, &original[1..]));
        let (destination, packet) = parse(&retry, 8).unwrap();
        let source = ConnectionId::new(&hex("f067a5502a4262b5")).unwrap();
        assert_eq!((destination.len(), packet), (0, Packet::Retry { source, token: 15..20 }));
        assert_eq!(decode_number(0xa82f_30ea + 1, 0x9b32, 2), 0xa82f_9b32);
        assert_eq!(number_length(0xac_5c02, Some(0xab_e8b3)), 2);
        assert_eq!(number_length(0xac_e8fe, Some(0xab_e8b3)), 3);
    }

    #[test]
    fn cut_and_hostile_headers_are_no_packets() {
        let whole = hex("c00000000108000102030405060708f067a5502a4262b50040750123");
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len], 8), None, "{len} bytes");
        }
        for bytes in ["c000000001ff00", "c0000000011500", "c00000000100ff", "ff0000000100000102"] {
            assert_eq!(parse(&hex(bytes), 8), None, "{bytes}");
        }
        assert_eq!(parse(&hex("c06b3343cf0000"), 8), None, "an unknown version");
        let (_, versions) = parse(&hex("8000000000000008000000000000001a2a3a4a00"), 8).unwrap();
        assert!(matches!(versions, Packet::Versions { .. }), "{versions:?}");
    }

    proptest::proptest! {
        #[test]
        fn numbers_survive_truncation(acked in 0u64..1 << 40, ahead in 1u64..1 << 20, behind in 0u64..1 << 10) {
            let number = acked + ahead;
            let len = number_length(number, Some(acked));
            let truncated = number & ((1u64 << (len * 8)) - 1);
            let expected = (number - behind.min(ahead - 1)).max(acked + 1);
            proptest::prop_assert_eq!(decode_number(expected, truncated, len), number);
        }
    }

    pub(in crate::proto::quic) fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }
}
