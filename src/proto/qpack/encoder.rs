//! Owns the writing of field sections: a request's, made once (RFC 9204 §4.5).

use super::table::STATIC;
use crate::proto::hpack::encoder::{Found, is_sensitive};
use crate::proto::hpack::{integer, string};

/// Encodes a request's fields, in order: pseudo-header fields first, names in lower case.
///
/// Only the static table is referred to, so that the section may be sent on every stream, at once and
/// whatever the peer's settings are. Credentials are literals that no one on the way may add to a table
/// (RFC 9204 §7.1.3).
pub fn encode_section(fields: &[(&str, &[u8])]) -> Vec<u8> {
    // Required Insert Count 0 and Base 0 (RFC 9204 §4.5.1).
    let mut out = vec![0, 0];
    for &(name, value) in fields {
        let never_indexed = is_sensitive(name, value);
        match Found::of(&STATIC, name, value) {
            Found::Field(at) => integer::encode(at as u64, 6, INDEXED | INDEXED_STATIC, &mut out),
            Found::Name(at) => {
                let flags = if never_indexed { NAMED_NEVER } else { 0 };
                integer::encode(at as u64, 4, NAMED | NAMED_STATIC | flags, &mut out);
                string::encode(value, 7, 0, &mut out);
            }
            Found::Nothing => {
                let flags = if never_indexed { LITERAL_NEVER } else { 0 };
                string::encode(name.as_bytes(), 3, LITERAL | flags, &mut out);
                string::encode(value, 7, 0, &mut out);
            }
        }
    }
    out
}

/// Indexed field line (RFC 9204 §4.5.2).
const INDEXED: u8 = 0x80;
const INDEXED_STATIC: u8 = 0x40;
/// Literal field line with name reference (RFC 9204 §4.5.4).
const NAMED: u8 = 0x40;
const NAMED_NEVER: u8 = 0x20;
const NAMED_STATIC: u8 = 0x10;
/// Literal field line with literal name (RFC 9204 §4.5.6).
const LITERAL: u8 = 0x20;
const LITERAL_NEVER: u8 = 0x10;
