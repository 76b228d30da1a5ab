//! Owns the writing of field blocks: a request's, made once (RFC 7541 §6).

use super::{field, integer, string, table};

/// A request's field block, in the three ways of saying it that a connection needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestBlock {
    /// Adds to the peer's dynamic table whatever `next` refers to. It says all that it means itself, and
    /// may be sent at any time, but each time it adds again.
    pub first: Vec<u8>,
    /// Refers to what `first` added. Nothing else may have been added since.
    pub next: Vec<u8>,
    /// Neither uses the dynamic table nor adds to it.
    pub plain: Vec<u8>,
    /// Bytes that the peer's dynamic table has to hold for `next`; 0 when `first` adds nothing.
    pub table_size: u32,
}

/// Encodes a request's fields, in order: pseudo-header fields first, names in lower case.
/// `most_table` is the most bytes of the peer's dynamic table that are used, 4096 unless the peer's
/// SETTINGS_HEADER_TABLE_SIZE says less.
///
/// A field that the static table does not hold is added to the dynamic table while there is room.
/// Credentials are not: `authorization`, `proxy-authorization` and `cookie` of less than 20 bytes are
/// literals that no one on the way may add either (RFC 7541 §7.1.3).
pub fn encode_request(fields: &[(&str, &[u8])], most_table: u32) -> RequestBlock {
    let mut block = RequestBlock { first: Vec::new(), next: Vec::new(), plain: Vec::new(), table_size: 0 };
    let added = addable(fields, most_table, &mut block.table_size);
    let mut so_far = 0;
    for &(name, value) in fields {
        let found = Found::of(&table::STATIC, name, value);
        match found {
            Found::Field(at) => {
                for out in [&mut block.first, &mut block.next, &mut block.plain] {
                    indexed(at + 1, out);
                }
                continue;
            }
            Found::Name(_) | Found::Nothing => {}
        }
        let literal_form = if is_sensitive(name, value) { Form::NeverIndexed } else { Form::WithoutIndexing };
        literal(literal_form, found, name, value, &mut block.plain);
        let Some(at) =
            added.iter().position(|&(added_name, added_value)| (added_name, added_value) == (name, value))
        else {
            literal(literal_form, found, name, value, &mut block.first);
            literal(literal_form, found, name, value, &mut block.next);
            continue;
        };
        if at < so_far {
            // The same field once more.
            indexed(dynamic_index(so_far, at), &mut block.first);
        } else {
            literal(Form::Incremental, found, name, value, &mut block.first);
            so_far += 1;
        }
        indexed(dynamic_index(added.len(), at), &mut block.next);
    }
    block
}

/// Appends a dynamic table size update (RFC 7541 §6.3) to `size` bytes. It stands at the start of a
/// field block.
pub fn table_size_update(size: u32, out: &mut Vec<u8>) {
    integer::encode(size.into(), 5, 0x20, out);
}

/// The fields to be added to the dynamic table, each once, in order; `size` becomes the bytes that
/// they count there, at most `most`.
fn addable<'a>(fields: &[(&'a str, &'a [u8])], most: u32, size: &mut u32) -> Vec<(&'a str, &'a [u8])> {
    let mut added = Vec::new();
    for &(name, value) in fields {
        let known = matches!(Found::of(&table::STATIC, name, value), Found::Field(_))
            || added.contains(&(name, value));
        if known || is_sensitive(name, value) {
            continue;
        }
        let entry = field::entry_size(name.len() as u64, value.len());
        if let Some(sum) = size.checked_add(entry).filter(|&sum| sum <= most) {
            *size = sum;
            added.push((name, value));
        }
    }
    added
}

/// Whether a value is short and secret, so that a table shared with others would let it be guessed.
pub(in crate::proto) fn is_sensitive(name: &str, value: &[u8]) -> bool {
    match name {
        "authorization" | "proxy-authorization" => true,
        "cookie" => value.len() < 20,
        _ => false,
    }
}

/// What a static table holds of a field.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto) enum Found {
    /// All of it, as this entry, counted from 0.
    Field(usize),
    /// Its name, in this entry.
    Name(usize),
    Nothing,
}

impl Found {
    pub(in crate::proto) fn of(table: &[(&str, &str)], name: &str, value: &[u8]) -> Self {
        let named = || (0..).zip(table).filter(|(_, entry)| entry.0 == name);
        if let Some((at, _)) = named().find(|(_, entry)| entry.1.as_bytes() == value) {
            return Self::Field(at);
        }
        named().next().map_or(Self::Nothing, |(at, _)| Self::Name(at))
    }
}

/// How a literal is represented (RFC 7541 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Incremental,
    WithoutIndexing,
    NeverIndexed,
}

/// The index of the entry added as number `at`, from 0, after `added` in all.
fn dynamic_index(added: usize, at: usize) -> usize {
    table::STATIC.len() + added - at
}

fn indexed(index: usize, out: &mut Vec<u8>) {
    integer::encode(index as u64, 7, 0x80, out);
}

fn literal(form: Form, found: Found, name: &str, value: &[u8], out: &mut Vec<u8>) {
    let (prefix, flags) = match form {
        Form::Incremental => (6, 0x40),
        Form::WithoutIndexing => (4, 0x00),
        Form::NeverIndexed => (4, 0x10),
    };
    match found {
        Found::Field(at) | Found::Name(at) => integer::encode(at as u64 + 1, prefix, flags, out),
        Found::Nothing => {
            integer::encode(0, prefix, flags, out);
            string::encode(name.as_bytes(), 7, 0, out);
        }
    }
    string::encode(value, 7, 0, out);
}
