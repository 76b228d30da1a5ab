//! How many requests a connection may carry: settings that are waited for and change, refusals, streams
//! without an answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bench::load::plan::{Limit, LoadPlan};
use bench::results::Phase;

use crate::common::answer::Answer;
use crate::common::hpack::{Encoder, Style};
use crate::common::{HTTP2, Scripted, finish, frame};
use crate::{MS, all_ok};

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
            let m = finish(&server, &LoadPlan { keepalive, ..server.multiplexed(concurrency, 40) });
            assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{protocol:?}: {:?}", m.errors);
            assert_eq!((m.requests.started, m.requests.replayed), (40, 7));
            assert_eq!((server.requests(), server.answered()), (47, 40));
            assert_eq!(m.multiplexing.map(|multiplexing| multiplexing.refused), Some(7));
            assert_eq!(m.connection.opened, if keepalive { 1 } else { 47 });
        }
    }
}

/// The latency of a request that is sent again runs from its first send. The server thinks before it
/// refuses; only what cannot be shorter is asserted.
#[test]
fn latency_runs_from_the_first_send() {
    for protocol in HTTP2 {
        for goaway in [true, false] {
            let first = AtomicBool::new(true);
            let server = Scripted::http2(protocol, move |h2| {
                h2.settings(&[]);
                while let Some(asked) = h2.request() {
                    if first.swap(false, Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(60));
                        if goaway {
                            h2.goaway(0, frame::NO_ERROR);
                            return;
                        }
                        h2.reset(asked.stream, frame::REFUSED_STREAM);
                    } else {
                        h2.respond(&asked, &Answer::hello());
                    }
                }
            });
            let m = finish(&server, &server.multiplexed(1, 1));
            assert_eq!((m.requests.ok, m.requests.replayed), (1, 1), "{protocol:?}: {:?}", m.errors);
            let latency = m.latency_us.expect("a sample");
            assert!(latency.min >= 60_000.0, "{protocol:?} {goaway}: {latency:?}");
        }
    }
}

/// Without SETTINGS a connection never carries a second request, so that one that timed out is replaced.
#[test]
fn settings_that_never_come_cost_the_connection() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| while h2.request().is_some() {});
        let plan = LoadPlan { timeout_ns: 200 * MS, ..server.multiplexed(2, 3) };
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, m.requests.failed), (0, 3), "{protocol:?}: {:?}", m.errors);
        assert!(m.connection.attempted >= 3, "{protocol:?}: {:?}", m.connection);
        let of =
            |kind: &str| m.errors.iter().filter(|e| e.kind == kind).map(|e| (e.phase, e.requests)).next();
        assert_eq!(of("response"), Some((Phase::Timeout, 3)), "{protocol:?}: {:?}", m.errors);
        assert_eq!(of("settings"), Some((Phase::Timeout, 0)), "{protocol:?}: {:?}", m.errors);
    }
}

#[test]
fn a_server_that_allows_no_streams_is_named() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]);
            while h2.request().is_some() {}
        });
        let m = finish(&server, &server.plan(1, Limit::DurationNs(2600 * MS)));
        assert_eq!((m.requests.ok, m.requests.failed), (0, 0), "{protocol:?}: {:?}", m.errors);
        let named = m.errors.iter().any(|e| (e.phase, &e.kind[..]) == (Phase::Refused, "no-streams-allowed"));
        assert!(named, "{protocol:?}: {:?}", m.errors);
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
        let m = finish(&server, &server.multiplexed(2, 4));
        assert_eq!((m.requests.ok, m.requests.failed), (0, 4), "{protocol:?}: {:?}", m.errors);
        let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..], error.count), (Phase::Refused, "refused-stream", 4));
        assert_eq!(server.requests(), 4 + m.lifetime.replayed);
    }
}

/// A request that waits to be sent again runs out of time like any other.
#[test]
fn a_refused_request_that_may_not_be_sent_again_is_late() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            let Some(asked) = h2.request() else { return };
            h2.settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]);
            h2.reset(asked.stream, frame::REFUSED_STREAM);
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &LoadPlan { timeout_ns: 200 * MS, ..server.multiplexed(3, 1) });
        assert_eq!((m.requests.ok, m.requests.failed, server.answered()), (0, 1, 0), "{protocol:?}");
        let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..]), (Phase::Timeout, "response"));
        assert_eq!((m.requests.replayed, m.connection.reopened), (0, 0), "{protocol:?}");
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
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(10, 50));
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
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(100, 700));
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
            h2.always(&Answer::hello());
        });
        let m = finish(&server, &server.multiplexed(100, 400));
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
            h2.always(&Answer::hello());
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

/// Many streams on many connections of several workers.
#[test]
fn a_thousand_streams_at_once() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            h2.encoder = Encoder::new(Style::Indexed);
            // Answered in tens, the last one first.
            while let Some(ten) = h2.requests(10) {
                for asked in ten.iter().rev() {
                    h2.respond(asked, &Answer::hello().header("server", "scripted"));
                }
            }
        });
        let mut plan = LoadPlan { concurrency: 100, ..server.plan(10, Limit::DurationNs(300 * MS)) };
        (plan.threads, plan.drain_ns) = (2, 0);
        let m = finish(&server, &plan);
        assert_eq!((m.lifetime.failed, m.connection.opened), (0, 10), "{protocol:?}: {:?}", m.errors);
        assert!(m.lifetime.ok > 0 && m.lifetime.ok <= server.answered(), "{:?}", m.lifetime);
        assert!(m.lifetime.unfinished <= 1000, "{:?}", m.lifetime);
    }
}
