//! Owns the two tables that an index leads into (RFC 9204 §3). Neither keeps what its fields say, only what
//! that means.

use crate::proto::hpack::field::Field;
use crate::proto::hpack::table::DynamicTable;

/// The entries that every connection has (RFC 9204 appendix A); the first has index 0.
pub(super) const STATIC: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// What the entries of [`STATIC`] mean.
static STATIC_FIELDS: [Field; STATIC.len()] = Field::of_statics(&STATIC);

/// The entry of the static table at this index.
#[inline]
pub(super) fn static_field(index: u64) -> Option<&'static Field> {
    STATIC_FIELDS.get(usize::try_from(index).ok()?)
}

/// The dynamic table of a decoder, whose entries are known by how many were inserted before them
/// (RFC 9204 §3.2.4).
#[derive(Debug)]
pub(super) struct Table {
    entries: DynamicTable,
    capacity: u32,
    inserted: u64,
}

impl Table {
    /// An empty table of capacity 0 (RFC 9204 §3.2.3).
    pub(super) fn new() -> Self {
        Self { entries: DynamicTable::new(0), capacity: 0, inserted: 0 }
    }

    /// Entries that were ever inserted: the Insert Count of RFC 9204 §2.1.4.
    #[inline]
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// A number that grows whenever the table changes.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.entries.generation()
    }

    /// Bytes that the entries count.
    #[cfg(test)]
    pub(super) fn size(&self) -> u32 {
        self.entries.size()
    }

    /// The entry of this absolute index, if it is still there.
    #[inline]
    pub(super) fn get(&self, absolute: u64) -> Option<&Field> {
        let age = self.inserted.checked_sub(absolute)?.checked_sub(1)?;
        self.entries.get(usize::try_from(age).ok()?)
    }

    /// The entry so many insertions before the newest: a relative index on the encoder stream.
    pub(super) fn recent(&self, age: u64) -> Option<&Field> {
        self.entries.get(usize::try_from(age).ok()?)
    }

    /// Adds an entry, for which the oldest make room; false when it is larger than the table.
    pub(super) fn insert(&mut self, field: Field) -> bool {
        if field.size > self.capacity {
            return false;
        }
        self.entries.insert(field);
        self.inserted += 1;
        true
    }

    /// Sets the most bytes the table may count.
    pub(super) fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.entries.resize(capacity);
    }

    /// Whether both hold the same, however they came to it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.inserted == other.inserted && self.entries.is_same(&other.entries)
    }
}
