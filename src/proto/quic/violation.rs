//! Owns what a peer can do against RFC 9000 and 9001, by name, and how a connection ends.

use std::fmt;

use super::ApplicationError;

/// Why this side ends a connection: an error of the transport (RFC 9000 §20.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A frame that ends after its packet does.
    Cut(&'static str),
    /// A frame against its own rules, of this type.
    Frame {
        /// Its type.
        kind: u64,
        /// What it is.
        what: &'static str,
    },
    /// More bytes than the flow control limits allow.
    FlowControl,
    /// A stream beyond the limit.
    StreamLimit,
    /// A frame for a stream that cannot have it.
    StreamState(&'static str),
    /// Bytes beyond a stream's end, or two ends.
    FinalSize,
    /// Transport parameters.
    Parameters(String),
    /// More connection ids than allowed.
    ConnectionIdLimit,
    /// Anything else.
    Protocol(&'static str),
    /// More CRYPTO data than is kept.
    CryptoBuffer,
    /// A key update against RFC 9001 §6.
    KeyUpdate,
    /// So many packets failed authentication that the keys are used up (RFC 9001 §6.6).
    AeadLimit,
    /// The TLS handshake failed; with the alert that says so.
    Tls {
        /// Stable name, as over TCP.
        kind: String,
        /// Alert description.
        alert: u8,
        /// In words.
        text: String,
    },
}

impl Violation {
    /// Its error code.
    pub fn code(&self) -> u64 {
        match self {
            Self::FlowControl => 0x03,
            Self::StreamLimit => 0x04,
            Self::StreamState(_) => 0x05,
            Self::FinalSize => 0x06,
            Self::Cut(_) | Self::Frame { .. } => 0x07,
            Self::Parameters(_) => 0x08,
            Self::ConnectionIdLimit => 0x09,
            Self::Protocol(_) => 0x0a,
            Self::CryptoBuffer => 0x0d,
            Self::KeyUpdate => 0x0e,
            Self::AeadLimit => 0x0f,
            Self::Tls { alert, .. } => 0x100 + u64::from(*alert),
        }
    }

    /// Type of the frame that it is about; 0: none in particular.
    pub fn frame(&self) -> u64 {
        match self {
            Self::Frame { kind, .. } => *kind,
            _ => 0,
        }
    }

    /// Stable name.
    pub fn kind(&self) -> &str {
        match self {
            Self::Cut(_) | Self::Frame { .. } => "frame-encoding",
            Self::FlowControl => "flow-control",
            Self::StreamLimit => "stream-limit",
            Self::StreamState(_) => "stream-state",
            Self::FinalSize => "final-size",
            Self::Parameters(_) => "transport-parameter",
            Self::ConnectionIdLimit => "connection-id-limit",
            Self::Protocol(_) => "protocol-violation",
            Self::CryptoBuffer => "crypto-buffer-exceeded",
            Self::KeyUpdate => "key-update",
            Self::AeadLimit => "aead-limit",
            Self::Tls { kind, .. } => kind,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(name) => write!(f, "a frame that ends after its packet ({name})"),
            Self::Frame { kind, what } => write!(f, "{what} (frame type 0x{kind:02x})"),
            Self::FlowControl => f.write_str("more data than the flow control limit allows"),
            Self::StreamLimit => f.write_str("a stream beyond the limit"),
            Self::StreamState(what) | Self::Protocol(what) => f.write_str(what),
            Self::FinalSize => f.write_str("a stream that goes on after its end, or ends twice"),
            Self::Parameters(text) => write!(f, "transport parameters: {text}"),
            Self::ConnectionIdLimit => f.write_str("more connection ids than the limit allows"),
            Self::CryptoBuffer => f.write_str("more handshake data than is kept"),
            Self::KeyUpdate => f.write_str("a key update before the last one was acknowledged"),
            Self::AeadLimit => f.write_str("more forged packets than the keys allow"),
            Self::Tls { text, .. } => f.write_str(text),
        }
    }
}

/// Who or what ended a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Closed {
    /// This side: the peer broke the rules of QUIC or TLS.
    Violation(Violation),
    /// This side: the application said so.
    Application(ApplicationError),
    /// The peer, with CONNECTION_CLOSE.
    ByPeer {
        /// Of the application, else of the transport.
        application: bool,
        /// Its error code.
        code: u64,
        /// Its reason, as far as it can be shown.
        reason: String,
    },
    /// The peer has lost its state (RFC 9000 §10.3).
    StatelessReset,
    /// Nothing was heard for the time that was agreed (RFC 9000 §10.1).
    Idle,
    /// The peer does not speak version 1, but these (RFC 9000 §6.2).
    Versions(Vec<u32>),
}

impl From<Violation> for Closed {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl Closed {
    /// Stable name in kebab-case.
    pub fn kind(&self) -> String {
        match self {
            Self::Violation(violation) => violation.kind().into(),
            Self::Application(error) => error.kind.into(),
            Self::ByPeer { application: false, code, .. } => format!("closed-{}", transport_name(*code)),
            Self::ByPeer { application: true, code, .. } => format!("closed-0x{code:x}"),
            Self::StatelessReset => "stateless-reset".into(),
            Self::Idle => "idle-timeout".into(),
            Self::Versions(_) => "version-negotiation".into(),
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => violation.fmt(f),
            Self::Application(error) => f.write_str(&error.text),
            Self::ByPeer { application, code, reason } => {
                let who = if *application { "application error" } else { "transport error" };
                write!(f, "the server closed the connection ({who} 0x{code:x}")?;
                if !application {
                    write!(f, ", {}", transport_name(*code))?;
                }
                if !reason.is_empty() {
                    write!(f, ", `{reason}`")?;
                }
                f.write_str(")")
            }
            Self::StatelessReset => {
                f.write_str("the server knows nothing of the connection any more (stateless reset)")
            }
            Self::Idle => f.write_str("nothing was heard from the server for the idle timeout"),
            Self::Versions(offered) => {
                f.write_str("the server does not speak QUIC version 1; it offers")?;
                for (at, version) in offered.iter().take(16).enumerate() {
                    write!(f, "{} 0x{version:08x}", if at == 0 { "" } else { "," })?;
                }
                if offered.is_empty() { f.write_str(" none") } else { Ok(()) }
            }
        }
    }
}

/// The name of an error code of the transport in kebab-case (RFC 9000 §20.1).
fn transport_name(code: u64) -> String {
    let known = match code {
        0x00 => "no-error",
        0x01 => "internal-error",
        0x02 => "connection-refused",
        0x03 => "flow-control-error",
        0x04 => "stream-limit-error",
        0x05 => "stream-state-error",
        0x06 => "final-size-error",
        0x07 => "frame-encoding-error",
        0x08 => "transport-parameter-error",
        0x09 => "connection-id-limit-error",
        0x0a => "protocol-violation",
        0x0b => "invalid-token",
        0x0c => "application-error",
        0x0d => "crypto-buffer-exceeded",
        0x0e => "key-update-error",
        0x0f => "aead-limit-reached",
        0x10 => "no-viable-path",
        0x100..=0x1ff => return format!("tls-alert-{}", code - 0x100),
        _ => return format!("0x{code:x}"),
    };
    known.into()
}
