//! Owns what is kept of a request stream, and the reading of it: frames in, a response told (RFC 9114 §4.1).

use super::frame::{self, Partial, kind};
use super::session::Session;
use super::violation::{StreamViolation, Violation};
use super::{MAX_FIELD_SECTION, MAX_HELD, MAX_INTERIM};
use crate::proto::exchange::Responses;
use crate::proto::hpack::{Kind, Section};
use crate::proto::qpack::{Decoded, QpackError};

/// A request stream that is open.
#[derive(Clone, Default, Debug)]
pub struct Stream<T> {
    reading: Reading,
    phase: Phase,
    interim: u16,
    partial: Partial,
    /// Of Content-Length, not received yet.
    remaining: Option<u64>,
    /// A field section that came in pieces, or one that is blocked and what came behind it.
    held: Vec<u8>,
    pub(super) exchange: T,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Reading {
    #[default]
    Frames,
    /// A field section of so many bytes.
    Section(usize),
    /// So many bytes of body.
    Data(u64),
    /// So many bytes of a payload that nobody wants.
    Skip(u64),
    /// A section, this long, waits for the dynamic table. `fin`: the stream's end has come.
    Blocked { section: usize, fin: bool },
}

/// Where a response stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    /// Its header has not come.
    #[default]
    AwaitingHeaders,
    /// Its header has come: DATA or trailers follow.
    Body,
    /// The same, and a body is not allowed.
    NoBody,
    /// Its trailers have come.
    Trailers,
}

/// What is wrong with what came on a stream.
pub(super) enum Fault {
    Stream(StreamViolation),
    Connection(Violation),
}

impl From<StreamViolation> for Fault {
    fn from(violation: StreamViolation) -> Self {
        Self::Stream(violation)
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Connection(violation)
    }
}

impl From<QpackError> for Fault {
    fn from(error: QpackError) -> Self {
        Self::Connection(error.into())
    }
}

/// Reads one stream: all that is needed for it.
pub(super) struct Reader<'a, R> {
    pub(super) session: &'a mut Session,
    pub(super) id: u64,
    /// The request was HEAD.
    pub(super) head: bool,
    pub(super) responses: &'a mut R,
}

impl<T> Stream<T> {
    pub(super) fn new(exchange: T) -> Self {
        Self {
            reading: Reading::Frames,
            phase: Phase::AwaitingHeaders,
            interim: 0,
            partial: Partial::default(),
            remaining: None,
            held: Vec::new(),
            exchange,
        }
    }

    /// What it waits for, in words.
    pub(super) fn describe(&self) -> &'static str {
        match (self.reading, self.phase) {
            (Reading::Blocked { .. }, _) => "awaiting insertions into the dynamic table",
            (_, Phase::AwaitingHeaders) => "awaiting headers",
            _ => "awaiting the end of the body",
        }
    }

    /// Bytes held for what has not come to its end.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes out what was held of a blocked section and behind it: the bytes, how many of them are the
    /// section, and whether the stream's end is among them.
    fn unblock(&mut self) -> Option<(Vec<u8>, usize, bool)> {
        let Reading::Blocked { section, fin } = self.reading else { return None };
        self.reading = Reading::Frames;
        Some((std::mem::take(&mut self.held), section, fin))
    }
}

impl<R> Reader<'_, R> {
    /// Takes bytes in, whatever way they are split; true when the response is complete.
    #[inline]
    pub(super) fn read<T>(
        &mut self,
        stream: &mut Stream<T>,
        mut bytes: &[u8],
        fin: bool,
    ) -> Result<bool, Fault>
    where
        R: Responses<T>,
    {
        loop {
            match stream.reading {
                Reading::Frames => {
                    if bytes.is_empty() {
                        break;
                    }
                    let Some((kind, length)) = stream.partial.frame(&mut bytes) else { break };
                    stream.reading = self.begin(stream.phase, kind, length)?;
                }
                Reading::Section(length) => {
                    if !self.section_in(stream, length, &mut bytes)? {
                        break;
                    }
                }
                Reading::Data(left) => {
                    let here = first(&mut bytes, left);
                    let left = left - here.len() as u64;
                    stream.reading = if left == 0 { Reading::Frames } else { Reading::Data(left) };
                    if !here.is_empty() {
                        self.body(stream, here)?;
                    }
                    if left > 0 {
                        break;
                    }
                }
                Reading::Skip(left) => {
                    let left = left - first(&mut bytes, left).len() as u64;
                    if left > 0 {
                        stream.reading = Reading::Skip(left);
                        break;
                    }
                    stream.reading = Reading::Frames;
                }
                Reading::Blocked { section, .. } => {
                    if stream.held.len() - section + bytes.len() > MAX_HELD {
                        return Err(StreamViolation::BlockedTooLong.into());
                    }
                    stream.held.extend_from_slice(bytes);
                    stream.reading = Reading::Blocked { section, fin };
                    return Ok(false);
                }
            }
        }
        if fin { self.finish(stream).map(|()| true) } else { Ok(false) }
    }

    /// The section that was blocked can be read now, and then what came behind it.
    pub(super) fn unblock<T>(&mut self, stream: &mut Stream<T>) -> Result<bool, Fault>
    where
        R: Responses<T>,
    {
        let Some((held, section, fin)) = stream.unblock() else { return Ok(false) };
        let (section, behind) = held.split_at(section);
        self.section(stream, section)?;
        self.read(stream, behind, fin)
    }

    /// What is to be read of a frame that begins.
    #[inline]
    fn begin(&mut self, phase: Phase, kind: u64, length: u64) -> Result<Reading, Fault> {
        match (kind, phase) {
            (kind::HEADERS, Phase::AwaitingHeaders | Phase::Body | Phase::NoBody) => {
                match usize::try_from(length) {
                    Ok(length) if length <= MAX_BLOCK => Ok(Reading::Section(length)),
                    _ => Err(StreamViolation::SectionTooLarge.into()),
                }
            }
            (kind::DATA, Phase::Body | Phase::NoBody) => {
                if length == 0 {
                    self.session.idle()?;
                }
                Ok(Reading::Data(length))
            }
            _ => self.begin_unusual(phase, kind, length),
        }
    }

    #[cold]
    fn begin_unusual(&mut self, phase: Phase, kind: u64, length: u64) -> Result<Reading, Fault> {
        let violation = match kind {
            kind::DATA if phase == Phase::AwaitingHeaders => Violation::DataBeforeHeaders,
            kind::DATA | kind::HEADERS => Violation::FrameAfterTrailers,
            kind::PUSH_PROMISE => Violation::Push,
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
                Violation::FrameOnWrongStream
            }
            _ if frame::is_of_http2(kind) => Violation::ReservedFrame,
            _ => {
                self.session.idle()?;
                return Ok(Reading::Skip(length));
            }
        };
        Err(violation.into())
    }

    /// Takes a field section in; false when more of it is needed.
    #[inline]
    fn section_in<T>(
        &mut self,
        stream: &mut Stream<T>,
        length: usize,
        bytes: &mut &[u8],
    ) -> Result<bool, Fault>
    where
        R: Responses<T>,
    {
        if stream.held.is_empty()
            && let Some((section, behind)) = bytes.split_at_checked(length)
        {
            *bytes = behind;
            stream.reading = Reading::Frames;
            return self.section(stream, section).map(|()| true);
        }
        let more = first(bytes, (length - stream.held.len()) as u64);
        stream.held.extend_from_slice(more);
        if stream.held.len() < length {
            return Ok(false);
        }
        let held = std::mem::take(&mut stream.held);
        stream.reading = Reading::Frames;
        self.section(stream, &held).map(|()| true)
    }

    #[inline]
    fn section<T>(&mut self, stream: &mut Stream<T>, section: &[u8]) -> Result<(), Fault>
    where
        R: Responses<T>,
    {
        let kind = if stream.phase == Phase::AwaitingHeaders { Kind::Response } else { Kind::Trailers };
        match self.session.decoder.decode(self.id, section, kind)? {
            Decoded::Section(section) => self.fields(stream, kind, section),
            Decoded::TooLarge => Err(StreamViolation::SectionTooLarge.into()),
            Decoded::Blocked(required) => {
                self.session.block(self.id, required)?;
                stream.held = section.to_vec();
                stream.reading = Reading::Blocked { section: section.len(), fin: false };
                Ok(())
            }
        }
    }

    #[inline]
    fn fields<T>(&mut self, stream: &mut Stream<T>, kind: Kind, section: Section) -> Result<(), Fault>
    where
        R: Responses<T>,
    {
        if let Some(malformed) = section.malformed {
            return Err(StreamViolation::Fields(malformed).into());
        }
        if kind == Kind::Trailers {
            stream.phase = Phase::Trailers;
            return Ok(());
        }
        if section.status < 200 {
            return self.interim(stream, section.status);
        }
        self.session.moved();
        let bodiless = self.head || matches!(section.status, 204 | 304);
        stream.phase = if bodiless { Phase::NoBody } else { Phase::Body };
        stream.remaining = if bodiless { None } else { section.content_length };
        self.responses.headers(&mut stream.exchange, section.status);
        Ok(())
    }

    #[cold]
    fn interim<T>(&mut self, stream: &mut Stream<T>, status: u16) -> Result<(), Fault>
    where
        R: Responses<T>,
    {
        stream.interim = stream.interim.saturating_add(1);
        if status == 101 {
            return Err(StreamViolation::SwitchingProtocols.into());
        }
        if stream.interim > MAX_INTERIM {
            return Err(StreamViolation::TooManyInterim.into());
        }
        self.responses.interim(&mut stream.exchange);
        Ok(())
    }

    #[inline]
    fn body<T>(&mut self, stream: &mut Stream<T>, bytes: &[u8]) -> Result<(), Fault>
    where
        R: Responses<T>,
    {
        if stream.phase == Phase::NoBody {
            return Err(StreamViolation::BodyNotAllowed.into());
        }
        if let Some(remaining) = &mut stream.remaining {
            *remaining =
                remaining.checked_sub(bytes.len() as u64).ok_or(StreamViolation::ContentLengthMismatch)?;
        }
        self.session.moved();
        self.responses.data(&mut stream.exchange, bytes);
        Ok(())
    }

    /// The stream is at its end: so has to be the response.
    #[inline]
    fn finish<T>(&mut self, stream: &mut Stream<T>) -> Result<(), Fault> {
        if stream.reading != Reading::Frames || !stream.partial.is_empty() {
            return Err(Violation::FrameCut.into());
        }
        if stream.phase == Phase::AwaitingHeaders {
            let violation = match stream.interim {
                0 => StreamViolation::NoResponse,
                _ => StreamViolation::InterimEndsStream,
            };
            return Err(violation.into());
        }
        if stream.remaining.is_some_and(|remaining| remaining > 0) {
            return Err(StreamViolation::ContentLengthMismatch.into());
        }
        Ok(())
    }
}

/// Takes the first `most` bytes off, or all there are.
#[inline]
fn first<'a>(bytes: &mut &'a [u8], most: u64) -> &'a [u8] {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (first, rest) = bytes.split_at(bytes.len().min(most));
    *bytes = rest;
    first
}

/// An encoded field section longer than what it may decode to, Huffman coding at its worst included.
const MAX_BLOCK: usize = 4 * MAX_FIELD_SECTION as usize;
