//! Connection errors: what is in flight fails under the name of the violation, the server is told its code,
//! and another connection takes over.

use bench::results::Phase;

use crate::OK;
use crate::common::answer::Answer;
use crate::common::h3::wire::{self, data, frame, headers, settings, varints};
use crate::common::h3::{Closed, H3};
use crate::common::{Scripted, errors, finish, hpack};

/// What a script does while four requests are open, the first of them on stream `id`.
type Act = fn(&mut H3, u32);

/// A violation after which a connection cannot go on (RFC 9114 §8, RFC 9204 §6): its kind, the code of the
/// CONNECTION_CLOSE that answers it, and what is done.
type Broken = (&'static str, u64, Act);

/// Opens the control stream, in front of it nothing was said.
fn open(h3: &mut H3, frames: &[Vec<u8>]) {
    h3.open_control(&[varints(&[wire::CONTROL]), frames.concat()].concat());
}

/// Says all that is in order, and then this on the control stream.
fn control(h3: &mut H3, bytes: &[u8]) {
    h3.settings(&[]);
    h3.control(bytes);
}

/// Says all that is in order, and then this on a request's stream.
fn request(h3: &mut H3, id: u32, frames: &[Vec<u8>], end: bool) {
    h3.settings(&[]);
    h3.send(id, &frames.concat(), end);
}

/// A HEADERS frame whose section is these bytes.
fn section(h3: &mut H3, id: u32, bytes: &[u8]) {
    request(h3, id, &[frame(wire::HEADERS, bytes)], true);
}

/// Says all that is in order, and then this on the encoder's (0) or the decoder's stream (1).
fn instructions(h3: &mut H3, which: usize, bytes: &[u8]) {
    h3.settings(&[]);
    h3.uni_send(which, bytes, false);
}

const UNEXPECTED: u64 = wire::H3_FRAME_UNEXPECTED;
const FRAME: u64 = wire::H3_FRAME_ERROR;
const ID: u64 = wire::H3_ID_ERROR;
const MISSING: u64 = wire::H3_MISSING_SETTINGS;
const SETTINGS: u64 = wire::H3_SETTINGS_ERROR;
const CREATION: u64 = wire::H3_STREAM_CREATION_ERROR;
const CRITICAL: u64 = wire::H3_CLOSED_CRITICAL_STREAM;
const SECTION: u64 = wire::QPACK_DECOMPRESSION_FAILED;
const ENCODER: u64 = wire::QPACK_ENCODER_STREAM_ERROR;
const DECODER: u64 = wire::QPACK_DECODER_STREAM_ERROR;

const BROKEN: &[Broken] = &[
    // RFC 9114 §6.2.1: SETTINGS come first.
    ("missing-settings", MISSING, |h3, _| open(h3, &[wire::goaway(0)])),
    ("missing-settings", MISSING, |h3, _| open(h3, &[frame(wire::reserved(0), b"")])),
    ("missing-settings", MISSING, |h3, _| open(h3, &[data(b"a")])),
    // §7.2.4: once, each setting once, none of HTTP/2's.
    ("repeated-settings", UNEXPECTED, |h3, _| control(h3, &settings(&[]))),
    ("reserved-setting", SETTINGS, |h3, _| open(h3, &[settings(&[(0x2, 0)])])),
    ("reserved-setting", SETTINGS, |h3, _| open(h3, &[settings(&[(0x3, 100)])])),
    ("reserved-setting", SETTINGS, |h3, _| open(h3, &[settings(&[(0x4, 65_535)])])),
    ("reserved-setting", SETTINGS, |h3, _| open(h3, &[settings(&[(0x6, 1), (0x5, 16_384)])])),
    ("duplicate-setting", SETTINGS, |h3, _| open(h3, &[settings(&[(0x6, 1), (0x6, 2)])])),
    // §7.1: payloads that are no such frame.
    ("frame-size", FRAME, |h3, _| open(h3, &[frame(wire::SETTINGS, &[0x06])])),
    ("frame-size", FRAME, |h3, _| open(h3, &[frame(wire::SETTINGS, &[0x06, 0x40])])),
    ("frame-size", FRAME, |h3, _| control(h3, &frame(wire::GOAWAY, b""))),
    ("frame-size", FRAME, |h3, _| control(h3, &frame(wire::GOAWAY, &[0x80, 0, 0]))),
    ("frame-size", FRAME, |h3, _| control(h3, &frame(wire::GOAWAY, &[0, 0]))),
    ("frame-size", FRAME, |h3, _| control(h3, &varints(&[wire::GOAWAY, 1 << 40]))),
    // §7.2: frames on streams where they have no place.
    ("frame-on-wrong-stream", UNEXPECTED, |h3, _| control(h3, &data(b"a"))),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, _| control(h3, &headers(&[OK]))),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, _| control(h3, &frame(wire::PUSH_PROMISE, &[0, 0, 0]))),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, _| control(h3, &frame(wire::MAX_PUSH_ID, &[1]))),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, id| request(h3, id, &[settings(&[])], false)),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, id| {
        request(h3, id, &[headers(&[OK]), wire::goaway(0)], false);
    }),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, id| request(h3, id, &[frame(wire::CANCEL_PUSH, &[0])], false)),
    ("frame-on-wrong-stream", UNEXPECTED, |h3, id| request(h3, id, &[frame(wire::MAX_PUSH_ID, &[0])], false)),
    // §7.2.8: types of HTTP/2.
    ("reserved-frame", UNEXPECTED, |h3, _| control(h3, &frame(0x2, &[0; 5]))),
    ("reserved-frame", UNEXPECTED, |h3, _| control(h3, &frame(0x6, &[0; 8]))),
    ("reserved-frame", UNEXPECTED, |h3, _| control(h3, &frame(0x8, &[0; 4]))),
    ("reserved-frame", UNEXPECTED, |h3, id| request(h3, id, &[frame(0x9, &[0])], false)),
    ("reserved-frame", UNEXPECTED, |h3, id| request(h3, id, &[headers(&[OK]), frame(0x2, b"")], false)),
    // §4.6, §7.2.3, §7.2.5: push was never allowed.
    ("push", ID, |h3, _| control(h3, &frame(wire::CANCEL_PUSH, &[0]))),
    ("push", ID, |h3, id| request(h3, id, &[frame(wire::PUSH_PROMISE, &[0, 0, 0, 0xd1])], false)),
    ("push", ID, |h3, _| {
        h3.settings(&[]);
        h3.uni(&varints(&[wire::PUSH, 0]), false);
    }),
    // §7.2.6, §5.2: GOAWAY.
    ("goaway-id", ID, |h3, _| control(h3, &wire::goaway(1))),
    ("goaway-id", ID, |h3, _| control(h3, &wire::goaway(3))),
    ("goaway-increases", ID, |h3, _| control(h3, &[wire::goaway(1000), wire::goaway(1004)].concat())),
    // §6.2.1, RFC 9204 §4.2: one of each, and to the end.
    ("repeated-stream", CREATION, |h3, _| {
        h3.settings(&[]);
        h3.uni(&varints(&[wire::CONTROL]), false);
    }),
    ("repeated-stream", CREATION, |h3, _| {
        h3.settings(&[]);
        h3.uni(&varints(&[wire::ENCODER]), false);
    }),
    ("repeated-stream", CREATION, |h3, _| {
        h3.settings(&[]);
        h3.uni(&varints(&[wire::DECODER]), false);
    }),
    ("closed-critical-stream", CRITICAL, |h3, _| {
        h3.settings(&[]);
        h3.end_control(None);
    }),
    ("closed-critical-stream", CRITICAL, |h3, _| {
        h3.settings(&[]);
        assert!(h3.settle());
        h3.end_control(Some(wire::H3_NO_ERROR));
    }),
    ("closed-critical-stream", CRITICAL, |h3, _| {
        h3.settings(&[]);
        h3.uni_send(0, b"", true);
    }),
    ("closed-critical-stream", CRITICAL, |h3, _| {
        h3.settings(&[]);
        h3.uni_send(1, b"", true);
    }),
    ("closed-critical-stream", CRITICAL, |h3, _| h3.stop_uni(wire::CONTROL, wire::H3_NO_ERROR)),
    ("closed-critical-stream", CRITICAL, |h3, _| h3.stop_uni(wire::ENCODER, wire::H3_NO_ERROR)),
    // §4.1: the order of frames, and where they may end.
    ("data-before-headers", UNEXPECTED, |h3, id| request(h3, id, &[data(b"Hello")], false)),
    ("data-before-headers", UNEXPECTED, |h3, id| {
        request(h3, id, &[headers(&[(":status", b"103")]), data(b"")], true);
    }),
    ("frame-after-trailers", UNEXPECTED, |h3, id| {
        request(h3, id, &[headers(&[OK]), headers(&[("x-a", b"b")]), data(b"a")], false);
    }),
    ("frame-after-trailers", UNEXPECTED, |h3, id| {
        let trailers = headers(&[("x-a", b"b")]);
        request(h3, id, &[headers(&[OK]), data(b"a"), trailers.clone(), trailers], true);
    }),
    ("frame-cut", FRAME, |h3, id| request(h3, id, &[headers(&[OK]), vec![0, 5, b'a', b'b']], true)),
    ("frame-cut", FRAME, |h3, id| request(h3, id, &[headers(&[OK]), vec![0x40]], true)),
    ("frame-cut", FRAME, |h3, id| request(h3, id, &[vec![wire::HEADERS as u8, 20, 0, 0]], true)),
    ("frame-cut", FRAME, |h3, id| request(h3, id, &[headers(&[OK]), varints(&[wire::reserved(0), 9])], true)),
    // RFC 9204 §2.2, §3.2.4, §4.5: sections that cannot be read; the table has a capacity of 0.
    ("qpack-index", SECTION, |h3, id| section(h3, id, &[0, 0, 0xff, 0x24])),
    ("qpack-index", SECTION, |h3, id| section(h3, id, &[0, 0, 0xd9, 0x5f, 0x54, 0x01, b'a'])),
    ("qpack-dynamic-table-refused", SECTION, |h3, id| section(h3, id, &[0, 0, 0x80])),
    ("qpack-dynamic-table-refused", SECTION, |h3, id| section(h3, id, &[0, 0, 0x40, 0x01, b'a'])),
    ("qpack-dynamic-table-refused", SECTION, |h3, id| section(h3, id, &[0, 0, 0x10])),
    ("qpack-dynamic-table-refused", SECTION, |h3, id| section(h3, id, &[0, 0, 0x00, 0x01, b'a'])),
    ("qpack-dynamic-table-refused", SECTION, |h3, id| section(h3, id, &[1, 0, 0xd9])),
    ("qpack-truncated", SECTION, |h3, id| section(h3, id, &[])),
    ("qpack-truncated", SECTION, |h3, id| section(h3, id, &[0])),
    ("qpack-truncated", SECTION, |h3, id| section(h3, id, &[0, 0, 0xd9, 0x5f])),
    ("qpack-truncated", SECTION, |h3, id| section(h3, id, &[0, 0, 0xd9, 0x23, b'x', b'-'])),
    ("qpack-truncated", SECTION, |h3, id| section(h3, id, &[0, 0, 0xff])),
    ("qpack-integer-overflow", SECTION, |h3, id| {
        section(h3, id, &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    }),
    ("qpack-huffman", SECTION, |h3, id| {
        section(h3, id, &[0, 0, 0xd9, 0x21, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]);
    }),
    ("qpack-huffman", SECTION, |h3, id| section(h3, id, &[0, 0, 0xd9, 0x21, b'a', 0x81, 0x18])),
    // Trailers are sections as well.
    ("qpack-index", SECTION, |h3, id| {
        let trailers = frame(wire::HEADERS, &[0, 0, 0xff, 0x24]);
        request(h3, id, &[headers(&[OK]), data(b"a"), trailers], true);
    }),
    // RFC 9204 §4.3: instructions for a table that has no room.
    ("qpack-encoder-capacity", ENCODER, |h3, _| instructions(h3, 0, &[0x3f, 0x01])),
    ("qpack-encoder-entry", ENCODER, |h3, _| instructions(h3, 0, &[0xc1, 0x01, b'a'])),
    ("qpack-encoder-entry", ENCODER, |h3, _| instructions(h3, 0, &[0x41, b'a', 0x01, b'b'])),
    ("qpack-encoder-index", ENCODER, |h3, _| instructions(h3, 0, &[0x00])),
    ("qpack-encoder-index", ENCODER, |h3, _| instructions(h3, 0, &[0xff, 0x80, 0x01, 0x01, b'a'])),
    // RFC 9204 §4.4: acknowledgments of what was never inserted.
    ("qpack-decoder-acknowledgment", DECODER, |h3, id| {
        let mut bytes = Vec::new();
        hpack::integer(0x80, 7, id as usize, &mut bytes);
        instructions(h3, 1, &bytes);
    }),
    ("qpack-decoder-acknowledgment", DECODER, |h3, _| instructions(h3, 1, &[0x01])),
    ("qpack-decoder-acknowledgment", DECODER, |h3, _| instructions(h3, 1, &[0x00])),
];

/// What was in flight fails, under the violation's name; a new connection takes over.
#[test]
fn a_connection_error_fails_what_is_in_flight_and_the_run_goes_on() {
    let mut wrong = Vec::new();
    for (row, &(kind, code, act)) in BROKEN.iter().enumerate() {
        let server = Scripted::http3(move |h3| {
            if h3.index > 0 {
                h3.settings(&[]);
                return h3.always(&Answer::hello());
            }
            let Some(four) = h3.requests(4) else { return };
            act(h3, four[0].stream);
            // What the client says about it is read when the script has ended.
        });
        let m = finish(&server, &server.multiplexed(4, 20));
        let found = (errors(&m), m.requests.ok, m.connection.reopened, server.answered());
        let closes = server.closes();
        if found != (vec![(kind.to_owned(), 4)], 16, 1, 16) || closes != [Closed::Application(code)] {
            wrong.push(format!("row {row}, {kind}: {found:?}, {closes:x?}"));
        }
        if !m.errors.iter().all(|error| error.phase == Phase::Framing) {
            wrong.push(format!("row {row}, {kind}: {:?}", m.errors));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A server that breaks every connection ends no run late: each request fails once.
#[test]
fn a_server_that_breaks_every_connection_is_not_hammered() {
    let server = Scripted::http3(|h3| {
        if h3.request().is_some() {
            control(h3, &data(b"a"));
        }
    });
    let mut plan = server.plan(2, bench::load::plan::Limit::DurationNs(600 * crate::MS));
    plan.concurrency = 4;
    let m = finish(&server, &plan);
    assert_eq!(m.requests.ok, 0);
    assert!(m.requests.failed > 0);
    assert!(m.connection.attempted <= 2 * 12, "{:?}", m.connection);
    assert!(m.errors.iter().all(|error| error.kind == "frame-on-wrong-stream"), "{:?}", m.errors);
}

/// Frames and streams without end that move no request on (RFC 9114 §10.5).
#[test]
fn floods_end_their_connection() {
    let floods: [fn(&mut H3, u32); 3] = [
        |h3, _| {
            let frames = frame(wire::reserved(0), b"").repeat(1000);
            for _ in 0..20 {
                if !h3.control(&frames) {
                    return;
                }
            }
        },
        |h3, id| {
            h3.send(id, &headers(&[OK]), false);
            let frames = data(b"").repeat(1000);
            for _ in 0..20 {
                if !h3.send(id, &frames, false) {
                    return;
                }
            }
        },
        |h3, _| {
            let goaways = wire::goaway(400).repeat(1000);
            for _ in 0..20 {
                if !h3.control(&goaways) {
                    return;
                }
            }
        },
    ];
    for flood in floods {
        let server = Scripted::http3(move |h3| {
            h3.settings(&[]);
            let Some(asked) = h3.request() else { return };
            if h3.index == 0 {
                return flood(h3, asked.stream);
            }
            h3.respond(&asked, &Answer::hello());
            h3.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(1, 5));
        assert_eq!((errors(&m), m.requests.ok), (vec![("flood".to_owned(), 1)], 4));
        assert_eq!(server.closes(), [Closed::Application(wire::H3_EXCESSIVE_LOAD)]);
    }
}
