//! Well-formed answers in unusual shapes, early ones, and resets.

use bench::results::{Phase, Protocol};

use crate::common::answer::Answer;
use crate::common::frame::{self, Frame};
use crate::common::h2::H2;
use crate::common::hpack::{self, Encoder, Literal, Style};
use crate::common::{HTTP2, Scripted, base64, errors, finish};
use crate::{all_ok, owned, pattern, upload};

/// RFC 9113 §8.1: a server may answer before the whole request is here and then ask, by NO_ERROR, not to
/// send the rest.
#[test]
fn an_answer_before_the_end_of_an_upload_counts() {
    let body = pattern(2_000_000);
    for protocol in HTTP2 {
        for reset in [true, false] {
            let server = Scripted::http2(protocol, move |h2| {
                h2.settings(&[]);
                while let Some(asked) = h2.head() {
                    if !h2.respond(&asked, &Answer::hello()) {
                        return;
                    }
                    if reset {
                        h2.reset(asked.stream, frame::NO_ERROR);
                    }
                }
            });
            for concurrency in [1, 4] {
                let m = finish(&server, &upload(&server, concurrency, 20, &body));
                assert_eq!((m.requests.ok, m.requests.failed), (20, 0), "{protocol:?}: {:?}", m.errors);
                assert_eq!((m.connection.reopened, m.requests.interrupted), (0, 0), "{protocol:?}");
            }
            assert_eq!(server.answered(), 40);
        }
    }
}

#[test]
fn a_reset_fails_its_request_alone_and_has_a_name() {
    let names = [
        (0, "reset-no-error"),
        (1, "reset-protocol-error"),
        (2, "reset-internal-error"),
        (3, "reset-flow-control-error"),
        (4, "reset-settings-timeout"),
        (5, "reset-stream-closed"),
        (6, "reset-frame-size-error"),
        (8, "reset-cancel"),
        (9, "reset-compression-error"),
        (10, "reset-connect-error"),
        (11, "reset-enhance-your-calm"),
        (12, "reset-inadequate-security"),
        (13, "reset-http-1-1-required"),
        (14, "reset-unknown"),
        (u32::MAX, "reset-unknown"),
    ];
    for (code, name) in names {
        for begun in [false, true] {
            let server = Scripted::http2(Protocol::H2c, move |h2| {
                h2.settings(&[]);
                let Some(asked) = h2.request() else { return };
                if begun {
                    let block = h2.block(200, &[("content-length", "14")]);
                    h2.send(&[
                        Frame::headers(asked.stream, &block, false),
                        Frame::data(asked.stream, b"Hello", false),
                    ]);
                }
                h2.reset(asked.stream, code);
                h2.always(&Answer::hello());
            });
            let m = finish(&server, &server.multiplexed(4, 20));
            assert_eq!(errors(&m), [(name.to_owned(), 1)]);
            assert_eq!(m.errors[0].phase, Phase::Interrupted);
            assert_eq!((m.requests.ok, m.requests.failed, m.requests.interrupted), (19, 1, 1));
            assert_eq!((m.connection.reopened, m.requests.replayed, server.answered()), (0, 0, 19));
        }
    }
}

#[test]
fn a_ping_is_answered_with_the_same_bytes() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            while let Some(asked) = h2.request() {
                for payload in [[0; 8], *b"\x01\x02\x03\x04\x05\x06\x07\x08", [0xff; 8]] {
                    h2.send(&[Frame::ping(payload)]);
                }
                while h2.pings_due() > 0 {
                    if h2.next().is_none() {
                        return;
                    }
                }
                h2.respond(&asked, &Answer::hello());
            }
        });
        let m = finish(&server, &server.multiplexed(3, 20));
        all_ok(&m, &server, 20);
    }
}

/// Frames, flags, settings and bits that mean nothing to a client (RFC 9113 §4.1, §5.5, §6.3, §6.5.2).
#[test]
fn what_is_unknown_is_ignored() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[
                (0x2a2a, 7),
                (frame::MAX_HEADER_LIST_SIZE, 0),
                (frame::ENABLE_PUSH, 0),
                (0xffff, u32::MAX),
            ]);
            while let Some(asked) = h2.request() {
                let id = asked.stream;
                let block = h2.block(200, &[("content-length", "14")]);
                let reserved = |mut frame: Frame| {
                    frame.stream |= 0x8000_0000;
                    frame
                };
                h2.send(&[
                    Frame::priority(id),
                    Frame::priority(id + 100),
                    Frame::priority(2),
                    Frame::new(0x0a, 0xff, 0, b"altsvc"),
                    Frame::new(0x0b, 0xff, id, &[7; 16_384]),
                    Frame::new(0xfe, 0xff, id + 100, b""),
                    Frame::new(0x21, frame::END_STREAM, id, b"not the end"),
                    reserved(Frame::window_update(0, 1)).flags(0xff),
                    reserved(Frame::window_update(id, 0x8000_0001)),
                    reserved(Frame::headers(id, &block, false)).flags(frame::END_HEADERS | 0xd2),
                    Frame::new(0x10, frame::END_HEADERS, id, b"priority update"),
                    reserved(Frame::data(id, b"Hello, ", false)).flags(0xf6),
                    Frame::priority(id),
                    Frame::new(0xff, 0, 0, b""),
                    Frame::data(id, b"World!\n", true),
                    Frame::priority(id),
                    Frame::window_update(id, 1),
                    Frame::reset(id, frame::NO_ERROR),
                ]);
                h2.conn.count_answer();
                h2.ended(id);
            }
        });
        let mut plan = server.multiplexed(3, 30);
        plan.expect.body = Some(base64(b"Hello, World!\n"));
        let m = finish(&server, &plan);
        all_ok(&m, &server, 30);
    }
}

#[test]
fn padding_is_taken_off() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            while let Some(asked) = h2.request() {
                let id = asked.stream;
                let block = h2.block(200, &[("content-length", "14")]);
                let length = [0, 1, 255][id as usize / 2 % 3];
                h2.send(&[
                    Frame::headers(id, &block, false).prioritised().padded(length),
                    Frame::data(id, b"", false).padded(255),
                    Frame::data(id, b"Hello, ", false).padded(length),
                    Frame::data(id, b"World!\n", false).padded(0),
                    Frame::data(id, b"", true).padded(length),
                ]);
                h2.conn.count_answer();
                h2.ended(id);
            }
        });
        let mut plan = server.multiplexed(3, 30);
        plan.expect.body = Some(base64(b"Hello, World!\n"));
        let m = finish(&server, &plan);
        all_ok(&m, &server, 30);
        assert_eq!(m.transfer.body_bytes, 30 * 14);
    }
}

/// HEADERS with PADDED, PRIORITY and END_STREAM but not END_HEADERS: the stream ends with the last
/// CONTINUATION, and the compression state stays right for the next one.
#[test]
fn a_header_block_in_continuations() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            h2.encoder = Encoder::new(Style::Indexed);
            let mut turn = 0;
            while let Some(asked) = h2.request() {
                let id = asked.stream;
                // A size update stands in front, so that :status comes in the last frame.
                let mut block = Vec::new();
                hpack::size_update(4096, &mut block);
                let update = block.len();
                let fields = [(":status", "204"), ("x-turn", "same"), ("x-long", &"v".repeat(40))].map(owned);
                h2.encoder.encode(&fields, &mut block);
                let cut = |at: usize| (&block[..at.min(block.len())], &block[at.min(block.len())..]);
                let head = |fragment: &[u8]| {
                    Frame::new(frame::HEADERS, frame::END_STREAM, id, fragment).prioritised().padded(7)
                };
                turn += 1;
                let frames = match turn % 3 {
                    // Nothing but the update in front of the last frame.
                    0 => vec![
                        head(&block[..update]),
                        Frame::continuation(id, b"", false),
                        Frame::continuation(id, &block[update..], true),
                    ],
                    // A frame for each byte.
                    1 => {
                        let mut frames = vec![head(b"")];
                        frames.extend(block.chunks(1).map(|byte| Frame::continuation(id, byte, false)));
                        frames.push(Frame::continuation(id, b"", true));
                        frames
                    }
                    // Cut at every place in turn.
                    _ => {
                        let (first, second) = cut(turn / 3);
                        vec![head(first), Frame::continuation(id, second, true)]
                    }
                };
                h2.send(&frames);
                h2.conn.count_answer();
                h2.ended(id);
            }
        });
        let m = finish(&server, &server.multiplexed(3, 300));
        all_ok(&m, &server, 300);
        assert_eq!(m.statuses.get("204"), Some(&300));
    }
}

/// Every representation, a table that is filled, evicted from, resized and emptied, over many blocks:
/// a client that loses its place sees another status, or none.
#[test]
fn compressed_headers_stay_in_step() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            h2.encoder = Encoder::new(Style::Indexed);
            let mut turn = 0usize;
            while let Some(asked) = h2.request() {
                turn += 1;
                let status = ["200", "201", "299", "302"][turn % 4];
                let mut block = Vec::new();
                match turn % 10 {
                    3 => h2.encoder.resize([0, 64, 300, 4096][turn / 10 % 4], &mut block),
                    6 => {
                        h2.encoder.resize(0, &mut block);
                        h2.encoder.resize(4096, &mut block);
                    }
                    _ => (),
                }
                let mut fields = vec![owned((":status", status)), owned(("content-length", "0"))];
                for field in 0..turn % 7 {
                    fields.push((format!("x-{}", field * turn % 13), "v".repeat(turn * 37 % 200)));
                }
                h2.encoder.encode(&fields, &mut block);
                hpack::literal(Literal::Never, None, "x-never", b"secret", &mut block);
                hpack::literal(Literal::Plain, Some(55), "", b"a=b", &mut block);
                h2.send(&[Frame::headers(asked.stream, &block, true)]);
                h2.conn.count_answer();
                h2.ended(asked.stream);
            }
        });
        let m = finish(&server, &server.multiplexed(4, 1000));
        all_ok(&m, &server, 1000);
        let statuses: Vec<(&str, u64)> =
            m.statuses.iter().map(|(status, count)| (&status[..], *count)).collect();
        assert_eq!(statuses, [("200", 250), ("201", 250), ("299", 250), ("302", 250)]);
    }
}

/// The table that requests may use is the server's to size, at any time (RFC 9113 §4.3.1); what they
/// say is decoded and compared.
#[test]
fn requests_keep_to_the_servers_header_table() {
    for protocol in HTTP2 {
        for sizes in [&[0][..], &[1], &[100], &[4096], &[65_536], &[4096, 0, 4096], &[50, 200, 0, 10_000]] {
            let server = Scripted::http2(protocol, move |h2| {
                let mut sizes = sizes.iter().cycle();
                let mut say = |h2: &mut H2<'_>| {
                    let size = *sizes.next().expect("it goes round");
                    h2.settings(&[(frame::HEADER_TABLE_SIZE, size)]);
                };
                say(h2);
                let mut turn = 0;
                while let Some(asked) = h2.request() {
                    assert_eq!((&asked.method[..], &asked.path[..]), ("GET", "/a-path"));
                    assert_eq!(
                        asked.headers,
                        [owned(("x-one", "a value of some length")), owned(("x-two", "2"))]
                    );
                    turn += 1;
                    if turn % 5 == 0 {
                        say(h2);
                    }
                    h2.respond(&asked, &Answer::hello());
                }
            });
            let mut plan = server.multiplexed(3, 60);
            plan.target.path = "/a-path".into();
            plan.request.headers = vec![owned(("X-One", "a value of some length")), owned(("x-two", "2"))];
            let m = finish(&server, &plan);
            all_ok(&m, &server, 60);
        }
    }
}

#[test]
fn trailers_with_a_length_and_over_frames() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            while let Some(asked) = h2.request() {
                let id = asked.stream;
                let head = h2.block(200, &[("content-length", "14"), ("trailer", "x-sum")]);
                let mut trailers = Vec::new();
                h2.encoder.encode(&[owned(("x-sum", "1")), owned(("x-more", "2"))], &mut trailers);
                let (first, second) = trailers.split_at(5);
                h2.send(&[
                    Frame::headers(id, &head, false),
                    Frame::data(id, b"Hello, World!\n", false),
                    Frame::new(frame::HEADERS, frame::END_STREAM, id, first),
                    Frame::continuation(id, second, true),
                ]);
                h2.conn.count_answer();
                h2.ended(id);
            }
        });
        let m = finish(&server, &server.multiplexed(3, 30));
        all_ok(&m, &server, 30);
    }
}

/// 1xx responses in any number, each in several frames, between frames of other streams.
#[test]
fn interim_responses_of_many_streams_interleaved() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            while let Some(four) = h2.requests(4) {
                let hints = h2.block(103, &[("link", "</style.css>; rel=preload")]);
                let (first, second) = hints.split_at(3);
                let mut frames = Vec::new();
                for _ in 0..3 {
                    for asked in &four {
                        frames.push(Frame::new(frame::HEADERS, 0, asked.stream, first));
                        frames.push(Frame::continuation(asked.stream, second, true));
                    }
                }
                h2.send(&frames);
                for asked in four.iter().rev() {
                    h2.respond(asked, &Answer::hello());
                }
            }
        });
        let m = finish(&server, &server.multiplexed(4, 40));
        all_ok(&m, &server, 40);
        assert_eq!((m.interim_responses, m.statuses.get("200")), (120, Some(&40)));
    }
}
