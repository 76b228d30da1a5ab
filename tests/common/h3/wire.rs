//! Owns HTTP/3 as the scripted server writes it, right or wrong: variable-length integers (RFC 9000 §16),
//! frames (RFC 9114 §7) and field sections of static references and literals (RFC 9204 §4.5).

use crate::common::hpack;

/// Appends a variable-length integer in its shortest form.
pub(crate) fn varint(value: u64, out: &mut Vec<u8>) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// The integer that `bytes` begin with, and its length; `None` while it is not whole.
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

/// Several integers in a row.
pub(crate) fn varints(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| varint(*value, &mut out));
    out
}

/// A frame.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = varints(&[kind, payload.len() as u64]);
    out.extend_from_slice(payload);
    out
}

/// SETTINGS.
pub(crate) fn settings(settings: &[(u64, u64)]) -> Vec<u8> {
    let values: Vec<u64> = settings.iter().flat_map(|(id, value)| [*id, *value]).collect();
    frame(SETTINGS, &varints(&values))
}

/// GOAWAY with the first stream that is not processed.
pub(crate) fn goaway(first: u64) -> Vec<u8> {
    frame(GOAWAY, &varints(&[first]))
}

pub(crate) fn data(payload: &[u8]) -> Vec<u8> {
    frame(DATA, payload)
}

/// HEADERS of these fields.
pub(crate) fn headers(fields: &[(&str, &[u8])]) -> Vec<u8> {
    frame(HEADERS, &section(fields))
}

/// A field section that does without the dynamic table.
pub(crate) fn section(fields: &[(&str, &[u8])]) -> Vec<u8> {
    // Required Insert Count and Base are 0.
    let mut out = vec![0, 0];
    for (name, value) in fields {
        field(name, value, &mut out);
    }
    out
}

/// Bytes of a reserved type, setting or stream: 0x1f * n + 0x21 (RFC 9114 §7.2.8).
pub(crate) fn reserved(n: u64) -> u64 {
    0x1f * n + 0x21
}

fn field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    let exact = STATIC.iter().find(|(_, n, v)| *n == name && v.as_bytes() == value);
    if let Some((index, ..)) = exact {
        return hpack::integer(0xc0, 6, *index, out);
    }
    match STATIC.iter().find(|(_, n, _)| *n == name) {
        Some((index, ..)) => hpack::integer(0x50, 4, *index, out),
        None => {
            hpack::integer(0x20, 3, name.len(), out);
            out.extend_from_slice(name.as_bytes());
        }
    }
    hpack::string(value, out);
}

/// The part of RFC 9204 appendix A that answers use.
const STATIC: [(usize, &str, &str); 20] = [
    (4, "content-length", "0"),
    (6, "date", ""),
    (11, "link", ""),
    (12, "location", ""),
    (14, "set-cookie", ""),
    (24, ":status", "103"),
    (25, ":status", "200"),
    (26, ":status", "304"),
    (27, ":status", "404"),
    (28, ":status", "503"),
    (46, "content-type", "application/json"),
    (53, "content-type", "text/plain"),
    (59, "vary", "accept-encoding"),
    (63, ":status", "100"),
    (64, ":status", "204"),
    (65, ":status", "206"),
    (66, ":status", "302"),
    (67, ":status", "400"),
    (71, ":status", "500"),
    (92, "server", ""),
];

// Frames (RFC 9114 §7.2).
pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const CANCEL_PUSH: u64 = 0x3;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const PUSH_PROMISE: u64 = 0x5;
pub(crate) const GOAWAY: u64 = 0x7;
pub(crate) const MAX_PUSH_ID: u64 = 0xd;

// Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
pub(crate) const CONTROL: u64 = 0x0;
pub(crate) const PUSH: u64 = 0x1;
pub(crate) const ENCODER: u64 = 0x2;
pub(crate) const DECODER: u64 = 0x3;

// Settings (RFC 9114 §7.2.4.1, RFC 9204 §5).
pub(crate) const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
pub(crate) const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
pub(crate) const QPACK_BLOCKED_STREAMS: u64 = 0x7;

// Error codes (RFC 9114 §8.1, RFC 9204 §6).
pub(crate) const H3_NO_ERROR: u64 = 0x100;
pub(crate) const H3_GENERAL_PROTOCOL_ERROR: u64 = 0x101;
pub(crate) const H3_INTERNAL_ERROR: u64 = 0x102;
pub(crate) const H3_STREAM_CREATION_ERROR: u64 = 0x103;
pub(crate) const H3_CLOSED_CRITICAL_STREAM: u64 = 0x104;
pub(crate) const H3_FRAME_UNEXPECTED: u64 = 0x105;
pub(crate) const H3_FRAME_ERROR: u64 = 0x106;
pub(crate) const H3_EXCESSIVE_LOAD: u64 = 0x107;
pub(crate) const H3_ID_ERROR: u64 = 0x108;
pub(crate) const H3_SETTINGS_ERROR: u64 = 0x109;
pub(crate) const H3_MISSING_SETTINGS: u64 = 0x10a;
pub(crate) const H3_REQUEST_REJECTED: u64 = 0x10b;
pub(crate) const H3_REQUEST_CANCELLED: u64 = 0x10c;
pub(crate) const H3_REQUEST_INCOMPLETE: u64 = 0x10d;
pub(crate) const H3_MESSAGE_ERROR: u64 = 0x10e;
pub(crate) const H3_CONNECT_ERROR: u64 = 0x10f;
pub(crate) const H3_VERSION_FALLBACK: u64 = 0x110;
pub(crate) const QPACK_DECOMPRESSION_FAILED: u64 = 0x200;
pub(crate) const QPACK_ENCODER_STREAM_ERROR: u64 = 0x201;
pub(crate) const QPACK_DECODER_STREAM_ERROR: u64 = 0x202;
