//! Owns the names of everything a server can do wrong in HTTP/2, and the error codes of the RFC.

use crate::proto::exchange::Failure;
use crate::proto::hpack::{HpackError, Malformed};

/// A connection error (RFC 9113 §5.4.1): after it nothing on the connection can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// The first frame is not SETTINGS (RFC 9113 §3.4).
    #[error("the first frame is not SETTINGS; is the port right, and does it speak HTTP/2?")]
    SettingsNotFirst,
    /// The answer is HTTP/1.
    #[error("asked for HTTP/2 with prior knowledge, the server answered HTTP/1")]
    Http1Answer,
    /// A frame longer than allowed, or of another length than its type has (RFC 9113 §4.2).
    #[error("a frame of a length that its type does not have")]
    FrameSize,
    /// A frame on stream 0 that needs a stream, or the other way round (RFC 9113 §6).
    #[error("a frame on a stream where its type does not belong")]
    FrameOnWrongStream,
    /// Padding as long as the payload, or longer (RFC 9113 §6.1).
    #[error("padding that is longer than its frame")]
    Padding,
    /// A frame for a stream that was never opened (RFC 9113 §5.1).
    #[error("a frame for a stream that is idle")]
    IdleStream,
    /// HEADERS or DATA after the end of a stream (RFC 9113 §5.1).
    #[error("a frame for a stream that has ended")]
    ClosedStream,
    /// A field block interrupted by another frame, or continued where none was begun (RFC 9113 §6.10).
    #[error("a field block that is not contiguous")]
    Continuation,
    /// A field block in more than [`MAX_CONTINUATIONS`](super::MAX_CONTINUATIONS) frames, or longer
    /// than any header list that would be taken.
    #[error("a field block without end")]
    FieldBlockTooLong,
    /// PUSH_PROMISE, although push was refused (RFC 9113 §8.4).
    #[error("a promised push that was refused beforehand")]
    PushPromise,
    /// A setting with a value out of its range (RFC 9113 §6.5.2).
    #[error("a setting out of its range")]
    InvalidSetting,
    /// A window that grew beyond 2^31 − 1 (RFC 9113 §6.9.1).
    #[error("a flow-control window that grew beyond its limit")]
    WindowOverflow,
    /// A WINDOW_UPDATE by 0 (RFC 9113 §6.9).
    #[error("a flow-control window that grew by nothing")]
    ZeroIncrement,
    /// More DATA than the window allowed (RFC 9113 §6.9.1).
    #[error("more data than the flow-control window allowed")]
    FlowControl,
    /// A GOAWAY that takes streams back in (RFC 9113 §6.8).
    #[error("a GOAWAY with a higher last stream than the one before")]
    GoawayIncreases,
    /// More than [`MAX_IDLE_FRAMES`](super::MAX_IDLE_FRAMES) frames that move no request on.
    #[error("a flood of frames that move no request on")]
    Flood,
    /// A field block that cannot be decoded (RFC 7541).
    #[error("{0}")]
    Hpack(HpackError),
}

/// A stream error (RFC 9113 §5.4.2): one response is malformed, the connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamViolation {
    /// The field section is malformed (RFC 9113 §8.2, §8.3).
    #[error("{0}")]
    Fields(Malformed),
    /// A 1xx response that ends its stream (RFC 9113 §8.1).
    #[error("an interim response that ends its stream")]
    InterimEndsStream,
    /// 101, which HTTP/2 does not have (RFC 9113 §8.6).
    #[error("a switch of protocols, which HTTP/2 does not have")]
    SwitchingProtocols,
    /// More than [`MAX_INTERIM`](super::MAX_INTERIM) interim responses to one request.
    #[error("too many interim responses to one request")]
    TooManyInterim,
    /// DATA before HEADERS (RFC 9113 §8.1).
    #[error("data before the response's header")]
    DataBeforeHeaders,
    /// Trailers that do not end their stream (RFC 9113 §8.1).
    #[error("a second field section that does not end its stream")]
    TrailersWithoutEnd,
    /// A body where none may be: HEAD, 204, 304 (RFC 9110 §6.4.1).
    #[error("a body where none may be")]
    BodyNotAllowed,
    /// Content-Length and the sum of DATA differ (RFC 9113 §8.1.1).
    #[error("a body of another length than Content-Length says")]
    ContentLengthMismatch,
    /// A stream's window grew beyond 2^31 − 1 (RFC 9113 §6.9.1).
    #[error("a stream's flow-control window that grew beyond its limit")]
    WindowOverflow,
    /// A WINDOW_UPDATE of a stream by 0 (RFC 9113 §6.9).
    #[error("a stream's flow-control window that grew by nothing")]
    ZeroIncrement,
    /// More DATA than the stream's window allowed (RFC 9113 §6.9.1).
    #[error("more data than the stream's flow-control window allowed")]
    FlowControl,
    /// A PRIORITY frame of another length (RFC 9113 §6.3).
    #[error("a PRIORITY frame of a length other than 5")]
    PrioritySize,
}

impl Violation {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::SettingsNotFirst => "settings-not-first",
            Self::Http1Answer => "wrong-protocol",
            Self::FrameSize => "frame-size",
            Self::FrameOnWrongStream => "frame-on-wrong-stream",
            Self::Padding => "padding",
            Self::IdleStream => "idle-stream",
            Self::ClosedStream => "closed-stream",
            Self::Continuation => "continuation",
            Self::FieldBlockTooLong => "field-block-too-long",
            Self::PushPromise => "push-promise",
            Self::InvalidSetting => "invalid-setting",
            Self::WindowOverflow => "window-overflow",
            Self::ZeroIncrement => "zero-increment",
            Self::FlowControl => "flow-control",
            Self::GoawayIncreases => "goaway-increases",
            Self::Flood => "flood",
            Self::Hpack(error) => error.kind(),
        }
    }

    /// What a GOAWAY says of it (RFC 9113 §7).
    pub fn code(self) -> ErrorCode {
        match self {
            Self::FrameSize => ErrorCode::FRAME_SIZE_ERROR,
            Self::ClosedStream => ErrorCode::STREAM_CLOSED,
            Self::WindowOverflow | Self::FlowControl => ErrorCode::FLOW_CONTROL_ERROR,
            Self::Flood | Self::FieldBlockTooLong => ErrorCode::ENHANCE_YOUR_CALM,
            Self::Hpack(_) => ErrorCode::COMPRESSION_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl StreamViolation {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Fields(malformed) => malformed.kind(),
            Self::InterimEndsStream => "interim-ends-stream",
            Self::SwitchingProtocols => "switching-protocols",
            Self::TooManyInterim => "too-many-interim",
            Self::DataBeforeHeaders => "data-before-headers",
            Self::TrailersWithoutEnd => "trailers-without-end",
            Self::BodyNotAllowed => "body-not-allowed",
            Self::ContentLengthMismatch => "content-length-mismatch",
            Self::WindowOverflow => "stream-window-overflow",
            Self::ZeroIncrement => "stream-zero-increment",
            Self::FlowControl => "stream-flow-control",
            Self::PrioritySize => "priority-size",
        }
    }

    /// What RST_STREAM says of it (RFC 9113 §7).
    pub(super) fn code(self) -> ErrorCode {
        match self {
            Self::WindowOverflow | Self::FlowControl => ErrorCode::FLOW_CONTROL_ERROR,
            Self::PrioritySize => ErrorCode::FRAME_SIZE_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl From<StreamViolation> for Failure {
    #[cold]
    fn from(violation: StreamViolation) -> Self {
        Self::Malformed { kind: violation.kind(), text: violation.to_string() }
    }
}

/// An error code of RST_STREAM and GOAWAY (RFC 9113 §7); any 32-bit value may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode(pub u32);

#[allow(missing_docs, reason = "the names are those of RFC 9113 §7")]
impl ErrorCode {
    pub const NO_ERROR: Self = Self(0);
    pub const PROTOCOL_ERROR: Self = Self(1);
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    pub const STREAM_CLOSED: Self = Self(5);
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    pub const REFUSED_STREAM: Self = Self(7);
    pub const CANCEL: Self = Self(8);
    pub const COMPRESSION_ERROR: Self = Self(9);
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    /// Kebab-case name; `unknown` for a value the RFC does not name.
    pub fn name(self) -> &'static str {
        match self.0 {
            0 => "no-error",
            1 => "protocol-error",
            2 => "internal-error",
            3 => "flow-control-error",
            4 => "settings-timeout",
            5 => "stream-closed",
            6 => "frame-size-error",
            7 => "refused-stream",
            8 => "cancel",
            9 => "compression-error",
            10 => "connect-error",
            11 => "enhance-your-calm",
            12 => "inadequate-security",
            13 => "http-1-1-required",
            _ => "unknown",
        }
    }
}

impl From<ErrorCode> for Failure {
    /// The failure of a stream that was reset with this code.
    #[cold]
    fn from(code: ErrorCode) -> Self {
        Self::Reset { code: code.0.into(), name: code.name() }
    }
}
