//! Owns the server of a case: quinn-proto's endpoint and connections, and what it does with requests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    MtuDiscoveryConfig, ReadError, ReadableError, ServerConfig, StreamEvent, StreamId, TransportConfig,
    VarInt, WriteError,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::case::{Case, SERVER_SAYS, answer_byte, asked_byte};
use crate::client::{ABANDONED, STOPPED};
use crate::common::random::Random;

/// An endpoint and its connections.
pub(crate) struct Server {
    case: Case,
    endpoint: Endpoint,
    pub(crate) peers: BTreeMap<usize, Peer>,
    client: SocketAddr,
    random: Random,
    /// Datagrams to be sent.
    pub(crate) out: Vec<Vec<u8>>,
}

/// One connection.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    streams: BTreeMap<u64, Stream>,
    /// Requests that arrived whole, in any order.
    pub(crate) whole: u64,
    pub(crate) resets: u64,
    /// Why it is over.
    pub(crate) lost: Option<ConnectionError>,
    said: usize,
    says: Option<StreamId>,
}

/// A stream of a request.
#[derive(Default)]
struct Stream {
    received: usize,
    sent: usize,
    /// The request is whole, or no more of it is wanted.
    answering: bool,
    over: bool,
}

impl Server {
    pub(crate) fn new(case: &Case) -> Self {
        let mut config = EndpointConfig::new(Arc::new(quinn_key()));
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&case.seed.to_le_bytes());
        config.rng_seed(Some(seed));
        let endpoint = Endpoint::new(Arc::new(config), Some(server_config(case)), true, None);
        Self {
            case: case.clone(),
            endpoint,
            peers: BTreeMap::new(),
            client: SocketAddr::from(([127, 0, 0, 1], 4000)),
            random: Random::new(case.seed ^ 0x5e47e4),
            out: Vec::new(),
        }
    }

    /// Takes in a datagram.
    pub(crate) fn receive(&mut self, now: Instant, datagram: &[u8]) {
        let mut buffer = Vec::new();
        let data = BytesMut::from(datagram);
        let event = self.endpoint.handle(now, self.client, None, None, data, &mut buffer);
        match event {
            None => (),
            Some(DatagramEvent::Response(transmit)) => self.out.push(buffer[..transmit.size].to_vec()),
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(peer) = self.peers.get_mut(&handle.0) {
                    peer.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.case.server.retry && !incoming.remote_address_validated() {
                    let transmit = self.endpoint.retry(incoming, &mut buffer).expect("not retried before");
                    self.out.push(buffer[..transmit.size].to_vec());
                    return;
                }
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok((ConnectionHandle(handle), connection)) => {
                        let peer = Peer {
                            connection,
                            streams: BTreeMap::new(),
                            whole: 0,
                            resets: 0,
                            lost: None,
                            said: 0,
                            says: None,
                        };
                        self.peers.insert(handle, peer);
                    }
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            self.out.push(buffer[..transmit.size].to_vec());
                        }
                    }
                }
            }
        }
    }

    /// When it has to be woken.
    pub(crate) fn deadline(&mut self) -> Option<Instant> {
        self.peers.values_mut().filter_map(|peer| peer.connection.poll_timeout()).min()
    }

    /// Does what is due, what requests ask for, and makes datagrams.
    pub(crate) fn work(&mut self, now: Instant) {
        let handles: Vec<usize> = self.peers.keys().copied().collect();
        for handle in handles {
            let peer = self.peers.get_mut(&handle).expect("it was just there");
            if peer.connection.poll_timeout().is_some_and(|at| at <= now) {
                peer.connection.handle_timeout(now);
            }
            loop {
                peer.serve(&self.case, &mut self.random, now);
                let mut settled = true;
                while let Some(event) = peer.connection.poll_endpoint_events() {
                    settled = false;
                    if let Some(event) = self.endpoint.handle_event(ConnectionHandle(handle), event) {
                        peer.connection.handle_event(event);
                    }
                }
                if settled {
                    break;
                }
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = peer.connection.poll_transmit(now, 10, &mut buffer) {
                let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
                self.out.extend(buffer[..transmit.size].chunks(segment).map(<[u8]>::to_vec));
                buffer.clear();
            }
        }
    }
}

impl Peer {
    fn serve(&mut self, case: &Case, random: &mut Random, now: Instant) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => {
                    self.says = self.connection.streams().open(Dir::Uni);
                }
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.connection.streams().accept(dir) {
                        if dir == Dir::Bi {
                            self.streams.insert(id.into(), Stream::default());
                        }
                        self.read(id, case, random, now);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(id, case, random, now),
                Event::Stream(StreamEvent::Writable { id }) => self.write(id, case),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    assert_eq!(error_code.into_inner(), ABANDONED);
                    if let Some(stream) = self.streams.get_mut(&id.into()) {
                        stream.over = true;
                    }
                    let _ = self.connection.send_stream(id).reset(error_code);
                }
                _ => (),
            }
        }
        self.say();
    }

    /// Goes on with what is said on a stream of the server's own.
    fn say(&mut self) {
        let Some(id) = self.says else { return };
        while self.said < SERVER_SAYS.len() {
            match self.connection.send_stream(id).write(&SERVER_SAYS[self.said..]) {
                Ok(written) => self.said += written,
                Err(_) => return,
            }
        }
        self.connection.send_stream(id).finish().expect("it is open");
        self.says = None;
    }

    fn read(&mut self, id: StreamId, case: &Case, random: &mut Random, now: Instant) {
        let mut bytes = Vec::new();
        let end = {
            let mut receive = self.connection.recv_stream(id);
            let mut chunks = match receive.read(true) {
                Ok(chunks) => chunks,
                // No more of it was wanted.
                Err(ReadableError::ClosedStream) => return,
                Err(error) => panic!("{error}"),
            };
            let end = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => bytes.extend_from_slice(&chunk.bytes),
                    Ok(None) => break Some(Ok(())),
                    Err(ReadError::Blocked) => break None,
                    Err(ReadError::Reset(code)) => break Some(Err(code.into_inner())),
                }
            };
            let _ = chunks.finalize();
            end
        };
        if id.dir() == Dir::Uni {
            assert!(crate::case::CLIENT_SAYS.ends_with(&bytes), "the client's own stream");
            assert_eq!(end, None, "it is never ended");
            return;
        }
        let stream = self.streams.entry(id.into()).or_default();
        for byte in bytes {
            assert_eq!(byte, asked_byte(stream.received), "at {} of {id}", stream.received);
            stream.received += 1;
        }
        match end {
            None if !stream.answering && random.chance(case.server.stops) => {
                stream.answering = true;
                let _ = self.connection.recv_stream(id).stop(VarInt::from_u64(STOPPED).expect("in range"));
                self.write(id, case);
            }
            None => (),
            Some(Err(code)) => {
                assert!(code == ABANDONED || code == STOPPED, "{code:#x}");
                self.resets += 1;
            }
            Some(Ok(())) => {
                assert_eq!(stream.received, case.upload, "a whole request");
                stream.answering = true;
                self.whole += 1;
                if case.server.closes == Some(self.whole) {
                    return self.connection.close(
                        now,
                        VarInt::from_u32(CLOSED),
                        Bytes::from_static(b"enough"),
                    );
                }
                if case.server.key_updates.is_some_and(|every| self.whole.is_multiple_of(every)) {
                    self.connection.force_key_update();
                }
                if random.chance(case.server.resets) {
                    stream.over = true;
                    let _ = self.connection.send_stream(id).reset(VarInt::from_u32(RESET));
                } else {
                    self.write(id, case);
                }
            }
        }
    }

    fn write(&mut self, id: StreamId, case: &Case) {
        let Some(stream) = self.streams.get_mut(&id.into()) else { return };
        let (number, mut send) = (id.index(), self.connection.send_stream(id));
        let length = case.answer(number);
        while stream.answering && !stream.over {
            let end = length.min(stream.sent + case.server.piece);
            let piece: Vec<u8> = (stream.sent..end).map(|at| answer_byte(number, at)).collect();
            match send.write(&piece) {
                Ok(written) => stream.sent += written,
                Err(WriteError::Blocked) if !piece.is_empty() => return,
                Err(WriteError::Blocked) => (),
                Err(WriteError::Stopped(code)) => {
                    assert_eq!(code.into_inner(), ABANDONED);
                    stream.over = true;
                    return;
                }
                Err(error @ WriteError::ClosedStream) => panic!("{error}"),
            }
            if stream.sent == length {
                stream.over = true;
                let _ = send.finish();
            }
        }
    }
}

/// A key whose output has one length, so that cases do not depend on chance.
fn quinn_key() -> impl quinn_proto::crypto::HmacKey {
    Key
}

struct Key;

impl quinn_proto::crypto::HmacKey for Key {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        for (at, byte) in out.iter_mut().enumerate() {
            *byte = data.get(at % data.len().max(1)).copied().unwrap_or(0) ^ 0x3c;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), quinn_proto::crypto::CryptoError> {
        Err(quinn_proto::crypto::CryptoError)
    }
}

fn server_config(case: &Case) -> Arc<ServerConfig> {
    let mut transport = TransportConfig::default();
    let mut probing = MtuDiscoveryConfig::default();
    probing.upper_bound(1452);
    transport
        .max_concurrent_bidi_streams(case.server.streams.into())
        .stream_receive_window(case.server.stream_window.into())
        .receive_window(case.server.window.into())
        .max_idle_timeout(Some(Duration::from_secs(30).try_into().expect("in range")))
        .initial_mtu(case.server.mtu)
        .mtu_discovery_config(Some(probing));
    let crypto = QuicServerConfig::try_from(tls()).expect("TLS 1.3 with the initial suite");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Arc::new(config)
}

/// TLS settings whose messages always have the same lengths.
fn tls() -> rustls::ServerConfig {
    static SIGNED: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    let (certificate, key) = SIGNED.get_or_init(|| {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("ring makes keys");
        let mut params = rcgen::CertificateParams::new(vec!["localhost".into()]).expect("a name");
        params.serial_number = Some(rcgen::SerialNumber::from(7u64));
        let certificate = params.self_signed(&key).expect("rcgen signs");
        (certificate.der().clone(), key.serialize_der())
    });
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.clone()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring knows TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("key and certificate belong together");
    tls.alpn_protocols = vec![b"test".to_vec()];
    tls.max_early_data_size = u32::MAX;
    tls
}

/// Codes of the server's.
pub(crate) const RESET: u32 = 0x4e;
pub(crate) const CLOSED: u32 = 0xc105;
