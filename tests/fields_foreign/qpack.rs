//! QPACK: sections that the crate qpack and ls-qpack encode, requests that the former decodes.

use std::collections::VecDeque;

use ::qpack::{HeaderField, decode_stateless, encode_stateless};
use bench::proto::hpack::Kind;
use bench::proto::qpack::{Config, Decoded, Decoder, encode_section};
use proptest::prelude::*;

use crate::fields::{self, Field, any_field, regular_field, request_field, status};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Sections without a dynamic table, some of them more than once, so that the memo may know them.
    #[test]
    fn sections_of_qpack_are_read(
        sections in prop::collection::vec((any_section(), any::<bool>(), 1..3_usize), 1..12),
    ) {
        let mut decoder = Decoder::new(Config::default(), u32::MAX);
        let mut transcribing = Decoder::new(Config::default(), u32::MAX);
        transcribing.transcribe();
        for (fields, trailers, times) in sections {
            let kind = if trailers { Kind::Trailers } else { Kind::Response };
            let theirs = fields.iter().map(|(name, value)| HeaderField::new(name.clone(), value.clone()));
            let mut section = Vec::new();
            encode_stateless(&mut section, theirs).unwrap();
            let expected = Decoded::Section(fields::section(&fields, kind));
            for _ in 0..times {
                prop_assert_eq!(decoder.decode(4, &section, kind), Ok(expected), "{:02x?}", section);
                prop_assert_eq!(transcribing.decode(4, &section, kind), Ok(expected));
                prop_assert!(fields::is_transcribed(&fields, kind, transcribing.transcript()));
            }
        }
        prop_assert!(!decoder.has_output());
    }

    #[test]
    fn requests_are_read_by_qpack(fields in prop::collection::vec(request_field(), 0..12)) {
        let texts: Vec<(&str, &[u8])> = fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let section = encode_section(&texts);
        let decoded = decode_stateless(&mut &section[..], u64::MAX).unwrap();
        prop_assert!(!decoded.dyn_ref);
        let decoded: Vec<Field> = decoded
            .fields
            .into_iter()
            .map(HeaderField::into_inner)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let expected: Vec<Field> =
            fields.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
        prop_assert_eq!(decoded, expected);
    }
}

fn any_section() -> impl Strategy<Value = Vec<Field>> {
    let well_formed = (status(), prop::collection::vec(regular_field(), 0..8))
        .prop_map(|(status, fields)| [vec![status], fields].concat());
    prop_oneof![2 => well_formed, 1 => prop::collection::vec(any_field(), 0..8)]
}

/// One step of a connection of ls-qpack.
enum Step {
    Encoder(Vec<u8>),
    Section { stream: u64, bytes: Vec<u8>, fields: Vec<Field> },
}

/// The recorded connections, with what came on the encoder stream in order, at once, or late.
#[test]
fn sections_of_ls_qpack_are_read() {
    let recorded = include_str!("../data/qpack/lsqpack.txt");
    let (mut sessions, mut blocked_ever) = (0, 0);
    for session in recorded.split("session ").skip(1) {
        let (settings, steps) = session.split_once('\n').unwrap();
        let (capacity, blocked) = settings.split_once(' ').unwrap();
        let config =
            Config { table_capacity: capacity.parse().unwrap(), blocked_streams: blocked.parse().unwrap() };
        let steps = parse(steps);
        in_order(config, &steps);
        if config.blocked_streams > 0 {
            blocked_ever += encoder_stream_late(config, &steps);
        }
        sessions += 1;
    }
    assert_eq!(sessions, 6);
    assert!(blocked_ever > 10, "{blocked_ever} sections had to wait");
}

fn in_order(config: Config, steps: &[Step]) {
    let mut decoder = Decoder::new(config, u32::MAX);
    for step in steps {
        match step {
            Step::Encoder(bytes) => {
                for byte in bytes {
                    decoder.receive(&[*byte]).unwrap();
                }
            }
            Step::Section { stream, bytes, fields } => {
                let expected = Decoded::Section(fields::section(fields, Kind::Response));
                assert_eq!(decoder.decode(*stream, bytes, Kind::Response), Ok(expected), "stream {stream}");
            }
        }
    }
}

/// What came on the encoder stream comes one step late: sections that need it wait. Returns how many did.
fn encoder_stream_late(config: Config, steps: &[Step]) -> usize {
    let mut decoder = Decoder::new(config, u32::MAX);
    let mut late = VecDeque::new();
    let mut waited = 0;
    for step in steps {
        let Step::Section { stream, bytes, fields } = step else {
            if let Step::Encoder(bytes) = step {
                late.push_back(bytes);
            }
            continue;
        };
        let expected = Decoded::Section(fields::section(fields, Kind::Response));
        let decoded = decoder.decode(*stream, bytes, Kind::Response).unwrap();
        if let Decoded::Blocked(required) = decoded {
            waited += 1;
            for bytes in late.drain(..) {
                decoder.receive(bytes).unwrap();
            }
            assert!(decoder.inserted() >= required);
            assert_eq!(decoder.decode(*stream, bytes, Kind::Response), Ok(expected), "stream {stream}");
        } else {
            assert_eq!(decoded, expected, "stream {stream}");
        }
    }
    waited
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in text.lines() {
        match line.split_once(' ').unwrap() {
            ("encoder", bytes) => steps.push(Step::Encoder(hex(bytes))),
            ("section", rest) => {
                let (stream, bytes) = rest.split_once(' ').unwrap();
                let stream = stream.parse().unwrap();
                steps.push(Step::Section { stream, bytes: hex(bytes), fields: Vec::new() });
            }
            ("=", field) => {
                let Some(Step::Section { fields, .. }) = steps.last_mut() else { panic!("{line}") };
                // The colon behind the name, not the one in front of a pseudo-header field's.
                let (name, value) = field.split_once(": ").unwrap();
                fields.push((name.into(), value.into()));
            }
            _ => panic!("{line}"),
        }
    }
    steps
}

fn hex(digits: &str) -> Vec<u8> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { panic!("{digits}") };
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}
