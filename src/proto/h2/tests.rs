//! Owns the tests of the connection as a state machine: frames in, frames and responses out.

use proptest::prelude::*;

use super::frame::{self, flag, kind, setting};
use super::*;
use crate::proto::exchange::{Failure, Responses};

/// What a connection told, with the stream's number as its exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    Interim(u32),
    Headers(u32, u16),
    Data(u32, Vec<u8>),
    Complete(u32),
    Failed(u32, Failure),
    Limit(u32),
    Goaway,
}

#[derive(Default)]
struct Log(Vec<Told>);

impl Responses<u32> for Log {
    fn interim(&mut self, exchange: &mut u32) {
        self.0.push(Told::Interim(*exchange));
    }

    fn headers(&mut self, exchange: &mut u32, status: u16) {
        self.0.push(Told::Headers(*exchange, status));
    }

    fn data(&mut self, exchange: &mut u32, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Told::Data(of, before)) if of == exchange => before.extend_from_slice(bytes),
            _ => self.0.push(Told::Data(*exchange, bytes.to_vec())),
        }
    }

    fn complete(&mut self, exchange: u32) {
        self.0.push(Told::Complete(exchange));
    }

    fn failed(&mut self, exchange: u32, failure: Failure) {
        self.0.push(Told::Failed(exchange, failure));
    }

    fn limit(&mut self, streams: u32) {
        self.0.push(Told::Limit(streams));
    }

    fn goaway(&mut self) {
        self.0.push(Told::Goaway);
    }
}

/// A client, the request it sends, and what it told.
struct Client {
    connection: Connection<u32>,
    request: Request,
    log: Log,
}

impl Client {
    fn new(config: Config, body: &[u8]) -> Self {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let request = Request::new(method, "http", "/", "localhost", &[], body).expect("a valid request");
        let mut connection = Connection::new(config);
        connection.output().clear();
        Self { connection, request, log: Log::default() }
    }

    /// One that has the server's settings and has opened `open` streams.
    fn opened(open: u32) -> Self {
        Self::opened_with(Config::new(100), b"", open)
    }

    fn opened_with(config: Config, body: &[u8], open: u32) -> Self {
        let mut client = Self::new(config, body);
        client.take(&settings(&[])).expect("valid settings");
        for _ in 0..open {
            client.open();
        }
        client.sent();
        client.log.0.clear();
        client
    }

    fn open(&mut self) -> u32 {
        assert!(self.connection.room() > 0);
        let id = self.connection.open(&self.request, 0);
        *self.connection.exchange(id).expect("just opened") = id;
        id
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        self.connection.receive(&self.request, bytes, &mut self.log)
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.log.0)
    }

    /// The frames sent since the last look: type, flags, stream, payload.
    fn sent(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        self.connection.pump(&self.request, usize::MAX);
        let out = std::mem::take(self.connection.output());
        frames(&out)
    }
}

fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(head) = bytes.first_chunk() {
        let header = frame::Header::read(head);
        let end = frame::HEADER + header.length as usize;
        found.push((header.kind, header.flags, header.stream, bytes[frame::HEADER..end].to_vec()));
        bytes = &bytes[end..];
    }
    assert!(bytes.is_empty(), "half a frame was written");
    found
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::header(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::settings(&mut out, settings);
    out
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn rst(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// `:status 200`, then `:status 204`, as the static table has them (RFC 7541 appendix A).
const OK: &[u8] = &[0x88];
const NO_CONTENT: &[u8] = &[0x89];
const END_HEADERS: u8 = flag::END_HEADERS;
const END: u8 = flag::END_STREAM;

#[test]
fn the_first_flight() {
    let mut connection: Connection<()> = Connection::new(Config::new(1));
    let out = std::mem::take(connection.output());
    let rest = out.strip_prefix(frame::PREFACE).expect("the preface comes first");
    let sent = frames(rest);
    assert_eq!(sent.iter().map(|f| f.0).collect::<Vec<_>>(), [kind::SETTINGS, kind::WINDOW_UPDATE]);
    let told: Vec<u16> = sent[0].3.chunks(6).map(|s| u16::from_be_bytes([s[0], s[1]])).collect();
    assert_eq!(told, [setting::ENABLE_PUSH, setting::INITIAL_WINDOW_SIZE, setting::MAX_HEADER_LIST_SIZE]);
}

#[test]
fn one_stream_before_settings_and_as_many_as_allowed_after() {
    let mut client = Client::new(Config::new(8), b"");
    assert_eq!(client.connection.room(), 1);
    client.open();
    assert_eq!(client.connection.room(), 0);
    client.take(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 3)])).expect("valid");
    assert_eq!(client.told(), [Told::Limit(3)]);
    assert_eq!((client.connection.room(), client.connection.limit()), (2, 3));
    client.take(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)])).expect("valid");
    assert_eq!(client.connection.room(), 0);
    client.take(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 1000)])).expect("valid");
    assert_eq!(client.connection.room(), 7);
    let acks = client.sent().iter().filter(|f| (f.0, f.1) == (kind::SETTINGS, flag::ACK)).count();
    assert_eq!(acks, 3);
}

#[test]
fn the_table_is_filled_once_and_given_up_when_the_server_shrinks_it() {
    let mut client = Client::opened(2);
    let block = client.request.block.clone();
    client.open();
    assert_eq!(client.sent()[0].3, block.next);
    client.take(&settings(&[(setting::HEADER_TABLE_SIZE, 8192)])).expect("valid");
    client.open();
    assert_eq!(client.sent()[1].3, block.next, "a larger table changes nothing");
    client.take(&settings(&[(setting::HEADER_TABLE_SIZE, 1000)])).expect("valid");
    client.open();
    let mut expected = Vec::new();
    crate::proto::hpack::table_size_update(1000, &mut expected);
    expected.extend_from_slice(&block.next);
    assert_eq!(client.sent()[1].3, expected, "still large enough, but to be acknowledged");
    client.take(&settings(&[(setting::HEADER_TABLE_SIZE, 0)])).expect("valid");
    client.open();
    client.open();
    let sent = client.sent();
    assert_eq!(sent[1].3, [&[0x20][..], &block.plain].concat());
    assert_eq!(sent[2].3, block.plain);
}

#[test]
fn long_field_blocks_are_continued() {
    let headers = [("x".to_owned(), "~".repeat(40_000))];
    let request = Request::new("GET", "http", "/", "localhost", &headers, b"").expect("valid");
    let mut connection: Connection<()> = Connection::new(Config::new(1));
    connection.output().clear();
    connection.open(&request, ());
    let sent = frames(connection.output());
    let shape: Vec<_> = sent.iter().map(|f| (f.0, f.1, f.3.len())).collect();
    let (whole, rest) = (1 << 14, request.block.first.len() - (2 << 14));
    assert_eq!(
        shape,
        [
            (kind::HEADERS, END, whole),
            (kind::CONTINUATION, 0, whole),
            (kind::CONTINUATION, END_HEADERS, rest)
        ]
    );
}

#[test]
fn a_response_in_every_shape() {
    let head = |flags| frame(kind::HEADERS, flags | END_HEADERS, 1, OK);
    let padded = [&[3][..], OK, &[0; 3]].concat();
    let priority = [&[0, 0, 0, 0, 7][..], OK].concat();
    for (what, bytes, body) in [
        ("header alone", head(END), &b""[..]),
        ("empty DATA ends it", [head(0), frame(kind::DATA, END, 1, b"")].concat(), b""),
        ("one DATA", [head(0), frame(kind::DATA, END, 1, b"hello")].concat(), b"hello"),
        (
            "padding, trailers",
            [
                head(0),
                frame(kind::DATA, flag::PADDED, 1, b"\x02hello\0\0"),
                frame(kind::HEADERS, END | END_HEADERS, 1, &[0x00, 1, b'x', 1, b'y']),
            ]
            .concat(),
            b"hello",
        ),
        ("padded header", frame(kind::HEADERS, END | END_HEADERS | flag::PADDED, 1, &padded), b""),
        ("with priority", frame(kind::HEADERS, END | END_HEADERS | flag::PRIORITY, 1, &priority), b""),
        (
            "continued, status last",
            [
                frame(kind::HEADERS, END, 1, b""),
                frame(kind::CONTINUATION, 0, 1, b""),
                frame(kind::CONTINUATION, END_HEADERS, 1, OK),
            ]
            .concat(),
            b"",
        ),
        (
            "frames nobody knows, and PRIORITY",
            [
                frame(0xbe, 0xff, 1, b"grease"),
                frame(kind::PRIORITY, 0, 7, &[0; 5]),
                head(0),
                frame(0xbe, 0, 0, b""),
                frame(kind::DATA, END, 1, b"x"),
            ]
            .concat(),
            b"x",
        ),
    ] {
        let mut expected = vec![Told::Headers(1, 200), Told::Data(1, body.to_vec()), Told::Complete(1)];
        expected.retain(|told| *told != Told::Data(1, Vec::new()));
        for step in 1..=bytes.len() {
            let mut client = Client::opened(1);
            for part in bytes.chunks(step) {
                client.take(part).unwrap_or_else(|violation| panic!("{what}: {violation}"));
            }
            assert_eq!(client.told(), expected, "{what} in pieces of {step}");
            assert_eq!(client.connection.streams(), 0);
        }
    }
}

#[test]
fn interim_responses() {
    let early = frame(kind::HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3']);
    let mut client = Client::opened(1);
    let bytes = [&early[..], &early, &frame(kind::HEADERS, END | END_HEADERS, 1, OK)].concat();
    client.take(&bytes).expect("valid");
    assert_eq!(client.told(), [Told::Interim(1), Told::Interim(1), Told::Headers(1, 200), Told::Complete(1)]);
    for (status, flags, violation) in [
        (b"103", END | END_HEADERS, StreamViolation::InterimEndsStream),
        (b"101", END_HEADERS, StreamViolation::SwitchingProtocols),
    ] {
        let mut client = Client::opened(1);
        client.take(&frame(kind::HEADERS, flags, 1, &[&[0x08, 3][..], status].concat())).expect("valid");
        assert_eq!(client.told(), [Told::Failed(1, violation.into())]);
        assert_eq!(client.sent(), [(kind::RST_STREAM, 0, 1, vec![0, 0, 0, 1])]);
    }
}

#[test]
fn malformed_responses_fail_alone() {
    let head = |block: &[u8]| frame(kind::HEADERS, END_HEADERS, 1, block);
    let with_length = |length: &[u8]| {
        // content-length is entry 28 of the static table: 0x0f 0x0d, literal without indexing.
        [OK, &[0x0f, 0x0d, length.len() as u8], length].concat()
    };
    let data = |flags, bytes: &[u8]| frame(kind::DATA, flags, 1, bytes);
    for (violation, bytes) in [
        (StreamViolation::DataBeforeHeaders, data(END, b"x")),
        (StreamViolation::ContentLengthMismatch, [head(&with_length(b"5")), data(END, b"four")].concat()),
        (StreamViolation::ContentLengthMismatch, [head(&with_length(b"3")), data(0, b"four")].concat()),
        (
            StreamViolation::ContentLengthMismatch,
            frame(kind::HEADERS, END | END_HEADERS, 1, &with_length(b"1")),
        ),
        (StreamViolation::BodyNotAllowed, [head(NO_CONTENT), data(0, b"x")].concat()),
        (StreamViolation::TrailersWithoutEnd, [head(OK), head(&[0x00, 1, b'x', 1, b'y'])].concat()),
        (StreamViolation::ZeroIncrement, window_update(1, 0)),
        (StreamViolation::WindowOverflow, window_update(1, 0x7fff_ffff)),
        (StreamViolation::PrioritySize, frame(kind::PRIORITY, 0, 1, b"four")),
    ] {
        let mut client = Client::opened(2);
        client.take(&bytes).unwrap_or_else(|error| panic!("{violation}: {error}"));
        assert_eq!(client.told().last(), Some(&Told::Failed(1, violation.into())), "{violation}");
        let sent = client.sent();
        assert_eq!((sent[0].0, sent[0].2), (kind::RST_STREAM, 1), "{violation}");
        // What is still under way is ignored, and the other stream goes on.
        client.take(&frame(kind::DATA, END, 1, b"late")).expect("ignored");
        client.take(&frame(kind::HEADERS, END | END_HEADERS, 3, OK)).expect("valid");
        assert_eq!(client.told(), [Told::Headers(3, 200), Told::Complete(3)]);
    }
}

#[test]
fn connection_errors() {
    let ended = [frame(kind::HEADERS, END | END_HEADERS, 1, OK), frame(kind::DATA, 0, 1, b"x")].concat();
    let many = |one: &[u8]| one.repeat(MAX_IDLE_FRAMES as usize + 1);
    let block = |n: usize| {
        let parts = frame(kind::CONTINUATION, 0, 1, &[0; 1000]).repeat(n);
        [frame(kind::HEADERS, 0, 1, OK), parts].concat()
    };
    for (what, violation, bytes) in [
        ("a frame too long", Violation::FrameSize, vec![0, 0x40, 1, 0xbe, 0, 0, 0, 0, 0]),
        ("DATA on stream 0", Violation::FrameOnWrongStream, frame(kind::DATA, 0, 0, b"x")),
        ("HEADERS on stream 0", Violation::FrameOnWrongStream, frame(kind::HEADERS, END_HEADERS, 0, OK)),
        ("SETTINGS on a stream", Violation::FrameOnWrongStream, frame(kind::SETTINGS, 0, 1, b"")),
        ("PING on a stream", Violation::FrameOnWrongStream, frame(kind::PING, 0, 1, &[0; 8])),
        ("GOAWAY on a stream", Violation::FrameOnWrongStream, frame(kind::GOAWAY, 0, 1, &[0; 8])),
        ("RST_STREAM on stream 0", Violation::FrameOnWrongStream, rst(0, 0)),
        ("PRIORITY on stream 0", Violation::FrameOnWrongStream, frame(kind::PRIORITY, 0, 0, &[0; 5])),
        ("SETTINGS of 7 bytes", Violation::FrameSize, frame(kind::SETTINGS, 0, 0, &[0; 7])),
        ("SETTINGS ack with a payload", Violation::FrameSize, frame(kind::SETTINGS, flag::ACK, 0, &[0; 6])),
        ("PING of 7 bytes", Violation::FrameSize, frame(kind::PING, 0, 0, &[0; 7])),
        ("GOAWAY of 7 bytes", Violation::FrameSize, frame(kind::GOAWAY, 0, 0, &[0; 7])),
        ("RST_STREAM of 3 bytes", Violation::FrameSize, frame(kind::RST_STREAM, 0, 1, &[0; 3])),
        ("WINDOW_UPDATE of 3 bytes", Violation::FrameSize, frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3])),
        ("padding of nothing", Violation::FrameSize, {
            [frame(kind::HEADERS, END_HEADERS, 1, OK), frame(kind::DATA, flag::PADDED, 1, b"")].concat()
        }),
        ("padding too long", Violation::Padding, {
            [frame(kind::HEADERS, END_HEADERS, 1, OK), frame(kind::DATA, flag::PADDED, 1, &[2, 0])].concat()
        }),
        (
            "header padding too long",
            Violation::Padding,
            frame(kind::HEADERS, END_HEADERS | flag::PADDED, 1, &[2, 0x88]),
        ),
        (
            "no room for the priority",
            Violation::FrameSize,
            frame(kind::HEADERS, END_HEADERS | flag::PRIORITY, 1, OK),
        ),
        ("HEADERS on an idle stream", Violation::IdleStream, frame(kind::HEADERS, END_HEADERS, 5, OK)),
        ("DATA on a stream of the server's", Violation::IdleStream, frame(kind::DATA, 0, 2, b"x")),
        ("RST_STREAM on an idle stream", Violation::IdleStream, rst(5, 0)),
        ("WINDOW_UPDATE on an idle stream", Violation::IdleStream, window_update(5, 1)),
        ("DATA after the end", Violation::ClosedStream, ended),
        ("CONTINUATION of nothing", Violation::Continuation, frame(kind::CONTINUATION, END_HEADERS, 1, OK)),
        ("another frame inside a block", Violation::Continuation, {
            [frame(kind::HEADERS, 0, 1, OK), frame(kind::PING, 0, 0, &[0; 8])].concat()
        }),
        ("DATA inside a block", Violation::Continuation, {
            [frame(kind::HEADERS, 0, 1, OK), frame(kind::DATA, 0, 1, b"x")].concat()
        }),
        ("a block continued on another stream", Violation::Continuation, {
            [frame(kind::HEADERS, 0, 1, OK), frame(kind::CONTINUATION, END_HEADERS, 3, b"")].concat()
        }),
        ("a block too long", Violation::FieldBlockTooLong, block(300)),
        ("a block of too many frames", Violation::FieldBlockTooLong, {
            let empty = frame(kind::CONTINUATION, 0, 1, b"").repeat(MAX_CONTINUATIONS as usize + 1);
            [frame(kind::HEADERS, 0, 1, OK), empty].concat()
        }),
        (
            "PUSH_PROMISE",
            Violation::PushPromise,
            frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x88]),
        ),
        ("ENABLE_PUSH of a server", Violation::InvalidSetting, settings(&[(setting::ENABLE_PUSH, 1)])),
        ("frame size 16383", Violation::InvalidSetting, settings(&[(setting::MAX_FRAME_SIZE, 16_383)])),
        ("frame size 2^24", Violation::InvalidSetting, settings(&[(setting::MAX_FRAME_SIZE, 1 << 24)])),
        ("window 2^31", Violation::WindowOverflow, settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)])),
        ("increment 0", Violation::ZeroIncrement, window_update(0, 0)),
        ("window beyond 2^31 - 1", Violation::WindowOverflow, window_update(0, 0x7fff_ffff)),
        ("GOAWAY takes back", Violation::GoawayIncreases, [goaway(1, 0), goaway(3, 0)].concat()),
        ("PINGs", Violation::Flood, many(&frame(kind::PING, flag::ACK, 0, &[0; 8]))),
        ("SETTINGS", Violation::Flood, many(&settings(&[]))),
        ("unknown frames", Violation::Flood, many(&frame(0xbe, 0, 0, b""))),
        ("WINDOW_UPDATEs", Violation::Flood, many(&window_update(0, 1))),
        ("empty DATA", Violation::Flood, {
            [frame(kind::HEADERS, END_HEADERS, 1, OK), many(&frame(kind::DATA, 0, 1, b""))].concat()
        }),
    ] {
        let mut client = Client::opened(2);
        assert_eq!(client.take(&bytes), Err(violation), "{what}");
        let sent = client.sent();
        let (last, ..) = sent.last().expect("a GOAWAY");
        assert_eq!(*last, kind::GOAWAY, "{what}");
    }
    for (first, violation) in [
        (frame(kind::PING, 0, 0, &[0; 8]), Violation::SettingsNotFirst),
        (settings_ack(), Violation::SettingsNotFirst),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), Violation::Http1Answer),
    ] {
        for step in [1, 3, 1000] {
            let mut client = Client::new(Config::new(1), b"");
            let mut parts = first.chunks(step);
            assert_eq!(parts.find_map(|part| client.take(part).err()), Some(violation));
        }
    }
}

fn settings_ack() -> Vec<u8> {
    frame(kind::SETTINGS, flag::ACK, 0, b"")
}

#[test]
fn goaway_in_two_steps() {
    let mut client = Client::opened(4);
    client.take(&goaway(0x7fff_ffff, 0)).expect("valid");
    assert_eq!(client.told(), [Told::Goaway]);
    assert_eq!((client.connection.room(), client.connection.streams()), (0, 4));
    client.take(&goaway(3, 0)).expect("valid");
    assert_eq!(
        client.told(),
        [Told::Goaway, Told::Failed(5, Failure::Refused), Told::Failed(7, Failure::Refused)]
    );
    assert!(!client.connection.finished());
    client.take(&frame(kind::HEADERS, END | END_HEADERS, 1, OK)).expect("valid");
    client.take(&frame(kind::HEADERS, END | END_HEADERS, 3, OK)).expect("valid");
    assert!(client.connection.finished());
}

#[test]
fn resets() {
    let mut client = Client::opened(3);
    client.take(&rst(1, 7)).expect("valid");
    client.take(&rst(3, 2)).expect("valid");
    client.take(&rst(3, 2)).expect("ignored: it has ended");
    assert_eq!(client.told(), [Told::Failed(1, Failure::Refused), Told::Failed(3, ErrorCode(2).into())]);
    client.connection.closed(&mut client.log);
    assert_eq!(client.told(), [Told::Failed(5, Failure::Closed)]);
}

#[test]
fn stream_identifiers_end() {
    let config = Config { first_stream: 0x7fff_fffd, ..Config::new(10) };
    let mut client = Client::opened_with(config, b"", 2);
    assert_eq!((client.connection.room(), client.connection.finished()), (0, false));
    for id in [0x7fff_fffd, 0x7fff_ffff] {
        client.take(&frame(kind::HEADERS, END | END_HEADERS, id, OK)).expect("valid");
    }
    assert!(client.connection.finished());
}

#[test]
fn an_upload_keeps_to_both_windows_and_takes_turns() {
    let mut client = Client::opened_with(Config::new(2), &[7; 100_000], 2);
    // 65 535 bytes of the connection's window are gone; each stream has as much of its own.
    let sent = |frames: &[(u8, u8, u32, Vec<u8>)], id| -> usize {
        frames.iter().filter(|f| f.0 == kind::DATA && f.2 == id).map(|f| f.3.len()).sum()
    };
    client.take(&window_update(0, 1000)).expect("valid");
    let frames = client.sent();
    assert_eq!(sent(&frames, 1) + sent(&frames, 3), 1000);
    // The window of the streams is taken back, and given again by halves.
    client.take(&settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])).expect("valid");
    client.take(&window_update(0, 1_000_000)).expect("valid");
    assert_eq!(client.sent().iter().filter(|f| f.0 == kind::DATA).count(), 0, "both are negative");
    client.take(&settings(&[(setting::INITIAL_WINDOW_SIZE, 65_535)])).expect("valid");
    let frames = client.sent();
    assert!(sent(&frames, 1) > 16_384 && sent(&frames, 3) > 16_384);
    let order: Vec<u32> = frames.iter().filter(|f| f.0 == kind::DATA).map(|f| f.2).collect();
    assert_ne!(order[0], order[1], "the streams take turns");
    for id in [1, 3] {
        client.take(&window_update(id, 100_000)).expect("valid");
    }
    let frames = client.sent();
    let ends: Vec<u32> = frames.iter().filter(|f| f.1 & END != 0).map(|f| f.2).collect();
    assert_eq!(ends.len(), 2);
}

#[test]
fn an_early_answer_stops_the_upload() {
    let mut client = Client::opened_with(Config::new(1), &[7; 100_000], 1);
    client.take(&frame(kind::HEADERS, END | END_HEADERS, 1, OK)).expect("valid");
    assert_eq!(client.told(), [Told::Headers(1, 200), Told::Complete(1)]);
    assert_eq!(client.sent(), [(kind::RST_STREAM, 0, 1, vec![0, 0, 0, 8])]);
    client.take(&rst(1, 0)).expect("ignored");
    client.take(&window_update(0, 100_000)).expect("valid");
    assert_eq!(client.sent(), []);
}

#[test]
fn windows_are_replenished_by_halves() {
    let config = Config { stream_window: 100_000, connection_window: 200_000, ..Config::new(1) };
    let mut client = Client::opened_with(config, b"", 1);
    client.take(&frame(kind::HEADERS, END_HEADERS, 1, OK)).expect("valid");
    let mut updates = Vec::new();
    for _ in 0..100 {
        client.take(&frame(kind::DATA, 0, 1, &[0; 16_000])).expect("within the window");
        updates.extend(client.sent().iter().map(|f| f.2));
    }
    let of = |stream| updates.iter().filter(|update| **update == stream).count();
    assert!(of(0) <= 16 && of(1) <= 32, "{updates:?}");
}

#[test]
fn what_exceeds_a_window_is_a_violation() {
    let config = Config { stream_window: 10, ..Config::new(1) };
    let mut client = Client::opened_with(config, b"", 1);
    client.take(&frame(kind::HEADERS, END_HEADERS, 1, OK)).expect("valid");
    client.take(&frame(kind::DATA, 0, 1, &[0; 11])).expect("an error of the stream");
    let failure = Failure::from(StreamViolation::FlowControl);
    assert_eq!(client.told().last(), Some(&Told::Failed(1, failure)));
    let config = Config { connection_window: 65_535, ..Config::new(1) };
    let mut client = Client::opened_with(config, b"", 1);
    client.take(&frame(kind::HEADERS, END_HEADERS, 1, OK)).expect("valid");
    // Beyond half the window it would be replenished, so that only one frame can exceed it.
    client.take(&frame(kind::DATA, 0, 1, &[0; 16_384])).expect("within");
    assert_eq!(client.connection.describe().matches("stream 1").count(), 1);
}

#[test]
fn what_this_side_gave_up_is_ignored_when_it_comes() {
    let mut client = Client::opened(2);
    client.connection.cancel(|exchange| *exchange == 1, &mut client.log);
    assert_eq!(client.told(), [Told::Failed(1, Failure::Cancelled)]);
    assert_eq!(client.sent(), [(kind::RST_STREAM, 0, 1, vec![0, 0, 0, 8])]);
    client.take(&frame(kind::HEADERS, END_HEADERS, 1, OK)).expect("ignored");
    client.take(&frame(kind::DATA, END, 1, b"late")).expect("ignored");
    assert_eq!(client.take(&frame(kind::DATA, 0, 1, b"x")), Err(Violation::ClosedStream));
}

proptest! {
    /// Whatever comes, however it is split, the outcome is the same, and memory stays bounded.
    #[test]
    fn hostile_bytes(
        parts in prop::collection::vec(
            (0u8..12, any::<u8>(), prop::sample::select(vec![0u32, 1, 2, 3, 5, 7]), prop::collection::vec(any::<u8>(), 0..40)),
            0..40,
        ),
        cuts in prop::collection::vec(1usize..30, 1..20),
    ) {
        let bytes: Vec<u8> = parts.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
        let mut whole = Client::opened(3);
        let expected = whole.take(&bytes);
        let mut split = Client::opened(3);
        let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
        let mut outcome = Ok(());
        while !rest.is_empty() && outcome.is_ok() {
            let (part, after) = rest.split_at(rest.len().min(*cuts.next().expect("a cycle")));
            outcome = split.take(part);
            rest = after;
        }
        prop_assert_eq!(outcome, expected);
        prop_assert_eq!(split.told(), whole.told());
        prop_assert_eq!(split.sent(), whole.sent());
    }
}
