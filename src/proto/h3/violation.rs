//! Owns the names of everything a server can do wrong in HTTP/3, and the error codes of the RFCs.

use crate::proto::exchange::Failure;
use crate::proto::hpack::Malformed;
use crate::proto::qpack::QpackError;
use crate::proto::quic::ApplicationError;

/// A connection error (RFC 9114 §8): after it nothing on the connection can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// The first frame of the control stream is not SETTINGS (RFC 9114 §6.2.1).
    #[error("the first frame of the control stream is not SETTINGS")]
    MissingSettings,
    /// SETTINGS came twice (RFC 9114 §7.2.4).
    #[error("a second SETTINGS frame")]
    RepeatedSettings,
    /// A setting that HTTP/3 must not have (RFC 9114 §7.2.4.1).
    #[error("a setting of HTTP/2, which HTTP/3 must not have")]
    ReservedSetting,
    /// A setting that stands twice in one frame (RFC 9114 §7.2.4).
    #[error("a setting that is there twice")]
    DuplicateSetting,
    /// A frame on a stream where its type does not belong (RFC 9114 §7.1).
    #[error("a frame on a stream where its type does not belong")]
    FrameOnWrongStream,
    /// A frame type of HTTP/2 that HTTP/3 must not have (RFC 9114 §7.2.8).
    #[error("a frame of a type of HTTP/2, which HTTP/3 must not have")]
    ReservedFrame,
    /// DATA before the final response's HEADERS (RFC 9114 §4.1).
    #[error("data before the response's header")]
    DataBeforeHeaders,
    /// HEADERS or DATA after the trailers (RFC 9114 §4.1).
    #[error("a frame after the trailers")]
    FrameAfterTrailers,
    /// A frame whose payload is not what its type has (RFC 9114 §7.1).
    #[error("a frame of a length that its type does not have")]
    FrameSize,
    /// A stream that ends inside a frame (RFC 9114 §7.1).
    #[error("a stream that ends in the middle of a frame")]
    FrameCut,
    /// SETTINGS that is longer than any that would be taken (RFC 9114 §10.5).
    #[error("a SETTINGS frame that is longer than any that would be taken")]
    FrameTooLong,
    /// PUSH_PROMISE, CANCEL_PUSH or a push stream, although no push was allowed (RFC 9114 §4.6, §7.2.3, §7.2.5).
    #[error("a push, although none was allowed")]
    Push,
    /// A GOAWAY with an identifier that is not of a client's bidirectional stream (RFC 9114 §7.2.6).
    #[error("a GOAWAY with an identifier that is no request's")]
    GoawayId,
    /// A GOAWAY that takes streams back in (RFC 9114 §5.2).
    #[error("a GOAWAY with a higher identifier than the one before")]
    GoawayIncreases,
    /// A second control, encoder or decoder stream (RFC 9114 §6.2.1, RFC 9204 §4.2).
    #[error("a second control, encoder or decoder stream")]
    RepeatedStream,
    /// A control, encoder or decoder stream was closed, by either direction's rules (RFC 9114 §6.2.1).
    #[error("the end of a control, encoder or decoder stream, which have to stay")]
    ClosedCriticalStream,
    /// More than [`MAX_IDLE_FRAMES`](super::MAX_IDLE_FRAMES) frames or streams that move no request on.
    #[error("a flood of frames or streams that move no request on")]
    Flood,
    /// A field section or an instruction that cannot be read (RFC 9204 §6).
    #[error("{0}")]
    Qpack(QpackError),
}

/// A stream error (RFC 9114 §4.1.2): one response is malformed or too large, the connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamViolation {
    /// The field section is malformed (RFC 9114 §4.2, §4.3).
    #[error("{0}")]
    Fields(Malformed),
    /// A field section above the advertised SETTINGS_MAX_FIELD_SECTION_SIZE (RFC 9114 §4.2.2).
    #[error("a field section above the advertised SETTINGS_MAX_FIELD_SECTION_SIZE")]
    SectionTooLarge,
    /// More than [`MAX_HELD`](super::MAX_HELD) bytes behind a field section that waits for the dynamic table.
    #[error("too many bytes behind a field section that waits for the dynamic table")]
    BlockedTooLong,
    /// The stream ended with an interim response (RFC 9114 §4.1).
    #[error("an interim response that ends its stream")]
    InterimEndsStream,
    /// The stream ended without any response (RFC 9114 §4.1).
    #[error("a stream that ends without a response")]
    NoResponse,
    /// 101, which HTTP/3 does not have (RFC 9114 §4.5).
    #[error("a switch of protocols, which HTTP/3 does not have")]
    SwitchingProtocols,
    /// More than [`MAX_INTERIM`](super::MAX_INTERIM) interim responses to one request.
    #[error("too many interim responses to one request")]
    TooManyInterim,
    /// A body where none may be: HEAD, 204, 304 (RFC 9110 §6.4.1).
    #[error("a body where none may be")]
    BodyNotAllowed,
    /// Content-Length and the sum of DATA differ (RFC 9114 §4.1.2).
    #[error("a body of another length than Content-Length says")]
    ContentLengthMismatch,
}

impl Violation {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::MissingSettings => "missing-settings",
            Self::RepeatedSettings => "repeated-settings",
            Self::ReservedSetting => "reserved-setting",
            Self::DuplicateSetting => "duplicate-setting",
            Self::FrameOnWrongStream => "frame-on-wrong-stream",
            Self::ReservedFrame => "reserved-frame",
            Self::DataBeforeHeaders => "data-before-headers",
            Self::FrameAfterTrailers => "frame-after-trailers",
            Self::FrameSize => "frame-size",
            Self::FrameCut => "frame-cut",
            Self::FrameTooLong => "frame-too-long",
            Self::Push => "push",
            Self::GoawayId => "goaway-id",
            Self::GoawayIncreases => "goaway-increases",
            Self::RepeatedStream => "repeated-stream",
            Self::ClosedCriticalStream => "closed-critical-stream",
            Self::Flood => "flood",
            Self::Qpack(error) => error.kind(),
        }
    }

    /// What CONNECTION_CLOSE says of it (RFC 9114 §8.1).
    pub fn code(self) -> ErrorCode {
        match self {
            Self::MissingSettings => ErrorCode::MISSING_SETTINGS,
            Self::RepeatedSettings
            | Self::FrameOnWrongStream
            | Self::ReservedFrame
            | Self::DataBeforeHeaders
            | Self::FrameAfterTrailers => ErrorCode::FRAME_UNEXPECTED,
            Self::ReservedSetting | Self::DuplicateSetting => ErrorCode::SETTINGS_ERROR,
            Self::FrameSize | Self::FrameCut => ErrorCode::FRAME_ERROR,
            Self::FrameTooLong | Self::Flood => ErrorCode::EXCESSIVE_LOAD,
            Self::Push | Self::GoawayId | Self::GoawayIncreases => ErrorCode::ID_ERROR,
            Self::RepeatedStream => ErrorCode::STREAM_CREATION_ERROR,
            Self::ClosedCriticalStream => ErrorCode::CLOSED_CRITICAL_STREAM,
            Self::Qpack(error) => ErrorCode(error.code()),
        }
    }
}

impl From<QpackError> for Violation {
    fn from(error: QpackError) -> Self {
        Self::Qpack(error)
    }
}

impl From<Violation> for ApplicationError {
    #[cold]
    fn from(violation: Violation) -> Self {
        Self { code: violation.code().0, kind: violation.kind(), text: violation.to_string() }
    }
}

impl StreamViolation {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Fields(malformed) => malformed.kind(),
            Self::SectionTooLarge => "header-list-too-large",
            Self::BlockedTooLong => "blocked-too-long",
            Self::InterimEndsStream => "interim-ends-stream",
            Self::NoResponse => "no-response",
            Self::SwitchingProtocols => "switching-protocols",
            Self::TooManyInterim => "too-many-interim",
            Self::BodyNotAllowed => "body-not-allowed",
            Self::ContentLengthMismatch => "content-length-mismatch",
        }
    }

    /// What RESET_STREAM and STOP_SENDING say of it (RFC 9114 §8.1).
    pub fn code(self) -> ErrorCode {
        match self {
            Self::SectionTooLarge | Self::BlockedTooLong | Self::TooManyInterim => ErrorCode::EXCESSIVE_LOAD,
            _ => ErrorCode::MESSAGE_ERROR,
        }
    }
}

impl From<StreamViolation> for Failure {
    #[cold]
    fn from(violation: StreamViolation) -> Self {
        Self::Malformed { kind: violation.kind(), text: violation.to_string() }
    }
}

/// An error code of a stream or a connection (RFC 9114 §8.1, RFC 9204 §6); any value of 62 bits may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode(pub u64);

#[allow(missing_docs, reason = "the names are those of RFC 9114 §8.1")]
impl ErrorCode {
    pub const NO_ERROR: Self = Self(0x100);
    pub const STREAM_CREATION_ERROR: Self = Self(0x103);
    pub const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    pub const FRAME_UNEXPECTED: Self = Self(0x105);
    pub const FRAME_ERROR: Self = Self(0x106);
    pub const EXCESSIVE_LOAD: Self = Self(0x107);
    pub const ID_ERROR: Self = Self(0x108);
    pub const SETTINGS_ERROR: Self = Self(0x109);
    pub const MISSING_SETTINGS: Self = Self(0x10a);
    pub const REQUEST_REJECTED: Self = Self(0x10b);
    pub const REQUEST_CANCELLED: Self = Self(0x10c);
    pub const MESSAGE_ERROR: Self = Self(0x10e);

    /// Kebab-case name without the prefix `H3_`; `unknown` for a value the RFCs do not name.
    pub fn name(self) -> &'static str {
        match self.0 {
            0x100 => "no-error",
            0x101 => "general-protocol-error",
            0x102 => "internal-error",
            0x103 => "stream-creation-error",
            0x104 => "closed-critical-stream",
            0x105 => "frame-unexpected",
            0x106 => "frame-error",
            0x107 => "excessive-load",
            0x108 => "id-error",
            0x109 => "settings-error",
            0x10a => "missing-settings",
            0x10b => "request-rejected",
            0x10c => "request-cancelled",
            0x10d => "request-incomplete",
            0x10e => "message-error",
            0x10f => "connect-error",
            0x110 => "version-fallback",
            0x200 => "qpack-decompression-failed",
            0x201 => "qpack-encoder-stream-error",
            0x202 => "qpack-decoder-stream-error",
            _ => "unknown",
        }
    }
}

impl From<ErrorCode> for Failure {
    /// The failure of a stream that was reset with this code.
    #[cold]
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::REQUEST_REJECTED => Self::Refused,
            ErrorCode(code) => Self::Reset { code, name: ErrorCode(code).name() },
        }
    }
}
