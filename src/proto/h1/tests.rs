//! Responses, good and bad, as tables: a stream and what is to be said of it, however it is cut.
//!
//! What a reader said is written in one line: `103` an interim response, `200 length 5 keep` a head
//! with its framing and whether the connection is kept, a quoted body, `end`; and last what the
//! close that follows means: `idle` (nothing outstanding, or nothing came), `complete`, or the kind
//! of a violation after `!`, which may also end the stream before.

use std::fmt::Write as _;

use proptest::{collection::vec, prelude::*};

use crate::proto::exchange::Transcript;

use super::{
    Event, Framing, Head, HeadMemo, MAX_HEAD, MAX_INTERIM, Reader, Version, Violation, chunked,
    fuzz::{Reading, Said},
    head::MAX_MEMO,
};

const GET: Reading = Reading { head_request: false, requests: 1 };
const HEAD: Reading = Reading { head_request: true, requests: 1 };

#[test]
fn lengths() {
    check(&[
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello", "200 length 5 keep, 'Hello', end, idle"),
        ("HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nHello", "200 length 5 keep, 'Hello', end, idle"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 length 0 keep, end, idle"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", "404 length 1 keep, 'x', end, idle"),
        ("HTTP/1.1 999 \r\nContent-Length: 1\r\n\r\nx", "999 length 1 keep, 'x', end, idle"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0005\r\n\r\nHello", "200 length 5 keep, 'Hello', end, idle"),
        // RFC 9110 §8.6: the same value several times.
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "200 length 2 keep, 'ok', end, idle"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2 ,\t02\r\n\r\nok", "200 length 2 keep, 'ok', end, idle"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\ncontent-length: 2\r\n\r\nok",
            "200 length 2 keep, 'ok', end, idle",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok", "!conflicting-content-length"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
            "!conflicting-content-length",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2,\r\n\r\n", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2 2\r\n\r\nok", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: ,2\r\n\r\nok", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2,,2\r\n\r\nok", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", "!invalid-content-length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2.0\r\n\r\nok", "!invalid-content-length"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nx",
            "200 length 18446744073709551615 keep, 'x', !truncated-body",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "!content-length-overflow"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", "!content-length-overflow"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHell", "200 length 5 keep, 'Hell', !truncated-body"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 length 5 keep, !truncated-body"),
        // What is too much answers no request; the response itself stands.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello!",
            "200 length 5 keep, 'Hello', end, !unsolicited-bytes",
        ),
        // RFC 9110 §15.3.6: a 205 is framed like any other.
        ("HTTP/1.1 205 \r\nContent-Length: 0\r\n\r\n", "205 length 0 keep, end, idle"),
    ]);
}

#[test]
fn bodiless_whatever_their_fields_say() {
    check(&[
        ("HTTP/1.1 204 No Content\r\n\r\n", "204 length 0 keep, end, idle"),
        ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "204 length 0 keep, end, idle"),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "304 length 0 keep, end, idle"),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9, 10\r\n\r\n", "304 length 0 keep, end, idle"),
        ("HTTP/1.0 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", "304 length 0 close, end, idle"),
        ("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "204 length 0 close, end, idle"),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "204 length 0 keep, end, !unsolicited-bytes",
        ),
    ]);
    check_as(
        HEAD,
        &[
            ("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "200 length 0 keep, end, idle"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 length 0 keep, end, idle"),
            ("HTTP/1.1 200 OK\r\n\r\n", "200 length 0 keep, end, idle"),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "200 length 0 keep, end, idle"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "200 length 0 keep, end, !unsolicited-bytes"),
            (
                "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n",
                "103, 200 length 0 keep, end, idle",
            ),
        ],
    );
}

#[test]
fn interim_responses() {
    check(&[
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "100, 200 length 2 keep, 'ok', end, idle",
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "103, 103, 200 length 2 keep, 'ok', end, idle",
        ),
        // Their framing fields mean nothing, a close neither.
        (
            "HTTP/1.1 199 \r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
             HTTP/1.1 204 \r\n\r\n",
            "199, 204 length 0 keep, end, idle",
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", "100, !truncated-head"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 2", "100, !truncated-head"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "!switching-protocols"),
        ("HTTP/1.1 100 Continue\r\nno colon\r\n\r\n", "!missing-colon"),
    ]);
}

#[test]
fn endless_interim_responses() {
    let mut reader = Reader::new();
    reader.begin(false);
    let mut memo = HeadMemo::default();
    for _ in 0..MAX_INTERIM {
        let event = reader.next(&mut memo, &mut &b"HTTP/1.1 103 Early Hints\r\n\r\n"[..]);
        assert_eq!(event, Ok(Event::Interim(103)));
    }
    let event = reader.next(&mut memo, &mut &b"HTTP/1.1 103 Early Hints\r\n\r\n"[..]);
    assert_eq!(event, Err(Violation::TooManyInterim));
    assert_eq!(reader.close(), Err(Violation::TooManyInterim));
}

#[test]
fn until_close() {
    check(&[
        ("HTTP/1.1 200 OK\r\n\r\nHello", "200 until-close close, 'Hello', complete"),
        ("HTTP/1.1 200 OK\r\n\r\n", "200 until-close close, complete"),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nx", "200 until-close close, 'x', complete"),
        // RFC 9112 §6.3: chunked is not the final coding, so the close ends the body.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "200 until-close close, 'x', complete"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx", "200 until-close close, 'x', complete"),
    ]);
}

#[test]
fn transfer_codings() {
    check(&[
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", "200 chunked keep, end, idle"),
        (
            "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: gzip, chunked\r\n\r\n0\r\n\r\n",
            "200 chunked keep, end, idle",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: ,chunked,\r\n\r\n0\r\n\r\n",
            "200 chunked keep, end, idle",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "!invalid-transfer-encoding"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "!invalid-transfer-encoding"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "!invalid-transfer-encoding",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", "!invalid-transfer-encoding"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked x\r\n\r\n", "!invalid-transfer-encoding"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", "!invalid-transfer-encoding"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n", "!invalid-transfer-encoding"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nx", "200 until-close close, 'x', complete"),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "!transfer-encoding-in-http10"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            "!conflicting-framing",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n", "!conflicting-framing"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "!conflicting-framing",
        ),
    ]);
}

#[test]
fn persistence() {
    let table = [
        ("1.1", "", "keep"),
        ("1.1", "Connection: keep-alive\r\n", "keep"),
        ("1.1", "Connection: close\r\n", "close"),
        ("1.1", "connection: CLOSE\r\n", "close"),
        ("1.1", "Connection: upgrade, Close\r\n", "close"),
        ("1.1", "Connection: ,\t,close\t,\r\n", "close"),
        ("1.1", "Connection: x\r\nConnection: close\r\n", "close"),
        ("1.1", "Connection: keep-alive, close\r\n", "close"),
        ("1.1", "Connection: closed\r\n", "keep"),
        ("1.1", "Connection: \"close\"\r\n", "keep"),
        ("1.1", "Proxy-Connection: close\r\n", "keep"),
        ("1.0", "", "close"),
        ("1.0", "Connection: Keep-Alive\r\n", "keep"),
        ("1.0", "Connection: x, keep-alive\r\n", "keep"),
        ("1.0", "Connection: close, keep-alive\r\n", "close"),
        ("1.2", "", "keep"),
        ("1.9", "Connection: close\r\n", "close"),
    ];
    for (version, field, kept) in table {
        let stream = format!("HTTP/{version} 200 OK\r\n{field}Content-Length: 2\r\n\r\nok");
        check(&[(&stream, &format!("200 length 2 {kept}, 'ok', end, idle"))]);
    }
}

#[test]
fn versions() {
    for (minor, version) in
        [(0, Version::Http10), (1, Version::Http11), (2, Version::Http11), (9, Version::Http11)]
    {
        let stream = format!("HTTP/1.{minor} 200 OK\r\nContent-Length: 0\r\n\r\n");
        let Some(Said::Head(head)) = GET.transcript([stream.as_bytes()], None).into_iter().next() else {
            panic!("{stream:?} starts with a head")
        };
        assert_eq!(head.version, version);
    }
}

#[test]
fn status_lines() {
    check(&[
        ("HTTP/1.1 204\r\n\r\n", "204 length 0 keep, end, idle"),
        ("HTTP/1.1 204 \r\n\r\n", "204 length 0 keep, end, idle"),
        ("HTTP/1.1 204 \tn\u{e9}ant  \r\n\r\n", "204 length 0 keep, end, idle"),
        ("HTTP/1.1 20\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 2040 x\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 204x\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 2x4 OK\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1  204 OK\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 099 OK\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 000 OK\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 -20 OK\r\n\r\n", "!invalid-status"),
        ("HTTP/1.1 \r\n\r\n", "!invalid-status"),
        ("HTTP/1.1\r\n\r\n", "!malformed-status-line"),
        ("HTTP/1.1\t200 OK\r\n\r\n", "!malformed-status-line"),
        ("HTTP/1.11 200 OK\r\n\r\n", "!malformed-status-line"),
        ("HTTP/1. 200 OK\r\n\r\n", "!unsupported-version"),
        ("HTTP/2.0 200 OK\r\n\r\n", "!unsupported-version"),
        ("HTTP/2 200 OK\r\n\r\n", "!unsupported-version"),
        ("HTTP/0.9 200 OK\r\n\r\n", "!unsupported-version"),
        ("HTTP/\r\n\r\n", "!unsupported-version"),
        ("HTTP/1.1 200 O\0K\r\n\r\n", "!stray-control-character"),
        ("HTTP/1.1 200 O\rK\r\n\r\n", "!stray-control-character"),
        // These are refused without waiting for a line end.
        ("http/1.1 200 OK", "!not-http"),
        ("\u{15}\u{3}\u{1}\0\u{2}", "!not-http"),
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", "!not-http"),
        ("<html>", "!not-http"),
        ("HTML", "!not-http"),
        ("HT\r\n", "!not-http"),
        // An empty line in front answers nothing, as does one after the end.
        ("\r\nHTTP/1.1 204 \r\n\r\n", "!unsolicited-bytes"),
        ("\nHTTP/1.1 204 \r\n\r\n", "!unsolicited-bytes"),
        ("HTTP/1.1 204 \r\n\r\n\r\n", "204 length 0 keep, end, !unsolicited-bytes"),
    ]);
}

#[test]
fn field_lines() {
    // (field lines of a head, what is said when it is not the head of a 204 that is kept)
    check_fields(&[
        ("Server: x\r\nDate:\r\n", None),
        ("X: \t padded \t\r\n", None),
        ("X: \u{1}\u{7f}\u{e9}\r\n", None),
        // RFC 9112 §2.2: LF alone may end a line.
        ("A: b\nC: d\n", None),
        // RFC 9112 §5.2: line folding.
        ("A: b\r\n c\r\n\td\r\nE: f\r\n", None),
        ("A: b\r\n \r\n", None),
        ("A: b\n c: d\n", None),
        ("Connection: close,\r\n x\r\n", Some("!folded-framing-field")),
        ("Content-Length: 1\r\n 2\r\n", Some("!folded-framing-field")),
        ("Transfer-Encoding: gzip,\r\n\tchunked\r\n", Some("!folded-framing-field")),
        (" A: b\r\n", Some("!leading-whitespace")),
        ("\tA: b\r\n", Some("!leading-whitespace")),
        ("A : b\r\n", Some("!whitespace-before-colon")),
        ("Content-Length : 1\r\n", Some("!whitespace-before-colon")),
        (": b\r\n", Some("!empty-field-name")),
        ("A\r\n", Some("!missing-colon")),
        ("A B: c\r\n", Some("!invalid-field-name")),
        ("A\u{e9}: c\r\n", Some("!invalid-field-name")),
        ("A: \0\r\n", Some("!stray-control-character")),
        ("A: b\rc\r\n", Some("!stray-control-character")),
        ("A: b\r\r\n", Some("!stray-control-character")),
        ("A\0: b\r\n", Some("!stray-control-character")),
        ("A: b\r\n \0\r\n", Some("!stray-control-character")),
        // The first fault is the one named.
        ("A : b\r\nC\r\n", Some("!whitespace-before-colon")),
    ]);
}

#[test]
fn chunked_bodies() {
    check_chunked(&[
        // (what follows the head, what is said after it)
        ("5\r\nHello\r\n0\r\n\r\n", "'Hello', end, idle"),
        ("5\r\nHello\r\n2\r\n, \r\n6\r\nworld!\r\n0\r\n\r\n", "'Hello, world!', end, idle"),
        ("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "'01234567890123456789', end, idle"),
        ("00000005\r\nHello\r\n0000000000000000\r\n\r\n", "'Hello', end, idle"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "'\r\n', end, idle"),
        ("0\r\n\r\nx", "end, !unsolicited-bytes"),
        ("0\r\n\r\n\r\n", "end, !unsolicited-bytes"),
        ("", "!truncated-chunks"),
        ("5", "!truncated-chunks"),
        ("5\r\n", "!truncated-chunks"),
        ("5\r\nHel", "'Hel', !truncated-chunks"),
        ("5\r\nHello", "'Hello', !truncated-chunks"),
        ("5\r\nHello\r\n", "'Hello', !truncated-chunks"),
        ("0\r\n", "!truncated-chunks"),
        ("0\r\nA: b\r\n", "!truncated-chunks"),
        ("ffffffffffffffff\r\nx", "'x', !truncated-chunks"),
        ("10000000000000000\r\n", "!chunk-size-too-long"),
        ("00000000000000005\r\nHello", "!chunk-size-too-long"),
        ("\r\n", "!invalid-chunk-size"),
        (";a\r\n", "!invalid-chunk-size"),
        (" 5\r\n", "!invalid-chunk-size"),
        ("-5\r\n", "!invalid-chunk-size"),
        ("0x5\r\n", "!invalid-chunk-size"),
        ("g\r\n", "!invalid-chunk-size"),
        ("5g\r\n", "!invalid-chunk-size"),
        ("HTTP/1.1 200 OK\r\n", "!invalid-chunk-size"),
        ("5\nHello\r\n0\r\n\r\n", "!bare-line-feed"),
        ("5\r\nHello\n0\r\n\r\n", "'Hello', !bare-line-feed"),
        ("5;a\nHello", "!bare-line-feed"),
        ("0\r\n\n", "!bare-line-feed"),
        ("5\rHello", "!stray-control-character"),
        ("5;a=\"\0\"\r\n", "!stray-control-character"),
        ("5\r\nHello, world!\r\n", "'Hello', !missing-chunk-end"),
        ("5\r\nHello\rx", "'Hello', !missing-chunk-end"),
    ]);
}

#[test]
fn chunk_extensions() {
    let good = [
        ";a",
        ";a=b",
        ";a=\"b\"",
        ";a=\"\"",
        ";a;b=c;d=\"e\"",
        " ; \ta \t= b\t;c",
        " ;a= \"b\" ;c",
        ";a=\";\t\\\"\\\\,\u{e9}\";b",
        ";!#$%&'*+-.^_`|~=0",
    ];
    for extension in good {
        check_chunked(&[(&format!("5{extension}\r\nHello\r\n0{extension}\r\n\r\n"), "'Hello', end, idle")]);
    }
    let bad = [
        " ",
        ";",
        "; ",
        ";;",
        ";=b",
        ";a=",
        ";a=;",
        ";a b",
        ";a=b c",
        ";a=b=c",
        ";a=\"b",
        ";a=\"b\\",
        ";a=\"b\"c",
        ";a=(",
        ";a =",
        " 5",
        ";a ",
        ";a=b ",
        ";\u{e9}",
        ";a=\"\u{1}\"",
        ";a=\"\\\u{1}\"",
        ";a=\"\u{7f}\"",
    ];
    for extension in bad {
        check_chunked(&[(&format!("5{extension}\r\nHello\r\n0\r\n\r\n"), "!invalid-chunk-extension")]);
    }
}

#[test]
fn a_chunk_line_is_bounded() {
    let longest = format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(usize::from(chunked::MAX_LINE) - 3));
    assert_eq!(notation(&GET.transcript([CHUNKED, longest.as_bytes()], None)[1..]), "'x', end, idle");
    let longer = longest.replacen(';', ";b", 1);
    assert_eq!(notation(&GET.transcript([CHUNKED, longer.as_bytes()], None)[1..]), "!chunk-line-too-long");
}

#[test]
fn trailers() {
    check_chunked(&[
        ("0\r\nA: b\r\n\r\n", "end, idle"),
        ("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\td\r\n\r\n", "'x', end, idle"),
        // Fields that would frame a head mean nothing here.
        ("0\r\nContent-Length: x\r\n 1\r\nTransfer-Encoding: y\r\nConnection: close\r\n\r\n", "end, idle"),
        ("0\r\n A: b\r\n\r\n", "!leading-whitespace"),
        ("0\r\nA : b\r\n\r\n", "!whitespace-before-colon"),
        ("0\r\nHTTP/1.1 200 OK\r\n\r\n", "!missing-colon"),
        ("0\r\nA: \0\r\n\r\n", "!stray-control-character"),
        ("0\r\nA: b\n\r\n", "!bare-line-feed"),
        ("0\r\nA: b\r\n\n", "!bare-line-feed"),
        ("0\r\nA: b\r\n\r\nx", "end, !unsolicited-bytes"),
    ]);
}

/// The example of RFC 9110 §3.9, and that of RFC 8297 §2 with a shorter body.
#[test]
fn examples_of_the_rfcs() {
    check(&[
        (
            "HTTP/1.1 200 OK\r\nDate: Mon, 27 Jul 2009 12:28:53 GMT\r\nServer: Apache\r\n\
             Last-Modified: Wed, 22 Jul 2009 19:15:56 GMT\r\nETag: \"34aa387-d-1568eb00\"\r\n\
             Accept-Ranges: bytes\r\nContent-Length: 51\r\nVary: Accept-Encoding\r\n\
             Content-Type: text/plain\r\n\r\nHello World! My content includes a trailing CRLF.\r\n",
            "200 length 51 keep, 'Hello World! My content includes a trailing CRLF.\r\n', end, idle",
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\
             Link: </script.js>; rel=preload; as=script\r\n\r\n\
             HTTP/1.1 200 OK\r\nDate: Fri, 26 May 2017 10:02:11 GMT\r\nContent-Length: 15\r\n\
             Content-Type: text/html; charset=utf-8\r\nLink: </style.css>; rel=preload; as=style\r\n\
             Link: </script.js>; rel=preload; as=script\r\n\r\n<!doctype html>",
            "103, 200 length 15 keep, '<!doctype html>', end, idle",
        ),
    ]);
}

/// The fields that servers under test send today.
#[test]
fn heads_of_real_servers() {
    check(&[
        (
            "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\n\
             Content-Type: text/plain\r\nContent-Length: 14\r\nConnection: keep-alive\r\n\r\nHello, World!\n",
            "200 length 14 keep, 'Hello, World!\n', end, idle",
        ),
        (
            "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\nConnection: keep-alive\r\n\
             Keep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n\r\ne\r\nHello, World!\n\r\n0\r\n\r\n",
            "200 chunked keep, 'Hello, World!\n', end, idle",
        ),
        (
            "HTTP/1.0 200 OK\r\nServer: SimpleHTTP/0.6 Python/3.11.2\r\nContent-Length: 3\r\n\r\nabc",
            "200 length 3 close, 'abc', end, idle",
        ),
    ]);
}

#[test]
fn nothing_came() {
    assert_eq!(notation(&GET.transcript([], None)), "idle");
    assert_eq!(notation(&GET.transcript([&b""[..], b""], None)), "idle");
    let unasked = Reading { requests: 0, ..GET };
    assert_eq!(notation(&unasked.transcript([], None)), "idle");
    check_as(unasked, &[("HTTP/1.1 408 Request Timeout\r\n\r\n", "!unsolicited-bytes")]);
    check(&[("HTTP/1.1 200 OK\r\nContent-Le", "!truncated-head"), ("H", "!truncated-head")]);
}

#[test]
fn a_connection_carries_many_responses() {
    let three = Reading { requests: 3, ..GET };
    let once = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let other = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let (said_once, said_other) = ("200 length 2 keep, 'ok', end", "200 chunked keep, 'ok', end");
    check_as(
        three,
        &[
            (&[once, once, once].concat(), &format!("{said_once}, {said_once}, {said_once}, idle")),
            (&[once, other, once].concat(), &format!("{said_once}, {said_other}, {said_once}, idle")),
            (
                &[once, once, once, once].concat(),
                &format!("{said_once}, {said_once}, {said_once}, !unsolicited-bytes"),
            ),
        ],
    );
}

#[test]
fn the_memo_is_keyed_on_the_method_and_the_whole_block() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let mut memo = HeadMemo::default();
    let mut said =
        |reading: Reading, stream: &str| notation(&reading.transcript([stream.as_bytes()], Some(&mut memo)));
    assert_eq!(said(GET, &format!("{head}ok")), "200 length 2 keep, 'ok', end, idle");
    assert_eq!(said(HEAD, head), "200 length 0 keep, end, idle");
    assert_eq!(said(GET, &format!("{head}ok")), "200 length 2 keep, 'ok', end, idle");
    // A block is known by its blank line too: one more field is another block.
    let longer = head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\nok");
    assert_eq!(said(GET, &longer), "200 length 2 close, 'ok', end, idle");
}

/// The last head in words, wherever it is cut, behind interim ones and in place of an earlier one.
#[test]
fn a_head_is_transcribed() {
    let stream = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
        HTTP/1.1 404 Not Found\r\nServer:  x \r\nContent-Length: 2\r\nX-Long: one\r\n \t two\r\nVary:\r\n\r\nno";
    let texts = [("Server", "x"), ("Content-Length", "2"), ("X-Long", "one two"), ("Vary", "")];
    let fields = texts.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).to_vec();
    let expected = Transcript { status: 404, fields };
    let mut memo = HeadMemo::default();
    memo.transcribe();
    assert_eq!(memo.transcript(), None);
    for cut in 1..stream.len() {
        let mut reader = Reader::new();
        reader.begin(false);
        for mut input in [&stream[..cut], &stream[cut..]] {
            while reader.next(&mut memo, &mut input).is_ok_and(|event| event != Event::NeedMore) {}
        }
        assert_eq!(memo.transcript().as_ref(), Some(&expected), "cut at {cut}");
    }
}

#[test]
fn the_memo_is_bounded() {
    let head = |padding: usize| format!("HTTP/1.1 204 \r\nX: {}\r\n\r\n", "x".repeat(padding));
    let overhead = head(0).len();
    let mut memo = HeadMemo::default();
    for (length, remembered) in [(MAX_MEMO, true), (MAX_MEMO + 1, false)] {
        let mut memo_before = HeadMemo::default();
        let stream = head(length - overhead);
        let said = GET.transcript([stream.as_bytes()], Some(&mut memo_before));
        assert_eq!(notation(&said), "204 length 0 keep, end, idle");
        assert_eq!(memo_before.recognise(false, &mut stream.as_bytes()).is_some(), remembered, "{length}");
    }
    assert_eq!(
        memo.recognise(false, &mut &b"HTTP/1.1 204 \r\n\r\n"[..]),
        None,
        "an empty memo knows nothing"
    );
    GET.transcript([&b"HTTP/1.1 204 \r\n\r\n"[..]], Some(&mut memo));
    assert!(memo.recognise(false, &mut &b"HTTP/1.1 204 \r\n\r\n"[..]).is_some());
}

#[test]
fn a_head_of_exactly_the_limit() {
    let block = |opening: &str, length: usize, ending: &str| {
        format!("{opening}X: {}{ending}", "x".repeat(length - opening.len() - ending.len() - 3))
    };
    for (length, expected) in [(MAX_HEAD, "204 length 0 keep, end, idle"), (MAX_HEAD + 1, "!head-too-large")]
    {
        let stream = block("HTTP/1.1 204 \r\n", length, "\r\n\r\n");
        for pieces in [1, 7, 1000, stream.len()] {
            let said = GET.transcript(stream.as_bytes().chunks(pieces), None);
            assert_eq!(notation(&said), expected, "{length} in pieces of {pieces}");
        }
    }
    for (length, expected) in [(MAX_HEAD, "end, idle"), (MAX_HEAD + 1, "!trailers-too-large")] {
        let stream = block("", length, "\r\n\r\n");
        for pieces in [1, 7, 1000, stream.len()] {
            let said =
                GET.transcript([CHUNKED, b"0\r\n"].into_iter().chain(stream.as_bytes().chunks(pieces)), None);
            assert_eq!(notation(&said[1..]), expected, "{length} in pieces of {pieces}");
        }
    }
}

/// 1 GiB of a head, in pieces of 16 KiB, is refused at 64 KiB; and none of it is kept if it has lines.
#[test]
fn an_endless_head_holds_no_memory() {
    const PIECE: usize = 16 * 1024;
    let long_line = vec![b'x'; PIECE];
    let short_lines = b"Some-Field: some value\r\n".repeat(PIECE / 24);
    for (piece, most) in [(long_line, 2 * MAX_HEAD), (short_lines, 64)] {
        let mut reader = Reader::new();
        reader.begin(false);
        let mut memo = HeadMemo::default();
        let mut input = &b"HTTP/1.1 200 OK\r\nX: "[..];
        assert_eq!(reader.next(&mut memo, &mut input), Ok(Event::NeedMore));
        let mut violation = None;
        for _ in 0..(1 << 30) / PIECE {
            if let Err(found) = reader.next(&mut memo, &mut &piece[..]) {
                violation = Some(found);
            }
            assert!(reader.retained() <= most, "{} bytes are held", reader.retained());
        }
        assert_eq!(violation, Some(Violation::HeadTooLarge));
    }
}

/// 1 GiB of one chunk extension, and of a body, is passed through without being kept.
#[test]
fn endless_bodies_and_extensions_hold_no_memory() {
    let piece = [b'x'; 16 * 1024];
    let mut memo = HeadMemo::default();
    let mut reader = Reader::new();
    reader.begin(false);
    for head in [CHUNKED, b"40000000\r\n"] {
        let mut input = head;
        while !input.is_empty() {
            reader.next(&mut memo, &mut input).expect("the head of a chunk");
        }
    }
    let mut body = 0u64;
    for _ in 0..(1 << 30) / piece.len() {
        let mut input = &piece[..];
        assert_eq!(reader.next(&mut memo, &mut input), Ok(Event::Body(&piece[..])));
        body += piece.len() as u64;
        assert_eq!(reader.retained(), 0);
    }
    assert_eq!(body, 0x4000_0000);
    assert_eq!(reader.next(&mut memo, &mut &b"\r\n1;"[..]), Ok(Event::NeedMore));
    assert_eq!(reader.next(&mut memo, &mut &piece[..]), Err(Violation::ChunkLineTooLong));
    assert_eq!(reader.retained(), 0);
}

#[test]
fn a_partial_head_is_released_when_it_is_complete() {
    let mut reader = Reader::new();
    let mut memo = HeadMemo::default();
    reader.begin(false);
    assert_eq!(reader.next(&mut memo, &mut &b"HTTP/1.1 204 No"[..]), Ok(Event::NeedMore));
    assert!(reader.retained() > 0);
    assert!(matches!(reader.next(&mut memo, &mut &b" Content\r\n\r\n"[..]), Ok(Event::Head(_))));
    assert_eq!(reader.retained(), 0);
}

/// Ten thousand connections have one each.
#[test]
fn a_reader_is_small() {
    assert!(size_of::<Reader>() <= 64, "{} bytes", size_of::<Reader>());
}

#[test]
fn kinds_are_distinct_and_kebab_case() {
    use Violation::*;
    let all = [
        Unsolicited,
        FramesForAnswer,
        NotHttp,
        UnsupportedVersion,
        MalformedStatusLine,
        InvalidStatus,
        SwitchingProtocols,
        TooManyInterim,
        HeadTooLarge,
        StrayControl,
        MissingColon,
        EmptyFieldName,
        InvalidFieldName,
        WhitespaceBeforeColon,
        LeadingWhitespace,
        FoldedFraming,
        InvalidContentLength,
        ContentLengthOverflow,
        ConflictingContentLength,
        InvalidTransferEncoding,
        TransferEncodingInHttp10,
        ConflictingFraming,
        InvalidChunkSize,
        ChunkSizeTooLong,
        InvalidChunkExtension,
        ChunkLineTooLong,
        BareLineFeed,
        MissingChunkEnd,
        TrailersTooLarge,
        TruncatedHead,
        TruncatedBody,
        TruncatedChunks,
    ];
    let kinds: std::collections::BTreeSet<_> = all.iter().map(|violation| violation.kind()).collect();
    assert_eq!(kinds.len(), all.len());
    for kind in kinds {
        assert!(
            kind.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit()),
            "{kind}"
        );
    }
}

/// Fields a server may send that decide nothing.
fn ordinary_field() -> impl Strategy<Value = String> {
    ("X-[A-Za-z0-9!#$&'*+.^_`|~-]{0,12}", "[ -~\t]{0,24}")
        .prop_map(|(name, value)| format!("{name}: {value}\r\n"))
}

/// A body, and the field and bytes that frame it: by length, or in chunks with extensions and trailers.
fn framed_body() -> impl Strategy<Value = (Vec<u8>, String, Vec<u8>)> {
    let by_length = vec(any::<u8>(), 0..200).prop_map(|body| {
        let field = format!("Content-Length: {}\r\n", body.len());
        (body.clone(), field, body)
    });
    let chunk = (vec(any::<u8>(), 1..40), prop::sample::select(vec!["", ";a", ";a=b", " ;a = \"\\\"\";c"]));
    let in_chunks = (vec(chunk, 0..6), vec(ordinary_field(), 0..3)).prop_map(|(chunks, trailers)| {
        let (mut body, mut wire) = (Vec::new(), Vec::new());
        for (data, extension) in chunks {
            wire.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
            wire.extend_from_slice(&data);
            wire.extend_from_slice(b"\r\n");
            body.extend(data);
        }
        wire.extend_from_slice(format!("0\r\n{}\r\n", trailers.concat()).as_bytes());
        (body, "Transfer-Encoding: chunked\r\n".to_owned(), wire)
    });
    prop_oneof![by_length, in_chunks]
}

/// A response that is in order: its bytes, its status, its body.
fn response() -> impl Strategy<Value = (Vec<u8>, u16, Vec<u8>)> {
    let status = prop_oneof![200..=203u16, 205..=303u16, 305..=999u16];
    (status, "[ -~]{0,12}", vec(ordinary_field(), 0..8), framed_body(), any::<prop::sample::Index>())
        .prop_map(|(status, reason, mut fields, (body, framing, wire), place)| {
            fields.insert(place.index(fields.len() + 1), framing);
            let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n{}\r\n", fields.concat()).into_bytes();
            bytes.extend(wire);
            (bytes, status, body)
        })
}

/// The stream cut at these places.
fn cut<'a>(stream: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(stream.len() + 1)).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect()
}

proptest! {
    /// What comes out is what went in, and an independent parser reads the head alike.
    #[test]
    fn responses_in_order_are_read_as_meant(
        responses in vec(response(), 1..4),
        places in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream: Vec<u8> = responses.iter().flat_map(|response| response.0.clone()).collect();
        let reading = Reading { requests: responses.len(), ..GET };
        let mut memo = HeadMemo::default();
        let said = reading.transcript(cut(&stream, &places), Some(&mut memo));
        prop_assert_eq!(said.last(), Some(&Said::Closed(false)));
        let read: Vec<(u16, Vec<u8>)> = said.split(|word| *word == Said::End).filter_map(|words| match words {
            [Said::Head(head), Said::Body(body)] => Some((head.status, body.clone())),
            [Said::Head(head)] => Some((head.status, Vec::new())),
            _ => None,
        }).collect();
        let meant: Vec<(u16, Vec<u8>)> = responses.iter().map(|(_, status, body)| (*status, body.clone())).collect();
        prop_assert_eq!(read, meant);

        let mut slots = [httparse::EMPTY_HEADER; 16];
        let mut parsed = httparse::Response::new(&mut slots);
        prop_assert!(parsed.parse(&stream).expect("an independent parser takes it").is_complete());
        prop_assert_eq!(parsed.code, Some(responses[0].1));
    }

    /// Whatever the bytes: cuts and memo change nothing.
    #[test]
    fn cuts_change_nothing(
        mut stream in response().prop_map(|response| response.0),
        faults in vec((any::<prop::sample::Index>(), prop::sample::select(b"\r\n\0 :;,\"\\0aHx5\t".to_vec())), 0..4),
        places in vec(any::<prop::sample::Index>(), 0..20),
        head_request in any::<bool>(),
    ) {
        for (place, byte) in faults {
            let at = place.index(stream.len());
            stream[at] = byte;
        }
        let reading = Reading { head_request, requests: 2 };
        let whole = reading.transcript([&stream[..]], None);
        let mut memo = HeadMemo::default();
        prop_assert_eq!(&reading.transcript(cut(&stream, &places), Some(&mut memo)), &whole);
        prop_assert_eq!(&reading.transcript([&stream[..]], Some(&mut memo)), &whole);
        prop_assert_eq!(&reading.transcript([&stream[..]], Some(&mut memo)), &whole);
    }

    /// A head that this reader takes is one that an independent parser takes, if it takes bare LF and
    /// folding alike; and both see the same status.
    #[test]
    fn nothing_is_accepted_that_others_refuse(
        mut stream in response().prop_map(|response| response.0),
        faults in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for (place, byte) in faults {
            let at = place.index(stream.len());
            stream[at] = byte;
        }
        if let Some(Said::Head(head)) = GET.transcript([&stream[..]], None).first() {
            let mut slots = [httparse::EMPTY_HEADER; 32];
            let mut parsed = httparse::Response::new(&mut slots);
            let mut config = httparse::ParserConfig::default();
            config.allow_obsolete_multiline_headers_in_responses(true);
            match config.parse_response(&mut parsed, &stream) {
                Ok(status) => {
                    prop_assert!(status.is_complete());
                    prop_assert_eq!(parsed.code, Some(head.status));
                }
                // It knows 1.0 and 1.1 alone, and refuses all control characters.
                Err(httparse::Error::Version) => prop_assert!(!matches!(stream[7], b'0' | b'1')),
                Err(error) => prop_assert!(
                    stream.iter().any(|byte| byte.is_ascii_control() && !b"\r\n\t".contains(byte)),
                    "{error}"
                ),
            }
        }
    }

    #[test]
    fn noise_is_read_alike_however_it_is_cut(stream in vec(any::<u8>(), 0..200), head in any::<bool>()) {
        let mut data = vec![if head { b'H' } else { b'G' }];
        data.extend(stream);
        super::fuzz_response(&data);
    }
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Checks a table of streams, each answering one GET.
fn check(table: &[(&str, &str)]) {
    check_as(GET, table);
}

/// Checks a table of field lines, each of an otherwise empty 204 or, refused, of a 200.
fn check_fields(table: &[(&str, Option<&str>)]) {
    for &(fields, expected) in table {
        let status = if expected.is_none() { 204 } else { 200 };
        let stream = format!("HTTP/1.1 {status} \r\n{fields}\r\n");
        check(&[(&stream, expected.unwrap_or("204 length 0 keep, end, idle"))]);
    }
}

/// Checks a table of what follows the head of a chunked response.
fn check_chunked(table: &[(&str, &str)]) {
    for (body, expected) in table {
        let stream = [std::str::from_utf8(CHUNKED).expect("ASCII"), body].concat();
        check(&[(&stream, &format!("200 chunked keep, {expected}"))]);
    }
}

/// Checks a table of streams: whole, cut in two at every place, byte by byte; and again by a memo that
/// knows them.
fn check_as(reading: Reading, table: &[(&str, &str)]) {
    for (stream, expected) in table {
        let bytes = stream.as_bytes();
        assert_eq!(&notation(&reading.transcript([bytes], None)), expected, "{stream:?}");
        let mut memo = HeadMemo::default();
        for at in 0..=bytes.len() {
            let (front, back) = bytes.split_at(at);
            let said = reading.transcript([front, back], Some(&mut memo));
            assert_eq!(&notation(&said), expected, "{stream:?} cut at {at}");
        }
        let said = reading.transcript(bytes.chunks(1), Some(&mut memo));
        assert_eq!(&notation(&said), expected, "{stream:?} byte by byte");
    }
}

/// One line for all that was said; see the head of this file.
fn notation(said: &[Said]) -> String {
    let mut line = String::new();
    for word in said {
        if !line.is_empty() {
            line.push_str(", ");
        }
        match word {
            Said::Interim(status) => write!(line, "{status}"),
            Said::Head(head) => write_head(&mut line, head),
            Said::Body(body) => write!(line, "'{}'", String::from_utf8_lossy(body)),
            Said::End => write!(line, "end"),
            Said::Closed(complete) => write!(line, "{}", if *complete { "complete" } else { "idle" }),
            Said::Broken(violation) => write!(line, "!{}", violation.kind()),
        }
        .expect("a string takes everything");
    }
    line
}

fn write_head(line: &mut String, head: &Head) -> std::fmt::Result {
    let kept = if head.keep_alive { "keep" } else { "close" };
    match head.framing {
        Framing::Length(length) => write!(line, "{} length {length} {kept}", head.status),
        Framing::Chunked => write!(line, "{} chunked {kept}", head.status),
        Framing::UntilClose => write!(line, "{} until-close {kept}", head.status),
    }
}
