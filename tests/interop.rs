//! The generator against real servers: each of `servers/`, over each protocol it offers, from its build
//! to the end of its last process.
//!
//! A server that is not installed is said to be missing, on standard error past the test harness, and
//! its tests pass; with `BENCH_REQUIRE_SERVERS` in the environment they fail.

mod common;
#[path = "common/turn.rs"]
mod turn;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench::load::plan::{Expect, Limit, LoadPlan};
use bench::results::{Handshakes, Measurement, Protocol, Resumption};
use bench::scenario::{self, Overrides, ServerSpec};
use bench::server::{self, Certificate, Host, Ports, Probe, Running, ServerError, allocate_ports};
use bench::time::Span;
use common::{base64, check_identities, run};
use turn::Turn;

const HELLO: &[u8] = b"Hello, World!\n";

/// What `servers/README.md` asks of each server: path, length of its body, and how often to ask.
const PATHS: [(&str, usize, u64); 5] = [
    ("/", 14, 640),
    ("/empty", 0, 640),
    ("/1k", 1024, 320),
    ("/16k", 16 * 1024, 256),
    ("/1m", 1024 * 1024, LARGE),
];

/// How often to ask for, or to send, a mebibyte.
const LARGE: u64 = 128;

/// Length of an upload.
const UPLOAD: usize = 1024 * 1024;

/// Servers that are asked for less: their QUIC is written in Python.
const SLOW: [&str; 1] = ["python-aioquic"];

/// Servers that give out tickets, but never take early data.
const WITHOUT_EARLY_DATA: [&str; 2] = ["s2n-quic", "bun"];

/// Servers that give a ticket to a connection whose handshake was a full one, and none to one that resumed.
const ONE_TICKET_FOR_A_SESSION: [&str; 1] = ["s2n-quic"];

/// Servers that no registry and no distribution packages; they are measured where somebody built them.
const NOT_PACKAGED: [&str; 5] = ["h2o-h3", "msquic", "nginx-h3", "nurl", "quic-zig"];

/// What nginx before 1.25.1 needs for HTTP/2 in cleartext, as in `scenarios/h2.toml`.
const NGINX_H2C: &str =
    "render = [\"nginx.conf\", \"cleartext-h2c.conf\"]\nprotocols = [\"h2c\", \"h1s\", \"h2\"]\n";

/// Enough to build any of them on a slow machine from nothing.
const BUILD_DEADLINE: Span = Span::from_secs(600);

const START_DEADLINE: Span = Span::from_secs(60);

macro_rules! interop {
    ($($test:ident: $server:literal over $protocol:ident;)+) => {
        $(#[test]
        fn $test() {
            let server = entry($server, Protocol::$protocol);
            let Some(served) = Served::start(&server, Protocol::$protocol) else { return };
            bodies_are_exact(&served);
            head_has_no_body(&served);
            an_upload_is_answered(&served);
            each_request_may_have_its_own_connection(&served);
            sessions_are_resumed(&served);
            the_unknown_is_not_found(&served);
            served.end();
        })+

        /// Every test above: a server and the protocol it is driven over.
        const DRIVEN: &[(&str, Protocol)] = &[$(($server, Protocol::$protocol)),+];
    };
}

interop! {
    rust_hyper_h1: "rust-hyper" over H1;
    rust_hyper_h1s: "rust-hyper" over H1s;
    rust_hyper_h2c: "rust-hyper" over H2c;
    rust_hyper_h2: "rust-hyper" over H2;
    node_h1: "node" over H1;
    node_h1s: "node" over H1s;
    node_h2c: "node" over H2c;
    node_h2: "node" over H2;
    go_h1: "go" over H1;
    go_h1s: "go" over H1s;
    go_h2c: "go" over H2c;
    go_h2: "go" over H2;
    nginx_h1: "nginx" over H1;
    nginx_h1s: "nginx" over H1s;
    nginx_h2c: "nginx" over H2c;
    nginx_h2: "nginx" over H2;
    caddy_h1: "caddy" over H1;
    caddy_h1s: "caddy" over H1s;
    caddy_h2c: "caddy" over H2c;
    caddy_h2: "caddy" over H2;
    h2o_h1: "h2o" over H1;
    h2o_h1s: "h2o" over H1s;
    h2o_h2c: "h2o" over H2c;
    h2o_h2: "h2o" over H2;
    rust_quinn_h1s: "rust-quinn" over H1s;
    rust_quinn_h2: "rust-quinn" over H2;
    rust_quinn_h3: "rust-quinn" over H3;
    quiche_h3: "quiche" over H3;
    go_quic_h1s: "go-quic" over H1s;
    go_quic_h2: "go-quic" over H2;
    go_quic_h3: "go-quic" over H3;
    caddy_h3: "caddy" over H3;
    s2n_quic_h3: "s2n-quic" over H3;
    python_aioquic_h3: "python-aioquic" over H3;
    bun_h1: "bun" over H1;
    bun_h1s: "bun" over H1s;
    bun_h2c: "bun" over H2c;
    bun_h2: "bun" over H2;
    bun_h3: "bun" over H3;
}

/// The entry of one of the project's servers in a scenario.
fn entry(server: &str, protocol: Protocol) -> String {
    let overrides = if (server, protocol) == ("nginx", Protocol::H2c) { NGINX_H2C } else { "" };
    format!("[[server]]\nuse = {server:?}\n{overrides}")
}

#[test]
fn every_server_is_driven_over_every_protocol_it_offers() {
    let folders = std::fs::read_dir(in_project("servers")).expect("the project has servers");
    let mut offered = Vec::new();
    for folder in folders {
        let folder = folder.expect("the folder can be listed");
        let Ok(file) = std::fs::read_to_string(folder.path().join("server.toml")) else { continue };
        let file: toml::Table = file.parse().expect("server.toml is TOML");
        let name = folder.file_name().into_string().expect("a plain name");
        let protocols = file["protocols"].clone().try_into::<Vec<Protocol>>().expect("protocols by name");
        // All of them stand in a scenario as they are, also those that are not run.
        let read = spec(&entry(&name, protocols[0]), protocols[0]);
        assert_eq!((&read.name, &read.protocols), (&name, &protocols));
        if !NOT_PACKAGED.contains(&name.as_str()) {
            offered.extend(protocols.into_iter().map(|protocol| (name.clone(), protocol)));
        }
    }
    // The one that has to be set up for it.
    offered.push(("nginx".into(), Protocol::H2c));
    offered.sort();
    let mut driven: Vec<_> = DRIVEN.iter().map(|(name, protocol)| ((*name).to_owned(), *protocol)).collect();
    driven.sort();
    assert_eq!(driven, offered);
}

fn bodies_are_exact(served: &Served) {
    for &shape in shapes(served.protocol) {
        for (path, length, requests) in PATHS {
            let requests = if length > 1 << 16 { served.large(shape) } else { requests };
            let mut plan = served.plan(path, shape, requests);
            let body = if path == "/" { HELLO.to_vec() } else { vec![b'x'; length] };
            plan.expect.length = Some(length as u64);
            plan.expect.body = Some(base64(&body));
            let m = served.measure(&plan, 200);
            assert_eq!(m.transfer.body_bytes, requests * length as u64, "{path}");
            no_connection_was_replaced(&m, path);
        }
    }
}

fn head_has_no_body(served: &Served) {
    for &shape in shapes(served.protocol) {
        for (path, _, _) in PATHS {
            let mut plan = served.plan(path, shape, 160);
            plan.request.method = "HEAD".into();
            let m = served.measure(&plan, 200);
            assert_eq!(m.transfer.body_bytes, 0, "{path}");
            no_connection_was_replaced(&m, path);
        }
    }
}

fn an_upload_is_answered(served: &Served) {
    for &shape in shapes(served.protocol) {
        let requests = served.large(shape);
        let mut plan = served.plan("/upload", shape, requests);
        plan.request.method = "POST".into();
        plan.request.body = base64(&[b'x'; UPLOAD]);
        plan.expect.body = Some(base64(HELLO));
        let m = served.measure(&plan, 200);
        // Had a server answered before the end, the rest would not have been sent.
        assert!(m.transfer.sent_bytes >= requests * UPLOAD as u64, "{:?}", m.transfer);
        no_connection_was_replaced(&m, "/upload");
    }
}

fn each_request_may_have_its_own_connection(served: &Served) {
    for connections in [1, 32] {
        let mut plan = served.plan("/", (connections, 1), 160);
        plan.keepalive = false;
        plan.expect.body = Some(base64(HELLO));
        let m = served.measure(&plan, 200);
        assert_eq!((m.connection.attempted, m.connection.opened), (160, 160));
    }
}

/// Connections are replaced, and those that come later resume the sessions of earlier ones: with a ticket,
/// or with a ticket and early data. Small answers, large ones and uploads, each counted.
fn sessions_are_resumed(served: &Served) {
    if served.protocol != Protocol::H3 {
        return;
    }
    for resumption in [Resumption::Ticket, Resumption::ZeroRtt] {
        for &(connections, concurrency) in shapes(Protocol::H3) {
            for (method, path, length) in [("GET", "/", 14), ("GET", "/1m", 1 << 20), ("POST", "/upload", 14)]
            {
                let small = (method, path) == ("GET", "/");
                let connections =
                    if small { connections } else { connections.min(served.most_connections()) };
                let concurrency = if small { concurrency } else { concurrency.min(4) };
                let each = if small { 10 * concurrency } else { concurrency };
                // Every connection is replaced once, and none of the first ones' handshakes is in the window.
                let mut plan =
                    served.plan(path, (connections, concurrency), u64::from(2 * connections * each));
                plan.requests_per_connection = Some(each);
                plan.resumption = resumption;
                plan.request.method = method.into();
                if method == "POST" {
                    plan.request.body = base64(&[b'x'; UPLOAD]);
                }
                plan.expect.length = Some(length);
                let m = served.measure(&plan, 200);
                let what = format!(
                    "{} {resumption:?} {method} {path} {connections}x{concurrency}",
                    served.spec.name
                );
                sessions_were_resumed(served, &m, &what);
            }
        }
    }
}

fn sessions_were_resumed(served: &Served, m: &Measurement, what: &str) {
    let name = served.spec.name.as_str();
    let Handshakes { full, resumed, early_accepted, early_rejected } =
        m.connection.handshakes.expect("connections with TLS were up");
    let what = format!("{what}: {:?}", m.connection);
    let first = u64::from(m.connections);
    assert!(m.connection.opened >= 2 * first, "{what}");
    assert!((first..=m.connection.opened - first).contains(&(full + resumed)), "{what}");
    // Each connection leaves a ticket at least, and takes one.
    let every = !ONE_TICKET_FOR_A_SESSION.contains(&name);
    assert!(if every { full == 0 } else { resumed >= 1 }, "{what}");
    let taken = m.resumption == Resumption::ZeroRtt && !WITHOUT_EARLY_DATA.contains(&name);
    assert_eq!((early_accepted, early_rejected), (if taken { resumed } else { 0 }, 0), "{what}");
}

fn the_unknown_is_not_found(served: &Served) {
    let mut plan = served.plan("/no-such-path", (1, 1), 20);
    plan.expect.status = Some(404);
    served.measure(&plan, 404);
}

/// C x M: one request at a time, and many.
fn shapes(protocol: Protocol) -> &'static [(u32, u32)] {
    match protocol {
        Protocol::H1 | Protocol::H1s => &[(1, 1), (32, 1)],
        Protocol::H2c | Protocol::H2 => &[(1, 1), (4, 32)],
        Protocol::H3 => &[(1, 1), (4, 32), (50, 10)],
    }
}

fn no_connection_was_replaced(m: &Measurement, path: &str) {
    assert_eq!((m.connection.opened, m.connection.reopened), (m.connections.into(), 0), "{path}");
    assert_eq!((m.lifetime.replayed, m.lifetime.interrupted), (0, 0), "{path}");
}

/// Caddy answers a POST on `/` before it has the body, and resets the stream with NO_ERROR. The answer
/// counts, and the connection goes on (RFC 9113, section 8.1).
#[test]
fn an_answer_before_the_end_of_an_upload_counts() {
    for protocol in [Protocol::H2c, Protocol::H2] {
        let Some(served) = Served::start(&entry("caddy", protocol), protocol) else { return };
        for &shape in shapes(protocol) {
            let mut plan = served.plan("/", shape, 256);
            plan.request.method = "POST".into();
            plan.request.body = base64(&[b'x'; UPLOAD]);
            plan.expect.body = Some(base64(HELLO));
            let m = served.measure(&plan, 200);
            no_connection_was_replaced(&m, "/");
        }
        served.end();
    }
}

/// nginx ends each connection after its fiftieth answer, over HTTP/2 by GOAWAY: nothing fails by it, all
/// is asked, and what came too late is asked again elsewhere. It is also the one that knows no TLS beyond
/// 1.2.
#[test]
fn connections_that_a_server_closes_in_good_order_are_replaced() {
    let server = "[[server]]\nname = \"nginx-closing\"\ndir = \"../tests/data/interop\"\nrequires = [\"nginx\"]\n\
        render = [\"nginx.conf\"]\nprotocols = [\"h1\", \"h1s\", \"h2\"]\n\
        command = [\"nginx\", \"-e\", \"stderr\", \"-p\", \"{run_dir}\", \"-c\", \"{config}\"]\n";
    for protocol in [Protocol::H1, Protocol::H1s, Protocol::H2] {
        let Some(mut served) = Served::start(server, protocol) else { return };
        served.tls = "TLSv1.2";
        for &shape in shapes(protocol) {
            let mut plan = served.plan("/", shape, 1000);
            plan.expect.body = Some(base64(HELLO));
            let m = served.measure(&plan, 200);
            // Fifty answers each and no more.
            assert!(m.connection.opened >= 1000 / 50, "{:?}", m.connection);
            assert_eq!(m.connection.reopened, m.connection.opened - u64::from(shape.0));
        }
        served.end();
    }
}

/// The servers of `scenarios/encodings.toml`, as it sets them up: each coding is what was asked for, the same bytes
/// each time, with the expected body inside; without one asked for there is none.
#[test]
fn compressed_bodies_are_the_same_bodies() {
    let text = std::fs::read_to_string(in_project("scenarios/encodings.toml")).expect("the scenario");
    let entry = |name: &str| {
        let start = format!("[[server]]\nuse = {name:?}\n");
        let mut paragraphs = text.split("\n\n");
        format!("{}\n", paragraphs.find(|block| block.starts_with(&start)).expect("a server of the scenario"))
    };
    for (name, protocols) in [
        ("nginx", &[Protocol::H1, Protocol::H1s, Protocol::H2][..]),
        ("caddy", &[Protocol::H1, Protocol::H1s, Protocol::H2c, Protocol::H2, Protocol::H3]),
    ] {
        for &protocol in protocols {
            let Some(served) = Served::start(&entry(name), protocol) else { return };
            let file = in_project(&format!("servers/{name}/build/text-16k"));
            let body = std::fs::read(file).expect("what the build made");
            for coding in ["", "gzip", "br"] {
                is_encoded(&served, coding, &body);
            }
            served.end();
        }
    }
}

fn is_encoded(served: &Served, coding: &str, body: &[u8]) {
    let what = format!("{} over {:?}, {coding:?}", served.spec.name, served.protocol);
    let mut plan = LoadPlan { sample: true, ..served.plan("/text-16k", (1, 1), 1) };
    if !coding.is_empty() {
        plan.request.headers = vec![("Accept-Encoding".into(), coding.into())];
    }
    let sample = served.measure(&plan, 200).sample.expect("a response");
    let mut codings =
        sample.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("content-encoding"));
    let encoded = BASE64_STANDARD.decode(&sample.body).expect("base64");
    let mut decoded = Vec::new();
    let took_off = match codings.next().map_or("", |field| &field.value) {
        // Without its module nginx has no brotli.
        "" if coding.is_empty() || (&served.spec.name[..], coding) == ("nginx", "br") => {
            (&encoded[..]).read_to_end(&mut decoded)
        }
        "gzip" if coding == "gzip" => {
            flate2::read::MultiGzDecoder::new(&encoded[..]).read_to_end(&mut decoded)
        }
        "br" if coding == "br" => {
            brotli_decompressor::Decompressor::new(&encoded[..], 4096).read_to_end(&mut decoded)
        }
        other => panic!("{what}: answered {other:?}"),
    };
    took_off.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(decoded == body, "{what}");
    for &shape in shapes(served.protocol) {
        let mut many = served.plan("/text-16k", shape, 256);
        many.request.headers.clone_from(&plan.request.headers);
        many.expect.body = Some(sample.body.clone());
        no_connection_was_replaced(&served.measure(&many, 200), &what);
    }
}

/// A server that answers over one protocol.
struct Served {
    protocol: Protocol,
    spec: ServerSpec,
    /// The version of TLS it is to agree to.
    tls: &'static str,
    ports: Ports,
    running: Running,
    _scratch: tempfile::TempDir,
    _turn: Turn,
}

impl Served {
    /// Builds and starts the server that the TOML text `server` describes in a scenario; `None` when
    /// something it needs is not installed, and may be missing.
    fn start(server: &str, protocol: Protocol) -> Option<Self> {
        let turn = Turn::take();
        let spec = spec(server, protocol);
        assert!(spec.protocols.contains(&protocol), "{}", spec.name);
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let host = Host {
            exe: env!("CARGO_BIN_EXE_bench").into(),
            scratch: scratch.path().join("scratch"),
            logs: scratch.path().join("logs"),
            certificate: Certificate::generate(scratch.path()).unwrap_or_else(|error| panic!("{error}")),
            cpus: Vec::new(),
            workers: 2,
        };
        let started = server::requirements(&spec)
            .and_then(|()| server::build(&host, &spec, BUILD_DEADLINE))
            .and_then(|_| allocate_ports(&spec))
            .and_then(|ports| {
                let mut probe = || ready(protocol, ports);
                let (running, _) = Running::start(&host, &spec, protocol, ports, START_DEADLINE, &mut probe)?;
                Ok((running, ports))
            });
        match started {
            Ok((running, ports)) => {
                Some(Self { protocol, spec, tls: "TLSv1.3", ports, running, _scratch: scratch, _turn: turn })
            }
            Err(error) if error.absent && std::env::var_os("BENCH_REQUIRE_SERVERS").is_none() => {
                say_missing(&spec, &error);
                None
            }
            Err(error) => panic!("{}: {error}\n{}", spec.name, error.log_tail.join("\n")),
        }
    }

    /// Asks for `path`, `requests` times over C x M.
    fn plan(&self, path: &str, (connections, concurrency): (u32, u32), requests: u64) -> LoadPlan {
        let mut plan = common::plan(
            self.protocol,
            &address(self.protocol, self.ports),
            connections,
            Limit::Requests(requests),
        );
        plan.target.path = path.into();
        plan.concurrency = concurrency;
        plan.threads = connections.min(2);
        plan.timeout_ns = 60_000_000_000;
        plan.connect_timeout_ns = 60_000_000_000;
        plan
    }

    /// How often to ask for a mebibyte over C x M.
    fn large(&self, (connections, concurrency): (u32, u32)) -> u64 {
        match self.protocol {
            _ if SLOW.contains(&self.spec.name.as_str()) => 8,
            Protocol::H3 if connections * concurrency == 1 => 16,
            _ => LARGE,
        }
    }

    /// Connections at once that carry mebibytes.
    fn most_connections(&self) -> u32 {
        if SLOW.contains(&self.spec.name.as_str()) { 4 } else { u32::MAX }
    }

    /// Runs a counted plan whose every answer has `status` and is as the plan expects.
    fn measure(&self, plan: &LoadPlan, status: u16) -> Measurement {
        let Limit::Requests(asked) = plan.limit else { panic!("a counted plan") };
        let m = run(plan);
        let what = format!(
            "{} over {:?}: {} {} {}x{}: {:?}",
            self.spec.name,
            self.protocol,
            plan.request.method,
            plan.target.path,
            plan.connections,
            plan.concurrency,
            m.errors
        );
        check_identities(&m);
        for requests in [m.requests, m.lifetime] {
            let counts = (requests.started, requests.ok, requests.failed, requests.unfinished);
            assert_eq!(counts, (asked, asked, 0, 0), "{what}");
        }
        assert_eq!(m.statuses, BTreeMap::from([(status.to_string(), asked)]), "{what}");
        assert!(m.errors.is_empty() && m.connection.failed == 0, "{what}");
        let negotiated = m.negotiated.as_ref().expect("connections were up");
        let agreed = (negotiated.http.as_str(), negotiated.alpn.as_deref(), negotiated.tls.as_deref());
        match self.protocol {
            Protocol::H1 => assert_eq!(agreed, ("HTTP/1.1", None, None), "{what}"),
            Protocol::H1s => assert_eq!(agreed, ("HTTP/1.1", Some("http/1.1"), Some(self.tls)), "{what}"),
            Protocol::H2c => assert_eq!(agreed, ("HTTP/2", None, None), "{what}"),
            Protocol::H2 => assert_eq!(agreed, ("HTTP/2", Some("h2"), Some(self.tls)), "{what}"),
            Protocol::H3 => assert_eq!(agreed, ("HTTP/3", Some("h3"), Some("TLSv1.3")), "{what}"),
        }
        m
    }

    /// Stops it: by its own will, with all of its processes, and its ports are free.
    fn end(mut self) {
        let name = &self.spec.name;
        assert_eq!(self.running.exited(), None, "{name}");
        let processes = descendants(self.running.root());
        assert!(!processes.is_empty(), "{name} is a process");
        let stopped = self.running.stop();
        assert_eq!((stopped.killed, stopped.problem), (false, None), "{name}");
        let left: Vec<Process> = living().into_keys().filter(|process| processes.contains(process)).collect();
        assert!(left.is_empty(), "{name} left {left:?}");
        let fixed =
            ServerSpec { port: Some(self.ports.http), tls_port: Some(self.ports.https), ..self.spec.clone() };
        assert_eq!(allocate_ports(&fixed), Ok(self.ports));
    }
}

/// The server of a scenario that stands among the project's and has it alone.
fn spec(server: &str, protocol: Protocol) -> ServerSpec {
    let protocol = serde_json::to_string(&protocol).expect("a protocol has a name");
    let path = in_project("scenarios/interop.toml");
    let text = format!(
        "format = 1\ntitle = \"Interoperability\"\nreport = \"INTEROP\"\ntemplate = \"http\"\n\
         {server}[[section]]\ntitle = \"All\"\nkind = \"closed-loop\"\nprotocol = {protocol}\ncells = [\"1x1\"]\n"
    );
    let read = |asked: &Path| {
        if asked == path { Ok(text.clone()) } else { scenario::read_from_disk(asked) }
    };
    let scenario = scenario::load(&path, &read, &bench::sampler::machine(), &Overrides::default());
    scenario.unwrap_or_else(|error| panic!("{error}")).servers.remove(0)
}

fn ready(protocol: Protocol, ports: Ports) -> Probe {
    let mut plan = common::plan(protocol, &address(protocol, ports), 1, Limit::Requests(1));
    plan.timeout_ns = 1_000_000_000;
    plan.connect_timeout_ns = 1_000_000_000;
    plan.expect = Expect { status: Some(200), body: Some(base64(HELLO)), length: None };
    let m = run(&plan);
    if m.requests.ok == 1 { Probe::Ready } else { Probe::NotYet(format!("{:?}", m.errors)) }
}

fn address(protocol: Protocol, ports: Ports) -> String {
    let port = match protocol {
        Protocol::H1 | Protocol::H2c => ports.http,
        Protocol::H1s | Protocol::H2 | Protocol::H3 => ports.https,
    };
    format!("127.0.0.1:{port}")
}

/// The harness swallows what the macros print; a server that is left out is not to be overlooked.
fn say_missing(spec: &ServerSpec, error: &ServerError) {
    let line = format!("interop: {} is left out: {error}\n", spec.name);
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn in_project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Process id and start time, which together are never used again.
type Process = (i32, u64);

/// Every process there is, with its parent.
fn living() -> BTreeMap<Process, i32> {
    let all = procfs::process::all_processes().expect("/proc is there");
    // A process that ends meanwhile is no longer there.
    let stats = all.filter_map(|process| process.and_then(|process| process.stat()).ok());
    stats.map(|stat| ((stat.pid, stat.starttime), stat.ppid)).collect()
}

/// The processes below `root`.
fn descendants(root: u32) -> Vec<Process> {
    let living = living();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![i32::try_from(root).expect("process ids are small")];
    while let Some(parent) = parents.pop() {
        let children = living.iter().filter(|(_, of)| **of == parent).map(|(process, _)| *process);
        let before = found.len();
        found.extend(children);
        parents.extend(found[before..].iter().map(|(pid, _)| *pid));
    }
    found
}
