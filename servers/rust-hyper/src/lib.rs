//! What answers over TCP: HTTP/1.1 and HTTP/2 by hyper, in cleartext or over TLS by rustls. Servers of
//! HTTP/3 put it beside their UDP socket, and answer there with `h3`.

#[cfg(feature = "h3")]
pub mod h3;

#[cfg(all(feature = "ring", feature = "aws-lc-rs"))]
compile_error!("rustls takes one provider: build with `--no-default-features --features aws-lc-rs`");
#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
compile_error!("rustls needs a provider: build with the feature `ring` or `aws-lc-rs`");

use std::time::{Duration, Instant};
use std::{convert::Infallible, env, hint, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

pub type Failure = Box<dyn std::error::Error>;

const BACKLOG: u32 = 4096;
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The provider of rustls's cryptography.
pub const PROVIDER: &str = if cfg!(feature = "ring") { "ring" } else { "aws-lc-rs" };

/// What is otherwise than usual, for comparisons of this server with itself.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// How long each answer keeps its CPU busy on top.
    slowdown: Option<Duration>,
    /// Leaves Nagle's algorithm (RFC 9293, section 3.7.4) on, by not setting TCP_NODELAY.
    nagle: bool,
}

impl Options {
    /// From SLOWDOWN_NS, nanoseconds, and TCP_NODELAY, 0 or 1.
    pub fn from_env() -> Result<Self, Failure> {
        let slowdown = match env::var("SLOWDOWN_NS") {
            Ok(text) => text.parse().map_err(|_| format!("SLOWDOWN_NS={text}: write whole nanoseconds"))?,
            Err(_) => 0,
        };
        let nagle = match env::var("TCP_NODELAY").as_deref() {
            Ok("0") => true,
            Ok("1") | Err(_) => false,
            Ok(text) => return Err(format!("TCP_NODELAY={text}: write 0 or 1").into()),
        };
        Ok(Self { slowdown: (slowdown > 0).then(|| Duration::from_nanos(slowdown)), nagle })
    }
}

/// The listeners on TCP, and the connections they accepted.
pub struct Tcp {
    bodies: Arc<Bodies>,
    options: Options,
    accepting: JoinSet<()>,
    shutdown: Arc<GracefulShutdown>,
}

impl Tcp {
    pub fn new(bodies: Arc<Bodies>, options: Options) -> Self {
        Self { bodies, options, accepting: JoinSet::new(), shutdown: Arc::new(GracefulShutdown::new()) }
    }

    /// Listens on `port` of both loopback addresses.
    pub fn listen(&mut self, port: u16, tls: Option<TlsAcceptor>) -> Result<(), Failure> {
        for address in ["127.0.0.1", "::1"] {
            match listen(SocketAddr::new(address.parse()?, port)) {
                Ok(listener) => {
                    let (bodies, shutdown) = (self.bodies.clone(), self.shutdown.clone());
                    self.accepting.spawn(accept(listener, tls.clone(), bodies, self.options, shutdown));
                }
                // A machine without IPv6 has no ::1; 127.0.0.1 must be there.
                Err(_) if address == "::1" => {}
                Err(error) => return Err(format!("cannot listen on {address}:{port}: {error}").into()),
            }
        }
        Ok(())
    }

    /// Accepts no more, and lets what is under way end while there is time.
    pub async fn stop(mut self) {
        self.accepting.shutdown().await;
        if let Some(shutdown) = Arc::into_inner(self.shutdown) {
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, shutdown.shutdown()).await;
        }
    }
}

/// TLS 1.2 and 1.3 with the PEM files named, for HTTP/2 and HTTP/1.1 by ALPN.
pub fn tls_acceptor(cert: &str, key: &str) -> Result<TlsAcceptor, Failure> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    bodies: Arc<Bodies>,
    options: Options,
    shutdown: Arc<GracefulShutdown>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: others must close before another attempt can succeed.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(!options.nagle);
        let (tls, bodies, watcher) = (tls.clone(), bodies.clone(), shutdown.watcher());
        tokio::spawn(async move {
            match tls {
                None => serve(stream, bodies, options, watcher).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, bodies, options, watcher).await;
                    }
                }
            }
        });
    }
}

/// Serves HTTP/2 when the connection begins with its preface (RFC 9113, section 3.4), in cleartext by
/// prior knowledge as over TLS, and HTTP/1.1 otherwise.
async fn serve<S>(stream: S, bodies: Arc<Bodies>, options: Options, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new());
    let service = service_fn(move |request| answer(request, bodies.clone(), options));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // A client that goes away is not the server's failure.
    let _ = watcher.watch(connection).await;
}

async fn answer(
    request: Request<Incoming>,
    bodies: Arc<Bodies>,
    options: Options,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if let Some(slowdown) = options.slowdown {
        spin(slowdown);
    }
    let body = bodies.of(request.uri().path());
    let head = request.method() == Method::HEAD;
    if request.method() == Method::POST {
        let mut incoming = request.into_body();
        while let Some(Ok(_)) = incoming.frame().await {}
    }
    let status = if body.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let mut body = body.unwrap_or_default();
    // Over HTTP/2 hyper would send the body of an answer to HEAD.
    let length = head.then(|| std::mem::take(&mut body).len());
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

/// Keeps its CPU busy for this long. The clock of CPU time would also be right where others take the CPU
/// meanwhile, but one reading of it, a system call, costs as much as a small slowdown.
fn spin(length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length {
        hint::spin_loop();
    }
}

/// What is answered from.
pub struct Bodies {
    hello: Bytes,
    one_k: Bytes,
    sixteen_k: Bytes,
    one_m: Bytes,
}

impl Bodies {
    #[expect(clippy::new_without_default, reason = "made once, by main")]
    pub fn new() -> Self {
        let filled = |size| Bytes::from(vec![b'x'; size]);
        Self {
            hello: Bytes::from_static(b"Hello, World!\n"),
            one_k: filled(1 << 10),
            sixteen_k: filled(1 << 14),
            one_m: filled(1 << 20),
        }
    }

    /// The body at `path`; `None` where nothing is.
    pub fn of(&self, path: &str) -> Option<Bytes> {
        match path {
            "/" | "/upload" => Some(self.hello.clone()),
            "/empty" => Some(Bytes::new()),
            "/1k" => Some(self.one_k.clone()),
            "/16k" => Some(self.sixteen_k.clone()),
            "/1m" => Some(self.one_m.clone()),
            _ => None,
        }
    }
}
