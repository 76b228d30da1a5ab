//! Owns the tests of whole sections and instructions; `tests/fields_foreign/` has those against other
//! implementations.

use proptest::prelude::*;

use super::{Config, Decoded, Decoder, PeerDecoder, QpackError, encode_section, fuzz_section, table};
use crate::proto::hpack::{HuffmanError, Kind, Malformed};

const NO_LIMIT: u32 = u32::MAX;
const OFFERED: Config = Config { table_capacity: 220, blocked_streams: 4 };

/// The example of RFC 9204 appendix B, all of it. Its sections are requests' and lack `:status`.
#[test]
fn examples_of_rfc_9204_appendix_b() {
    let mut decoder = Decoder::new(OFFERED, NO_LIMIT);
    let fields = |decoder: &mut Decoder, stream, block: &str| match decoder
        .decode(stream, &hex(block), Kind::Trailers)
        .unwrap()
    {
        Decoded::Section(section) => (section.fields, section.size),
        other => panic!("{block}: {other:?}"),
    };
    // B.1: a literal with a name of the static table, and no dynamic table.
    assert_eq!(fields(&mut decoder, 0, "0000510b2f696e6465782e68746d6c"), (1, 5 + 11 + 32));
    // B.2: two insertions; a section that needs them comes first and waits.
    let blocked = hex("03811011");
    assert_eq!(decoder.decode(4, &blocked, Kind::Trailers), Ok(Decoded::Blocked(2)));
    assert_eq!(take(&mut decoder), b"");
    decoder.receive(&hex("3fbd01c00f7777772e6578616d706c652e636f6dc10c2f73616d706c652f70617468")).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (2, 106));
    assert_eq!(fields(&mut decoder, 4, "03811011"), (2, 106));
    assert_eq!(take(&mut decoder), hex("84"));
    // B.3: a literal name is inserted, which is told as an increment.
    decoder.receive(&hex("4a637573746f6d2d6b65790c637573746f6d2d76616c7565")).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (3, 160));
    assert_eq!(take(&mut decoder), hex("01"));
    // B.4: a duplicate, a section that is never read, its cancellation.
    decoder.receive(&hex("02")).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (4, 217));
    assert_eq!(fields(&mut decoder, 8, "050080c181"), (3, 57 + 38 + 54));
    decoder.cancel(8);
    assert_eq!(take(&mut decoder), hex("8848"));
    // B.5: an insertion that evicts the first entry.
    decoder.receive(&hex("810d637573746f6d2d76616c756532")).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (5, 215));
    assert_eq!(take(&mut decoder), hex("01"));
}

/// The prefix, for a table of at most six entries of which four were inserted (RFC 9204 §4.5.1).
#[test]
fn required_insert_count_and_base() {
    let cases = [
        ("0000", Ok(Some(()))),
        ("000a", Ok(Some(()))),
        ("0080", Err(QpackError::Base)),
        // 4, of which 6 is the most entries, 10 the most that can be required, 12 the range.
        ("0500", Ok(Some(()))),
        ("0583", Ok(Some(()))),
        ("0584", Err(QpackError::Base)),
        ("05ff00", Err(QpackError::Base)),
        // 5 to 10 are to come.
        ("0600", Ok(None)),
        ("0b00", Ok(None)),
        // 11 would be too many, and is -1 when the range is taken off.
        ("0c00", Err(QpackError::RequiredInsertCount)),
        // 12 or 0; beyond the range.
        ("0100", Err(QpackError::RequiredInsertCount)),
        ("0d00", Err(QpackError::RequiredInsertCount)),
        ("ffffffffffffffffffff", Err(QpackError::IntegerOverflow)),
        ("057fffffffffffffffff7f", Err(QpackError::IntegerOverflow)),
        ("05", Err(QpackError::Truncated)),
        ("", Err(QpackError::Truncated)),
    ];
    for (block, expected) in cases {
        let mut decoder = filled(4);
        let decoded = decoder.decode(0, &hex(block), Kind::Trailers);
        let decoded = decoded.map(|decoded| matches!(decoded, Decoded::Section(_)).then_some(()));
        assert_eq!(decoded, expected, "{block}");
    }
}

/// The count is sent modulo 12, however much was inserted.
#[test]
fn required_insert_counts_wrap() {
    for inserted in 1..60 {
        let mut decoder = filled(inserted);
        for required in inserted.saturating_sub(5).max(1)..=inserted + 6 {
            let block = [(required % 12 + 1) as u8, 0];
            let decoded = decoder.decode(0, &block, Kind::Trailers).unwrap();
            if required <= inserted {
                assert!(matches!(decoded, Decoded::Section(_)), "{required} of {inserted}");
            } else {
                assert_eq!(decoded, Decoded::Blocked(required), "of {inserted}");
            }
        }
    }
}

/// Entries `a: 0`, `a: 1` and so on of 34 bytes, of which six fit.
fn filled(entries: u64) -> Decoder {
    let mut decoder = Decoder::new(OFFERED, NO_LIMIT);
    decoder.receive(&hex("3fbd01")).unwrap();
    for number in 0..entries {
        decoder.receive(&[0x41, b'a', 1, b'0' + (number % 10) as u8]).unwrap();
    }
    take(&mut decoder);
    decoder
}

/// Indices of every representation: with eight insertions, two to seven are there.
#[test]
fn indices() {
    let index = Err(QpackError::Index);
    // Eight are required, the Base is 5: 9 of 12, sign and delta 2.
    let cases = [
        // Relative to the Base: 4, 2, 1, beyond the first.
        ("80", Ok(1)),
        ("82", Ok(1)),
        ("83", index),
        ("85", index),
        ("4000", Ok(1)),
        ("4200", Ok(1)),
        ("4300", index),
        // Post-base: 5, 7, not required.
        ("10", Ok(1)),
        ("12", Ok(1)),
        ("13", index),
        ("0000", Ok(1)),
        ("0200", Ok(1)),
        ("0300", index),
        ("1fffffff7f", index),
        // The static table.
        ("ff23", Ok(1)),
        ("ff24", index),
        ("5f5300", Ok(1)),
        ("5f5400", index),
    ];
    for (lines, expected) in cases {
        let mut decoder = filled(8);
        let decoded = decoder.decode(0, &hex(&format!("0982{lines}")), Kind::Trailers);
        let decoded = decoded.map(|decoded| match decoded {
            Decoded::Section(section) => section.fields,
            other => panic!("{lines}: {other:?}"),
        });
        assert_eq!(decoded, expected, "{lines}");
    }
    // Not more may be referred to than is required, even when it is there: 5 of 8, Base 5.
    let mut decoder = filled(8);
    assert_eq!(decoder.decode(0, &hex("060080"), Kind::Trailers).map(|_| 1), Ok(1));
    for block in ["060010", "0600000000", "068110"] {
        let mut decoder = filled(8);
        let decoded = decoder.decode(0, &hex(block), Kind::Trailers).map(|_| 1);
        assert_eq!(decoded, if block == "068110" { Ok(1) } else { index }, "{block}");
    }
}

#[test]
fn sections_that_cannot_be_read() {
    use QpackError::{DynamicTableRefused, Huffman, IntegerOverflow, Truncated};
    let cases = [
        ("00", Truncated),
        ("0000ff", Truncated),
        ("0000510b2f", Truncated),
        ("000051", Truncated),
        ("000027", Truncated),
        ("000023616263", Truncated),
        ("0000ffffffffffffffffff7f", IntegerOverflow),
        ("00002fffffffffffffffff7f", IntegerOverflow),
        // A string that ends in zeros, and one with the end-of-string symbol.
        ("00005081 00", Huffman(HuffmanError::Padding)),
        ("00005084ffffffff", Huffman(HuffmanError::EndOfString)),
        ("020080", DynamicTableRefused),
        ("000080", DynamicTableRefused),
        ("000010", DynamicTableRefused),
        ("00004000", DynamicTableRefused),
        ("00000000", DynamicTableRefused),
    ];
    for (block, expected) in cases {
        let mut decoder = Decoder::new(Config::default(), NO_LIMIT);
        let decoded = decoder.decode(0, &hex(block), Kind::Response);
        assert_eq!(decoded, Err(expected), "{block}");
        assert_eq!(expected.code(), 0x200);
    }
}

#[test]
fn instructions_that_cannot_be_acted_on() {
    use QpackError::{EncoderCapacity, EncoderEntry, EncoderIndex, EncoderSyntax};
    let long = format!("3fbd0141617f{}", "80".repeat(12));
    let cases = [
        // 221 and an integer without end.
        ("3fbe01", EncoderCapacity),
        ("3fffffffffffffffff7f", EncoderSyntax),
        // Nothing may be inserted before there is a capacity.
        ("c000", EncoderEntry),
        ("4000", EncoderEntry),
        // A static index that is not there, a dynamic one, a duplicate of nothing.
        ("ff2400", EncoderIndex),
        ("3fbd018000", EncoderIndex),
        ("3fbd0100", EncoderIndex),
        ("3fbd01416101300280", EncoderIndex),
        // Huffman codes that are none.
        ("3fbd01c08100", EncoderSyntax),
        ("3fbd016100", EncoderSyntax),
        (&long, EncoderSyntax),
    ];
    for (bytes, expected) in cases {
        let bytes = hex(bytes);
        for step in 1..=bytes.len() {
            let mut decoder = Decoder::new(OFFERED, NO_LIMIT);
            let outcome = bytes.chunks(step).try_for_each(|piece| decoder.receive(piece));
            assert_eq!(outcome, Err(expected), "{bytes:02x?} in pieces of {step}");
            assert_eq!(expected.code(), 0x201);
        }
    }
}

/// An entry fits when its bytes and 32 do; a string that is too long is not waited for.
#[test]
fn entries_as_large_as_the_table() {
    let insertion = |length: usize| {
        [&[0x3f, 0xbd, 0x01, 0x41, b'a', 0x7f, (length - 127) as u8][..], &vec![b'x'; length]].concat()
    };
    let mut decoder = Decoder::new(OFFERED, NO_LIMIT);
    decoder.receive(&insertion(187)).unwrap();
    assert_eq!(decoder.table_bytes(), 220);
    decoder.receive(&[0x41, b'b', 0]).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (2, 33), "the first made room");
    let mut decoder = Decoder::new(OFFERED, NO_LIMIT);
    assert_eq!(decoder.receive(&insertion(188)), Err(QpackError::EncoderEntry));
    let mut decoder = Decoder::new(OFFERED, NO_LIMIT);
    decoder.receive(&[0x3f, 0xbd, 0x01, 0x41, b'a', 0x7f, 0xff, 0xff, 0x03]).unwrap();
    let outcome = (0..10_000).find_map(|_| decoder.receive(b"x").err());
    assert_eq!(outcome, Some(QpackError::EncoderEntry));
    // A smaller capacity evicts; what was evicted is not referred to any more.
    let mut decoder = filled(3);
    decoder.receive(&hex("3f03")).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (3, 34));
    assert_eq!(decoder.decode(0, &hex("040080"), Kind::Trailers).map(|_| ()), Ok(()));
    assert_eq!(decoder.decode(0, &hex("040081"), Kind::Trailers), Err(QpackError::Index));
}

#[test]
fn the_peers_decoder_stream() {
    use QpackError::{DecoderAcknowledgment, DecoderSyntax};
    let cases = [
        ("40447f80017fffffffffffffffff7f44", Ok(())),
        ("80", Err(DecoderAcknowledgment)),
        ("ff", Err(DecoderAcknowledgment)),
        ("01", Err(DecoderAcknowledgment)),
        ("00", Err(DecoderAcknowledgment)),
        ("7fffffffffffffffffff", Err(DecoderSyntax)),
    ];
    for (bytes, expected) in cases {
        let outcome = PeerDecoder::default().receive(&hex(bytes));
        assert_eq!(outcome, expected, "{bytes}");
        assert!(outcome.is_ok_and(|()| true) || expected.is_err_and(|error| error.code() == 0x202));
    }
}

#[test]
fn sections_above_the_limit_are_no_violation() {
    let section = hex("0000d921780179");
    let mut decoder = Decoder::new(OFFERED, 42 + 34);
    assert!(matches!(decoder.decode(0, &section, Kind::Response), Ok(Decoded::Section(_))));
    let mut decoder = Decoder::new(OFFERED, 42 + 33);
    assert_eq!(decoder.decode(0, &section, Kind::Response), Ok(Decoded::TooLarge));
    assert_eq!(
        decoder.decode(0, &section, Kind::Response),
        Ok(Decoded::TooLarge),
        "not from the memo either"
    );
}

/// A memo holds until the table changes, and the acknowledgments go out all the same.
#[test]
fn what_is_remembered_is_acknowledged() {
    let mut decoder = filled(1);
    let section = hex("020080");
    for _ in 0..3 {
        assert!(matches!(decoder.decode(0, &section, Kind::Trailers), Ok(Decoded::Section(_))));
        assert_eq!(take(&mut decoder), hex("80"));
    }
    decoder.receive(&hex("41620130")).unwrap();
    assert_eq!(take(&mut decoder), hex("01"));
    // In a table that has moved on, the same bytes refer to the same entry; once that is evicted, to none.
    let section = hex("030081");
    for _ in 0..2 {
        assert!(matches!(decoder.decode(0, &section, Kind::Trailers), Ok(Decoded::Section(_))));
    }
    for _ in 0..5 {
        decoder.receive(&hex("41620130")).unwrap();
    }
    assert_eq!(decoder.decode(0, &section, Kind::Trailers), Err(QpackError::Index));
}

#[test]
fn requests() {
    let section = |fields: &[(&str, &[u8])]| encode_section(fields);
    assert_eq!(section(&[]), hex("0000"));
    let request: [(&str, &[u8]); 4] =
        [(":method", b"GET"), (":scheme", b"https"), (":path", b"/"), ("accept", b"*/*")];
    assert_eq!(section(&request), hex("0000d1d7c1dd"));
    // B.1 of RFC 9204, where that is not Huffman-coded.
    assert_eq!(section(&[(":path", b"/index.html")]), hex("0000518860d5485f2bce9a68"));
    // A credential is never indexed; its name may be a reference or a literal.
    assert_eq!(section(&[("authorization", b"~")]), hex("00007f45017e"));
    assert_eq!(section(&[("proxy-authorization", b"~")])[2] & 0xf0, 0x30);
    assert_eq!(section(&[("x", b"~")]), hex("00002178017e"));
}

#[test]
fn the_static_table() {
    assert_eq!(table::STATIC.len(), 99);
    // Rows of appendix A from all over it.
    for (index, row) in [
        (0, (":authority", "")),
        (4, ("content-length", "0")),
        (15, (":method", "CONNECT")),
        (25, (":status", "200")),
        (41, ("cache-control", "public, max-age=31536000")),
        (54, ("content-type", "text/plain;charset=utf-8")),
        (63, (":status", "100")),
        (71, (":status", "500")),
        (85, ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'")),
        (98, ("x-frame-options", "sameorigin")),
    ] {
        assert_eq!(table::STATIC[index], row, "{index}");
    }
    let mut decoder = Decoder::new(Config::default(), NO_LIMIT);
    for (index, (name, value)) in table::STATIC.iter().enumerate() {
        let mut block = vec![0, 0];
        crate::proto::hpack::integer::encode(index as u64, 6, 0xc0, &mut block);
        let Ok(Decoded::Section(section)) = decoder.decode(0, &block, Kind::Response) else {
            panic!("{index}")
        };
        assert_eq!(section.size, (name.len() + value.len() + 32) as u64, "{index}");
        if *name == ":status" {
            assert_eq!(section.status.to_string(), *value);
        } else {
            assert!(section.malformed.is_some_and(|reason| matches!(
                reason,
                Malformed::MissingStatus | Malformed::UnknownPseudoHeader
            )));
        }
    }
    let Ok(Decoded::Section(empty)) = decoder.decode(0, &hex("0000d9c4"), Kind::Response) else { panic!() };
    assert_eq!((empty.status, empty.content_length), (200, Some(0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever comes: no panic, the same with and without the memo and however it is cut, bounds kept.
    #[test]
    fn hostile_sections(units: u8, records in prop::collection::vec(record(), 0..16)) {
        fuzz_section(&[&[units], &records.concat()[..]].concat());
    }
}

/// Records for the fuzz target that mean something more often than bytes at random.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let instruction = prop_oneof![
        (0..64_u8).prop_map(|capacity| vec![0x20 | (capacity & 0x1e)]),
        Just(hex("3fe11f")),
        Just(hex("41610130")),
        Just(hex("d803343138")),
        (0..4_u8).prop_map(|index| vec![index]),
        (0..4_u8).prop_map(|index| vec![0x80 | index, 1, b'z']),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let instructions = prop::collection::vec(instruction, 0..4).prop_map(|all| {
        let bytes = all.concat();
        [&[0, bytes.len() as u8], &bytes[..]].concat()
    });
    let line = prop_oneof![
        Just(hex("d9")),
        (0..4_u8).prop_map(|index| vec![0x80 | index]),
        (0..4_u8).prop_map(|index| vec![0x10 | index]),
        Just(hex("21780179")),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    let section =
        (0..12_u8, prop_oneof![Just(0_u8), 0..4_u8, 0x80..0x84_u8], prop::collection::vec(line, 0..4));
    let section = (section, any::<bool>()).prop_map(|((required, base, lines), trailers)| {
        let bytes = [&[required, base], &lines.concat()[..]].concat();
        [&[bytes.len() as u8 | u8::from(trailers) << 7], &bytes[..]].concat()
    });
    let again = (96..128_u8).prop_map(|begin| vec![begin]);
    prop_oneof![2 => instructions, 3 => section, 1 => again]
}

fn take(decoder: &mut Decoder) -> Vec<u8> {
    std::mem::take(decoder.output())
}

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        digits.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
