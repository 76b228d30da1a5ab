//! Handshakes: full, resumed and with early data, address validation, versions, and servers that speak
//! something else or nothing.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use bench::load::plan::{Limit, LoadPlan};
use bench::results::{Handshakes, Measurement, Phase, Protocol, Resumption};

use crate::MS;
use crate::common::answer::Answer;
use crate::common::h3::endpoint::{Options, Sessions};
use crate::common::relay::{Relay, Way, at_once};
use crate::common::{self, Scripted, check_identities, finish};

/// So many requests, one after the other, each on a connection of its own.
const COUNT: u64 = 20;

fn fresh(sessions: Sessions, resumption: Resumption) -> (Measurement, Scripted) {
    let options = Options { sessions, ..Options::default() };
    let server = Scripted::quic(&options, |h3| {
        h3.settings(&[]);
        h3.always(&Answer::hello());
    });
    let plan = LoadPlan { keepalive: false, resumption, ..server.plan(1, Limit::Requests(COUNT)) };
    let m = finish(&server, &plan);
    assert_eq!((m.requests.ok, m.requests.failed), (COUNT, 0), "{sessions:?} {resumption:?}: {:?}", m.errors);
    assert_eq!((server.requests(), server.accepted()), (COUNT, COUNT), "{sessions:?} {resumption:?}");
    assert_eq!(m.connection.opened, COUNT);
    (m, server)
}

fn handshakes(m: &Measurement) -> Handshakes {
    m.connection.handshakes.expect("HTTP/3 is never without TLS")
}

/// What is not asked for is not done, and what a server does not give is not had.
#[test]
fn every_handshake_is_a_full_one_unless_asked_otherwise() {
    for (sessions, resumption) in [
        (Sessions::Early, Resumption::Off),
        (Sessions::None, Resumption::Ticket),
        (Sessions::None, Resumption::ZeroRtt),
    ] {
        let (m, server) = fresh(sessions, resumption);
        let full = Handshakes { full: COUNT, ..Handshakes::default() };
        assert_eq!((handshakes(&m), server.early()), (full, 0), "{sessions:?} {resumption:?}");
    }
}

/// A resumption test never slips into 0-RTT.
#[test]
fn tickets_resume_all_but_the_first() {
    for sessions in [Sessions::Resume, Sessions::Early] {
        let (m, server) = fresh(sessions, Resumption::Ticket);
        let expected = Handshakes { full: 1, resumed: COUNT - 1, ..Handshakes::default() };
        assert_eq!((handshakes(&m), server.early()), (expected, 0), "{sessions:?}");
    }
}

#[test]
fn early_data_is_sent_with_all_but_the_first() {
    let (m, server) = fresh(Sessions::Early, Resumption::ZeroRtt);
    let expected = Handshakes { full: 1, resumed: COUNT - 1, early_accepted: COUNT - 1, early_rejected: 0 };
    assert_eq!(handshakes(&m), expected);
    // The server counts what it reads before the handshake is complete, which may be quicker.
    assert!((1..COUNT).contains(&server.early()), "{}", server.early());
    // A ticket that allows no early data is used for what it allows.
    let (m, server) = fresh(Sessions::Resume, Resumption::ZeroRtt);
    let expected = Handshakes { full: 1, resumed: COUNT - 1, ..Handshakes::default() };
    assert_eq!((handshakes(&m), server.early()), (expected, 0));
}

/// What was sent early in vain is sent once more, and counted once.
#[test]
fn early_data_that_is_rejected_is_sent_once_more() {
    for sessions in [Sessions::RefuseEarly, Sessions::Forget] {
        let (m, server) = fresh(sessions, Resumption::ZeroRtt);
        let seen = handshakes(&m);
        assert!(seen.early_rejected > 0, "{sessions:?}: {seen:?}");
        assert_eq!(seen.full + seen.resumed, COUNT, "{sessions:?}: {seen:?}");
        assert!(server.early() <= seen.early_accepted, "{sessions:?}: {seen:?} {}", server.early());
        assert_eq!((m.requests.started, m.requests.replayed), (COUNT, 0), "{sessions:?}");
        if sessions == Sessions::Forget {
            assert!(seen.full >= COUNT / 2, "{seen:?}");
        } else {
            assert_eq!(seen.full, 1, "{seen:?}");
        }
    }
}

/// Many connections at a time, several requests on each.
#[test]
fn connections_are_replaced_and_resumed() {
    let options = Options { sessions: Sessions::Early, ..Options::default() };
    for resumption in [Resumption::Off, Resumption::Ticket, Resumption::ZeroRtt] {
        let server = Scripted::quic(&options, |h3| {
            h3.settings(&[]);
            h3.always(&Answer::hello());
        });
        let mut plan = LoadPlan { resumption, ..server.plan(4, Limit::Requests(120)) };
        plan.requests_per_connection = Some(3);
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, m.requests.failed), (120, 0), "{resumption:?}: {:?}", m.errors);
        assert_eq!((server.requests(), m.connection.opened), (120, server.accepted()), "{resumption:?}");
        assert!((40..=44).contains(&m.connection.opened), "{resumption:?}: {:?}", m.connection);
        let seen = handshakes(&m);
        match resumption {
            Resumption::Off => assert_eq!((seen.resumed, server.early()), (0, 0)),
            Resumption::Ticket => assert!(seen.resumed >= 30 && server.early() == 0, "{seen:?}"),
            Resumption::ZeroRtt => {
                assert!(seen.early_accepted >= 30 && seen.early_rejected == 0, "{seen:?}");
                assert!((1..=seen.early_accepted).contains(&server.early()), "{}", server.early());
            }
        }
    }
}

/// RFC 9000 §8.1.2: a token is asked for before a connection is made.
#[test]
fn a_retry_is_followed() {
    let options = Options { retry: true, ..Options::default() };
    let server = Scripted::quic(&options, |h3| {
        h3.settings(&[]);
        h3.always(&Answer::hello());
    });
    let m = finish(&server, &LoadPlan { concurrency: 3, ..server.plan(4, Limit::Requests(100)) });
    assert_eq!((m.requests.ok, m.connection.opened), (100, 4), "{:?}", m.errors);
    assert_eq!(m.quic.map(|quic| quic.retries), Some(4));
}

/// RFC 9000 §17.2.5.2: after one Retry no other is taken, nor after any other packet of the server's.
#[test]
fn a_second_retry_is_ignored() {
    let options = Options { retry: true, ..Options::default() };
    let server = Scripted::quic(&options, |h3| {
        h3.settings(&[]);
        h3.always(&Answer::hello());
    });
    let mut retry = Vec::new();
    let relay = Relay::start(server.address, move |way, datagram| {
        let is_retry = way == Way::ToClient && datagram[0] & 0xb0 == 0xb0 && datagram[1..5] == [0, 0, 0, 1];
        if is_retry {
            retry = datagram.to_vec();
            return vec![at_once(datagram), at_once(datagram)];
        }
        match way {
            Way::ToClient if !retry.is_empty() => vec![at_once(&retry), at_once(datagram), at_once(&retry)],
            _ => vec![at_once(datagram)],
        }
    });
    let m = common::run(&common::plan(Protocol::H3, &relay.address.to_string(), 1, Limit::Requests(50)));
    check_identities(&m);
    assert_eq!((m.requests.ok, m.connection.opened, m.connection.failed), (50, 1, 0), "{:?}", m.errors);
    let quic = m.quic.expect("it ran over QUIC");
    assert_eq!((quic.retries, server.accepted()), (1, 1));
    assert!(relay.tally.added.load(std::sync::atomic::Ordering::Relaxed) > 1);
}

/// A Version Negotiation packet in answer to `initial`, with these versions (RFC 9000 §17.2.1).
fn version_negotiation(initial: &[u8], versions: &[u32]) -> Vec<u8> {
    let destination = usize::from(initial[5]);
    let source = usize::from(initial[6 + destination]);
    let mut packet = vec![0xca, 0, 0, 0, 0, source as u8];
    packet.extend_from_slice(&initial[7 + destination..][..source]);
    packet.push(destination as u8);
    packet.extend_from_slice(&initial[6..][..destination]);
    versions.iter().for_each(|version| packet.extend_from_slice(&version.to_be_bytes()));
    packet
}

#[test]
fn a_server_of_other_versions_is_named_with_them() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("a bound socket has an address");
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("not zero");
    let answering = std::thread::spawn(move || {
        let mut datagram = [0; 2000];
        while let Ok((length, client)) = socket.recv_from(&mut datagram) {
            let answer = version_negotiation(&datagram[..length], &[0x1a2a_3a4a]);
            socket.send_to(&answer, client).expect("loopback takes a datagram");
        }
    });
    let m = common::run(&common::plan(Protocol::H3, &address.to_string(), 2, Limit::Requests(10)));
    check_identities(&m);
    assert_eq!((m.requests.ok, m.negotiated.is_none()), (0, true));
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..]), (Phase::Quic, "version-negotiation"));
    assert!(error.example.as_ref().is_some_and(|text| text.contains("0x1a2a3a4a")), "{error:?}");
    assert_eq!(m.connection.failed, error.count);
    assert!(answering.join().is_ok());
}

/// RFC 9000 §6.2: one that lists the version in use, one that comes after another packet of the server's,
/// and one for another connection.
#[test]
fn version_negotiation_that_means_nothing_is_ignored() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        h3.always(&Answer::hello());
    });
    let (mut initial, mut answers) = (Vec::new(), 0);
    let relay = Relay::start(server.address, move |way, datagram| {
        if way == Way::ToServer {
            if initial.is_empty() {
                initial = datagram.to_vec();
            }
            return vec![at_once(datagram)];
        }
        answers += 1;
        let mut foreign = version_negotiation(&initial, &[0x1a2a_3a4a]);
        foreign[6] ^= 1;
        let listing = version_negotiation(&initial, &[0x1a2a_3a4a, 1]);
        let mut fate = vec![at_once(&foreign), at_once(&listing), at_once(datagram)];
        if answers > 1 {
            fate.push(at_once(&version_negotiation(&initial, &[0x1a2a_3a4a])));
        }
        fate
    });
    let m = common::run(&common::plan(Protocol::H3, &relay.address.to_string(), 1, Limit::Requests(20)));
    check_identities(&m);
    assert_eq!((m.requests.ok, m.connection.opened, m.connection.failed), (20, 1, 0), "{:?}", m.errors);
}

#[test]
fn a_server_of_another_protocol_is_a_failure_that_says_so() {
    const OFFERS: [&[&[u8]]; 3] = [&[b"h2"], &[b"hq-interop", b"h3-29"], &[]];
    for alpn in OFFERS {
        let server = Scripted::quic(&Options { alpn, ..Options::default() }, |h3| h3.ignore());
        let m = finish(&server, &server.plan(2, Limit::Requests(10)));
        assert_eq!((m.requests.ok, m.negotiated), (0, None));
        let [error] = &m.errors[..] else { panic!("{alpn:?}: {:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..]), (Phase::Tls, "wrong-protocol"), "{alpn:?}");
    }
}

#[test]
fn a_server_that_turns_connections_away_is_named() {
    let server = Scripted::quic(&Options { refuse: true, ..Options::default() }, |_| ());
    let m = finish(&server, &server.plan(2, Limit::Requests(10)));
    assert_eq!((m.requests.ok, m.connection.opened), (0, 0));
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..]), (Phase::Quic, "closed-connection-refused"));
}

/// Over UDP nobody is there.
#[test]
fn a_port_of_tcp_alone_ends_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address").to_string();
    let m = common::run(&common::plan(Protocol::H3, &address, 2, Limit::DurationNs(60_000 * MS)));
    check_identities(&m);
    assert_eq!((m.requests.started, m.connection.failed), (0, 2));
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..]), (Phase::Connect, "ECONNREFUSED"));
}

/// A socket that takes everything and says nothing.
#[test]
fn a_server_that_never_answers_ends_with_the_connect_timeout() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("a bound socket has an address").to_string();
    let mut plan = common::plan(Protocol::H3, &address, 2, Limit::DurationNs(60_000 * MS));
    plan.connect_timeout_ns = 300 * MS;
    let m = common::run(&plan);
    check_identities(&m);
    assert_eq!((m.requests.started, m.connection.failed), (0, 2));
    let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
    assert_eq!((error.phase, &error.kind[..]), (Phase::Quic, "timeout"));
}
