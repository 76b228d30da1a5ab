//! The generator against scripted servers, where it is a matter of HTTP/1.1's own syntax. What has a
//! meaning in every protocol stands in `load.rs`.

mod common;

use bench::load::plan::Limit;
use bench::results::{Measurement, Phase, Protocol};
use common::{PROTOCOLS, Scripted, check_identities, errors, run};

/// 40 requests over 4 connections against a server that always gives `answer`.
fn answers(answer: &'static [u8], check: impl Fn(&Measurement, &Scripted)) {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, move |conn| conn.always(answer));
        let m = run(&server.plan(4, Limit::Requests(40)));
        check_identities(&m);
        assert_eq!(m.requests.started, 40, "{protocol:?}");
        check(&m, &server);
    }
}

fn all_ok(m: &Measurement, server: &Scripted) {
    assert_eq!((m.requests.ok, m.requests.failed), (40, 0), "{:?}", m.errors);
    assert_eq!(server.requests(), 40);
    assert_eq!(m.connection.reopened, 0);
}

#[test]
fn no_content_has_no_body_whatever_it_says() {
    answers(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", all_ok);
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
