//! Owns the HTTP/3 client of RFC 9114, written for a generator: [`Request`] is encoded once, [`Connection`]
//! opens QUIC streams with it and finds where each response ends.
//!
//! What the RFC leaves to the recipient is decided like this, so that a server's fault is named and
//! never guessed around:
//!
//! | input | decision | source |
//! |---|---|---|
//! | no SETTINGS yet | streams are opened as QUIC allows | RFC 9114 §7.2.4.2 |
//! | a malformed response | [`StreamViolation`]: that request fails, its stream is given up | RFC 9114 §4.1.2 |
//! | frames in a wrong order, or cut off by the stream's end | [`Violation`]: the connection is to be replaced | RFC 9114 §4.1, §7.1 |
//! | a field section above the limit | that request fails | RFC 9114 §4.2.2 |
//! | STOP_SENDING, whatever its code | the response is waited for | RFC 9114 §4.1.1 |
//! | a reset with H3_REQUEST_REJECTED, a stream from a GOAWAY's identifier on | not processed: may be sent again | RFC 9114 §4.1.1, §5.2 |
//! | a GOAWAY with a higher identifier than before | [`Violation::GoawayIncreases`] | RFC 9114 §5.2 |
//! | settings and frames of unknown types | ignored, and the frames counted towards [`MAX_IDLE_FRAMES`] | RFC 9114 §9 |
//! | unidirectional streams of unknown types | read and dropped, and counted in the same way | RFC 9114 §6.2 |
//! | the same setting twice | [`Violation::DuplicateSetting`] | RFC 9114 §7.2.4 |
//! | a server's SETTINGS_MAX_FIELD_SECTION_SIZE | not heeded: the request is what was asked for | RFC 9114 §4.2.2 |

mod connection;
mod control;
mod frame;
mod fuzz;
mod request;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod violation;
mod wire;

pub use connection::{Config, Connection, Ended};
#[doc(hidden)]
pub use fuzz::fuzz_streams;
pub use request::Request;
pub use stream::Stream;
pub use violation::{ErrorCode, StreamViolation, Violation};

/// The largest field section taken, in bytes by the measure of RFC 9114 §4.2.2, and told to the server.
pub const MAX_FIELD_SECTION: u32 = 64 * 1024;
/// The most frames and unidirectional streams in a row that move no request on: empty DATA, frames of the
/// control stream, unknown types.
pub const MAX_IDLE_FRAMES: u32 = 10_000;
/// The most interim responses to one request.
pub const MAX_INTERIM: u16 = 10_000;
/// The most bytes kept of a stream behind a field section that waits for the dynamic table.
pub const MAX_HELD: usize = 1 << 20;
