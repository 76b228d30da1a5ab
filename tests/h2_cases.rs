//! The generator against scripted HTTP/2 servers that do what RFC 9113 allows and clients get wrong:
//! GOAWAY, refusals, limits and windows that change under way, answers that come early, resets. Its
//! books are compared with the servers' own.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bench::load::plan::{Limit, LoadPlan};
use bench::results::{Measurement, Phase, Protocol};
use common::answer::{Answer, Asked};
use common::frame::{self, Frame};
use common::h2::{Credit, H2};
use common::hpack::{self, Encoder, Literal, Style};
use common::{HTTP2, Scripted, base64, check_identities, errors, run};

const MS: u64 = 1_000_000;

/// One connection with M requests in flight, so many in all.
fn plan(server: &Scripted, concurrency: u32, count: u64) -> LoadPlan {
    LoadPlan { concurrency, ..server.plan(1, Limit::Requests(count)) }
}

/// The same with a body to be sent.
fn upload(server: &Scripted, concurrency: u32, count: u64, body: &[u8]) -> LoadPlan {
    let mut plan = plan(server, concurrency, count);
    plan.request.method = "POST".into();
    plan.request.body = base64(body);
    plan
}

/// Runs a plan and waits until the server has read all of it.
fn finish(server: &Scripted, plan: &LoadPlan) -> Measurement {
    let m = run(plan);
    check_identities(&m);
    server.join();
    m
}

/// `count` requests are ok and nothing else happened, by both sides' books.
fn all_ok(m: &Measurement, server: &Scripted, count: u64) {
    assert_eq!((m.requests.ok, m.requests.failed), (count, 0), "{:?}: {:?}", m.protocol, m.errors);
    assert_eq!(m.lifetime.ok, server.answered(), "{:?}", m.protocol);
    assert_eq!((m.connection.opened, m.connection.reopened), (1, 0), "{:?}", m.protocol);
    assert_eq!(server.goaways(), [0u32; 0], "{:?}", m.protocol);
}

/// Answers whatever comes.
fn always(h2: &mut H2<'_>) {
    while let Some(asked) = h2.request() {
        if !h2.respond(&asked, &Answer::hello()) {
            return;
        }
    }
}

/// Bytes that are at no place what they are at another.
fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

// --- Connections that end ---------------------------------------------------------------------------

#[test]
fn a_goaway_after_every_fifty_requests_costs_no_request() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            for n in 1..=50 {
                let Some(asked) = h2.request() else { return };
                if n == 50 {
                    h2.goaway(asked.stream, frame::NO_ERROR);
                }
                h2.respond(&asked, &Answer::hello());
            }
        });
        let plan = LoadPlan { concurrency: 10, ..server.plan(2, Limit::Requests(1000)) };
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, m.requests.failed), (1000, 0), "{protocol:?}: {:?}", m.errors);
        assert_eq!((server.answered(), m.requests.interrupted), (1000, 0));
        assert!(m.connection.reopened >= 18, "{:?}", m.connection);
        // What was begun and not on its way when GOAWAY came is replayed, and never seen here.
        assert!(server.ignored() <= m.lifetime.replayed, "{} {:?}", server.ignored(), m.lifetime);
        assert!(m.lifetime.replayed <= 10 * m.connection.reopened, "{:?}", m.lifetime);
        let goaways = m.multiplexing.map(|multiplexing| multiplexing.goaways);
        assert!((18..=20).contains(&goaways.unwrap_or(0)), "{goaways:?}");
    }
}

/// RFC 9113 §6.8: the first GOAWAY only says that no stream is to follow, the second one which was the
/// last. In between nothing is lost.
#[test]
fn a_goaway_in_two_steps_replays_nothing() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            for _ in 0..50 {
                let Some(asked) = h2.request() else { return };
                h2.respond(&asked, &Answer::hello());
            }
            h2.goaway(0x7fff_ffff, frame::NO_ERROR);
            if !h2.settle() {
                return;
            }
            h2.expect_no_new_streams();
            let mut last = 0;
            while h2.open_streams() > 0 {
                let Some(asked) = h2.request() else { return };
                last = asked.stream;
                if h2.open_streams() == 1 {
                    h2.goaway(last, frame::NO_ERROR);
                }
                h2.respond(&asked, &Answer::hello());
            }
            assert!(last > 0, "a closed loop keeps streams open");
        });
        let m = finish(&server, &plan(&server, 10, 500));
        assert_eq!((m.requests.ok, m.requests.failed), (500, 0), "{protocol:?}: {:?}", m.errors);
        assert_eq!((m.lifetime.replayed, server.ignored(), server.answered()), (0, 0, 500));
        assert!(m.connection.reopened >= 7, "{:?}", m.connection);
    }
}

#[test]
fn streams_above_the_last_of_a_goaway_are_sent_again() {
    for protocol in HTTP2 {
        for code in [frame::NO_ERROR, frame::ENHANCE_YOUR_CALM] {
            let server = Scripted::http2(protocol, move |h2| {
                h2.settings(&[]);
                if h2.conn.index == 0 {
                    let Some(ten) = h2.requests(10) else { return };
                    h2.goaway(ten[3].stream, code);
                    for asked in &ten[..4] {
                        h2.respond(asked, &Answer::hello());
                    }
                } else {
                    always(h2);
                }
            });
            let m = finish(&server, &plan(&server, 10, 100));
            assert_eq!((m.requests.ok, m.requests.failed), (100, 0), "{protocol:?}: {:?}", m.errors);
            assert_eq!((m.lifetime.replayed, server.ignored(), server.answered()), (6, 6, 100));
            assert_eq!((m.connection.reopened, m.requests.interrupted), (1, 0));
        }
    }
}

/// Streams up to the last one may have been processed: they fail, and are not sent again.
#[test]
fn what_a_goaway_took_on_and_did_not_answer_is_interrupted() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            if h2.conn.index == 0 {
                let Some(ten) = h2.requests(10) else { return };
                h2.goaway(ten[3].stream, frame::INTERNAL_ERROR);
                h2.respond(&ten[0], &Answer::hello());
            } else {
                always(h2);
            }
        });
        let m = finish(&server, &plan(&server, 10, 100));
        assert_eq!((m.requests.ok, m.requests.failed), (97, 3), "{protocol:?}: {:?}", m.errors);
        assert_eq!((m.lifetime.replayed, server.answered(), m.requests.interrupted), (6, 97, 3));
        let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..]), (Phase::Interrupted, "closed-before-response"));
        assert!(error.example.as_ref().is_some_and(|text| text.contains("internal-error")), "{error:?}");
    }
}

/// A server may end a connection with its first answer, and still serves them all.
#[test]
fn a_goaway_before_the_first_answer_costs_a_connection_for_each_request() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            h2.respond(&asked, &Answer::hello().last());
        });
        for keepalive in [true, false] {
            let m = finish(&server, &LoadPlan { keepalive, ..plan(&server, 1, 20) });
            assert_eq!((m.requests.ok, m.requests.failed), (20, 0), "{protocol:?}: {:?}", m.errors);
            assert_eq!(m.connection.opened, 20, "{protocol:?}");
        }
        assert_eq!(server.answered(), 40);
    }
}

// --- Refusals and limits ----------------------------------------------------------------------------

#[test]
fn refused_streams_are_sent_again() {
    for protocol in HTTP2 {
        for keepalive in [true, false] {
            let refused = AtomicU64::new(0);
            let server = Scripted::http2(protocol, move |h2| {
                h2.settings(&[]);
                while let Some(asked) = h2.request() {
                    let go_on = if refused.fetch_add(1, Ordering::SeqCst) < 7 {
                        h2.reset(asked.stream, frame::REFUSED_STREAM)
                    } else {
                        h2.respond(&asked, &Answer::hello())
                    };
                    if !go_on {
                        return;
                    }
                }
            });
            let concurrency = if keepalive { 5 } else { 1 };
            let m = finish(&server, &LoadPlan { keepalive, ..plan(&server, concurrency, 40) });
            assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{protocol:?}: {:?}", m.errors);
            assert_eq!((m.requests.started, m.requests.replayed), (40, 7));
            assert_eq!((server.requests(), server.answered()), (47, 40));
            assert_eq!(m.multiplexing.map(|multiplexing| multiplexing.refused), Some(7));
            assert_eq!(m.connection.opened, if keepalive { 1 } else { 47 });
        }
    }
}

#[test]
fn a_server_that_refuses_for_ever_is_given_up() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            while let Some(asked) = h2.request() {
                if !h2.reset(asked.stream, frame::REFUSED_STREAM) {
                    return;
                }
            }
        });
        let m = finish(&server, &plan(&server, 2, 4));
        assert_eq!((m.requests.ok, m.requests.failed), (0, 4), "{protocol:?}: {:?}", m.errors);
        let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..], error.count), (Phase::Refused, "refused-stream", 4));
        assert_eq!(server.requests(), 4 + m.lifetime.replayed);
    }
}

#[test]
fn no_second_stream_before_the_settings() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            let Some(first) = h2.request() else { return };
            // Nothing can be waited for here but time; a client that is too slow to err passes.
            h2.conn.patience(Some(Duration::from_millis(100)));
            while h2.next().is_some() {}
            h2.conn.patience(None);
            assert!(h2.conn.open());
            assert_eq!(h2.count(frame::HEADERS), 1);
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 3)]);
            let Some(more) = h2.requests(2) else { return };
            h2.settle();
            assert_eq!(h2.open_streams(), 3);
            for asked in [first].iter().chain(&more) {
                h2.respond(asked, &Answer::hello());
            }
            always(h2);
        });
        let m = finish(&server, &plan(&server, 10, 50));
        all_ok(&m, &server, 50);
        assert_eq!(server.most_streams(), 3);
    }
}

#[test]
fn the_limit_of_streams_is_kept_whenever_it_changes() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 8)]);
            let Some(eight) = h2.requests(8) else { return };
            h2.settle();
            assert_eq!(h2.open_streams(), 8);
            for asked in &eight {
                h2.respond(asked, &Answer::hello());
            }
            for _ in 0..100 {
                let Some(asked) = h2.request() else { return };
                h2.respond(&asked, &Answer::hello());
            }
            // Lowered under eight open streams, of which two are refused.
            let Some(eight) = h2.requests(8) else { return };
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1)]);
            for asked in &eight[..2] {
                h2.reset(asked.stream, frame::REFUSED_STREAM);
            }
            for (at, asked) in eight[2..].iter().enumerate() {
                h2.settle();
                assert_eq!(h2.open_streams(), 6 - at, "none is opened before the others ended");
                h2.respond(asked, &Answer::hello());
            }
            for _ in 0..50 {
                let Some(asked) = h2.request() else { return };
                h2.settle();
                assert_eq!(h2.open_streams(), 1);
                h2.respond(&asked, &Answer::hello());
            }
            // None at all for a while (RFC 9113 §6.5.2 allows 0), then more than this side wants.
            let Some(asked) = h2.request() else { return };
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]);
            h2.respond(&asked, &Answer::hello());
            h2.settle();
            assert_eq!(h2.open_streams(), 0);
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1_000_000)]);
            let Some(hundred) = h2.requests(100) else { return };
            h2.settle();
            assert_eq!(h2.open_streams(), 100);
            for asked in &hundred {
                h2.respond(asked, &Answer::hello());
            }
            always(h2);
        });
        let m = finish(&server, &plan(&server, 100, 700));
        all_ok(&m, &server, 700);
        let multiplexing = m.multiplexing.expect("the server said how many");
        assert_eq!((multiplexing.effective_least, multiplexing.effective_most), (0, 100));
        assert_eq!((multiplexing.refused, m.lifetime.replayed, server.most_streams()), (2, 2, 100));
    }
}

#[test]
fn effective_m_is_what_the_server_allowed() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 8)]);
            for _ in 0..200 {
                let Some(asked) = h2.request() else { return };
                h2.respond(&asked, &Answer::hello());
            }
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1)]);
            always(h2);
        });
        let m = finish(&server, &plan(&server, 100, 400));
        all_ok(&m, &server, 400);
        let multiplexing = m.multiplexing.expect("the server said how many");
        assert_eq!((multiplexing.effective_least, multiplexing.effective_most), (1, 8));
    }
}

/// One stream that is never answered does not keep the others from it.
#[test]
fn a_stream_that_is_never_answered_is_one_unfinished_request() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            h2.request();
            always(h2);
        });
        let mut plan = LoadPlan { concurrency: 8, ..server.plan(1, Limit::DurationNs(1200 * MS)) };
        plan.drain_ns = 50 * MS;
        let m = finish(&server, &plan);
        assert_eq!((m.lifetime.unfinished, m.requests.failed), (1, 0), "{protocol:?}: {:?}", m.errors);
        assert!(m.requests.oldest_unfinished_us >= Some(1_100_000), "{:?}", m.requests);
        assert!(m.requests.ok > 0);
        assert_eq!(m.lifetime.ok, server.answered());
    }
}

// --- Windows ----------------------------------------------------------------------------------------

/// RFC 9113 §6.9.2: a smaller initial window makes the windows of open streams negative.
#[test]
fn windows_may_become_negative_under_an_upload() {
    let body = pattern(100_000);
    for protocol in HTTP2 {
        let expected = body.clone();
        let server = Scripted::http2(protocol, move |h2| {
            h2.credit = Credit::Manual;
            h2.settings(&[]);
            let Some(Asked { stream, .. }) = h2.head() else { return };
            while h2.received(stream) < 65_535 {
                if h2.next().is_none() {
                    return;
                }
            }
            // 65 535 sent of 1000: the window is -64 535.
            h2.settings(&[(frame::INITIAL_WINDOW_SIZE, 1000)]);
            h2.grant(0, 1 << 20);
            let received = |h2: &mut H2<'_>, what: &str, expected: usize| {
                h2.settle();
                assert_eq!(h2.received(stream), expected, "{what}");
            };
            received(h2, "a negative window", 65_535);
            h2.grant(stream, 64_535);
            received(h2, "a window of 0", 65_535);
            h2.grant(stream, 1);
            received(h2, "a window of 1", 65_536);
            h2.settings(&[(frame::INITIAL_WINDOW_SIZE, 1001)]);
            received(h2, "another initial window", 65_537);
            h2.grant(stream, 10_000);
            received(h2, "10 000 more", 75_537);
            h2.grant(stream, 1 << 20);
            let Some(asked) = h2.request() else { return };
            assert!(asked.body == expected, "the body arrives as it is");
            h2.respond(&asked, &Answer::hello());
            h2.credit = Credit::AtOnce;
            always(h2);
        });
        let m = finish(&server, &upload(&server, 1, 3, &body));
        all_ok(&m, &server, 3);
    }
}

#[test]
fn uploads_keep_to_windows_and_frames_of_any_size() {
    for (length, window, frame_size) in [
        (300, 1, 16_384),
        (5_000, 7, 16_384),
        (100_000, 16_383, 1 << 14),
        (1_000_000, 65_536, (1 << 24) - 1),
        (5_000_000, 0x7fff_ffff, 16_384),
        (5_000_000, 0x7fff_ffff, 1 << 20),
        (5_000_000, 0x7fff_ffff, (1 << 24) - 1),
    ] {
        let body = pattern(length);
        for protocol in HTTP2 {
            let expected = body.clone();
            let server = Scripted::http2(protocol, move |h2| {
                h2.settings(&[(frame::INITIAL_WINDOW_SIZE, window), (frame::MAX_FRAME_SIZE, frame_size)]);
                // A wide stream is not to be held up by the connection.
                if window > 65_535 {
                    h2.grant(0, 0x7fff_ffff - 65_535);
                }
                while let Some(asked) = h2.request() {
                    let good = asked.body == expected;
                    let answer = if good { Answer::hello() } else { Answer::new(400, b"") };
                    if !h2.respond(&asked, &answer) {
                        return;
                    }
                }
            });
            for concurrency in [1, 3] {
                let m = finish(&server, &upload(&server, concurrency, 6, &body));
                let what = format!("{protocol:?} {length} {window} {frame_size}: {:?}", m.errors);
                assert_eq!((m.requests.ok, m.connection.opened), (6, 1), "{what}");
                assert!(m.transfer.sent_bytes >= 6 * u64::from(length), "{what}");
            }
        }
    }
}

/// A frame limit that is lowered binds from its acknowledgement on; the scripted server checks that.
#[test]
fn the_frame_limit_may_change_under_an_upload() {
    let body = pattern(3_000_000);
    for protocol in HTTP2 {
        let expected = body.clone();
        let server = Scripted::http2(protocol, move |h2| {
            let wide = [(frame::MAX_FRAME_SIZE, (1 << 24) - 1), (frame::INITIAL_WINDOW_SIZE, 1 << 20)];
            let narrow = [(frame::MAX_FRAME_SIZE, 16_384), (frame::INITIAL_WINDOW_SIZE, 100_000)];
            h2.settings(&wide);
            h2.grant(0, 1 << 20);
            for turn in 1.. {
                while h2.count(frame::DATA) < 20 * turn {
                    if h2.next().is_none() {
                        return;
                    }
                    while let Some(asked) = h2.waiting() {
                        assert!(asked.body == expected, "the body arrives as it is");
                        h2.respond(&asked, &Answer::hello());
                    }
                }
                h2.settings(if turn % 2 == 0 { &wide } else { &narrow });
            }
        });
        let m = finish(&server, &upload(&server, 4, 12, &body));
        all_ok(&m, &server, 12);
    }
}

/// One stream without a window keeps no other from being sent.
#[test]
fn a_stream_without_a_window_holds_up_no_other() {
    let body = pattern(30_000);
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.credit = Credit::Manual;
            h2.settings(&[(frame::INITIAL_WINDOW_SIZE, 0)]);
            h2.grant(0, 1 << 30);
            let Some(heads) = (0..3).map(|_| h2.head()).collect::<Option<Vec<_>>>() else { return };
            h2.settle();
            assert_eq!(heads.iter().map(|asked| h2.received(asked.stream)).sum::<usize>(), 0);
            for asked in heads.iter().rev() {
                h2.grant(asked.stream, 30_000);
                let Some(whole) = h2.request() else { return };
                assert_eq!((whole.stream, whole.body.len()), (asked.stream, 30_000));
                h2.respond(&whole, &Answer::hello());
            }
        });
        let m = finish(&server, &upload(&server, 3, 3, &body));
        all_ok(&m, &server, 3);
    }
}

/// Windows for downloads are given back in large pieces, not with every DATA frame.
#[test]
fn a_download_takes_few_window_updates() {
    const LENGTH: usize = 64 << 20;
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            let answer = Answer::new(200, &vec![b'x'; 1 << 20]).times(LENGTH >> 20);
            for _ in 0..2 {
                let Some(asked) = h2.request() else { return };
                h2.respond(&asked, &answer);
            }
            h2.settle();
            let (updates, frames) = (h2.count(frame::WINDOW_UPDATE), 2 * LENGTH / 16_384);
            assert!(updates * 20 < frames, "{updates} WINDOW_UPDATE frames for {frames} of DATA");
            always(h2);
        });
        let m = finish(&server, &plan(&server, 1, 3));
        all_ok(&m, &server, 3);
        assert_eq!(m.transfer.body_bytes, 2 * LENGTH as u64 + 14);
    }
}

/// Many small bodies add up to more than the windows of a connection.
#[test]
fn small_bodies_do_not_use_the_connections_window_up() {
    const PIECE: usize = 16_384;
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            // A GiB is the most that a client can offer without a WINDOW_UPDATE for each window's half.
            let answer = Answer::new(200, &vec![b'x'; PIECE]).times(64);
            while let Some(asked) = h2.request() {
                if !h2.respond(&asked, &answer) {
                    return;
                }
            }
        });
        let m = finish(&server, &plan(&server, 8, 200));
        all_ok(&m, &server, 200);
        assert_eq!(m.transfer.body_bytes, 200 * 64 * PIECE as u64);
    }
}

#[test]
fn a_connection_that_stands_still_says_what_it_waits_for() {
    let body = pattern(200_000);
    let server = Scripted::http2(Protocol::H2c, |h2| {
        h2.credit = Credit::Manual;
        h2.settings(&[]);
        while h2.next().is_some() {}
    });
    let mut plan = upload(&server, 2, 1, &body);
    plan.limit = Limit::DurationNs(2600 * MS);
    plan.drain_ns = 0;
    let m = finish(&server, &plan);
    assert_eq!((m.requests.unfinished, m.requests.ok, m.requests.failed), (2, 0, 0), "{:?}", m.errors);
    let [stall] = &m.stalls[..] else { panic!("{:?}", m.stalls) };
    assert_eq!(stall.in_flight, 2);
    assert!(stall.idle_us >= 2_000_000, "{stall:?}");
    assert!(stall.state.contains("window") && stall.state.contains("stream 3"), "{stall:?}");
}

// --- Answers ----------------------------------------------------------------------------------------

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
                always(h2);
            });
            let m = finish(&server, &plan(&server, 4, 20));
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
        let m = finish(&server, &plan(&server, 3, 20));
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
        let mut plan = plan(&server, 3, 30);
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
        let mut plan = plan(&server, 3, 30);
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
        let m = finish(&server, &plan(&server, 3, 300));
        all_ok(&m, &server, 300);
        assert_eq!(m.statuses.get("204"), Some(&300));
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.into(), value.into())
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
        let m = finish(&server, &plan(&server, 4, 1000));
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
            let mut plan = plan(&server, 3, 60);
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
        let m = finish(&server, &plan(&server, 3, 30));
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
        let m = finish(&server, &plan(&server, 4, 40));
        all_ok(&m, &server, 40);
        assert_eq!((m.interim_responses, m.statuses.get("200")), (120, Some(&40)));
    }
}

// --- All of it at once ------------------------------------------------------------------------------

/// A server that at every turn may answer, refuse, reset, or go away: every request is accounted for,
/// by both sides in the same way.
#[test]
fn counts_equal_the_servers_own_through_everything() {
    for protocol in HTTP2 {
        for seed in 1..=4 {
            let counts: Arc<[AtomicU64; 3]> = Arc::default();
            let told = Arc::clone(&counts);
            let server = Scripted::http2(protocol, move |h2| {
                let mut random = seed * 7919 + h2.conn.index * 104_729;
                let mut next = move || {
                    // A linear congruential generator is random enough to mix cases.
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    random >> 33
                };
                h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1 + (next() % 12) as u32)]);
                while let Some(asked) = h2.request() {
                    let go_on = match next() % 20 {
                        0..=1 => {
                            told[0].fetch_add(1, Ordering::SeqCst);
                            h2.reset(asked.stream, frame::REFUSED_STREAM)
                        }
                        2 => {
                            told[1].fetch_add(1, Ordering::SeqCst);
                            h2.reset(asked.stream, frame::INTERNAL_ERROR)
                        }
                        3 => h2.respond(&asked, &Answer::hello().last()) && false,
                        4 => {
                            told[2].fetch_add(1, Ordering::SeqCst);
                            h2.respond(&asked, &Answer::new(500, b"no"))
                        }
                        5 => {
                            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1 + (next() % 12) as u32)])
                                && h2.respond(&asked, &Answer::hello())
                        }
                        _ => h2.respond(&asked, &Answer::hello()),
                    };
                    if !go_on {
                        return;
                    }
                }
            });
            let mut plan = LoadPlan { concurrency: 10, ..server.plan(3, Limit::Requests(1500)) };
            plan.threads = 1 + (seed % 2) as u32;
            let m = finish(&server, &plan);
            let [refused, reset, unexpected] = [0, 1, 2].map(|at| counts[at].load(Ordering::SeqCst));
            let what = format!("{protocol:?} {seed}: {:?} {:?}", m.lifetime, m.errors);
            assert_eq!(m.requests.started, 1500, "{what}");
            assert_eq!(m.lifetime.ok + unexpected, server.answered(), "{what}");
            assert_eq!((m.lifetime.failed, m.lifetime.interrupted), (reset + unexpected, reset), "{what}");
            assert_eq!(
                m.multiplexing.map(|multiplexing| multiplexing.refused >= refused),
                Some(true),
                "{what}"
            );
            assert!(
                m.lifetime.replayed >= refused + server.ignored(),
                "{what} {refused} {}",
                server.ignored()
            );
        }
    }
}
