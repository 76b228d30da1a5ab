//! Owns what a connection of many streams tells of its responses, the same for HTTP/2 and HTTP/3.

/// Takes what a connection reads. `T` is what the caller keeps with each stream.
pub trait Responses<T> {
    /// An interim (1xx) response.
    fn interim(&mut self, exchange: &mut T);
    /// The header of the final response.
    fn headers(&mut self, exchange: &mut T, status: u16);
    /// Bytes of its body.
    fn data(&mut self, exchange: &mut T, bytes: &[u8]);
    /// The response is complete and well-formed.
    fn complete(&mut self, exchange: T);
    /// There will be no complete response.
    fn failed(&mut self, exchange: T, failure: Failure);
    /// The server's limit is known or has changed: at most so many streams may be open now.
    fn limit(&mut self, streams: u32);
    /// A GOAWAY came.
    fn goaway(&mut self);
}

/// The head of a final response in its own words, for whoever wants to see one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Transcript {
    /// Status code.
    pub status: u16,
    /// Names and values of its fields, in order; pseudo-header fields left out.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Why a stream has no complete response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The server did not process the request and it may be sent again: REFUSED_STREAM or
    /// H3_REQUEST_REJECTED, or a stream that a GOAWAY leaves out (RFC 9113 §8.7, RFC 9114 §4.1.1, §5.2).
    Refused,
    /// The server reset the stream.
    Reset {
        /// The error code.
        code: u64,
        /// Its name in kebab-case, without a prefix; `unknown` for a code that no RFC names.
        name: &'static str,
    },
    /// The response is malformed.
    Malformed {
        /// Stable name in kebab-case.
        kind: &'static str,
        /// In words.
        text: String,
    },
    /// The connection ended.
    Closed,
    /// This side gave up.
    Cancelled,
}
