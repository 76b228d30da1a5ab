//! HPACK: blocks that httlib-hpack and loona-hpack encode, requests that they decode.

use bench::proto::hpack::{self, Kind, Section};
use proptest::prelude::*;

use crate::fields::{self, Field, any_field, regular_field, request_field, status};

/// A field block and what is done before it.
#[derive(Clone, Debug)]
struct Block {
    /// Sizes the encoder sets its table to, one after the other.
    sizes: Vec<u32>,
    kind: Kind,
    /// Fields, and for each how it is represented: flags of `httlib_hpack::Encoder`.
    fields: Vec<(Field, u8)>,
    /// Whether it is sent twice more, so that a memo may know it; encoded again each time.
    repeated: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// One connection's blocks by an encoder that is told each representation.
    #[test]
    fn blocks_of_httlib_are_read(blocks in prop::collection::vec(any_block(), 1..12)) {
        let mut encoder = httlib_hpack::Encoder::default();
        let mut decoder = hpack::Decoder::new(4096, u32::MAX);
        let mut transcribing = hpack::Decoder::new(4096, u32::MAX);
        transcribing.transcribe();
        for block in blocks {
            let mut sizes = &block.sizes[..];
            for _ in 0..if block.repeated { 3 } else { 1 } {
                let mut bytes = Vec::new();
                for &size in std::mem::take(&mut sizes) {
                    encoder.update_max_dynamic_size(size, &mut bytes).unwrap();
                }
                for ((name, value), flags) in block.fields.iter().cloned() {
                    encoder.encode((name, value, flags), &mut bytes).unwrap();
                }
                let section = decoder.decode(&bytes, block.kind);
                prop_assert_eq!(section, Ok(expected(&block)), "{:02x?}", bytes);
                prop_assert_eq!(transcribing.decode(&bytes, block.kind), section);
                let fields = block.fields.iter().map(|(field, _)| field);
                prop_assert!(fields::is_transcribed(fields, block.kind, transcribing.transcript()));
            }
        }
    }

    /// The same by an encoder that decides for itself, and does not use the Huffman code.
    #[test]
    fn blocks_of_loona_are_read(blocks in prop::collection::vec(any_block(), 1..12)) {
        let mut encoder = loona_hpack::Encoder::new();
        let mut decoder = hpack::Decoder::new(4096, u32::MAX);
        let mut transcribing = hpack::Decoder::new(4096, u32::MAX);
        transcribing.transcribe();
        for block in blocks {
            let mut sizes = &block.sizes[..];
            for _ in 0..if block.repeated { 3 } else { 1 } {
                let mut bytes = Vec::new();
                for &size in std::mem::take(&mut sizes) {
                    encoder.set_max_table_size(size as usize);
                    hpack::table_size_update(size, &mut bytes);
                }
                let fields = block.fields.iter().map(|((name, value), _)| (&name[..], &value[..]));
                encoder.encode_into(fields, &mut bytes).unwrap();
                let section = decoder.decode(&bytes, block.kind);
                prop_assert_eq!(section, Ok(expected(&block)), "{:02x?}", bytes);
                prop_assert_eq!(transcribing.decode(&bytes, block.kind), section);
                let fields = block.fields.iter().map(|(field, _)| field);
                prop_assert!(fields::is_transcribed(fields, block.kind, transcribing.transcript()));
            }
        }
    }

    /// The three ways of saying a request are the same request to others, in the order in which a
    /// connection says them, and need the table they say they need.
    #[test]
    fn requests_are_read_by_others(
        fields in prop::collection::vec(request_field(), 0..12),
        most_table in prop_oneof![Just(4096), 0..400_u32],
        nexts in 1..4_usize,
    ) {
        let texts: Vec<(&str, &[u8])> = fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let expected: Vec<Field> =
            fields.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone())).collect();
        let request = hpack::encode_request(&texts, most_table);
        prop_assert!(request.table_size <= most_table);

        let mut plain = loona_hpack::Decoder::new();
        plain.set_max_table_size(0);
        prop_assert_eq!(&plain.decode(&request.plain).unwrap(), &expected);

        let mut loona = loona_hpack::Decoder::new();
        loona.set_max_table_size(request.table_size as usize);
        // This one has to be told by an update, which also has another reader for it.
        let mut httlib = httlib_hpack::Decoder::default();
        let mut update = Vec::new();
        hpack::table_size_update(request.table_size, &mut update);
        // `first` may come again at any time, and `plain` in between.
        let course = [&request.first, &request.plain].into_iter();
        let course = course.chain(std::iter::repeat_n(&request.next, nexts)).chain([&request.first, &request.next]);
        for bytes in course {
            prop_assert_eq!(&loona.decode(bytes).unwrap(), &expected);
            let mut bytes = [std::mem::take(&mut update), bytes.clone()].concat();
            let mut decoded = Vec::new();
            httlib.decode(&mut bytes, &mut decoded).unwrap();
            let never_indexed = 0x8;
            for (name, value, flags) in &decoded {
                // The static table has both names without a value, which is no secret.
                let credential = name == b"authorization" || (name == b"cookie" && value.len() < 20);
                let secret = credential && !value.is_empty();
                prop_assert_eq!(flags & never_indexed != 0, secret, "{:?}", name);
            }
            let decoded: Vec<Field> = decoded.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(&decoded, &expected);
        }
    }
}

/// What a block says, from its text.
fn expected(block: &Block) -> Section {
    fields::section(block.fields.iter().map(|(field, _)| field), block.kind)
}

fn any_block() -> impl Strategy<Value = Block> {
    let sizes = prop_oneof![
        4 => Just(vec![]),
        1 => prop::collection::vec(prop_oneof![0..300_u32, Just(0), Just(4096)], 1..3),
    ];
    let kind = prop_oneof![3 => Just(Kind::Response), 1 => Just(Kind::Trailers)];
    let well_formed = ((status(), flags()), prop::collection::vec((regular_field(), flags()), 0..8))
        .prop_map(|(status, fields)| [vec![status], fields].concat());
    let whatever = prop::collection::vec((any_field(), flags()), 0..8);
    let fields = prop_oneof![2 => well_formed, 1 => whatever];
    (sizes, kind, fields, any::<bool>()).prop_map(|(sizes, kind, fields, repeated)| Block {
        sizes,
        kind,
        fields,
        repeated,
    })
}

/// A representation: with indexing, never indexed or neither; Huffman-coded or not; from the tables or not.
fn flags() -> impl Strategy<Value = u8> {
    let indexing = prop::sample::select(vec![0x0, 0x4, 0x4, 0x8]);
    let table = prop::sample::select(vec![0x0, 0x10, 0x10]);
    (indexing, 0..4_u8, table).prop_map(|(indexing, huffman, table)| indexing | huffman | table)
}
