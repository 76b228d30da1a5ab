//! Flow control: uploads within the windows that a server allows, downloads without stalls.

use crate::common::answer::Answer;
use crate::common::books::{all_ok, pattern, upload};
use crate::common::h3::endpoint::Options;
use crate::common::{Scripted, finish};

#[test]
fn uploads_keep_to_windows_of_any_size() {
    for (length, stream_window, window) in [
        (300, 1, 1 << 20),
        (300, 1 << 20, 20),
        (5_000, 7, 100),
        (100_000, 16_383, 20_000),
        (1_000_000, 65_536, 65_536),
        (3_000_000, 1 << 20, 100_000),
        (5_000_000, 1 << 30, 1 << 30),
    ] {
        let body = pattern(length);
        let expected = body.clone();
        let options = Options { stream_window, window, ..Options::default() };
        let server = Scripted::quic(&options, move |h3| {
            h3.settings(&[]);
            while let Some(asked) = h3.request() {
                let good = asked.body == expected;
                let answer = if good { Answer::hello() } else { Answer::new(400, b"") };
                if !h3.respond(&asked, &answer) {
                    return;
                }
            }
        });
        for concurrency in [1, 3] {
            let m = finish(&server, &upload(&server, concurrency, 6, &body));
            let what = format!("{length} {stream_window} {window}: {:?}", m.errors);
            assert_eq!((m.requests.ok, m.connection.opened), (6, 1), "{what}");
            assert!(m.transfer.sent_bytes >= 6 * u64::from(length), "{what}");
        }
        assert_eq!(server.closes(), []);
    }
}

/// Windows for downloads are given back in large pieces, not with every packet.
#[test]
fn a_download_takes_few_updates_of_its_windows() {
    const LENGTH: usize = 64 << 20;
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let answer = Answer::new(200, &vec![b'x'; 1 << 20]).times(LENGTH >> 20);
        for _ in 0..2 {
            let Some(asked) = h3.request() else { return };
            h3.respond(&asked, &answer);
        }
        h3.flush();
        let stats = h3.quic.stats();
        let updates = stats.frame_rx.max_data + stats.frame_rx.max_stream_data;
        assert!(updates * 20 < stats.udp_tx.datagrams, "{updates} updates for {stats:?}");
        h3.always(&Answer::hello());
    });
    let m = finish(&server, &server.multiplexed(1, 3));
    all_ok(&m, &server, 3);
    assert_eq!(m.transfer.body_bytes, 2 * LENGTH as u64 + 14);
}

/// A quarter of a GiB on one connection: its window is replenished as well as those of its streams.
#[test]
fn a_long_download_comes_down_one_connection() {
    const LENGTH: usize = 1 << 28;
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let piece = vec![b'x'; 1 << 20];
        let Some(asked) = h3.request() else { return };
        h3.respond(&asked, &Answer::new(200, &piece).times(LENGTH >> 20));
        h3.always(&Answer::new(200, &piece));
    });
    let m = finish(&server, &server.multiplexed(1, 40));
    all_ok(&m, &server, 40);
    assert_eq!(m.transfer.body_bytes, (LENGTH + (39 << 20)) as u64);
}

/// Uploads and downloads on many streams at the same time, in both directions.
#[test]
fn bodies_cross_each_other() {
    let body = pattern(400_000);
    let expected = body.clone();
    let options = Options { stream_window: 50_000, window: 120_000, ..Options::default() };
    let server = Scripted::quic(&options, move |h3| {
        h3.settings(&[]);
        let answer = Answer::new(200, &expected);
        while let Some(asked) = h3.request() {
            assert!(asked.body == expected, "the body arrives as it is");
            if !h3.respond(&asked, &answer) {
                return;
            }
        }
    });
    let mut plan = upload(&server, 10, 60, &body);
    plan.expect.body = Some(crate::common::base64(&body));
    let m = finish(&server, &plan);
    all_ok(&m, &server, 60);
}

/// What a reset cuts off is not sent on, and its neighbours are.
#[test]
fn a_reset_ends_an_upload_alone() {
    let body = pattern(150_000);
    let expected = body.clone();
    let options = Options { stream_window: 10_000, ..Options::default() };
    let server = Scripted::quic(&options, move |h3| {
        h3.settings(&[]);
        let Some(asked) = h3.head() else { return };
        h3.reset(asked.stream, crate::common::h3::wire::H3_INTERNAL_ERROR);
        while let Some(asked) = h3.request() {
            assert!(asked.body == expected, "the body arrives as it is");
            if !h3.respond(&asked, &Answer::hello()) {
                return;
            }
        }
    });
    let m = finish(&server, &upload(&server, 2, 8, &body));
    assert_eq!(crate::common::errors(&m), [("reset-internal-error".to_owned(), 1)]);
    assert_eq!((m.requests.ok, m.connection.reopened, server.answered()), (7, 0, 7));
}
