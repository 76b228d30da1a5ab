//! Owns the head of a response: its lines, what they say of the body and the connection, and the
//! memo that recognises a repeated one.

use super::{Violation, field};
use crate::proto::exchange::Transcript;

/// Longest header block accepted, start line and blank line included, in bytes; also the cap of a
/// trailer section.
pub const MAX_HEAD: usize = 64 * 1024;

/// HTTP version of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// HTTP/1.0: the connection closes unless it says keep-alive.
    Http10,
    /// HTTP/1.1, and any later 1.x, which a client treats alike (RFC 9110 §2.5).
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
    /// Whether the connection may carry another request once the body ended (RFC 9112 §9.3).
    pub keep_alive: bool,
}

/// The last head seen, byte for byte, and what it parsed to: servers repeat their heads, so that
/// most are recognised by one comparison. One for each worker, shared by its connections.
///
/// Equal bytes parse equally, provided that they are a whole block and answer the same kind of
/// request: a response to HEAD has no body. Both are part of the key, so a hit says what a full
/// scan would have said.
#[derive(Default, Debug)]
pub struct HeadMemo {
    bytes: Vec<u8>,
    head: Option<Head>,
    head_request: bool,
    /// The last block as it came, once that is wanted; nothing is remembered then.
    text: Option<Vec<u8>>,
}

impl HeadMemo {
    /// From now on heads are kept in words, and none is recognised. With several connections, their heads
    /// would be mixed up.
    pub fn transcribe(&mut self) {
        self.text = Some(Vec::new());
    }

    /// The last head in words, where that is wanted and one has come.
    pub fn transcript(&self) -> Option<Transcript> {
        let mut lines = self.text.as_ref()?.split(|&byte| byte == b'\n').map(field::trim_end);
        let status = lines.next()?.get(9..12)?;
        let status = std::str::from_utf8(status).ok()?.parse().ok()?;
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            match (line, fields.last_mut()) {
                // A folded value goes on after a space (RFC 9112 §5.2).
                ([b' ' | b'\t', ..], Some((_, value))) => {
                    value.push(b' ');
                    value.extend_from_slice(field::trim(line));
                }
                _ => {
                    let (name, value) = field::split(line).ok()?;
                    fields.push((name.to_vec(), field::trim(value).to_vec()));
                }
            }
        }
        Some(Transcript { status, fields })
    }

    /// A block begins with these bytes.
    #[inline]
    pub(super) fn begin_text(&mut self, bytes: &[u8]) {
        if let Some(text) = &mut self.text {
            text.clear();
            text.extend_from_slice(bytes);
        }
    }

    /// The block goes on with these.
    pub(super) fn add_text(&mut self, bytes: &[u8]) {
        if let Some(text) = &mut self.text {
            text.extend_from_slice(bytes);
        }
    }

    /// What `input` starts with, if that is the block remembered; takes it off the input.
    #[inline]
    pub(super) fn recognise(&self, head_request: bool, input: &mut &[u8]) -> Option<Head> {
        let head = self.head?;
        if head_request != self.head_request {
            return None;
        }
        *input = input.strip_prefix(self.bytes.as_slice())?;
        Some(head)
    }

    /// Remembers a whole block, unless it is so long that keeping it is not worth the memory.
    pub(super) fn remember(&mut self, head_request: bool, block: &[u8], head: Head) {
        if block.len() > MAX_MEMO || self.text.is_some() {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(block);
        self.head = Some(head);
        self.head_request = head_request;
    }
}

/// What a complete head turned out to be.
#[derive(Debug)]
pub(super) enum Answer {
    /// A 1xx with this status.
    Interim(u16),
    /// The final response.
    Final(Head),
}

/// A header block or trailer section on its way in, cut anywhere.
///
/// Every line is judged as soon as it is complete, so what a block is refused for depends on its
/// bytes and never on where the network cut them. Only the unfinished line is kept.
#[derive(Debug)]
pub(super) struct Block {
    scan: Scan,
    /// Bytes taken so far, the unfinished line included; at most [`MAX_HEAD`].
    len: usize,
    line: Vec<u8>,
}

impl Block {
    /// The head of a response; `head_request` when the request's method was HEAD.
    pub(super) fn head(head_request: bool) -> Self {
        Self::new(Scan { bodiless: head_request, ..Scan::default() })
    }

    /// The trailer section of a chunked body: the same lines, but what they say is ignored (RFC 9110
    /// §6.5.1).
    pub(super) fn trailers() -> Self {
        Self::new(Scan { trailers: true, previous: Previous::StartLine, ..Scan::default() })
    }

    fn new(scan: Scan) -> Self {
        Self { scan, len: 0, line: Vec::new() }
    }

    /// Takes lines off `input`, or all of it; true when the blank line was among them.
    ///
    /// # Errors
    /// The violation of the first line at fault, or that the block is too large.
    #[inline]
    pub(super) fn feed(&mut self, input: &mut &[u8]) -> Result<bool, Violation> {
        loop {
            let room = MAX_HEAD - self.len;
            let within = &input[..input.len().min(room)];
            let Some((raw, clean)) = first_line(within) else {
                self.keep(within, input.len() > room)?;
                *input = &[];
                return Ok(false);
            };
            *input = &input[raw.len()..];
            self.len += raw.len();
            let blank = if self.line.is_empty() { self.scan.line(raw, clean)? } else { self.join(raw)? };
            if blank {
                return Ok(true);
            }
        }
    }

    /// Judges a line of which only `end` is in this input.
    #[cold]
    fn join(&mut self, end: &[u8]) -> Result<bool, Violation> {
        self.line.extend_from_slice(end);
        let clean = first_line(&self.line).is_some_and(|(_, clean)| clean);
        let blank = self.scan.line(&self.line, clean)?;
        self.line.clear();
        Ok(blank)
    }

    /// Keeps the beginning of a line; `over` when there is more of it than the block may hold.
    #[cold]
    fn keep(&mut self, beginning: &[u8], over: bool) -> Result<(), Violation> {
        self.line.extend_from_slice(beginning);
        self.len += beginning.len();
        // A peer that speaks something else is told at once: it may never send a line end.
        self.scan.check_opening(&self.line)?;
        match (over, self.scan.trailers) {
            (false, _) => Ok(()),
            (true, false) => Err(Violation::HeadTooLarge),
            (true, true) => Err(Violation::TrailersTooLarge),
        }
    }

    /// What the complete head says.
    ///
    /// # Errors
    /// A contradiction between its fields.
    pub(super) fn answer(&self) -> Result<Answer, Violation> {
        self.scan.answer()
    }

    /// Bytes of heap held.
    #[cfg(test)]
    pub(super) fn retained(&self) -> usize {
        self.line.capacity()
    }
}

/// What the lines so far said.
#[derive(Default, Debug)]
struct Scan {
    trailers: bool,
    previous: Previous,
    status: u16,
    http10: bool,
    /// No body follows, so the framing fields do not count: the answer to HEAD, 1xx, 204, 304.
    bodiless: bool,
    length: Option<u64>,
    coding: Coding,
    close: bool,
    keep_alive: bool,
}

/// The line before: what a line that starts with whitespace would continue.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
enum Previous {
    /// There is none: the status line comes next.
    #[default]
    Nothing,
    StartLine,
    Field,
    /// A field that decides framing or persistence.
    FramingField,
}

/// The last transfer coding named.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
enum Coding {
    #[default]
    Absent,
    Other,
    Chunked,
}

impl Scan {
    /// Judges one line, given with its LF and whether it is clean, see [`first_line`]; true when it is
    /// the blank line that ends the block.
    #[inline]
    fn line(&mut self, raw: &[u8], clean: bool) -> Result<bool, Violation> {
        self.check_opening(raw)?;
        let line = match raw {
            [line @ .., b'\r', b'\n'] => line,
            [line @ .., b'\n'] if !self.trailers => line,
            _ => return Err(Violation::BareLineFeed),
        };
        if !clean {
            return Err(Violation::StrayControl);
        }
        match line {
            [] => return Ok(true),
            [b' ' | b'\t', ..] => self.folded()?,
            _ if self.previous == Previous::Nothing => self.status_line(line)?,
            _ => self.field(line)?,
        }
        Ok(false)
    }

    /// Checks as much of the first line as is there against the way every response starts.
    #[inline]
    fn check_opening(&self, line: &[u8]) -> Result<(), Violation> {
        const OPENING: &[u8] = b"HTTP/";
        if self.previous != Previous::Nothing || line.starts_with(OPENING) || OPENING.starts_with(line) {
            return Ok(());
        }
        Err(match line {
            [b'\r' | b'\n', ..] => Violation::Unsolicited,
            [0, ..] => Violation::FramesForAnswer,
            _ => Violation::NotHttp,
        })
    }

    /// RFC 9112 §4.
    fn status_line(&mut self, line: &[u8]) -> Result<(), Violation> {
        let [_, _, _, _, _, b'1', b'.', minor @ b'0'..=b'9', rest @ ..] = line else {
            return Err(Violation::UnsupportedVersion);
        };
        let [b' ', rest @ ..] = rest else { return Err(Violation::MalformedStatusLine) };
        let Some((code, reason)) = rest.split_first_chunk::<3>() else {
            return Err(Violation::InvalidStatus);
        };
        if !code.iter().all(u8::is_ascii_digit) || code[0] == b'0' || !matches!(reason, [] | [b' ', ..]) {
            return Err(Violation::InvalidStatus);
        }
        self.status = code.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
        self.http10 = *minor == b'0';
        self.bodiless |= matches!(self.status, 100..=199 | 204 | 304);
        self.previous = Previous::StartLine;
        Ok(())
    }

    /// RFC 9112 §5; only the fields that say where the response ends, and what then, are looked at.
    #[inline]
    fn field(&mut self, line: &[u8]) -> Result<(), Violation> {
        let (name, value) = field::split(line)?;
        self.previous = Previous::Field;
        if self.trailers {
            return Ok(());
        }
        // Few names have these lengths, so most fields are done with here.
        let judged = match name.len() {
            10 if field::is_named(name, b"connection") => self.connection(value),
            14 if field::is_named(name, b"content-length") => self.content_length(value),
            17 if field::is_named(name, b"transfer-encoding") => self.transfer_encoding(value),
            _ => return Ok(()),
        };
        self.previous = Previous::FramingField;
        judged
    }

    /// A line that continues the one before (RFC 9112 §5.2). The value it adds to is not kept, so
    /// there is nothing to unfold; but a value that was judged already must not go on.
    fn folded(&self) -> Result<(), Violation> {
        match self.previous {
            Previous::Nothing | Previous::StartLine => Err(Violation::LeadingWhitespace),
            Previous::Field => Ok(()),
            Previous::FramingField => Err(Violation::FoldedFraming),
        }
    }

    /// RFC 9110 §7.6.1; unknown options concern nobody but the server.
    fn connection(&mut self, value: &[u8]) -> Result<(), Violation> {
        for option in field::list(value) {
            self.close |= field::is_named(option, b"close");
            self.keep_alive |= field::is_named(option, b"keep-alive");
        }
        Ok(())
    }

    /// RFC 9110 §8.6: a number, or the same number several times.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.bodiless {
            return Ok(());
        }
        let mut rest = field::trim(value);
        loop {
            let (length, behind) = leading_number(rest)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Violation::ConflictingContentLength);
            }
            self.length = Some(length);
            match field::trim(behind) {
                [] => return Ok(()),
                [b',', more @ ..] => rest = field::trim(more),
                _ => return Err(Violation::InvalidContentLength),
            }
        }
    }

    /// RFC 9112 §6.1: codings in the order applied, over any number of lines. No registered coding
    /// has parameters, and chunked must not have any, so an element is a token.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.bodiless {
            return Ok(());
        }
        if self.http10 {
            return Err(Violation::TransferEncodingInHttp10);
        }
        for coding in field::list(value) {
            if self.coding == Coding::Chunked || !field::is_token(coding) {
                return Err(Violation::InvalidTransferEncoding);
            }
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.coding = if chunked { Coding::Chunked } else { Coding::Other };
        }
        if self.coding == Coding::Absent { Err(Violation::InvalidTransferEncoding) } else { Ok(()) }
    }

    /// RFC 9112 §6.3 for the body, §9.3 for the connection.
    fn answer(&self) -> Result<Answer, Violation> {
        match self.status {
            101 => return Err(Violation::SwitchingProtocols),
            100..=199 => return Ok(Answer::Interim(self.status)),
            _ => {}
        }
        let framing = match (self.coding, self.length) {
            _ if self.bodiless => Framing::Length(0),
            (Coding::Absent, Some(length)) => Framing::Length(length),
            (_, Some(_)) => return Err(Violation::ConflictingFraming),
            (Coding::Chunked, None) => Framing::Chunked,
            (Coding::Absent | Coding::Other, None) => Framing::UntilClose,
        };
        let persistent = !self.close && (!self.http10 || self.keep_alive);
        Ok(Answer::Final(Head {
            status: self.status,
            version: if self.http10 { Version::Http10 } else { Version::Http11 },
            framing,
            keep_alive: persistent && framing != Framing::UntilClose,
        }))
    }
}

/// The first line of `bytes`, its LF included, and whether it is clean: without a NUL, and without a CR
/// but the one before that LF.
#[inline]
fn first_line(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let (mut at, mut clean) = (0, true);
    loop {
        at += first_control(&bytes[at..])?;
        match bytes[at] {
            b'\n' => return Some((&bytes[..=at], clean)),
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => return Some((&bytes[..at + 2], clean)),
            b'\r' | b'\0' => clean = false,
            _ => {}
        }
        at += 1;
    }
}

/// Where the first control character below 0x20 is, looked for in eight bytes at a time: heads are many
/// short lines, so that a search has to start cheaply more than it has to run fast.
#[inline]
fn first_control(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        let word = u64::from_le_bytes(*word);
        // A byte below 0x20 borrows into its own highest bit, where only a byte from 0x80 on had one. The
        // bytes above the first such may be marked in error, so the lowest is the one to take.
        let controls = word.wrapping_sub(0x2020_2020_2020_2020) & !word & 0x8080_8080_8080_8080;
        if controls != 0 {
            return Some(at + controls.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes[at..].iter().position(|&byte| byte < b' ').map(|end| at + end)
}

/// The decimal number that a value starts with, and what stands behind it.
fn leading_number(value: &[u8]) -> Result<(u64, &[u8]), Violation> {
    let (mut number, mut rest) = (0u64, value);
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        number = number
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit - b'0')))
            .ok_or(Violation::ContentLengthOverflow)?;
        rest = behind;
    }
    if rest.len() == value.len() { Err(Violation::InvalidContentLength) } else { Ok((number, rest)) }
}

/// Longest block worth remembering, in bytes; bounds the memory of a memo.
pub(super) const MAX_MEMO: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, at every place of a word and of a shorter rest, before bytes that could be mistaken.
    #[test]
    fn the_first_control_is_the_first_there_is() {
        assert_eq!(first_control(b""), None);
        for byte in 0..=255 {
            for next in [b' ', b'\r', 0, 0x7f, 0x80, 0xff] {
                for at in 0..20 {
                    let mut bytes = vec![b' '; at];
                    bytes.extend([byte, next]);
                    let expected = bytes.iter().position(|&byte| byte < 0x20);
                    assert_eq!(first_control(&bytes), expected, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn lines() {
        let table = [
            (&b""[..], None),
            (b"no end\r", None),
            (b"\n", Some((1, true))),
            (b"\r\n", Some((2, true))),
            (b"a: b\r\nc", Some((6, true))),
            (b"a: b\nc\r\n", Some((5, true))),
            (b"a:\tb\x01\r\n", Some((7, true))),
            (b"a: \r\r\n", Some((6, false))),
            (b"a: \rb\n", Some((6, false))),
            (b"a: \0\r\n", Some((6, false))),
        ];
        for (bytes, expected) in table {
            assert_eq!(first_line(bytes).map(|(line, clean)| (line.len(), clean)), expected, "{bytes:?}");
        }
    }
}
