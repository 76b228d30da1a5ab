//! Owns the Huffman code of RFC 7541 appendix B, which HPACK and QPACK share.
//!
//! The code is canonical: codes grow with their length, and within a length with the symbol. So the
//! lengths alone say what it is, and everything else is computed from them when this is compiled.

/// Why these octets are no Huffman-coded string (RFC 7541 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum HuffmanError {
    /// The end-of-string symbol, which never stands in a string.
    #[error("the end-of-string symbol inside a Huffman-coded string")]
    EndOfString,
    /// Eight or more bits behind the last symbol, or some that are not ones.
    #[error("padding of a Huffman-coded string that is longer than 7 bits or not all ones")]
    Padding,
}

/// Appends to `out` what `coded` says.
///
/// # Errors
/// When it is no whole number of symbols and padding; `out` then holds the symbols before the fault.
pub(in crate::proto) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    // The shortest codes have five bits.
    out.reserve(coded.len().saturating_mul(8) / 5);
    let mut rest = coded;
    // The next bits, the first of them on top; there are `have` of them, and zeros below.
    let mut bits = 0_u64;
    let mut have = 0_u32;
    loop {
        // More than the longest code, unless the input is used up.
        while have <= 56 {
            let Some((&octet, behind)) = rest.split_first() else { break };
            bits |= u64::from(octet) << (56 - have);
            have += 8;
            rest = behind;
        }
        if have == 0 {
            return Ok(());
        }
        // Ones behind the end make padding look like the start of the end-of-string symbol, and
        // nothing else: no symbol that fits into what is there is made of ones alone.
        let (symbol, length) = symbol(bits | (u64::MAX >> (have - 1) >> 1));
        if length > have {
            let ones = bits.leading_ones() == have;
            return if ones && have < 8 { Ok(()) } else { Err(HuffmanError::Padding) };
        }
        let Ok(octet) = u8::try_from(symbol) else { return Err(HuffmanError::EndOfString) };
        out.push(octet);
        bits <<= length;
        have -= length;
    }
}

/// How many octets [`encode`] makes of `text`.
pub(in crate::proto) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&octet| usize::from(LENGTHS[usize::from(octet)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `text`, padded with ones.
pub(in crate::proto) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut bits = 0_u64;
    let mut have = 0_u32;
    for &octet in text {
        let length = u32::from(LENGTHS[usize::from(octet)]);
        // At most 7 bits are left over and at most 30 come.
        bits = bits << length | u64::from(CODES[usize::from(octet)]);
        have += length;
        while have >= 8 {
            have -= 8;
            out.push((bits >> have) as u8);
        }
    }
    if have > 0 {
        out.push((bits << (8 - have)) as u8 | u8::MAX >> have);
    }
}

/// The symbol that these bits start with, the first of them on top, and the length of its code.
#[inline]
fn symbol(bits: u64) -> (u16, u32) {
    let (octet, length) = SHORT[(bits >> (64 - SHORT_BITS)) as usize];
    if length != 0 { (octet.into(), length.into()) } else { long_symbol(bits) }
}

/// The symbol of a code of more than [`SHORT_BITS`] bits.
fn long_symbol(bits: u64) -> (u16, u32) {
    let mut length = SHORT_BITS as usize + 1;
    loop {
        // Codes of one length follow each other, and those above them are the starts of longer ones.
        let code = (bits >> (64 - length)) as u32;
        let Group { first, count, symbols } = GROUPS[length];
        // Below the first is impossible: those are shorter codes, or looked for before.
        let at = code.wrapping_sub(first);
        if at < count {
            return (ORDER[(symbols + at) as usize], length as u32);
        }
        // The code is complete: the longest group takes whatever is left.
        debug_assert!(length < LONGEST, "a complete code");
        length += 1;
    }
}

/// Symbols: the 256 octets and end-of-string.
const SYMBOLS: usize = 257;

/// Bits of the longest code.
const LONGEST: usize = 30;

/// Bits by which most symbols are found in one step.
const SHORT_BITS: u32 = 8;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Group {
    /// The lowest of them.
    first: u32,
    count: u32,
    /// Where their symbols start in [`ORDER`].
    symbols: u32,
}

/// Bits of each symbol's code (RFC 7541 appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// For each length, its codes.
static GROUPS: [Group; LONGEST + 1] = groups();

/// Symbols in the order of their codes.
static ORDER: [u16; SYMBOLS] = order();

/// Each symbol's code, in the lowest bits.
static CODES: [u32; SYMBOLS] = codes();

/// For each value of the next [`SHORT_BITS`] bits, the symbol they start with and the length of its
/// code; length 0 when that is longer.
static SHORT: [(u8, u8); 1 << SHORT_BITS] = short();

const fn groups() -> [Group; LONGEST + 1] {
    let mut groups = [Group { first: 0, count: 0, symbols: 0 }; LONGEST + 1];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        groups[LENGTHS[symbol] as usize].count += 1;
        symbol += 1;
    }
    let mut length = 1;
    while length <= LONGEST {
        let below = groups[length - 1];
        groups[length].first = (below.first + below.count) << 1;
        groups[length].symbols = below.symbols + below.count;
        length += 1;
    }
    let longest = groups[LONGEST];
    assert!(longest.first + longest.count == 1 << LONGEST, "the code is complete");
    groups
}

const fn order() -> [u16; SYMBOLS] {
    let groups = groups();
    let codes = codes();
    let mut order = [0; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let group = groups[LENGTHS[symbol] as usize];
        order[(group.symbols + codes[symbol] - group.first) as usize] = symbol as u16;
        symbol += 1;
    }
    order
}

const fn codes() -> [u32; SYMBOLS] {
    let mut groups = groups();
    let mut codes = [0; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let group = &mut groups[LENGTHS[symbol] as usize];
        codes[symbol] = group.first;
        group.first += 1;
        symbol += 1;
    }
    codes
}

const fn short() -> [(u8, u8); 1 << SHORT_BITS] {
    let codes = codes();
    let mut short = [(0, 0); 1 << SHORT_BITS];
    let mut symbol = 0;
    // End-of-string is not among the short codes.
    while symbol < 256 {
        let length = LENGTHS[symbol] as u32;
        if length <= SHORT_BITS {
            let spare = SHORT_BITS - length;
            let mut at = (codes[symbol] << spare) as usize;
            let end = at + (1 << spare);
            while at < end {
                short[at] = (symbol as u8, length as u8);
                at += 1;
            }
        }
        symbol += 1;
    }
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of appendix B from all over it.
    #[test]
    fn codes_of_appendix_b() {
        let rows: [(usize, u32, u8); 17] = [
            (0, 0x1ff8, 13),
            (1, 0x7f_ffd8, 23),
            (9, 0xff_ffea, 24),
            (10, 0x3fff_fffc, 30),
            (32, 0x14, 6),
            (48, 0x0, 5),
            (88, 0xfc, 8),
            (90, 0xfd, 8),
            (92, 0x7_fff0, 19),
            (97, 0x3, 5),
            (116, 0x9, 5),
            (127, 0xfff_fffc, 28),
            (128, 0xf_ffe6, 20),
            (199, 0x1ff_ffec, 25),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
            (256, 0x3fff_ffff, 30),
        ];
        for (symbol, code, length) in rows {
            assert_eq!((CODES[symbol], LENGTHS[symbol]), (code, length), "symbol {symbol}");
        }
    }

    #[test]
    fn every_octet_returns() {
        let all: Vec<u8> = (0..=255).collect();
        let mut coded = Vec::new();
        encode(&all, &mut coded);
        assert_eq!(coded.len(), encoded_len(&all));
        let mut text = Vec::new();
        assert_eq!(decode(&coded, &mut text), Ok(()));
        assert_eq!(text, all);
    }

    #[test]
    fn padding_and_end_of_string() {
        use HuffmanError::{EndOfString, Padding};
        let cases: [(&[u8], Result<&str, HuffmanError>); 12] = [
            (&[], Ok("")),
            // "a" is 00011.
            (&[0b0001_1111], Ok("a")),
            (&[0b0001_1110], Err(Padding)),
            (&[0b0001_1000], Err(Padding)),
            (&[0b0001_1011], Err(Padding)),
            // Eight bits of padding and more.
            (&[0xff], Err(Padding)),
            (&[0b0001_1111, 0xff], Err(Padding)),
            (&[0b0001_1111, 0xff, 0xff, 0xff], Err(Padding)),
            // "&" is 11111000, "Z" 11111101: whole octets need no padding.
            (&[0xf8], Ok("&")),
            (&[0xfd, 0xff], Err(Padding)),
            (&[0xff, 0xff, 0xff, 0xff], Err(EndOfString)),
            (&[0b0001_1111, 0xff, 0xff, 0xff, 0xff, 0xff], Err(EndOfString)),
        ];
        for (coded, expected) in cases {
            let mut text = Vec::new();
            let result = decode(coded, &mut text).map(|()| text.as_slice());
            assert_eq!(result, expected.map(str::as_bytes), "{coded:02x?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: Vec<u8>) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), encoded_len(&text));
            let mut back = Vec::new();
            prop_assert_eq!(decode(&coded, &mut back), Ok(()));
            prop_assert_eq!(back, text);
        }

        /// The code leaves no second way to say a text.
        #[test]
        fn what_is_decoded_is_the_only_code_of_it(coded in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut text = Vec::new();
            if decode(&coded, &mut text).is_ok() {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
