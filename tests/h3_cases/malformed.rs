//! Stream errors: a malformed response fails its request alone.

use bench::results::Phase;

use crate::OK;
use crate::common::answer::Answer;
use crate::common::h3::wire::{self, data, headers};
use crate::common::{Scripted, errors, finish};

/// A malformed response (RFC 9114 §4.1.2): its kind, the code the client stops it with, whether the stream
/// ends behind it, and the frames that are it.
type Malformed = (&'static str, u64, bool, fn() -> Vec<Vec<u8>>);

const MESSAGE: u64 = wire::H3_MESSAGE_ERROR;
const LOAD: u64 = wire::H3_EXCESSIVE_LOAD;

const MALFORMED: &[Malformed] = &[
    ("no-response", MESSAGE, true, Vec::new),
    ("interim-ends-stream", MESSAGE, true, || vec![headers(&[(":status", b"103")])]),
    ("interim-ends-stream", MESSAGE, true, || {
        vec![headers(&[(":status", b"100")]), headers(&[(":status", b"103")])]
    }),
    ("switching-protocols", MESSAGE, false, || vec![headers(&[(":status", b"101")])]),
    ("too-many-interim", LOAD, false, || vec![headers(&[(":status", b"103")]); 10_001]),
    ("pseudo-header-in-trailers", MESSAGE, true, || vec![headers(&[OK]), data(b"a"), headers(&[OK])]),
    ("body-not-allowed", MESSAGE, true, || vec![headers(&[(":status", b"204")]), data(b"a")]),
    ("body-not-allowed", MESSAGE, false, || vec![headers(&[(":status", b"304")]), data(b"a")]),
    ("content-length-mismatch", MESSAGE, true, || {
        vec![headers(&[OK, ("content-length", b"4")]), data(b"Hello")]
    }),
    ("content-length-mismatch", MESSAGE, true, || {
        vec![headers(&[OK, ("content-length", b"6")]), data(b"Hello")]
    }),
    ("content-length-mismatch", MESSAGE, false, || {
        vec![headers(&[OK, ("content-length", b"5")]), data(b"Hello"), data(b"!")]
    }),
    ("content-length-mismatch", MESSAGE, true, || vec![headers(&[OK, ("content-length", b"5")])]),
    ("content-length-mismatch", MESSAGE, true, || {
        vec![headers(&[OK, ("content-length", b"6")]), data(b"Hello"), headers(&[("x-a", b"b")])]
    }),
    ("missing-status", MESSAGE, true, || vec![headers(&[])]),
    ("missing-status", MESSAGE, true, || vec![headers(&[("content-length", b"0")])]),
    ("duplicate-status", MESSAGE, true, || vec![headers(&[OK, OK])]),
    ("invalid-status", MESSAGE, true, || vec![headers(&[(":status", b"")])]),
    ("invalid-status", MESSAGE, true, || vec![headers(&[(":status", b"20")])]),
    ("invalid-status", MESSAGE, true, || vec![headers(&[(":status", b"2000")])]),
    ("invalid-status", MESSAGE, false, || vec![headers(&[(":status", b"099")])]),
    ("invalid-status", MESSAGE, true, || vec![headers(&[(":status", b"2x0")])]),
    ("unknown-pseudo-header", MESSAGE, true, || vec![headers(&[OK, (":path", b"/")])]),
    ("unknown-pseudo-header", MESSAGE, true, || vec![headers(&[(":new", b""), OK])]),
    ("misplaced-pseudo-header", MESSAGE, true, || vec![headers(&[("x-a", b"b"), OK])]),
    ("uppercase-field-name", MESSAGE, true, || vec![headers(&[OK, ("X-a", b"b")])]),
    ("invalid-field-name", MESSAGE, true, || vec![headers(&[OK, ("", b"b")])]),
    ("invalid-field-name", MESSAGE, true, || vec![headers(&[OK, ("x a", b"b")])]),
    ("invalid-field-name", MESSAGE, true, || vec![headers(&[OK, ("x\u{e4}", b"b")])]),
    ("invalid-field-value", MESSAGE, true, || vec![headers(&[OK, ("x-a", b"b\r\nx-c: d")])]),
    ("invalid-field-value", MESSAGE, false, || vec![headers(&[OK, ("x-a", b"\0")])]),
    ("whitespace-around-field-value", MESSAGE, true, || vec![headers(&[OK, ("x-a", b" b")])]),
    ("connection-specific-field", MESSAGE, true, || vec![headers(&[OK, ("connection", b"close")])]),
    ("connection-specific-field", MESSAGE, true, || vec![headers(&[OK, ("transfer-encoding", b"chunked")])]),
    ("connection-specific-field", MESSAGE, true, || vec![headers(&[OK, ("keep-alive", b"5")])]),
    ("connection-specific-field", MESSAGE, true, || vec![headers(&[OK, ("upgrade", b"h2c")])]),
    ("connection-specific-field", MESSAGE, true, || {
        vec![headers(&[OK]), headers(&[("proxy-connection", b"close")])]
    }),
    ("invalid-content-length", MESSAGE, true, || vec![headers(&[OK, ("content-length", b"")])]),
    ("invalid-content-length", MESSAGE, true, || vec![headers(&[OK, ("content-length", b"+0")])]),
    ("conflicting-content-length", MESSAGE, false, || {
        vec![headers(&[OK, ("content-length", b"5"), ("content-length", b"6")])]
    }),
    ("header-list-too-large", LOAD, false, || {
        let value = [b'v'; 4000];
        let mut fields = vec![OK];
        fields.extend(std::iter::repeat_n(("x-large", &value[..]), 17));
        vec![headers(&fields)]
    }),
];

/// A malformed response fails its request alone: its stream is given up, its neighbours and the connection
/// go on.
#[test]
fn a_malformed_response_fails_its_request_alone() {
    let mut wrong = Vec::new();
    for (row, &(kind, code, end, frames)) in MALFORMED.iter().enumerate() {
        let server = Scripted::http3(move |h3| {
            h3.settings(&[]);
            let Some(asked) = h3.request() else { return };
            h3.send(asked.stream, &frames().concat(), end);
            h3.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(3, 20));
        let found = (errors(&m), m.requests.ok, m.connection.reopened, server.answered());
        if found != (vec![(kind.to_owned(), 1)], 19, 0, 19) || !server.closes().is_empty() {
            wrong.push(format!("row {row}, {kind}: {found:?}, {:?}", server.closes()));
        }
        // A stream that has ended needs no word any more.
        let stops = server.stops();
        if (!end && stops != [code]) || !stops.iter().all(|stop| *stop == code) {
            wrong.push(format!("row {row}, {kind}: STOP_SENDING with {stops:x?}"));
        }
        assert!(m.errors.iter().all(|error| error.phase == Phase::Framing), "{:?}", m.errors);
        assert_eq!(m.requests.interrupted, 0);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_body_in_answer_to_head_is_a_violation() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let Some(asked) = h3.request() else { return };
        h3.send(asked.stream, &[headers(&[OK]), data(b"Hello")].concat(), true);
        h3.always(&Answer::hello());
    });
    let mut plan = server.multiplexed(3, 20);
    plan.request.method = "HEAD".into();
    let m = finish(&server, &plan);
    assert_eq!(errors(&m), [("body-not-allowed".to_owned(), 1)]);
    assert_eq!((m.requests.ok, m.connection.reopened), (19, 0));
}

/// What still comes of a stream that was given up costs nothing.
#[test]
fn frames_that_cross_a_reset_are_ignored() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let Some(asked) = h3.request() else { return };
        h3.send(asked.stream, &headers(&[OK, OK]), false);
        for _ in 0..10 {
            h3.send(asked.stream, &data(&[0; 16_384]), false);
        }
        h3.send(asked.stream, &[0xff; 100], true);
        h3.always(&Answer::hello());
    });
    let m = finish(&server, &server.multiplexed(3, 20));
    assert_eq!(errors(&m), [("duplicate-status".to_owned(), 1)]);
    assert_eq!((m.requests.ok, m.connection.reopened), (19, 0));
}
