//! Stream errors: a malformed response fails its request alone.

use bench::results::{Phase, Protocol};

use crate::common::answer::Answer;
use crate::common::frame::{self, Frame};
use crate::common::{HTTP2, Scripted, errors, finish};
use crate::{OK, headers, last_headers};

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
    ("stream-zero-increment", PROTOCOL, |id| vec![Frame::window_update(id, 0)]),
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
    let mut wrong = Vec::new();
    for (row, &(kind, code, frames)) in MALFORMED.iter().enumerate() {
        let server = Scripted::http2(Protocol::H2c, move |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            h2.send(&frames(asked.stream));
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(3, 20));
        let found = (errors(&m), m.requests.ok, m.connection.reopened, server.answered(), server.resets());
        if found != (vec![(kind.to_owned(), 1)], 19, 0, 19, vec![code]) {
            wrong.push(format!("row {row}, {kind}: {found:?}"));
        }
        assert!(m.errors.iter().all(|error| error.phase == Phase::Framing), "{:?}", m.errors);
        assert_eq!(m.requests.interrupted, 0);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_body_in_answer_to_head_is_a_violation() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            h2.send(&[headers(asked.stream, &[OK]), Frame::data(asked.stream, b"Hello", true)]);
            h2.always(&Answer::hello());
        });
        let mut plan = server.multiplexed(3, 20);
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
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(3, 20));
        assert_eq!(errors(&m), [("data-before-headers".to_owned(), 1)]);
        assert_eq!((m.requests.ok, m.connection.reopened), (19, 0), "{protocol:?}");
    }
}
