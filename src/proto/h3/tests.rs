//! Owns the tests of a connection as a state machine: streams in, responses and violations out.

use proptest::prelude::*;

use super::frame::{self, kind, setting};
use super::wire::{Event, Wire};
use super::*;
use crate::proto::exchange::{Failure, Responses};
use crate::proto::hpack::Malformed;
use crate::proto::qpack::{self, QpackError};
use crate::proto::quic::varint;

/// What a connection told, with the stream's identifier as its exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    Interim(u64),
    Headers(u64, u16),
    Data(u64, Vec<u8>),
    Complete(u64),
    Failed(u64, Failure),
    Goaway,
}

#[derive(Default)]
struct Log(Vec<Told>);

impl Responses<u64> for Log {
    fn interim(&mut self, exchange: &mut u64) {
        self.0.push(Told::Interim(*exchange));
    }

    fn headers(&mut self, exchange: &mut u64, status: u16) {
        self.0.push(Told::Headers(*exchange, status));
    }

    fn data(&mut self, exchange: &mut u64, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Told::Data(of, before)) if of == exchange => before.extend_from_slice(bytes),
            _ => self.0.push(Told::Data(*exchange, bytes.to_vec())),
        }
    }

    fn complete(&mut self, exchange: u64) {
        self.0.push(Told::Complete(exchange));
    }

    fn failed(&mut self, exchange: u64, failure: Failure) {
        self.0.push(Told::Failed(exchange, failure));
    }

    fn limit(&mut self, _: u32) {
        unreachable!("the limit is of QUIC");
    }

    fn goaway(&mut self) {
        self.0.push(Told::Goaway);
    }
}

/// A connection and what it told.
struct Client {
    wire: Wire<u64>,
    log: Log,
}

impl Client {
    fn with(method: &str, config: qpack::Config, open: u64) -> Self {
        let request = Request::new(method, "https", "/", "localhost", &[], b"").expect("a valid request");
        let mut client = Self { wire: Wire::new(config, request), log: Log::default() };
        for number in 0..open {
            assert_eq!(client.wire.open(4 * number), 4 * number);
        }
        client
    }

    /// One that has sent so many requests.
    fn opened(open: u64) -> Self {
        Self::with("GET", qpack::Config::default(), open)
    }

    /// The same with a dynamic table on offer.
    fn with_table(open: u64) -> Self {
        Self::with("GET", qpack::Config { table_capacity: 220, blocked_streams: 2 }, open)
    }

    fn take(&mut self, id: u64, bytes: &[u8], fin: bool) -> Result<(), Violation> {
        self.wire.deliver(Event::Data(id, bytes, fin), &mut self.log)
    }

    /// Takes bytes in pieces of `step`.
    fn take_in(&mut self, id: u64, bytes: &[u8], fin: bool, step: usize) -> Result<(), Violation> {
        let mut pieces = bytes.chunks(step).peekable();
        if pieces.peek().is_none() {
            return self.take(id, b"", fin);
        }
        while let Some(piece) = pieces.next() {
            self.take(id, piece, fin && pieces.peek().is_none())?;
        }
        Ok(())
    }

    fn reset(&mut self, id: u64, code: u64) -> Result<(), Violation> {
        self.wire.deliver(Event::Reset(id, code), &mut self.log)
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.log.0)
    }

    /// What was given up since the last look.
    fn abandoned(&mut self) -> Vec<(u64, ErrorCode)> {
        std::mem::take(&mut self.wire.streams.abandoned)
    }

    /// Instructions for the server's encoder since the last look.
    fn instructions(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.wire.streams.instructions)
    }
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, kind, payload);
    out
}

fn integers(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for &value in values {
        varint::write(&mut out, value);
    }
    out
}

fn headers(section: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, section)
}

fn data(bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, bytes)
}

/// A control stream that begins with SETTINGS, and what follows.
fn control(rest: &[&[u8]]) -> Vec<u8> {
    [&[0][..], &frame(kind::SETTINGS, &[]), &rest.concat()].concat()
}

fn with_length(length: &[u8]) -> Vec<u8> {
    // content-length is entry 4 of the static table: 0101 0100, literal with name reference.
    headers(&[OK, &[0x54, length.len() as u8], length].concat())
}

/// `:status 200`, 204, 103, as the static table has them (RFC 9204 appendix A).
const OK: &[u8] = &[0, 0, 0xd9];
const NO_CONTENT: &[u8] = &[0, 0, 0xff, 0x01];
const EARLY_HINTS: &[u8] = &[0, 0, 0xd8];
/// A field `x: y`.
const TRAILERS: &[u8] = &[0, 0, 0x21, b'x', 1, b'y'];
/// A frame type and a stream type that mean nothing.
const GREASE: u64 = 0x1f * 7 + 0x21;

#[test]
fn a_response_in_every_shape() {
    let grease = frame(GREASE, b"whatever");
    let long = frame(0x1f * 999_999_999 + 0x21, &[0; 300]);
    // The same frame header in more bytes than it needs.
    let padded = [&[0x40, 0x01, 0xc0, 0, 0, 0, 0, 0, 0, 3][..], OK].concat();
    for (what, bytes, body) in [
        ("header alone", headers(OK), &b""[..]),
        ("empty DATA", [headers(OK), data(b"")].concat(), b""),
        ("one DATA", [headers(OK), data(b"hello")].concat(), b"hello"),
        ("more of them", [headers(OK), data(b"he"), data(b""), data(b"llo")].concat(), b"hello"),
        ("with a length", [with_length(b"5"), data(b"hello")].concat(), b"hello"),
        ("with trailers", [headers(OK), data(b"x"), headers(TRAILERS)].concat(), b"x"),
        ("trailers alone", [headers(OK), headers(TRAILERS)].concat(), b""),
        ("long integers", [&padded[..], &data(b"x")].concat(), b"x"),
        (
            "frames that nobody knows, everywhere",
            [
                grease.clone(),
                headers(OK),
                long,
                data(b"x"),
                frame(GREASE, b""),
                headers(TRAILERS),
                grease.clone(),
            ]
            .concat(),
            b"x",
        ),
    ] {
        let mut expected = vec![Told::Headers(0, 200), Told::Data(0, body.to_vec()), Told::Complete(0)];
        expected.retain(|told| *told != Told::Data(0, Vec::new()));
        for step in 1..=bytes.len() {
            let mut client = Client::opened(2);
            client.take_in(0, &bytes, true, step).unwrap_or_else(|violation| panic!("{what}: {violation}"));
            assert_eq!(client.told(), expected, "{what} in pieces of {step}");
            assert_eq!((client.wire.session.open, client.wire.streams.open.len()), (1, 1));
            assert_eq!(client.abandoned(), []);
        }
        // The end of the stream alone.
        let mut client = Client::opened(1);
        client.take(0, &bytes, false).expect("valid");
        assert_eq!(client.wire.session.open, 1);
        client.take(0, b"", true).expect("valid");
        assert_eq!(client.told(), expected, "{what}");
    }
}

#[test]
fn responses_without_a_body() {
    for (method, head) in [
        ("HEAD", with_length(b"1000")),
        ("GET", headers(NO_CONTENT)),
        ("GET", headers(&[0, 0, 0xda, 0x54, 1, b'9'])),
    ] {
        for end in [Vec::new(), data(b""), headers(TRAILERS)] {
            let mut client = Client::with(method, qpack::Config::default(), 1);
            client.take(0, &[head.clone(), end].concat(), true).expect("valid");
            assert_eq!(client.told().last(), Some(&Told::Complete(0)));
        }
        let mut client = Client::with(method, qpack::Config::default(), 1);
        client.take(0, &[head, data(b"x")].concat(), true).expect("an error of the stream");
        let failure = StreamViolation::BodyNotAllowed.into();
        assert_eq!(client.told().last(), Some(&Told::Failed(0, failure)));
    }
}

#[test]
fn interim_responses() {
    let bytes = [headers(EARLY_HINTS), headers(&[0, 0, 0xff, 0]), headers(OK)].concat();
    for step in 1..=bytes.len() {
        let mut client = Client::opened(1);
        client.take_in(0, &bytes, true, step).expect("valid");
        let expected = [Told::Interim(0), Told::Interim(0), Told::Headers(0, 200), Told::Complete(0)];
        assert_eq!(client.told(), expected);
    }
    let mut client = Client::opened(1);
    let flood = headers(EARLY_HINTS).repeat(usize::from(MAX_INTERIM));
    client.take(0, &flood, false).expect("the most that is allowed");
    client.take(0, &headers(EARLY_HINTS), false).expect("an error of the stream");
    assert_eq!(client.told().last(), Some(&Told::Failed(0, StreamViolation::TooManyInterim.into())));
    assert_eq!(client.abandoned(), [(0, ErrorCode::EXCESSIVE_LOAD)]);
}

#[test]
fn malformed_responses_fail_alone() {
    use ErrorCode as Code;
    use StreamViolation as V;
    let switching = [&[0, 0, 0x5f, 9, 3][..], b"101"].concat();
    // A name of one byte and a value of 65 507, and a value of 127 + 127 + 65 * 2^7 ...: both above the limit.
    let large = [OK, &[0x21, b'x', 0x7f, 0x81, 0xff, 0x03], &[b'y'; 65_536]].concat();
    let cases: Vec<(V, Vec<u8>, bool, Code)> = vec![
        (V::NoResponse, vec![], true, Code::MESSAGE_ERROR),
        (V::NoResponse, frame(GREASE, b"x"), true, Code::MESSAGE_ERROR),
        (V::InterimEndsStream, headers(EARLY_HINTS), true, Code::MESSAGE_ERROR),
        (V::SwitchingProtocols, headers(&switching), false, Code::MESSAGE_ERROR),
        (V::Fields(Malformed::MissingStatus), headers(TRAILERS), false, Code::MESSAGE_ERROR),
        (
            V::Fields(Malformed::PseudoHeaderInTrailers),
            [headers(OK), headers(OK)].concat(),
            true,
            Code::MESSAGE_ERROR,
        ),
        (V::ContentLengthMismatch, [with_length(b"5"), data(b"four")].concat(), true, Code::MESSAGE_ERROR),
        (V::ContentLengthMismatch, [with_length(b"3"), data(b"four")].concat(), false, Code::MESSAGE_ERROR),
        (V::ContentLengthMismatch, with_length(b"1"), true, Code::MESSAGE_ERROR),
        (
            V::ContentLengthMismatch,
            [with_length(b"2"), data(b"x"), headers(TRAILERS)].concat(),
            true,
            Code::MESSAGE_ERROR,
        ),
        (V::BodyNotAllowed, [headers(NO_CONTENT), data(b"x")].concat(), false, Code::MESSAGE_ERROR),
        (V::SectionTooLarge, headers(&large), false, Code::EXCESSIVE_LOAD),
        (V::SectionTooLarge, integers(&[kind::HEADERS, 1 << 40]), false, Code::EXCESSIVE_LOAD),
    ];
    for (violation, bytes, fin, code) in cases {
        for step in [1, 2, 3, usize::MAX] {
            let mut client = Client::opened(2);
            client.take_in(0, &bytes, fin, step).unwrap_or_else(|error| panic!("{violation}: {error}"));
            assert_eq!(client.told().last(), Some(&Told::Failed(0, violation.into())), "{violation}");
            assert_eq!(client.abandoned(), [(0, code)], "{violation}");
            assert_eq!(violation.code(), code);
            client.take(4, &headers(OK), true).expect("the connection goes on");
            assert_eq!(client.told(), [Told::Headers(4, 200), Told::Complete(4)]);
            assert_eq!(client.wire.session.open, 0);
        }
    }
}

/// What a server sends on the first request stream.
#[test]
fn violations_on_a_request_stream() {
    use ErrorCode as Code;
    use Violation as V;
    let after_trailers = |frame: Vec<u8>| [headers(OK), data(b"x"), headers(TRAILERS), frame].concat();
    let mut cases: Vec<(V, Code, Vec<u8>, bool)> = vec![
        (V::DataBeforeHeaders, Code::FRAME_UNEXPECTED, data(b"x"), false),
        (V::DataBeforeHeaders, Code::FRAME_UNEXPECTED, data(b""), true),
        (V::DataBeforeHeaders, Code::FRAME_UNEXPECTED, [headers(EARLY_HINTS), data(b"x")].concat(), false),
        (V::FrameAfterTrailers, Code::FRAME_UNEXPECTED, after_trailers(data(b"x")), false),
        (V::FrameAfterTrailers, Code::FRAME_UNEXPECTED, after_trailers(headers(TRAILERS)), true),
        (V::Push, Code::ID_ERROR, frame(kind::PUSH_PROMISE, &[0, 0, 0]), false),
        (V::Qpack(QpackError::Truncated), Code(0x200), headers(b""), false),
        (V::Qpack(QpackError::Index), Code(0x200), headers(&[0, 0, 0xff, 0x24]), false),
        (V::Qpack(QpackError::DynamicTableRefused), Code(0x200), headers(&[2, 0, 0x80]), false),
        (V::Qpack(QpackError::DynamicTableRefused), Code(0x200), headers(&[0, 0, 0x80]), false),
    ];
    for kind in [kind::SETTINGS, kind::GOAWAY, kind::CANCEL_PUSH, kind::MAX_PUSH_ID] {
        cases.push((V::FrameOnWrongStream, Code::FRAME_UNEXPECTED, frame(kind, &[0]), false));
    }
    for kind in [0x02, 0x06, 0x08, 0x09] {
        cases.push((V::ReservedFrame, Code::FRAME_UNEXPECTED, frame(kind, b""), false));
    }
    for whole in [headers(OK), [headers(OK), data(b"hello")].concat(), frame(GREASE, &[0; 100])] {
        for cut in 1..whole.len() {
            // Where one frame ends, nothing is cut off.
            if cut != headers(OK).len() {
                cases.push((V::FrameCut, Code::FRAME_ERROR, whole[..cut].to_vec(), true));
            }
        }
    }
    for (violation, code, bytes, fin) in cases {
        for step in [1, 2, usize::MAX] {
            let mut client = Client::opened(2);
            assert_eq!(client.take_in(0, &bytes, fin, step), Err(violation), "{bytes:?}");
            assert_eq!(violation.code(), code, "{violation}");
            client.told();
            client.wire.closed(&mut client.log);
            assert_eq!(client.told(), [Told::Failed(0, Failure::Closed), Told::Failed(4, Failure::Closed)]);
        }
    }
}

/// What a server sends on its unidirectional streams 3, 7, 11 and so on, each in one piece and in many.
#[test]
fn violations_on_unidirectional_streams() {
    use ErrorCode as Code;
    use Violation as V;
    let settings = |pairs: &[u64]| vec![[&[0][..], &frame(kind::SETTINGS, &integers(pairs))].concat()];
    let on_control = |frame: Vec<u8>| vec![control(&[&frame])];
    let mut cases: Vec<(V, Code, Vec<Vec<u8>>)> = vec![
        (V::DuplicateSetting, Code::SETTINGS_ERROR, settings(&[6, 1, 0x21, 5, 6, 1])),
        (V::DuplicateSetting, Code::SETTINGS_ERROR, settings(&[0x21, 5, 0x21, 6])),
        (V::FrameSize, Code::FRAME_ERROR, settings(&[6])),
        (V::FrameSize, Code::FRAME_ERROR, vec![vec![0, 4, 1, 0x40]]),
        (V::RepeatedSettings, Code::FRAME_UNEXPECTED, on_control(frame(kind::SETTINGS, b""))),
        (V::Push, Code::ID_ERROR, on_control(frame(kind::CANCEL_PUSH, &[0]))),
        (V::FrameSize, Code::FRAME_ERROR, on_control(frame(kind::CANCEL_PUSH, &[0, 0]))),
        (V::FrameSize, Code::FRAME_ERROR, on_control(frame(kind::GOAWAY, b""))),
        (V::FrameSize, Code::FRAME_ERROR, on_control(frame(kind::GOAWAY, &[0x40]))),
        (V::FrameSize, Code::FRAME_ERROR, on_control(frame(kind::GOAWAY, &[0, 0]))),
        (V::FrameSize, Code::FRAME_ERROR, on_control(integers(&[kind::GOAWAY, 9]))),
        (V::FrameTooLong, Code::EXCESSIVE_LOAD, vec![[&[0][..], &integers(&[4, 4097])].concat()]),
        (V::FrameTooLong, Code::EXCESSIVE_LOAD, vec![[&[0][..], &integers(&[4, 1 << 60])].concat()]),
        (V::Push, Code::ID_ERROR, vec![vec![1]]),
        (V::Push, Code::ID_ERROR, vec![vec![0x40, 1, 0]]),
        (V::RepeatedStream, Code::STREAM_CREATION_ERROR, vec![control(&[]), vec![0]]),
        (V::RepeatedStream, Code::STREAM_CREATION_ERROR, vec![vec![2], vec![2]]),
        (V::RepeatedStream, Code::STREAM_CREATION_ERROR, vec![vec![3], vec![3]]),
        (V::Qpack(QpackError::EncoderCapacity), Code(0x201), vec![vec![2, 0x3f, 0x0f]]),
        (V::Qpack(QpackError::EncoderEntry), Code(0x201), vec![vec![2, 0xc1, 0x00]]),
        (V::Qpack(QpackError::EncoderIndex), Code(0x201), vec![vec![2, 0x00]]),
        (V::Qpack(QpackError::DecoderAcknowledgment), Code(0x202), vec![vec![3, 0x80]]),
        (V::Qpack(QpackError::DecoderAcknowledgment), Code(0x202), vec![vec![3, 0x01]]),
    ];
    for first in [kind::GOAWAY, kind::DATA, kind::CANCEL_PUSH, GREASE, 0x02] {
        cases.push((
            V::MissingSettings,
            Code::MISSING_SETTINGS,
            vec![[&[0][..], &frame(first, &[0])].concat()],
        ));
    }
    for id in [0x00, 0x02, 0x03, 0x04, 0x05] {
        cases.push((V::ReservedSetting, Code::SETTINGS_ERROR, settings(&[id, 0])));
    }
    for kind in [kind::DATA, kind::HEADERS, kind::PUSH_PROMISE, kind::MAX_PUSH_ID] {
        cases.push((V::FrameOnWrongStream, Code::FRAME_UNEXPECTED, on_control(frame(kind, &[0]))));
    }
    for kind in [0x02, 0x06, 0x08, 0x09] {
        cases.push((V::ReservedFrame, Code::FRAME_UNEXPECTED, on_control(frame(kind, b""))));
    }
    for id in [1, 2, 3, 5, (1 << 62) - 1] {
        cases.push((V::GoawayId, Code::ID_ERROR, on_control(frame(kind::GOAWAY, &integers(&[id])))));
    }
    let goaways = [frame(kind::GOAWAY, &integers(&[400])), frame(kind::GOAWAY, &integers(&[404]))];
    cases.push((V::GoawayIncreases, Code::ID_ERROR, on_control(goaways.concat())));
    for (violation, code, streams) in cases {
        for step in [1, 2, usize::MAX] {
            let mut client = Client::opened(1);
            let outcome = (3..)
                .step_by(4)
                .zip(&streams)
                .try_for_each(|(id, bytes)| client.take_in(id, bytes, false, step));
            assert_eq!(outcome, Err(violation), "{streams:02x?}");
            assert_eq!(violation.code(), code, "{violation}");
        }
    }
}

#[test]
fn critical_streams_have_to_stay() {
    let violation = Err(Violation::ClosedCriticalStream);
    assert_eq!(Violation::ClosedCriticalStream.code(), ErrorCode::CLOSED_CRITICAL_STREAM);
    for start in [control(&[]), vec![2], vec![3]] {
        let mut client = Client::opened(1);
        assert_eq!(client.take(3, &start, true), violation, "an end in the first packet");
        let mut client = Client::opened(1);
        client.take(3, &start, false).expect("valid");
        assert_eq!(client.take(3, b"", true), violation);
        let mut client = Client::opened(1);
        client.take(3, &start, false).expect("valid");
        assert_eq!(client.reset(3, 0x100), violation);
    }
    for own in [2, 6, 10] {
        let mut client = Client::opened(1);
        assert_eq!(client.wire.deliver(Event::Stopped(own, 0x100), &mut client.log), violation);
    }
}

#[test]
fn what_nobody_knows_is_ignored() {
    let mut client = Client::opened(1);
    let settings =
        integers(&[0x21, 1 << 61, setting::MAX_FIELD_SECTION_SIZE, 9, 0x08, 1, 0x33, 1, GREASE, 0]);
    let grease = frame(GREASE, &[0xff; 70]);
    let bytes = [&[0][..], &frame(kind::SETTINGS, &settings), &grease, &frame(GREASE, b"")].concat();
    for piece in bytes.chunks(1) {
        client.take(3, piece, false).expect("valid");
    }
    assert!(client.wire.session.has_settings());
    // Types that mean nothing, one with its end in the first packet, and streams that end before their type.
    client.take(7, &integers(&[GREASE]), true).expect("ignored");
    client
        .take(11, &[&integers(&[0x1f * 1_000_000 + 0x21])[..], &[0; 1000]].concat(), false)
        .expect("ignored");
    client.take(11, &[0; 1000], false).expect("ignored");
    client.reset(11, 7).expect("ignored");
    client.take(15, b"", true).expect("ignored");
    client.take(19, &[0xc0, 0, 0], true).expect("ignored");
    client.take(23, &[0xc0], false).expect("ignored");
    client.reset(23, 0x10c).expect("ignored");
    // Both QPACK streams, whose cancellations are no news to an encoder that never inserts.
    client.take(27, &[2], false).expect("valid");
    client.take(31, &[3, 0x40, 0x7f, 0x80], false).expect("valid");
    client.take(31, &[0x01, 0x44], false).expect("valid");
    client.take(0, &headers(OK), true).expect("valid");
    assert_eq!(client.told(), [Told::Headers(0, 200), Told::Complete(0)]);
    assert_eq!(client.instructions(), b"");
}

#[test]
fn goaway_refuses_what_was_not_processed() {
    let mut client = Client::opened(4);
    let goaway = |id| frame(kind::GOAWAY, &integers(&[id]));
    client.take(3, &control(&[&goaway((1 << 62) - 4)]), false).expect("valid");
    assert_eq!(client.told(), [Told::Goaway], "the first step refuses nothing");
    assert_eq!(client.wire.session.goaway(), Some((1 << 62) - 4));
    for byte in goaway(8) {
        client.take(3, &[byte], false).expect("valid");
    }
    let refused = |id| Told::Failed(id, Failure::Refused);
    assert_eq!(client.told(), [Told::Goaway, refused(8), refused(12)]);
    let cancelled = ErrorCode::REQUEST_CANCELLED;
    assert_eq!(client.abandoned(), [(8, cancelled), (12, cancelled)]);
    client.take(0, &headers(OK), true).expect("valid");
    assert_eq!(client.told(), [Told::Headers(0, 200), Told::Complete(0)]);
    client.take(3, &[goaway(8), goaway(0)].concat(), false).expect("valid");
    assert_eq!(client.told(), [Told::Goaway, Told::Goaway, refused(4)]);
    assert_eq!(client.wire.session.open, 0);
}

#[test]
fn resets_by_their_code() {
    for (code, name) in [
        (0x100, "no-error"),
        (0x102, "internal-error"),
        (0x10c, "request-cancelled"),
        (0x10d, "request-incomplete"),
        (0x110, "version-fallback"),
        (0x200, "qpack-decompression-failed"),
        (0, "unknown"),
        ((1 << 62) - 1, "unknown"),
    ] {
        let mut client = Client::opened(1);
        client.take(0, &[headers(OK), data(b"x")].concat(), false).expect("valid");
        client.reset(0, code).expect("an error of the stream");
        assert_eq!(client.told().last(), Some(&Told::Failed(0, Failure::Reset { code, name })));
        assert_eq!(client.wire.session.open, 0);
    }
    let mut client = Client::opened(1);
    client.reset(0, 0x10b).expect("an error of the stream");
    assert_eq!(client.told(), [Told::Failed(0, Failure::Refused)]);
    assert_eq!(client.instructions(), b"", "without a table there is nothing to cancel");
}

#[test]
fn an_early_response_counts_whatever_the_server_thinks_of_the_rest() {
    for code in [0x100, 0x10b, 7] {
        let mut client = Client::opened(1);
        client.wire.deliver(Event::Stopped(0, code), &mut client.log).expect("no fault");
        client.take(0, &headers(OK), true).expect("valid");
        assert_eq!(client.told(), [Told::Headers(0, 200), Told::Complete(0)]);
    }
}

#[test]
fn floods_end_the_connection() {
    let many = |unit: &[u8]| unit.repeat(MAX_IDLE_FRAMES as usize + 1);
    for (id, bytes) in [
        (0, [headers(OK), many(&data(b""))].concat()),
        (0, many(&frame(GREASE, b"x"))),
        (3, control(&[&many(&frame(GREASE, b"x"))])),
        (3, control(&[&many(&frame(kind::GOAWAY, &[0]))])),
    ] {
        let mut client = Client::opened(1);
        assert_eq!(client.take(id, &bytes, false), Err(Violation::Flood));
    }
    assert_eq!(Violation::Flood.code(), ErrorCode::EXCESSIVE_LOAD);
    let mut client = Client::opened(1);
    let streams = (3..).step_by(4).take(MAX_IDLE_FRAMES as usize + 1);
    let outcome = streams.map(|id| client.take(id, &[0x21], true)).find(Result::is_err);
    assert_eq!(outcome, Some(Err(Violation::Flood)));
    // With a body in between it goes on.
    let mut client = Client::opened(1);
    let unit = [frame(GREASE, b"x").repeat(9_000), data(b"x")].concat();
    client.take(0, &[headers(OK), unit.repeat(3)].concat(), true).expect("valid");
    assert_eq!(client.told().last(), Some(&Told::Complete(0)));
}

/// An insertion of `:status: 418` as the first entry, and a section that refers to it.
const CAPACITY: &[u8] = &[0x3f, 0xbd, 0x01];
const TEAPOT: &[u8] = &[0xd8, 3, b'4', b'1', b'8'];
const WITH_TEAPOT: &[u8] = &[2, 0, 0x80];
/// A trailer section that refers to the second entry, an insertion of which is `x: y`.
const XY: &[u8] = &[0x41, b'x', 1, b'y'];
const WITH_XY: &[u8] = &[3, 0, 0x80];

#[test]
fn a_section_waits_for_its_insertions() {
    let response = [headers(WITH_TEAPOT), data(b"short and stout"), headers(WITH_XY)].concat();
    let expected = [Told::Headers(0, 418), Told::Data(0, b"short and stout".to_vec()), Told::Complete(0)];
    let inserts = [&[2], CAPACITY, TEAPOT, XY].concat();
    for step in 1..=response.len() {
        let mut client = Client::with_table(2);
        client.take_in(0, &response, true, step).expect("valid");
        assert_eq!((client.told(), client.instructions()), (vec![], vec![]));
        for (at, byte) in (0..).zip(&inserts) {
            client.take(7, &[*byte], false).expect("valid");
            let instructions = client.instructions();
            if at + 1 == inserts.len() {
                // The trailers are acknowledged, which says that the second insertion arrived.
                assert_eq!(instructions, [0x80]);
            } else if at + 1 == inserts.len() - XY.len() {
                assert_eq!(instructions, [0x80]);
                assert_eq!(client.told(), expected[..2]);
            } else {
                assert_eq!(instructions, b"");
            }
        }
        assert_eq!(client.told(), expected[2..]);
        assert_eq!(client.abandoned(), [(0, ErrorCode::NO_ERROR)]);
        assert_eq!((client.wire.session.open, client.wire.streams.open.len()), (1, 1));
        // What is there is not waited for.
        client.take_in(4, &response, true, step).expect("valid");
        assert_eq!(client.told().last(), Some(&Told::Complete(4)));
        assert_eq!(client.instructions(), [0x84, 0x84]);
    }
}

#[test]
fn insertions_that_nobody_waits_for_are_counted() {
    let mut client = Client::with_table(1);
    client.take(7, &[&[2], CAPACITY, TEAPOT, XY].concat(), false).expect("valid");
    assert_eq!(client.instructions(), [2]);
    client.take(0, &headers(WITH_TEAPOT), true).expect("valid");
    assert_eq!(client.instructions(), [0x80]);
}

#[test]
fn blocked_streams_end_like_others() {
    let blocked = |open| {
        let mut client = Client::with_table(open);
        client.take(0, &headers(WITH_TEAPOT), false).expect("valid");
        client.take(4, &headers(WITH_TEAPOT), false).expect("valid");
        client
    };
    let mut client = blocked(3);
    let outcome = client.take(8, &headers(WITH_TEAPOT), false);
    assert_eq!(outcome, Err(Violation::Qpack(QpackError::BlockedStreams)));

    let mut client = blocked(3);
    client.reset(0, 0x10b).expect("an error of the stream");
    assert_eq!(client.told(), [Told::Failed(0, Failure::Refused)]);
    assert_eq!(client.instructions(), [0x40], "Stream Cancellation");
    client.take(8, &headers(WITH_TEAPOT), true).expect("there is room again");
    client.take(7, &[&[2], CAPACITY, TEAPOT].concat(), false).expect("valid");
    assert_eq!(client.told(), [Told::Headers(4, 418), Told::Headers(8, 418), Told::Complete(8)]);
    assert_eq!(client.instructions(), [0x84, 0x88]);

    let mut client = blocked(2);
    client.take(3, &control(&[&frame(kind::GOAWAY, &[4])]), false).expect("valid");
    assert_eq!(client.told(), [Told::Goaway, Told::Failed(4, Failure::Refused)]);
    assert_eq!(client.instructions(), [0x44]);

    // A malformed end, found out late.
    let mut client = blocked(2);
    client.take(0, &data(b"x")[..2], true).expect("not looked at yet");
    let outcome = client.take(7, &[&[2], CAPACITY, TEAPOT].concat(), false);
    assert_eq!(outcome, Err(Violation::FrameCut));
    let mut client = blocked(2);
    client.take(0, &[headers(TRAILERS), headers(OK)].concat(), true).expect("not looked at yet");
    let outcome = client.take(7, &[&[2], CAPACITY, TEAPOT].concat(), false);
    assert_eq!(outcome, Err(Violation::FrameAfterTrailers));
    let mut client = blocked(2);
    client.take(0, &headers(OK), true).expect("not looked at yet");
    client.take(7, &[&[2], CAPACITY, TEAPOT].concat(), false).expect("an error of the stream");
    let malformed = StreamViolation::Fields(Malformed::PseudoHeaderInTrailers);
    let expected = [Told::Headers(0, 418), Told::Failed(0, malformed.into()), Told::Headers(4, 418)];
    assert_eq!(client.told(), expected);
    assert_eq!(client.abandoned(), [(0, ErrorCode::MESSAGE_ERROR)]);
}

#[test]
fn what_waits_is_bounded() {
    let mut client = Client::with_table(2);
    client.take(0, &headers(WITH_TEAPOT), false).expect("valid");
    client.take(0, &vec![0; MAX_HELD], false).expect("the most that is kept");
    assert_eq!(client.told(), []);
    client.take(0, &[0], false).expect("an error of the stream");
    assert_eq!(client.told(), [Told::Failed(0, StreamViolation::BlockedTooLong.into())]);
    assert_eq!(client.abandoned(), [(0, ErrorCode::EXCESSIVE_LOAD)]);
    assert_eq!(client.instructions(), [0x40]);
}

#[test]
fn the_request_is_the_same_bytes_each_time() {
    let request = Request::new("GET", "https", "/", "localhost", &[], b"").expect("valid");
    // :method GET, :scheme https, :authority by name, :path /.
    let section = [&[0, 0, 0xd1, 0xd7, 0x50, 0x86, 0xa0, 0xe4, 0x1d, 0x13, 0x9d, 0x09][..], &[0xc1]].concat();
    assert_eq!(request.image()[..], headers(&section));
    let body = vec![b'x'; 70_000];
    let fields = [("X-Y".to_owned(), " z ".to_owned())];
    let request = Request::new("POST", "https", "/", "localhost", &fields, &body).expect("valid");
    let image = request.image().strip_suffix(&data(&body)[..]).expect("the body in one DATA frame");
    let mut rest = image;
    let (kind, length) = frame::Partial::default().frame(&mut rest).expect("a frame");
    assert_eq!((kind, length), (kind::HEADERS, rest.len() as u64));
    assert!(!request.is_head());
    assert!(Request::new("HEAD", "https", "/", "localhost", &[], b"").is_ok_and(|request| request.is_head()));
    let refused = [("Connection".to_owned(), "close".to_owned())];
    assert!(Request::new("GET", "https", "/", "localhost", &refused, b"").is_err());
}

#[test]
fn every_kind_has_its_own_name() {
    use std::collections::BTreeSet;
    let names: Vec<&str> = (0x100..=0x110).chain(0x200..=0x202).map(|code| ErrorCode(code).name()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    assert!(!names.contains(&"unknown"));
}

/// Records for the fuzz target that mean something more often than bytes at random.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(headers(OK)),
        Just(headers(NO_CONTENT)),
        Just(headers(EARLY_HINTS)),
        Just(headers(TRAILERS)),
        Just(headers(WITH_TEAPOT)),
        Just(headers(WITH_XY)),
        Just(with_length(b"5")),
        Just(data(b"hello")),
        Just(data(b"")),
        Just(frame(GREASE, b"grease")),
        Just(control(&[])),
        (0..8_u64).prop_map(|id| frame(kind::GOAWAY, &integers(&[4 * id]))),
        Just([&[2], CAPACITY, TEAPOT].concat()),
        Just(XY.to_vec()),
        Just(vec![3, 0x44]),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let bytes = prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat());
    let what = prop_oneof![8 => 0..16_u8, 4 => 16..32_u8, 1 => any::<u8>()];
    (what, bytes, any::<prop::sample::Index>(), any::<bool>()).prop_map(|(what, mut bytes, at, cut)| {
        if cut {
            bytes.truncate(at.index(bytes.len() + 1));
        }
        [&[what, bytes.len() as u8], &bytes[..]].concat()
    })
}

/// A stream that waits for the table breaks one rule, the encoder's stream another behind the insertion that
/// it waits for: which is named depends on how the latter is cut, and nothing else does.
#[test]
fn two_violations_at_once() {
    let blocked = [0, 8, 1, 3, 2, 0, 128, 7, 1, 0];
    let encoder = [8, 18, 2, 63, 189, 1, 216, 3, 52, 49, 56, 2, 63, 189, 1, 216, 3, 52, 49, 56];
    fuzz_streams(&[&[209], &blocked[..], &encoder[..]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever comes: no panic, the same however it is cut, every request accounted for, memory bounded.
    #[test]
    fn hostile_streams(setup: u8, records in prop::collection::vec(record(), 0..12)) {
        fuzz_streams(&[&[setup], &records.concat()[..]].concat());
    }

    #[test]
    fn hostile_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_streams(&bytes);
    }
}
