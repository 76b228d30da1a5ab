//! Owns the reading of field blocks (RFC 7541 §3, §6).

use super::{
    HpackError, Kind, Section,
    field::{Field, Name},
    integer,
    section::Audit,
    string,
    table::{self, DynamicTable},
    texts::Texts,
};
use crate::proto::exchange::Transcript;

/// The decoding side of a connection.
///
/// It reads what a generator needs of a field section, and steps over the rest: no text is kept, also
/// not in the dynamic table. A block that comes again is recognised and not read again, whenever it is
/// certain that it still means the same.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The SETTINGS_HEADER_TABLE_SIZE of this side.
    table_size: u32,
    /// Most that a dynamic table size update may ask for.
    most_size: u32,
    /// Whether the next block has to start with a dynamic table size update.
    owes_update: bool,
    list_limit: u32,
    /// Names and values of Huffman-coded literals.
    scratch: Vec<u8>,
    /// The last block of each [`Kind`].
    memos: [Memo; 2],
    /// What blocks say in words, once that is wanted.
    texts: Option<Box<Texts>>,
}

impl Decoder {
    /// A decoder for a fresh connection. `table_size` is the SETTINGS_HEADER_TABLE_SIZE that this
    /// side advertises, in bytes; `list_limit` the most bytes of a field section, counted as RFC 9113
    /// §6.5.2 does: names, values, and 32 for each line.
    ///
    /// The peer's table starts with 4096 bytes, whatever is advertised; when that is less,
    /// [`Decoder::settings_acknowledged`] says from when on it holds.
    pub fn new(table_size: u32, list_limit: u32) -> Self {
        Self {
            table: DynamicTable::new(table::INITIAL_SIZE),
            table_size,
            // A larger table may be used by whoever has read the SETTINGS, acknowledged or not.
            most_size: table_size.max(table::INITIAL_SIZE),
            owes_update: false,
            list_limit,
            scratch: Vec::new(),
            memos: [Memo::default(), Memo::default()],
            texts: None,
        }
    }

    /// From now on every block is read, none is recognised, and heads are kept in words. To be called before
    /// the first block.
    pub fn transcribe(&mut self) {
        self.texts = Some(Box::default());
    }

    /// The last head of a final response, where that is wanted.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.texts.as_ref()?.head()
    }

    /// The peer acknowledged the SETTINGS. When they made the table smaller, its next block has to
    /// start with a dynamic table size update (RFC 9113 §4.3.1). Call it once, for the first SETTINGS.
    pub fn settings_acknowledged(&mut self) {
        self.most_size = self.table_size;
        self.owes_update = self.table_size < table::INITIAL_SIZE;
    }

    /// Reads one whole field block: the fragments of a HEADERS frame and its CONTINUATION frames,
    /// joined. The dynamic table is right afterwards also when the section is malformed.
    ///
    /// # Errors
    /// What ends the connection; the decoder is of no use afterwards.
    #[inline]
    pub fn decode(&mut self, block: &[u8], kind: Kind) -> Result<Section, HpackError> {
        if !self.owes_update
            && let Some(section) = self.memos[kind as usize].recall(block, &mut self.table)
        {
            return Ok(section);
        }
        self.decode_anew(block, kind)
    }

    /// Reads a block without asking a memo, and remembers it.
    #[inline(never)]
    pub(super) fn decode_anew(&mut self, block: &[u8], kind: Kind) -> Result<Section, HpackError> {
        let generation = self.table.generation();
        self.memos[kind as usize].forget();

        let mut input = block;
        let resized = self.size_updates(&mut input)?;
        let mut audit = Audit::new(kind, self.list_limit);
        let mut independent = !resized;
        while !input.is_empty() {
            let start = input;
            let line = self.line(&mut input)?;
            audit.add(&line.field)?;
            independent &= !line.dynamic;
            if line.inserted {
                self.table.insert(line.field);
                self.memos[kind as usize].insertions.push(line.field);
            }
            if let Some(texts) = &mut self.texts {
                let representation = &start[..start.len() - input.len()];
                texts.line(representation, line.inserted, self.table.len());
            }
        }
        let section = audit.finish();
        if let Some(texts) = &mut self.texts {
            texts.finish(kind, section.status);
            return Ok(section);
        }

        let validity = if independent {
            Validity::Always
        } else if self.table.generation() == generation {
            Validity::Generation(generation)
        } else {
            Validity::Never
        };
        self.memos[kind as usize].learn(block, section, validity);
        Ok(section)
    }

    /// The dynamic table size updates at the start of a block (RFC 7541 §4.2, §6.3), and whether there
    /// were any. A change down and up again takes two; more than two do no harm.
    fn size_updates(&mut self, input: &mut &[u8]) -> Result<bool, HpackError> {
        let mut any = false;
        while let Some(0x20..=0x3f) = input.first() {
            let size = read_integer(5, input)?;
            if size > self.most_size {
                return Err(HpackError::TableSize);
            }
            self.table.resize(size);
            any = true;
        }
        if self.owes_update && !any {
            return Err(HpackError::TableSizeIgnored);
        }
        self.owes_update = false;
        Ok(any)
    }

    /// The representation of one field line, off the front of `input`, which is not empty.
    #[inline]
    fn line(&mut self, input: &mut &[u8]) -> Result<Line, HpackError> {
        let (prefix, inserted) = match input.first() {
            Some(0x80..) => {
                let index = read_integer(7, input)?;
                let (&field, dynamic) = self.field_at(index)?;
                return Ok(Line { field, inserted: false, dynamic });
            }
            Some(0x40..=0x7f) => (6, true),
            Some(0x20..=0x3f) => return Err(HpackError::TableSizeMisplaced),
            // Without indexing, or never indexed, which is of no interest to a recipient.
            _ => (4, false),
        };
        let index = read_integer(prefix, input)?;
        let (name, name_len, dynamic) = if index == 0 {
            let name = read_string(input, &mut self.scratch)?;
            (Name::of(name), u32::try_from(name.len()).map_err(|_| HpackError::ListTooLarge)?, false)
        } else {
            let (field, dynamic) = self.field_at(index)?;
            (field.name, field.name_len, dynamic)
        };
        let value = read_string(input, &mut self.scratch)?;
        Ok(Line { field: Field::new(name, name_len, value), inserted, dynamic })
    }

    /// Whether the dynamic tables are the same.
    pub(super) fn has_table_of(&self, other: &Self) -> bool {
        self.table.is_same(&other.table)
    }

    /// The entry at an index of both tables (RFC 7541 §2.3.3), and whether it is of the dynamic one.
    #[inline]
    fn field_at(&self, index: u32) -> Result<(&Field, bool), HpackError> {
        let index = index as usize;
        if let Some(field) = table::static_field(index) {
            return Ok((field, false));
        }
        // Index 0 becomes an age that no entry reaches.
        let age = index.wrapping_sub(table::STATIC.len() + 1);
        self.table.get(age).map(|field| (field, true)).ok_or(HpackError::Index)
    }
}

#[cfg(test)]
impl Decoder {
    /// Bytes that the dynamic table counts.
    pub(super) fn table_bytes(&self) -> u32 {
        self.table.size()
    }
}

/// What one representation says.
struct Line {
    field: Field,
    /// Whether it is to be added to the dynamic table.
    inserted: bool,
    /// Whether it refers to the dynamic table.
    dynamic: bool,
}

/// The last block and what it meant.
#[derive(Default, Debug)]
struct Memo {
    block: Vec<u8>,
    section: Section,
    validity: Validity,
    /// What it adds to the dynamic table, in this order.
    insertions: Vec<Field>,
    /// The generation after the last time it was added, and how many entries in a row came from it.
    added: (u64, usize),
    /// The generation in which the table is this block over and over, so that adding it once more
    /// leaves the table as it is.
    saturated: Option<u64>,
}

/// When the same bytes mean the same again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Validity {
    #[default]
    Never,
    /// The block refers to the dynamic table, which it does not change: while that is the same.
    Generation(u64),
    /// The block refers to nothing that can change.
    Always,
}

/// Longest block that is remembered, in bytes: what differs each time is not worth the copy, and
/// longer ones do differ.
const MEMO_BLOCK: usize = 1024;

impl Memo {
    /// What `block` means, if that is certain; its insertions are then made.
    #[inline]
    fn recall(&mut self, block: &[u8], table: &mut DynamicTable) -> Option<Section> {
        let valid = match self.validity {
            Validity::Never => false,
            Validity::Generation(generation) => generation == table.generation(),
            Validity::Always => true,
        };
        if !valid || self.block != block {
            return None;
        }
        if self.validity == Validity::Always && self.saturated != Some(table.generation()) {
            self.add_again(table);
        }
        Some(self.section)
    }

    /// Makes the insertions. A server that never refers to what it inserts fills the table with the same
    /// entries again and again. Once the whole table came from this block and one more round has
    /// changed neither the number of entries nor their bytes, no further round changes anything.
    #[inline(never)]
    fn add_again(&mut self, table: &mut DynamicTable) {
        let before = (table.len(), table.size());
        let unbroken = self.added.0 == table.generation();
        for &field in &self.insertions {
            table.insert(field);
        }
        let in_a_row = if unbroken { self.added.1 } else { 0 } + self.insertions.len();
        self.added = (table.generation(), in_a_row);
        let only_this = unbroken && in_a_row >= table.len() + self.insertions.len();
        self.saturated = (only_this && before == (table.len(), table.size())).then_some(table.generation());
    }

    fn forget(&mut self) {
        self.validity = Validity::Never;
        self.insertions.clear();
        self.added = (0, 0);
        self.saturated = None;
    }

    fn learn(&mut self, block: &[u8], section: Section, validity: Validity) {
        if validity != Validity::Never && block.len() <= MEMO_BLOCK {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.section = section;
            self.validity = validity;
        }
    }
}

/// An integer of HPACK: an index, a length or a size, which all fit in 32 bits here.
#[inline]
fn read_integer(prefix: u32, input: &mut &[u8]) -> Result<u32, HpackError> {
    let integer = integer::decode(prefix, input)?;
    u32::try_from(integer).map_err(|_| HpackError::IntegerOverflow)
}

/// A string literal (RFC 7541 §5.2); `scratch` takes it when it has to be decoded.
#[inline]
fn read_string<'out, 'input: 'out>(
    input: &mut &'input [u8],
    scratch: &'out mut Vec<u8>,
) -> Result<&'out [u8], HpackError> {
    Ok(string::decode(7, input, scratch)?)
}
