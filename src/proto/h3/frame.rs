//! Owns the frame layer: type and length in front of every frame and stream, and the frames a client writes
//! (RFC 9114 §6.2, §7).

use crate::proto::quic::varint;

/// Frame types (RFC 9114 §7.2).
pub(super) mod kind {
    pub(in crate::proto::h3) const DATA: u64 = 0x00;
    pub(in crate::proto::h3) const HEADERS: u64 = 0x01;
    pub(in crate::proto::h3) const CANCEL_PUSH: u64 = 0x03;
    pub(in crate::proto::h3) const SETTINGS: u64 = 0x04;
    pub(in crate::proto::h3) const PUSH_PROMISE: u64 = 0x05;
    pub(in crate::proto::h3) const GOAWAY: u64 = 0x07;
    pub(in crate::proto::h3) const MAX_PUSH_ID: u64 = 0x0d;
}

/// Whether a frame type is one of HTTP/2 that HTTP/3 must not see (RFC 9114 §7.2.8).
#[inline]
pub(super) fn is_of_http2(kind: u64) -> bool {
    matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Unidirectional stream types (RFC 9114 §6.2, RFC 9204 §4.2).
pub(super) mod stream {
    pub(in crate::proto::h3) const CONTROL: u64 = 0x00;
    pub(in crate::proto::h3) const PUSH: u64 = 0x01;
    pub(in crate::proto::h3) const QPACK_ENCODER: u64 = 0x02;
    pub(in crate::proto::h3) const QPACK_DECODER: u64 = 0x03;
}

/// Settings identifiers (RFC 9114 §7.2.4.1, RFC 9204 §5).
pub(super) mod setting {
    pub(in crate::proto::h3) const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
    pub(in crate::proto::h3) const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    pub(in crate::proto::h3) const QPACK_BLOCKED_STREAMS: u64 = 0x07;

    /// Whether it is reserved because HTTP/2 has it (RFC 9114 §11.2.2).
    pub(in crate::proto::h3) fn is_of_http2(id: u64) -> bool {
        matches!(id, 0x00 | 0x02..=0x05)
    }
}

/// A reserved value, of which receivers must think nothing: 0x1f * N + 0x21 (RFC 9114 §7.2.4.1), for an N
/// made of `seed`, so that the whole takes four bytes at most.
pub(super) fn reserved(seed: u64) -> u64 {
    0x1f * (seed % (1 << 24)) + 0x21
}

/// Appends a frame.
pub(super) fn write(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    varint::write(out, kind);
    varint::write(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// Variable-length integers that came in pieces: at most two of them, a type and a length.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Partial {
    bytes: [u8; 16],
    len: u8,
}

impl Partial {
    /// Nothing of the next one has come.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads a frame's type and length off the front of `input`. `None`: more is needed, and all of `input`
    /// is kept.
    #[inline]
    pub(super) fn frame(&mut self, input: &mut &[u8]) -> Option<(u64, u64)> {
        self.read(input, |bytes| {
            let (kind, first) = varint::read(bytes)?;
            let (length, second) = varint::read(&bytes[first..])?;
            Some(((kind, length), first + second))
        })
    }

    /// Reads one integer, as [`Partial::frame`].
    #[inline]
    pub(super) fn integer(&mut self, input: &mut &[u8]) -> Option<u64> {
        self.read(input, varint::read)
    }

    #[inline]
    fn read<V>(&mut self, input: &mut &[u8], parse: impl Fn(&[u8]) -> Option<(V, usize)>) -> Option<V> {
        if self.is_empty()
            && let Some((value, taken)) = parse(input)
        {
            *input = &input[taken..];
            return Some(value);
        }
        self.read_slowly(input, parse)
    }

    #[cold]
    fn read_slowly<V>(
        &mut self,
        input: &mut &[u8],
        parse: impl Fn(&[u8]) -> Option<(V, usize)>,
    ) -> Option<V> {
        while let Some((&byte, rest)) = input.split_first() {
            // What is parsed takes at most all of the room, so that it is parsed before there is none.
            *self.bytes.get_mut(usize::from(self.len))? = byte;
            self.len += 1;
            *input = rest;
            if let Some((value, _)) = parse(&self.bytes[..usize::from(self.len)]) {
                self.len = 0;
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However it is cut, and behind it nothing is taken.
        #[test]
        fn frame_headers_in_pieces(
            kind in 0..=varint::MAX, length in 0..=varint::MAX, behind: Vec<u8>, at: prop::sample::Index,
        ) {
            let mut bytes = Vec::new();
            varint::write(&mut bytes, kind);
            varint::write(&mut bytes, length);
            let at = at.index(bytes.len());
            bytes.extend_from_slice(&behind);
            let (mut front, mut back) = bytes.split_at(at);
            let mut partial = Partial::default();
            prop_assert_eq!(partial.frame(&mut front), None);
            prop_assert!(front.is_empty());
            prop_assert_eq!(partial.frame(&mut back), Some((kind, length)));
            prop_assert_eq!(back, &behind[..]);
            prop_assert!(partial.is_empty());
        }

        #[test]
        fn reserved_values(seed: u64) {
            prop_assert_eq!((reserved(seed) - 0x21) % 0x1f, 0);
            prop_assert!(varint::len(reserved(seed)) <= 4);
        }
    }
}
