//! Sessions that are resumed and connections that are replaced, over TCP: what kind of handshake each
//! connection has, and how many requests it carries.

mod common;

use std::net::TcpListener;
use std::sync::Arc;

use bench::load::plan::{Limit, LoadPlan};
use bench::load::{self, Control};
use bench::results::{Handshakes, Protocol, Resumption};
use common::answer::Answer;
use common::{EVERY, Scripted, as_peer, check_identities, finish, is_http2, run};
use rustls::version::{TLS12, TLS13};

const TLS: [Protocol; 2] = [Protocol::H1s, Protocol::H2];
const MS: u64 = 1_000_000;

/// A server with these changes to the settings of rustls, which remembers the last 256 sessions.
fn server(protocol: Protocol, change: impl Fn(&mut rustls::ServerConfig)) -> Scripted {
    let alpn: &[u8] = if is_http2(protocol) { b"h2" } else { b"http/1.1" };
    let mut config = (*common::tls_config(&[alpn], rustls::ALL_VERSIONS)).clone();
    change(&mut config);
    serve(protocol, config)
}

fn serve(protocol: Protocol, config: rustls::ServerConfig) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = move |conn: &mut _| as_peer(conn, protocol, &|peer| peer.always(&Answer::hello()));
    Scripted::listen(listener, protocol, Some(Arc::new(config)), script)
}

/// Full and resumed handshakes of `requests` over `connections` at a time, each on a connection of its
/// own.
fn handshakes(server: &Scripted, resumption: Resumption, connections: u32, requests: u64) -> (u64, u64) {
    let mut plan = server.plan(connections, Limit::Requests(requests));
    (plan.keepalive, plan.resumption) = (false, resumption);
    let m = run(&plan);
    check_identities(&m);
    assert_eq!((m.requests.ok, m.requests.failed), (requests, 0), "{:?}", m.errors);
    let Handshakes { full, resumed, early_accepted, early_rejected } = m.connection.handshakes.unwrap();
    assert_eq!((early_accepted, early_rejected), (0, 0));
    (full, resumed)
}

#[test]
fn every_handshake_is_a_full_one_unless_asked_otherwise() {
    for protocol in TLS {
        let server = server(protocol, |_| ());
        assert_eq!(handshakes(&server, Resumption::Off, 3, 30), (30, 0), "{protocol:?}");
    }
}

#[test]
fn all_but_the_first_of_each_connection_resume() {
    type Change = fn(&mut rustls::ServerConfig);
    let changes: [(&str, Change); 3] = [
        ("two tickets, remembered by the server", |_| ()),
        ("one", |config| config.send_tls13_tickets = 1),
        ("tickets that hold the session", |config| {
            config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
        }),
    ];
    for protocol in TLS {
        for (what, change) in changes {
            let server = server(protocol, change);
            assert_eq!(handshakes(&server, Resumption::Ticket, 1, 20), (1, 19), "{protocol:?}: {what}");
            // Connections that begin together find nothing to resume; each leaves a ticket for the next.
            assert_eq!(handshakes(&server, Resumption::Ticket, 4, 20), (4, 16), "{protocol:?}: {what}");
        }
    }
}

#[test]
fn tls_1_2_sessions_are_resumed_too() {
    for protocol in TLS {
        for ticketer in [false, true] {
            let alpn: &[u8] = if is_http2(protocol) { b"h2" } else { b"http/1.1" };
            let mut config = (*common::tls_config(&[alpn], &[&TLS12])).clone();
            if ticketer {
                config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
            }
            let server = serve(protocol, config);
            assert_eq!(handshakes(&server, Resumption::Ticket, 1, 20), (1, 19), "{protocol:?} {ticketer}");
            assert_eq!(handshakes(&server, Resumption::Off, 1, 5), (5, 0), "{protocol:?} {ticketer}");
        }
    }
}

#[test]
fn without_tickets_there_is_nothing_to_resume() {
    for protocol in TLS {
        let alpn: &[u8] = if is_http2(protocol) { b"h2" } else { b"http/1.1" };
        let mut config = (*common::tls_config(&[alpn], &[&TLS13])).clone();
        config.send_tls13_tickets = 0;
        let server = serve(protocol, config);
        assert_eq!(handshakes(&server, Resumption::Ticket, 1, 10), (10, 0), "{protocol:?}");
    }
}

/// Two tickets for each connection, of which one is used: a server that remembers 256 forgets the oldest.
#[test]
fn the_newest_ticket_is_used_since_the_oldest_may_be_forgotten() {
    let server = server(Protocol::H1s, |_| ());
    assert_eq!(handshakes(&server, Resumption::Ticket, 1, 400), (1, 399));
}

#[test]
fn handshakes_of_the_window_are_counted() {
    for protocol in TLS {
        let server = server(protocol, |_| ());
        let mut plan = server.plan(2, Limit::Requests(10));
        plan.resumption = Resumption::Ticket;
        let m = run(&plan);
        // Both connections were there before it opened.
        assert_eq!(m.connection.handshakes, Some(Handshakes::default()), "{protocol:?}");
        assert_eq!(m.connection.first_response_us, None, "{protocol:?}");
    }
    let server = Scripted::serve(Protocol::H1, |peer| peer.always(&Answer::hello()));
    assert_eq!(run(&server.plan(1, Limit::Requests(1))).connection.handshakes, None);
}

#[test]
fn a_connection_carries_as_many_requests_as_the_plan_says() {
    for protocol in EVERY {
        let cases = [
            (1, 1, 3, 30),
            (1, 1, 4, 30),
            (1, 1, 1, 5),
            (1, 1, 100, 30),
            (3, 1, 2, 60),
            (1, 4, 10, 30),
            (1, 4, 3, 30),
        ];
        for (connections, concurrency, most, requests) in cases {
            if concurrency > 1 && !protocol.multiplexes() {
                continue;
            }
            let server = Scripted::serve(protocol, move |peer| {
                let mut carried = 0;
                while let Some(asked) = peer.request() {
                    carried += 1;
                    assert!(carried <= most, "{carried} requests on a connection of {most}");
                    peer.answer(&asked, &Answer::hello());
                }
            });
            let mut plan = server.plan(connections, Limit::Requests(requests));
            plan.requests_per_connection = Some(most);
            plan.concurrency = concurrency;
            let m = finish(&server, &plan);
            let what = format!(
                "{protocol:?} {connections}x{concurrency}, {most}: {:?} {:?}",
                m.connection, m.errors
            );
            assert_eq!((m.requests.ok, m.requests.failed), (requests, 0), "{what}");
            let (needed, opened) = (requests.div_ceil(u64::from(most)), m.connection.opened);
            // The first ones were begun before the window.
            let measured = m.connection.first_response_us.map_or(0, |latency| latency.count);
            if connections == 1 {
                assert_eq!((opened, server.accepted(), measured), (needed, needed, needed - 1), "{what}");
            } else {
                // The budget may be used up by others while one connects.
                assert!((opened..=m.connection.attempted).contains(&server.accepted()), "{what}");
                assert!((needed..needed + u64::from(connections)).contains(&opened), "{what}");
                assert!(measured <= opened - u64::from(connections), "{what}");
            }
            assert_eq!((m.connection.reopened, m.connection.failed), (0, 0), "{what}");
            assert_eq!(m.requests_per_connection, Some(most));
        }
    }
}

#[test]
fn replaced_connections_resume_as_well() {
    for protocol in TLS {
        let server = server(protocol, |_| ());
        let mut plan = server.plan(1, Limit::Requests(30));
        (plan.requests_per_connection, plan.resumption) = (Some(3), Resumption::Ticket);
        let m = run(&plan);
        // The first of ten was there before the window.
        let handshakes = Some(Handshakes { resumed: 9, ..Handshakes::default() });
        assert_eq!(m.connection.handshakes, handshakes, "{protocol:?}: {:?}", m.connection);
    }
}

#[test]
fn connections_are_replaced_all_through_a_window_and_its_warm_up() {
    for protocol in EVERY {
        for most in [Some(2), None] {
            let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
            let mut plan = server.plan(2, Limit::DurationNs(100 * MS));
            (plan.warmup_ns, plan.drain_ns) = (50 * MS, 10_000 * MS);
            plan.requests_per_connection = most;
            let m = finish(&server, &plan);
            assert_eq!(m.lifetime.ok, server.requests(), "{protocol:?}: {:?}", m.errors);
            assert_eq!((m.lifetime.failed, m.lifetime.unfinished), (0, 0), "{protocol:?}: {:?}", m.errors);
            // Some may have been on their way up at the end.
            let accepted = m.connection.opened..=m.connection.attempted;
            assert!(accepted.contains(&server.accepted()), "{protocol:?}: {:?}", m.connection);
            let Some(first) = most.and(m.connection.first_response_us) else {
                assert_eq!(m.connection.opened, 2, "{protocol:?}");
                continue;
            };
            assert!(first.count > 0 && first.count < m.connection.opened, "{protocol:?}: {first:?}");
        }
    }
}

#[test]
fn a_connection_for_each_request_has_its_first_response_measured() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        let plan = LoadPlan { keepalive: false, ..server.plan(2, Limit::Requests(20)) };
        let m = finish(&server, &plan);
        let (first, latency) = (m.connection.first_response_us.unwrap(), m.latency_us.unwrap());
        // Request and connection begin together.
        assert_eq!((first.count, first.min, first.max), (20, latency.min, latency.max), "{protocol:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    type Change = fn(&mut LoadPlan);
    let cases: [(Protocol, Change, &str); 6] = [
        (Protocol::H1, |p| p.requests_per_connection = Some(0), "at least one request"),
        (Protocol::H2c, |p| (p.requests_per_connection, p.keepalive) = (Some(2), false), "carries one"),
        (Protocol::H1, |p| p.resumption = Resumption::Ticket, "without TLS"),
        (Protocol::H2c, |p| p.resumption = Resumption::ZeroRtt, "without TLS"),
        (Protocol::H1s, |p| p.resumption = Resumption::ZeroRtt, "QUIC only"),
        (Protocol::H2, |p| p.resumption = Resumption::ZeroRtt, "QUIC only"),
    ];
    for (protocol, change, part) in cases {
        let mut plan = common::plan(protocol, "127.0.0.1:1", 1, Limit::Requests(1));
        change(&mut plan);
        let error = load::run(&plan, &Control::new(), &mut |_| ()).expect_err("refused");
        assert!(error.to_string().contains(part), "{protocol:?}: {error}");
    }
}
