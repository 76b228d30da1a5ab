//! Owns string literals (RFC 7541 §5.2), which QPACK takes with other prefixes (RFC 9204 §4.1.2).

use super::huffman::{self, HuffmanError};
use super::integer::{self, IntegerError};

/// Why no string literal could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proto) enum StringError {
    /// Its length is cut off, or does not fit in 32 bits.
    Length(IntegerError),
    /// The input ends inside it.
    Truncated,
    /// It is no Huffman code.
    Huffman(HuffmanError),
}

/// Reads a string literal off the front of `input`, whose first octet has its length in the lowest
/// `prefix` bits, 1 to 7, and whether it is Huffman-coded in the bit above. `scratch` takes it when it has
/// to be decoded.
///
/// # Errors
/// When it is cut off, or is no Huffman code; `input` is then anywhere inside it.
#[inline]
pub(in crate::proto) fn decode<'out, 'input: 'out>(
    prefix: u32,
    input: &mut &'input [u8],
    scratch: &'out mut Vec<u8>,
) -> Result<&'out [u8], StringError> {
    let huffman_coded = input.first().is_some_and(|first| first & 1 << prefix != 0);
    let length = integer::decode(prefix, input).map_err(StringError::Length)?;
    let length = u32::try_from(length).map_err(|_| StringError::Length(IntegerError::Overflow))?;
    let (octets, rest) = input.split_at_checked(length as usize).ok_or(StringError::Truncated)?;
    *input = rest;
    if !huffman_coded {
        return Ok(octets);
    }
    scratch.clear();
    huffman::decode(octets, scratch).map_err(StringError::Huffman)?;
    Ok(scratch)
}

/// Appends a string literal, Huffman-coded when that is shorter; `flags` are the bits of the first octet
/// above the one that says so.
pub(in crate::proto) fn encode(text: &[u8], prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::encode(coded as u64, prefix, flags | 1 << prefix, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len() as u64, prefix, flags, out);
        out.extend_from_slice(text);
    }
}
