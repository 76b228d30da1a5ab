//! Owns what a scripted connection is made over: sockets of both families, TLS on top, and what is left
//! of one that was cut.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

pub(crate) trait Stream: Read + Write + Send {
    /// Ends this direction, as its protocol has it; reading goes on.
    fn end(&mut self);
}

/// What a connection is made over.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
        })
    }

    pub(super) fn set_read_timeout(&self, timeout: Option<Duration>) -> std::io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_read_timeout(timeout),
            Self::Unix(socket) => socket.set_read_timeout(timeout),
        }
    }

    pub(super) fn shutdown(&self) -> std::io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Write),
            Self::Unix(socket) => socket.shutdown(Shutdown::Write),
        }
    }

    /// Ends this direction and reads until the client ends the other: bytes that nobody read would
    /// make the kernel reset the connection, and take the last answers with it.
    pub(super) fn close(mut self) {
        // Fails when the script has ended it already.
        let _ = self.shutdown();
        if self.set_read_timeout(Some(LINGER)).is_ok() {
            let mut unread = [0; 16 * 1024];
            while self.read(&mut unread).is_ok_and(|n| n > 0) {}
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buf),
            Self::Unix(socket) => socket.read(buf),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(buf),
            Self::Unix(socket) => socket.write(buf),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Stream for Socket {
    fn end(&mut self) {
        let _ = self.shutdown();
    }
}

/// A TLS stream that says close_notify when it is dropped, as RFC 8446 §6.1 asks.
pub(super) struct TlsStream(pub(super) rustls::StreamOwned<rustls::ServerConnection, Socket>);

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

impl Stream for TlsStream {
    fn end(&mut self) {
        self.0.conn.send_close_notify();
        let _ = self.0.flush();
        let _ = self.0.sock.shutdown();
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        self.end();
    }
}

/// What is left of a connection that was cut.
pub(super) struct Gone;

impl Read for Gone {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Ok(0)
    }
}

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Stream for Gone {
    fn end(&mut self) {}
}

/// TLS settings of a server: a fresh self-signed certificate, these ALPN protocols and versions.
pub(crate) fn tls_config(
    alpn: &[&[u8]],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<rustls::ServerConfig> {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("rcgen signs");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der()));
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("ring knows these versions")
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .expect("key and certificate belong together");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// TLS 1.3 settings of a client that takes any certificate, with these ALPN protocols.
pub(crate) fn client_config(alpn: &[&[u8]]) -> rustls::ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring knows TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}

/// Checks that the server has the key of its certificate, and nothing else.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// How long a server that is done waits for its client to close.
pub(super) const LINGER: Duration = Duration::from_secs(5);
