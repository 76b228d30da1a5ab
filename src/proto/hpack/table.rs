//! Owns the two tables that an index leads into (RFC 7541 §2.3). Neither keeps what its fields say, only
//! what that means.

use std::collections::VecDeque;

use super::field::Field;

/// SETTINGS_HEADER_TABLE_SIZE before any SETTINGS: bytes of the dynamic table (RFC 9113 §6.5.2).
pub(super) const INITIAL_SIZE: u32 = 4096;

/// The entries that every connection has (RFC 7541 appendix A); the first has index 1.
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// What the entries of [`STATIC`] mean.
static STATIC_FIELDS: [Field; STATIC.len()] = Field::of_statics(&STATIC);

/// The entry of the static table at this index, which counts from 1.
#[inline]
pub(super) fn static_field(index: usize) -> Option<&'static Field> {
    STATIC_FIELDS.get(index.wrapping_sub(1))
}

/// The dynamic table of a decoder (RFC 7541 §2.3.2, §4).
#[derive(Debug)]
pub(in crate::proto) struct DynamicTable {
    /// The newest first.
    entries: VecDeque<Field>,
    /// Bytes they count, not above `max`.
    size: u32,
    max: u32,
    generation: u64,
}

impl DynamicTable {
    pub(in crate::proto) fn new(max: u32) -> Self {
        Self { entries: VecDeque::new(), size: 0, max, generation: 0 }
    }

    /// A number that grows whenever the table changes.
    #[inline]
    pub(in crate::proto) fn generation(&self) -> u64 {
        self.generation
    }

    /// The entry so many insertions before the newest.
    #[inline]
    pub(in crate::proto) fn get(&self, age: usize) -> Option<&Field> {
        self.entries.get(age)
    }

    /// Adds an entry, for which the oldest ones make room; one that is larger than the table only
    /// empties it (RFC 7541 §4.4).
    pub(in crate::proto) fn insert(&mut self, field: Field) {
        let Some(room) = self.max.checked_sub(field.size) else {
            self.evict_to(0);
            return;
        };
        self.evict_to(room);
        self.entries.push_front(field);
        self.size += field.size;
        self.generation += 1;
    }

    /// Bytes that the entries count.
    pub(in crate::proto) fn size(&self) -> u32 {
        self.size
    }

    /// Entries.
    pub(in crate::proto) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets the most bytes the table may count (RFC 7541 §4.3).
    pub(in crate::proto) fn resize(&mut self, max: u32) {
        if max != self.max {
            self.max = max;
            self.generation += 1;
        }
        self.evict_to(max);
    }

    /// Drops the oldest entries until the others count at most so many bytes.
    fn evict_to(&mut self, room: u32) {
        while self.size > room
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
            self.generation += 1;
        }
    }

    /// Whether both hold the same and may hold as much, however they came to it.
    pub(in crate::proto) fn is_same(&self, other: &Self) -> bool {
        self.entries == other.entries && self.size == other.size && self.max == other.max
    }
}
