//! Owns integers with a prefix (RFC 7541 §5.1), which HPACK and QPACK share.

/// Largest value that is read: RFC 9204 §4.1.1 asks for 62 bits, RFC 7541 leaves the limit open.
pub(in crate::proto) const MAX: u64 = (1 << 62) - 1;

/// Why no integer could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proto) enum IntegerError {
    /// The input ends inside the integer.
    Truncated,
    /// A value above [`MAX`], or more than nine continuation octets.
    Overflow,
}

/// Reads an integer whose first octet holds it in its lowest `prefix` bits, 1 to 8, off the front of
/// `input`.
///
/// # Errors
/// When it is cut off or too large; `input` is then anywhere inside it.
#[inline]
pub(in crate::proto) fn decode(prefix: u32, input: &mut &[u8]) -> Result<u64, IntegerError> {
    let first = take(input)?;
    let full = mask(prefix);
    let value = first & full;
    if value < full { Ok(value.into()) } else { continued(value, input) }
}

/// The value whose prefix bits are all ones: its continuation octets, least significant first.
fn continued(prefix_value: u8, input: &mut &[u8]) -> Result<u64, IntegerError> {
    let mut value = u64::from(prefix_value);
    // Nine octets of seven bits hold 63 bits, so that no sum of them and the prefix overflows.
    for shift in (0..63).step_by(7) {
        let octet = take(input)?;
        value += u64::from(octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return if value <= MAX { Ok(value) } else { Err(IntegerError::Overflow) };
        }
    }
    Err(IntegerError::Overflow)
}

/// Appends `value` with a prefix of so many bits, 1 to 8; `flags` are the bits of the first octet above it.
pub(in crate::proto) fn encode(value: u64, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let full = mask(prefix);
    debug_assert_eq!(flags & full, 0, "flags stand above the prefix");
    if value < u64::from(full) {
        out.push(flags | value as u8); // Below `full`, so that it fits.
        return;
    }
    out.push(flags | full);
    let mut rest = value - u64::from(full);
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The lowest `prefix` bits.
#[inline]
fn mask(prefix: u32) -> u8 {
    debug_assert!((1..=8).contains(&prefix), "a prefix has 1 to 8 bits");
    u8::MAX >> (8 - prefix)
}

#[inline]
fn take(input: &mut &[u8]) -> Result<u8, IntegerError> {
    let (&octet, rest) = input.split_first().ok_or(IntegerError::Truncated)?;
    *input = rest;
    Ok(octet)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_rfc_7541_c_1() {
        let cases: [(u64, u32, &[u8]); 3] =
            [(10, 5, &[0b01010]), (1337, 5, &[0b11111, 0b1001_1010, 0b1010]), (42, 8, &[0b10_1010])];
        for (value, prefix, octets) in cases {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, octets, "{value} of {prefix} bits");
            assert_eq!(decode(prefix, &mut &octets[..]), Ok(value));
        }
    }

    #[test]
    fn what_is_no_integer() {
        use IntegerError::{Overflow, Truncated};
        let cases: [(&[u8], IntegerError); 7] = [
            (&[], Truncated),
            (&[0x7f], Truncated),
            (&[0x7f, 0x80], Truncated),
            (&[0x7f, 0xff, 0xff, 0xff, 0xff], Truncated),
            // 2^63 - 1 + 127: more than 62 bits.
            (&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], Overflow),
            (&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Overflow),
            // Zero, padded beyond nine octets.
            (&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], Overflow),
        ];
        for (octets, error) in cases {
            assert_eq!(decode(7, &mut &octets[..]), Err(error), "{octets:02x?}");
        }
        let padded = [0x7f, 0x80, 0x80, 0x00];
        assert_eq!(decode(7, &mut &padded[..]), Ok(127), "padding is a longer way to say the same");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            value in prop_oneof![0..=MAX, 0..600_u64, Just(MAX)],
            prefix in 1..=8_u32,
            behind: Vec<u8>,
        ) {
            let mut out = Vec::new();
            let flags = !mask(prefix);
            encode(value, prefix, flags, &mut out);
            prop_assert_eq!(out[0] & flags, flags);
            out.extend_from_slice(&behind);
            let mut input = &out[..];
            prop_assert_eq!(decode(prefix, &mut input), Ok(value));
            prop_assert_eq!(input, &behind[..]);
        }
    }
}
