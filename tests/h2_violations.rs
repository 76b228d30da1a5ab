//! The generator against scripted HTTP/2 servers that break RFC 9113 and RFC 7541: each violation has its
//! name, costs what it must and no more, and the run goes on and ends; floods cost neither memory nor
//! time.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use bench::load::plan::{Event, Limit, LoadPlan};
use bench::results::{Measurement, Phase, Protocol};
use common::answer::Answer;
use common::frame::{self, Frame};
use common::h2::H2;
use common::hpack::{self, Literal};
use common::{HTTP2, Scripted, check_identities, errors, run};

/// One connection with M requests in flight, so many in all.
fn plan(server: &Scripted, concurrency: u32, count: u64) -> LoadPlan {
    LoadPlan { concurrency, ..server.plan(1, Limit::Requests(count)) }
}

fn finish(server: &Scripted, plan: &LoadPlan) -> Measurement {
    let m = run(plan);
    check_identities(&m);
    server.join();
    m
}

fn always(h2: &mut H2<'_>) {
    while let Some(asked) = h2.request() {
        if !h2.respond(&asked, &Answer::hello()) {
            return;
        }
    }
}

/// A block of these fields, each a literal that is not indexed.
fn block(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        hpack::literal(Literal::Plain, None, name, value, &mut block);
    }
    block
}

/// HEADERS of these fields, without and with END_STREAM.
fn headers(id: u32, fields: &[(&str, &[u8])]) -> Frame {
    Frame::headers(id, &block(fields), false)
}

fn last_headers(id: u32, fields: &[(&str, &[u8])]) -> Frame {
    Frame::headers(id, &block(fields), true)
}

const OK: (&str, &[u8]) = (":status", b"200");

// --- Stream errors ----------------------------------------------------------------------------------

/// A malformed response (RFC 9113 §8.1.1): its kind, the code of the RST_STREAM that answers it, and the
/// frames that are it on a stream.
type Malformed = (&'static str, u32, fn(u32) -> Vec<Frame>);

const PROTOCOL: u32 = frame::PROTOCOL_ERROR;

const MALFORMED: &[Malformed] = &[
    ("interim-ends-stream", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"103")])]),
    ("interim-ends-stream", PROTOCOL, |id| {
        vec![headers(id, &[(":status", b"100")]), last_headers(id, &[(":status", b"103")])]
    }),
    ("switching-protocols", PROTOCOL, |id| vec![headers(id, &[(":status", b"101")])]),
    ("too-many-interim", PROTOCOL, |id| vec![headers(id, &[(":status", b"103")]); 10_001]),
    ("data-before-headers", PROTOCOL, |id| vec![Frame::data(id, b"Hello", true)]),
    ("data-before-headers", PROTOCOL, |id| {
        vec![headers(id, &[(":status", b"103")]), Frame::data(id, b"Hello", true)]
    }),
    ("trailers-without-end", PROTOCOL, |id| vec![headers(id, &[OK]), headers(id, &[("x-a", b"b")])]),
    ("pseudo-header-in-trailers", PROTOCOL, |id| {
        vec![headers(id, &[OK]), Frame::data(id, b"a", false), last_headers(id, &[OK])]
    }),
    ("body-not-allowed", PROTOCOL, |id| {
        vec![headers(id, &[(":status", b"204")]), Frame::data(id, b"a", true)]
    }),
    ("body-not-allowed", PROTOCOL, |id| {
        vec![headers(id, &[(":status", b"304")]), Frame::data(id, b"a", false), Frame::data(id, b"", true)]
    }),
    ("content-length-mismatch", PROTOCOL, |id| {
        vec![headers(id, &[OK, ("content-length", b"4")]), Frame::data(id, b"Hello", true)]
    }),
    ("content-length-mismatch", PROTOCOL, |id| {
        vec![headers(id, &[OK, ("content-length", b"6")]), Frame::data(id, b"Hello", true)]
    }),
    ("content-length-mismatch", PROTOCOL, |id| {
        vec![
            headers(id, &[OK, ("content-length", b"5")]),
            Frame::data(id, b"Hello", false),
            Frame::data(id, b"!", false),
        ]
    }),
    // Padding is no part of a body.
    ("content-length-mismatch", PROTOCOL, |id| {
        vec![headers(id, &[OK, ("content-length", b"9")]), Frame::data(id, b"Hello", true).padded(4)]
    }),
    ("content-length-mismatch", PROTOCOL, |id| vec![last_headers(id, &[OK, ("content-length", b"5")])]),
    ("content-length-mismatch", PROTOCOL, |id| {
        vec![
            headers(id, &[OK, ("content-length", b"6")]),
            Frame::data(id, b"Hello", false),
            last_headers(id, &[("x-a", b"b")]),
        ]
    }),
    // An increment of 0 (RFC 9113 §6.9), and a window beyond 2^31 - 1 (§6.9.1).
    ("stream-window-overflow", PROTOCOL, |id| vec![Frame::window_update(id, 0)]),
    ("stream-window-overflow", frame::FLOW_CONTROL_ERROR, |id| vec![Frame::window_update(id, 0x7fff_ffff)]),
    ("priority-size", frame::FRAME_SIZE_ERROR, |id| vec![Frame::new(frame::PRIORITY, 0, id, &[0; 4])]),
    ("priority-size", frame::FRAME_SIZE_ERROR, |id| vec![Frame::new(frame::PRIORITY, 0, id, &[0; 6])]),
    ("missing-status", PROTOCOL, |id| vec![last_headers(id, &[])]),
    ("missing-status", PROTOCOL, |id| vec![last_headers(id, &[("content-length", b"0")])]),
    ("duplicate-status", PROTOCOL, |id| vec![last_headers(id, &[OK, OK])]),
    ("invalid-status", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"")])]),
    ("invalid-status", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"20")])]),
    ("invalid-status", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"2000")])]),
    ("invalid-status", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"099")])]),
    ("invalid-status", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"2x0")])]),
    ("invalid-status", PROTOCOL, |id| vec![last_headers(id, &[(":status", b"200 OK")])]),
    ("unknown-pseudo-header", PROTOCOL, |id| vec![last_headers(id, &[OK, (":path", b"/")])]),
    ("unknown-pseudo-header", PROTOCOL, |id| vec![last_headers(id, &[(":new", b""), OK])]),
    ("misplaced-pseudo-header", PROTOCOL, |id| vec![last_headers(id, &[("x-a", b"b"), OK])]),
    ("uppercase-field-name", PROTOCOL, |id| vec![last_headers(id, &[OK, ("X-a", b"b")])]),
    ("invalid-field-name", PROTOCOL, |id| vec![last_headers(id, &[OK, ("", b"b")])]),
    ("invalid-field-name", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x a", b"b")])]),
    ("invalid-field-name", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x:a", b"b")])]),
    ("invalid-field-name", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x\u{e4}", b"b")])]),
    ("invalid-field-value", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x-a", b"b\r\nx-c: d")])]),
    ("invalid-field-value", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x-a", b"\0")])]),
    ("whitespace-around-field-value", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x-a", b" b")])]),
    ("whitespace-around-field-value", PROTOCOL, |id| vec![last_headers(id, &[OK, ("x-a", b"b\t")])]),
    ("connection-specific-field", PROTOCOL, |id| vec![last_headers(id, &[OK, ("connection", b"close")])]),
    ("connection-specific-field", PROTOCOL, |id| {
        vec![last_headers(id, &[OK, ("transfer-encoding", b"chunked")])]
    }),
    ("connection-specific-field", PROTOCOL, |id| vec![last_headers(id, &[OK, ("keep-alive", b"5")])]),
    ("connection-specific-field", PROTOCOL, |id| vec![last_headers(id, &[OK, ("upgrade", b"h2c")])]),
    ("connection-specific-field", PROTOCOL, |id| {
        vec![headers(id, &[OK]), last_headers(id, &[("proxy-connection", b"close")])]
    }),
    ("invalid-content-length", PROTOCOL, |id| vec![last_headers(id, &[OK, ("content-length", b"")])]),
    ("invalid-content-length", PROTOCOL, |id| vec![last_headers(id, &[OK, ("content-length", b"+0")])]),
    ("conflicting-content-length", PROTOCOL, |id| {
        vec![headers(id, &[OK, ("content-length", b"5"), ("content-length", b"6")])]
    }),
];

/// A malformed response fails its request alone: its stream is reset, its neighbours and the connection
/// go on.
#[test]
fn a_malformed_response_fails_its_request_alone() {
    for &(kind, code, frames) in MALFORMED {
        let server = Scripted::http2(Protocol::H2c, move |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            h2.send(&frames(asked.stream));
            always(h2);
        });
        let m = finish(&server, &plan(&server, 3, 20));
        let what = format!("{kind}: {:?}", m.errors);
        assert_eq!(errors(&m), [(kind.to_owned(), 1)]);
        assert_eq!(m.errors[0].phase, Phase::Framing, "{what}");
        assert_eq!((m.requests.ok, m.requests.failed, m.connection.reopened), (19, 1, 0), "{what}");
        assert_eq!((server.answered(), m.requests.interrupted), (19, 0), "{what}");
        assert_eq!(server.resets(), [code], "{what}");
    }
}

#[test]
fn a_body_in_answer_to_head_is_a_violation() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            h2.send(&[headers(asked.stream, &[OK]), Frame::data(asked.stream, b"Hello", true)]);
            always(h2);
        });
        let mut plan = plan(&server, 3, 20);
        plan.request.method = "HEAD".into();
        let m = finish(&server, &plan);
        assert_eq!(errors(&m), [("body-not-allowed".to_owned(), 1)]);
        assert_eq!((m.requests.ok, m.connection.reopened), (19, 0));
    }
}

/// Late frames of a stream that was reset cost nothing; DATA among them counts towards the window of the
/// connection all the same (RFC 9113 §5.1).
#[test]
fn frames_that_cross_a_reset_are_ignored() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            let id = asked.stream;
            h2.send(&[
                Frame::data(id, b"too early", false),
                headers(id, &[OK, ("content-length", b"99")]),
                Frame::data(id, &[0; 16_384], false),
                Frame::window_update(id, 1),
                Frame::data(id, &[0; 16_384], true),
            ]);
            always(h2);
        });
        let m = finish(&server, &plan(&server, 3, 20));
        assert_eq!(errors(&m), [("data-before-headers".to_owned(), 1)]);
        assert_eq!((m.requests.ok, m.connection.reopened), (19, 0), "{protocol:?}");
    }
}

// --- Connection errors ------------------------------------------------------------------------------

/// A violation after which a connection cannot go on (RFC 9113 §5.4.1): its kind, the code of the GOAWAY
/// that answers it (`None`: the RFC leaves it open), and what is sent. Streams `id` and the three behind
/// it are open, nothing was answered yet.
type Broken = (&'static str, Option<u32>, fn(&mut H2<'_>, u32));

fn send(h2: &mut H2<'_>, frame: Frame) {
    h2.send(&[frame]);
}

/// HEADERS whose block is these bytes.
fn send_block(h2: &mut H2<'_>, id: u32, block: &[u8]) {
    h2.send(&[Frame::headers(id, block, true)]);
}

const SIZE: Option<u32> = Some(frame::FRAME_SIZE_ERROR);
const FLOW: Option<u32> = Some(frame::FLOW_CONTROL_ERROR);
const CLOSED: Option<u32> = Some(frame::STREAM_CLOSED);
const COMPRESSION: Option<u32> = Some(frame::COMPRESSION_ERROR);
const PROTO: Option<u32> = Some(frame::PROTOCOL_ERROR);

const BROKEN: &[Broken] = &[
    // §4.2: longer than SETTINGS_MAX_FRAME_SIZE.
    ("frame-size", SIZE, |h2, id| {
        h2.send(&[headers(id, &[OK]), Frame::data(id, &[0; 16_385], true)]);
    }),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::new(0xee, 0, 0, &[0; 16_385]))),
    // §6.1: DATA.
    ("frame-on-wrong-stream", PROTO, |h2, _| send(h2, Frame::data(0, b"a", false))),
    ("idle-stream", PROTO, |h2, id| send(h2, Frame::data(id + 8, b"a", false))),
    ("idle-stream", PROTO, |h2, _| send(h2, Frame::data(2, b"a", false))),
    ("padding", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]), Frame::new(frame::DATA, frame::PADDED, id, &[5, 0, 0, 0, 0])]);
    }),
    ("frame-size", SIZE, |h2, id| {
        h2.send(&[headers(id, &[OK]), Frame::new(frame::DATA, frame::PADDED, id, &[])]);
    }),
    // §6.2: HEADERS.
    ("frame-on-wrong-stream", PROTO, |h2, _| send(h2, last_headers(0, &[OK]))),
    ("idle-stream", PROTO, |h2, id| send(h2, last_headers(id + 8, &[OK]))),
    ("idle-stream", PROTO, |h2, _| send(h2, last_headers(2, &[OK]))),
    ("padding", PROTO, |h2, id| {
        send(h2, Frame::new(frame::HEADERS, frame::END_HEADERS | frame::PADDED, id, &[2, 0x88]));
    }),
    ("frame-size", SIZE, |h2, id| {
        send(h2, Frame::new(frame::HEADERS, frame::END_HEADERS | frame::PADDED, id, &[]));
    }),
    ("frame-size", SIZE, |h2, id| {
        send(h2, Frame::new(frame::HEADERS, frame::END_HEADERS | frame::PRIORITISED, id, &[0; 4]));
    }),
    // §6.3 to §6.9: frames on the wrong stream, or of the wrong length.
    ("frame-on-wrong-stream", PROTO, |h2, _| send(h2, Frame::priority(0))),
    ("frame-on-wrong-stream", PROTO, |h2, _| send(h2, Frame::reset(0, 0))),
    ("idle-stream", PROTO, |h2, id| send(h2, Frame::reset(id + 8, 0))),
    ("frame-size", SIZE, |h2, id| send(h2, Frame::new(frame::RST_STREAM, 0, id, &[0; 3]))),
    ("frame-on-wrong-stream", PROTO, |h2, id| send(h2, Frame { stream: id, ..Frame::settings(&[]) })),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::new(frame::SETTINGS, 0, 0, &[0; 5]))),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::settings(&[(1, 1)]).flags(frame::ACK))),
    ("frame-on-wrong-stream", PROTO, |h2, id| send(h2, Frame { stream: id, ..Frame::ping([0; 8]) })),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::new(frame::PING, 0, 0, &[0; 7]))),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::new(frame::PING, 0, 0, &[0; 9]))),
    ("frame-on-wrong-stream", PROTO, |h2, id| send(h2, Frame { stream: id, ..Frame::goaway(0, 0) })),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::new(frame::GOAWAY, 0, 0, &[0; 7]))),
    ("idle-stream", PROTO, |h2, id| send(h2, Frame::window_update(id + 8, 1))),
    ("frame-size", SIZE, |h2, _| send(h2, Frame::new(frame::WINDOW_UPDATE, 0, 0, &[0; 3]))),
    ("frame-size", SIZE, |h2, id| send(h2, Frame::new(frame::WINDOW_UPDATE, 0, id, &[0; 5]))),
    // §6.5.2: values.
    ("invalid-setting", PROTO, |h2, _| send(h2, Frame::settings(&[(frame::ENABLE_PUSH, 1)]))),
    ("invalid-setting", PROTO, |h2, _| send(h2, Frame::settings(&[(frame::ENABLE_PUSH, 2)]))),
    ("window-overflow", FLOW, |h2, _| send(h2, Frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 1 << 31)]))),
    ("invalid-setting", PROTO, |h2, _| send(h2, Frame::settings(&[(frame::MAX_FRAME_SIZE, 16_383)]))),
    ("invalid-setting", PROTO, |h2, _| send(h2, Frame::settings(&[(frame::MAX_FRAME_SIZE, 1 << 24)]))),
    // §6.9: windows.
    ("window-overflow", PROTO, |h2, _| send(h2, Frame::window_update(0, 0))),
    ("window-overflow", FLOW, |h2, _| send(h2, Frame::window_update(0, 0x7fff_ffff))),
    ("window-overflow", FLOW, |h2, id| {
        h2.send(&[
            Frame::window_update(id, 0x7fff_ffff - 65_535),
            Frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 65_536)]),
        ]);
    }),
    // §8.4: push was refused.
    ("push-promise", PROTO, |h2, id| send(h2, Frame::push_promise(id, 2))),
    ("push-promise", PROTO, |h2, _| send(h2, Frame::push_promise(0, 2))),
    // §5.1: streams that the server has ended itself; they fail no more, their neighbours do.
    ("closed-stream", CLOSED, |h2, id| {
        h2.send(&[last_headers(id, &[OK]), Frame::data(id, b"a", true)]);
    }),
    ("closed-stream", CLOSED, |h2, id| {
        h2.send(&[last_headers(id, &[OK]), last_headers(id, &[OK])]);
    }),
    // §6.10: a field block is contiguous.
    ("continuation", PROTO, |h2, id| send(h2, Frame::continuation(id, &[0x88], true))),
    ("continuation", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]), Frame::continuation(id, &[0x88], true)]);
    }),
    ("continuation", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]).flags(0), Frame::continuation(id + 2, &[0x88], true)]);
    }),
    ("continuation", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]).flags(0), Frame::ping([0; 8])]);
    }),
    ("continuation", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]).flags(0), Frame::data(id, b"a", true)]);
    }),
    ("continuation", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]).flags(0), Frame::new(0xee, 0, id, b"unknown")]);
    }),
    ("continuation", PROTO, |h2, id| {
        h2.send(&[headers(id, &[OK]).flags(0), headers(id, &[OK])]);
    }),
    // RFC 7541: what leaves the table in doubt.
    ("hpack-index", COMPRESSION, |h2, id| send_block(h2, id, &[0x80])),
    ("hpack-index", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0xbe])),
    ("hpack-index", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0x7f, 0x20, 0x01, b'a'])),
    ("hpack-truncated", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0x00])),
    ("hpack-truncated", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0x00, 0x03, b'a'])),
    ("hpack-truncated", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0xff])),
    ("hpack-integer-overflow", COMPRESSION, |h2, id| {
        send_block(h2, id, &[0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }),
    ("hpack-table-size", COMPRESSION, |h2, id| {
        let mut block = Vec::new();
        hpack::size_update(4097, &mut block);
        block.push(0x88);
        send_block(h2, id, &block);
    }),
    ("hpack-table-size-misplaced", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0x20])),
    // Huffman: EOS inside, and padding that is too long or not all ones (RFC 7541 §5.2).
    ("hpack-huffman", COMPRESSION, |h2, id| {
        send_block(h2, id, &[0x88, 0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]);
    }),
    ("hpack-huffman", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0x00, 0x01, b'a', 0x82, 0x1f, 0xff])),
    ("hpack-huffman", COMPRESSION, |h2, id| send_block(h2, id, &[0x88, 0x00, 0x01, b'a', 0x81, 0x18])),
    // Trailers and blocks of streams that are no more are decoded as well.
    ("hpack-index", COMPRESSION, |h2, id| {
        h2.send(&[headers(id, &[OK]), Frame::headers(id, &[0xbe], true)]);
    }),
    // More than the list that was said to be taken.
    ("header-list-too-large", None, |h2, id| {
        let value = [b'v'; 4000];
        let mut fields = vec![OK];
        fields.extend(std::iter::repeat_n(("x-large", &value[..]), 17));
        let block = block(&fields);
        let mut frames = vec![Frame::new(frame::HEADERS, frame::END_STREAM, id, b"")];
        frames.extend(block.chunks(16_384).map(|part| Frame::continuation(id, part, false)));
        frames.push(Frame::continuation(id, b"", true));
        h2.send(&frames);
    }),
    // A bomb: one entry of nearly 4 KiB, referred to with a byte each time.
    ("header-list-too-large", None, |h2, id| {
        let mut block = vec![0x88];
        hpack::literal(Literal::Indexed, None, "x-bomb", &[b'v'; 4000], &mut block);
        block.extend([0xbe; 12_000]);
        send_block(h2, id, &block);
    }),
];

/// What was in flight fails, under the violation's name; a new connection takes over.
#[test]
fn a_connection_error_fails_what_is_in_flight_and_the_run_goes_on() {
    for &(kind, code, act) in BROKEN {
        let server = Scripted::http2(Protocol::H2c, move |h2| {
            h2.settings(&[]);
            if h2.conn.index > 0 {
                return always(h2);
            }
            let Some(four) = h2.requests(4) else { return };
            act(h2, four[0].stream);
            // What the client says about it is read when the script has ended.
        });
        let m = finish(&server, &plan(&server, 4, 20));
        let what = format!("{kind}: {:?} {:?}", m.errors, m.requests);
        // One of the four is answered before the violation where that is the point of it.
        let answered = u64::from(kind == "closed-stream");
        assert_eq!(errors(&m), [(kind.to_owned(), 4 - answered)], "{what}");
        assert_eq!((m.errors[0].phase, m.errors[0].requests), (Phase::Framing, 4 - answered), "{what}");
        assert_eq!(m.requests.ok, 16 + answered, "{what}");
        assert_eq!((m.connection.reopened, server.answered()), (1, 16), "{what}");
        match code {
            Some(code) => assert_eq!(server.goaways(), [code], "{what}"),
            None => assert_eq!(server.goaways().len(), 1, "{what}"),
        }
    }
}

/// The same over TLS, where a record may hold more than the frame that is wrong.
#[test]
fn connection_errors_over_tls() {
    for &(kind, code, act) in BROKEN.iter().step_by(7) {
        let server = Scripted::http2(Protocol::H2, move |h2| {
            h2.settings(&[]);
            if h2.conn.index > 0 {
                return always(h2);
            }
            let Some(four) = h2.requests(4) else { return };
            act(h2, four[0].stream);
            always(h2);
        });
        let m = finish(&server, &plan(&server, 4, 20));
        assert_eq!(m.errors.len(), 1, "{kind}: {:?}", m.errors);
        assert_eq!((m.errors[0].phase, &m.errors[0].kind[..]), (Phase::Framing, kind));
        assert_eq!((m.requests.ok + m.requests.failed, m.connection.reopened), (20, 1));
        assert!(code.is_none_or(|code| server.goaways() == [code]), "{kind}: {:?}", server.goaways());
    }
}

/// RFC 9113 §3.4: the first frame of a server is SETTINGS, and no acknowledgement.
#[test]
fn a_server_that_does_not_begin_with_settings() {
    let firsts: [(&str, fn(&mut H2<'_>, u32)); 8] = [
        ("settings-not-first", |h2, id| send(h2, last_headers(id, &[OK]))),
        ("settings-not-first", |h2, _| send(h2, Frame::settings_ack())),
        ("settings-not-first", |h2, _| send(h2, Frame::ping([1; 8]))),
        ("settings-not-first", |h2, _| send(h2, Frame::window_update(0, 1))),
        ("settings-not-first", |h2, _| send(h2, Frame::goaway(0, 0))),
        ("settings-not-first", |h2, _| send(h2, Frame::new(0xee, 0, 0, b"unknown"))),
        ("settings-not-first", |h2, _| {
            h2.conn.send(b"SSH-2.0-OpenSSH_9.6\r\n");
        }),
        ("wrong-protocol", |h2, _| {
            h2.conn.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }),
    ];
    for protocol in HTTP2 {
        for (kind, first) in firsts {
            let server = Scripted::http2(protocol, move |h2| {
                let Some(asked) = h2.request() else { return };
                if h2.conn.index == 0 {
                    return first(h2, asked.stream);
                }
                h2.settings(&[]);
                h2.respond(&asked, &Answer::hello());
                always(h2);
            });
            let m = finish(&server, &plan(&server, 4, 20));
            assert_eq!(errors(&m), [(kind.to_owned(), 1)], "{protocol:?}");
            assert_eq!(m.errors[0].phase, Phase::Framing);
            assert_eq!((m.requests.ok, m.connection.reopened), (19, 1), "{protocol:?} {kind}");
        }
    }
}

/// RFC 9113 §6.8: a later GOAWAY takes no stream back in.
#[test]
fn a_goaway_may_not_rise() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            if h2.conn.index > 0 {
                return always(h2);
            }
            let Some(four) = h2.requests(4) else { return };
            h2.goaway(four[1].stream, frame::NO_ERROR);
            h2.send(&[Frame::goaway(four[2].stream, frame::NO_ERROR)]);
        });
        let m = finish(&server, &plan(&server, 4, 20));
        assert_eq!(errors(&m), [("goaway-increases".to_owned(), 2)]);
        assert_eq!((m.requests.ok, m.requests.replayed, server.answered()), (18, 2, 18));
    }
}

/// A server that is wrong each time: the run ends all the same, without a busy loop.
#[test]
fn a_server_that_is_always_wrong_is_not_hammered() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            if h2.request().is_some() {
                send(h2, Frame::push_promise(1, 2));
            }
        });
        let plan = LoadPlan { concurrency: 10, ..server.plan(4, Limit::DurationNs(600_000_000)) };
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, m.requests_per_second), (0, Some(0.0)));
        assert!(m.requests.failed > 0 && m.latency_us.is_none());
        assert_eq!(m.errors.iter().map(|e| &e.kind[..]).collect::<Vec<_>>(), ["push-promise"]);
        // 10 ms doubled up to seven times: not over a dozen attempts of each connection.
        assert!(m.connection.attempted <= 4 * 12, "{:?}", m.connection);
    }
}

// --- Floods -----------------------------------------------------------------------------------------

/// What is sent again and again on stream `id`, until the client ends the connection, and the kind that
/// this is counted as.
type Flood = (&'static str, fn(u32) -> Vec<Frame>, fn(u32) -> Vec<Frame>);

fn nothing(_: u32) -> Vec<Frame> {
    Vec::new()
}

const FLOODS: &[Flood] = &[
    ("flood", nothing, |_| vec![Frame::ping([0; 8])]),
    ("flood", nothing, |_| vec![Frame::ping([0; 8]).flags(frame::ACK)]),
    ("flood", nothing, |_| vec![Frame::settings(&[])]),
    ("flood", nothing, |_| vec![Frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 1000)])]),
    ("flood", nothing, |_| vec![Frame::settings_ack()]),
    ("flood", nothing, |id| vec![Frame::priority(id)]),
    ("flood", nothing, |_| vec![Frame::new(0xee, 0, 0, b"unknown")]),
    ("flood", nothing, |_| vec![Frame::window_update(0, 1)]),
    ("flood", nothing, |id| vec![Frame::window_update(id, 1)]),
    ("flood", |id| vec![Frame::reset(id, frame::INTERNAL_ERROR)], |id| vec![Frame::reset(id, 2)]),
    ("flood", |id| vec![headers(id, &[OK])], |id| vec![Frame::data(id, b"", false)]),
    ("flood", |id| vec![headers(id, &[OK])], |id| vec![Frame::data(id, b"", false).padded(255)]),
    ("flood", |id| vec![Frame::data(id, b"early", false)], |id| vec![Frame::data(id, b"more", false)]),
    ("flood", |id| vec![Frame::data(id, b"early", false)], |id| vec![headers(id, &[OK])]),
    ("flood", |_| vec![Frame::goaway(0x7fff_ffff, 0)], |_| vec![Frame::goaway(0x7fff_ffff, 0)]),
    (
        "field-block-too-long",
        |id| vec![headers(id, &[OK]).flags(0)],
        |id| vec![Frame::continuation(id, b"", false)],
    ),
    (
        "field-block-too-long",
        |id| vec![headers(id, &[OK]).flags(0)],
        |id| vec![Frame::continuation(id, &[0; 16_384], false)],
    ),
];

fn flood(server_protocol: Protocol, (_, first, again): Flood) -> Scripted {
    Scripted::http2(server_protocol, move |h2| {
        h2.settings(&[]);
        if h2.conn.index > 0 {
            return always(h2);
        }
        let Some(asked) = h2.request() else { return };
        let id = asked.stream;
        h2.send(&first(id));
        let flood: Vec<Frame> = (0..100).flat_map(|_| again(id)).collect();
        while h2.send(&flood) {}
    })
}

/// A flood ends as a violation of its connection, in little time.
#[test]
fn a_flood_ends_its_connection_and_not_the_run() {
    for &row in FLOODS {
        let server = flood(Protocol::H2c, row);
        let m = finish(&server, &plan(&server, 1, 10));
        let kinds: Vec<&str> = m.errors.iter().map(|e| &e.kind[..]).collect();
        assert!(kinds.contains(&row.0), "{}: {:?}", row.0, m.errors);
        assert_eq!((m.requests.ok + m.requests.failed, m.requests.unfinished), (10, 0));
        assert!((8..=9).contains(&m.requests.ok), "{}: {:?} {:?}", row.0, m.requests, m.errors);
    }
}

/// The memory of a generator that is flooded is that of one that is not.
#[test]
fn memory_stays_flat_under_floods() {
    let peak = |server: &Scripted| {
        let m = in_a_process(&plan(server, 4, 10));
        assert!(m.requests.ok >= 6, "{:?}", m.errors);
        m.generator.peak_rss_kib
    };
    let calm = peak(&Scripted::http2(Protocol::H2c, |h2| {
        h2.settings(&[]);
        always(h2);
    }));
    for &row in FLOODS {
        let flooded = peak(&flood(Protocol::H2c, row));
        assert!(flooded < calm + 16 * 1024, "{}: {flooded} KiB, {calm} KiB without", row.0);
    }
}

/// Runs a plan in a generator of its own.
fn in_a_process(plan: &LoadPlan) -> Measurement {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["load", "--plan", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bench starts");
    let text = serde_json::to_string(plan).expect("a plan can be written");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads its plan");
    let output = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("text");
    match lines.lines().last().map(serde_json::from_str) {
        Some(Ok(Event::Measurement(m))) => *m,
        other => panic!("{other:?}: {lines}"),
    }
}
