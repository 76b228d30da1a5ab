//! Owns what must hold of a [`Decoder`] whatever the blocks: the body of the fuzz target.

use super::{Decoder, HpackError, Kind, Section};

/// Reads `data` as the field blocks of one connection and panics when the memo changes what is read,
/// or when a bound is passed.
///
/// The first byte is the advertised table size, in units of 32 bytes. Then records follow, each
/// begun by a byte: its top bit says that a block is a trailer section; its others are 0 for the
/// acknowledgement of SETTINGS, 1 to 95 for a block of so many bytes, which follow, and 96 and more
/// for one of the last 32 blocks once more.
pub fn fuzz_block(data: &[u8]) {
    let Some((&units, mut records)) = data.split_first() else { return };
    let table_size = u32::from(units) * 32;
    let mut knowing = Decoder::new(table_size, LIST_LIMIT);
    let mut anew = Decoder::new(table_size, LIST_LIMIT);
    let mut blocks: Vec<&[u8]> = Vec::new();
    while let Some((&begin, rest)) = records.split_first() {
        records = rest;
        let kind = if begin & 0x80 == 0 { Kind::Response } else { Kind::Trailers };
        let block = match usize::from(begin & 0x7f) {
            0 => {
                knowing.settings_acknowledged();
                anew.settings_acknowledged();
                continue;
            }
            length @ 1..REPEAT => {
                let (block, rest) = records.split_at(length.min(records.len()));
                records = rest;
                blocks.push(block);
                block
            }
            repeat => match blocks.iter().nth_back(repeat - REPEAT) {
                Some(block) => block,
                None => continue,
            },
        };
        let section = knowing.decode(block, kind);
        assert_eq!(section, anew.decode_anew(block, kind), "a memo changes nothing");
        assert!(knowing.has_table_of(&anew), "a memo changes the table as the block does");
        check(section, kind);
        if section.is_err() {
            return;
        }
    }
}

/// What holds of every section.
fn check(section: Result<Section, HpackError>, kind: Kind) {
    let Ok(section) = section else { return };
    assert!(section.size <= u64::from(LIST_LIMIT));
    assert!(section.size >= u64::from(section.fields) * 32);
    let has_status = (100..=999).contains(&section.status);
    assert_eq!(has_status, kind == Kind::Response && section.malformed.is_none());
    assert!(has_status || section.content_length.is_none());
}

/// Most bytes of a section.
const LIST_LIMIT: u32 = 2048;

/// The first byte of a record, without its top bit, from which on it repeats a block.
const REPEAT: usize = 96;
