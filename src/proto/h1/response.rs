//! Owns the reading of responses: where each ends, and what of its bytes are body.

use super::{
    Framing, Head, HeadMemo, Violation,
    chunked::{Chunks, Step},
    head::{Answer, Block},
};

/// Most interim responses to one request; a server that sends more is not going to answer.
pub const MAX_INTERIM: u16 = 10_000;

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
/// it says [`Event::NeedMore`] or [`Event::End`]; call [`Reader::close`] when the peer closed. One
/// request is outstanding at a time: input that is left over after [`Event::End`] answers nothing,
/// and a further [`Reader::next`] before the next [`Reader::begin`] says so.
///
/// The events of a stream of bytes, and the violation that ends it, do not depend on how the bytes
/// are cut into inputs; only the cuts between [`Event::Body`] pieces do. Nothing is kept but the
/// unfinished line of a head cut in two, and that only until it is complete.
///
/// After a [`Violation`] the connection is to be dropped, and every further call repeats it.
#[derive(Debug)]
pub struct Reader {
    state: State,
    interims: u16,
    head_request: bool,
}

/// What is read next. The tag is a byte of its own, so that finding out takes one load.
#[derive(Debug)]
#[repr(u8)]
enum State {
    /// No request is outstanding.
    Idle,
    /// The first byte of a head.
    Head,
    /// The rest of a head.
    PartialHead(Box<Block>),
    /// So many more bytes of body, at least 1.
    Length(u64),
    /// A body of chunks.
    Chunked(Chunks),
    /// The trailer section, of which nothing came yet.
    TrailerStart,
    /// The rest of the trailer section.
    Trailers(Box<Block>),
    /// Body until the connection closes.
    UntilClose,
    /// Nothing: the response is complete, and that is still to be said.
    Complete,
    /// Nothing any more.
    Failed(Violation),
}

impl Reader {
    /// A reader for a fresh connection.
    pub fn new() -> Self {
        Self { state: State::Idle, interims: 0, head_request: false }
    }

    /// A request was sent; `head_request` when its method is HEAD.
    ///
    /// The response before must have ended, and what was received behind it must have been refused.
    #[inline]
    pub fn begin(&mut self, head_request: bool) {
        debug_assert!(matches!(self.state, State::Idle), "one request at a time");
        *self = Self { state: State::Head, interims: 0, head_request };
    }

    /// Takes what it can off the front of `input` and says what that was.
    ///
    /// # Errors
    /// The [`Violation`] found; also for bytes while no request is outstanding.
    #[inline]
    pub fn next<'a>(&mut self, memo: &mut HeadMemo, input: &mut &'a [u8]) -> Result<Event<'a>, Violation> {
        // A response that comes whole, under a known head, is read by these arms alone.
        match &mut self.state {
            State::Head => {
                if let Some(head) = memo.recognise(self.head_request, input) {
                    return Ok(self.body_of(head));
                }
            }
            State::Length(remaining) if !input.is_empty() => {
                let available = input.len() as u64;
                if available < *remaining {
                    *remaining -= available;
                    return Ok(Event::Body(std::mem::take(input)));
                }
                // Not above the input's length, so that it fits.
                let (body, rest) = input.split_at(*remaining as usize);
                *input = rest;
                self.state = State::Complete;
                return Ok(Event::Body(body));
            }
            State::Complete => {
                self.state = State::Idle;
                return Ok(Event::End);
            }
            _ => {}
        }
        self.next_slow(memo, input)
    }

    /// The peer closed its side: `Ok(true)` when the response is complete by that, as a
    /// close-delimited one is; `Ok(false)` when nothing was outstanding or nothing of a response had
    /// arrived.
    ///
    /// # Errors
    /// The [`Violation`] of a response cut short.
    pub fn close(&mut self) -> Result<bool, Violation> {
        let violation = match &self.state {
            State::Idle => return Ok(false),
            State::Head if self.interims == 0 => {
                self.state = State::Idle;
                return Ok(false);
            }
            State::UntilClose | State::Complete => {
                self.state = State::Idle;
                return Ok(true);
            }
            State::Head | State::PartialHead(_) => Violation::TruncatedHead,
            State::Length(_) => Violation::TruncatedBody,
            State::Chunked(_) | State::TrailerStart | State::Trailers(_) => Violation::TruncatedChunks,
            State::Failed(violation) => *violation,
        };
        self.state = State::Failed(violation);
        Err(violation)
    }

    /// Goes on to the body that a head announces.
    #[inline]
    fn body_of<'a>(&mut self, head: Head) -> Event<'a> {
        self.state = match head.framing {
            Framing::Length(0) => State::Complete,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunks::new()),
            Framing::UntilClose => State::UntilClose,
        };
        Event::Head(head)
    }

    /// Everything that [`Reader::next`] does not do in line.
    #[inline(never)]
    fn next_slow<'a>(&mut self, memo: &mut HeadMemo, input: &mut &'a [u8]) -> Result<Event<'a>, Violation> {
        self.read(memo, input).inspect_err(|&violation| self.state = State::Failed(violation))
    }

    fn read<'a>(&mut self, memo: &mut HeadMemo, input: &mut &'a [u8]) -> Result<Event<'a>, Violation> {
        match &mut self.state {
            State::Failed(violation) => Err(*violation),
            _ if input.is_empty() => Ok(Event::NeedMore),
            State::Idle => Err(Violation::Unsolicited),
            State::Head => self.fresh_head(memo, input),
            State::PartialHead(block) => {
                let given = *input;
                let whole = block.feed(input)?;
                memo.add_text(&given[..given.len() - input.len()]);
                if !whole {
                    return Ok(Event::NeedMore);
                }
                let answer = block.answer()?;
                self.head_done(answer)
            }
            State::Chunked(chunks) => match chunks.next(input)? {
                Step::NeedMore => Ok(Event::NeedMore),
                Step::Data(data) => Ok(Event::Body(data)),
                Step::Last => {
                    self.state = State::TrailerStart;
                    self.read(memo, input)
                }
            },
            State::TrailerStart => {
                if let Some(rest) = input.strip_prefix(b"\r\n") {
                    *input = rest;
                    return Ok(self.ended());
                }
                self.state = State::Trailers(Box::new(Block::trailers()));
                self.read(memo, input)
            }
            State::Trailers(block) => {
                if block.feed(input)? {
                    return Ok(self.ended());
                }
                Ok(Event::NeedMore)
            }
            State::UntilClose => Ok(Event::Body(std::mem::take(input))),
            // These are read in line whenever there is input.
            State::Length(_) | State::Complete => Ok(Event::NeedMore),
        }
    }

    /// Reads a head from its first byte on, and remembers it if it is all there.
    fn fresh_head<'a>(&mut self, memo: &mut HeadMemo, input: &mut &'a [u8]) -> Result<Event<'a>, Violation> {
        let given = *input;
        let mut block = Block::head(self.head_request);
        let whole = block.feed(input)?;
        let taken = &given[..given.len() - input.len()];
        memo.begin_text(taken);
        if !whole {
            self.state = State::PartialHead(Box::new(block));
            return Ok(Event::NeedMore);
        }
        let answer = block.answer()?;
        if let Answer::Final(head) = answer {
            memo.remember(self.head_request, taken, head);
        }
        self.head_done(answer)
    }

    fn head_done<'a>(&mut self, answer: Answer) -> Result<Event<'a>, Violation> {
        match answer {
            Answer::Final(head) => Ok(self.body_of(head)),
            Answer::Interim(_) if self.interims == MAX_INTERIM => Err(Violation::TooManyInterim),
            Answer::Interim(status) => {
                self.interims += 1;
                self.state = State::Head;
                Ok(Event::Interim(status))
            }
        }
    }

    fn ended<'a>(&mut self) -> Event<'a> {
        self.state = State::Idle;
        Event::End
    }

    /// Bytes of heap held for the unfinished line of a head.
    #[cfg(test)]
    pub(super) fn retained(&self) -> usize {
        match &self.state {
            State::PartialHead(block) | State::Trailers(block) => block.retained(),
            _ => 0,
        }
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}
