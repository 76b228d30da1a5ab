//! The generator against scripted servers: framing, counting, failures, every way a run can end. One
//! body of tests, run over every protocol; what belongs to the syntax of one stands in `h1_cases.rs`,
//! `h2_cases` and `h3_cases`.

mod common;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench::load::plan::{Event, Limit, LoadPlan, Verify};
use bench::load::{self, Control};
use bench::results::{Measurement, Phase, Protocol, WaitMode};
use common::answer::{Answer, Peer};
use common::{EVERY, OVER_TCP, Scripted, Socket, base64, check_identities, errors, is_http2, run};
use rustls::version::{TLS12, TLS13};

const MS: u64 = 1_000_000;

/// What a server takes for an answer where it matters.
const THINKING: Duration = Duration::from_millis(60);

/// Protocols, and M: how many requests are in flight on a connection.
const LOADS: [(Protocol, u32); 8] = [
    (Protocol::H1, 1),
    (Protocol::H1s, 1),
    (Protocol::H2c, 1),
    (Protocol::H2c, 5),
    (Protocol::H2, 1),
    (Protocol::H2, 5),
    (Protocol::H3, 1),
    (Protocol::H3, 5),
];

/// 40 requests over 4 connections, over every protocol, against a server that always gives `answer`;
/// the measurement is checked by `check`.
fn answers(answer: &Answer, check: impl Fn(&Measurement, &Scripted)) {
    answers_to("GET", 40, answer, check);
}

fn answers_to(method: &str, count: u64, answer: &Answer, check: impl Fn(&Measurement, &Scripted)) {
    for (protocol, concurrency) in LOADS {
        let answer = answer.clone();
        let server = Scripted::serve(protocol, move |peer| peer.always(&answer));
        let mut plan = server.plan(4, Limit::Requests(count));
        plan.concurrency = concurrency;
        plan.request.method = method.into();
        let m = run(&plan);
        check_identities(&m);
        assert_eq!(m.requests.started, count, "{protocol:?} x {concurrency}");
        check(&m, &server);
    }
}

fn all_ok(m: &Measurement, server: &Scripted) {
    assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{:?}: {:?}", m.protocol, m.errors);
    assert_eq!((server.requests(), server.answered()), (40, 40), "{:?}", m.protocol);
    assert_eq!(m.connection.reopened, 0, "{:?}", m.protocol);
}

/// Every request fails as a violation of HTTP, whatever else the violation costs.
fn violations(answer: &Answer) {
    // Few, since a connection that only fails is given up in the end.
    answers_to("GET", 7, answer, |m, _| {
        assert_eq!((m.requests.ok, m.requests.failed), (0, 7), "{:?}: {:?}", m.protocol, m.errors);
        assert!(m.errors.iter().all(|e| e.phase == Phase::Framing), "{:?}: {:?}", m.protocol, m.errors);
        assert_eq!(m.latency_us, None);
    });
}

#[test]
fn a_body_with_its_length() {
    answers(&Answer::hello(), |m, server| {
        all_ok(m, server);
        assert_eq!(m.statuses.get("200"), Some(&40));
        assert_eq!(m.transfer.body_bytes, 40 * 14);
        let negotiated = m.negotiated.as_ref().expect("responses were seen");
        assert_eq!(negotiated.http, m.protocol.version());
        assert_eq!(negotiated.alpn.as_deref(), m.protocol.alpn());
        assert_eq!(m.multiplexing.is_some(), m.protocol.multiplexes());
        assert_eq!(m.quic.is_some(), m.protocol.is_quic());
    });
}

/// The response itself, as the server gave it: head, body and coding.
#[test]
fn a_response_is_sampled() {
    let long = b"0123456789abcdef".repeat(20_000);
    for (answer, status) in [
        (Answer::hello().header("content-encoding", "br").header("x-a", "1").header("x-a", "2"), 200),
        (Answer::hello().interim(103, &[("link", "</a>")]).trailer("x-checksum", "1").lengths(&[]), 200),
        (Answer::new(200, &long).header("content-encoding", "gzip"), 200),
        (Answer::new(404, b""), 404),
        (Answer::hello().last(), 200),
    ] {
        for protocol in EVERY {
            let given = answer.clone();
            let server = Scripted::serve(protocol, move |peer| peer.always(&given));
            for keepalive in [true, false] {
                let plan = LoadPlan { sample: true, keepalive, ..server.plan(1, Limit::Requests(1)) };
                let m = run(&plan);
                let sample = m.sample.as_ref().unwrap_or_else(|| panic!("{protocol:?}: {:?}", m.errors));
                let body = BASE64_STANDARD.decode(&sample.body).expect("base64");
                assert_eq!((sample.status, sample.truncated), (status, false), "{protocol:?}");
                assert_eq!(body, answer.pieces.concat(), "{protocol:?}");
                let fields: Vec<(&str, &str)> =
                    sample.fields.iter().map(|field| (&field.name[..], &field.value[..])).collect();
                let given: Vec<(&str, &str)> =
                    answer.headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                // What says where the body ends, and on HTTP/1.1 what becomes of the connection, comes besides.
                let told: Vec<_> = fields.into_iter().filter(|field| given.contains(field)).collect();
                assert_eq!(told, given, "{protocol:?}");
            }
            let unasked = run(&server.plan(1, Limit::Requests(1)));
            assert_eq!(unasked.sample, None, "{protocol:?}");
        }
    }
}

#[test]
fn a_sample_is_cut_at_its_bound_and_is_of_one_request() {
    let piece = [7; 64 << 10];
    let answer = Answer::new(200, &piece).times(80).lengths(&[]);
    for protocol in EVERY {
        let answer = answer.clone();
        let server = Scripted::serve(protocol, move |peer| peer.always(&answer));
        let plan = LoadPlan { sample: true, ..server.plan(1, Limit::Requests(1)) };
        let m = run(&plan);
        let sample = m.sample.expect("a response");
        let body = BASE64_STANDARD.decode(&sample.body).expect("base64");
        assert_eq!((body.len(), sample.truncated, m.requests.ok), (4 << 20, true, 1), "{protocol:?}");
        let many = LoadPlan { sample: true, ..server.plan(2, Limit::Requests(2)) };
        let error = load::run(&many, &Control::new(), &mut |_| ()).map(|_| ()).expect_err("two connections");
        assert!(error.to_string().starts_with("a response is sampled of one request"), "{error}");
    }
}

/// What came of a response that was not completed is no sample.
#[test]
fn half_a_response_is_no_sample() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello().lengths(&["99"])));
        let mut plan = LoadPlan { sample: true, ..server.plan(1, Limit::Requests(1)) };
        plan.timeout_ns = 300 * MS;
        let m = run(&plan);
        assert_eq!((m.requests.ok, m.sample), (0, None), "{protocol:?}");
    }
}

#[test]
fn a_body_whose_length_is_not_said() {
    let pieces: &[&[u8]] = &[b"Hello", b", ", b"World!\n"];
    answers(&Answer::hello().pieces(pieces).lengths(&[]), |m, server| {
        all_ok(m, server);
        assert_eq!(m.transfer.body_bytes, 40 * 14);
    });
}

#[test]
fn an_empty_body() {
    answers(&Answer::new(200, b""), all_ok);
    answers(&Answer::new(404, b""), |m, _| {
        assert_eq!((m.requests.ok, errors(m)), (0, vec![("status".to_owned(), 40)]));
    });
}

#[test]
fn trailers_end_a_response() {
    let answer = Answer::hello().trailer("x-checksum", "1").trailer("x-more", "2");
    answers(&answer.lengths(&[]), |m, server| {
        all_ok(m, server);
        assert_eq!(m.transfer.body_bytes, 40 * 14);
    });
}

#[test]
fn interim_responses_are_no_completions() {
    let answer = Answer::new(200, b"").interim(103, &[("link", "</a>")]).interim(103, &[]);
    answers(&answer, |m, server| {
        all_ok(m, server);
        assert_eq!(m.interim_responses, 80);
        assert_eq!(m.statuses.len(), 1);
        assert_eq!(m.statuses.get("200"), Some(&40));
    });
}

#[test]
fn bodiless_statuses_have_no_body_whatever_they_say() {
    for status in [204, 304] {
        answers(&Answer::new(status, b"").lengths(&["9"]), all_ok);
        answers(&Answer::new(status, b""), all_ok);
    }
}

#[test]
fn head_has_no_body_whatever_it_says() {
    answers_to("HEAD", 40, &Answer::new(200, b"").lengths(&["1234"]), |m, server| {
        all_ok(m, server);
        assert_eq!(m.transfer.body_bytes, 0);
    });
    answers_to("HEAD", 40, &Answer::hello(), all_ok);
}

#[test]
fn a_content_length_that_is_no_length_is_a_violation() {
    for lengths in [&["14", "15"][..], &["99999999999999999999"], &["-1"], &["14a"]] {
        violations(&Answer::hello().lengths(lengths));
    }
}

#[test]
fn content_lengths_that_agree_are_one() {
    answers(&Answer::hello().lengths(&["14", "14"]), all_ok);
}

/// A body that ends too early is no response, and what it costs is as little as the protocol allows.
#[test]
fn a_body_shorter_than_its_length_is_a_violation() {
    for (protocol, concurrency) in LOADS {
        let server = Scripted::serve(protocol, move |peer| {
            while let Some(asked) = peer.request() {
                let short = Answer::hello().lengths(&["15"]);
                if !peer.answer(&asked, &short) || !protocol.multiplexes() {
                    return;
                }
            }
        });
        let mut plan = server.plan(2, Limit::Requests(7));
        plan.concurrency = concurrency;
        let m = run(&plan);
        check_identities(&m);
        let kind = if protocol.multiplexes() { "content-length-mismatch" } else { "truncated-body" };
        assert_eq!((m.requests.ok, errors(&m)), (0, vec![(kind.to_owned(), 7)]), "{protocol:?}");
        assert_eq!(m.connection.reopened > 0, !protocol.multiplexes(), "{:?}", m.connection);
    }
}

#[test]
fn the_last_answer_of_a_connection_counts_and_another_one_is_opened() {
    for (protocol, concurrency) in LOADS {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello().last()));
        let mut plan = server.plan(4, Limit::Requests(40));
        plan.concurrency = concurrency;
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{protocol:?}: {:?}", m.errors);
        assert!(m.connection.reopened >= 36, "{:?}", m.connection);
        server.join();
        assert_eq!(server.answered(), 40, "{protocol:?}");
        // What was begun and not on its way when GOAWAY came is replayed, and never seen by the server.
        assert!(server.ignored() <= m.lifetime.replayed, "{protocol:?} x {concurrency}");
    }
}

#[test]
fn a_response_may_be_split_anywhere() {
    for protocol in EVERY {
        let answer = Answer::hello().interim(103, &[("link", "</a>")]).trailer("x-a", "b").lengths(&[]);
        let length = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&length);
        let server = Scripted::serve(protocol, move |peer| {
            let mut at = 0;
            while let Some(asked) = peer.request() {
                let bytes = peer.render(&asked, &answer);
                seen.store(bytes.len() as u64, Ordering::SeqCst);
                let (first, second) = bytes.split_at(at % bytes.len());
                at += 1;
                if !peer.send(&asked, first, false) || !peer.send(&asked, second, true) {
                    return;
                }
            }
        });
        // The second run goes through every split, now that their number is known.
        let mut count = 1;
        for _ in 0..2 {
            let mut plan = server.plan(1, Limit::Requests(count));
            plan.expect.body = Some(base64(b"Hello, World!\n"));
            let m = run(&plan);
            check_identities(&m);
            assert_eq!((m.requests.ok, m.connection.reopened), (count, 0), "{protocol:?}: {:?}", m.errors);
            count = length.load(Ordering::SeqCst) * 2;
        }
    }
}

#[test]
fn a_head_of_64_kib_is_read_and_a_longer_one_refused() {
    // A line costs 66 bytes in HTTP/1.1 and counts 94 in HTTP/2 and HTTP/3 (RFC 9113 §6.5.2, RFC 9114
    // §4.2.2).
    for (size, ok) in [(60 * 1024, true), (70 * 1024, false)] {
        for protocol in EVERY {
            let line = if protocol.multiplexes() { 94 } else { 66 };
            let mut answer = Answer::new(200, b"");
            for _ in 0..size / line {
                answer = answer.header("x-filler", &"a".repeat(54));
            }
            let server = Scripted::serve(protocol, move |peer| peer.always(&answer));
            let m = run(&server.plan(1, Limit::Requests(3)));
            check_identities(&m);
            assert_eq!(m.requests.ok, if ok { 3 } else { 0 }, "{protocol:?}: {:?}", m.errors);
            assert!(ok || m.errors.iter().all(|e| e.phase == Phase::Framing), "{:?}", m.errors);
        }
    }
}

#[test]
fn a_body_of_many_megabytes_is_counted_and_not_kept() {
    const LENGTH: usize = 64 << 20;
    for protocol in EVERY {
        let answer = Answer::new(200, &vec![b'x'; 1 << 20]).times(LENGTH >> 20);
        let server = Scripted::serve(protocol, move |peer| peer.always(&answer));
        let mut plan = server.plan(1, Limit::Requests(2));
        plan.expect.length = Some(LENGTH as u64);
        let m = run(&plan);
        check_identities(&m);
        assert_eq!(m.requests.ok, 2, "{protocol:?}: {:?}", m.errors);
        assert_eq!(m.transfer.body_bytes, 2 * LENGTH as u64);
    }
}

#[test]
fn a_large_upload_arrives_whole() {
    let body: Vec<u8> = (0..3_000_000u32).map(|i| (i ^ (i >> 8)) as u8).collect();
    for (protocol, concurrency) in LOADS {
        let expected = body.clone();
        let server = Scripted::serve(protocol, move |peer| {
            while let Some(asked) = peer.request() {
                let good = asked.method == "POST" && asked.body == expected;
                let answer = if good { Answer::hello() } else { Answer::new(400, b"") };
                if !peer.answer(&asked, &answer) {
                    return;
                }
            }
        });
        let mut plan = server.plan(2, Limit::Requests(12));
        plan.concurrency = concurrency;
        plan.request.method = "POST".into();
        plan.request.body = base64(&body);
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.connection.reopened), (12, 0), "{protocol:?}: {:?}", m.errors);
        assert!(m.transfer.sent_bytes >= 12 * body.len() as u64);
    }
}

/// In HTTP/1.1 the connection is lost to it, in HTTP/2 and HTTP/3 only the rest of the upload.
#[test]
fn an_answer_before_the_whole_upload_is_counted() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, move |peer| {
            while let Some(asked) = peer.head() {
                let mut answer = Answer::new(413, b"");
                answer.last = !protocol.multiplexes();
                if !peer.answer(&asked, &answer) {
                    // The client is not to be reset before it has read the answer.
                    return peer.ignore();
                }
            }
        });
        let mut plan = server.plan(1, Limit::Requests(3));
        plan.request.method = "PUT".into();
        plan.request.body = base64(&vec![0; 20_000_000]);
        let m = run(&plan);
        check_identities(&m);
        assert_eq!(m.statuses.get("413"), Some(&3), "{protocol:?}: {:?}", m.errors);
        assert_eq!(m.requests.failed, 3);
        assert_eq!(m.connection.reopened == 0, protocol.multiplexes(), "{:?}", m.connection);
    }
}

/// Latency ends with the last byte of the final response, and its first byte is no interim one. The server
/// thinks in between; only what cannot be shorter is asserted.
#[test]
fn first_and_last_bytes_of_the_final_response_are_told_apart() {
    for protocol in EVERY {
        for in_body in [false, true] {
            let server = Scripted::serve(protocol, move |peer| {
                while let Some(asked) = peer.request() {
                    let interim = Answer::hello().interim(103, &[("link", "</a>")]);
                    let whole = peer.render(&asked, &interim);
                    let final_length = peer.render(&asked, &Answer::hello()).len();
                    let at = if in_body { whole.len() - 7 } else { whole.len() - final_length };
                    peer.send(&asked, &whole[..at], false);
                    std::thread::sleep(THINKING);
                    peer.send(&asked, &whole[at..], true);
                }
            });
            let m = run(&server.plan(1, Limit::Requests(1)));
            assert_eq!((m.requests.ok, m.interim_responses), (1, 1), "{protocol:?}: {:?}", m.errors);
            let (latency, first) = (m.latency_us.expect("a sample"), m.first_byte_us.expect("a sample"));
            let thinking = THINKING.as_micros() as f64;
            assert!(latency.min >= thinking, "{protocol:?}: {latency:?}");
            // The first byte is read from a histogram, which is exact to a thousandth.
            let apart = if in_body { latency.max - first.max } else { first.min };
            assert!(apart >= 0.9 * thinking, "{protocol:?} {in_body}: {first:?} {latency:?}");
        }
    }
}

#[test]
fn unexpected_responses_are_failures_with_their_kind() {
    for (protocol, concurrency) in LOADS {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::new(404, b"no")));
        let mut plan = server.plan(2, Limit::Requests(10));
        plan.concurrency = concurrency;
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed, m.latency_us.is_none()), (0, 10, true));
        assert_eq!(m.statuses.get("404"), Some(&10));
        assert_eq!(errors(&m), [("status".to_owned(), 10)]);

        for (body, kind) in [(&b"Hello, World?\n"[..], "body"), (b"Hello", "length")] {
            let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
            let mut plan = server.plan(2, Limit::Requests(10));
            plan.concurrency = concurrency;
            plan.expect.body = Some(base64(body));
            let m = run(&plan);
            check_identities(&m);
            assert_eq!(errors(&m), [(kind.to_owned(), 10)], "{protocol:?}");
            assert_eq!(m.connection.reopened, 0, "{protocol:?}");
        }
    }
}

#[test]
fn a_connection_that_never_answers_is_one_unfinished_request() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| {
            if peer.index() == 0 {
                peer.ignore();
            } else {
                peer.always(&Answer::hello());
            }
        });
        let mut plan = server.plan(8, Limit::DurationNs(1200 * MS));
        plan.drain_ns = 50 * MS;
        let m = run(&plan);
        check_identities(&m);
        assert!((1..=8).contains(&m.requests.unfinished), "{:?}", m.requests);
        assert_eq!((m.lifetime.unfinished, m.requests.failed, m.connection.stalled), (1, 0, 1));
        assert!(m.requests.oldest_unfinished_us >= Some(1_100_000), "{:?}", m.requests);
        assert!(m.warnings.iter().any(|w| w.code == "max-is-lower-bound"), "{:?}", m.warnings);
        assert!(m.requests.ok > 0);
    }
}

/// In HTTP/1.1 the connection is lost to it, in HTTP/2 and HTTP/3 its stream alone.
#[test]
fn a_late_response_fails_its_request() {
    for (protocol, concurrency) in LOADS {
        let first = AtomicBool::new(true);
        let server = Scripted::serve(protocol, move |peer| {
            while let Some(asked) = peer.request() {
                if first.swap(false, Ordering::SeqCst) {
                    continue;
                }
                if !peer.answer(&asked, &Answer::hello()) {
                    return;
                }
            }
        });
        let mut plan = server.plan(1, Limit::Requests(5));
        plan.concurrency = concurrency;
        plan.timeout_ns = 500 * MS;
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed), (4, 1), "{protocol:?}: {:?}", m.errors);
        let [error] = &m.errors[..] else { panic!("{:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..]), (Phase::Timeout, "response"));
        assert_eq!(m.connection.reopened, u64::from(!protocol.multiplexes()), "{protocol:?}");
        if concurrency == 1 {
            server.join();
            match protocol {
                Protocol::H1 | Protocol::H1s => (),
                Protocol::H2c | Protocol::H2 => assert_eq!(server.resets(), [common::frame::CANCEL]),
                // The request was sent to its end: there is nothing of it to be reset.
                Protocol::H3 => assert_eq!(server.stops(), [common::h3::wire::H3_REQUEST_CANCELLED]),
            }
        }
    }
}

/// A server that takes a connection, opens every window and then reads no more: sending stops in the
/// middle of a request, and time runs out all the same.
#[test]
fn a_server_that_stops_reading_ends_nothing_but_its_requests() {
    for protocol in EVERY {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let waiting = Arc::clone(&over);
        let server = Scripted::serve(protocol, move |peer| {
            if let Peer::Two(h2) = peer {
                h2.settings(&[(common::frame::INITIAL_WINDOW_SIZE, 0x7fff_ffff)]);
                h2.grant(0, 0x7fff_ffff - 65_535);
            }
            peer.head();
            let (told, changed) = &*waiting;
            drop(changed.wait_while(told.lock().expect("nobody panics"), |over| !*over));
        });
        let mut plan = server.plan(1, Limit::Requests(2));
        plan.request.method = "PUT".into();
        plan.request.body = base64(&vec![0; 20_000_000]);
        plan.timeout_ns = 300 * MS;
        let m = run(&plan);
        *over.0.lock().expect("nobody panics") = true;
        over.1.notify_all();
        check_identities(&m);
        assert_eq!((m.requests.ok, errors(&m)), (0, vec![("response".to_owned(), 2)]), "{protocol:?}");
        assert!(m.transfer.sent_bytes < 2 * 20_000_000, "{protocol:?}: {:?}", m.transfer);
    }
}

/// What was under way when a server closed is lost, and said to be.
#[test]
fn a_connection_closed_under_its_requests_fails_them() {
    for (protocol, concurrency) in LOADS {
        for half in [false, true] {
            let server = Scripted::serve(protocol, move |peer| {
                let Some(asked) = peer.request() else { return };
                if peer.index() > 0 {
                    peer.answer(&asked, &Answer::hello());
                    return peer.always(&Answer::hello());
                }
                if half {
                    let bytes = peer.render(&asked, &Answer::hello());
                    peer.send(&asked, &bytes[..bytes.len() - 7], false);
                }
            });
            let mut plan = server.plan(1, Limit::Requests(20));
            plan.concurrency = concurrency;
            let m = run(&plan);
            check_identities(&m);
            let phase = match (protocol.multiplexes(), half) {
                (true, _) => Phase::Interrupted,
                (false, false) => Phase::Read,
                (false, true) => Phase::Framing,
            };
            assert!(m.errors.iter().all(|e| e.phase == phase), "{protocol:?}: {:?}", m.errors);
            assert!((1..=u64::from(concurrency)).contains(&m.requests.failed), "{:?}", m.requests);
            assert_eq!((m.requests.ok + m.requests.failed, m.connection.reopened), (20, 1));
            if phase != Phase::Framing {
                assert_eq!(m.requests.interrupted, m.requests.failed);
                assert_eq!(errors(&m), [("closed-before-response".to_owned(), m.requests.failed)]);
            }
        }
    }
}

#[test]
fn nobody_listening_ends_at_once_with_the_reason() {
    let free =
        TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap_or_else(|e| panic!("{e}"));
    for protocol in EVERY {
        let m = run(&common::plan(protocol, &free.to_string(), 4, Limit::DurationNs(60_000 * MS)));
        check_identities(&m);
        assert_eq!((m.requests.started, m.requests_per_second), (0, None));
        assert_eq!(errors(&m), [("ECONNREFUSED".to_owned(), 4)]);
        assert_eq!(m.connection.failed, 4);
    }
}

#[test]
fn a_server_that_only_closes_is_not_hammered() {
    for keepalive in [true, false] {
        for protocol in EVERY {
            let server = Scripted::serve(protocol, |peer| {
                peer.request();
            });
            let mut plan = server.plan(4, Limit::DurationNs(600 * MS));
            plan.keepalive = keepalive;
            let m = run(&plan);
            check_identities(&m);
            assert_eq!(m.requests.ok, 0);
            assert!(m.requests.failed > 0);
            // 10 ms doubled seven times: not over a dozen attempts of each connection.
            assert!(m.connection.attempted <= 4 * 12, "{protocol:?}: {:?}", m.connection);
        }
    }
}

#[test]
fn a_server_that_goes_away_leaves_bounded_attempts() {
    for protocol in [Protocol::H1, Protocol::H2c] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("{e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("{e}"));
        let serving = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap_or_else(|e| panic!("{e}"));
            drop(listener);
            common::serve_one(Socket::Tcp(stream), protocol, &|peer| {
                for _ in 0..100 {
                    let Some(asked) = peer.request() else { return };
                    peer.answer(&asked, &Answer::hello());
                }
            });
        });
        let mut plan = common::plan(protocol, &address.to_string(), 1, Limit::DurationNs(700 * MS));
        plan.drain_ns = 0;
        let m = run(&plan);
        check_identities(&m);
        assert!(serving.join().is_ok());
        assert_eq!(m.requests.ok, 100, "{protocol:?}");
        assert!(m.errors.iter().any(|e| e.kind == "ECONNREFUSED"), "{:?}", m.errors);
        assert!(m.connection.attempted < 20, "{:?}", m.connection);
        // A counted run against the same void ends too.
        let m = run(&common::plan(protocol, &address.to_string(), 2, Limit::Requests(10)));
        assert_eq!(m.requests.ok, 0);
    }
}

/// The server's own count of requests equals ours, however a run ends.
#[test]
fn counts_equal_the_servers_own() {
    for (protocol, concurrency) in LOADS {
        for keepalive in [true, false] {
            if !keepalive && concurrency > 1 {
                continue;
            }
            for (limit, warmup) in [
                (Limit::Requests(500), 0),
                (Limit::Requests(200), 50 * MS),
                (Limit::DurationNs(200 * MS), 0),
                (Limit::DurationNs(200 * MS), 50 * MS),
            ] {
                for (threads, wait) in [(1, WaitMode::Sleep), (2, WaitMode::Poll)] {
                    let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
                    let mut plan = server.plan(5, limit);
                    (plan.warmup_ns, plan.keepalive, plan.threads, plan.wait) =
                        (warmup, keepalive, threads, wait);
                    plan.concurrency = concurrency;
                    plan.drain_ns = 10_000 * MS;
                    let m = run(&plan);
                    check_identities(&m);
                    let what = format!(
                        "{protocol:?} x {concurrency} {keepalive} {limit:?} {warmup} {threads} {:?}",
                        m.errors
                    );
                    assert_eq!(m.lifetime.ok, server.requests(), "{what}");
                    assert_eq!((m.lifetime.failed, m.lifetime.unfinished), (0, 0), "{what}");
                    if let Limit::Requests(count) = limit {
                        assert_eq!((m.requests.started, m.requests.ok), (count, count), "{what}");
                    }
                    assert_eq!(m.connection.opened, server.accepted(), "{what}");
                }
            }
        }
    }
}

#[test]
fn counts_equal_the_servers_own_when_interrupted() {
    for (protocol, concurrency) in LOADS {
        let control = Control::new();
        let (stop, told) = (control.clone(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&told);
        let served = AtomicU64::new(0);
        let server = Scripted::serve(protocol, move |peer| {
            while let Some(asked) = peer.request() {
                if !peer.answer(&asked, &Answer::hello()) {
                    return;
                }
                if served.fetch_add(1, Ordering::SeqCst) == 300 && !seen.swap(true, Ordering::SeqCst) {
                    stop.stop();
                }
            }
        });
        let mut plan = server.plan(4, Limit::DurationNs(60_000 * MS));
        plan.concurrency = concurrency;
        plan.drain_ns = 10_000 * MS;
        let m = load::run(&plan, &control, &mut |_| ()).unwrap_or_else(|e| panic!("{e}"));
        check_identities(&m);
        assert!(m.interrupted && told.load(Ordering::SeqCst));
        assert_eq!(m.lifetime.ok, server.requests(), "{protocol:?} x {concurrency}");
        assert!(m.window.length_s.is_some_and(|s| s < 60.0));
    }
}

#[test]
fn the_window_is_announced_and_kept() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        let mut plan = server.plan(2, Limit::DurationNs(100 * MS));
        plan.warmup_ns = 20 * MS;
        let mut events = Vec::new();
        let m = load::run(&plan, &Control::new(), &mut |event| events.push(event))
            .unwrap_or_else(|e| panic!("{e}"));
        let [Event::Connected { up: 2, of: 2, .. }, Event::Window { opens_at_ns, closes_at_ns }] =
            &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((Some(*opens_at_ns), *closes_at_ns), (m.window.opened_at_ns, m.window.closed_at_ns));
        assert_eq!(closes_at_ns.map(|at| at - opens_at_ns), Some(100 * MS));
        assert_eq!(m.window.length_s, Some(0.1));
    }
}

#[test]
fn a_fresh_connection_for_each_request() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        let mut plan = server.plan(3, Limit::Requests(60));
        plan.keepalive = false;
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, server.accepted(), server.requests()), (60, 60, 60), "{:?}", m.errors);
        assert_eq!(m.connection.opened, 60);
        // Latency takes in the set-up of the connection.
        let (latency, setup) =
            (m.latency_us.expect("60 samples"), m.connection.setup_us.expect("60 samples"));
        assert!(latency.min >= setup.min);
    }
}

#[test]
fn unix_sockets_and_ipv6() {
    for protocol in [Protocol::H1, Protocol::H2c] {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap_or_else(|e| panic!("{e}"));
        let serving = std::thread::spawn(move || {
            let streams: Vec<_> = listener.incoming().flatten().take(2).collect();
            std::thread::scope(|scope| {
                for stream in streams {
                    scope.spawn(|| {
                        common::serve_one(Socket::Unix(stream), protocol, &|peer| {
                            peer.always(&Answer::hello());
                        });
                    });
                }
            });
        });
        let m = run(&common::plan(protocol, &format!("unix:{}", path.display()), 2, Limit::Requests(20)));
        check_identities(&m);
        assert_eq!(m.requests.ok, 20, "{protocol:?}: {:?}", m.errors);
        assert!(serving.join().is_ok());
    }
    for protocol in EVERY {
        let server = Scripted::serve_at("[::1]:0", protocol, |peer| peer.always(&Answer::hello()));
        let m = run(&server.plan(2, Limit::Requests(20)));
        assert_eq!(m.requests.ok, 20, "{protocol:?}: {:?}", m.errors);
    }
}

#[test]
fn the_address_that_answers_is_used_and_named() {
    let dead =
        TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap_or_else(|e| panic!("{e}"));
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        let mut plan = server.plan(2, Limit::Requests(20));
        plan.target.addresses.insert(0, dead.to_string());
        let m = run(&plan);
        assert_eq!((m.requests.ok, m.connection.failed), (20, 0));
        assert_eq!(m.addresses, [server.address.to_string()]);
    }
}

/// Host in HTTP/1.1, `:authority` and no Host beside it in HTTP/2; the scripted server checks that.
#[test]
fn exactly_one_host_on_the_wire() {
    let with = |name: &str| vec![(name.to_owned(), "other.example".to_owned())];
    for protocol in EVERY {
        for (headers, host) in
            [(vec![], "localhost"), (with("hOsT"), "other.example"), (with("Host"), "other.example")]
        {
            let server = Scripted::serve(protocol, move |peer| {
                while let Some(asked) = peer.request() {
                    assert_eq!(asked.authority, host);
                    if !peer.answer(&asked, &Answer::hello()) {
                        return;
                    }
                }
            });
            let mut plan = server.plan(1, Limit::Requests(3));
            plan.request.headers = headers;
            assert_eq!(run(&plan).requests.ok, 3, "{protocol:?}");
        }
    }
}

/// The request arrives as it was asked for: method, path, fields in order, body.
#[test]
fn a_request_arrives_as_it_was_asked_for() {
    let headers: Vec<(String, String)> =
        [("X-One", "1"), ("accept", "*/*"), ("x-one", "2 \u{e9}"), ("X-Empty", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    let expected: Vec<(String, String)> =
        headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    for (protocol, concurrency) in LOADS {
        for body in [&b""[..], b"some bytes\0\xff"] {
            let expected = expected.clone();
            let server = Scripted::serve(protocol, move |peer| {
                while let Some(asked) = peer.request() {
                    let sent: Vec<_> =
                        asked.headers.iter().filter(|(name, _)| name != "content-length").cloned().collect();
                    assert_eq!(sent, expected);
                    assert_eq!(
                        (&asked.method[..], &asked.path[..], &asked.body[..]),
                        ("PATCH", "/a/b?c=%20d", body)
                    );
                    if !peer.answer(&asked, &Answer::hello()) {
                        return;
                    }
                }
            });
            let mut plan = server.plan(2, Limit::Requests(30));
            plan.concurrency = concurrency;
            plan.request.method = "PATCH".into();
            plan.request.headers = headers.clone();
            plan.request.body = base64(body);
            plan.target.path = "/a/b?c=%20d".into();
            let m = run(&plan);
            assert_eq!(m.requests.ok, 30, "{protocol:?}: {:?}", m.errors);
        }
    }
}

#[test]
fn each_tls_version_and_no_alpn() {
    for (versions, name) in [(&[&TLS12][..], "TLSv1.2"), (&[&TLS13], "TLSv1.3")] {
        for protocol in [Protocol::H1s, Protocol::H2] {
            // HTTP/1.1 goes without ALPN as well; HTTP/2 never (RFC 9113 §3.2).
            let alpn: &[&[u8]] = if is_http2(protocol) { &[b"h2"] } else { &[] };
            let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("{e}"));
            let config = Some(common::tls_config(alpn, versions));
            let server = Scripted::listen(listener, protocol, config, move |conn| {
                common::as_peer(conn, protocol, &|peer| peer.always(&Answer::hello()));
            });
            let m = run(&server.plan(2, Limit::Requests(10)));
            assert_eq!(m.requests.ok, 10, "{protocol:?}: {:?}", m.errors);
            let negotiated = m.negotiated.unwrap_or_else(|| panic!("nothing was negotiated"));
            assert_eq!(negotiated.tls.as_deref(), Some(name));
            assert_eq!(negotiated.alpn.as_deref(), is_http2(protocol).then_some("h2"));
            assert!(negotiated.cipher.is_some() && negotiated.group.is_some());
        }
    }
}

/// Never a run of another protocol than was asked for.
#[test]
fn a_server_of_another_protocol_is_a_failure_that_says_so() {
    let offers: [(Protocol, &[&[u8]]); 5] = [
        (Protocol::H1s, &[b"h2"]),
        (Protocol::H2, &[b"http/1.1"]),
        (Protocol::H2, &[b"http/1.0", b"http/1.1"]),
        (Protocol::H2, &[]),
        (Protocol::H1s, &[b"h3"]),
    ];
    for (protocol, alpn) in offers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("{e}"));
        let config = common::tls_config(alpn, rustls::ALL_VERSIONS);
        let server = Scripted::listen(listener, protocol, Some(config), |conn| conn.ignore());
        let m = run(&server.plan(2, Limit::Requests(10)));
        check_identities(&m);
        assert_eq!((m.requests.ok, m.negotiated), (0, None));
        let [error] = &m.errors[..] else { panic!("{protocol:?} {alpn:?}: {:?}", m.errors) };
        assert_eq!((error.phase, &error.kind[..]), (Phase::Tls, "wrong-protocol"), "{protocol:?} {alpn:?}");
    }
}

/// TLS to a cleartext server, and cleartext to a TLS server; the one protocol to a server of the other.
#[test]
fn a_mismatch_of_transports_ends_with_nothing_ok() {
    for asked in OVER_TCP {
        for served in OVER_TCP.into_iter().filter(|served| *served != asked) {
            if asked.is_tls() && served.is_tls() {
                // ALPN tells.
                continue;
            }
            let server = Scripted::start(served, move |conn| {
                // Like a server that cannot make sense of what it reads.
                if conn.take(18).is_some() {
                    conn.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                }
            });
            let limit = Limit::DurationNs(300 * MS);
            let m = run(&common::plan(asked, &server.address.to_string(), 1, limit));
            check_identities(&m);
            assert_eq!(m.requests.ok, 0, "{asked:?} to {served:?}");
            assert!(!m.errors.is_empty(), "{asked:?} to {served:?}");
        }
    }
}

#[test]
fn http1_answers_to_the_preface_are_the_wrong_protocol() {
    let server = Scripted::start(Protocol::H2c, |conn| {
        conn.take(24);
        conn.send(b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n");
    });
    let m = run(&server.plan(1, Limit::Requests(2)));
    check_identities(&m);
    assert_eq!((m.requests.ok, m.negotiated.is_none()), (0, true));
    assert!(m.errors.iter().all(|e| e.kind == "wrong-protocol"), "{:?}", m.errors);
    assert!(m.errors[0].example.as_ref().is_some_and(|text| text.contains("HTTP/1")), "{:?}", m.errors);
}

#[test]
fn frames_in_answer_to_http1_are_the_wrong_protocol() {
    for protocol in [Protocol::H1, Protocol::H1s] {
        let server = Scripted::start(protocol, |conn| {
            conn.send(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
            conn.take(1);
        });
        let m = run(&server.plan(1, Limit::Requests(2)));
        check_identities(&m);
        assert_eq!(m.requests.ok, 0, "{protocol:?}");
        assert!(m.errors.iter().any(|e| e.kind == "wrong-protocol"), "{protocol:?}: {:?}", m.errors);
    }
}

#[test]
fn a_certificate_is_checked_only_when_asked() {
    for protocol in [Protocol::H1s, Protocol::H2, Protocol::H3] {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        let mut plan = server.plan(1, Limit::Requests(3));
        assert_eq!(run(&plan).requests.ok, 3);
        plan.verify = Some(Verify::System);
        match load::run(&plan, &Control::new(), &mut |_| ()) {
            Ok(m) => assert_eq!(errors(&m), [("invalid-certificate".to_owned(), 1)]),
            // A machine without root certificates says so.
            Err(error) => assert!(error.to_string().contains("root certificates"), "{error}"),
        }
    }
}

#[test]
fn tls_cut_without_close_notify_is_no_end_of_a_response() {
    for protocol in [Protocol::H1s, Protocol::H2] {
        let server = Scripted::start(protocol, move |conn| {
            common::as_peer(conn, protocol, &|peer| {
                let Some(asked) = peer.request() else { return };
                let bytes = peer.render(&asked, &Answer::hello());
                peer.send(&asked, &bytes[..bytes.len() - 1], false);
                peer.cut();
            });
        });
        let m = run(&server.plan(1, Limit::Requests(2)));
        check_identities(&m);
        let kind = if is_http2(protocol) { "closed-before-response" } else { "closed-without-close-notify" };
        assert_eq!((m.requests.ok, errors(&m)), (0, vec![(kind.to_owned(), 2)]));
    }
}

/// A process begins with the peak that getrusage(2) has of its parent; the generator's figure is its own.
#[test]
fn peak_memory_is_the_generators_own() {
    let ballast = vec![1u8; 200 << 20];
    let server = Scripted::serve(Protocol::H1, |peer| peer.always(&Answer::hello()));
    let m = common::in_a_process(&server.plan(1, Limit::Requests(10)));
    assert_eq!(m.requests.ok, 10);
    assert!(m.generator.peak_rss_kib < 100 * 1024, "{} KiB", m.generator.peak_rss_kib);
    // It has to be there until the process was started.
    assert_eq!(ballast.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 200 << 20);
}

#[test]
fn little_is_hidden_at_one_connection() {
    for protocol in [Protocol::H1, Protocol::H2c, Protocol::H3] {
        for wait in [WaitMode::Sleep, WaitMode::Poll] {
            let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
            let mut plan = server.plan(1, Limit::DurationNs(500 * MS));
            plan.wait = wait;
            let m = run(&plan);
            let in_flight = m.in_flight.unwrap_or(0.0);
            assert!((0.8..=1.02).contains(&in_flight), "{protocol:?}: {in_flight}");
        }
    }
}

/// With one request in flight, an answer that is taken together with the opening edge is the only
/// thing that can happen: left for later, it would be the last one of the whole window.
#[test]
fn an_answer_taken_at_the_opening_edge_is_handled_at_once() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        // The edge falls at another point of the exchange each time.
        for extra in 0..10 {
            let mut plan = server.plan(1, Limit::DurationNs(100 * MS));
            plan.warmup_ns = 10 * MS + extra * MS / 20;
            let m = run(&plan);
            check_identities(&m);
            assert!(m.requests.ok > 10, "{protocol:?}: {:?} {:?}", m.requests, m.errors);
        }
    }
}

type Change = fn(&mut LoadPlan);

#[test]
fn plans_that_make_no_sense_are_refused() {
    for protocol in EVERY {
        let server = Scripted::serve(protocol, |peer| peer.always(&Answer::hello()));
        let good = server.plan(1, Limit::Requests(1));
        let mut changes: Vec<(Change, &str)> = vec![
            (|p| p.connections = 0, "at least 1"),
            (|p| p.concurrency = 0, "at least one"),
            (|p| p.limit = Limit::Requests(0), "nothing"),
            (|p| p.connections = 100_000_000, "file descriptors"),
            (|p| p.target.addresses = vec!["nonsense".into()], "not an address"),
            (|p| p.request.body = "%".into(), "base64"),
            (|p| p.target.path = "a b".into(), "path"),
            (|p| p.cpus = vec![4000], "CPU 4000"),
            (|p| (p.concurrency, p.keepalive) = (2, false), "use more connections"),
        ];
        if !protocol.multiplexes() {
            changes.push((|p| p.concurrency = 2, "one request at a time"));
        } else {
            changes.push((|p| (p.connections, p.concurrency) = (1000, 2000), "more than 1000000"));
        }
        for (change, part) in changes {
            let mut plan = good.clone();
            change(&mut plan);
            let error = load::run(&plan, &Control::new(), &mut |_| ()).expect_err("refused");
            assert!(error.to_string().contains(part), "{protocol:?}: {error}");
        }
    }
}
