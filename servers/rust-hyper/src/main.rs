//! hyper on tokio's multi-threaded runtime: cleartext on HTTP_PORT, TLS with CERT and KEY on
//! HTTPS_PORT, each for HTTP/1.1 and HTTP/2. The runtime takes its number of threads from
//! TOKIO_WORKER_THREADS. SLOWDOWN_NS adds that much work to each answer, and TCP_NODELAY=0 leaves
//! Nagle's algorithm on.

use std::env;
use std::sync::Arc;

use rust_hyper::{Bodies, Failure, Options, PROVIDER, Tcp, tls_acceptor};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if env::args().nth(1).as_deref() == Some("--version") {
        println!("hyper {}, rustls with {PROVIDER}, rustc {}", env!("HYPER_VERSION"), env!("RUSTC_VERSION"));
        return Ok(());
    }
    let mut tcp = Tcp::new(Arc::new(Bodies::new()), Options::from_env()?);
    tcp.listen(env::var("HTTP_PORT")?.parse()?, None)?;
    tcp.listen(env::var("HTTPS_PORT")?.parse()?, Some(tls_acceptor(&env::var("CERT")?, &env::var("KEY")?)?))?;

    signal(SignalKind::terminate())?.recv().await;
    tcp.stop().await;
    Ok(())
}
