//! quiche over mio: HTTP/3 on the UDP port HTTPS_PORT with CERT and KEY. Each of WORKERS threads has its
//! own event loop, its own sockets and its own connections; the kernel spreads clients over the sockets by
//! their address (SO_REUSEPORT).

mod client;
mod worker;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, io, thread};

use quiche::Config;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use socket2::{Domain, Socket, Type};

use worker::Worker;

type Failure = Box<dyn std::error::Error>;

/// Bytes of a datagram, as in quiche's own examples: fits every path to a client.
const DATAGRAM: usize = 1350;
/// Requests a client may have open on a connection.
const CONCURRENT_REQUESTS: u64 = 256;
/// Of unidirectional streams HTTP/3 needs three.
const UNIDIRECTIONAL: u64 = 100;
/// First windows, as in quiche's own examples; quiche widens them while a body arrives.
const CONNECTION_WINDOW: u64 = 10_000_000;
const STREAM_WINDOW: u64 = 1_000_000;
const IDLE_TIMEOUT_MS: u64 = 120_000;
/// Asked of the kernel, which grants at most `net.core.rmem_max` and `wmem_max`.
const SOCKET_BUFFER: usize = 4 << 20;

fn main() -> Result<(), Failure> {
    if env::args().nth(1).as_deref() == Some("--version") {
        println!("quiche {}, rustc {}", env!("QUICHE_VERSION"), env!("RUSTC_VERSION"));
        return Ok(());
    }
    let port = env::var("HTTPS_PORT")?.parse()?;
    let (cert, key) = (env::var("CERT")?, env::var("KEY")?);
    let workers: usize = env::var("WORKERS")?.parse()?;
    // One key for all threads: a client that comes back meets any of them.
    let mut ticket_key = [0; 48];
    getrandom::fill(&mut ticket_key)?;

    let mut signals = Signals::new([SIGTERM])?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = Vec::new();
    for _ in 0..workers {
        let sockets = bind(port, workers > 1)?;
        let worker = Worker::new(sockets, config(&cert, &key, &ticket_key)?, stop.clone())?;
        running.push((worker.waker(), thread::spawn(move || worker.run())));
    }
    signals.forever().next();
    stop.store(true, Ordering::Relaxed);
    for (waker, thread) in running {
        waker.wake()?;
        thread.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}

fn config(cert: &str, key: &str, ticket_key: &[u8]) -> Result<Config, quiche::Error> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.load_cert_chain_from_pem_file(cert)?;
    config.load_priv_key_from_pem_file(key)?;
    config.set_application_protos(quiche::h3::APPLICATION_PROTOCOL)?;
    config.set_ticket_key(ticket_key)?;
    config.enable_early_data();
    config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_stream_data_uni(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(CONCURRENT_REQUESTS);
    config.set_initial_max_streams_uni(UNIDIRECTIONAL);
    // The socket, and with it the worker, follows from the client's address.
    config.set_disable_active_migration(true);
    Ok(config)
}

/// A socket of each loopback address; a machine without IPv6 has no ::1, 127.0.0.1 must be there.
fn bind(port: u16, shared: bool) -> io::Result<Vec<mio::net::UdpSocket>> {
    let bind = |address: SocketAddr| {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        socket.set_reuse_port(shared)?;
        socket.set_recv_buffer_size(SOCKET_BUFFER)?;
        socket.set_send_buffer_size(SOCKET_BUFFER)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(mio::net::UdpSocket::from_std(socket.into()))
    };
    let first = bind((Ipv4Addr::LOCALHOST, port).into())
        .map_err(|error: io::Error| io::Error::other(format!("cannot bind 127.0.0.1:{port}: {error}")))?;
    Ok(std::iter::once(first).chain(bind((Ipv6Addr::LOCALHOST, port).into()).ok()).collect())
}
