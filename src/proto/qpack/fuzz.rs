//! Owns what must hold of a [`Decoder`] whatever the sections and instructions: the body of the fuzz target.

use super::{Config, Decoded, Decoder, PeerDecoder, QpackError};
use crate::proto::hpack::{Kind, Section};

/// Reads `data` as the sections and encoder instructions of one connection, and panics when the memo
/// changes what is read, when the outcome depends on how instructions were cut, or when a bound is
/// passed.
///
/// The first byte is the advertised table capacity, in units of 32 bytes. Then records follow, each begun
/// by a byte: its top bit says that a section is a trailer section; its others are 0 for instructions of
/// the encoder stream, whose length is the next byte, 1 to 95 for a section of so many bytes, which
/// follow, and 96 and more for one of the last 32 sections once more. What follows as instructions is
/// also read as a decoder stream.
pub fn fuzz_section(data: &[u8]) {
    let Some((&units, mut records)) = data.split_first() else { return };
    let config = Config { table_capacity: u32::from(units) * 32, blocked_streams: 1 };
    let mut knowing = Decoder::new(config, LIST_LIMIT);
    let mut anew = Decoder::new(config, LIST_LIMIT);
    let mut sections: Vec<&[u8]> = Vec::new();
    while let Some((&begin, rest)) = records.split_first() {
        records = rest;
        let kind = if begin & 0x80 == 0 { Kind::Response } else { Kind::Trailers };
        let section = match usize::from(begin & 0x7f) {
            0 => {
                let Some((&length, rest)) = records.split_first() else { return };
                let (instructions, rest) = rest.split_at(usize::from(length).min(rest.len()));
                records = rest;
                if instruct(&mut knowing, &mut anew, instructions).is_err() {
                    return;
                }
                continue;
            }
            length @ 1..REPEAT => {
                let (section, rest) = records.split_at(length.min(records.len()));
                records = rest;
                sections.push(section);
                section
            }
            repeat => match sections.iter().nth_back(repeat - REPEAT) {
                Some(section) => section,
                None => continue,
            },
        };
        let decoded = knowing.decode(STREAM, section, kind);
        assert_eq!(decoded, anew.decode_anew(STREAM, section, kind), "a memo changes nothing");
        check_output(&mut knowing, &mut anew);
        match decoded {
            Ok(Decoded::Section(section)) => check(section, kind),
            Ok(Decoded::Blocked(required)) => assert!(required > knowing.inserted()),
            Ok(Decoded::TooLarge) => {}
            Err(_) => return,
        }
    }
}

/// Both decoders take the instructions, one of them byte by byte.
fn instruct(knowing: &mut Decoder, anew: &mut Decoder, instructions: &[u8]) -> Result<(), QpackError> {
    let whole = knowing.receive(instructions);
    let in_pieces = instructions.chunks(1).try_for_each(|piece| anew.receive(piece));
    assert_eq!(whole.is_err(), in_pieces.is_err(), "{whole:?} or {in_pieces:?}");
    whole?;
    assert!(knowing.has_table_of(anew), "the cuts change the table");
    let most = 8 * knowing.config().table_capacity as usize + 32;
    assert!(knowing.held() <= most && knowing.held() == anew.held());
    check_output(knowing, anew);

    let (mut peer, mut peer_in_pieces) = (PeerDecoder::default(), PeerDecoder::default());
    let whole = peer.receive(instructions);
    assert_eq!(whole, instructions.chunks(1).try_for_each(|piece| peer_in_pieces.receive(piece)));
    Ok(())
}

fn check_output(knowing: &mut Decoder, anew: &mut Decoder) {
    assert_eq!(std::mem::take(knowing.output()), std::mem::take(anew.output()));
}

/// What holds of every section.
fn check(section: Section, kind: Kind) {
    assert!(section.size <= u64::from(LIST_LIMIT));
    assert!(section.size >= u64::from(section.fields) * 32);
    let has_status = (100..=999).contains(&section.status);
    assert_eq!(has_status, kind == Kind::Response && section.malformed.is_none());
    assert!(has_status || section.content_length.is_none());
}

/// The stream of all sections.
const STREAM: u64 = 4;

/// Most bytes of a section.
const LIST_LIMIT: u32 = 2048;

/// The first byte of a record, without its top bit, from which on it repeats a section.
const REPEAT: usize = 96;
