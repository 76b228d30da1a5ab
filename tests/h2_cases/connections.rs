//! Connections that end, in good order or not, with requests on them.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::load::plan::{Limit, LoadPlan};
use bench::results::{Phase, Protocol};

use crate::MS;
use crate::common::answer::{Answer, Peer};
use crate::common::{self, HTTP2, Scripted, Socket, finish, frame};

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

/// The same for a run that ends by time: what is to be sent again when the window closes is sent and
/// answered in the drain.
#[test]
fn connections_that_end_keep_a_timed_run_going() {
    for protocol in HTTP2 {
        let server = Scripted::http2(protocol, |h2| {
            h2.settings(&[]);
            for n in 1..=20 {
                let Some(asked) = h2.request() else { return };
                let mut answer = Answer::hello();
                answer.last = n == 20;
                h2.respond(&asked, &answer);
            }
        });
        let mut plan = LoadPlan { concurrency: 10, ..server.plan(2, Limit::DurationNs(1200 * MS)) };
        (plan.warmup_ns, plan.drain_ns) = (100 * MS, 10_000 * MS);
        let m = finish(&server, &plan);
        assert_eq!((m.lifetime.failed, m.lifetime.unfinished), (0, 0), "{protocol:?}: {:?}", m.errors);
        assert_eq!(m.lifetime.ok, server.answered());
        assert!(m.seconds.len() == 2 && m.seconds.iter().all(|second| second.ok > 0), "{:?}", m.seconds);
        assert_eq!(m.connection.opened, server.accepted());
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
        let m = finish(&server, &server.multiplexed(10, 500));
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
                    h2.always(&Answer::hello());
                }
            });
            let m = finish(&server, &server.multiplexed(10, 100));
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
                h2.always(&Answer::hello());
            }
        });
        let m = finish(&server, &server.multiplexed(10, 100));
        assert_eq!((m.requests.ok, m.requests.failed), (97, 3), "{protocol:?}: {:?}", m.errors);
        assert_eq!((m.lifetime.replayed, server.answered(), m.requests.interrupted), (6, 97, 3));
        let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..]), (Phase::Interrupted, "closed-before-response"));
        assert!(error.example.as_ref().is_some_and(|text| text.contains("internal-error")), "{error:?}");
    }
}

/// Requests that are to be sent again, and nobody is there any more: the run ends, and they are accounted
/// for.
#[test]
fn a_server_that_is_gone_leaves_nothing_uncounted() {
    for limit in [Limit::Requests(10), Limit::DurationNs(500 * MS)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("{e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("{e}"));
        let serving = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap_or_else(|e| panic!("{e}"));
            drop(listener);
            common::serve_one(Socket::Tcp(stream), Protocol::H2c, &|peer| {
                let Peer::Two(h2) = peer else { panic!("HTTP/2 was asked for") };
                let Some(five) = h2.requests(5) else { return };
                h2.goaway(five[1].stream, frame::NO_ERROR);
                for asked in &five[..2] {
                    h2.respond(asked, &Answer::hello());
                }
            });
        });
        let mut plan = common::plan(Protocol::H2c, &address.to_string(), 1, limit);
        (plan.concurrency, plan.drain_ns) = (5, 50 * MS);
        let m = common::run(&plan);
        common::check_identities(&m);
        assert!(serving.join().is_ok());
        assert_eq!((m.requests.ok, m.requests.started), (2, 5), "{limit:?}: {:?}", m.errors);
        assert_eq!(m.requests.failed + m.requests.unfinished, 3, "{limit:?}: {:?}", m.errors);
        assert!(m.errors.iter().any(|e| e.kind == "ECONNREFUSED"), "{limit:?}: {:?}", m.errors);
        assert!(m.connection.attempted < 20, "{limit:?}: {:?}", m.connection);
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
            let m = finish(&server, &LoadPlan { keepalive, ..server.multiplexed(1, 20) });
            assert_eq!((m.requests.ok, m.requests.failed), (20, 0), "{protocol:?}: {:?}", m.errors);
            assert_eq!(m.connection.opened, 20, "{protocol:?}");
        }
        assert_eq!(server.answered(), 40);
    }
}

/// A server that never takes a request on is not asked for ever, nor hammered.
#[test]
fn a_server_that_only_goes_away_is_given_up() {
    for protocol in HTTP2 {
        for keepalive in [true, false] {
            let server = Scripted::http2(protocol, |h2| {
                h2.settings(&[]);
                if h2.request().is_some() {
                    h2.goaway(0, frame::NO_ERROR);
                }
            });
            let mut plan = LoadPlan { keepalive, ..server.plan(2, Limit::DurationNs(600 * MS)) };
            plan.drain_ns = 50 * MS;
            let m = finish(&server, &plan);
            assert_eq!((m.requests.ok, m.lifetime.started), (0, 2), "{protocol:?}: {:?}", m.errors);
            assert!(m.connection.attempted <= 2 * 12, "{protocol:?}: {:?}", m.connection);
        }
    }
}

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
                        3 => {
                            h2.respond(&asked, &Answer::hello().last());
                            false
                        }
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
