//! Owns TLS as ciphertext in and out: a `rustls` client connection without a socket.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{AlertDescription, ClientConfig, Error, HandshakeKind};

/// What a handshake agreed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// ALPN protocol.
    pub alpn: Option<String>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: Option<String>,
    /// Cipher suite.
    pub cipher: Option<String>,
    /// Key exchange group.
    pub group: Option<String>,
}

/// Why a TLS connection cannot go on.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TlsError {
    /// A violation, an alert, a certificate that does not verify.
    #[error("{0}")]
    Rustls(Error),
    /// The peer sent more than a record or handshake message can hold without completing one.
    #[error("a record or handshake message beyond every limit")]
    TooLong,
    /// The connection may not carry application data (yet, or any more).
    #[error("no application data can be sent now")]
    NotReady,
}

impl TlsError {
    /// The server speaks none of the protocols offered by ALPN (RFC 7301 §3.2).
    pub fn is_no_common_protocol(&self) -> bool {
        matches!(
            self,
            Self::Rustls(
                Error::NoApplicationProtocol | Error::AlertReceived(AlertDescription::NoApplicationProtocol)
            )
        )
    }

    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(&self) -> String {
        match self {
            Self::Rustls(error) => kind_of(error),
            Self::TooLong => "message-too-long".into(),
            Self::NotReady => "not-ready".into(),
        }
    }
}

/// What [`Tls::handle`] left the connection in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsState {
    /// More is needed from the peer.
    Handshaking,
    /// Application data may be sent.
    Established,
    /// The peer said it will send no more (close_notify).
    PeerClosed,
}

/// One TLS connection: feed what was received to [`Tls::handle`], send what it and [`Tls::seal`]
/// append to `out`, in that order.
pub struct Tls {
    conn: UnbufferedClientConnection,
    /// The start of a record whose end has not arrived.
    partial: Vec<u8>,
    state: TlsState,
}

impl Tls {
    /// A connection that has sent nothing; the first [`Tls::handle`], with no input, says ClientHello.
    ///
    /// # Errors
    /// When `config` allows no handshake at all.
    pub fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        let conn = UnbufferedClientConnection::new(config, name).map_err(TlsError::Rustls)?;
        Ok(Self { conn, partial: Vec::new(), state: TlsState::Handshaking })
    }

    /// Takes ciphertext in, appends what the handshake has to say to `out`, and hands application
    /// data to `plain`, record by record. `input` is decrypted in place.
    ///
    /// # Errors
    /// The connection is to be dropped; an alert may stand in `out`.
    pub fn handle(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        mut plain: impl FnMut(&[u8]),
    ) -> Result<TlsState, TlsError> {
        if self.partial.is_empty() {
            let used = self.process(input, out, &mut plain)?;
            self.partial.extend_from_slice(&input[used..]);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(input);
            let used = self.process(&mut joined, out, &mut plain)?;
            joined.drain(..used);
            if joined.is_empty() {
                // A connection at rest keeps no buffer.
                joined = Vec::new();
            }
            self.partial = joined;
        }
        if self.partial.len() > MAX_PARTIAL {
            return Err(TlsError::TooLong);
        }
        Ok(self.state)
    }

    /// Appends `plaintext` to `out` as records.
    ///
    /// # Errors
    /// When the handshake is not complete or the keys are used up.
    pub fn seal(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
        match state.map_err(TlsError::Rustls)? {
            ConnectionState::WriteTraffic(mut traffic) => {
                let start = out.len();
                let room = plaintext.len() + (plaintext.len() / MAX_RECORD + 1) * RECORD_OVERHEAD;
                out.resize(start + room, 0);
                let written = match traffic.encrypt(plaintext, &mut out[start..]) {
                    Err(EncryptError::InsufficientSize(more)) => {
                        out.resize(start + more.required_size, 0);
                        traffic.encrypt(plaintext, &mut out[start..])
                    }
                    done => done,
                };
                match written {
                    Ok(written) => out.truncate(start + written),
                    Err(_) => return Err(TlsError::NotReady),
                }
                Ok(())
            }
            _ => Err(TlsError::NotReady),
        }
    }

    /// The handshake resumed the session of an earlier connection; known once it is established.
    pub fn resumed(&self) -> bool {
        self.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// What the handshake agreed on, as far as it has come.
    pub fn agreed(&self) -> Agreed {
        Agreed {
            alpn: self.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            version: self.conn.protocol_version().map(|version| match version {
                rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2".into(),
                rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3".into(),
                other => format!("{other:?}"),
            }),
            cipher: self.conn.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite())),
            group: self.conn.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name())),
        }
    }

    fn process(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        plain: &mut impl FnMut(&[u8]),
    ) -> Result<usize, TlsError> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { discard, state } = self.conn.process_tls_records(&mut input[used..]);
            match state.map_err(TlsError::Rustls)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        plain(record.map_err(TlsError::Rustls)?.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    let start = out.len();
                    let room = match data.encode(&mut []) {
                        Err(EncodeError::InsufficientSize(need)) => need.required_size,
                        _ => 0,
                    };
                    out.resize(start + room, 0);
                    data.encode(&mut out[start..]).map_err(|_| TlsError::NotReady)?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::WriteTraffic(_) => {
                    self.state = TlsState::Established;
                    return Ok(used + discard);
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    self.state = TlsState::PeerClosed;
                    return Ok(input.len());
                }
                // BlockedHandshake; early data is never asked for.
                _ => return Ok(used + discard),
            }
            used += discard;
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("state", &self.state).finish_non_exhaustive()
    }
}

fn kebab(camel: &str) -> String {
    let mut out = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Plaintext of one record (RFC 8446 §5.1).
const MAX_RECORD: usize = 1 << 14;
/// Header, content type and tag of one record in every suite of `rustls`, rounded up.
const RECORD_OVERHEAD: usize = 32;
/// A handshake message of 64 KiB, which is the most `rustls` accepts, in its records.
const MAX_PARTIAL: usize = 80 * 1024;
/// Stable kebab-case name of an error of rustls, over TCP or in QUIC.
pub(in crate::proto) fn kind_of(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => {
            format!("alert-received-{}", kebab(&format!("{alert:?}")))
        }
        Error::InvalidCertificate(_) => "invalid-certificate".into(),
        Error::PeerMisbehaved(_) => "peer-misbehaved".into(),
        Error::PeerIncompatible(_) => "peer-incompatible".into(),
        Error::InvalidMessage(_) => "invalid-message".into(),
        Error::DecryptError => "decrypt-error".into(),
        Error::NoApplicationProtocol => "no-application-protocol".into(),
        _ => "tls".into(),
    }
}
