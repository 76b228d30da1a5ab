//! Owns the encoding of a request.

/// Why a request cannot be put on the wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// placeholder
    #[error("placeholder")]
    Placeholder,
}

/// Encodes one request, head and body: request line, exactly one Host (a `host` among `headers`
/// replaces `authority`), the headers in order, `Content-Length` when there is a body (or the method
/// defines one), `Connection: close` unless `keepalive`.
///
/// # Errors
/// [`EncodeError`] names the part that would break the framing of the message (RFC 9110 §5).
pub fn encode_request(
    method: &str,
    path: &str,
    authority: &str,
    headers: &[(String, String)],
    body: &[u8],
    keepalive: bool,
) -> Result<Vec<u8>, EncodeError> {
    let _ = (method, path, authority, headers, body, keepalive);
    Err(EncodeError::Placeholder)
}
