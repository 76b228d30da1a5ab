//! What lies below HTTP/3: strays, key updates, sockets, sizes of datagrams.

use bench::load::plan::{Limit, LoadPlan};
use bench::results::{Measurement, SocketMode};

use crate::common::answer::Answer;
use crate::common::books::{all_ok, pattern, upload};
use crate::common::h3::endpoint::Options;
use crate::common::random::Random;
use crate::common::{Scripted, base64, finish};

fn hello(options: &Options) -> Scripted {
    Scripted::quic(options, |h3| {
        h3.settings(&[]);
        h3.always(&Answer::hello());
    })
}

fn quic(m: &Measurement) -> &bench::results::QuicHealth {
    m.quic.as_ref().expect("it ran over QUIC")
}

/// Datagrams that are nobody's, or were spoilt, are dropped and counted (RFC 9000 §5.2).
#[test]
fn stray_datagrams_are_counted_and_harm_nothing() {
    let server = Scripted::http3(|h3| {
        h3.settings(&[]);
        let mut random = Random::new(7);
        while let Some(asked) = h3.request() {
            let noise: Vec<u8> = (0..1 + random.below(1400)).map(|_| random.next() as u8).collect();
            let (mut short, mut initial, mut unknown, mut negotiation) =
                (noise.clone(), noise.clone(), noise.clone(), noise.clone());
            short[0] = 0x40;
            initial.splice(0..1, [0xc3, 0, 0, 0, 1, 8]);
            unknown.splice(0..1, [0xc3, 0xfa, 0xce, 0xb0, 0x0c, 8]);
            negotiation.splice(0..1, [0x80, 0, 0, 0, 0, 8]);
            for stray in [&noise[..], &short, &initial, &unknown, &negotiation, b"", b"\x40", b"\xc0"] {
                h3.stray(stray);
            }
            h3.respond(&asked, &Answer::hello());
        }
    });
    let m = finish(&server, &server.multiplexed(3, 50));
    all_ok(&m, &server, 50);
    assert!(quic(&m).stray_packets >= 50, "{:?}", quic(&m));
}

/// RFC 9001 §6, by either side and by both.
#[test]
fn keys_are_updated_by_either_side() {
    for (client, server_too) in [(Some(20), false), (None, true), (Some(20), true)] {
        let server = Scripted::http3(move |h3| {
            h3.settings(&[]);
            let mut turn = 0;
            while let Some(asked) = h3.request() {
                turn += 1;
                if server_too && turn % 40 == 0 {
                    h3.quic.force_key_update();
                }
                if !h3.respond(&asked, &Answer::hello()) {
                    return;
                }
            }
        });
        for concurrency in [1, 8] {
            let mut plan = server.multiplexed(concurrency, 600);
            plan.quic.key_update_after = client;
            let m = finish(&server, &plan);
            let what = format!("{client:?} {server_too} {concurrency}: {:?}", m.errors);
            assert_eq!((m.requests.ok, m.connection.opened), (600, 1), "{what}");
            assert!(quic(&m).key_updates > 0, "{what}: {:?}", quic(&m));
        }
        assert_eq!(server.closes(), []);
    }
}

#[test]
fn connections_may_share_a_socket() {
    for (connections, concurrency, threads) in [(8, 4, 1), (8, 1, 2), (40, 2, 2)] {
        let server = hello(&Options::default());
        let mut plan = LoadPlan { concurrency, threads, ..server.plan(connections, Limit::Requests(800)) };
        plan.quic.socket = SocketMode::Shared;
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, m.requests.failed), (800, 0), "{:?}", m.errors);
        assert_eq!((m.connection.opened, server.accepted()), (connections.into(), connections.into()));
        assert_eq!((server.answered(), quic(&m).stray_packets), (800, 0));
        assert_eq!(quic(&m).socket, SocketMode::Shared);
    }
}

/// Fresh connections over a socket that stays: what comes late for one that is gone is nobody's.
#[test]
fn connections_that_share_a_socket_may_be_replaced() {
    let server = hello(&Options::default());
    let mut plan = LoadPlan { keepalive: false, ..server.plan(5, Limit::Requests(100)) };
    plan.quic.socket = SocketMode::Shared;
    let m = finish(&server, &plan);
    assert_eq!((m.requests.ok, m.connection.opened), (100, 100), "{:?}", m.errors);
    assert_eq!(server.answered(), 100);
}

/// Bodies both ways, whatever batches the kernel makes of datagrams, and whatever their size.
#[test]
fn batches_and_sizes_of_datagrams_change_nothing() {
    let body = pattern(300_000);
    let mut settings = Vec::new();
    for (gso, gro) in [(true, true), (true, false), (false, true), (false, false)] {
        settings.push((gso, gro, 1200, 1452));
    }
    for (payload, largest) in [(1201, 1452), (1452, 1452), (1452, 1200), (9000, 9000)] {
        settings.push((true, true, payload, largest));
        settings.push((false, false, payload, largest));
    }
    for (gso, gro, payload, largest) in settings {
        for pacing in [false, true] {
            let expected = body.clone();
            let options = Options { payload: largest, ..Options::default() };
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
            let mut plan = upload(&server, 4, 12, &body);
            plan.expect.body = Some(base64(&body));
            (plan.quic.gso, plan.quic.gro, plan.quic.payload, plan.quic.pacing) = (gso, gro, payload, pacing);
            let m = finish(&server, &plan);
            let what = format!("{gso} {gro} {payload} {largest} {pacing}: {:?} {:?}", m.errors, m.quic);
            assert_eq!((m.requests.ok, m.connection.opened, server.answered()), (12, 1, 12), "{what}");
            let quic = quic(&m);
            // The first flight leaves before the server has said what it takes.
            assert!(quic.max_payload <= u32::from(payload), "{what}");
            assert!(gso || quic.send_calls == quic.datagrams_sent, "{what}");
            assert!(gro || quic.receive_calls == quic.datagrams_received, "{what}");
            assert_eq!(quic.pacing, pacing, "{what}");
        }
    }
}

/// The largest datagrams there are; loopback takes them in one piece.
#[test]
fn the_largest_datagrams_are_sent_and_taken() {
    for (gso, gro) in [(false, false), (true, true)] {
        let server = hello(&Options { payload: 65_507, ..Options::default() });
        let mut plan = upload(&server, 2, 6, &pattern(300_000));
        (plan.quic.gso, plan.quic.gro, plan.quic.payload) = (gso, gro, 65_507);
        let m = finish(&server, &plan);
        assert_eq!((m.requests.ok, server.answered()), (6, 6), "{gso} {gro}: {:?} {:?}", m.errors, m.quic);
    }
}
