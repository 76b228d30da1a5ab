//! Owns the reading of field sections and of the encoder stream, and what the decoder stream says to them
//! (RFC 9204 §2.2, §4).

use super::QpackError;
use super::table::{self, Table};
use crate::proto::exchange::Transcript;
use crate::proto::hpack::field::{Field, Name};
use crate::proto::hpack::integer::{self, IntegerError};
use crate::proto::hpack::section::Audit;
use crate::proto::hpack::string::{self, StringError};
use crate::proto::hpack::texts::{self, Text, Texts};
use crate::proto::hpack::{Kind, Section};

/// What this side lets the peer's encoder do; 0 by default, so that nothing ever waits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Config {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY in bytes.
    pub table_capacity: u32,
    /// SETTINGS_QPACK_BLOCKED_STREAMS.
    pub blocked_streams: u32,
}

/// The decoding side of a connection.
///
/// It reads what a generator needs of a field section, and steps over the rest: no text is kept, also
/// not in the dynamic table. A section that comes again is recognised and not read again, whenever it is
/// certain that it still means the same.
#[derive(Debug)]
pub struct Decoder {
    config: Config,
    /// Most bytes of a section.
    list_limit: u32,
    table: Table,
    /// Insertions that the peer knows to have arrived: the Known Received Count of RFC 9204 §2.1.4.
    known_received: u64,
    /// The start of an instruction whose end has not arrived.
    partial: Vec<u8>,
    /// Names and values of Huffman-coded literals.
    scratch: Vec<u8>,
    /// Instructions for the peer's encoder.
    out: Vec<u8>,
    /// The last section of each [`Kind`].
    memos: [Memo; 2],
    /// What sections say in words, once that is wanted.
    texts: Option<Box<Texts>>,
}

/// What became of a field section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// It is read.
    Section(Section),
    /// It is larger than the limit; the stream is to be given up ([`Decoder::cancel`]).
    TooLarge,
    /// It is to be decoded again once [`Decoder::inserted`] is so many.
    Blocked(u64),
}

impl Decoder {
    /// A decoder for a fresh connection; `list_limit` is the most bytes of a field section, counted as
    /// RFC 9114 §4.2.2 does: names, values, and 32 for each line.
    pub fn new(config: Config, list_limit: u32) -> Self {
        Self {
            config,
            list_limit,
            table: Table::new(),
            known_received: 0,
            partial: Vec::new(),
            scratch: Vec::new(),
            out: Vec::new(),
            memos: [Memo::default(), Memo::default()],
            texts: None,
        }
    }

    /// From now on every section is read, none is recognised, and heads are kept in words, but for lines that
    /// refer to the dynamic table, which has no words.
    pub fn transcribe(&mut self) {
        self.texts = Some(Box::default());
    }

    /// The last head of a final response, where that is wanted.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.texts.as_ref()?.head()
    }

    /// What the peer's encoder may do.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Entries that were ever inserted in the dynamic table.
    #[inline]
    pub fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// Reads one whole field section of `stream`: the payload of a HEADERS frame. When it needed the
    /// dynamic table, a Section Acknowledgment is added to the output.
    ///
    /// # Errors
    /// What ends the connection; the decoder is of no use afterwards.
    #[inline]
    pub fn decode(&mut self, stream: u64, block: &[u8], kind: Kind) -> Result<Decoded, QpackError> {
        let memo = &self.memos[kind as usize];
        if !memo.holds(block, &self.table) {
            return self.decode_anew(stream, block, kind);
        }
        let (section, required) = (memo.section, memo.required);
        if required > 0 {
            self.acknowledge(stream, required);
        }
        Ok(Decoded::Section(section))
    }

    /// Reads a section without asking a memo, and remembers it.
    #[inline(never)]
    pub(super) fn decode_anew(
        &mut self,
        stream: u64,
        block: &[u8],
        kind: Kind,
    ) -> Result<Decoded, QpackError> {
        let mut input = block;
        let prefix = self.prefix(&mut input)?;
        if prefix.required > self.table.inserted() {
            return Ok(Decoded::Blocked(prefix.required));
        }
        let mut audit = Audit::new(kind, self.list_limit);
        while !input.is_empty() {
            let start = input;
            let field = self.line(&mut input, prefix)?;
            if audit.add(&field).is_err() {
                return Ok(Decoded::TooLarge);
            }
            if let Some(texts) = &mut self.texts
                && let Some(text) = text(start)
            {
                texts.push(text);
            }
        }
        let section = audit.finish();
        if prefix.required > 0 {
            self.acknowledge(stream, prefix.required);
        }
        match &mut self.texts {
            Some(texts) => texts.finish(kind, section.status),
            None => {
                self.memos[kind as usize].learn(block, section, prefix.required, self.table.generation());
            }
        }
        Ok(Decoded::Section(section))
    }

    /// The prefix of a section (RFC 9204 §4.5.1).
    #[inline]
    fn prefix(&self, input: &mut &[u8]) -> Result<Prefix, QpackError> {
        let encoded = integer::decode(8, input)?;
        let required = if encoded == 0 { 0 } else { self.required_insert_count(encoded)? };
        let negative = input.first().is_some_and(|first| first & 0x80 != 0);
        let delta = integer::decode(7, input)?;
        let base = if negative {
            required.checked_sub(delta).and_then(|base| base.checked_sub(1))
        } else {
            required.checked_add(delta)
        };
        Ok(Prefix { required, base: base.ok_or(QpackError::Base)? })
    }

    /// What an encoded Required Insert Count other than 0 stands for (RFC 9204 §4.5.1.1).
    fn required_insert_count(&self, encoded: u64) -> Result<u64, QpackError> {
        // No table of the advertised capacity has more entries, and the count is sent modulo twice that.
        let most_entries = u64::from(self.config.table_capacity / ENTRY);
        if most_entries == 0 {
            return Err(QpackError::DynamicTableRefused);
        }
        let range = 2 * most_entries;
        if encoded > range {
            return Err(QpackError::RequiredInsertCount);
        }
        let most = self.table.inserted() + most_entries;
        let required = most / range * range + encoded - 1;
        let required = if required <= most { Some(required) } else { required.checked_sub(range) };
        required.filter(|&required| required > 0).ok_or(QpackError::RequiredInsertCount)
    }

    /// The representation of one field line, off the front of `input`, which is not empty (RFC 9204 §4.5.2
    /// to §4.5.6). Whether a literal may be indexed is of no interest to a recipient.
    #[inline]
    fn line(&mut self, input: &mut &[u8], prefix: Prefix) -> Result<Field, QpackError> {
        let first = input.first().copied().unwrap_or_default();
        let named = match first {
            0x80.. => {
                let index = integer::decode(6, input)?;
                return self.field(index, first & 0x40 != 0, prefix).copied();
            }
            0x40..0x80 => {
                let index = integer::decode(4, input)?;
                self.field(index, first & 0x10 != 0, prefix)?
            }
            0x20..0x40 => {
                let name = string::decode(3, input, &mut self.scratch)?;
                let (name, name_len) = named(name).ok_or(QpackError::IntegerOverflow)?;
                let value = string::decode(7, input, &mut self.scratch)?;
                return Ok(Field::new(name, name_len, value));
            }
            0x10..0x20 => {
                let index = integer::decode(4, input)?;
                return self.post_base(index, prefix).copied();
            }
            _ => {
                let index = integer::decode(3, input)?;
                self.post_base(index, prefix)?
            }
        };
        let (name, name_len) = (named.name, named.name_len);
        let value = string::decode(7, input, &mut self.scratch)?;
        Ok(Field::new(name, name_len, value))
    }

    /// The entry of an index into the static table, or of one relative to the Base.
    #[inline]
    fn field(&self, index: u64, is_static: bool, prefix: Prefix) -> Result<&Field, QpackError> {
        if is_static {
            return table::static_field(index).ok_or(QpackError::Index);
        }
        self.covered(prefix.base.checked_sub(index).and_then(|at| at.checked_sub(1)), prefix)
    }

    /// The entry of a post-base index (RFC 9204 §3.2.6).
    fn post_base(&self, index: u64, prefix: Prefix) -> Result<&Field, QpackError> {
        self.covered(prefix.base.checked_add(index), prefix)
    }

    /// The entry of an absolute index, which the Required Insert Count has to cover.
    fn covered(&self, absolute: Option<u64>, prefix: Prefix) -> Result<&Field, QpackError> {
        if self.config.table_capacity == 0 {
            return Err(QpackError::DynamicTableRefused);
        }
        absolute
            .filter(|&absolute| absolute < prefix.required)
            .and_then(|absolute| self.table.get(absolute))
            .ok_or(QpackError::Index)
    }

    /// Takes bytes of the peer's encoder stream, whatever way they are split (RFC 9204 §4.3).
    ///
    /// # Errors
    /// What ends the connection; the decoder is of no use afterwards.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        let mut whole = std::mem::take(&mut self.partial);
        let mut input = if whole.is_empty() {
            bytes
        } else {
            whole.extend_from_slice(bytes);
            &whole
        };
        // An instruction that fits in the table is not longer, however it is coded. What lies beyond is not looked at,
        // so that the same is wrong with an instruction whether it comes in one piece or in many.
        let most = self.most_instruction();
        while !input.is_empty() {
            let seen = &input[..input.len().min(most + 1)];
            let mut rest = seen;
            if self.instruction(&mut rest)? {
                input = &input[seen.len() - rest.len()..];
            } else if seen.len() > most {
                return Err(QpackError::EncoderEntry);
            } else {
                self.partial = input.to_vec();
                break;
            }
        }
        Ok(())
    }

    /// Acts on one instruction, off the front of `input`; false when it is cut off.
    fn instruction(&mut self, input: &mut &[u8]) -> Result<bool, QpackError> {
        let first = input.first().copied().unwrap_or_default();
        let done = match first {
            0x80.. => self.insert_named(input, first & 0x40 != 0),
            0x40..0x80 => self.insert_literal(input),
            0x20..0x40 => self.set_capacity(input),
            _ => self.duplicate(input),
        };
        match done {
            Ok(()) => Ok(true),
            Err(Cut::Off) => Ok(false),
            Err(Cut::Error(error)) => Err(error),
        }
    }

    fn insert_named(&mut self, input: &mut &[u8], is_static: bool) -> Result<(), Cut> {
        let index = integer::decode(6, input)?;
        let named = if is_static { table::static_field(index) } else { self.table.recent(index) };
        let (name, name_len) =
            named.map(|field| (field.name, field.name_len)).ok_or(QpackError::EncoderIndex)?;
        let value = string::decode(7, input, &mut self.scratch)?;
        let field = Field::new(name, name_len, value);
        self.insert(field)
    }

    fn insert_literal(&mut self, input: &mut &[u8]) -> Result<(), Cut> {
        let name = string::decode(5, input, &mut self.scratch)?;
        let (name, name_len) = named(name).ok_or(QpackError::EncoderEntry)?;
        let value = string::decode(7, input, &mut self.scratch)?;
        let field = Field::new(name, name_len, value);
        self.insert(field)
    }

    fn duplicate(&mut self, input: &mut &[u8]) -> Result<(), Cut> {
        let index = integer::decode(5, input)?;
        let field = *self.table.recent(index).ok_or(QpackError::EncoderIndex)?;
        self.insert(field)
    }

    fn insert(&mut self, field: Field) -> Result<(), Cut> {
        if self.table.insert(field) { Ok(()) } else { Err(QpackError::EncoderEntry.into()) }
    }

    fn set_capacity(&mut self, input: &mut &[u8]) -> Result<(), Cut> {
        let capacity = u32::try_from(integer::decode(5, input)?).unwrap_or(u32::MAX);
        if capacity > self.config.table_capacity {
            return Err(QpackError::EncoderCapacity.into());
        }
        self.table.resize(capacity);
        Ok(())
    }

    /// Bytes of the longest instruction that inserts something: name and value in the longest codes, and
    /// two lengths.
    fn most_instruction(&self) -> usize {
        2 * LONGEST_CODE * self.config.table_capacity as usize + 32
    }

    /// Section Acknowledgment (RFC 9204 §4.4.1).
    fn acknowledge(&mut self, stream: u64, required: u64) {
        integer::encode(stream, 7, 0x80, &mut self.out);
        self.known_received = self.known_received.max(required);
    }

    /// A stream is given up, of which sections may not have been read (RFC 9204 §4.4.2). Without a dynamic
    /// table there is nothing that the peer's encoder waits for.
    pub fn cancel(&mut self, stream: u64) {
        if self.config.table_capacity > 0 {
            integer::encode(stream, 6, 0x40, &mut self.out);
        }
    }

    /// Whether [`Decoder::output`] has anything.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.out.is_empty() || self.table.inserted() != self.known_received
    }

    /// What is to be sent on the decoder stream; the caller takes it out. Insertions that are still
    /// to be acknowledged are by an Insert Count Increment (RFC 9204 §4.4.3).
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        let unknown = self.table.inserted() - self.known_received;
        if unknown > 0 {
            integer::encode(unknown, 6, 0, &mut self.out);
            self.known_received += unknown;
        }
        &mut self.out
    }

    /// Whether the dynamic tables are the same.
    pub(super) fn has_table_of(&self, other: &Self) -> bool {
        self.table.is_same(&other.table)
    }

    /// Bytes held for what has not come to its end.
    pub(super) fn held(&self) -> usize {
        self.partial.len()
    }
}

#[cfg(test)]
impl Decoder {
    /// Bytes that the dynamic table counts.
    pub(super) fn table_bytes(&self) -> u32 {
        self.table.size()
    }
}

/// The start of a section.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    /// Insertions that it needs: the Required Insert Count.
    required: u64,
    /// What relative indices are relative to.
    base: u64,
}

/// Why an instruction could not be acted on.
enum Cut {
    /// More of it is to come.
    Off,
    Error(QpackError),
}

impl From<QpackError> for Cut {
    fn from(error: QpackError) -> Self {
        Self::Error(error)
    }
}

impl From<IntegerError> for Cut {
    fn from(error: IntegerError) -> Self {
        match error {
            IntegerError::Truncated => Self::Off,
            IntegerError::Overflow => Self::Error(QpackError::EncoderSyntax),
        }
    }
}

impl From<StringError> for Cut {
    fn from(error: StringError) -> Self {
        match error {
            StringError::Truncated => Self::Off,
            StringError::Length(error) => error.into(),
            StringError::Huffman(_) => Self::Error(QpackError::EncoderSyntax),
        }
    }
}

/// The last section and what it meant.
#[derive(Default, Debug)]
struct Memo {
    block: Vec<u8>,
    section: Section,
    required: u64,
    /// The state of the dynamic table that a section with references belongs to.
    generation: u64,
}

impl Memo {
    /// Whether it is certain that `block` means the same again. No section is empty: it has a prefix.
    #[inline]
    fn holds(&self, block: &[u8], table: &Table) -> bool {
        self.block == block
            && !block.is_empty()
            && (self.required == 0 || self.generation == table.generation())
    }

    fn learn(&mut self, block: &[u8], section: Section, required: u64, generation: u64) {
        self.block.clear();
        if block.len() <= MEMO_BLOCK {
            self.block.extend_from_slice(block);
            (self.section, self.required, self.generation) = (section, required, generation);
        }
    }
}

/// What the representation at the front of `input` says, if it does not refer to the dynamic table (RFC 9204
/// §4.5.2, §4.5.4, §4.5.6). It was found to be right before.
fn text(mut input: &[u8]) -> Option<Text> {
    let indexed = |prefix: u32, input: &mut &[u8]| {
        let index = usize::try_from(integer::decode(prefix, input).ok()?).ok()?;
        table::STATIC.get(index).map(texts::owned)
    };
    let name = match *input.first()? {
        first @ 0x80.. => return if first & 0x40 != 0 { indexed(6, &mut input) } else { None },
        first @ 0x40..0x80 if first & 0x10 != 0 => indexed(4, &mut input)?.0,
        0x20..0x40 => texts::literal(3, &mut input)?,
        _ => return None,
    };
    Some((name, texts::literal(7, &mut input)?))
}

/// A literal name and its length, which 32 bits hold.
fn named(name: &[u8]) -> Option<(Name, u32)> {
    Some((Name::of(name), u32::try_from(name.len()).ok()?))
}

/// Bytes that every entry counts at least (RFC 9204 §3.2.1).
const ENTRY: u32 = 32;
/// Bytes that the longest Huffman code of an octet takes, 30 bits, rounded up.
const LONGEST_CODE: usize = 4;
/// Longest section that is remembered, in bytes: what differs each time is not worth the copy, and
/// longer ones do differ.
const MEMO_BLOCK: usize = 1024;
