//! Owns the scripted server of the tests: a listener that answers each connection as a closure says,
//! in cleartext, over TLS or over QUIC, and counts what it was asked. What a client does wrong, and what a script
//! asserts in vain, fails the test when the server is dropped.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod answer;
pub(crate) mod books;
pub(crate) mod frame;
pub(crate) mod h2;
pub(crate) mod h3;
pub(crate) mod hpack;
pub(crate) mod random;
pub(crate) mod relay;
pub(crate) mod socket;

use std::any::Any;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench::load::plan::{Expect, Limit, LoadPlan, Request, Target};
use bench::load::{self, Control};
use bench::results::{Measurement, Protocol, WaitMode};

use self::answer::Peer;
use self::h2::H2;
use self::h3::endpoint::{Listener, Options};
use self::h3::{Closed, H3};
use self::socket::{Gone, LINGER, Stream, TlsStream};
pub(crate) use self::socket::{Socket, tls_config};

pub(crate) const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, World!\n";

/// HTTP/1.1, in cleartext and over TLS.
pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::H1, Protocol::H1s];

/// HTTP/2, in cleartext and over TLS.
pub(crate) const HTTP2: [Protocol; 2] = [Protocol::H2c, Protocol::H2];

/// The protocols every case is run over that is not a matter of one protocol's syntax.
pub(crate) const EVERY: [Protocol; 5] = Protocol::ALL;

/// Of these: the ones over TCP.
pub(crate) const OVER_TCP: [Protocol; 4] = [Protocol::H1, Protocol::H1s, Protocol::H2c, Protocol::H2];

pub(crate) fn is_http2(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::H2c | Protocol::H2)
}

/// One accepted connection.
pub(crate) struct Conn {
    pub(crate) stream: Box<dyn Stream>,
    /// Number of this connection, from 0.
    pub(crate) index: u64,
    socket: Option<Socket>,
    counters: Arc<Counters>,
    buffered: Vec<u8>,
    gone: bool,
    timed_out: bool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    /// Requests that arrived whole.
    pub(crate) requests: AtomicU64,
    /// Answers given, when they are an [`answer::Answer`].
    pub(crate) answered: AtomicU64,
    /// HTTP/2: streams above the last one that GOAWAY named.
    pub(crate) ignored: AtomicU64,
    /// HTTP/2: most streams open at one time.
    pub(crate) most_streams: AtomicU64,
    /// HTTP/3: requests that came as early data.
    pub(crate) early: AtomicU64,
    /// HTTP/3: how clients ended connections, and codes of their RESET_STREAM and STOP_SENDING frames.
    closes: Mutex<Vec<Closed>>,
    reset_streams: Mutex<Vec<u64>>,
    stops: Mutex<Vec<u64>>,
    /// HTTP/2: codes of the client's GOAWAY and RST_STREAM frames.
    goaways: Mutex<Vec<u32>>,
    resets: Mutex<Vec<u32>>,
    complaints: Mutex<Vec<String>>,
    serving: Mutex<u64>,
    served: Condvar,
    stop: AtomicBool,
}

impl Conn {
    fn new(stream: Box<dyn Stream>, index: u64, socket: Option<Socket>, counters: Arc<Counters>) -> Self {
        Self { stream, index, socket, counters, buffered: Vec::new(), gone: false, timed_out: false }
    }

    /// Reads one request, head and Content-Length body, and counts it; `None` when the peer closed.
    pub(crate) fn request(&mut self) -> Option<Vec<u8>> {
        let end = self.head_end()?;
        let head = String::from_utf8_lossy(&self.buffered[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .map_or(0, |value| value.trim().parse().expect("the client sends a number"));
        while self.buffered.len() < end + length {
            self.more()?;
        }
        self.count_request();
        self.take(end + length)
    }

    /// Reads the head of one request; its body is left unread.
    pub(crate) fn head(&mut self) -> Option<Vec<u8>> {
        let end = self.head_end()?;
        self.take(end)
    }

    fn head_end(&mut self) -> Option<usize> {
        loop {
            if let Some(at) = find(&self.buffered, b"\r\n\r\n") {
                return Some(at + 4);
            }
            self.more()?;
        }
    }

    /// Exactly `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffered.len() < count {
            self.more()?;
        }
        let rest = self.buffered.split_off(count);
        Some(std::mem::replace(&mut self.buffered, rest))
    }

    /// Exactly `count` bytes, which are known to be on their way.
    pub(crate) fn take_all(&mut self, count: usize) -> Option<Vec<u8>> {
        loop {
            match self.take(count) {
                None if self.open() => (),
                taken => return taken,
            }
        }
    }

    /// Reads until the client closes, or [`Conn::patience`] runs out.
    pub(crate) fn ignore(&mut self) {
        while self.more().is_some() {
            self.buffered.clear();
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 16 * 1024];
        self.timed_out = false;
        match self.stream.read(&mut chunk) {
            Ok(n) if n > 0 => {
                self.buffered.extend_from_slice(&chunk[..n]);
                Some(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                self.timed_out = true;
                None
            }
            Ok(_) | Err(_) => {
                self.gone = true;
                None
            }
        }
    }

    /// How long reading waits before it gives nothing; `None`: as long as it takes.
    pub(crate) fn patience(&self, timeout: Option<Duration>) {
        let socket = self.socket.as_ref().expect("sockets can be duplicated");
        socket.set_read_timeout(timeout).expect("the timeout is not zero");
    }

    /// The client has not closed, as far as reading has shown.
    pub(crate) fn open(&self) -> bool {
        !self.gone
    }

    /// Sends bytes; false when the peer is gone.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// Sends nothing more, and says so.
    pub(crate) fn end(&mut self) {
        self.stream.end();
    }

    /// Ends the connection without a word: over TLS, no close_notify is said.
    pub(crate) fn cut(&mut self) {
        std::mem::forget(std::mem::replace(&mut self.stream, Box::new(Gone)));
        self.gone = true;
    }

    /// Answers every request with the same bytes until the peer closes.
    pub(crate) fn always(&mut self, answer: &[u8]) {
        while self.request().is_some() && self.send(answer) {}
    }

    /// Fails the test when its server is dropped.
    pub(crate) fn complain(&self, complaint: String) {
        self.counters.complain(format!("connection {}: {complaint}", self.index));
    }

    pub(crate) fn count_request(&self) {
        self.counters.count_request();
    }

    pub(crate) fn count_answer(&self) {
        self.counters.count_answer();
    }

    pub(crate) fn count_ignored(&self, count: u64) {
        self.counters.count_ignored(count);
    }

    pub(crate) fn note_open_streams(&self, open: u64) {
        self.counters.note_open_streams(open);
    }

    pub(crate) fn count_goaway(&self, code: u32) {
        lock(&self.counters.goaways).push(code);
    }

    pub(crate) fn count_reset(&self, code: u32) {
        lock(&self.counters.resets).push(code);
    }
}

impl Counters {
    fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
    }

    fn count_answer(&self) {
        self.answered.fetch_add(1, Ordering::SeqCst);
    }

    fn count_ignored(&self, count: u64) {
        self.ignored.fetch_add(count, Ordering::SeqCst);
    }

    fn note_open_streams(&self, open: u64) {
        self.most_streams.fetch_max(open, Ordering::SeqCst);
    }

    fn count_close(&self, closed: Closed) {
        lock(&self.closes).push(closed);
    }

    fn count_reset_stream(&self, code: u64) {
        lock(&self.reset_streams).push(code);
    }

    fn count_stop(&self, code: u64) {
        lock(&self.stops).push(code);
    }

    fn complain(&self, complaint: String) {
        let mut complaints = lock(&self.complaints);
        if complaints.len() < MOST_COMPLAINTS {
            complaints.push(complaint);
        }
    }
}

/// Counts stay meaningful whatever panicked.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// A running scripted server.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<Counters>,
    protocol: Protocol,
    quic: Option<Listener>,
}

impl Scripted {
    /// Serves each connection with `script`, on a thread of its own.
    pub(crate) fn start(protocol: Protocol, script: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        Self::listen(listener, protocol, tls_of(protocol), script)
    }

    /// The same with a script that does not mind the protocol.
    pub(crate) fn serve(protocol: Protocol, script: impl Fn(&mut Peer<'_>) + Send + Sync + 'static) -> Self {
        Self::serve_at("127.0.0.1:0", protocol, script)
    }

    /// [`Scripted::serve`] on this address.
    pub(crate) fn serve_at(
        address: &'static str,
        protocol: Protocol,
        script: impl Fn(&mut Peer<'_>) + Send + Sync + 'static,
    ) -> Self {
        if protocol.is_quic() {
            return Self::quic(&Options { address, ..Options::default() }, move |h3| {
                h3.settings(&[]);
                let mut peer = Peer::Three(h3);
                script(&mut peer);
                peer.finish();
            });
        }
        let listener = TcpListener::bind(address).expect("loopback has a free port");
        Self::listen(listener, protocol, tls_of(protocol), move |conn| as_peer(conn, protocol, &script))
    }

    /// HTTP/3: nothing is said yet.
    pub(crate) fn http3(script: impl Fn(&mut H3) + Send + Sync + 'static) -> Self {
        Self::quic(&Options::default(), script)
    }

    /// HTTP/3 with these options.
    pub(crate) fn quic(options: &Options, script: impl Fn(&mut H3) + Send + Sync + 'static) -> Self {
        let counters = Arc::new(Counters::default());
        let listener = Listener::start(options, Arc::clone(&counters), script);
        Self { address: listener.address, counters, protocol: Protocol::H3, quic: Some(listener) }
    }

    /// HTTP/2: the preface is read, and nothing said yet.
    pub(crate) fn http2(protocol: Protocol, script: impl Fn(&mut H2<'_>) + Send + Sync + 'static) -> Self {
        Self::start(protocol, move |conn| {
            if let Some(mut h2) = H2::accept(conn) {
                script(&mut h2);
                h2.finish();
            }
        })
    }

    /// HTTP/1.1 with TLS settings of the caller's.
    pub(crate) fn with_tls(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&mut Conn) + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("loopback has a free port"), tls, script)
    }

    /// HTTP/1.1 on a listener of the caller's.
    pub(crate) fn on(
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&mut Conn) + Send + Sync + 'static,
    ) -> Self {
        let protocol = if tls.is_some() { Protocol::H1s } else { Protocol::H1 };
        Self::listen(listener, protocol, tls, script)
    }

    pub(crate) fn listen(
        listener: TcpListener,
        protocol: Protocol,
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&mut Conn) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("a bound listener has an address");
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                let _ = stream.set_nodelay(true);
                let index = shared.accepted.fetch_add(1, Ordering::SeqCst);
                *lock(&shared.serving) += 1;
                let (shared, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                std::thread::spawn(move || {
                    serve(Socket::Tcp(stream), index, Arc::clone(&shared), tls, &*script);
                    *lock(&shared.serving) -= 1;
                    shared.served.notify_all();
                });
            }
        });
        Self { address, counters, protocol, quic: None }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.counters.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn answered(&self) -> u64 {
        self.counters.answered.load(Ordering::SeqCst)
    }

    pub(crate) fn ignored(&self) -> u64 {
        self.counters.ignored.load(Ordering::SeqCst)
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.counters.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn most_streams(&self) -> u64 {
        self.counters.most_streams.load(Ordering::SeqCst)
    }

    /// Codes of the GOAWAY frames that clients sent, `NO_ERROR` left out.
    pub(crate) fn goaways(&self) -> Vec<u32> {
        lock(&self.counters.goaways).iter().copied().filter(|code| *code != 0).collect()
    }

    /// Codes of the RST_STREAM frames that clients sent.
    pub(crate) fn resets(&self) -> Vec<u32> {
        lock(&self.counters.resets).clone()
    }

    /// HTTP/3: how clients ended connections, `H3_NO_ERROR` left out.
    pub(crate) fn closes(&self) -> Vec<Closed> {
        let orderly = Closed::Application(h3::wire::H3_NO_ERROR);
        lock(&self.counters.closes).iter().filter(|closed| **closed != orderly).cloned().collect()
    }

    /// HTTP/3: codes of the RESET_STREAM frames that clients sent.
    pub(crate) fn reset_streams(&self) -> Vec<u64> {
        lock(&self.counters.reset_streams).clone()
    }

    /// HTTP/3: codes of the STOP_SENDING frames that clients sent.
    pub(crate) fn stops(&self) -> Vec<u64> {
        lock(&self.counters.stops).clone()
    }

    /// HTTP/3: requests that came as early data.
    pub(crate) fn early(&self) -> u64 {
        self.counters.early.load(Ordering::SeqCst)
    }

    /// Waits until every script has ended, after the client closed all of its connections: only then
    /// has all that it sent been read and counted.
    pub(crate) fn join(&self) {
        let serving = lock(&self.counters.serving);
        let (serving, waited) = self
            .counters
            .served
            .wait_timeout_while(serving, Duration::from_secs(20), |serving| *serving > 0)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "{} connections are still served", *serving);
    }

    /// A plan of one connection with `concurrency` requests in flight, `count` in all.
    pub(crate) fn multiplexed(&self, concurrency: u32, count: u64) -> LoadPlan {
        LoadPlan { concurrency, ..self.plan(1, Limit::Requests(count)) }
    }

    /// A plan of `connections` and `limit` against this server.
    pub(crate) fn plan(&self, connections: u32, limit: Limit) -> LoadPlan {
        plan(self.protocol, &self.address.to_string(), connections, limit)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.counters.stop.store(true, Ordering::SeqCst);
        if self.quic.is_none() {
            // The accept loop looks at the flag when somebody connects.
            let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        }
        if !std::thread::panicking() {
            let complaints = lock(&self.counters.complaints);
            assert!(complaints.is_empty(), "over {:?}: {complaints:#?}", self.protocol);
        }
    }
}

/// Serves one connection as the server of `protocol` does.
pub(crate) fn as_peer(conn: &mut Conn, protocol: Protocol, script: &dyn Fn(&mut Peer<'_>)) {
    if !is_http2(protocol) {
        return script(&mut Peer::One(conn));
    }
    if let Some(h2) = H2::open(conn, &[]) {
        let mut peer = Peer::Two(Box::new(h2));
        script(&mut peer);
        peer.finish();
    }
}

/// Serves one connection that was accepted elsewhere, without TLS.
pub(crate) fn serve_one(socket: Socket, protocol: Protocol, script: &(dyn Fn(&mut Peer<'_>) + Send + Sync)) {
    let counters = Arc::new(Counters::default());
    serve(socket, 0, Arc::clone(&counters), None, &|conn| as_peer(conn, protocol, script));
    let complaints = lock(&counters.complaints);
    assert!(complaints.is_empty(), "over {protocol:?}: {complaints:#?}");
}

fn serve(
    socket: Socket,
    index: u64,
    counters: Arc<Counters>,
    tls: Option<Arc<rustls::ServerConfig>>,
    script: &(dyn Fn(&mut Conn) + Send + Sync),
) {
    let spare = socket.try_clone().ok();
    let last = socket.try_clone();
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(socket),
        Some(config) => {
            let session = rustls::ServerConnection::new(config).expect("the settings are complete");
            Box::new(TlsStream(rustls::StreamOwned::new(session, socket)))
        }
    };
    let mut conn = Conn::new(stream, index, spare, Arc::clone(&counters));
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| script(&mut conn))) {
        conn.complain(said(&*panic));
    }
    drop(conn);
    if let Ok(socket) = last {
        socket.close();
    }
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a script panicked").to_owned()
}

fn tls_of(protocol: Protocol) -> Option<Arc<rustls::ServerConfig>> {
    let alpn: &[u8] = if is_http2(protocol) { b"h2" } else { b"http/1.1" };
    protocol.is_tls().then(|| tls_config(&[alpn], rustls::ALL_VERSIONS))
}

/// A plan with the defaults of `bench load`, one thread, sleeping.
pub(crate) fn plan(protocol: Protocol, address: &str, connections: u32, limit: Limit) -> LoadPlan {
    let scheme = if protocol.is_tls() { "https" } else { "http" };
    LoadPlan {
        protocol,
        target: Target {
            url: format!("{scheme}://localhost/"),
            authority: "localhost".into(),
            path: "/".into(),
            sni: "localhost".into(),
            addresses: vec![address.into()],
        },
        request: Request { method: "GET".into(), headers: Vec::new(), body: String::new() },
        expect: Expect::default(),
        connections,
        concurrency: 1,
        threads: 1,
        cpus: Vec::new(),
        limit,
        warmup_ns: 0,
        drain_ns: 1_000_000_000,
        timeout_ns: 0,
        connect_timeout_ns: 5_000_000_000,
        keepalive: true,
        requests_per_connection: None,
        resumption: Default::default(),
        quic: Default::default(),
        wait: WaitMode::Sleep,
        batch: 0,
        verify: None,
        sample: false,
    }
}

/// Runs a plan to its end.
pub(crate) fn run(plan: &LoadPlan) -> Measurement {
    load::run(plan, &Control::new(), &mut |_| ()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a plan to its end and waits until the server has read all that was sent.
pub(crate) fn finish(server: &Scripted, plan: &LoadPlan) -> Measurement {
    let m = run(plan);
    check_identities(&m);
    server.join();
    m
}

/// Runs a plan in a generator process of its own.
pub(crate) fn in_a_process(plan: &LoadPlan) -> Measurement {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["load", "--plan", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bench starts");
    let text = serde_json::to_string(plan).expect("a plan can be written");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads its plan");
    let output = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("text");
    match lines.lines().last().map(serde_json::from_str) {
        Some(Ok(load::plan::Event::Measurement(m))) => *m,
        other => panic!("{other:?}: {lines}"),
    }
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// `kind` of every error with its count, sorted.
pub(crate) fn errors(m: &Measurement) -> Vec<(String, u64)> {
    let mut errors: Vec<_> = m.errors.iter().map(|e| (e.kind.clone(), e.count)).collect();
    errors.sort();
    errors
}

/// The identities that hold whatever a server does.
pub(crate) fn check_identities(m: &Measurement) {
    for r in [&m.requests, &m.lifetime] {
        assert_eq!(r.started, r.ok + r.failed + r.unfinished, "{r:?}");
    }
    let answered: u64 = m.statuses.values().sum();
    let unexpected: u64 =
        m.errors.iter().filter(|e| e.phase == bench::results::Phase::Unexpected).map(|e| e.count).sum();
    assert_eq!(answered, m.requests.ok + unexpected);
    assert_eq!(m.latency_us.as_ref().map_or(0, |l| l.count), m.requests.ok);
}

/// Complaints kept of one server.
const MOST_COMPLAINTS: usize = 20;
