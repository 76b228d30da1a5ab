//! quinn and h3 on tokio's multi-threaded runtime: HTTP/3 on the UDP port HTTPS_PORT, and hyper with
//! HTTP/1.1 and HTTP/2 on the TCP port of the same number, both with CERT and KEY. The runtime takes
//! its number of threads from TOKIO_WORKER_THREADS.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig};
use rust_hyper::{Bodies, Failure, Options, Tcp, tls_acceptor};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::ServerSessionMemoryCache;
use rustls::{ServerConfig, version::TLS13};
use socket2::{Domain, Socket, Type};
use tokio::signal::unix::{SignalKind, signal};

/// Requests a client may have open on a connection; quinn's default of 100 is less than cells ask for.
const CONCURRENT_REQUESTS: u32 = 256;
/// quinn's default of 30 s is as long as the pauses that a connection must survive.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Sessions kept for clients that come back. rustls accepts early data only for sessions that it keeps
/// itself, each for one use, and by default keeps 256.
const SESSIONS: usize = 16 * 1024;
/// Asked of the kernel, which grants at most `net.core.rmem_max` and `wmem_max`.
const SOCKET_BUFFER: usize = 4 << 20;
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if env::args().nth(1).as_deref() == Some("--version") {
        println!(
            "quinn {}, h3 {}, rustc {}",
            env!("QUINN_VERSION"),
            env!("H3_VERSION"),
            env!("RUSTC_VERSION")
        );
        return Ok(());
    }
    let port = env::var("HTTPS_PORT")?.parse()?;
    let (cert, key) = (env::var("CERT")?, env::var("KEY")?);
    let bodies = Arc::new(Bodies::new());
    let mut tcp = Tcp::new(bodies.clone(), Options::default());
    tcp.listen(port, Some(tls_acceptor(&cert, &key)?))?;

    let config = quic_config(&cert, &key)?;
    let mut endpoints = Vec::new();
    for address in ["127.0.0.1", "::1"] {
        match bind(SocketAddr::new(address.parse()?, port)) {
            Ok(socket) => {
                let (settings, runtime) = (EndpointConfig::default(), Arc::new(TokioRuntime));
                let endpoint = Endpoint::new(settings, Some(config.clone()), socket, runtime)?;
                tokio::spawn(accept(endpoint.clone(), bodies.clone()));
                endpoints.push(endpoint);
            }
            // A machine without IPv6 has no ::1; 127.0.0.1 must be there.
            Err(_) if address == "::1" => {}
            Err(error) => return Err(format!("cannot bind {address}:{port}: {error}").into()),
        }
    }

    signal(SignalKind::terminate())?.recv().await;
    for endpoint in &endpoints {
        endpoint.close(0x100_u32.into(), b"");
    }
    let idle = async {
        for endpoint in &endpoints {
            endpoint.wait_idle().await;
        }
    };
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, idle).await;
    tcp.stop().await;
    Ok(())
}

fn quic_config(cert: &str, key: &str) -> Result<quinn::ServerConfig, Failure> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut tls = ServerConfig::builder_with_protocol_versions(&[&TLS13])
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    // QUIC knows no other value that allows early data (RFC 9001, section 4.6.1).
    tls.max_early_data_size = u32::MAX;
    tls.session_storage = ServerSessionMemoryCache::new(SESSIONS);

    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(CONCURRENT_REQUESTS.into());
    transport.max_idle_timeout(Some(IDLE_TIMEOUT.try_into()?));
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

async fn accept(endpoint: Endpoint, bodies: Arc<Bodies>) {
    while let Some(incoming) = endpoint.accept().await {
        let bodies = bodies.clone();
        tokio::spawn(async move {
            // What comes as early data is answered before the handshake is complete.
            let Ok(connecting) = incoming.accept() else { return };
            let Ok((connection, _)) = connecting.into_0rtt() else { return };
            rust_hyper::h3::serve(h3_quinn::Connection::new(connection), bodies).await;
        });
    }
}
