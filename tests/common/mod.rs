//! Owns the scripted server of the tests: a listener that answers each connection as a closure says,
//! in cleartext or over TLS, and counts what it was asked.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench::load::plan::{Expect, Limit, LoadPlan, Request, Target};
use bench::load::{self, Control};
use bench::results::{Measurement, Protocol, WaitMode};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

pub const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, World!\n";

/// The protocols every case is run over.
pub const PROTOCOLS: [Protocol; 2] = [Protocol::H1, Protocol::H1s];

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One accepted connection.
pub struct Conn {
    pub stream: Box<dyn Stream>,
    /// Number of this connection, from 0.
    pub index: u64,
    counters: Arc<Counters>,
    buffered: Vec<u8>,
}

#[derive(Default)]
pub struct Counters {
    pub accepted: AtomicU64,
    pub requests: AtomicU64,
    stop: AtomicBool,
}

impl Conn {
    /// Reads one request, head and Content-Length body, and counts it; `None` when the peer closed.
    pub fn request(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(at) = find(&self.buffered, b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head = String::from_utf8_lossy(&self.buffered[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .map_or(0, |value| value.trim().parse().expect("the client sends a number"));
        while self.buffered.len() < end + length {
            self.more()?;
        }
        self.counters.requests.fetch_add(1, Ordering::SeqCst);
        let rest = self.buffered.split_off(end + length);
        Some(std::mem::replace(&mut self.buffered, rest))
    }

    fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) | Err(_) => None,
            Ok(n) => {
                self.buffered.extend_from_slice(&chunk[..n]);
                Some(())
            }
        }
    }

    /// Sends bytes; false when the peer is gone.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// Answers every request with the same bytes until the peer closes.
    pub fn always(&mut self, answer: &[u8]) {
        while self.request().is_some() && self.send(answer) {}
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// A running scripted server.
pub struct Scripted {
    pub address: SocketAddr,
    pub counters: Arc<Counters>,
    tls: bool,
}

impl Scripted {
    /// Serves each connection with `script`, on a thread of its own.
    pub fn start(protocol: Protocol, script: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        let tls = (protocol == Protocol::H1s).then(|| tls_config(&[b"http/1.1"], rustls::ALL_VERSIONS));
        Self::with_tls(tls, script)
    }

    /// The same with TLS settings of the caller's.
    pub fn with_tls(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&mut Conn) + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("loopback has a free port"), tls, script)
    }

    pub fn on(
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&mut Conn) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("a bound listener has an address");
        let counters = Arc::new(Counters::default());
        let (shared, is_tls) = (Arc::clone(&counters), tls.is_some());
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                let index = shared.accepted.fetch_add(1, Ordering::SeqCst);
                let (shared, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                std::thread::spawn(move || serve(stream, index, shared, tls, &*script));
            }
        });
        Self { address, counters, tls: is_tls }
    }

    pub fn requests(&self) -> u64 {
        self.counters.requests.load(Ordering::SeqCst)
    }

    pub fn accepted(&self) -> u64 {
        self.counters.accepted.load(Ordering::SeqCst)
    }

    /// A plan of `connections` and `limit` against this server.
    pub fn plan(&self, connections: u32, limit: Limit) -> LoadPlan {
        plan(
            if self.tls { Protocol::H1s } else { Protocol::H1 },
            &self.address.to_string(),
            connections,
            limit,
        )
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.counters.stop.store(true, Ordering::SeqCst);
        // The accept loop looks at the flag when somebody connects.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn serve(
    stream: TcpStream,
    index: u64,
    counters: Arc<Counters>,
    tls: Option<Arc<rustls::ServerConfig>>,
    script: &(dyn Fn(&mut Conn) + Send + Sync),
) {
    let _ = stream.set_nodelay(true);
    let socket = stream.try_clone();
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(config) => {
            let session = rustls::ServerConnection::new(config).expect("the settings are complete");
            Box::new(TlsStream(rustls::StreamOwned::new(session, stream)))
        }
    };
    let mut conn = Conn { stream, index, counters, buffered: Vec::new() };
    script(&mut conn);
    drop(conn);
    if let Ok(socket) = socket {
        let _ = socket.shutdown(std::net::Shutdown::Write);
    }
}

/// A TLS stream that says close_notify when it is dropped, as RFC 8446 §6.1 asks.
struct TlsStream(rustls::StreamOwned<rustls::ServerConnection, TcpStream>);

impl Read for TlsStream {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buf)
    }
}

impl Write for TlsStream {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        let _ = self.0.flush();
    }
}

/// TLS settings of a server: a fresh self-signed certificate, these ALPN protocols and versions.
pub fn tls_config(
    alpn: &[&[u8]],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<rustls::ServerConfig> {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("rcgen signs");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der()));
    let mut config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("ring knows these versions")
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .expect("key and certificate belong together");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// A plan with the defaults of `bench load`, one thread, sleeping.
pub fn plan(protocol: Protocol, address: &str, connections: u32, limit: Limit) -> LoadPlan {
    let scheme = if protocol == Protocol::H1 { "http" } else { "https" };
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
        wait: WaitMode::Sleep,
        batch: 0,
        verify: None,
    }
}

/// Runs a plan to its end.
pub fn run(plan: &LoadPlan) -> Measurement {
    load::run(plan, &Control::new(), &mut |_| ()).unwrap_or_else(|error| panic!("{error}"))
}

pub fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// `kind` of every error with its count, sorted.
pub fn errors(m: &Measurement) -> Vec<(String, u64)> {
    let mut errors: Vec<_> = m.errors.iter().map(|e| (e.kind.clone(), e.count)).collect();
    errors.sort();
    errors
}

/// The identities that hold whatever a server does.
pub fn check_identities(m: &Measurement) {
    for r in [&m.requests, &m.lifetime] {
        assert_eq!(r.started, r.ok + r.failed + r.unfinished, "{r:?}");
    }
    let answered: u64 = m.statuses.values().sum();
    let unexpected: u64 =
        m.errors.iter().filter(|e| e.phase == bench::results::Phase::Unexpected).map(|e| e.count).sum();
    assert_eq!(answered, m.requests.ok + unexpected);
    assert_eq!(m.latency_us.as_ref().map_or(0, |l| l.count), m.requests.ok);
    let text = serde_json::to_string(m).expect("a measurement serialises");
    assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
}
