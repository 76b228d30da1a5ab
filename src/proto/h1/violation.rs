//! Owns the names of everything a server can do wrong in HTTP/1.1.

/// A deviation from RFC 9110 or RFC 9112 after which a connection cannot be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Violation {
    /// Bytes arrived that answer no request.
    #[error("bytes that answer no request")]
    Unsolicited,
}

impl Violation {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Unsolicited => "unsolicited-bytes",
        }
    }
}
