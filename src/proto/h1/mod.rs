//! Owns the HTTP/1.1 client of RFC 9110 and RFC 9112, written for a generator: [`encode_request`]
//! makes the bytes of a request once, [`Reader`] finds where each response ends and whether the
//! connection may carry another.

mod request;
mod response;
mod violation;

pub use request::{EncodeError, encode_request};
pub use response::{Event, Framing, Head, HeadMemo, MAX_HEAD, Reader, Version};
pub use violation::Violation;
