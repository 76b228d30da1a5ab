//! How many requests a connection may carry: credit that is waited for and comes late, refusals, streams
//! without an answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bench::load::plan::{Limit, LoadPlan};
use bench::results::Phase;

use crate::MS;
use crate::common::answer::Answer;
use crate::common::books::all_ok;
use crate::common::h3::endpoint::Options;
use crate::common::h3::wire;
use crate::common::{Scripted, finish};

#[test]
fn rejected_requests_are_sent_again() {
    for keepalive in [true, false] {
        let rejected = AtomicU64::new(0);
        let server = Scripted::http3(move |h3| {
            h3.settings(&[]);
            while let Some(asked) = h3.request() {
                let go_on = if rejected.fetch_add(1, Ordering::SeqCst) < 7 {
                    h3.reset(asked.stream, wire::H3_REQUEST_REJECTED)
                } else {
                    h3.respond(&asked, &Answer::hello())
                };
                if !go_on {
                    return;
                }
            }
        });
        let concurrency = if keepalive { 5 } else { 1 };
        let m = finish(&server, &LoadPlan { keepalive, ..server.multiplexed(concurrency, 40) });
        assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{keepalive}: {:?}", m.errors);
        assert_eq!((m.requests.started, m.requests.replayed), (40, 7));
        assert_eq!((server.requests(), server.answered()), (47, 40));
        assert_eq!(m.multiplexing.map(|multiplexing| multiplexing.refused), Some(7));
        assert_eq!(m.connection.opened, if keepalive { 1 } else { 47 });
    }
}

/// The latency of a request that is sent again runs from its first send. The server thinks before it
/// rejects; only what cannot be shorter is asserted.
#[test]
fn latency_runs_from_the_first_send() {
    for goaway in [true, false] {
        let first = AtomicBool::new(true);
        let server = Scripted::http3(move |h3| {
            h3.settings(&[]);
            while let Some(asked) = h3.request() {
                if first.swap(false, Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(60));
                    if goaway {
                        h3.goaway(0);
                        return;
                    }
                    h3.reset(asked.stream, wire::H3_REQUEST_REJECTED);
                } else {
                    h3.respond(&asked, &Answer::hello());
                }
            }
        });
        let m = finish(&server, &server.multiplexed(1, 1));
        assert_eq!((m.requests.ok, m.requests.replayed), (1, 1), "{goaway}: {:?}", m.errors);
        let latency = m.latency_us.expect("a sample");
        assert!(latency.min >= 60_000.0, "{goaway}: {latency:?}");
    }
}

#[test]
fn a_server_that_rejects_for_ever_is_given_up() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        while let Some(asked) = h3.request() {
            if !h3.reset(asked.stream, wire::H3_REQUEST_REJECTED) {
                return;
            }
        }
    });
    let m = finish(&server, &server.multiplexed(2, 4));
    assert_eq!((m.requests.ok, m.requests.failed), (0, 4), "{:?}", m.errors);
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..], error.count), (Phase::Refused, "refused-stream", 4));
    assert_eq!(server.requests(), 4 + m.lifetime.replayed);
}

#[test]
fn the_limit_of_streams_is_kept_and_told() {
    for streams in [1, 8, 100] {
        let options = Options { streams, ..Options::default() };
        let server = Scripted::quic(&options, |h3| {
            h3.settings(&[]);
            h3.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(100, 1000));
        all_ok(&m, &server, 1000);
        assert!(server.most_streams() <= u64::from(streams), "{}", server.most_streams());
        let multiplexing = m.multiplexing.expect("the server said how many");
        assert_eq!((multiplexing.effective_least, multiplexing.effective_most), (streams, streams));
    }
}

/// RFC 9000 §4.6: a server may allow no streams at first, and any number of them later.
#[test]
fn streams_are_opened_when_they_are_allowed() {
    let options = Options { streams: 0, ..Options::default() };
    let server = Scripted::quic(&options, |h3| {
        h3.settings(&[]);
        assert!(h3.settle());
        assert_eq!(h3.open_streams(), 0);
        h3.quic.set_max_concurrent_bi_streams(3u32.into());
        let Some(three) = h3.requests(3) else { return };
        assert!(h3.settle());
        assert_eq!(h3.open_streams(), 3);
        // Two more, while nothing is answered.
        h3.quic.set_max_concurrent_bi_streams(5u32.into());
        let Some(two) = h3.requests(2) else { return };
        assert!(h3.settle());
        assert_eq!(h3.open_streams(), 5);
        for asked in three.iter().chain(&two) {
            h3.respond(asked, &Answer::hello());
        }
        h3.quic.set_max_concurrent_bi_streams(200u32.into());
        h3.always(&Answer::hello());
    });
    let m = finish(&server, &server.multiplexed(100, 500));
    all_ok(&m, &server, 500);
    assert!(server.most_streams() <= 100, "{}", server.most_streams());
}

/// No SETTINGS are waited for (RFC 9114 §7.2.4.2).
#[test]
fn a_server_that_says_no_settings_is_asked_all_the_same() {
    let server = Scripted::http3(|h3| h3.always(&Answer::hello()));
    let m = finish(&server, &server.multiplexed(10, 200));
    all_ok(&m, &server, 200);
}

/// One stream that is never answered does not keep the others from it.
#[test]
fn a_stream_that_is_never_answered_is_one_unfinished_request() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        h3.request();
        h3.always(&Answer::hello());
    });
    let mut plan = LoadPlan { concurrency: 8, ..server.plan(1, Limit::DurationNs(1200 * MS)) };
    plan.drain_ns = 50 * MS;
    let m = finish(&server, &plan);
    assert_eq!((m.lifetime.unfinished, m.requests.failed), (1, 0), "{:?}", m.errors);
    assert!(m.requests.oldest_unfinished_us >= Some(1_100_000), "{:?}", m.requests);
    assert!(m.requests.ok > 0);
    assert_eq!(m.lifetime.ok, server.answered());
}

/// A server that never answers ends no run late, and its requests time out alone.
#[test]
fn requests_that_time_out_are_given_up_one_by_one() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        // Every other request is not answered.
        let mut turn = 0;
        while let Some(asked) = h3.request() {
            turn += 1;
            if turn % 2 == 0 {
                h3.respond(&asked, &Answer::hello());
            }
        }
    });
    let m = finish(&server, &LoadPlan { timeout_ns: 300 * MS, ..server.multiplexed(4, 12) });
    assert_eq!((m.requests.ok, m.requests.failed, m.connection.reopened), (6, 6, 0), "{:?}", m.errors);
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..]), (Phase::Timeout, "response"));
    assert_eq!(server.stops(), [wire::H3_REQUEST_CANCELLED; 6]);
}

/// Many streams on many connections of several workers.
#[test]
fn a_thousand_streams_at_once() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        // Answered in tens, the last one first.
        while let Some(ten) = h3.requests(10) {
            for asked in ten.iter().rev() {
                h3.respond(asked, &Answer::hello().header("server", "scripted"));
            }
        }
    });
    let mut plan = LoadPlan { concurrency: 100, ..server.plan(10, Limit::DurationNs(300 * MS)) };
    (plan.threads, plan.drain_ns) = (2, 0);
    let m = finish(&server, &plan);
    assert_eq!((m.lifetime.failed, m.connection.opened), (0, 10), "{:?}", m.errors);
    assert!(m.lifetime.ok > 0 && m.lifetime.ok <= server.answered(), "{:?}", m.lifetime);
    assert!(m.lifetime.unfinished <= 1000, "{:?}", m.lifetime);
}
