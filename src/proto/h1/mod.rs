//! Owns the HTTP/1.1 client of RFC 9110 and RFC 9112, written for a generator: [`encode_request`]
//! makes the bytes of a request once, [`Reader`] finds where each response ends and whether the
//! connection may carry another.
//!
//! What the RFCs leave to the recipient is decided like this, so that a server's fault is named and
//! never guessed around:
//!
//! | input | decision | source |
//! |---|---|---|
//! | a bare LF ends a line of a head | accepted | RFC 9112 §2.2 |
//! | a bare LF anywhere in the chunked coding | [`Violation::BareLineFeed`] | RFC 9112 §7.1 |
//! | empty lines before a status line | [`Violation::Unsolicited`]: they answer nothing | RFC 9112 §2.2 grants them to servers alone |
//! | a status line without the space before an absent reason | accepted | RFC 9112 §4 |
//! | obs-fold | accepted, except on the fields that decide framing or persistence | RFC 9112 §5.2 |
//! | control characters other than CR, LF and NUL in a field value | accepted | RFC 9110 §5.5 |
//! | `Content-Length: 42, 42` | accepted | RFC 9110 §8.6 |
//! | a last transfer coding other than chunked | until the connection closes | RFC 9112 §6.3 |
//! | a coding after chunked, chunked twice, or any coding with parameters | [`Violation::InvalidTransferEncoding`] | RFC 9112 §6.1, §7 |
//! | `Transfer-Encoding` and `Content-Length` together | [`Violation::ConflictingFraming`] | RFC 9112 §6.3 |
//! | 101 Switching Protocols | [`Violation::SwitchingProtocols`]: no upgrade is ever asked for | RFC 9110 §15.2.2 |

mod chunked;
pub(in crate::proto) mod field;
mod fuzz;
mod head;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod violation;

#[doc(hidden)]
pub use fuzz::fuzz_response;
pub use head::{Framing, Head, HeadMemo, MAX_HEAD, Version};
pub use request::encode_request;
pub use response::{Event, MAX_INTERIM, Reader};
pub use violation::Violation;
