//! Well-formed answers in unusual shapes, early ones, and resets.

use bench::results::Phase;

use crate::common::answer::Answer;
use crate::common::books::{all_ok, pattern, upload};
use crate::common::h3::H3;
use crate::common::h3::endpoint::Options;
use crate::common::h3::wire::{self, reserved};
use crate::common::{Scripted, base64, errors, finish, hpack};
use crate::{OK, hello_frames, send_answer};

/// Reserved settings, frames and streams mean nothing, wherever they stand (RFC 9114 §6.2.3, §7.2.8, §9).
#[test]
fn what_is_reserved_is_ignored() {
    let server = Scripted::http3(|h3| {
        let mut control = wire::varints(&[wire::CONTROL]);
        control.extend(wire::settings(&[(reserved(0), 0), (reserved(9), u64::MAX >> 2), (0x7777, 1)]));
        control.extend(wire::frame(reserved(4), b"on the control stream"));
        h3.open_control(&control);
        h3.uni(&wire::varints(&[wire::ENCODER]), false);
        h3.uni(&wire::varints(&[wire::DECODER]), false);
        // A stream of a reserved type that ends in its first packet, one with content, one that stays
        // open, one whose type is cut off, and one without any.
        h3.uni(&wire::varints(&[reserved(1)]), true);
        h3.uni(&wire::varints(&[reserved(70_000), 1, 2, 3]), true);
        h3.uni(&wire::varints(&[reserved(2)]), false);
        h3.uni(&[0x40], true);
        h3.uni(&[], true);
        let mut turn = 0;
        while let Some(asked) = h3.request() {
            turn += 1;
            let [head, body] = hello_frames();
            let answer = [
                wire::frame(reserved(turn), b"in front of HEADERS"),
                wire::frame(reserved(0), b""),
                head,
                wire::frame(reserved(1 << 40), &[7; 3000]),
                body,
                wire::frame(0xf0_0d, b"unknown"),
                wire::frame(reserved(3), b"just before the end"),
            ];
            send_answer(h3, asked.stream, &answer.concat());
            h3.control(&wire::frame(reserved(turn), &[0; 100]));
            h3.uni(&wire::varints(&[reserved(turn)]), true);
        }
    });
    let mut plan = server.multiplexed(3, 100);
    plan.expect.body = Some(base64(b"Hello, World!\n"));
    let m = finish(&server, &plan);
    all_ok(&m, &server, 100);
}

/// Every integer of a frame may be written in more bytes than it needs (RFC 9000 §16).
#[test]
fn integers_in_any_length() {
    let long = |value: u64| (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec();
    let server = Scripted::http3(move |h3| {
        let payload = [long(reserved(0)), long(5)].concat();
        let settings = [long(wire::SETTINGS), long(payload.len() as u64), payload];
        h3.open_control(&[long(wire::CONTROL), settings.concat()].concat());
        h3.uni(&long(wire::ENCODER), false);
        h3.uni(&[0x40, wire::DECODER as u8], false);
        while let Some(asked) = h3.request() {
            let section = wire::section(&[OK]);
            let answer = [
                long(wire::HEADERS),
                long(section.len() as u64),
                section,
                vec![0x40, 0x00, 0x80, 0, 0, 14],
                b"Hello, World!\n".to_vec(),
            ];
            send_answer(h3, asked.stream, &answer.concat());
        }
    });
    let m = finish(&server, &server.multiplexed(3, 30));
    all_ok(&m, &server, 30);
    assert_eq!(m.transfer.body_bytes, 30 * 14);
}

/// Bodies of one frame, of many, of empty ones, and with trailers behind a length.
#[test]
fn bodies_in_any_frames() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let body = pattern(300_000);
        let mut turn = 0;
        while let Some(asked) = h3.request() {
            turn += 1;
            let mut answer = wire::headers(&[OK, ("content-length", b"300000")]);
            for piece in body.chunks([300_000, 16_384, 1000, 64][turn % 4]) {
                answer.extend(wire::data(piece));
                if turn.is_multiple_of(3) {
                    answer.extend(wire::data(b""));
                }
            }
            if turn.is_multiple_of(2) {
                answer.extend(wire::headers(&[("x-sum", b"1"), ("x-more", b"")]));
            }
            send_answer(h3, asked.stream, &answer);
        }
    });
    let mut plan = server.multiplexed(3, 24);
    plan.expect.body = Some(base64(&pattern(300_000)));
    let m = finish(&server, &plan);
    all_ok(&m, &server, 24);
}

/// Field sections of an encoder of other people's, Huffman codes and all.
#[test]
fn sections_of_a_foreign_encoder() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let mut turn = 0usize;
        while let Some(asked) = h3.request() {
            turn += 1;
            let status = ["200", "201", "299", "302"][turn % 4];
            let mut fields = vec![qpack::HeaderField::new(":status", status)];
            fields.push(qpack::HeaderField::new("content-length", "0"));
            for field in 0..turn % 7 {
                let name = format!("x-{}", field * turn % 13);
                fields.push(qpack::HeaderField::new(
                    name,
                    "v!\u{7}".repeat(turn * 37 % 200).trim_matches('\u{7}'),
                ));
            }
            fields.retain(|field| !field.value.contains(&7));
            fields.push(qpack::HeaderField::new("server", "scripted / 1.0 (~)"));
            let mut section = Vec::new();
            qpack::encode_stateless(&mut section, fields).expect("it can be encoded");
            send_answer(h3, asked.stream, &wire::frame(wire::HEADERS, &section));
        }
    });
    let m = finish(&server, &server.multiplexed(4, 400));
    all_ok(&m, &server, 400);
    let statuses: Vec<(&str, u64)> = m.statuses.iter().map(|(status, count)| (&status[..], *count)).collect();
    assert_eq!(statuses, [("200", 100), ("201", 100), ("299", 100), ("302", 100)]);
}

/// A set capacity of 0 and a cancelled stream change nothing (RFC 9204 §4.3.1, §4.4.2).
#[test]
fn instructions_that_change_nothing() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[(wire::QPACK_MAX_TABLE_CAPACITY, 4096), (wire::QPACK_BLOCKED_STREAMS, 100)]);
        while let Some(asked) = h3.request() {
            // The encoder's stream is the first one, the decoder's the second.
            h3.uni_send(0, &[0x20], false);
            let mut cancelled = Vec::new();
            hpack::integer(0x40, 6, asked.stream as usize, &mut cancelled);
            h3.uni_send(1, &cancelled, false);
            h3.respond(&asked, &Answer::hello());
        }
    });
    let m = finish(&server, &server.multiplexed(3, 60));
    all_ok(&m, &server, 60);
}

/// RFC 9114 §4.1.1: a server may answer before the whole request is here and then ask, by H3_NO_ERROR, not
/// to send the rest.
#[test]
fn an_answer_before_the_end_of_an_upload_counts() {
    let body = pattern(2_000_000);
    for stop in [true, false] {
        let server = Scripted::http3(move |h3| {
            h3.settings(&[]);
            while let Some(asked) = h3.head() {
                if !h3.respond(&asked, &Answer::hello()) {
                    return;
                }
                if stop {
                    h3.stop(asked.stream, wire::H3_NO_ERROR);
                }
            }
        });
        for concurrency in [1, 4] {
            let m = finish(&server, &upload(&server, concurrency, 20, &body));
            assert_eq!((m.requests.ok, m.requests.failed), (20, 0), "{stop}: {:?}", m.errors);
            assert_eq!((m.connection.reopened, m.requests.interrupted), (0, 0), "{stop}");
        }
        assert_eq!(server.answered(), 40);
    }
}

#[test]
fn a_reset_fails_its_request_alone_and_has_a_name() {
    let names = [
        (wire::H3_NO_ERROR, "reset-no-error"),
        (wire::H3_GENERAL_PROTOCOL_ERROR, "reset-general-protocol-error"),
        (wire::H3_INTERNAL_ERROR, "reset-internal-error"),
        (wire::H3_STREAM_CREATION_ERROR, "reset-stream-creation-error"),
        (wire::H3_CLOSED_CRITICAL_STREAM, "reset-closed-critical-stream"),
        (wire::H3_FRAME_UNEXPECTED, "reset-frame-unexpected"),
        (wire::H3_FRAME_ERROR, "reset-frame-error"),
        (wire::H3_EXCESSIVE_LOAD, "reset-excessive-load"),
        (wire::H3_ID_ERROR, "reset-id-error"),
        (wire::H3_SETTINGS_ERROR, "reset-settings-error"),
        (wire::H3_MISSING_SETTINGS, "reset-missing-settings"),
        (wire::H3_REQUEST_CANCELLED, "reset-request-cancelled"),
        (wire::H3_REQUEST_INCOMPLETE, "reset-request-incomplete"),
        (wire::H3_MESSAGE_ERROR, "reset-message-error"),
        (wire::H3_CONNECT_ERROR, "reset-connect-error"),
        (wire::H3_VERSION_FALLBACK, "reset-version-fallback"),
        (wire::QPACK_DECOMPRESSION_FAILED, "reset-qpack-decompression-failed"),
        (reserved(11), "reset-unknown"),
        ((1 << 62) - 1, "reset-unknown"),
    ];
    for (code, name) in names {
        for begun in [false, true] {
            let server = Scripted::http3(move |h3| {
                h3.settings(&[]);
                let Some(asked) = h3.request() else { return };
                if begun {
                    let answer = [wire::headers(&[OK]), wire::data(b"Hello")].concat();
                    h3.send(asked.stream, &answer, false);
                }
                h3.reset(asked.stream, code);
                h3.always(&Answer::hello());
            });
            let m = finish(&server, &server.multiplexed(4, 20));
            assert_eq!(errors(&m), [(name.to_owned(), 1)]);
            assert_eq!(m.errors[0].phase, Phase::Interrupted);
            assert_eq!((m.requests.ok, m.requests.failed, m.requests.interrupted), (19, 1, 1), "{name}");
            assert_eq!((m.connection.reopened, m.requests.replayed, server.answered()), (0, 0, 19), "{name}");
        }
    }
}

/// STOP_SENDING with any code is no end of the response (RFC 9114 §4.1.1).
#[test]
fn a_stopped_request_is_answered_all_the_same() {
    let body = pattern(500_000);
    for code in [wire::H3_INTERNAL_ERROR, wire::H3_REQUEST_CANCELLED] {
        let options = Options { stream_window: 10_000, ..Options::default() };
        let server = Scripted::quic(&options, move |h3| {
            h3.settings(&[]);
            let mut stopped = 0;
            while let Some(asked) = h3.head() {
                h3.stop(asked.stream, code);
                stopped += 1;
                // It is answered with a reset (RFC 9000 §3.5), which a probe timeout sends once more. A task of its own
                // stops the stream, so that more may have been said and seen before it is.
                let reset = |h3: &mut H3| h3.quic.stats().frame_rx.reset_stream >= stopped;
                assert!((0..10_000).any(|_| !h3.settle() || reset(h3)) && reset(h3), "it is never reset");
                h3.respond(&asked, &Answer::hello());
            }
        });
        let m = finish(&server, &upload(&server, 3, 12, &body));
        all_ok(&m, &server, 12);
        assert!(m.transfer.sent_bytes < 12 * 500_000, "{:?}", m.transfer);
    }
}
