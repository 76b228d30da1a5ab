//! Owns the chunked transfer coding (RFC 9112 §7.1) up to its last chunk; the trailer section
//! behind it is a block of fields.

use super::{Violation, field};

/// Where a chunked body stands.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Bytes of the present chunk still to come; while its size is read, the size so far.
    remaining: u64,
    /// Bytes of the present size line, extensions included.
    line: u16,
    phase: Phase,
}

/// What [`Chunks::next`] found.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// All of the input was used.
    NeedMore,
    /// Data of a chunk, never empty.
    Data(&'a [u8]),
    /// The size line of the last chunk is complete: the trailer section follows.
    Last,
}

/// What comes next. The extension phases follow `chunk-ext` of RFC 9112 §7.1.1, with whitespace
/// where its grammar has BWS and nowhere else.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The first digit of a size.
    SizeStart,
    Size,
    /// Whitespace that must lead to a `;`.
    BeforeSemicolon,
    /// The name of an extension, or whitespace before it.
    NameStart,
    Name,
    AfterName,
    ValueStart,
    Value,
    Quoted,
    QuotedPair,
    AfterQuoted,
    /// The LF that ends a size line.
    LineEnd,
    Data,
    /// The CR after the data of a chunk.
    DataCr,
    /// The LF after that.
    DataLf,
}

impl Chunks {
    /// At the first chunk's size.
    pub(super) fn new() -> Self {
        Self { remaining: 0, line: 0, phase: Phase::SizeStart }
    }

    /// Takes framing, and the data of at most one chunk, off the front of `input`.
    ///
    /// # Errors
    /// The [`Violation`] of the coding found.
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Step<'a>, Violation> {
        loop {
            if self.phase == Phase::Data && !input.is_empty() {
                return Ok(Step::Data(self.take_data(input)));
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(Step::NeedMore) };
            *input = rest;
            let last = self.phase == Phase::LineEnd && self.remaining == 0;
            self.phase = self.framing(byte)?;
            if last {
                return Ok(Step::Last);
            }
        }
    }

    fn take_data<'a>(&mut self, input: &mut &'a [u8]) -> &'a [u8] {
        let available = input.len() as u64;
        // The minimum is at most a length in memory, so that it fits.
        let (data, rest) = input.split_at(self.remaining.min(available) as usize);
        *input = rest;
        self.remaining -= data.len() as u64;
        if self.remaining == 0 {
            self.phase = Phase::DataCr;
        }
        data
    }

    /// Judges one byte outside of chunk data; returns the phase it leads to.
    fn framing(&mut self, byte: u8) -> Result<Phase, Violation> {
        match (self.phase, byte) {
            (Phase::DataCr, b'\r') => return Ok(Phase::DataLf),
            (Phase::DataLf, b'\n') => {
                *self = Self::new();
                return Ok(self.phase);
            }
            (Phase::DataCr, b'\n') => return Err(Violation::BareLineFeed),
            (Phase::DataCr | Phase::DataLf, _) => return Err(Violation::MissingChunkEnd),
            (Phase::LineEnd, b'\n') => return Ok(Phase::Data),
            (Phase::LineEnd, _) | (_, b'\0') => return Err(Violation::StrayControl),
            (_, b'\n') => return Err(Violation::BareLineFeed),
            _ => {}
        }
        self.line += 1;
        if self.line > MAX_LINE {
            return Err(Violation::ChunkLineTooLong);
        }
        match self.phase {
            Phase::SizeStart | Phase::Size => self.size(byte),
            _ => extension(self.phase, byte).ok_or(Violation::InvalidChunkExtension),
        }
    }

    /// A byte of a size: a digit, or what ends them.
    fn size(&mut self, byte: u8) -> Result<Phase, Violation> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\r' if self.phase == Phase::Size => return Ok(Phase::LineEnd),
            b';' if self.phase == Phase::Size => return Ok(Phase::NameStart),
            b' ' | b'\t' if self.phase == Phase::Size => return Ok(Phase::BeforeSemicolon),
            _ => return Err(Violation::InvalidChunkSize),
        };
        // So many digits fill 64 bits exactly: the shift below loses nothing.
        if self.line > MAX_DIGITS {
            return Err(Violation::ChunkSizeTooLong);
        }
        self.remaining = self.remaining << 4 | u64::from(digit);
        Ok(Phase::Size)
    }
}

/// The phase that a byte of an extension leads to; none when the grammar has no such byte there.
fn extension(phase: Phase, byte: u8) -> Option<Phase> {
    let to = match (phase, byte) {
        (Phase::Name | Phase::Value | Phase::AfterQuoted, b'\r') => Phase::LineEnd,
        (
            Phase::BeforeSemicolon | Phase::Name | Phase::AfterName | Phase::Value | Phase::AfterQuoted,
            b';',
        ) => Phase::NameStart,
        (Phase::Name | Phase::AfterName, b'=') => Phase::ValueStart,
        (Phase::ValueStart, b'"') => Phase::Quoted,
        (Phase::Quoted, b'"') => Phase::AfterQuoted,
        (Phase::Quoted, b'\\') => Phase::QuotedPair,
        (Phase::Quoted | Phase::QuotedPair, _) if field::is_field_byte(byte) => Phase::Quoted,
        (Phase::NameStart | Phase::ValueStart | Phase::AfterName | Phase::BeforeSemicolon, b' ' | b'\t') => {
            phase
        }
        (Phase::Name, b' ' | b'\t') => Phase::AfterName,
        (Phase::Value | Phase::AfterQuoted, b' ' | b'\t') => Phase::BeforeSemicolon,
        (Phase::NameStart | Phase::Name, _) if field::is_tchar(byte) => Phase::Name,
        (Phase::ValueStart | Phase::Value, _) if field::is_tchar(byte) => Phase::Value,
        _ => return None,
    };
    Some(to)
}

/// Longest size line, its CR included, in bytes.
pub(super) const MAX_LINE: u16 = 4096;

/// Most digits of a size, leading zeros included.
const MAX_DIGITS: u16 = 16;
