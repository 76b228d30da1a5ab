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

/// How many bytes [`write()`] takes for it.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of RFC 9000 appendix A.1, the last of which is not the shortest form.
    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(read(bytes), Some((value, bytes.len())));
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), None);
            }
        }
    }

    #[test]
    fn lengths_change_where_the_rfc_says() {
        for (value, length) in
            [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), ((1 << 30) - 1, 4), (1 << 30, 8), (MAX, 8)]
        {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            assert_eq!((bytes.len(), len(value)), (length, length), "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in 0..=MAX, shift in 0u32..62, after in any::<Vec<u8>>()) {
            let (value, mut bytes) = (value >> shift, Vec::new());
            write(&mut bytes, value);
            prop_assert_eq!(bytes.len(), len(value));
            let length = bytes.len();
            bytes.extend(after);
            prop_assert_eq!(read(&bytes), Some((value, length)));
        }
    }
}
