//! Owns the QUIC side of the scripted HTTP/3 server: quinn on a UDP socket of loopback, what of its
//! connections a script is told, and a tap that lets a connection fall silent.

use std::collections::HashSet;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncUdpSocket, Connection, ConnectionError, Endpoint, EndpointConfig, Incoming, MtuDiscoveryConfig,
    RecvStream, Runtime, SendStream, ServerConfig, TokioRuntime, TransportConfig, UdpPoller, VarInt,
};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::version::TLS13;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{Closed, H3};
use crate::common::{Counters, lock};

/// What a server allows and does before HTTP/3 begins.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Where it listens; port 0 for a free one.
    pub(crate) address: &'static str,
    pub(crate) alpn: &'static [&'static [u8]],
    /// Bidirectional streams that the client may have open.
    pub(crate) streams: u32,
    /// Unidirectional streams that the client may have open.
    pub(crate) uni_streams: u32,
    /// Bytes that the client may send on a stream, and on the connection.
    pub(crate) stream_window: u32,
    pub(crate) window: u32,
    pub(crate) idle: Duration,
    /// Addresses are validated by Retry (RFC 9000 §8.1.2).
    pub(crate) retry: bool,
    pub(crate) sessions: Sessions,
    /// Connections are turned away (CONNECTION_REFUSED).
    pub(crate) refuse: bool,
    /// Largest UDP payload sent and taken.
    pub(crate) payload: u16,
    /// Most datagrams in one system call.
    pub(crate) offload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:0",
            alpn: &[b"h3"],
            streams: 256,
            uni_streams: 16,
            stream_window: 1 << 20,
            window: 8 << 20,
            idle: Duration::from_secs(30),
            retry: false,
            refuse: false,
            sessions: Sessions::None,
            payload: 1452,
            offload: true,
        }
    }
}

/// What a server makes of tickets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sessions {
    /// It gives none.
    None,
    /// It resumes, and takes no early data.
    Resume,
    /// It resumes, and takes early data.
    Early,
    /// It resumes; every other connection's early data is refused.
    RefuseEarly,
    /// Every other connection's ticket is not known any more.
    Forget,
}

/// What a connection tells its script.
pub(super) enum Event {
    /// A bidirectional stream; `stop` makes the server stop reading it with a code.
    Opened {
        id: u64,
        send: SendStream,
        stop: oneshot::Sender<u64>,
    },
    /// A unidirectional stream.
    UniOpened {
        id: u64,
        stop: oneshot::Sender<u64>,
    },
    Data(u64, Bytes),
    Fin(u64),
    Reset(u64, u64),
    /// STOP_SENDING with a code; `None`: all that was sent is acknowledged, its end included.
    Stopped(u64, Option<u64>),
    /// Nothing else comes.
    Closed(ConnectionError),
}

/// A server that listens.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    endpoint: Endpoint,
    socket: UdpSocket,
}

impl Listener {
    /// Serves each connection with `script`, on a thread of its own.
    pub(crate) fn start(
        options: &Options,
        counters: Arc<Counters>,
        script: impl Fn(&mut H3) + Send + Sync + 'static,
    ) -> Self {
        let socket = UdpSocket::bind(options.address).expect("loopback has a free port");
        let _entered = runtime().enter();
        let spare = socket.try_clone().expect("sockets can be duplicated");
        let inner = TokioRuntime.wrap_udp_socket(socket).expect("a socket for the runtime");
        let muted = Arc::new(Mutex::new(HashSet::new()));
        let tap = Arc::new(Tap { inner, muted: Arc::clone(&muted), offload: options.offload });
        let mut config = EndpointConfig::new(Arc::new(ResetKey));
        config.max_udp_payload_size(options.payload.max(1200)).expect("a size that RFC 9000 allows");
        let configs = server_configs(options);
        let first = (*configs[0]).clone();
        let endpoint = Endpoint::new_with_abstract_socket(config, Some(first), tap, Arc::new(TokioRuntime))
            .expect("an endpoint on a bound socket");
        let address = endpoint.local_addr().expect("a bound socket has an address");
        let listener = Self { address, endpoint: endpoint.clone(), socket: spare };
        let serving = Serving {
            counters,
            script: Arc::new(script),
            muted,
            socket: Arc::new(listener.socket.try_clone().expect("sockets can be duplicated")),
            early: !matches!(options.sessions, Sessions::None | Sessions::Resume),
        };
        let (retry, refuse) = (options.retry, options.refuse);
        runtime().spawn(async move {
            let mut index = 0;
            while let Some(incoming) = endpoint.accept().await {
                if retry && !incoming.remote_address_validated() {
                    incoming.retry().expect("an address that is not validated yet");
                    continue;
                }
                if refuse {
                    serving.counters.accepted.fetch_add(1, Ordering::SeqCst);
                    incoming.refuse();
                    continue;
                }
                let config = Arc::clone(&configs[index as usize % configs.len()]);
                serving.clone().accept(incoming, config, index);
                index += 1;
            }
        });
        listener
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.endpoint.close(VarInt::from_u32(0x100), b"the test is over");
    }
}

type Script = Arc<dyn Fn(&mut H3) + Send + Sync>;

#[derive(Clone)]
struct Serving {
    counters: Arc<Counters>,
    script: Script,
    muted: Arc<Mutex<HashSet<SocketAddr>>>,
    socket: Arc<UdpSocket>,
    early: bool,
}

impl Serving {
    fn accept(self, incoming: Incoming, config: Arc<ServerConfig>, index: u64) {
        self.counters.accepted.fetch_add(1, Ordering::SeqCst);
        *lock(&self.counters.serving) += 1;
        tokio::spawn(async move {
            let done = Done(Arc::clone(&self.counters));
            let connected = match incoming.accept_with(config) {
                Err(error) => Err(error),
                // What came with the first flight is read before the handshake is complete.
                Ok(connecting) if self.early => match connecting.into_0rtt() {
                    Ok((connection, _)) => Ok(connection),
                    Err(_) => unreachable!("a server may always send before the handshake is complete"),
                },
                Ok(connecting) => connecting.await,
            };
            match connected {
                Err(error) => self.counters.count_close(Closed::from(&error)),
                Ok(connection) => self.serve(connection, index, done),
            }
        });
    }

    fn serve(self, connection: Connection, index: u64, done: Done) {
        // Few: a script that does not read is not to be sent much.
        let (events, told) = mpsc::channel(16);
        tokio::spawn(tell(connection.clone(), Arc::clone(&self.counters), events));
        std::thread::spawn(move || {
            let silence = Silence { muted: self.muted, socket: self.socket };
            super::serve(connection, index, told, Arc::clone(&self.counters), silence, &*self.script);
            drop(done);
        });
    }
}

/// Says that a connection is not served any more.
struct Done(Arc<Counters>);

impl Drop for Done {
    fn drop(&mut self) {
        *lock(&self.0.serving) -= 1;
        self.0.served.notify_all();
    }
}

/// Reads all streams of a connection until it ends, at the pace of its script.
async fn tell(connection: Connection, counters: Arc<Counters>, events: mpsc::Sender<Event>) {
    let mut readers = JoinSet::new();
    loop {
        let (send, receive) = tokio::select! {
            opened = connection.accept_bi() => match opened {
                Ok((send, receive)) => (Some(send), receive),
                Err(_) => break,
            },
            opened = connection.accept_uni() => match opened {
                Ok(receive) => (None, receive),
                Err(_) => break,
            },
        };
        let id = receive.id().into();
        let (stop, stopped) = oneshot::channel();
        if receive.is_0rtt() && send.is_some() {
            counters.early.fetch_add(1, Ordering::SeqCst);
        }
        match send {
            Some(send) => {
                let (over, events) = (send.stopped(), events.clone());
                let opened = Event::Opened { id, send, stop };
                if events.send(opened).await.is_err() {
                    return;
                }
                tokio::spawn(async move {
                    if let Ok(code) = over.await {
                        let _ = events.send(Event::Stopped(id, code.map(VarInt::into_inner))).await;
                    }
                });
            }
            None => {
                if events.send(Event::UniOpened { id, stop }).await.is_err() {
                    return;
                }
            }
        }
        while readers.try_join_next().is_some() {}
        readers.spawn(read(id, receive, stopped, events.clone()));
    }
    while readers.join_next().await.is_some() {}
    let _ = events.send(Event::Closed(connection.closed().await)).await;
}

async fn read(
    id: u64,
    mut receive: RecvStream,
    mut stop: oneshot::Receiver<u64>,
    events: mpsc::Sender<Event>,
) {
    loop {
        let chunk = tokio::select! {
            chunk = receive.read_chunk(64 * 1024, true) => chunk,
            Ok(code) = &mut stop, if !stop.is_terminated() => {
                let _ = receive.stop(VarInt::from_u64(code).expect("a code in range"));
                return;
            }
        };
        let event = match chunk {
            Ok(Some(chunk)) => Event::Data(id, chunk.bytes),
            Ok(None) => Event::Fin(id),
            Err(quinn::ReadError::Reset(code)) => Event::Reset(id, code.into_inner()),
            Err(_) => return,
        };
        let more = matches!(event, Event::Data(..));
        if events.send(event).await.is_err() || !more {
            return;
        }
    }
}

/// Makes connections fall silent, and sends what is none of theirs.
pub(super) struct Silence {
    muted: Arc<Mutex<HashSet<SocketAddr>>>,
    socket: Arc<UdpSocket>,
}

impl Silence {
    /// From now on nothing comes from `client` and nothing goes there.
    pub(super) fn fall(&self, client: SocketAddr) {
        lock(&self.muted).insert(client);
    }

    /// Sends a datagram as it is.
    pub(super) fn send(&self, client: SocketAddr, datagram: &[u8]) {
        self.socket.send_to(datagram, client).expect("loopback takes a datagram");
    }
}

/// Stands between quinn and its socket.
#[derive(Debug)]
struct Tap {
    inner: Arc<dyn AsyncUdpSocket>,
    muted: Arc<Mutex<HashSet<SocketAddr>>>,
    offload: bool,
}

impl AsyncUdpSocket for Tap {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if lock(&self.muted).contains(&transmit.destination) {
            return Ok(());
        }
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let polled = self.inner.poll_recv(cx, buffers, meta);
        if let Poll::Ready(Ok(count)) = polled {
            let muted = lock(&self.muted);
            for meta in meta[..count].iter_mut().filter(|meta| muted.contains(&meta.addr)) {
                meta.len = 0;
            }
        }
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        if self.offload { self.inner.max_transmit_segments() } else { 1 }
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// Stateless reset tokens that tests can tell from the connection id (RFC 9000 §10.3.2).
struct ResetKey;

/// The stateless reset token of a connection id.
pub(super) fn reset_token(id: &[u8]) -> [u8; 16] {
    std::array::from_fn(|at| id.get(at % id.len().max(1)).copied().unwrap_or(0) ^ (at as u8) ^ 0x5a)
}

impl quinn::crypto::HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        lock(&RESETTABLE).push(data.to_vec());
        signature[..16].copy_from_slice(&reset_token(data));
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), quinn::crypto::CryptoError> {
        Err(quinn::crypto::CryptoError)
    }
}

/// Every connection id for which a token was made in this process: which of them are a connection's is
/// not told.
pub(super) static RESETTABLE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// One runtime for all servers of a test binary.
pub(crate) fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    });
    runtime.handle()
}

/// Settings for the first, the second, ... connection, and then from the beginning.
fn server_configs(options: &Options) -> Vec<Arc<ServerConfig>> {
    let mut tls = (*crate::common::tls_config(options.alpn, &[&TLS13])).clone();
    tls.session_storage = ServerSessionMemoryCache::new(1024);
    let mut other = tls.clone();
    if options.sessions == Sessions::None {
        tls.send_tls13_tickets = 0;
    }
    if matches!(options.sessions, Sessions::Early | Sessions::RefuseEarly | Sessions::Forget) {
        tls.max_early_data_size = u32::MAX;
    }
    let mut sorts = vec![tls];
    match options.sessions {
        Sessions::RefuseEarly => sorts.push(other),
        Sessions::Forget => {
            other.session_storage = Arc::new(NoServerSessionStorage {});
            sorts.push(other);
        }
        _ => (),
    }
    let transport = Arc::new(transport(options));
    let config = |tls| {
        let crypto = QuicServerConfig::try_from(tls).expect("TLS 1.3 with the initial suite");
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(Arc::clone(&transport));
        Arc::new(config)
    };
    sorts.into_iter().map(config).collect()
}

fn transport(options: &Options) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(options.streams.into())
        .max_concurrent_uni_streams(options.uni_streams.into())
        .stream_receive_window(options.stream_window.into())
        .receive_window(options.window.into())
        .max_idle_timeout(Some(options.idle.try_into().expect("an idle timeout in range")))
        .enable_segmentation_offload(options.offload);
    if options.payload < 1452 {
        transport.mtu_discovery_config(None);
    } else {
        let mut probing = MtuDiscoveryConfig::default();
        probing.upper_bound(options.payload);
        transport.mtu_discovery_config(Some(probing));
    }
    transport
}
