//! Owns what of an exchange on a stream is measured, and which requests are to be sent again: the same for
//! HTTP/2 and HTTP/3.

use super::{Expectation, Replay, fault, framing_fault};
use crate::load::record::{Completion, Fault, Record, Unexpected};
use crate::proto::exchange::{Failure, Responses};
use crate::results::Phase;
use crate::time::Instant;

/// One request and its response so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exchange {
    pub(super) started: Instant,
    first_byte: Instant,
    body: u64,
    status: u16,
    differs: bool,
    /// How often it was sent before.
    replays: u8,
}

impl Exchange {
    /// One that was begun at `started`, after it had been sent `replays` times.
    #[inline]
    pub(super) fn new(started: Instant, replays: u8) -> Self {
        Self { started, replays, ..Self::default() }
    }

    /// It was sent at `now`. One that is sent again has waited since it was sent first.
    #[inline]
    pub(super) fn stamp(&mut self, now: Instant) {
        if self.replays == 0 {
            self.started = now;
        }
    }
}

/// Where what the connection tells is written down.
pub(super) struct Books<'a> {
    pub(super) expect: &'a Expectation,
    pub(super) head_request: bool,
    pub(super) record: &'a mut Record,
    pub(super) replays: &'a mut Vec<Replay>,
    pub(super) now: Instant,
    pub(super) served: bool,
}

impl Responses<Exchange> for Books<'_> {
    #[inline]
    fn interim(&mut self, _exchange: &mut Exchange) {
        self.record.now().interim += 1;
    }

    #[inline]
    fn headers(&mut self, exchange: &mut Exchange, status: u16) {
        exchange.first_byte = self.now;
        exchange.status = status;
    }

    #[inline]
    fn data(&mut self, exchange: &mut Exchange, bytes: &[u8]) {
        exchange.differs |= self.expect.take_body(self.record, exchange.body, bytes);
        exchange.body += bytes.len() as u64;
    }

    #[inline]
    fn complete(&mut self, exchange: Exchange) {
        self.served = true;
        let Exchange { started, first_byte, status, body, differs, .. } = exchange;
        let unexpected: Option<Unexpected> = self.expect.unexpected(status, body, differs, self.head_request);
        self.record.completed(&Completion { started, first_byte, status, body, unexpected }, self.now);
    }

    #[cold]
    fn failed(&mut self, exchange: Exchange, failure: Failure) {
        let fault = match failure {
            Failure::Refused => {
                self.record.refused();
                if exchange.replays < MOST_REPLAYS {
                    let Exchange { started, replays, .. } = exchange;
                    self.replays.push(Replay { started, replays: replays + 1 });
                    return;
                }
                fault(
                    Phase::Refused,
                    "refused-stream",
                    &format!("the server refused a request {} times", u32::from(MOST_REPLAYS) + 1),
                )
            }
            Failure::Reset { code, name } => reset_fault(code, name),
            Failure::Malformed { kind, text } => framing_fault(kind, &text),
            Failure::Closed => closed_fault(None),
            Failure::Cancelled => super::late(),
        };
        self.record.failed(&fault, 1);
    }

    #[cold]
    fn limit(&mut self, streams: u32) {
        self.record.limit(streams);
    }

    #[cold]
    fn goaway(&mut self) {
        self.record.goaway();
    }
}

/// The connection was closed, after `said`, with responses outstanding.
pub(super) fn closed_fault(said: Option<&str>) -> Fault {
    let said = said.map_or(String::new(), |said| format!(" after {said}"));
    let text = format!("the connection was closed{said} before its responses were complete");
    fault(Phase::Interrupted, "closed-before-response", &text)
}

fn reset_fault(code: u64, name: &str) -> Fault {
    let text = format!("the server reset the stream ({name}, code {code})");
    fault(Phase::Interrupted, &format!("reset-{name}"), &text)
}

/// How often a request that was not processed is sent again. A server that takes one request a
/// connection still gets a hundred through.
const MOST_REPLAYS: u8 = 100;
