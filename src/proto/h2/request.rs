//! Owns the request as every connection sends it: field blocks encoded once, and the body.

use super::frame;
use crate::proto::hpack::{self, RequestBlock};
use crate::proto::request::{EncodeError, Parts};

/// One request, the same each time; only the stream identifier changes.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) block: RequestBlock,
    /// HEADERS frames with the blocks `next` and `plain`, for stream 0; empty when a block needs
    /// CONTINUATION.
    pub(super) next: Box<[u8]>,
    pub(super) plain: Box<[u8]>,
    pub(super) body: Box<[u8]>,
    /// Its method is HEAD: a Content-Length of the response describes no body.
    pub(super) head: bool,
}

impl Request {
    /// Encodes a request: the pseudo-header fields of RFC 9113 §8.3.1, the headers in order with their
    /// names in lower case, `content-length` where there is a body or the method gives it a meaning.
    ///
    /// # Errors
    /// [`EncodeError`] names the part that would break the message; `TE: trailers` is the only field
    /// about the connection that HTTP/2 has (RFC 9113 §8.2.2).
    pub fn new(
        method: &str,
        scheme: &str,
        path: &str,
        authority: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Self, EncodeError> {
        let parts = Parts::check(method, path, authority, headers, body.len())?;
        let lines = parts.lines(scheme)?;
        let fields: Vec<(&str, &[u8])> =
            lines.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let block = hpack::encode_request(&fields, DEFAULT_TABLE);
        let frame = |block: &[u8]| {
            let mut frame = Vec::new();
            if block.len() <= frame::LEAST_SIZE {
                frame::headers(&mut frame, block, frame::LEAST_SIZE, body.is_empty(), 0);
            }
            frame.into_boxed_slice()
        };
        let (next, plain) = (frame(&block.next), frame(&block.plain));
        Ok(Self { block, next, plain, body: body.into(), head: parts.method == "HEAD" })
    }
}

/// SETTINGS_HEADER_TABLE_SIZE until the server says otherwise (RFC 9113 §6.5.2).
pub(super) const DEFAULT_TABLE: u32 = 4096;
