//! Owns the request as every stream sends it: encoded once, the same bytes each time.

use std::sync::Arc;

use super::frame::{self, kind};
use crate::proto::qpack;
use crate::proto::request::{EncodeError, Parts};

/// One request, the same each time.
#[derive(Clone, Debug)]
pub struct Request {
    image: Arc<[u8]>,
    head: bool,
}

impl Request {
    /// Encodes a request: the pseudo-header fields of RFC 9114 §4.3.1, the headers in order with their
    /// names in lower case, `content-length` where there is a body or the method gives it a meaning.
    ///
    /// # Errors
    /// [`EncodeError`] names the part that would break the message; `TE: trailers` is the only field
    /// about the connection that HTTP/3 has (RFC 9114 §4.2).
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
        let mut image = Vec::new();
        frame::write(&mut image, kind::HEADERS, &qpack::encode_section(&fields));
        if !body.is_empty() {
            frame::write(&mut image, kind::DATA, body);
        }
        Ok(Self { image: image.into(), head: parts.method == "HEAD" })
    }

    /// All bytes of a request stream: a HEADERS frame, and a DATA frame when there is a body.
    #[inline]
    pub fn image(&self) -> &Arc<[u8]> {
        &self.image
    }

    /// Its method is HEAD: a Content-Length of the response describes no body.
    #[inline]
    pub fn is_head(&self) -> bool {
        self.head
    }
}
