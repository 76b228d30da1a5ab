//! Owns the tests of whole field blocks; `tests/fields_foreign/` has those against other implementations.

use proptest::prelude::*;

use super::{
    Decoder, HpackError, HuffmanError, Kind, Malformed, RequestBlock, Section, encode_request, integer,
    table_size_update,
};

const NO_LIMIT: u32 = u32::MAX;

const WITH_INDEXING: u8 = 0x40;
const WITHOUT_INDEXING: u8 = 0x00;
const NEVER_INDEXED: u8 = 0x10;

#[test]
fn representations_of_rfc_7541_c_2() {
    let cases = [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", 55, 55),
        ("040c2f73616d706c652f70617468", 49, 0),
        ("100870617373776f726406736563726574", 46, 0),
        ("82", 42, 0),
    ];
    for (block, size, table) in cases {
        let mut decoder = Decoder::new(4096, NO_LIMIT);
        let section = decoder.decode(&hex(block), Kind::Trailers).unwrap();
        assert_eq!((section.fields, section.size, decoder.table_bytes()), (1, size, table), "{block}");
    }
}

/// The dynamic table is known after each of them. Requests lack `:status`.
#[test]
fn requests_of_rfc_7541_c_3_and_c_4() {
    let plain = [
        ("828684410f7777772e6578616d706c652e636f6d", 4, 57),
        ("828684be58086e6f2d6361636865", 5, 110),
        ("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", 5, 164),
    ];
    let coded = [
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", 4, 57),
        ("828684be5886a8eb10649cbf", 5, 110),
        ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", 5, 164),
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new(4096, NO_LIMIT);
        for (block, fields, table) in blocks {
            let section = decoder.decode(&hex(block), Kind::Response).unwrap();
            assert_eq!(section.fields, fields, "{block}");
            assert_eq!(section.malformed, Some(Malformed::UnknownPseudoHeader));
            assert_eq!(decoder.table_bytes(), table, "{block}");
        }
    }
}

/// Their table of 256 bytes evicts.
#[test]
fn responses_of_rfc_7541_c_5_and_c_6() {
    let plain = [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54\
         6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f\
         3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076\
         657273696f6e3d31",
    ];
    let coded = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f\
         0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335df\
         dfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    let after = [(302, 4, 222, 222), (307, 4, 222, 222), (200, 6, 372, 215)];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new(256, NO_LIMIT);
        decoder.settings_acknowledged();
        for (number, (block, (status, fields, size, table))) in blocks.into_iter().zip(after).enumerate() {
            let update = if number == 0 { updates(&[256]) } else { Vec::new() };
            let section = decoder.decode(&[update, hex(block)].concat(), Kind::Response);
            let expected = Section { status, fields, size, content_length: None, malformed: None };
            assert_eq!(section, Ok(expected), "block {number}");
            assert_eq!(decoder.table_bytes(), table, "block {number}");
        }
    }
}

#[test]
fn sections_as_a_whole() {
    use Malformed::{
        ConflictingContentLength, ConnectionSpecificField, DuplicateStatus, InvalidContentLength,
        InvalidStatus, InvalidValue, MisplacedPseudoHeader, MissingStatus, PseudoHeaderInTrailers,
        UnknownPseudoHeader, UppercaseName,
    };
    type Case<'a> = (&'a [(&'a str, &'a str)], Result<(u16, Option<u64>), Malformed>, Option<Malformed>);
    let status = (":status", "200");
    let in_trailers = Some(PseudoHeaderInTrailers);
    // Fields; what they are as a response: status and length, or the fault; their fault as trailers.
    let cases: [Case; 20] = [
        (&[status], Ok((200, None)), in_trailers),
        (&[status, ("content-length", "5"), ("x", "y")], Ok((200, Some(5))), in_trailers),
        (&[(":status", "103"), ("link", "</a>")], Ok((103, None)), in_trailers),
        (&[], Err(MissingStatus), None),
        (&[("x", "y")], Err(MissingStatus), None),
        (&[("te", "trailers"), status], Err(MisplacedPseudoHeader), in_trailers),
        (&[status, status], Err(DuplicateStatus), in_trailers),
        (&[(":status", "2000")], Err(InvalidStatus), in_trailers),
        (&[status, (":path", "/")], Err(UnknownPseudoHeader), in_trailers),
        (&[status, ("x", "y"), (":path", "/")], Err(MisplacedPseudoHeader), in_trailers),
        (&[status, ("connection", "close")], Err(ConnectionSpecificField), in_trailers),
        (&[("transfer-encoding", "chunked")], Err(ConnectionSpecificField), Some(ConnectionSpecificField)),
        (&[("Server", "x")], Err(UppercaseName), Some(UppercaseName)),
        // A field that is itself at fault is a regular one all the same.
        (&[("X", "y"), status], Err(UppercaseName), Some(UppercaseName)),
        (&[status, ("x", "a\nb")], Err(InvalidValue), in_trailers),
        (&[status, ("content-length", "5"), ("content-length", "5")], Ok((200, Some(5))), in_trailers),
        (
            &[status, ("content-length", "5"), ("content-length", "6")],
            Err(ConflictingContentLength),
            in_trailers,
        ),
        (&[status, ("content-length", "five")], Err(InvalidContentLength), in_trailers),
        // The first fault is the one that is named.
        (&[("x", "\0"), ("Y", ""), status], Err(InvalidValue), Some(InvalidValue)),
        (&[("content-length", "5"), ("content-length", "five")], Err(InvalidContentLength), None),
    ];
    for (fields, response, trailers) in cases {
        let size = fields.iter().map(|(name, value)| (name.len() + value.len() + 32) as u64).sum();
        let blank = Section { fields: fields.len() as u32, size, ..Section::default() };
        let response = match response {
            Ok((status, content_length)) => Section { status, content_length, ..blank },
            Err(reason) => Section { malformed: Some(reason), ..blank },
        };
        let trailers = Section { malformed: trailers, ..blank };
        for form in [WITH_INDEXING, WITHOUT_INDEXING, NEVER_INDEXED] {
            let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(form, name, value)).collect();
            let mut decoder = Decoder::new(4096, NO_LIMIT);
            // Twice: the second time from the memo, and then from the table.
            for _ in 0..2 {
                assert_eq!(decoder.decode(&block, Kind::Response), Ok(response), "{fields:?}");
                assert_eq!(decoder.decode(&block, Kind::Trailers), Ok(trailers), "{fields:?}");
            }
            if form == WITH_INDEXING {
                let newest = 61 + fields.len() as u8;
                let indexed: Vec<u8> = (62..=newest).rev().map(|index| 0x80 | index).collect();
                assert_eq!(decoder.decode(&indexed, Kind::Response), Ok(response), "{fields:?}");
                assert_eq!(decoder.decode(&indexed, Kind::Trailers), Ok(trailers), "{fields:?}");
            }
        }
    }
}

/// A name from a table means what it meant there, with whatever value.
#[test]
fn names_by_index() {
    let mut decoder = Decoder::new(4096, NO_LIMIT);
    let block = [&hex("0803323031")[..], b"\x0f\x0d\x0212"].concat();
    let section = decoder.decode(&block, Kind::Response).unwrap();
    assert_eq!((section.status, section.content_length), (201, Some(12)));
    assert_eq!(section.size, (7 + 3 + 32) + (14 + 2 + 32));

    decoder.decode(&literal(WITH_INDEXING, "Bad", "x"), Kind::Trailers).unwrap();
    let again = decoder.decode(b"\x0f\x2f\x03two", Kind::Trailers).unwrap();
    assert_eq!((again.malformed, again.size), (Some(Malformed::UppercaseName), 3 + 3 + 32));
}

#[test]
fn blocks_that_cannot_be_read() {
    let cases: [(&str, HpackError); 19] = [
        // Index 0, and one beyond both tables.
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("ffffffff0f", HpackError::Index),
        ("7e0161", HpackError::Index),
        ("0f2f0161", HpackError::Index),
        // Cut off: in an index, before and in a name, before and in a value.
        ("ff", HpackError::Truncated),
        ("88ff80", HpackError::Truncated),
        ("40", HpackError::Truncated),
        ("400261", HpackError::Truncated),
        ("400161", HpackError::Truncated),
        ("4001610261", HpackError::Truncated),
        ("007f", HpackError::Truncated),
        ("3f", HpackError::Truncated),
        // 2^32 and more; as a length, an index and a size.
        ("007f81ffffff0f", HpackError::IntegerOverflow),
        ("ff81ffffff0f", HpackError::IntegerOverflow),
        ("3fe1ffffff0f", HpackError::IntegerOverflow),
        // A Huffman-coded value: padding of eight bits, of zeros, end-of-string.
        ("000161821fff", HpackError::Huffman(HuffmanError::Padding)),
        ("0001618118", HpackError::Huffman(HuffmanError::Padding)),
        ("000184ffffffff", HpackError::Truncated),
    ];
    for (block, error) in cases {
        let result = Decoder::new(4096, NO_LIMIT).decode(&hex(block), Kind::Response);
        assert_eq!(result, Err(error), "{block}");
    }
    let end_of_string = Decoder::new(4096, NO_LIMIT).decode(&hex("0084ffffffff00"), Kind::Response);
    assert_eq!(end_of_string, Err(HpackError::Huffman(HuffmanError::EndOfString)));
}

#[test]
fn size_updates() {
    let status = [0x88];
    let with = |sizes: &[u32]| [updates(sizes), status.to_vec()].concat();
    // Advertised, acknowledged, the block, the error.
    let cases: [(u32, bool, Vec<u8>, Option<HpackError>); 15] = [
        (4096, true, with(&[]), None),
        (4096, true, with(&[4096]), None),
        (4096, true, with(&[0, 4096]), None),
        (4096, true, with(&[0, 100, 4096]), None),
        (4096, true, with(&[4097]), Some(HpackError::TableSize)),
        (4096, true, [&status[..], &updates(&[0])].concat(), Some(HpackError::TableSizeMisplaced)),
        (0, false, with(&[]), None),
        (0, false, with(&[4096]), None),
        (0, true, with(&[]), Some(HpackError::TableSizeIgnored)),
        (0, true, with(&[0]), None),
        (0, true, with(&[1]), Some(HpackError::TableSize)),
        (0, true, [&status[..], &updates(&[0])].concat(), Some(HpackError::TableSizeIgnored)),
        (8192, false, with(&[8192]), None),
        (8192, true, with(&[8192]), None),
        (8192, true, with(&[8193]), Some(HpackError::TableSize)),
    ];
    for (advertised, acknowledged, block, error) in cases {
        let mut decoder = Decoder::new(advertised, NO_LIMIT);
        if acknowledged {
            decoder.settings_acknowledged();
        }
        let result = decoder.decode(&block, Kind::Response);
        assert_eq!(result.err(), error, "{advertised}, acknowledged {acknowledged}: {block:02x?}");
    }
}

/// What is known by heart does not excuse a peer from the update it owes, and an update is due once.
#[test]
fn a_memo_does_not_hide_a_missing_update() {
    let mut decoder = Decoder::new(0, NO_LIMIT);
    assert!(decoder.decode(&[0x88], Kind::Response).is_ok());
    decoder.settings_acknowledged();
    assert_eq!(decoder.decode(&[0x88], Kind::Response), Err(HpackError::TableSizeIgnored));

    let mut decoder = Decoder::new(0, NO_LIMIT);
    assert!(decoder.decode(&[0x88], Kind::Response).is_ok());
    decoder.settings_acknowledged();
    assert!(decoder.decode(&[0x20, 0x88], Kind::Response).is_ok());
    assert!(decoder.decode(&[0x88], Kind::Response).is_ok());
}

#[test]
fn an_entry_larger_than_the_table_empties_it() {
    let mut decoder = Decoder::new(4096, NO_LIMIT);
    let small = [updates(&[64]), literal(WITH_INDEXING, "x", "y")].concat();
    decoder.decode(&small, Kind::Trailers).unwrap();
    assert_eq!(decoder.table_bytes(), 34);
    assert!(decoder.decode(&[0xbe], Kind::Trailers).is_ok());
    // 65 bytes, its name that of the entry that goes.
    let large = [&[0x7e, 32][..], &[b'z'; 32]].concat();
    let section = decoder.decode(&large, Kind::Trailers).unwrap();
    assert_eq!((section.size, decoder.table_bytes()), (65, 0));
    assert_eq!(decoder.decode(&[0xbe], Kind::Trailers), Err(HpackError::Index));
}

#[test]
fn the_limit_of_a_section_counts_every_field() {
    let block = [literal(WITHOUT_INDEXING, ":status", "200"), literal(WITH_INDEXING, "x", "y")].concat();
    let size = (7 + 3 + 32) + (1 + 1 + 32);
    assert_eq!(Decoder::new(4096, size).decode(&block, Kind::Response).map(|section| section.size), Ok(76));
    assert_eq!(Decoder::new(4096, size - 1).decode(&block, Kind::Response), Err(HpackError::ListTooLarge));
    // A few bytes that say much.
    let bomb = [literal(WITH_INDEXING, "x", &"y".repeat(3000)), vec![0xbe; 16]].concat();
    assert_eq!(Decoder::new(4096, 16 * 1024).decode(&bomb, Kind::Trailers), Err(HpackError::ListTooLarge));
}

#[test]
fn requests_in_three_ways() {
    let get: [(&str, &[u8]); 4] =
        [(":method", b"GET"), (":scheme", b"http"), (":path", b"/"), (":authority", b"www.example.com")];
    let coded = "8cf1e3c2e5f23a6ba0ab90f4ff";
    let expected = RequestBlock {
        first: hex(&format!("82868441{coded}")), // RFC 7541 C.4.1
        next: hex("828684be"),
        plain: hex(&format!("82868401{coded}")),
        table_size: 57,
    };
    assert_eq!(encode_request(&get, 4096), expected);
    assert_eq!(encode_request(&get, 57), expected);

    let plain = expected.plain;
    let without = RequestBlock { first: plain.clone(), next: plain.clone(), plain, table_size: 0 };
    assert_eq!(encode_request(&get, 56), without, "one byte too few");
    assert_eq!(encode_request(&get, 0), without);
    assert_eq!(
        encode_request(&[], 4096),
        RequestBlock { first: vec![], next: vec![], plain: vec![], table_size: 0 }
    );
}

#[test]
fn what_is_not_added_to_a_table() {
    let long = [b'c'; 20];
    let fields: [(&str, &[u8]); 6] = [
        ("authorization", b"Basic x"),
        ("cookie", b"a=b"),
        ("cookie", &long),
        ("proxy-authorization", b"Basic y"),
        ("x", b"1"),
        ("x", b"1"),
    ];
    let block = encode_request(&fields, 4096);
    assert_eq!(block.table_size, (6 + 20 + 32) + (1 + 1 + 32), "the long cookie and one x");
    // authorization is 23, cookie 32 and proxy-authorization 49; never indexed, in all three ways.
    for bytes in [&block.first, &block.next, &block.plain] {
        assert_eq!(bytes[..2], [NEVER_INDEXED | 0x0f, 23 - 15]);
        let mut decoder = Decoder::new(4096, NO_LIMIT);
        decoder.decode(&block.first, Kind::Trailers).unwrap();
        assert_eq!(decoder.table_bytes(), block.table_size);
        let section = decoder.decode(bytes, Kind::Trailers).unwrap();
        assert_eq!(section.fields, 6);
    }
    // The second x is an index also where the first one is a literal.
    assert!(block.first.ends_with(&[0xbe]));
    assert!(block.next.ends_with(&[0xbe, 0xbe]));
    assert!(block.plain.ends_with(&[0x00, 0x01, b'x', 0x01, b'1']));
}

/// A block, made of what blocks are made of; not always to the end, and with indexes up to this one.
fn any_block(most_index: u8) -> impl Strategy<Value = Vec<u8>> {
    let name =
        prop::sample::select(vec![":status", ":path", "content-length", "server", "x", "X", "upgrade", ""]);
    let value = prop::sample::select(vec!["200", "404", "7", "8", "", "\0", "some text", " y"]);
    let form = prop::sample::select(vec![WITH_INDEXING, WITHOUT_INDEXING, NEVER_INDEXED]);
    let representation = prop_oneof![
        6 => (form, name, value).prop_map(|(form, name, value)| literal(form, name, value)),
        2 => (1..62_u8).prop_map(|index| vec![0x80 | index]),
        2 => (62..=most_index).prop_map(|index| vec![0x80 | index]),
        2 => (1..80_u8).prop_map(|name| vec![0x40 | name.min(0x3e), 1, b'5']),
        u32::from(most_index > PRELOADED) => prop::collection::vec(any::<u8>(), 1..4),
    ];
    let sizes = prop_oneof![
        8 => Just(vec![]),
        1 => prop::collection::vec(prop_oneof![0..200_u32, Just(4096), Just(5000)], 1..3),
    ];
    (sizes, prop::collection::vec(representation, 0..6))
        .prop_map(|(sizes, representations)| [updates(&sizes), representations.concat()].concat())
}

/// A block that fills the table up to index [`PRELOADED`].
fn preload() -> Vec<u8> {
    let names = ["x", "content-length", "Bad", "server", "upgrade", "y"];
    names
        .iter()
        .zip(["1", "7", "", "s", "h2c", "\0"])
        .flat_map(|(n, v)| literal(WITH_INDEXING, n, v))
        .collect()
}

/// The last index of a table that holds [`preload`].
const PRELOADED: u8 = 61 + 6;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A decoder with its memo and one without say the same of blocks of which many come again,
    /// and are left with the same table.
    #[test]
    fn the_memo_changes_nothing(
        pool in prop::collection::vec(any_block(PRELOADED), 1..4),
        order in prop::collection::vec((any::<prop::sample::Index>(), prop::bool::weighted(0.8)), 0..40),
        table_size in prop_oneof![Just(4096), 0..4096_u32],
        acknowledged_at in 0..40_usize,
    ) {
        let mut knowing = Decoder::new(table_size, 1000);
        let mut anew = Decoder::new(table_size, 1000);
        for decoder in [&mut knowing, &mut anew] {
            decoder.decode(&preload(), Kind::Trailers).unwrap();
        }
        for (number, (index, is_response)) in order.into_iter().enumerate() {
            if number == acknowledged_at {
                for decoder in [&mut knowing, &mut anew] {
                    decoder.settings_acknowledged();
                    decoder.decode(&updates(&[table_size]), Kind::Trailers).unwrap();
                }
            }
            let kind = if is_response { Kind::Response } else { Kind::Trailers };
            let block = index.get(&pool);
            let result = knowing.decode(block, kind);
            prop_assert_eq!(result, anew.decode_anew(block, kind));
            prop_assert!(knowing.has_table_of(&anew));
            if result.is_err() {
                break;
            }
        }
    }

    /// The same with so few blocks so often that the table is full of them.
    #[test]
    fn nor_does_a_saturated_table(
        pool in prop::collection::vec(any_block(PRELOADED), 1..3),
        order in prop::collection::vec((any::<prop::sample::Index>(), 1..150_usize), 1..6),
        size in prop_oneof![Just(4096), 0..4096_u32],
    ) {
        let mut knowing = Decoder::new(4096, 4000);
        let mut anew = Decoder::new(4096, 4000);
        let update = updates(&[size]);
        prop_assert!(knowing.decode(&update, Kind::Trailers).is_ok());
        prop_assert!(anew.decode_anew(&update, Kind::Trailers).is_ok());
        for (index, times) in order {
            for _ in 0..times {
                let block: &Vec<u8> = index.get(&pool);
                let result = knowing.decode(block, Kind::Response);
                prop_assert_eq!(result, anew.decode_anew(block, Kind::Response));
                prop_assert!(knowing.has_table_of(&anew));
                if result.is_err() {
                    return Ok(());
                }
            }
        }
    }

    #[test]
    fn hostile_blocks_are_bounded(
        blocks in prop::collection::vec(prop_oneof![any_block(80), prop::collection::vec(any::<u8>(), 0..40)], 1..8),
        table_size in 0..5000_u32,
    ) {
        let mut decoder = Decoder::new(table_size, 500);
        for block in blocks {
            let Ok(section) = decoder.decode(&block, Kind::Response) else { break };
            prop_assert!(section.size <= 500);
            prop_assert!(u64::from(section.fields) * 32 <= section.size);
            prop_assert_eq!(section.status == 0, section.malformed.is_some());
            prop_assert!(decoder.table_bytes() <= table_size.max(4096));
        }
    }
}

/// A literal with a new name, which is not Huffman-coded, nor is its value.
fn literal(form: u8, name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![form];
    for text in [name, value] {
        integer::encode(text.len() as u64, 7, 0, &mut out);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn updates(sizes: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for &size in sizes {
        table_size_update(size, &mut out);
    }
    out
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
