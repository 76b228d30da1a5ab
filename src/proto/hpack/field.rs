//! Owns what a name and a value mean: all that is kept of a field line.

use super::Malformed;

/// A field line without its text, as the tables keep it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proto) struct Field {
    /// Bytes of the name.
    pub(in crate::proto) name_len: u32,
    /// Bytes of name and value, and [`OVERHEAD`].
    pub(in crate::proto) size: u32,
    pub(in crate::proto) name: Name,
    pub(in crate::proto) meaning: Meaning,
}

/// What a name alone says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proto) enum Name {
    /// `:status`.
    Status,
    /// `content-length`.
    ContentLength,
    /// Any other that is allowed.
    Ordinary,
    /// One that is not, whatever its value.
    Malformed(Malformed),
}

/// What a name and its value say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proto) enum Meaning {
    Ordinary,
    Status(u16),
    ContentLength(u64),
    Malformed(Malformed),
}

/// Bytes that an entry counts besides its name and value (RFC 7541 §4.1).
pub(in crate::proto) const OVERHEAD: u64 = 32;

impl Field {
    /// The field of this name, of so many bytes, and this value.
    #[inline]
    pub(in crate::proto) fn new(name: Name, name_len: u32, value: &[u8]) -> Self {
        Self { name_len, size: entry_size(name_len.into(), value.len()), name, meaning: meaning(name, value) }
    }

    /// All entries of a static table.
    pub(in crate::proto) const fn of_statics<const N: usize>(table: &[(&str, &str); N]) -> [Self; N] {
        let mut fields = [Self::of_static(table[0].0, table[0].1); N];
        let mut at = 0;
        while at < N {
            fields[at] = Self::of_static(table[at].0, table[at].1);
            at += 1;
        }
        fields
    }

    /// An entry of a static table.
    pub(in crate::proto) const fn of_static(name: &str, value: &str) -> Self {
        let kind = Name::of(name.as_bytes());
        let meaning = match kind {
            Name::Status => match status(value.as_bytes()) {
                Some(status) => Meaning::Status(status),
                None => panic!("the static tables have proper codes"),
            },
            Name::ContentLength => match value.as_bytes() {
                b"" => Meaning::Malformed(Malformed::InvalidContentLength),
                b"0" => Meaning::ContentLength(0),
                _ => panic!("the static tables have no other"),
            },
            Name::Ordinary => Meaning::Ordinary,
            Name::Malformed(reason) => Meaning::Malformed(reason),
        };
        let name_len = name.len() as u32;
        Self { name_len, size: entry_size(name_len as u64, value.len()), name: kind, meaning }
    }
}

impl Name {
    pub(in crate::proto) const fn of(name: &[u8]) -> Self {
        match name {
            b":status" => Self::Status,
            b"content-length" => Self::ContentLength,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                Self::Malformed(Malformed::ConnectionSpecificField)
            }
            [b':', ..] => Self::Malformed(Malformed::UnknownPseudoHeader),
            [] => Self::Malformed(Malformed::InvalidName),
            _ => match name_fault(name) {
                Some(reason) => Self::Malformed(reason),
                None => Self::Ordinary,
            },
        }
    }
}

/// Bytes of an entry (RFC 7541 §4.1). No table and no list holds 4 GiB, so that a size beyond
/// that is as good as any other.
#[inline]
pub(in crate::proto) const fn entry_size(name_len: u64, value_len: usize) -> u32 {
    let size = name_len.saturating_add(value_len as u64).saturating_add(OVERHEAD);
    if size > u32::MAX as u64 { u32::MAX } else { size as u32 }
}

/// The first byte that rules a name out (RFC 9113 §8.2.1), by what it is.
const fn name_fault(name: &[u8]) -> Option<Malformed> {
    let mut at = 0;
    while at < name.len() {
        match name[at] {
            b'A'..=b'Z' => return Some(Malformed::UppercaseName),
            0..=0x20 | b':' | 0x7f..=0xff => return Some(Malformed::InvalidName),
            _ => {}
        }
        at += 1;
    }
    None
}

#[inline]
fn meaning(name: Name, value: &[u8]) -> Meaning {
    match name {
        Name::Malformed(reason) => Meaning::Malformed(reason),
        Name::Status => status(value).map_or(Meaning::Malformed(Malformed::InvalidStatus), Meaning::Status),
        Name::Ordinary | Name::ContentLength => match value_fault(value) {
            Some(reason) => Meaning::Malformed(reason),
            None if name == Name::ContentLength => content_length(value),
            None => Meaning::Ordinary,
        },
    }
}

/// What rules a value out (RFC 9113 §8.2.1).
#[inline]
fn value_fault(value: &[u8]) -> Option<Malformed> {
    // Without an early end, so that many bytes are looked at in one step.
    if value.iter().fold(false, |bad, &byte| bad | (byte == 0) | (byte == b'\r') | (byte == b'\n')) {
        return Some(Malformed::InvalidValue);
    }
    match value {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => Some(Malformed::WhitespaceAroundValue),
        _ => None,
    }
}

/// Three digits from 100 (RFC 9110 §15).
const fn status(value: &[u8]) -> Option<u16> {
    match *value {
        [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some((hundreds - b'0') as u16 * 100 + (tens - b'0') as u16 * 10 + (ones - b'0') as u16)
        }
        _ => None,
    }
}

/// A number, or a list that repeats one: `42, 42` (RFC 9110 §8.6).
fn content_length(value: &[u8]) -> Meaning {
    let mut known = None;
    for element in value.split(|&byte| byte == b',') {
        let Some(length) = number(trim(element)) else {
            return Meaning::Malformed(Malformed::InvalidContentLength);
        };
        if known.is_some_and(|known| known != length) {
            return Meaning::Malformed(Malformed::ConflictingContentLength);
        }
        known = Some(length);
    }
    known.map_or(Meaning::Malformed(Malformed::InvalidContentLength), Meaning::ContentLength)
}

/// Takes optional whitespace (RFC 9110 §5.6.3) off both ends.
fn trim(mut element: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = element {
        element = rest;
    }
    element
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add((digit - b'0').into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        use Malformed::{ConnectionSpecificField, InvalidName, UnknownPseudoHeader, UppercaseName};
        let cases: [(&[u8], Name); 20] = [
            (b":status", Name::Status),
            (b"content-length", Name::ContentLength),
            (b"content-type", Name::Ordinary),
            (b"!#$%&'*+-.^_`|~09az", Name::Ordinary),
            (b"connection", Name::Malformed(ConnectionSpecificField)),
            (b"keep-alive", Name::Malformed(ConnectionSpecificField)),
            (b"proxy-connection", Name::Malformed(ConnectionSpecificField)),
            (b"transfer-encoding", Name::Malformed(ConnectionSpecificField)),
            (b"upgrade", Name::Malformed(ConnectionSpecificField)),
            (b":", Name::Malformed(UnknownPseudoHeader)),
            (b":path", Name::Malformed(UnknownPseudoHeader)),
            (b":Status", Name::Malformed(UnknownPseudoHeader)),
            (b"Content-Length", Name::Malformed(UppercaseName)),
            (b"x-Y z", Name::Malformed(UppercaseName)),
            (b"x y", Name::Malformed(InvalidName)),
            (b"", Name::Malformed(InvalidName)),
            (b"x:", Name::Malformed(InvalidName)),
            (b"x\0", Name::Malformed(InvalidName)),
            (b"x\x7f", Name::Malformed(InvalidName)),
            (b"x\xe9", Name::Malformed(InvalidName)),
        ];
        for (name, expected) in cases {
            assert_eq!(Name::of(name), expected, "{:?}", name.escape_ascii());
        }
    }

    #[test]
    fn values() {
        use Malformed::{
            ConflictingContentLength, InvalidContentLength, InvalidStatus, InvalidValue,
            WhitespaceAroundValue,
        };
        let length = Name::ContentLength;
        let cases: [(Name, &[u8], Meaning); 26] = [
            (Name::Status, b"100", Meaning::Status(100)),
            (Name::Status, b"999", Meaning::Status(999)),
            (Name::Status, b"099", Meaning::Malformed(InvalidStatus)),
            (Name::Status, b"20", Meaning::Malformed(InvalidStatus)),
            (Name::Status, b"2000", Meaning::Malformed(InvalidStatus)),
            (Name::Status, b"2x0", Meaning::Malformed(InvalidStatus)),
            (Name::Status, b"200 ", Meaning::Malformed(InvalidStatus)),
            (length, b"0", Meaning::ContentLength(0)),
            (length, b"007", Meaning::ContentLength(7)),
            (length, b"18446744073709551615", Meaning::ContentLength(u64::MAX)),
            (length, b"18446744073709551616", Meaning::Malformed(InvalidContentLength)),
            (length, b"", Meaning::Malformed(InvalidContentLength)),
            (length, b"+1", Meaning::Malformed(InvalidContentLength)),
            (length, b"0x1", Meaning::Malformed(InvalidContentLength)),
            (length, b"42, 42,42", Meaning::ContentLength(42)),
            (length, b"42, 43", Meaning::Malformed(ConflictingContentLength)),
            (length, b"42,", Meaning::Malformed(InvalidContentLength)),
            (length, b" 42", Meaning::Malformed(WhitespaceAroundValue)),
            (Name::Ordinary, b"", Meaning::Ordinary),
            (Name::Ordinary, b"\x01 \xff\x7f", Meaning::Ordinary),
            (Name::Ordinary, b"a\0", Meaning::Malformed(InvalidValue)),
            (Name::Ordinary, b"a\r\n b", Meaning::Malformed(InvalidValue)),
            (Name::Ordinary, b"\na", Meaning::Malformed(InvalidValue)),
            (Name::Ordinary, b"\ta", Meaning::Malformed(WhitespaceAroundValue)),
            (Name::Ordinary, b"a ", Meaning::Malformed(WhitespaceAroundValue)),
            (Name::Ordinary, b" ", Meaning::Malformed(WhitespaceAroundValue)),
        ];
        for (name, value, expected) in cases {
            assert_eq!(meaning(name, value), expected, "{name:?} {:?}", value.escape_ascii());
        }
    }
}
