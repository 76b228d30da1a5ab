//! Owns the text of field sections while somebody wants to see one: otherwise only what fields mean is kept.

use std::collections::VecDeque;

use super::integer;
use super::section::Kind;
use super::string;
use super::table::STATIC;
use crate::proto::exchange::Transcript;

/// Name and value of a field line.
pub(in crate::proto) type Text = (Vec<u8>, Vec<u8>);

/// What a decoder that transcribes keeps besides. It stands behind the decoder, which has found every
/// representation to be right before it is read here again.
#[derive(Default, Debug)]
pub(in crate::proto) struct Texts {
    /// The dynamic table of HPACK in words, the newest first.
    entries: VecDeque<Text>,
    /// The section that is being read.
    section: Vec<Text>,
    /// The last head of a final response.
    head: Option<Transcript>,
}

impl Texts {
    /// A representation of HPACK. When it was inserted, the dynamic table has `table_len` entries since.
    pub(super) fn line(&mut self, representation: &[u8], inserted: bool, table_len: usize) {
        let Some(text) = self.text(representation) else { return };
        if inserted {
            self.entries.push_front(text.clone());
            self.entries.truncate(table_len);
        }
        self.section.push(text);
    }

    /// A field line that was read elsewhere.
    pub(in crate::proto) fn push(&mut self, text: Text) {
        self.section.push(text);
    }

    /// The section is complete; `status` is 0 unless it is the header of a response, and a proper one.
    pub(in crate::proto) fn finish(&mut self, kind: Kind, status: u16) {
        let fields = std::mem::take(&mut self.section);
        if kind == Kind::Response && status >= 200 {
            let fields = fields.into_iter().filter(|(name, _)| !name.starts_with(b":")).collect();
            self.head = Some(Transcript { status, fields });
        }
    }

    /// The last head of a final response.
    pub(in crate::proto) fn head(&self) -> Option<&Transcript> {
        self.head.as_ref()
    }

    /// RFC 7541 §6.1, §6.2.
    fn text(&self, mut input: &[u8]) -> Option<Text> {
        let (prefix, indexed) = match input.first()? {
            0x80.. => (7, true),
            0x40..=0x7f => (6, false),
            _ => (4, false),
        };
        let index = usize::try_from(integer::decode(prefix, &mut input).ok()?).ok()?;
        if indexed {
            return self.entry(index);
        }
        let name = if index == 0 { literal(7, &mut input)? } else { self.entry(index)?.0 };
        Some((name, literal(7, &mut input)?))
    }

    fn entry(&self, index: usize) -> Option<Text> {
        let index = index.checked_sub(1)?;
        match STATIC.get(index) {
            Some(entry) => Some(owned(entry)),
            None => self.entries.get(index - STATIC.len()).cloned(),
        }
    }
}

/// A string literal, decoded.
pub(in crate::proto) fn literal(prefix: u32, input: &mut &[u8]) -> Option<Vec<u8>> {
    string::decode(prefix, input, &mut Vec::new()).ok().map(<[u8]>::to_vec)
}

/// An entry of a static table.
pub(in crate::proto) fn owned((name, value): &(&str, &str)) -> Text {
    (name.as_bytes().to_vec(), value.as_bytes().to_vec())
}
