//! Whole runs over HTTP/3 through a path that loses, delays, reorders, doubles and spoils datagrams: they
//! finish, and nothing is lost by either side's books.

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use bench::load::plan::{Limit, LoadPlan};
use bench::results::{Measurement, Protocol};
use common::answer::Answer;
use common::books::pattern;
use common::h3::endpoint::Options;
use common::relay::{Impairment, Relay};
use common::{Scripted, base64, check_identities};

const MS: u64 = 1_000_000;

/// One datagram in a hundred is lost, one doubled, one overtaken, one in five hundred spoilt, and each is
/// 20 ms under way.
const PATH: Impairment = Impairment {
    seed: 1,
    loss: 10,
    duplication: 10,
    reordering: 10,
    corruption: 2,
    delay: Duration::from_millis(20),
};

/// A server that answers every request with `answer` and checks its body, and a bad path to it.
fn server(options: &Options, body: Vec<u8>, answer: Answer) -> Scripted {
    Scripted::quic(options, move |h3| {
        h3.settings(&[]);
        while let Some(asked) = h3.request() {
            assert!(asked.body == body, "the body arrives as it is");
            if !h3.respond(&asked, &answer) {
                return;
            }
        }
    })
}

fn through(relay: &Relay, connections: u32, concurrency: u32, limit: Limit) -> LoadPlan {
    let plan = common::plan(Protocol::H3, &relay.address.to_string(), connections, limit);
    LoadPlan { concurrency, connect_timeout_ns: 20_000 * MS, drain_ns: 30_000 * MS, ..plan }
}

/// Nothing failed, and both sides counted the same; the path did what it was to do.
fn nothing_is_lost(m: &Measurement, server: &Scripted, relay: &Relay) {
    check_identities(m);
    server.join();
    assert_eq!((m.lifetime.failed, m.lifetime.unfinished), (0, 0), "{:?} {:?}", m.errors, m.quic);
    assert_eq!((m.lifetime.ok, m.lifetime.ok), (server.answered(), server.requests()), "{:?}", m.errors);
    assert_eq!(m.connection.failed, 0, "{:?}", m.errors);
    // A first flight that is doubled on its way may look like another client's.
    assert!(m.connection.opened <= server.accepted(), "{:?}", m.connection);
    assert!(relay.tally.lost.load(Ordering::Relaxed) > 0);
}

#[test]
fn small_requests_by_the_hundred() {
    let server = server(&Options::default(), Vec::new(), Answer::hello());
    let relay = Relay::start(server.address, PATH.policy());
    let m = common::run(&through(&relay, 4, 10, Limit::Requests(1500)));
    nothing_is_lost(&m, &server, &relay);
    assert_eq!((m.requests.ok, m.connection.opened), (1500, 4));
    let latency = m.latency_us.expect("samples");
    assert!(latency.min >= 40_000.0, "a trip takes 40 ms: {latency:?}");
    let quic = m.quic.expect("it ran over QUIC");
    assert!(quic.packets_lost > 0, "{quic:?}");
}

/// Limits that are small beside the path, so that credit is lost as well.
#[test]
fn bodies_both_ways_in_small_windows() {
    let body = pattern(60_000);
    let options = Options { streams: 5, stream_window: 20_000, window: 50_000, ..Options::default() };
    let server = server(&options, body.clone(), Answer::new(200, &body).trailer("x-sum", "1"));
    let relay = Relay::start(server.address, Impairment { seed: 2, ..PATH }.policy());
    let mut plan = through(&relay, 3, 8, Limit::Requests(90));
    plan.request.method = "POST".into();
    plan.request.body = base64(&body);
    plan.expect.body = Some(base64(&body));
    let m = common::run(&plan);
    nothing_is_lost(&m, &server, &relay);
    assert_eq!((m.requests.ok, m.connection.opened), (90, 3));
}

/// Handshakes lose datagrams as well, with Retry and without.
#[test]
fn a_connection_for_each_request() {
    for retry in [false, true] {
        // The word with which a client ends a connection may be lost as well.
        let options = Options { retry, idle: Duration::from_secs(5), ..Options::default() };
        let server = server(&options, Vec::new(), Answer::hello());
        let relay = Relay::start(server.address, Impairment { seed: 3, loss: 30, ..PATH }.policy());
        let mut plan = through(&relay, 10, 1, Limit::Requests(100));
        plan.keepalive = false;
        let m = common::run(&plan);
        nothing_is_lost(&m, &server, &relay);
        assert_eq!((m.requests.ok, m.connection.opened), (100, 100));
    }
}

/// A run by time ends in time, and what is under way then is still answered.
#[test]
fn a_timed_run_with_key_updates() {
    let server = server(&Options::default(), Vec::new(), Answer::new(200, &pattern(5000)));
    let relay = Relay::start(server.address, Impairment { seed: 4, loss: 20, ..PATH }.policy());
    let mut plan = through(&relay, 4, 5, Limit::DurationNs(1500 * MS));
    plan.quic.key_update_after = Some(50);
    let m = common::run(&plan);
    nothing_is_lost(&m, &server, &relay);
    assert!(m.requests.ok > 0);
    assert!(m.quic.expect("it ran over QUIC").key_updates > 0);
}
