//! Connections that end, in good order or not, with requests on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bench::load::plan::{Limit, LoadPlan};
use bench::results::Phase;

use crate::MS;
use crate::common::answer::Answer;
use crate::common::h3::endpoint::Options;
use crate::common::h3::{H3, wire};
use crate::common::{Scripted, errors, finish};

#[test]
fn a_goaway_after_every_fifty_requests_costs_no_request() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        for n in 1..=50 {
            let Some(asked) = h3.request() else { return };
            let mut answer = Answer::hello();
            answer.last = n == 50;
            h3.respond(&asked, &answer);
        }
    });
    let plan = LoadPlan { concurrency: 10, ..server.plan(2, Limit::Requests(1000)) };
    let m = finish(&server, &plan);
    assert_eq!((m.requests.ok, m.requests.failed), (1000, 0), "{:?}", m.errors);
    assert_eq!((server.answered(), m.requests.interrupted), (1000, 0));
    assert!(m.connection.reopened >= 18, "{:?}", m.connection);
    // What was begun and not on its way when GOAWAY came is replayed, and never seen here.
    assert!(server.ignored() <= m.lifetime.replayed, "{} {:?}", server.ignored(), m.lifetime);
    assert!(m.lifetime.replayed <= 10 * m.connection.reopened, "{:?}", m.lifetime);
    let goaways = m.multiplexing.map(|multiplexing| multiplexing.goaways);
    assert!((18..=20).contains(&goaways.unwrap_or(0)), "{goaways:?}");
}

/// RFC 9114 §5.2: the first GOAWAY only says that no stream is to follow, the second one which was the
/// last. In between nothing is lost.
#[test]
fn a_goaway_in_two_steps_replays_nothing() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        for _ in 0..50 {
            let Some(asked) = h3.request() else { return };
            h3.respond(&asked, &Answer::hello());
        }
        h3.goaway((1 << 62) - 4);
        if !h3.settle() {
            return;
        }
        h3.expect_no_new_streams();
        let mut last = 0;
        while h3.open_streams() > 0 {
            let Some(asked) = h3.request() else { return };
            last = asked.stream;
            if h3.open_streams() == 1 {
                h3.goaway(u64::from(last) + 4);
            }
            h3.respond(&asked, &Answer::hello());
        }
        assert!(last > 0, "a closed loop keeps streams open");
    });
    let m = finish(&server, &server.multiplexed(10, 500));
    assert_eq!((m.requests.ok, m.requests.failed), (500, 0), "{:?}", m.errors);
    assert_eq!((m.lifetime.replayed, server.ignored(), server.answered()), (0, 0, 500));
    assert!(m.connection.reopened >= 7, "{:?}", m.connection);
}

#[test]
fn streams_from_a_goaways_on_are_sent_again() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        if h3.index > 0 {
            return h3.always(&Answer::hello());
        }
        let Some(ten) = h3.requests(10) else { return };
        h3.goaway(ten[4].stream.into());
        for asked in &ten[..4] {
            h3.respond(asked, &Answer::hello());
        }
    });
    let m = finish(&server, &server.multiplexed(10, 100));
    assert_eq!((m.requests.ok, m.requests.failed), (100, 0), "{:?}", m.errors);
    assert_eq!((m.lifetime.replayed, server.ignored(), server.answered()), (6, 6, 100));
    assert_eq!((m.connection.reopened, m.requests.interrupted), (1, 0));
}

/// Requests below a GOAWAY's identifier may have been processed: they fail, and are not sent again.
#[test]
fn what_a_goaway_took_on_and_did_not_answer_is_interrupted() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        if h3.index > 0 {
            return h3.always(&Answer::hello());
        }
        let Some(ten) = h3.requests(10) else { return };
        h3.goaway(ten[4].stream.into());
        h3.respond(&ten[0], &Answer::hello());
        h3.flush();
        h3.settle();
        h3.close(wire::H3_NO_ERROR);
    });
    let m = finish(&server, &server.multiplexed(10, 100));
    assert_eq!((m.requests.ok, m.requests.failed), (97, 3), "{:?}", m.errors);
    assert_eq!((m.lifetime.replayed, server.answered(), m.requests.interrupted), (6, 97, 3));
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..]), (Phase::Interrupted, "closed-before-response"));
}

/// A server may end a connection with its first answer, and still serves them all.
#[test]
fn a_goaway_before_the_first_answer_costs_a_connection_for_each_request() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let Some(asked) = h3.request() else { return };
        h3.respond(&asked, &Answer::hello().last());
    });
    for keepalive in [true, false] {
        let m = finish(&server, &LoadPlan { keepalive, ..server.multiplexed(1, 20) });
        assert_eq!((m.requests.ok, m.requests.failed), (20, 0), "{:?}", m.errors);
        assert_eq!(m.connection.opened, 20);
    }
    assert_eq!(server.answered(), 40);
}

/// A server that never takes a request on is not asked for ever, nor hammered.
#[test]
fn a_server_that_only_goes_away_is_given_up() {
    for keepalive in [true, false] {
        let server = Scripted::http3(|h3| {
            h3.settings(&[]);
            if h3.request().is_some() {
                h3.goaway(0);
            }
        });
        let mut plan = LoadPlan { keepalive, ..server.plan(2, Limit::DurationNs(600 * MS)) };
        plan.drain_ns = 50 * MS;
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, m.lifetime.started), (0, 2), "{:?}", m.errors);
        assert!(m.connection.attempted <= 2 * 12, "{:?}", m.connection);
    }
}

/// The ways a server may end a connection under four requests: each fails once under the name of what
/// happened, and another connection takes over.
#[test]
fn a_connection_that_ends_under_its_requests_fails_them_by_name() {
    type Way = (&'static str, Phase, fn(&mut H3));
    let ways: [Way; 5] = [
        ("closed-before-response", Phase::Interrupted, |h3| h3.close(wire::H3_NO_ERROR)),
        ("closed-internal-error", Phase::Interrupted, |h3| h3.close(wire::H3_INTERNAL_ERROR)),
        ("closed-unknown", Phase::Interrupted, |h3| h3.close((1 << 62) - 1)),
        ("stateless-reset", Phase::Quic, H3::stateless_reset),
        ("idle-timeout", Phase::Quic, H3::vanish),
    ];
    for (kind, phase, end) in ways {
        let options = Options { idle: Duration::from_millis(400), ..Options::default() };
        let server = Scripted::quic(&options, move |h3| {
            h3.settings(&[]);
            if h3.index > 0 {
                return h3.always(&Answer::hello());
            }
            if h3.requests(4).is_some() {
                end(h3);
            }
        });
        let m = finish(&server, &server.multiplexed(4, 20));
        assert_eq!((errors(&m), m.requests.ok), (vec![(kind.to_owned(), 4)], 16), "{kind}");
        assert_eq!(m.errors[0].phase, phase, "{kind}");
        assert_eq!((m.connection.reopened, server.answered()), (1, 16), "{kind}");
        let interrupted = if phase == Phase::Interrupted { 4 } else { m.requests.interrupted };
        assert_eq!(m.requests.interrupted, interrupted, "{kind}");
    }
}

/// A server that falls silent ends no run late.
#[test]
fn a_server_that_vanishes_leaves_unfinished_requests() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        if h3.index == 0 && h3.requests(4).is_some() {
            return h3.vanish();
        }
        h3.always(&Answer::hello());
    });
    let mut plan = LoadPlan { concurrency: 4, ..server.plan(2, Limit::DurationNs(600 * MS)) };
    plan.drain_ns = 50 * MS;
    let m = crate::common::run(&plan);
    crate::common::check_identities(&m);
    assert_eq!((m.lifetime.unfinished, m.requests.failed), (4, 0), "{:?}", m.errors);
    assert!(m.requests.ok > 0);
}

/// A server that at every turn may answer, reject, reset, or go away: every request is accounted for, by
/// both sides in the same way.
#[test]
fn counts_equal_the_servers_own_through_everything() {
    for seed in 1..=6 {
        let counts: Arc<[AtomicU64; 3]> = Arc::default();
        let told = Arc::clone(&counts);
        let options = Options { streams: 12, ..Options::default() };
        let server = Scripted::quic(&options, move |h3| {
            let mut random = crate::common::random::Random::new(seed * 7919 + h3.index * 104_729);
            h3.settings(&[]);
            while let Some(asked) = h3.request() {
                let go_on = match random.below(20) {
                    0..=1 => {
                        told[0].fetch_add(1, Ordering::SeqCst);
                        h3.reset(asked.stream, wire::H3_REQUEST_REJECTED)
                    }
                    2 => {
                        told[1].fetch_add(1, Ordering::SeqCst);
                        h3.reset(asked.stream, wire::H3_INTERNAL_ERROR)
                    }
                    3 => {
                        h3.respond(&asked, &Answer::hello().last());
                        false
                    }
                    4 => {
                        told[2].fetch_add(1, Ordering::SeqCst);
                        h3.respond(&asked, &Answer::new(500, b"no"))
                    }
                    _ => h3.respond(&asked, &Answer::hello()),
                };
                if !go_on {
                    return;
                }
            }
        });
        let mut plan = LoadPlan { concurrency: 10, ..server.plan(3, Limit::Requests(1500)) };
        plan.threads = 1 + (seed % 2) as u32;
        let m = finish(&server, &plan);
        let [rejected, reset, unexpected] = [0, 1, 2].map(|at| counts[at].load(Ordering::SeqCst));
        let what = format!("{seed}: {:?} {:?}", m.lifetime, m.errors);
        assert_eq!(m.requests.started, 1500, "{what}");
        assert_eq!(m.lifetime.ok + unexpected, server.answered(), "{what}");
        assert_eq!((m.lifetime.failed, m.lifetime.interrupted), (reset + unexpected, reset), "{what}");
        assert!(m.lifetime.replayed >= rejected + server.ignored(), "{what} {}", server.ignored());
    }
}
