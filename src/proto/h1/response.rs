//! Owns the reading of responses: where each ends, what it says of the connection.

use super::Violation;

/// Longest header block accepted, start line included, in bytes; also the cap of a trailer section.
pub const MAX_HEAD: usize = 64 * 1024;

/// HTTP version of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// HTTP/1.0: the connection closes unless it says keep-alive.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How the body of a response is delimited (RFC 9112 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Exactly this many bytes; 0 for HEAD, 204 and 304, whatever their fields say.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Until the connection closes.
    UntilClose,
}

/// What the head of a final response says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Status code, 200 to 999.
    pub status: u16,
    /// Version.
    pub version: Version,
    /// Delimitation of the body.
    pub framing: Framing,
    /// Whether the connection may carry another request once the body ended.
    pub keep_alive: bool,
}

/// The last head seen, byte for byte, and what it parsed to: servers repeat their heads, so that
/// most are recognised by one comparison. One for each worker, shared by its connections.
#[derive(Default, Debug)]
pub struct HeadMemo {
    bytes: Vec<u8>,
    head: Option<Head>,
}

/// What [`Reader::next`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// All of the input was used; the response goes on.
    NeedMore,
    /// A 1xx response, complete (RFC 9110 §15.2); the final one is still to come.
    Interim(u16),
    /// The head of the final response.
    Head(Head),
    /// Bytes of its body, framing taken off; never empty.
    Body(&'a [u8]),
    /// The response is complete.
    End,
}

/// Reads the responses of one connection.
///
/// Call [`Reader::begin`] for each request sent, then [`Reader::next`] with what was received until
/// it says [`Event::NeedMore`] or [`Event::End`]; call [`Reader::close`] when the peer closed. After
/// a [`Violation`] the connection is to be dropped.
#[derive(Debug)]
pub struct Reader {
    _placeholder: (),
}

impl Reader {
    /// A reader for a fresh connection.
    pub fn new() -> Self {
        Self { _placeholder: () }
    }

    /// A request was sent; `head_request` when its method is HEAD.
    pub fn begin(&mut self, head_request: bool) {
        let _ = head_request;
    }

    /// Takes what it can off the front of `input` and says what that was.
    ///
    /// # Errors
    /// The [`Violation`] found; also for bytes while no request is outstanding.
    pub fn next<'a>(&mut self, memo: &mut HeadMemo, input: &mut &'a [u8]) -> Result<Event<'a>, Violation> {
        let _ = (&memo.bytes, memo.head, input);
        Ok(Event::NeedMore)
    }

    /// The peer closed its side: `Ok(true)` when that completes a close-delimited response,
    /// `Ok(false)` when nothing was outstanding or nothing of a response had arrived.
    ///
    /// # Errors
    /// The [`Violation`] of a response cut short.
    pub fn close(&mut self) -> Result<bool, Violation> {
        Ok(false)
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}
