//! Fields as text, what they mean, and how to draw them. The meaning is computed from the text, which no decoder
//! of the program sees as a whole.

use bench::proto::exchange::Transcript;
use bench::proto::hpack::{Kind, Malformed, Section};
use proptest::prelude::*;

/// A field as text.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// What a section says, from its text.
pub(crate) fn section<'a>(fields: impl IntoIterator<Item = &'a Field>, kind: Kind) -> Section {
    let mut section = Section::default();
    let mut regular = false;
    for (name, value) in fields {
        section.fields += 1;
        section.size += (name.len() + value.len() + 32) as u64;
        let fault = fault(name, value, kind, &section, regular);
        section.malformed = section.malformed.or(fault);
        regular |= !name.starts_with(b":");
        let text = || std::str::from_utf8(value).unwrap();
        match &name[..] {
            b":status" if fault.is_none() => section.status = text().parse().unwrap(),
            b"content-length" if fault.is_none() && kind == Kind::Response => {
                section.content_length = Some(text().parse().unwrap());
            }
            _ => {}
        }
    }
    if kind == Kind::Response && section.status == 0 {
        section.malformed = section.malformed.or(Some(Malformed::MissingStatus));
    }
    if section.malformed.is_some() {
        section = Section { status: 0, content_length: None, ..section };
    }
    section
}

/// Whether the head of a final response was told in its words; of other sections nothing is told.
pub(crate) fn is_transcribed<'a>(
    fields: impl IntoIterator<Item = &'a Field> + Clone,
    kind: Kind,
    told: Option<&Transcript>,
) -> bool {
    let status = section(fields.clone(), kind).status;
    if kind == Kind::Trailers || status < 200 {
        return true;
    }
    let fields = fields.into_iter().filter(|(name, _)| !name.starts_with(b":")).cloned().collect();
    told == Some(&Transcript { status, fields })
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

/// A proper status.
pub(crate) fn status() -> impl Strategy<Value = Field> {
    let code = prop_oneof![Just(200), Just(404), 100..1000_u16];
    code.prop_map(|code| (b":status".to_vec(), code.to_string().into_bytes()))
}

/// A field that is well-formed, but for a Content-Length that may contradict another.
pub(crate) fn regular_field() -> impl Strategy<Value = Field> {
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
pub(crate) fn any_field() -> impl Strategy<Value = Field> {
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

/// A field of a request, of a few that come again.
pub(crate) fn request_field() -> impl Strategy<Value = (String, Vec<u8>)> {
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
