//! s2n-quic and h3 on tokio's multi-threaded runtime: HTTP/3 on the UDP port HTTPS_PORT with CERT and KEY.
//! The runtime takes its number of threads from TOKIO_WORKER_THREADS.

mod glue;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{env, net::SocketAddr};

use rust_hyper::{Bodies, Failure};
use s2n_quic::provider::io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::default as tls;
use s2n_quic::{Server, application};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Requests a client may have open on a connection; s2n-quic's default of 100 is less than cells ask for.
const CONCURRENT_REQUESTS: u64 = 256;
/// s2n-quic's default of 30 s is as long as the pauses that a connection must survive.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Asked of the kernel, which grants at most `net.core.rmem_max` and `wmem_max`.
const SOCKET_BUFFER: usize = 4 << 20;
/// For the connections to say that they are closed.
const SHUTDOWN_TIME: Duration = Duration::from_millis(100);
/// H3_NO_ERROR (RFC 9114, section 8.1).
const NO_ERROR: u32 = 0x100;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if env::args().nth(1).as_deref() == Some("--version") {
        println!(
            "s2n-quic {}, h3 {}, rustc {}",
            env!("S2N_QUIC_VERSION"),
            env!("H3_VERSION"),
            env!("RUSTC_VERSION")
        );
        return Ok(());
    }
    let port = env::var("HTTPS_PORT")?.parse()?;
    let (cert, key) = (env::var("CERT")?, env::var("KEY")?);
    // One key for both addresses: a client that comes back meets any of them.
    let mut ticket_key = [0; 32];
    getrandom::fill(&mut ticket_key)?;
    let bodies = Arc::new(Bodies::new());
    let (stop, stopped) = watch::channel(());
    for address in ["127.0.0.1", "::1"] {
        let address = SocketAddr::new(address.parse()?, port);
        match listen(address, Path::new(&cert), Path::new(&key), &ticket_key) {
            Ok(server) => {
                tokio::spawn(accept(server, bodies.clone(), stopped.clone()));
            }
            // A machine without IPv6 has no ::1; 127.0.0.1 must be there.
            Err(_) if address.is_ipv6() => {}
            Err(error) => return Err(format!("cannot listen on {address}: {error}").into()),
        }
    }

    signal(SignalKind::terminate())?.recv().await;
    stop.send(())?;
    tokio::time::sleep(SHUTDOWN_TIME).await;
    Ok(())
}

fn listen(address: SocketAddr, cert: &Path, key: &Path, ticket_key: &[u8]) -> Result<Server, Failure> {
    let mut tls = tls::Server::builder().with_certificate(cert, key)?.with_application_protocols(["h3"])?;
    tls.config_mut().enable_session_tickets(true)?.add_session_ticket_key(
        b"bench",
        ticket_key,
        SystemTime::now(),
    )?;
    let limits = Limits::new()
        .with_max_open_remote_bidirectional_streams(CONCURRENT_REQUESTS)?
        .with_max_idle_timeout(IDLE_TIMEOUT)?;
    let io = io::Default::builder()
        .with_receive_address(address)?
        .with_send_buffer_size(SOCKET_BUFFER)?
        .with_recv_buffer_size(SOCKET_BUFFER)?
        .build()?;
    Ok(Server::builder().with_tls(tls.build()?)?.with_limits(limits)?.with_io(io)?.start()?)
}

async fn accept(mut server: Server, bodies: Arc<Bodies>, stopped: watch::Receiver<()>) {
    while let Some(connection) = server.accept().await {
        let (bodies, mut stopped) = (bodies.clone(), stopped.clone());
        let handle = connection.handle();
        tokio::spawn(async move {
            tokio::select! {
                () = rust_hyper::h3::serve(glue::Connection::new(connection), bodies) => {}
                _ = stopped.changed() => handle.close(application::Error::from(NO_ERROR)),
            }
        });
    }
}
