//! Flow control: uploads within the windows and frames that a server allows, downloads without stalls.

use bench::load::plan::Limit;
use bench::results::Protocol;

use crate::common::answer::{Answer, Asked};
use crate::common::h2::{Credit, H2};
use crate::common::{HTTP2, Scripted, errors, finish, frame};
use crate::{MS, all_ok, pattern, upload};

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
            h2.always(&Answer::hello());
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

/// Half of a body is on its way when the server says that it will not process the request: it is sent
/// again from its first byte, over the same connection or the next one.
#[test]
fn an_upload_that_was_not_processed_is_sent_again_whole() {
    let body = pattern(150_000);
    for protocol in HTTP2 {
        for goaway in [true, false] {
            let expected = body.clone();
            let server = Scripted::http2(protocol, move |h2| {
                h2.settings(&[]);
                if h2.conn.index == 0 {
                    h2.credit = Credit::Manual;
                    let Some(heads) = (0..3).map(|_| h2.head()).collect::<Option<Vec<_>>>() else { return };
                    let received =
                        |h2: &H2<'_>| heads.iter().map(|asked| h2.received(asked.stream)).sum::<usize>();
                    while received(h2) < 65_535 {
                        if h2.next().is_none() {
                            return;
                        }
                    }
                    if goaway {
                        h2.goaway(heads[0].stream, frame::NO_ERROR);
                    } else {
                        h2.reset(heads[1].stream, frame::REFUSED_STREAM);
                        h2.reset(heads[2].stream, frame::REFUSED_STREAM);
                    }
                    h2.credit = Credit::AtOnce;
                    h2.grant(0, 1 << 20);
                    h2.grant(heads[0].stream, 1 << 20);
                }
                while let Some(asked) = h2.request() {
                    assert!(asked.body == expected, "the body arrives as it is");
                    if !h2.respond(&asked, &Answer::hello()) || (goaway && h2.conn.index == 0) {
                        return;
                    }
                }
            });
            let m = finish(&server, &upload(&server, 3, 9, &body));
            assert_eq!((m.requests.ok, m.requests.failed), (9, 0), "{protocol:?}: {:?}", m.errors);
            assert_eq!((m.requests.replayed, server.answered()), (2, 9), "{protocol:?}");
            assert_eq!(m.connection.reopened, u64::from(goaway), "{protocol:?}");
        }
    }
}

/// What a reset cuts off is not sent on, and its neighbours are.
#[test]
fn a_reset_ends_an_upload_alone() {
    let body = pattern(150_000);
    for protocol in HTTP2 {
        let expected = body.clone();
        let server = Scripted::http2(protocol, move |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.head() else { return };
            h2.reset(asked.stream, frame::INTERNAL_ERROR);
            h2.settle();
            let told = h2.log.len();
            while let Some(asked) = h2.request() {
                assert!(asked.body == expected, "the body arrives as it is");
                if !h2.respond(&asked, &Answer::hello()) {
                    break;
                }
            }
            let mut late = h2.log[told..].iter().filter(|seen| seen.stream == asked.stream);
            assert_eq!(late.next(), None, "nothing is sent on a stream that was reset");
        });
        let m = finish(&server, &upload(&server, 2, 8, &body));
        assert_eq!(errors(&m), [("reset-internal-error".to_owned(), 1)], "{protocol:?}");
        assert_eq!((m.requests.ok, m.connection.reopened, server.answered()), (7, 0, 7));
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
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(1, 3));
        all_ok(&m, &server, 3);
        assert_eq!(m.transfer.body_bytes, 2 * LENGTH as u64 + 14);
    }
}

/// Over a GiB on one connection: its window is replenished as well as those of its streams.
#[test]
fn a_gibibyte_comes_down_one_connection() {
    const LENGTH: usize = 1 << 30;
    let server = Scripted::http2(Protocol::H2c, |h2| {
        h2.settings(&[]);
        let piece = vec![b'x'; 4 << 20];
        let Some(asked) = h2.request() else { return };
        h2.respond(&asked, &Answer::new(200, &piece).times(LENGTH >> 22));
        h2.always(&Answer::new(200, &piece));
    });
    let m = finish(&server, &server.multiplexed(1, 40));
    all_ok(&m, &server, 40);
    assert_eq!(m.transfer.body_bytes, (LENGTH + (39 << 22)) as u64);
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
