//! Owns variable-length integers (RFC 9000 §16).

/// Reads an integer; how many bytes it took is beside it. `None`: more bytes are needed.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let len = 1usize << (first >> 6);
    if len == 1 {
        return Some((u64::from(first), 1));
    }
    let mut value = u64::from(first & 0x3f);
    for byte in bytes.get(1..len)? {
        value = value << 8 | u64::from(*byte);
    }
    Some((value, len))
}

/// Appends `value`, at most 2^62 - 1, in its shortest form.
#[inline]
pub fn write(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= MAX, "an integer of at most 62 bits");
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// How many bytes [`write`] takes for it.
#[inline]
pub fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// The largest integer.
pub const MAX: u64 = (1 << 62) - 1;
