//! Own HPACK against other implementations: blocks they encode are decoded here, requests encoded here
//! are decoded there. What a section is to say is computed from its text, which no decoder here sees.

use bench::proto::hpack::{self, Kind, Malformed, Section};
use proptest::prelude::*;

/// A field as text.
type Field = (Vec<u8>, Vec<u8>);

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
            }
        }
    }

    /// The same by an encoder that decides for itself, and does not use the Huffman code.
    #[test]
    fn blocks_of_loona_are_read(blocks in prop::collection::vec(any_block(), 1..12)) {
        let mut encoder = loona_hpack::Encoder::new();
        let mut decoder = hpack::Decoder::new(4096, u32::MAX);
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
    let mut section = Section::default();
    let mut regular = false;
    for ((name, value), _) in &block.fields {
        section.fields += 1;
        section.size += (name.len() + value.len() + 32) as u64;
        let fault = fault(name, value, block.kind, &section, regular);
        section.malformed = section.malformed.or(fault);
        regular |= !name.starts_with(b":");
        let text = || std::str::from_utf8(value).unwrap();
        match &name[..] {
            b":status" if fault.is_none() => section.status = text().parse().unwrap(),
            b"content-length" if fault.is_none() && block.kind == Kind::Response => {
                section.content_length = Some(text().parse().unwrap());
            }
            _ => {}
        }
    }
    if block.kind == Kind::Response && section.status == 0 {
        section.malformed = section.malformed.or(Some(Malformed::MissingStatus));
    }
    if section.malformed.is_some() {
        section = Section { status: 0, content_length: None, ..section };
    }
    section
}

/// What is wrong with one field, `section` and `regular` being what came before it.
fn fault(name: &[u8], value: &[u8], kind: Kind, section: &Section, regular: bool) -> Option<Malformed> {
    let text = std::str::from_utf8(value).ok();
    if name.starts_with(b":") {
        return match (kind, name) {
            (Kind::Trailers, _) => Some(Malformed::PseudoHeaderInTrailers),
            _ if regular => Some(Malformed::MisplacedPseudoHeader),
            (_, b":status") => match text.filter(|text| text.len() == 3).and_then(|text| text.parse().ok()) {
                Some(100..=999_u16) if section.status != 0 => Some(Malformed::DuplicateStatus),
                Some(100..=999) => None,
                _ => Some(Malformed::InvalidStatus),
            },
            _ => Some(Malformed::UnknownPseudoHeader),
        };
    }
    let connection_specific: [&[u8]; 5] =
        [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    let ruled_out = |byte: &u8| byte.is_ascii_uppercase() || *byte <= b' ' || *byte >= 0x7f || *byte == b':';
    if connection_specific.contains(&name) {
        return Some(Malformed::ConnectionSpecificField);
    }
    match name.iter().find(|byte| ruled_out(byte)) {
        Some(byte) if byte.is_ascii_uppercase() => return Some(Malformed::UppercaseName),
        Some(_) => return Some(Malformed::InvalidName),
        None if name.is_empty() => return Some(Malformed::InvalidName),
        None => {}
    }
    let framing = name == b"content-length";
    let whitespace = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let value_fault = if value.iter().any(|byte| b"\0\r\n".contains(byte)) {
        Some(Malformed::InvalidValue)
    } else if whitespace(value.first()) || whitespace(value.last()) {
        Some(Malformed::WhitespaceAroundValue)
    } else {
        None
    };
    if value_fault.is_some() || !framing || kind == Kind::Trailers {
        return value_fault;
    }
    match text.and_then(|text| text.parse::<u64>().ok()) {
        None => Some(Malformed::InvalidContentLength),
        Some(length) if section.content_length.is_some_and(|known| known != length) => {
            Some(Malformed::ConflictingContentLength)
        }
        Some(_) => None,
    }
}

fn any_block() -> impl Strategy<Value = Block> {
    let sizes = prop_oneof![
        4 => Just(vec![]),
        1 => prop::collection::vec(prop_oneof![0..300_u32, Just(0), Just(4096)], 1..3),
    ];
    let kind = prop_oneof![3 => Just(Kind::Response), 1 => Just(Kind::Trailers)];
    let well_formed = (status(), prop::collection::vec((regular_field(), flags()), 0..8)).prop_map(
        |((status, status_flags), fields)| {
            let status = ((b":status".to_vec(), status), status_flags);
            [vec![status], fields].concat()
        },
    );
    let whatever = prop::collection::vec((any_field(), flags()), 0..8);
    let fields = prop_oneof![2 => well_formed, 1 => whatever];
    (sizes, kind, fields, any::<bool>()).prop_map(|(sizes, kind, fields, repeated)| Block {
        sizes,
        kind,
        fields,
        repeated,
    })
}

/// A proper status and its representation.
fn status() -> impl Strategy<Value = (Vec<u8>, u8)> {
    let code = prop_oneof![Just(200), Just(404), 100..1000_u16];
    (code.prop_map(|code| code.to_string().into_bytes()), flags())
}

/// A field that is well-formed, but for a Content-Length that may contradict another.
fn regular_field() -> impl Strategy<Value = Field> {
    let name = prop_oneof![
        3 => prop::sample::select(vec!["server", "date", "content-type", "etag", "x-a", "x-b"]).prop_map(str::to_owned),
        1 => "[a-z0-9_-]{1,20}".prop_filter("has a meaning of its own", |name| !name.starts_with("con")),
    ];
    let value = prop_oneof![
        3 => prop::sample::select(vec!["", "a", "text/plain", "Mon, 30 Nov 2026 10:00:00 GMT"]).prop_map(str::to_owned),
        1 => "[!-~\u{80}-\u{7ff}]([ -~]{0,200}[!-~])?",
    ];
    let length = prop_oneof![3 => Just(14_u64), 1 => any::<u64>()];
    prop_oneof![
        5 => (name, value).prop_map(|(name, value)| (name.into_bytes(), value.into_bytes())),
        1 => length.prop_map(|length| (b"content-length".to_vec(), length.to_string().into_bytes())),
    ]
}

/// A field of any kind, faults among them.
fn any_field() -> impl Strategy<Value = Field> {
    let name = prop::sample::select(vec![
        ":status",
        ":path",
        ":",
        "content-length",
        "connection",
        "upgrade",
        "transfer-encoding",
        "Server",
        "a b",
        "",
    ]);
    // Digits without signs and lists, so that the reference need not know these.
    let value = prop_oneof![
        prop::sample::select(vec!["200", "099", "14", "15", "", " 14", "x\0", "99999999999999999999"])
            .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..60)
            .prop_filter("a sign or a list", |value| !value.iter().any(|byte| b"+,".contains(byte))),
    ];
    prop_oneof![regular_field(), (name.prop_map(|name| name.as_bytes().to_vec()), value)]
}

/// A representation: with indexing, never indexed or neither; Huffman-coded or not; from the tables or not.
fn flags() -> impl Strategy<Value = u8> {
    let indexing = prop::sample::select(vec![0x0, 0x4, 0x4, 0x8]);
    let table = prop::sample::select(vec![0x0, 0x10, 0x10]);
    (indexing, 0..4_u8, table).prop_map(|(indexing, huffman, table)| indexing | huffman | table)
}

/// A field of a request, of a few that come again.
fn request_field() -> impl Strategy<Value = (String, Vec<u8>)> {
    let name = prop_oneof![
        3 => prop::sample::select(vec![
            ":method", ":path", ":scheme", ":authority", "accept", "authorization", "cookie", "user-agent", "x-a",
        ])
        .prop_map(str::to_owned),
        1 => "x-[a-z0-9]{1,10}",
    ];
    let value = prop_oneof![
        3 => prop::sample::select(vec!["GET", "POST", "/", "/index.html", "http", "localhost:8080", "", "*/*"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ];
    (name, value)
}
