//! Connection errors: what is in flight fails under the name of the violation, and another connection
//! takes over.

use bench::load::plan::{Limit, LoadPlan};
use bench::results::{Phase, Protocol};

use crate::common::answer::Answer;
use crate::common::frame::{self, Frame};
use crate::common::h2::H2;
use crate::common::hpack::{self, Literal};
use crate::common::{HTTP2, Scripted, errors, finish};
use crate::{OK, block, headers, last_headers};

/// What a script does on a stream.
type Act = fn(&mut H2<'_>, u32);

/// A violation after which a connection cannot go on (RFC 9113 §5.4.1): its kind, the code of the GOAWAY
/// that answers it (`None`: the RFC leaves it open), and what is sent. Streams `id` and the three behind
/// it are open, nothing was answered yet.
type Broken = (&'static str, Option<u32>, Act);

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
    ("zero-increment", PROTO, |h2, _| send(h2, Frame::window_update(0, 0))),
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
    let mut wrong = Vec::new();
    for (row, &(kind, code, act)) in BROKEN.iter().enumerate() {
        let server = Scripted::http2(Protocol::H2c, move |h2| {
            h2.settings(&[]);
            if h2.conn.index > 0 {
                return h2.always(&Answer::hello());
            }
            let Some(four) = h2.requests(4) else { return };
            act(h2, four[0].stream);
            // What the client says about it is read when the script has ended.
        });
        let m = finish(&server, &server.multiplexed(4, 20));
        // One of the four is answered before the violation where that is the point of it.
        let answered = u64::from(kind == "closed-stream");
        let goaways = server.goaways();
        let said = match code {
            Some(code) => goaways == [code],
            None => goaways.len() == 1,
        };
        let found = (errors(&m), m.requests.ok, m.connection.reopened, server.answered());
        if !said || found != (vec![(kind.to_owned(), 4 - answered)], 16 + answered, 1, 16) {
            wrong.push(format!("row {row}, {kind}: {found:?}, GOAWAY {goaways:?}"));
        }
        assert!(
            m.errors.iter().all(|e| e.phase == Phase::Framing && e.requests == e.count),
            "{:?}",
            m.errors
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The same over TLS, where a record may hold more than the frame that is wrong.
#[test]
fn connection_errors_over_tls() {
    for &(kind, code, act) in BROKEN.iter().step_by(7) {
        let server = Scripted::http2(Protocol::H2, move |h2| {
            h2.settings(&[]);
            if h2.conn.index > 0 {
                return h2.always(&Answer::hello());
            }
            let Some(four) = h2.requests(4) else { return };
            act(h2, four[0].stream);
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(4, 20));
        assert_eq!(m.errors.len(), 1, "{kind}: {:?}", m.errors);
        assert_eq!((m.errors[0].phase, &m.errors[0].kind[..]), (Phase::Framing, kind));
        assert_eq!((m.requests.ok + m.requests.failed, m.connection.reopened), (20, 1));
        assert!(code.is_none_or(|code| server.goaways() == [code]), "{kind}: {:?}", server.goaways());
    }
}

/// RFC 9113 §3.4: the first frame of a server is SETTINGS, and no acknowledgement.
#[test]
fn a_server_that_does_not_begin_with_settings() {
    let firsts: [(&str, Act); 8] = [
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
                h2.always(&Answer::hello());
            });
            let m = finish(&server, &server.multiplexed(4, 20));
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
                return h2.always(&Answer::hello());
            }
            let Some(four) = h2.requests(4) else { return };
            h2.goaway(four[1].stream, frame::NO_ERROR);
            h2.send(&[Frame::goaway(four[2].stream, frame::NO_ERROR)]);
        });
        let m = finish(&server, &server.multiplexed(4, 20));
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
