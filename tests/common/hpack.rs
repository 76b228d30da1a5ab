//! Owns the header blocks of scripted answers: an encoder that does as it is told (RFC 7541), with or
//! without the dynamic table.

use std::collections::VecDeque;

/// How an [`Encoder`] represents fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// Static indices and literals that are not indexed: every block stands alone.
    Plain,
    /// What is not in the static table goes to the dynamic one, and is referred to from then on.
    Indexed,
}

/// Encodes the blocks of one connection.
pub(crate) struct Encoder {
    style: Style,
    /// Most recent entry first, as it is indexed.
    table: VecDeque<(String, String)>,
    size: usize,
    limit: usize,
    /// A table size update that the next block has to begin with.
    owed: Option<usize>,
}

impl Encoder {
    /// Of a connection whose client has the default table of 4096 bytes.
    pub(crate) fn new(style: Style) -> Self {
        Self { style, table: VecDeque::new(), size: 0, limit: DEFAULT_TABLE, owed: None }
    }

    /// Appends the representation of each field.
    pub(crate) fn encode(&mut self, fields: &[(String, String)], out: &mut Vec<u8>) {
        if let Some(limit) = self.owed.take() {
            self.resize(limit, out);
        }
        for (name, value) in fields {
            self.field(name, value, out);
        }
    }

    /// Appends a table size update (RFC 7541 §6.3) and keeps to it.
    pub(crate) fn resize(&mut self, limit: usize, out: &mut Vec<u8>) {
        self.limit = limit;
        self.evict(0);
        size_update(limit, out);
    }

    /// The client's table is smaller than this one: the next block says that it keeps to that.
    pub(crate) fn bound(&mut self, limit: usize) {
        if limit < self.limit {
            self.owed = Some(limit);
        }
    }

    fn field(&mut self, name: &str, value: &str, out: &mut Vec<u8>) {
        let exact = STATIC.iter().find(|(_, n, v)| *n == name && *v == value && !v.is_empty());
        if let Some((index, ..)) = exact {
            return indexed(*index, out);
        }
        let name_index = STATIC.iter().find(|(_, n, _)| *n == name).map(|(index, ..)| *index);
        if self.style == Style::Plain {
            return literal(Literal::Plain, name_index, name, value.as_bytes(), out);
        }
        if let Some(at) = self.table.iter().position(|(n, v)| n == name && v == value) {
            return indexed(FIRST_DYNAMIC + at, out);
        }
        literal(Literal::Indexed, name_index, name, value.as_bytes(), out);
        self.insert(name, value);
    }

    fn insert(&mut self, name: &str, value: &str) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict(size);
        if size <= self.limit {
            self.table.push_front((name.into(), value.into()));
            self.size += size;
        }
    }

    /// Makes room for `more` bytes, as far as there is any (RFC 7541 §4.4).
    fn evict(&mut self, more: usize) {
        while self.size + more > self.limit
            && let Some((name, value)) = self.table.pop_back()
        {
            self.size -= name.len() + value.len() + ENTRY_OVERHEAD;
        }
    }
}

/// The three literal representations (RFC 7541 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Literal {
    /// With incremental indexing.
    Indexed,
    /// Without indexing.
    Plain,
    /// Never indexed.
    Never,
}

/// An indexed field (RFC 7541 §6.1).
pub(crate) fn indexed(index: usize, out: &mut Vec<u8>) {
    integer(0x80, 7, index, out);
}

/// A literal field; its name by index when there is one. Strings are not Huffman-coded.
pub(crate) fn literal(
    literal: Literal,
    name_index: Option<usize>,
    name: &str,
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let (pattern, bits) = match literal {
        Literal::Indexed => (0x40, 6),
        Literal::Plain => (0x00, 4),
        Literal::Never => (0x10, 4),
    };
    integer(pattern, bits, name_index.unwrap_or(0), out);
    if name_index.is_none() {
        string(name.as_bytes(), out);
    }
    string(value, out);
}

/// A dynamic table size update (RFC 7541 §6.3).
pub(crate) fn size_update(size: usize, out: &mut Vec<u8>) {
    integer(0x20, 5, size, out);
}

/// A string literal that is not Huffman-coded (RFC 7541 §5.2).
pub(crate) fn string(bytes: &[u8], out: &mut Vec<u8>) {
    integer(0, 7, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// An integer with a prefix of so many bits (RFC 7541 §5.1).
pub(crate) fn integer(pattern: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1usize << bits) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The part of RFC 7541 appendix A that answers use.
const STATIC: [(usize, &str, &str); 15] = [
    (8, ":status", "200"),
    (9, ":status", "204"),
    (10, ":status", "206"),
    (11, ":status", "304"),
    (12, ":status", "400"),
    (13, ":status", "404"),
    (14, ":status", "500"),
    (28, "content-length", ""),
    (31, "content-type", ""),
    (33, "date", ""),
    (45, "link", ""),
    (46, "location", ""),
    (54, "server", ""),
    (55, "set-cookie", ""),
    (59, "vary", ""),
];
/// Index of the most recent entry of the dynamic table.
pub(crate) const FIRST_DYNAMIC: usize = 62;
/// What an entry costs beside its strings (RFC 7541 §4.1).
const ENTRY_OVERHEAD: usize = 32;
const DEFAULT_TABLE: usize = 4096;
