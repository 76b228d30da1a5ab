//! The generator against scripted servers: framing, counting, failures, every way a run can end. One
//! body of tests, run over every protocol.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bench::load::plan::{Event, Limit};
use bench::load::{self, Control};
use bench::results::{Phase, Protocol, WaitMode};
use common::{Conn, HELLO, PROTOCOLS, Scripted, base64, check_identities, errors, run};

const MS: u64 = 1_000_000;

/// `count` requests over `connections`, over every protocol, against a server that always gives
/// `answer`; the measurement is checked by `check`.
fn answers(answer: &'static [u8], check: impl Fn(&bench::results::Measurement, &Scripted)) {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, move |conn| conn.always(answer));
        let m = run(&server.plan(4, Limit::Requests(40)));
        check_identities(&m);
        assert_eq!(m.requests.started, 40, "{protocol:?}");
        check(&m, &server);
    }
}

fn all_ok(m: &bench::results::Measurement, server: &Scripted) {
    assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{:?}", m.errors);
    assert_eq!(server.requests(), 40);
    assert_eq!(m.connection.reopened, 0);
}

#[test]
fn content_length() {
    answers(HELLO, |m, server| {
        all_ok(m, server);
        assert_eq!(m.statuses.get("200"), Some(&40));
        assert_eq!(m.transfer.body_bytes, 40 * 14);
    });
}

#[test]
fn chunked_with_extensions_and_trailers() {
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
        5;a=b;c=\"d;\\\"e\"\r\nHello\r\n009\r\n, World!\n\r\n0;last\r\nX: y\r\n\r\n";
    answers(answer, |m, server| {
        all_ok(m, server);
        assert_eq!(m.transfer.body_bytes, 40 * 14);
    });
}

#[test]
fn interim_responses_are_no_completions() {
    let answer = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    answers(answer, |m, server| {
        all_ok(m, server);
        assert_eq!(m.interim_responses, 80);
        assert_eq!(m.statuses.len(), 1);
    });
}

#[test]
fn no_content_and_not_modified_have_no_body_whatever_they_say() {
    answers(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", all_ok);
    answers(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", all_ok);
}

#[test]
fn head_has_no_body_whatever_it_says() {
    for protocol in PROTOCOLS {
        let server =
            Scripted::start(protocol, |conn| conn.always(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"));
        let mut plan = server.plan(2, Limit::Requests(20));
        plan.request.method = "HEAD".into();
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.connection.reopened), (20, 0));
    }
}

#[test]
fn stray_bytes_after_a_response_cost_the_connection_not_the_response() {
    for protocol in PROTOCOLS {
        let server =
            Scripted::start(protocol, |conn| conn.always(b"HTTP/1.1 204 No Content\r\n\r\n0\r\n\r\n"));
        let m = run(&server.plan(1, Limit::Requests(10)));
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed), (10, 0), "{:?}", m.errors);
        assert_eq!(m.errors.iter().map(|e| (e.phase, e.requests)).collect::<Vec<_>>(), [(Phase::Framing, 0)]);
        assert!(server.accepted() >= 10);
    }
}

#[test]
fn a_close_delimited_body_ends_with_its_connection() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            if conn.request().is_some() {
                conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nHello, World!\n");
            }
        });
        let m = run(&server.plan(4, Limit::Requests(40)));
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{:?}", m.errors);
        assert_eq!(m.connection.reopened + 4, m.connection.opened);
        assert_eq!(m.transfer.body_bytes, 40 * 14);
    }
}

#[test]
fn connection_close_and_http10_reconnect_and_go_on() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"[..],
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ] {
        for protocol in PROTOCOLS {
            let server = Scripted::start(protocol, move |conn| {
                if conn.request().is_some() {
                    conn.send(answer);
                }
            });
            let m = run(&server.plan(4, Limit::Requests(40)));
            check_identities(&m);
            assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{:?}", m.errors);
            assert!(m.connection.reopened >= 36, "{:?}", m.connection);
            assert_eq!(server.requests(), 40);
        }
    }
}

#[test]
fn a_response_may_be_split_anywhere() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            let mut at = 0;
            while conn.request().is_some() {
                let (first, second) = HELLO.split_at(at % HELLO.len());
                at += 1;
                if !conn.send(first) || !conn.send(second) {
                    return;
                }
            }
        });
        let count = HELLO.len() as u64 * 2;
        let mut plan = server.plan(1, Limit::Requests(count));
        plan.expect.body = Some(base64(b"Hello, World!\n"));
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.connection.reopened), (count, 0), "{:?}", m.errors);
    }
}

#[test]
fn a_head_of_64_kib_is_read_and_a_longer_one_refused() {
    for (filler, ok) in [(60 * 1024, true), (70 * 1024, false)] {
        for protocol in PROTOCOLS {
            let server = Scripted::start(protocol, move |conn| {
                let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".to_vec();
                while answer.len() < filler {
                    answer.extend_from_slice(
                        b"X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
                    );
                }
                answer.extend_from_slice(b"\r\n");
                conn.always(&answer);
            });
            let m = run(&server.plan(1, Limit::Requests(3)));
            check_identities(&m);
            assert_eq!(m.requests.ok, if ok { 3 } else { 0 }, "{:?}", m.errors);
            assert!(ok || m.errors.iter().all(|e| e.phase == Phase::Framing), "{:?}", m.errors);
        }
    }
}

#[test]
fn conflicting_framing_is_a_violation_and_never_a_guess() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    ] {
        for protocol in PROTOCOLS {
            let server = Scripted::start(protocol, move |conn| conn.always(answer));
            let m = run(&server.plan(2, Limit::Requests(4)));
            check_identities(&m);
            assert_eq!((m.requests.ok, m.requests.failed), (0, 4), "{:?}", m.errors);
            assert!(m.errors.iter().all(|e| e.phase == Phase::Framing), "{:?}", m.errors);
            assert_eq!(m.latency_us, None);
        }
    }
}

#[test]
fn a_body_of_many_megabytes_is_counted_and_not_kept() {
    const LENGTH: usize = 64 << 20;
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            let chunk = vec![b'x'; 1 << 20];
            while conn.request().is_some() {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
                if !conn.send(head.as_bytes()) || !(0..LENGTH >> 20).all(|_| conn.send(&chunk)) {
                    return;
                }
            }
        });
        let mut plan = server.plan(1, Limit::Requests(2));
        plan.expect.length = Some(LENGTH as u64);
        let m = run(&plan);
        check_identities(&m);
        assert_eq!(m.requests.ok, 2, "{:?}", m.errors);
        assert_eq!(m.transfer.body_bytes, 2 * LENGTH as u64);
    }
}

#[test]
fn a_large_upload_arrives_whole() {
    let body: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    for protocol in PROTOCOLS {
        let expected = body.clone();
        let server = Scripted::start(protocol, move |conn| {
            while let Some(request) = conn.request() {
                let good = request.ends_with(&expected);
                let answer: &[u8] =
                    if good { HELLO } else { b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n" };
                if !conn.send(answer) {
                    return;
                }
            }
        });
        let mut plan = server.plan(2, Limit::Requests(6));
        plan.request.method = "POST".into();
        plan.request.body = base64(&body);
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.connection.reopened), (6, 0), "{:?}", m.errors);
        assert!(m.transfer.sent_bytes >= 6 * body.len() as u64);
    }
}

#[test]
fn an_answer_before_the_whole_upload_is_counted_and_its_connection_replaced() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            let mut some = [0; 1024];
            if conn.stream.read(&mut some).is_ok_and(|n| n > 0) {
                conn.send(
                    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                );
                // The client is not to be reset before it has read the answer.
                while conn.stream.read(&mut some).is_ok_and(|n| n > 0) {}
            }
        });
        let mut plan = server.plan(1, Limit::Requests(3));
        plan.request.method = "PUT".into();
        plan.request.body = base64(&vec![0; 20_000_000]);
        let m = run(&plan);
        check_identities(&m);
        assert_eq!(m.statuses.get("413"), Some(&3), "{:?}", m.errors);
        assert_eq!(m.requests.failed, 3);
    }
}

#[test]
fn unexpected_responses_are_failures_with_their_kind() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            conn.always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
        });
        let m = run(&server.plan(2, Limit::Requests(10)));
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed, m.latency_us.is_none()), (0, 10, true));
        assert_eq!(m.statuses.get("404"), Some(&10));
        assert_eq!(errors(&m), [("status".to_owned(), 10)]);

        for (body, kind) in [(&b"Hello, World?\n"[..], "body"), (b"Hello", "length")] {
            let server = Scripted::start(protocol, |conn| conn.always(HELLO));
            let mut plan = server.plan(2, Limit::Requests(10));
            plan.expect.body = Some(base64(body));
            let m = run(&plan);
            check_identities(&m);
            assert_eq!(errors(&m), [(kind.to_owned(), 10)]);
        }
    }
}

#[test]
fn a_connection_that_never_answers_is_one_unfinished_request() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            if conn.index == 0 {
                while conn.request().is_some() {}
            } else {
                conn.always(HELLO);
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

#[test]
fn a_late_response_fails_its_request_and_costs_its_connection() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| {
            while conn.request().is_some() {
                if conn.index == 0 {
                    continue;
                }
                if !conn.send(HELLO) {
                    return;
                }
            }
        });
        let mut plan = server.plan(1, Limit::Requests(5));
        plan.timeout_ns = 100 * MS;
        let m = run(&plan);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed), (4, 1), "{:?}", m.errors);
        assert_eq!(m.errors.first().map(|e| e.phase), Some(Phase::Timeout));
        assert_eq!(m.connection.reopened, 1);
    }
}

#[test]
fn nobody_listening_ends_at_once_with_the_reason() {
    let free =
        TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap_or_else(|e| panic!("{e}"));
    for protocol in PROTOCOLS {
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
        for protocol in PROTOCOLS {
            let server = Scripted::start(protocol, |conn| {
                conn.request();
            });
            let mut plan = server.plan(4, Limit::DurationNs(600 * MS));
            plan.keepalive = keepalive;
            let m = run(&plan);
            check_identities(&m);
            assert_eq!(m.requests.ok, 0);
            assert!(m.requests.failed > 0);
            // 10 ms doubled seven times: not over a dozen attempts of each connection.
            assert!(m.connection.attempted <= 4 * 12, "{:?}", m.connection);
        }
    }
}

#[test]
fn a_server_that_goes_away_leaves_bounded_attempts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("{e}"));
    let address = listener.local_addr().unwrap_or_else(|e| panic!("{e}"));
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap_or_else(|e| panic!("{e}"));
        let mut buffer = [0; 4096];
        for _ in 0..100 {
            let n = std::io::Read::read(&mut stream, &mut buffer).unwrap_or(0);
            if n == 0 || stream.write_all(HELLO).is_err() {
                break;
            }
        }
    });
    let mut plan = common::plan(Protocol::H1, &address.to_string(), 1, Limit::DurationNs(700 * MS));
    plan.drain_ns = 0;
    let m = run(&plan);
    check_identities(&m);
    assert!(serving.join().is_ok());
    assert_eq!(m.requests.ok, 100);
    assert!(m.errors.iter().any(|e| e.kind == "ECONNREFUSED"), "{:?}", m.errors);
    assert!(m.connection.attempted < 20, "{:?}", m.connection);
    // A counted run against the same void ends too.
    let m = run(&common::plan(Protocol::H1, &address.to_string(), 2, Limit::Requests(10)));
    assert_eq!(m.requests.ok, 0);
}

/// The server's own count of requests equals ours, however a run ends.
#[test]
fn counts_equal_the_servers_own() {
    for protocol in PROTOCOLS {
        for keepalive in [true, false] {
            for (limit, warmup) in [
                (Limit::Requests(500), 0),
                (Limit::Requests(200), 50 * MS),
                (Limit::DurationNs(200 * MS), 0),
                (Limit::DurationNs(200 * MS), 50 * MS),
            ] {
                for (threads, wait) in [(1, WaitMode::Sleep), (2, WaitMode::Poll)] {
                    let server = Scripted::start(protocol, |conn| conn.always(HELLO));
                    let mut plan = server.plan(5, limit);
                    (plan.warmup_ns, plan.keepalive, plan.threads, plan.wait) =
                        (warmup, keepalive, threads, wait);
                    plan.drain_ns = 10_000 * MS;
                    let m = run(&plan);
                    check_identities(&m);
                    let what =
                        format!("{protocol:?} {keepalive} {limit:?} {warmup} {threads} {:?}", m.errors);
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
    for protocol in PROTOCOLS {
        let control = Control::new();
        let (stop, told) = (control.clone(), AtomicBool::new(false));
        let told = Arc::new(told);
        let seen = Arc::clone(&told);
        let served = AtomicU64::new(0);
        let server = Scripted::start(protocol, move |conn| {
            while conn.request().is_some() && conn.send(HELLO) {
                if served.fetch_add(1, Ordering::SeqCst) == 300 && !seen.swap(true, Ordering::SeqCst) {
                    stop.stop();
                }
            }
        });
        let mut plan = server.plan(4, Limit::DurationNs(60_000 * MS));
        plan.drain_ns = 10_000 * MS;
        let m = load::run(&plan, &control, &mut |_| ()).unwrap_or_else(|e| panic!("{e}"));
        check_identities(&m);
        assert!(m.interrupted && told.load(Ordering::SeqCst));
        assert_eq!(m.lifetime.ok, server.requests());
        assert!(m.window.length_s.is_some_and(|s| s < 60.0));
    }
}

#[test]
fn the_window_is_announced_and_kept() {
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let mut plan = server.plan(2, Limit::DurationNs(100 * MS));
    plan.warmup_ns = 20 * MS;
    let mut events = Vec::new();
    let m =
        load::run(&plan, &Control::new(), &mut |event| events.push(event)).unwrap_or_else(|e| panic!("{e}"));
    let [Event::Connected { up: 2, of: 2, .. }, Event::Window { opens_at_ns, closes_at_ns }] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((Some(*opens_at_ns), *closes_at_ns), (m.window.opened_at_ns, m.window.closed_at_ns));
    assert_eq!(closes_at_ns.map(|at| at - opens_at_ns), Some(100 * MS));
    assert_eq!(m.window.length_s, Some(0.1));
}

#[test]
fn a_fresh_connection_for_each_request() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| conn.always(HELLO));
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
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap_or_else(|e| panic!("{e}"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut buffer = [0; 4096];
                while std::io::Read::read(&mut stream, &mut buffer).is_ok_and(|n| n > 0) {
                    if stream.write_all(HELLO).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let m = run(&common::plan(Protocol::H1, &format!("unix:{}", path.display()), 2, Limit::Requests(20)));
    check_identities(&m);
    assert_eq!(m.requests.ok, 20, "{:?}", m.errors);

    let listener = TcpListener::bind("[::1]:0").unwrap_or_else(|e| panic!("IPv6 loopback is needed: {e}"));
    let server = Scripted::on(listener, None, |conn| conn.always(HELLO));
    let m = run(&server.plan(2, Limit::Requests(20)));
    assert_eq!(m.requests.ok, 20, "{:?}", m.errors);
}

#[test]
fn the_address_that_answers_is_used_and_named() {
    let dead =
        TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap_or_else(|e| panic!("{e}"));
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let mut plan = server.plan(2, Limit::Requests(20));
    plan.target.addresses.insert(0, dead.to_string());
    let m = run(&plan);
    assert_eq!((m.requests.ok, m.connection.failed), (20, 0));
    assert_eq!(m.addresses, [server.address.to_string()]);
}

#[test]
fn exactly_one_host_on_the_wire() {
    for (headers, host) in
        [(vec![], "localhost"), (vec![("hOsT".to_owned(), "other.example".to_owned())], "other.example")]
    {
        let server = Scripted::start(Protocol::H1, move |conn| {
            while let Some(request) = conn.request() {
                let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
                let hosts: Vec<&str> =
                    text.lines().filter_map(|line| line.strip_prefix("host:")).map(str::trim).collect();
                let answer: &[u8] =
                    if hosts == [host] { HELLO } else { b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n" };
                if !conn.send(answer) {
                    return;
                }
            }
        });
        let mut plan = server.plan(1, Limit::Requests(3));
        plan.request.headers = headers;
        assert_eq!(run(&plan).requests.ok, 3);
    }
}

#[test]
fn tls_versions_alpn_and_wrong_protocols() {
    // Without ALPN, and with each version alone.
    for (versions, name) in
        [(&[&rustls::version::TLS12][..], "TLSv1.2"), (&[&rustls::version::TLS13], "TLSv1.3")]
    {
        let server = Scripted::with_tls(Some(common::tls_config(&[], versions)), |conn| conn.always(HELLO));
        let m = run(&server.plan(2, Limit::Requests(10)));
        assert_eq!(m.requests.ok, 10, "{:?}", m.errors);
        let negotiated = m.negotiated.unwrap_or_else(|| panic!("nothing was negotiated"));
        assert_eq!((negotiated.tls.as_deref(), negotiated.alpn), (Some(name), None));
        assert!(negotiated.cipher.is_some() && negotiated.group.is_some());
    }
    // A server that offers only another protocol.
    let server = Scripted::with_tls(Some(common::tls_config(&[b"h2"], rustls::ALL_VERSIONS)), |conn| {
        conn.always(HELLO);
    });
    let m = run(&server.plan(2, Limit::Requests(10)));
    assert_eq!((m.requests.ok, m.errors.first().map(|e| e.phase)), (0, Some(Phase::Tls)), "{:?}", m.errors);
    // TLS to a cleartext server, and cleartext to a TLS server.
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let m = run(&common::plan(Protocol::H1s, &server.address.to_string(), 1, Limit::DurationNs(300 * MS)));
    assert_eq!(m.requests.ok, 0);
    let server = Scripted::start(Protocol::H1s, |conn| conn.always(HELLO));
    let m = run(&common::plan(Protocol::H1, &server.address.to_string(), 1, Limit::DurationNs(300 * MS)));
    assert_eq!(m.requests.ok, 0);
    check_identities(&m);
}

#[test]
fn a_certificate_is_checked_only_when_asked() {
    let server = Scripted::start(Protocol::H1s, |conn| conn.always(HELLO));
    let mut plan = server.plan(1, Limit::Requests(3));
    assert_eq!(run(&plan).requests.ok, 3);
    plan.verify = Some(load::plan::Verify::System);
    match load::run(&plan, &Control::new(), &mut |_| ()) {
        Ok(m) => assert_eq!(errors(&m), [("invalid-certificate".to_owned(), 1)]),
        // A machine without root certificates says so.
        Err(error) => assert!(error.to_string().contains("root certificates"), "{error}"),
    }
}

#[test]
fn tls_cut_without_close_notify_is_no_end_of_a_body() {
    let server = Scripted::start(Protocol::H1s, |conn| {
        if conn.request().is_some() {
            conn.send(b"HTTP/1.1 200 OK\r\n\r\ncut");
            conn.cut();
        }
    });
    let m = run(&server.plan(1, Limit::Requests(2)));
    check_identities(&m);
    assert_eq!(m.requests.ok, 0);
    assert_eq!(errors(&m), [("closed-without-close-notify".to_owned(), 2)]);
}

#[test]
fn little_is_hidden_at_one_connection() {
    for wait in [WaitMode::Sleep, WaitMode::Poll] {
        let server = Scripted::start(Protocol::H1, |conn: &mut Conn| conn.always(HELLO));
        let mut plan = server.plan(1, Limit::DurationNs(500 * MS));
        plan.wait = wait;
        let m = run(&plan);
        let in_flight = m.in_flight.unwrap_or(0.0);
        assert!((0.8..=1.02).contains(&in_flight), "{in_flight}");
    }
}

/// With one request in flight, an answer that is taken together with the opening edge is the only
/// thing that can happen: left for later, it would be the last one of the whole window.
#[test]
fn an_answer_taken_at_the_opening_edge_is_handled_at_once() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| conn.always(HELLO));
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

#[test]
fn plans_that_make_no_sense_are_refused() {
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let good = server.plan(1, Limit::Requests(1));
    for (change, part) in [
        ((|p| p.connections = 0) as fn(&mut load::plan::LoadPlan), "at least 1"),
        (|p| p.concurrency = 2, "one request at a time"),
        (|p| p.limit = Limit::Requests(0), "nothing"),
        (|p| p.connections = 100_000_000, "file descriptors"),
        (|p| p.target.addresses = vec!["nonsense".into()], "not an address"),
        (|p| p.request.body = "%".into(), "base64"),
        (|p| p.target.path = "a b".into(), "path"),
        (|p| p.cpus = vec![4000], "CPU 4000"),
    ] {
        let mut plan = good.clone();
        change(&mut plan);
        let error = load::run(&plan, &Control::new(), &mut |_| ()).expect_err("refused");
        assert!(error.to_string().contains(part), "{error}");
    }
}
