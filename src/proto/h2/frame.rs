//! Owns the frame layer: the nine bytes in front of every frame, and the frames a client writes
//! (RFC 9113 §4, §6).

/// Bytes of a frame header.
pub(super) const HEADER: usize = 9;

/// What a client says first (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types (RFC 9113 §6).
pub(super) mod kind {
    pub(in crate::proto::h2) const DATA: u8 = 0;
    pub(in crate::proto::h2) const HEADERS: u8 = 1;
    pub(in crate::proto::h2) const PRIORITY: u8 = 2;
    pub(in crate::proto::h2) const RST_STREAM: u8 = 3;
    pub(in crate::proto::h2) const SETTINGS: u8 = 4;
    pub(in crate::proto::h2) const PUSH_PROMISE: u8 = 5;
    pub(in crate::proto::h2) const PING: u8 = 6;
    pub(in crate::proto::h2) const GOAWAY: u8 = 7;
    pub(in crate::proto::h2) const WINDOW_UPDATE: u8 = 8;
    pub(in crate::proto::h2) const CONTINUATION: u8 = 9;
}

/// Flags (RFC 9113 §6). END_STREAM and ACK share a bit.
pub(super) mod flag {
    pub(in crate::proto::h2) const END_STREAM: u8 = 0x1;
    pub(in crate::proto::h2) const ACK: u8 = 0x1;
    pub(in crate::proto::h2) const END_HEADERS: u8 = 0x4;
    pub(in crate::proto::h2) const PADDED: u8 = 0x8;
    pub(in crate::proto::h2) const PRIORITY: u8 = 0x20;
}

/// Settings identifiers (RFC 9113 §6.5.2).
pub(super) mod setting {
    pub(in crate::proto::h2) const HEADER_TABLE_SIZE: u16 = 1;
    pub(in crate::proto::h2) const ENABLE_PUSH: u16 = 2;
    pub(in crate::proto::h2) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in crate::proto::h2) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in crate::proto::h2) const MAX_FRAME_SIZE: u16 = 5;
    pub(in crate::proto::h2) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// Payload bytes, below 2^24.
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Stream identifier; the reserved bit is ignored (RFC 9113 §4.1).
    pub(super) stream: u32,
}

impl Header {
    /// Reads a header.
    #[inline]
    pub(super) fn read(bytes: &[u8; HEADER]) -> Self {
        Self {
            length: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & STREAM_MASK,
        }
    }

    /// Whether a flag is set.
    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame header. `length` is below 2^24.
#[inline]
pub(super) fn header(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    out.extend_from_slice(&[
        length[1], length[2], length[3], kind, flags, stream[0], stream[1], stream[2], stream[3],
    ]);
}

/// Appends a field block as HEADERS and as many CONTINUATIONs as frames of `frame_size` take.
#[inline]
pub(super) fn headers(out: &mut Vec<u8>, block: &[u8], frame_size: usize, end_stream: bool, stream: u32) {
    let flags = if end_stream { flag::END_STREAM } else { 0 };
    if block.len() <= frame_size {
        header(out, block.len(), kind::HEADERS, flags | flag::END_HEADERS, stream);
        out.extend_from_slice(block);
        return;
    }
    let (first, mut rest) = block.split_at(frame_size);
    header(out, first.len(), kind::HEADERS, flags, stream);
    out.extend_from_slice(first);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(frame_size));
        let end = if after.is_empty() { flag::END_HEADERS } else { 0 };
        header(out, part.len(), kind::CONTINUATION, end, stream);
        out.extend_from_slice(part);
        rest = after;
    }
}

/// Appends SETTINGS.
pub(super) fn settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    header(out, settings.len() * 6, kind::SETTINGS, 0, 0);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of SETTINGS.
pub(super) fn settings_ack(out: &mut Vec<u8>) {
    header(out, 0, kind::SETTINGS, flag::ACK, 0);
}

/// Appends the answer to a PING.
pub(super) fn ping_ack(out: &mut Vec<u8>, data: [u8; 8]) {
    header(out, 8, kind::PING, flag::ACK, 0);
    out.extend_from_slice(&data);
}

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub(super) fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    header(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Appends RST_STREAM.
pub(super) fn rst_stream(out: &mut Vec<u8>, stream: u32, code: u32) {
    header(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Appends GOAWAY. A client processes no streams of the server's, so the last one is 0.
pub(super) fn goaway(out: &mut Vec<u8>, code: u32) {
    header(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Appends a whole frame that was made for stream 0, for `stream`.
#[inline]
pub(super) fn image(out: &mut Vec<u8>, image: &[u8], stream: u32) {
    let start = out.len();
    out.extend_from_slice(image);
    if let Some(place) = out.get_mut(start + 5..start + HEADER) {
        place.copy_from_slice(&stream.to_be_bytes());
    }
}

/// The frame size that every peer takes (RFC 9113 §4.2).
pub(super) const LEAST_SIZE: usize = 1 << 14;
/// The largest stream identifier.
pub(super) const STREAM_MASK: u32 = 0x7fff_ffff;
