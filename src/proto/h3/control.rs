//! Owns the reading of the peer's control stream (RFC 9114 §6.2.1, §7.2).

use super::frame::{self, Partial, kind, setting};
use super::violation::Violation;
use crate::proto::quic::varint;

/// What the control stream said so far.
#[derive(Default, Debug)]
pub(super) struct Control {
    reading: Reading,
    /// A payload that came in pieces.
    held: Vec<u8>,
    settings: bool,
    goaway: Option<u64>,
    /// GOAWAYs that came since the last look.
    fresh: u32,
}

#[derive(Clone, Copy, Default, Debug)]
enum Reading {
    #[default]
    Frames,
    /// The payload of a frame that is acted on: its type, its length.
    Payload(u64, usize),
    /// So many bytes of a payload that nobody wants.
    Skip(u64),
}

impl Control {
    pub(super) fn has_settings(&self) -> bool {
        self.settings
    }

    /// The identifier of the last GOAWAY.
    #[inline]
    pub(super) fn goaway(&self) -> Option<u64> {
        self.goaway
    }

    /// How many GOAWAYs came since the last time.
    pub(super) fn take_goaways(&mut self) -> u32 {
        std::mem::take(&mut self.fresh)
    }

    /// Takes bytes of the stream, whatever way they are split; `partial` has the start of a frame. Returns
    /// how many frames there were that move no request on.
    ///
    /// # Errors
    /// A connection error.
    pub(super) fn receive(&mut self, partial: &mut Partial, mut bytes: &[u8]) -> Result<u32, Violation> {
        let mut idle = 0;
        loop {
            match self.reading {
                Reading::Frames => {
                    if bytes.is_empty() {
                        return Ok(idle);
                    }
                    let Some((kind, length)) = partial.frame(&mut bytes) else { return Ok(idle) };
                    self.reading = self.begin(kind, length)?;
                    idle += 1;
                }
                Reading::Payload(kind, length) => {
                    let missing = length - self.held.len();
                    let (more, behind) = bytes.split_at(bytes.len().min(missing));
                    self.held.extend_from_slice(more);
                    bytes = behind;
                    if more.len() < missing {
                        return Ok(idle);
                    }
                    let mut payload = std::mem::take(&mut self.held);
                    self.reading = Reading::Frames;
                    self.frame(kind, &payload)?;
                    payload.clear();
                    self.held = payload;
                }
                Reading::Skip(left) => {
                    let here = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    bytes = &bytes[here..];
                    let left = left - here as u64;
                    if left > 0 {
                        self.reading = Reading::Skip(left);
                        return Ok(idle);
                    }
                    self.reading = Reading::Frames;
                }
            }
        }
    }

    /// Whether a frame may come here, and what is to be read of it.
    fn begin(&self, kind: u64, length: u64) -> Result<Reading, Violation> {
        if !self.settings && kind != kind::SETTINGS {
            return Err(Violation::MissingSettings);
        }
        match kind {
            kind::SETTINGS if self.settings => Err(Violation::RepeatedSettings),
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH => match usize::try_from(length) {
                Ok(length) if length <= MAX_PAYLOAD => Ok(Reading::Payload(kind, length)),
                _ => Err(Violation::FrameTooLong),
            },
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE | kind::MAX_PUSH_ID => {
                Err(Violation::FrameOnWrongStream)
            }
            _ if frame::is_of_http2(kind) => Err(Violation::ReservedFrame),
            _ => Ok(Reading::Skip(length)),
        }
    }

    fn frame(&mut self, kind: u64, payload: &[u8]) -> Result<(), Violation> {
        match kind {
            kind::SETTINGS => {
                self.settings = true;
                check_settings(payload)
            }
            kind::GOAWAY => self.goaway_frame(only(payload)?),
            // There is no push that it could cancel.
            _ => only(payload).and(Err(Violation::Push)),
        }
    }

    fn goaway_frame(&mut self, id: u64) -> Result<(), Violation> {
        if !id.is_multiple_of(4) {
            return Err(Violation::GoawayId);
        }
        if self.goaway.is_some_and(|before| id > before) {
            return Err(Violation::GoawayIncreases);
        }
        self.goaway = Some(id);
        self.fresh += 1;
        Ok(())
    }
}

/// Checks the payload of SETTINGS. None of the settings concerns a client that sends one request, refers to no
/// dynamic table and is not pushed to.
fn check_settings(mut payload: &[u8]) -> Result<(), Violation> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let (id, first) = varint::read(payload).ok_or(Violation::FrameSize)?;
        let (_, second) = varint::read(&payload[first..]).ok_or(Violation::FrameSize)?;
        payload = &payload[first + second..];
        if setting::is_of_http2(id) {
            return Err(Violation::ReservedSetting);
        }
        seen.push(id);
    }
    seen.sort_unstable();
    let repeated = seen.windows(2).any(|pair| pair[0] == pair[1]);
    if repeated { Err(Violation::DuplicateSetting) } else { Ok(()) }
}

/// The integer that is all of a payload.
fn only(payload: &[u8]) -> Result<u64, Violation> {
    match varint::read(payload) {
        Some((value, taken)) if taken == payload.len() => Ok(value),
        _ => Err(Violation::FrameSize),
    }
}

/// The longest payload of a frame that is acted on, in bytes.
const MAX_PAYLOAD: usize = 4096;
