//! Owns the HTTP/2 client of RFC 9113, written for a generator: [`Request`] is encoded once,
//! [`Connection`] opens streams with it and finds where each response ends.
//!
//! What the RFC leaves to the recipient is decided like this, so that a server's fault is named and
//! never guessed around:
//!
//! | input | decision | source |
//! |---|---|---|
//! | no SETTINGS yet | one stream is opened, the second waits for them | RFC 9113 §3.4, §5.1.2 |
//! | a malformed response | [`StreamViolation`]: that request fails, its stream is reset | RFC 9113 §8.1.1 |
//! | anything after which frames or tables cannot be trusted | [`Violation`]: the connection is to be replaced | RFC 9113 §5.4.1 |
//! | a complete response before the whole request was sent | the response counts, the rest of the request is not sent | RFC 9113 §8.1 |
//! | frames on a stream that this side reset | ignored; DATA counts towards the connection's window | RFC 9113 §5.1 |
//! | HEADERS or DATA on any other stream that has ended | [`Violation::ClosedStream`] | RFC 9113 §5.1 |
//! | a GOAWAY with a higher last stream than before | [`Violation::GoawayIncreases`] | RFC 9113 §6.8 |
//! | PRIORITY, frames and settings of unknown types | ignored, and counted towards [`MAX_IDLE_FRAMES`] | RFC 9113 §4.1, §5.5 |
//! | an acknowledgement of SETTINGS that nobody waits for | ignored | |

mod connection;
mod frame;
mod fuzz;
mod request;
mod streams;
#[cfg(test)]
mod tests;
mod violation;

pub use connection::{Config, Connection, MAX_CONTINUATIONS, MAX_HEADER_LIST, MAX_IDLE_FRAMES, MAX_INTERIM};
#[doc(hidden)]
pub use fuzz::fuzz_frames;
pub use request::Request;
pub use violation::{ErrorCode, StreamViolation, Violation};
