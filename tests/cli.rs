//! `bench load` as users meet it: exit codes, messages, signals, what goes on the wire, what is
//! printed, and the protocol that `bench run` speaks with it.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use assert_cmd::assert::OutputAssertExt;
use bench::load::plan::{Event, Limit, LoadPlan};
use bench::results::{Measurement, Protocol, Requests};
use common::{HELLO, PROTOCOLS, Scripted, check_identities, errors};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};

/// A window that no test waits for.
const LONG: &str = "10m";

#[test]
fn a_run_that_measured_exits_0_and_says_nothing_on_standard_error() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| conn.always(HELLO));
        let output = output(load(&["-c", "2", "-n", "10", "--json", &url(&server)]));
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let m = measurement(&output.stdout);
        check_identities(&m);
        assert_eq!((m.requests.ok, m.requests.failed, m.protocol), (10, 0, protocol));
        assert_eq!(server.requests(), 10);
    }
}

#[test]
fn nothing_listening_exits_1_with_the_reason_and_json_all_the_same() {
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{}/", free_address());
        for limit in [["-n", "10"], ["-z", LONG]] {
            let output = output(load(&["-c", "4", limit[0], limit[1], "--json", &url]));
            assert_eq!(output.status.code(), Some(1));
            let reason = String::from_utf8_lossy(&output.stderr);
            assert!(
                reason.starts_with("error: nothing was ok: ") && reason.contains("ECONNREFUSED"),
                "{reason}"
            );
            let m = measurement(&output.stdout);
            assert_eq!((m.requests, m.requests_per_second), (Requests::default(), None));
            assert_eq!(errors(&m), [("ECONNREFUSED".to_owned(), 4)]);
        }
        load(&["-n", "1", &url])
            .assert()
            .code(1)
            .stdout(contains("Requests/s   n/a").and(contains("ECONNREFUSED")));
    }
}

#[test]
fn answers_that_are_not_ok_exit_1_unless_they_are_what_was_expected() {
    let server = Scripted::start(Protocol::H1, |conn| {
        conn.always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    });
    let url = url(&server);
    let ask = |more: &[&str]| load(&[&["-c", "1", "-n", "3", &url], more].concat()).assert();
    ask(&[]).code(1).stderr(contains("nothing was ok").and(contains("404")));
    ask(&["--expect-status", "404"]).code(0);
    ask(&["--expect-status", "404", "--expect-body", "no"]).code(0).stdout(contains("404  3"));
    ask(&["--expect-status", "404", "--expect-body", "on"]).code(1).stderr(contains("body"));
}

#[test]
fn what_cannot_be_meant_exits_2_and_says_what_to_do() {
    let http = "http://127.0.0.1:1/";
    let https = "https://127.0.0.1:1/";
    for (args, advice) in [
        (
            &["-z", "1s", "-n", "1", http][..],
            &["'--duration <TIME>'", "cannot be used with", "'--requests <N>'"][..],
        ),
        (&[http], &["-z 10s", "-n 1000", "--show"]),
        (&["--show", "-c", "2", http], &["'--show'", "cannot be used with", "'--connections <N>'"]),
        (&[], &["<URL>"]),
        (&["-z", "0s", http], &["measures nothing"]),
        (&["-z", "5", http], &["no unit", "`10s`"]),
        (&["-n", "0", http], &["'--requests <N>'"]),
        (&["-n", "1", "ftp://localhost/"], &["must start with http:// or https://"]),
        (&["-n", "1", "localhost:80"], &["must start with http:// or https://"]),
        (&["-n", "1", "http://user:word@localhost/"], &["-H 'Authorization: ...'"]),
        (&["-n", "1", "--protocol", "h1", https], &["h1 is cleartext", "use h1s or http://"]),
        (&["-n", "1", "--protocol", "h1s", http], &["h1s is TLS", "use h1 or https://"]),
        (&["-n", "1", "--protocol", "h9", http], &["h1, h1s, h2c, h2, h3"]),
        (&["-n", "1", "--protocol", "h3", http], &["h3 is always encrypted", "use https://"]),
        (
            &["-n", "1", "--protocol", "h3", "--unix-socket", "/x", https],
            &["QUIC runs over UDP", "--unix-socket"],
        ),
        (&["-n", "1", "--resumption", "ticket", http], &["h1 is cleartext", "https://"]),
        (
            &["-n", "1", "--resumption", "0rtt", "--protocol", "h2", https],
            &["h3 alone", "--resumption ticket"],
        ),
        (&["-n", "1", "--resumption", "tickets", https], &["off, ticket, 0rtt"]),
        (&["-n", "1", "--quic-socket", "shared", https], &["--quic-socket is about QUIC", "--protocol h3"]),
        (&["-n", "1", "--quic-pacing", https], &["--quic-pacing", "this is h1s"]),
        (&["-n", "1", "--no-gso", https], &["--no-gso"]),
        (&["-n", "1", "--no-gro", http], &["--no-gro"]),
        (&["-n", "1", "--key-update-after", "9", https], &["--key-update-after is about QUIC"]),
        (&["-n", "1", "--protocol", "h3", "--quic-payload", "1199", https], &["1200..=65507"]),
        (&["-n", "1", "--protocol", "h3", "--quic-payload", "65508", https], &["65508"]),
        (&["-n", "1", "--requests-per-connection", "0", http], &["--requests-per-connection"]),
        (
            &["-n", "1", "--requests-per-connection", "2", "--disable-keepalive", http],
            &["cannot be used with"],
        ),
        (
            &["-n", "9", "--requests-per-connection", "2", "-m", "3", "--protocol", "h2c", http],
            &["less than the 3 at once", "a smaller -m"],
        ),
        (&["-n", "1", "--protocol", "h2c", https], &["h2c is cleartext", "use h2 or http://"]),
        (&["-n", "1", "--protocol", "h2", http], &["h2 is TLS", "use h2c or https://"]),
        (&["-n", "1", "-m", "2", http], &["one request at a time", "more connections", "--protocol h2c"]),
        (&["-n", "1", "-m", "2", https], &["one request at a time", "more connections", "--protocol h2)"]),
        (&["-n", "1", "-m", "2", "--protocol", "h1s", https], &["one request at a time"]),
        (
            &["-n", "1", "-m", "2", "--protocol", "h2c", "--disable-keepalive", http],
            &["carries one request", "leave one of them out"],
        ),
        (&["-n", "1", "-c", "0", http], &["'--connections <N>'"]),
        (&["-n", "1", "-H", "no colon", http], &["'Name: value'"]),
        (&["-n", "1", "-H", "a b: c", http], &["a b"]),
        (&["-n", "1", "-d", "@/no/such/file", http], &["cannot read /no/such/file"]),
        (&["-n", "1", "--connect-to", "127.0.0.1", http], &["127.0.0.1"]),
        (&["-n", "1", "--connect-to", "[::1]:1", "--unix-socket", "/x", http], &["cannot be used with"]),
        (&["--plan", "-", http], &["cannot be used with"]),
        (&["-n", "1", "--cpus", "3-1", http], &["not a range of CPUs"]),
        (&["-n", "1", "--verify=/no/such/file", https], &["/no/such/file"]),
    ] {
        let assert = load(args).assert().code(2).stdout("");
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        for part in advice {
            assert!(stderr.contains(part), "{args:?}: `{part}` is not in: {stderr}");
        }
    }
}

#[test]
fn help_has_examples_and_names_the_exit_codes() {
    load(&["--help"])
        .assert()
        .code(0)
        .stdout(contains("Examples:").and(contains("-z 10s")).and(contains("Exit codes: 0 measured; 1 ")))
        .stderr("");
}

#[test]
fn json_has_the_keys_that_were_promised() {
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    // Enough of them that CPU time is more than nothing.
    let output = output(load(&["-c", "2", "-n", "2000", "--json", &url(&server)]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (key, value) in [("ok", 2000), ("failed", 0), ("unfinished", 0)] {
        assert_eq!(json["requests"][key].as_u64(), Some(value), "{key}");
    }
    for key in [
        "/requests_per_second",
        "/latency_us/min",
        "/latency_us/mean",
        "/latency_us/p50",
        "/latency_us/p90",
        "/latency_us/p99",
        "/latency_us/p99_9",
        "/latency_us/max",
        "/in_flight",
        "/generator/cpu_user_us_per_request",
        "/generator/cpu_system_us_per_request",
    ] {
        let value = json.pointer(key).and_then(serde_json::Value::as_f64);
        assert!(value.is_some_and(|value| value.is_finite() && value >= 0.0), "{key}: {value:?}");
    }
    let latency = |key: &str| json["latency_us"][key].as_f64().expect("checked above");
    let ascending = ["min", "p50", "p90", "p99", "p99_9", "max"].map(latency);
    assert!(ascending[0] > 0.0 && ascending.is_sorted(), "{ascending:?}");
    assert!((latency("min")..=latency("max")).contains(&latency("mean")));
}

#[test]
fn text_has_the_lines_people_look_for() {
    let server = Scripted::start(Protocol::H1s, |conn| {
        if conn.index == 0 {
            conn.request();
            conn.send(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        } else {
            conn.always(HELLO);
        }
    });
    let url = url(&server);
    let text = load(&["-c", "1", "-t", "1", "-n", "21", &url]).assert().code(0).stderr("");
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert!(text.starts_with(&format!("{url}  HTTP/1.1 over TLS, TLSv1.3, ")), "{text}");
    for line in [
        &*format!("1 connection (kept alive) to {}, 1 thread", server.address),
        "\nRequests/s ",
        "\nRequests     20 ok, 1 failed, 0 unfinished in ",
        "\nTransfer ",
        "(280 B of bodies)",
        "\nIn flight ",
        " of 1 on average",
        "\nLatency (ms)   min ",
        "   50 % in ",
        "   99 % in ",
        " 99.9 % in ",
        "  up to ",
        "■",
        "\nStatus\n  200  20\n  503  1\n",
        "\nErrors\n  unexpected status ",
        "\nConnections  2 opened (1 reopened), 0 failed; set up in p50 ",
        "\nGenerator ",
        " µs CPU/request (",
    ] {
        assert!(text.contains(line), "`{line}` is not in:\n{text}");
    }
}

#[test]
fn a_response_is_shown_as_it_came_whether_it_is_ok_or_not() {
    for (status, code) in [("200 Fine", 0), ("404 Not Found", 1)] {
        let response = format!(
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
             HTTP/1.1 {status}\r\nContent-Encoding:  br\r\nContent-Length: 3\r\n\r\na\0b"
        );
        let server = Scripted::start(Protocol::H1, move |conn| conn.always(response.as_bytes()));
        let shown = format!("HTTP/1.1 {}\nContent-Encoding: br\nContent-Length: 3\n\na\0b", &status[..3]);
        let assert = load(&["--show", &url(&server)]).assert().code(code).stdout(shown);
        assert.stderr(if code == 0 { contains("").boxed() } else { contains("nothing was ok").boxed() });
        assert_eq!(server.requests(), 1);
    }
    let nobody = format!("http://{}/", free_address());
    load(&["--show", &nobody]).assert().code(1).stdout("").stderr(contains("nothing was ok"));
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let mut command = load(&["-c", "1", "-n", "5", &url(&server)]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bench starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    for (signal, json) in [(Signal::SIGINT, true), (Signal::SIGTERM, true), (Signal::SIGINT, false)] {
        let (server, seen) = telling_server(100);
        let format: &[&str] = if json { &["--json"] } else { &[] };
        let child = spawn(load(&[&["-c", "2", "-z", LONG, "--drain", LONG, &url(&server)], format].concat()));
        seen.recv().expect("requests are sent");
        send(&child, signal);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if json {
            let m = measurement(&output.stdout);
            check_identities(&m);
            assert!(
                m.interrupted && m.requests.ok > 0 && m.window.length_s < Some(600.0),
                "{:?}",
                m.requests
            );
            assert_eq!(m.lifetime.started, server.requests());
        } else {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("\nInterrupted: the window was cut short."), "{text}");
            assert!(text.contains("\nLatency (ms) "), "{text}");
        }
    }
}

#[test]
fn ctrl_c_ends_a_counted_run_and_a_warm_up_too() {
    for args in [&["-n", "1000000000"][..], &["-z", "1s", "--warmup", LONG], &["-n", "9", "--warmup", LONG]] {
        let (server, seen) = telling_server(100);
        let child = spawn(load(&[&["-c", "2", "--drain", LONG, "--json", &url(&server)], args].concat()));
        seen.recv().expect("requests are sent");
        send(&child, Signal::SIGINT);
        let output = child.wait_with_output().expect("it ends");
        let m = measurement(&output.stdout);
        check_identities(&m);
        assert!(m.interrupted, "{args:?}");
        assert_eq!(m.lifetime.started, server.requests(), "{args:?}");
        // What only warmed up has measured nothing.
        let measured = !args.contains(&"--warmup");
        assert_eq!(
            (m.requests.ok > 0, output.status.code()),
            (measured, Some(i32::from(!measured))),
            "{args:?}"
        );
    }
}

#[test]
fn a_second_ctrl_c_aborts() {
    let (tell, seen) = mpsc::channel();
    let tell = Mutex::new(tell);
    // Only an abort ends a wait for this server's answer.
    let server = Scripted::start(Protocol::H1, move |conn| {
        conn.request();
        let _ = tell.lock().map(|tell| tell.send(()));
        conn.request();
    });
    let mut child = spawn(load(&["-c", "1", "-z", LONG, "--drain", LONG, "--timeout", "0s", &url(&server)]));
    seen.recv().expect("a request is sent");
    let deadline = Instant::now() + Duration::from_secs(60);
    // Signals that arrive together are one, so a few may be needed.
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end");
        send(&child, Signal::SIGINT);
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(130));
    let mut printed = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut printed).expect("text");
    assert_eq!(printed, "");
}

#[test]
fn a_plan_is_answered_by_events_and_the_measurement_is_last() {
    for protocol in PROTOCOLS {
        let server = Scripted::start(protocol, |conn| conn.always(HELLO));
        let (code, events) = run_plan(&server.plan(2, Limit::DurationNs(50_000_000)));
        let [
            Event::Connected { up: 2, of: 2, address },
            Event::Window { opens_at_ns, closes_at_ns },
            Event::Measurement(m),
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((code, address), (Some(0), &server.address.to_string()));
        assert_eq!((Some(*opens_at_ns), *closes_at_ns), (m.window.opened_at_ns, m.window.closed_at_ns));
        assert!(m.requests.ok > 0);

        let (code, events) = run_plan(&server.plan(2, Limit::Requests(30)));
        let [
            Event::Connected { .. },
            Event::Window { closes_at_ns: None, .. },
            Event::WindowClosed { closed_at_ns },
            Event::Measurement(m),
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((code, m.requests.ok, m.window.closed_at_ns), (Some(0), 30, Some(*closed_at_ns)));
    }
    let nobody = common::plan(Protocol::H1, &free_address(), 1, Limit::Requests(1));
    let (code, events) = run_plan(&nobody);
    assert!(matches!(&events[..], [Event::Measurement(m)] if m.requests.ok == 0), "{events:?}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_plan_may_stand_in_a_file() {
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("plan.json");
    std::fs::write(&file, serde_json::to_vec(&server.plan(1, Limit::Requests(3))).unwrap()).unwrap();
    load(&["--plan", path(&file)]).assert().code(0).stdout(starts_with("{\"event\":\"connected\""));
    assert_eq!(server.requests(), 3);
}

#[test]
fn a_bad_plan_is_one_error_event_and_exit_2() {
    let good = common::plan(Protocol::H1, &free_address(), 1, Limit::Requests(1));
    let mut unknown = serde_json::to_value(&good).unwrap();
    unknown["conections"] = 1.into();
    let absurd = LoadPlan { connections: 0, ..good.clone() };
    let unspeakable =
        LoadPlan { target: bench::load::plan::Target { path: "a b".into(), ..good.target.clone() }, ..good };
    for (text, part) in [
        (String::new(), "the plan: EOF"),
        ("{}".into(), "missing field"),
        (unknown.to_string(), "unknown field `conections`"),
        (serde_json::to_string(&absurd).unwrap(), "at least 1"),
        (serde_json::to_string(&unspeakable).unwrap(), "path"),
    ] {
        let (code, events) = feed(&text);
        let [Event::Error { message }] = &events[..] else { panic!("{text}: {events:?}") };
        assert_eq!(code, Some(2));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_generator_told_to_end_still_gives_its_measurement() {
    let server = Scripted::start(Protocol::H1, |conn| conn.always(HELLO));
    let mut child = spawn_fed(load(&["--plan", "-"]));
    let plan = serde_json::to_vec(&server.plan(1, Limit::DurationNs(600_000_000_000))).unwrap();
    child.stdin.take().expect("it is piped").write_all(&plan).expect("it reads its plan");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || event(&lines.next().expect("there is more").expect("text"));
    assert!(matches!(next(), Event::Connected { .. }));
    assert!(matches!(next(), Event::Window { .. }));
    send(&child, Signal::SIGTERM);
    let Event::Measurement(m) = next() else { panic!("no measurement") };
    assert!(m.interrupted);
    assert!(lines.next().is_none());
    child.wait().expect("it ends");
}

#[test]
fn the_request_is_what_the_options_say() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("body");
    // Any bytes, and more than one read or write takes.
    let body: Vec<u8> = (0..300_000u32).map(|i| (i * 7) as u8).collect();
    std::fs::write(&file, &body).unwrap();
    let from_file = format!("@{}", path(&file));
    for (args, first_line, sent) in [
        (&["-d", "text"][..], "POST /a?b=c HTTP/1.1", &b"text"[..]),
        (&["-d", &from_file], "POST /a?b=c HTTP/1.1", &body),
        (&["-d", "@-"], "POST /a?b=c HTTP/1.1", b"from standard input"),
        (&["-X", "PUT", "-d", ""], "PUT /a?b=c HTTP/1.1", b""),
        (&["-X", "DELETE"], "DELETE /a?b=c HTTP/1.1", b""),
        (&[], "GET /a?b=c HTTP/1.1", b""),
    ] {
        let (server, requests) = recording_server();
        let url = format!("http://{}/a?b=c", server.address);
        let mut child = spawn_fed(load(&[&["-c", "1", "-n", "2", &url], args].concat()));
        // A body that does not come from here leaves nobody to read this.
        let _ = child.stdin.take().expect("it is piped").write_all(b"from standard input");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{args:?}");
        let requests = requests.lock().unwrap();
        assert_eq!(requests.len(), 2, "{args:?}");
        for request in &*requests {
            let (head, received) = split(request);
            assert_eq!(head[0], first_line, "{args:?}");
            assert!(received == sent, "{args:?}: {} bytes, not {}", received.len(), sent.len());
        }
    }
}

#[test]
fn header_fields_are_sent_as_often_as_given() {
    let (server, requests) = recording_server();
    let fields = ["-H", "Accept: text/plain", "-H", "X-A: 1", "-H", "x-a:2", "-H", "X-Colon: a:b"];
    load(&[&["-c", "1", "-n", "1", &url(&server)], &fields[..]].concat()).assert().code(0);
    load(&["-c", "1", "-n", "1", "-H", "Host: other.example", &url(&server)]).assert().code(0);
    let requests = requests.lock().unwrap();
    let (head, _) = split(&requests[0]);
    for line in ["Accept: text/plain", "X-A: 1", "x-a: 2", "X-Colon: a:b"] {
        assert_eq!(head.iter().filter(|sent| *sent == line).count(), 1, "{line}: {head:?}");
    }
    let hosts = |request: &[u8]| -> Vec<String> {
        split(request).0.into_iter().filter(|line| line.to_ascii_lowercase().starts_with("host:")).collect()
    };
    assert_eq!(hosts(&requests[0]), [format!("Host: {}", server.address)]);
    assert_eq!(hosts(&requests[1]), ["Host: other.example"]);
}

#[test]
fn a_unix_socket_is_connected_to_and_the_url_still_names_the_host() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).expect("text"), 0);
        }
        (&stream).write_all(HELLO).expect("the client reads");
        head
    });
    load(&["-c", "1", "-n", "1", "--unix-socket", path(&socket), "http://name.invalid/path"])
        .assert()
        .code(0)
        .stdout(contains(format!("to unix:{}", path(&socket))));
    let head = serving.join().expect("it was asked");
    assert!(
        head.starts_with("GET /path HTTP/1.1\r\n") && head.contains("\r\nHost: name.invalid\r\n"),
        "{head}"
    );
}

#[test]
fn address_host_and_server_name_may_all_differ() {
    for (more, name) in [(&[][..], "name.invalid"), (&["--sni", "other.invalid"], "other.invalid")] {
        let names = Arc::new(Mutex::new(Vec::new()));
        let mut config = (*common::tls_config(&[b"http/1.1"], rustls::ALL_VERSIONS)).clone();
        config.cert_resolver =
            Arc::new(NameRecorder { names: Arc::clone(&names), inner: Arc::clone(&config.cert_resolver) });
        let hosts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&hosts);
        let server = Scripted::with_tls(Some(Arc::new(config)), move |conn| {
            while let Some(request) = conn.request() {
                let (head, _) = split(&request);
                seen.lock().unwrap().extend(head.into_iter().filter(|line| line.starts_with("Host:")));
                conn.send(HELLO);
            }
        });
        let to = server.address.to_string();
        let args = ["-c", "1", "-n", "1", "--connect-to", &to, "https://name.invalid/"];
        load(&[&args, more].concat()).assert().code(0).stdout(contains(format!("to {to},")));
        assert_eq!(*names.lock().unwrap(), [Some(name.to_owned())]);
        assert_eq!(*hosts.lock().unwrap(), ["Host: name.invalid"]);
    }
}

/// Writes down the server name of each handshake.
#[derive(Debug)]
struct NameRecorder {
    names: Arc<Mutex<Vec<Option<String>>>>,
    inner: Arc<dyn rustls::server::ResolvesServerCert>,
}

impl rustls::server::ResolvesServerCert for NameRecorder {
    fn resolve(&self, hello: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        self.names.lock().unwrap().push(hello.server_name().map(str::to_owned));
        self.inner.resolve(hello)
    }
}

/// A server that says when it has been asked for `count` times.
fn telling_server(count: u64) -> (Scripted, mpsc::Receiver<()>) {
    let (tell, seen) = mpsc::channel();
    let state = Mutex::new((0, tell));
    let server = Scripted::start(Protocol::H1, move |conn| {
        while conn.request().is_some() && conn.send(HELLO) {
            let mut state = state.lock().unwrap();
            state.0 += 1;
            if state.0 == count {
                state.1.send(()).unwrap();
            }
        }
    });
    (server, seen)
}

/// A server that keeps every request.
fn recording_server() -> (Scripted, Arc<Mutex<Vec<Vec<u8>>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&requests);
    let server = Scripted::start(Protocol::H1, move |conn| {
        while let Some(request) = conn.request() {
            kept.lock().unwrap().push(request);
            conn.send(HELLO);
        }
    });
    (server, requests)
}

/// Lines of the head of a request, and its body.
fn split(request: &[u8]) -> (Vec<String>, &[u8]) {
    let end = memchr::memmem::find(request, b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8_lossy(&request[..end]);
    (head.split("\r\n").map(str::to_owned).collect(), &request[end + 4..])
}

fn url(server: &Scripted) -> String {
    let scheme = if server.plan(1, Limit::Requests(1)).protocol == Protocol::H1 { "http" } else { "https" };
    format!("{scheme}://{}/", server.address)
}

/// An address of loopback where nobody listens.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound listener has an address").to_string()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("an ASCII path")
}

/// `bench load` with these arguments.
fn load(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.arg("load").args(args).stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("bench starts")
}

/// Starts it with both outputs piped.
fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bench starts")
}

/// Starts it with its input piped as well.
fn spawn_fed(mut command: Command) -> Child {
    command.stdin(Stdio::piped());
    spawn(command)
}

fn send(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("process ids are small");
    kill(Pid::from_raw(pid), signal).expect("it was not waited for yet");
}

fn measurement(stdout: &[u8]) -> Measurement {
    serde_json::from_slice(stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(stdout)))
}

/// Runs a plan by `bench load --plan -`: exit code and events.
fn run_plan(plan: &LoadPlan) -> (Option<i32>, Vec<Event>) {
    feed(&serde_json::to_string(plan).expect("a plan can be written"))
}

fn feed(text: &str) -> (Option<i32>, Vec<Event>) {
    let mut child = spawn_fed(load(&["--plan", "-"]));
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads its plan");
    let output = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), lines.lines().map(event).collect())
}

fn event(line: &str) -> Event {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}
