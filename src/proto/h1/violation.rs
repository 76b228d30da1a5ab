//! Owns the names of everything a server can do wrong in HTTP/1.1.

/// A deviation from RFC 9110 or RFC 9112 after which a connection cannot be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Violation {
    /// Bytes arrived that answer no request; also an empty line in front of a response.
    #[error("bytes that answer no request")]
    Unsolicited,
    /// The answer starts with NUL, as every HTTP/2 frame of a sane length does (RFC 9113 §4.1).
    #[error("asked for HTTP/1.1, the server answered in frames, as HTTP/2 does")]
    FramesForAnswer,
    /// The answer does not start with `HTTP/` (RFC 9112 §2.3).
    #[error("an answer that is not HTTP/1; is the port right, and does it speak cleartext?")]
    NotHttp,
    /// A version other than HTTP/1.x.
    #[error("an HTTP version other than 1.x")]
    UnsupportedVersion,
    /// A status line of another shape than RFC 9112 §4 gives it.
    #[error("a malformed status line")]
    MalformedStatusLine,
    /// A status code that is not three digits, or is below 100 (RFC 9110 §15).
    #[error("a status code that is not three digits from 100 to 999")]
    InvalidStatus,
    /// 101, although no upgrade was asked for (RFC 9110 §15.2.2).
    #[error("a switch of protocols that nobody asked for")]
    SwitchingProtocols,
    /// More than [`MAX_INTERIM`](super::MAX_INTERIM) interim responses to one request.
    #[error("too many interim responses to one request")]
    TooManyInterim,
    /// A head of more than [`MAX_HEAD`](super::MAX_HEAD) bytes.
    #[error("a header block of more than 64 KiB")]
    HeadTooLarge,
    /// NUL, or a CR that ends no line (RFC 9110 §5.5, RFC 9112 §2.2).
    #[error("a NUL or a stray CR in a header block or chunk line")]
    StrayControl,
    /// A field line that has no colon (RFC 9112 §5).
    #[error("a field line without a colon")]
    MissingColon,
    /// A field line that starts with its colon.
    #[error("a field line without a name")]
    EmptyFieldName,
    /// A field name that is not a token (RFC 9110 §5.1).
    #[error("a field name that is not a token")]
    InvalidFieldName,
    /// Whitespace between a field name and its colon (RFC 9112 §5.1).
    #[error("whitespace between a field name and its colon")]
    WhitespaceBeforeColon,
    /// Whitespace between the start line and the first field (RFC 9112 §2.2).
    #[error("whitespace before the first field")]
    LeadingWhitespace,
    /// A field that decides framing or persistence is folded over lines (RFC 9112 §5.2).
    #[error("a folded Content-Length, Transfer-Encoding or Connection field")]
    FoldedFraming,
    /// A Content-Length that is not a number (RFC 9110 §8.6).
    #[error("a Content-Length that is not a decimal number")]
    InvalidContentLength,
    /// A Content-Length beyond 2^64 − 1.
    #[error("a Content-Length that does not fit in 64 bits")]
    ContentLengthOverflow,
    /// Content-Length values that differ (RFC 9110 §8.6).
    #[error("several Content-Length values that differ")]
    ConflictingContentLength,
    /// A Transfer-Encoding that is not a list of codings ending, at most, in one chunked (RFC 9112 §6.1).
    #[error("a malformed Transfer-Encoding")]
    InvalidTransferEncoding,
    /// Transfer-Encoding in an HTTP/1.0 response (RFC 9112 §6.1).
    #[error("a Transfer-Encoding in HTTP/1.0")]
    TransferEncodingInHttp10,
    /// Transfer-Encoding together with Content-Length (RFC 9112 §6.3).
    #[error("both Transfer-Encoding and Content-Length")]
    ConflictingFraming,
    /// A chunk size that is not a hexadecimal number (RFC 9112 §7.1).
    #[error("a chunk size that is not a hexadecimal number")]
    InvalidChunkSize,
    /// A chunk size of more than 16 digits: beyond 64 bits, or padded without end.
    #[error("a chunk size of more than 16 digits")]
    ChunkSizeTooLong,
    /// A chunk extension outside of the grammar of RFC 9112 §7.1.1.
    #[error("a malformed chunk extension")]
    InvalidChunkExtension,
    /// A chunk size and its extensions that take more than 4 KiB.
    #[error("chunk extensions of more than 4 KiB")]
    ChunkLineTooLong,
    /// A line of the chunked coding or its trailer section that ends in LF alone.
    #[error("a bare LF in the chunked coding")]
    BareLineFeed,
    /// Chunk data not followed by CRLF: the chunk is longer than its size said.
    #[error("chunk data that is not followed by CRLF")]
    MissingChunkEnd,
    /// A trailer section of more than [`MAX_HEAD`](super::MAX_HEAD) bytes.
    #[error("a trailer section of more than 64 KiB")]
    TrailersTooLarge,
    /// The connection closed inside a head, or after an interim response.
    #[error("connection closed in the middle of a response head")]
    TruncatedHead,
    /// The connection closed before Content-Length bytes had come (RFC 9112 §8).
    #[error("connection closed before the whole Content-Length had come")]
    TruncatedBody,
    /// The connection closed before the last chunk and its trailer section (RFC 9112 §8).
    #[error("connection closed before the last chunk")]
    TruncatedChunks,
}

impl Violation {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Unsolicited => "unsolicited-bytes",
            Self::FramesForAnswer => "wrong-protocol",
            Self::NotHttp => "not-http",
            Self::UnsupportedVersion => "unsupported-version",
            Self::MalformedStatusLine => "malformed-status-line",
            Self::InvalidStatus => "invalid-status",
            Self::SwitchingProtocols => "switching-protocols",
            Self::TooManyInterim => "too-many-interim",
            Self::HeadTooLarge => "head-too-large",
            Self::StrayControl => "stray-control-character",
            Self::MissingColon => "missing-colon",
            Self::EmptyFieldName => "empty-field-name",
            Self::InvalidFieldName => "invalid-field-name",
            Self::WhitespaceBeforeColon => "whitespace-before-colon",
            Self::LeadingWhitespace => "leading-whitespace",
            Self::FoldedFraming => "folded-framing-field",
            Self::InvalidContentLength => "invalid-content-length",
            Self::ContentLengthOverflow => "content-length-overflow",
            Self::ConflictingContentLength => "conflicting-content-length",
            Self::InvalidTransferEncoding => "invalid-transfer-encoding",
            Self::TransferEncodingInHttp10 => "transfer-encoding-in-http10",
            Self::ConflictingFraming => "conflicting-framing",
            Self::InvalidChunkSize => "invalid-chunk-size",
            Self::ChunkSizeTooLong => "chunk-size-too-long",
            Self::InvalidChunkExtension => "invalid-chunk-extension",
            Self::ChunkLineTooLong => "chunk-line-too-long",
            Self::BareLineFeed => "bare-line-feed",
            Self::MissingChunkEnd => "missing-chunk-end",
            Self::TrailersTooLarge => "trailers-too-large",
            Self::TruncatedHead => "truncated-head",
            Self::TruncatedBody => "truncated-body",
            Self::TruncatedChunks => "truncated-chunks",
        }
    }
}
