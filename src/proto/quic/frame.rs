//! Owns the frames of RFC 9000 §19: reading them from a packet's payload, writing those a client sends.

use super::varint;
use super::violation::Violation;

/// A frame as it stands in a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Frame<'a> {
    /// PADDING, any number of bytes.
    Padding,
    /// PING.
    Ping,
    /// ACK.
    Ack(Ack<'a>),
    /// RESET_STREAM.
    ResetStream {
        /// Stream.
        id: u64,
        /// Error code of the application.
        code: u64,
        /// Bytes of the stream in all.
        final_size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// Stream.
        id: u64,
        /// Error code of the application.
        code: u64,
    },
    /// CRYPTO.
    Crypto {
        /// Place of `data` in the stream.
        offset: u64,
        /// Bytes.
        data: &'a [u8],
    },
    /// NEW_TOKEN.
    NewToken(&'a [u8]),
    /// STREAM.
    Stream {
        /// Stream.
        id: u64,
        /// Place of `data` in the stream.
        offset: u64,
        /// Bytes.
        data: &'a [u8],
        /// They are the last.
        fin: bool,
    },
    /// MAX_DATA.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Stream.
        id: u64,
        /// Bytes allowed on it in all.
        max: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Of bidirectional streams, else of unidirectional ones.
        bidi: bool,
        /// Streams allowed in all.
        max: u64,
    },
    /// DATA_BLOCKED, STREAM_DATA_BLOCKED, STREAMS_BLOCKED: they ask for nothing.
    Blocked,
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Its number.
        sequence: u64,
        /// Ids of lower numbers are to be retired.
        retire_prior_to: u64,
        /// 1 to 20 bytes.
        id: &'a [u8],
        /// Token of a stateless reset.
        reset_token: [u8; 16],
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE.
    PathChallenge([u8; 8]),
    /// PATH_RESPONSE.
    PathResponse,
    /// CONNECTION_CLOSE.
    Close {
        /// By the application, else by the transport.
        application: bool,
        /// Error code.
        code: u64,
        /// Reason, which may be no UTF-8.
        reason: &'a [u8],
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
}

/// An ACK frame, its ranges still encoded, found to be well-formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ack<'a> {
    /// Largest packet number acknowledged.
    pub largest: u64,
    /// ACK Delay, in units of the sender's exponent.
    pub delay: u64,
    first: u64,
    rest: &'a [u8],
}

impl Ack<'_> {
    /// Ranges of packet numbers, both ends included, from the largest down.
    #[inline]
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut next = Some((self.largest - self.first, self.largest));
        let mut rest = self.rest;
        std::iter::from_fn(move || {
            let (low, high) = next?;
            next = read_range(&mut rest, low);
            Some((low, high))
        })
    }
}

fn read_range(rest: &mut &[u8], above: u64) -> Option<(u64, u64)> {
    let (gap, len) = split_pair(rest)?;
    let high = above.checked_sub(gap)?.checked_sub(2)?;
    Some((high.checked_sub(len)?, high))
}

fn split_pair(rest: &mut &[u8]) -> Option<(u64, u64)> {
    let (first, took) = varint::read(rest)?;
    let (second, also) = varint::read(&rest[took..])?;
    *rest = &rest[took + also..];
    Some((first, second))
}

/// What is left of a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// At the first frame of a payload.
    #[inline]
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Bytes that are not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next frame and its type; `None` at the end.
    ///
    /// # Errors
    /// A frame that is cut off, of a type that is not known, or against its own rules.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u64, Frame<'a>)>, Violation> {
        let Some(&first) = self.rest.first() else { return Ok(None) };
        let kind = self.int("the type")?;
        if first >= 0x40 {
            // Types are sent in their shortest form (RFC 9000 §12.4), and none known is this long.
            return Err(Violation::Frame { kind, what: "a frame of a type that is not known" });
        }
        let frame = match first {
            STREAM..=0x0f => self.stream(first)?,
            0x02 | 0x03 => Frame::Ack(self.ack(first == 0x03)?),
            0x00 => {
                let more = self.rest.iter().position(|byte| *byte != 0).unwrap_or(self.rest.len());
                self.rest = &self.rest[more..];
                Frame::Padding
            }
            _ => self.rare(first)?,
        };
        Ok(Some((kind, frame)))
    }

    #[inline]
    fn stream(&mut self, first: u8) -> Result<Frame<'a>, Violation> {
        let id = self.int("STREAM")?;
        let offset = if first & 4 == 0 { 0 } else { self.int("STREAM")? };
        let len = if first & 2 == 0 { self.rest.len() as u64 } else { self.int("STREAM")? };
        let data = self.bytes(len, "STREAM")?;
        if offset + len > varint::MAX {
            return Err(Violation::Frame { kind: first.into(), what: "a stream longer than 2^62 - 1 bytes" });
        }
        Ok(Frame::Stream { id, offset, data, fin: first & 1 != 0 })
    }

    fn ack(&mut self, ecn: bool) -> Result<Ack<'a>, Violation> {
        let bad = Violation::Frame { kind: 0x02, what: "an ACK of negative packet numbers" };
        let largest = self.int("ACK")?;
        let delay = self.int("ACK")?;
        let count = self.int("ACK")?;
        let first = self.int("ACK")?;
        let mut low = largest.checked_sub(first).ok_or(bad.clone())?;
        let start = self.rest;
        for _ in 0..count {
            if self.rest.is_empty() {
                return Err(Violation::Cut("ACK"));
            }
            let range = read_range(&mut self.rest, low).ok_or(bad.clone())?;
            low = range.0;
        }
        let rest = &start[..start.len() - self.rest.len()];
        if ecn {
            for _ in 0..3 {
                self.int("ACK")?;
            }
        }
        Ok(Ack { largest, delay, first, rest })
    }

    fn rare(&mut self, first: u8) -> Result<Frame<'a>, Violation> {
        let kind = u64::from(first);
        Ok(match first {
            0x01 => Frame::Ping,
            0x04 => Frame::ResetStream {
                id: self.int("RESET_STREAM")?,
                code: self.int("RESET_STREAM")?,
                final_size: self.int("RESET_STREAM")?,
            },
            0x05 => Frame::StopSending { id: self.int("STOP_SENDING")?, code: self.int("STOP_SENDING")? },
            0x06 => {
                let offset = self.int("CRYPTO")?;
                let len = self.int("CRYPTO")?;
                let data = self.bytes(len, "CRYPTO")?;
                if offset + len > varint::MAX {
                    return Err(Violation::Frame { kind, what: "more than 2^62 - 1 bytes of CRYPTO" });
                }
                Frame::Crypto { offset, data }
            }
            0x07 => {
                let len = self.int("NEW_TOKEN")?;
                if len == 0 {
                    return Err(Violation::Frame { kind, what: "NEW_TOKEN without a token" });
                }
                Frame::NewToken(self.bytes(len, "NEW_TOKEN")?)
            }
            0x10 => Frame::MaxData(self.int("MAX_DATA")?),
            0x11 => {
                Frame::MaxStreamData { id: self.int("MAX_STREAM_DATA")?, max: self.int("MAX_STREAM_DATA")? }
            }
            0x12 | 0x13 => {
                let max = self.count("MAX_STREAMS", kind)?;
                Frame::MaxStreams { bidi: first == 0x12, max }
            }
            0x14 => {
                self.int("DATA_BLOCKED")?;
                Frame::Blocked
            }
            0x15 => {
                self.int("STREAM_DATA_BLOCKED")?;
                self.int("STREAM_DATA_BLOCKED")?;
                Frame::Blocked
            }
            0x16 | 0x17 => {
                self.count("STREAMS_BLOCKED", kind)?;
                Frame::Blocked
            }
            0x18 => self.new_connection_id()?,
            0x19 => Frame::RetireConnectionId(self.int("RETIRE_CONNECTION_ID")?),
            0x1a => Frame::PathChallenge(self.array("PATH_CHALLENGE")?),
            0x1b => {
                self.array::<8>("PATH_RESPONSE")?;
                Frame::PathResponse
            }
            0x1c | 0x1d => {
                let code = self.int("CONNECTION_CLOSE")?;
                if first == 0x1c {
                    self.int("CONNECTION_CLOSE")?;
                }
                let len = self.int("CONNECTION_CLOSE")?;
                Frame::Close {
                    application: first == 0x1d,
                    code,
                    reason: self.bytes(len, "CONNECTION_CLOSE")?,
                }
            }
            0x1e => Frame::HandshakeDone,
            _ => return Err(Violation::Frame { kind, what: "a frame of a type that is not known" }),
        })
    }

    fn new_connection_id(&mut self) -> Result<Frame<'a>, Violation> {
        const NAME: &str = "NEW_CONNECTION_ID";
        let bad = |what| Err(Violation::Frame { kind: 0x18, what });
        let sequence = self.int(NAME)?;
        let retire_prior_to = self.int(NAME)?;
        if retire_prior_to > sequence {
            return bad("NEW_CONNECTION_ID that retires itself");
        }
        let len = self.bytes(1, NAME)?[0];
        if !(1..=20).contains(&len) {
            return bad("a connection id that is not of 1 to 20 bytes");
        }
        let id = self.bytes(len.into(), NAME)?;
        let reset_token = self.array(NAME)?;
        Ok(Frame::NewConnectionId { sequence, retire_prior_to, id, reset_token })
    }

    /// A number of streams, at most 2^60.
    fn count(&mut self, name: &'static str, kind: u64) -> Result<u64, Violation> {
        let count = self.int(name)?;
        if count > 1 << 60 {
            return Err(Violation::Frame { kind, what: "a limit of more than 2^60 streams" });
        }
        Ok(count)
    }

    #[inline]
    fn int(&mut self, name: &'static str) -> Result<u64, Violation> {
        let (value, took) = varint::read(self.rest).ok_or(Violation::Cut(name))?;
        self.rest = &self.rest[took..];
        Ok(value)
    }

    #[inline]
    fn bytes(&mut self, len: u64, name: &'static str) -> Result<&'a [u8], Violation> {
        let len = usize::try_from(len).ok().filter(|len| *len <= self.rest.len());
        let (taken, rest) = self.rest.split_at(len.ok_or(Violation::Cut(name))?);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], Violation> {
        let bytes = self.bytes(N as u64, name)?;
        bytes.try_into().map_err(|_| Violation::Cut(name))
    }
}

/// Writes the head of a STREAM frame whose data, `len` bytes, follows.
#[inline]
pub(super) fn write_stream(out: &mut Vec<u8>, id: u64, offset: u64, len: usize, fin: bool) {
    let with_offset = if offset > 0 { 4 } else { 0 };
    out.push(STREAM | with_offset | 2 | u8::from(fin));
    varint::write(out, id);
    if offset > 0 {
        varint::write(out, offset);
    }
    varint::write(out, len as u64);
}

/// The longest head that [`write_stream`] writes for this stream and offset, for less than 16384 bytes.
#[inline]
pub(super) fn stream_head(id: u64, offset: u64) -> usize {
    1 + varint::len(id) + if offset > 0 { varint::len(offset) } else { 0 } + 2
}

/// Writes the head of a CRYPTO frame.
pub(super) fn write_crypto(out: &mut Vec<u8>, offset: u64, len: usize) {
    write_ints(out, 0x06, &[offset, len as u64]);
}

/// Writes a frame that is a type and integers.
pub(super) fn write_ints(out: &mut Vec<u8>, kind: u8, values: &[u64]) {
    out.push(kind);
    for value in values {
        varint::write(out, *value);
    }
}

/// Writes NEW_CONNECTION_ID.
pub(super) fn write_new_connection_id(out: &mut Vec<u8>, sequence: u64, id: &[u8], reset_token: [u8; 16]) {
    write_ints(out, 0x18, &[sequence, 0]);
    out.push(id.len() as u8);
    out.extend_from_slice(id);
    out.extend_from_slice(&reset_token);
}

/// Writes PATH_RESPONSE.
pub(super) fn write_path_response(out: &mut Vec<u8>, data: [u8; 8]) {
    out.push(0x1b);
    out.extend_from_slice(&data);
}

/// Writes CONNECTION_CLOSE.
pub(super) fn write_close(out: &mut Vec<u8>, application: bool, code: u64, frame: u64, reason: &str) {
    let reason = &reason.as_bytes()[..reason.len().min(MOST_REASON)];
    if application {
        write_ints(out, 0x1d, &[code, reason.len() as u64]);
    } else {
        write_ints(out, 0x1c, &[code, frame, reason.len() as u64]);
    }
    out.extend_from_slice(reason);
}

const STREAM: u8 = 0x08;
const MOST_REASON: usize = 200;
/// PING.
pub(super) const PING: u8 = 0x01;
