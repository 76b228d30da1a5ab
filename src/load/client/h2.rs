//! Owns the HTTP/2 exchanges of one connection: what of each stream is measured, and which requests
//! are to be sent again.

use super::{Expectation, Replay, Step, fault, framing_fault};
use crate::load::record::{Completion, Fault, Record, Unexpected};
use crate::proto::h2::{Config, Connection, ErrorCode, Failure, Request, Responses};
use crate::results::Phase;
use crate::time::{Instant, Span};

/// The exchanges under way.
#[derive(Debug)]
pub(super) struct Exchanges {
    connection: Connection<Exchange>,
    /// The first stream begun since the last stamp.
    fresh: Option<u32>,
    last: u32,
    pub(super) served: bool,
}

/// One request and its response so far.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    started: Instant,
    first_byte: Instant,
    body: u64,
    status: u16,
    differs: bool,
    /// How often it was sent before.
    replays: u8,
}

impl Exchanges {
    pub(super) fn new(concurrency: u32) -> Self {
        let connection = Connection::new(Config::new(concurrency.max(1)));
        Self { connection, fresh: None, last: 0, served: false }
    }

    /// Takes bytes in; requests to be sent again are added to `replays`.
    #[inline]
    pub(super) fn received(
        &mut self,
        request: &Request,
        input: &[u8],
        books: &mut Books<'_>,
        keepalive: bool,
    ) -> Step {
        let done = self.connection.receive(request, input, books);
        self.served |= books.served;
        match done {
            Err(violation) => Step::Failed(framing_fault(violation.kind(), &violation)),
            Ok(()) if self.connection.finished() && !self.served => Step::Failed(fault(
                Phase::Refused,
                "goaway",
                "the server ended the connection (GOAWAY) before it answered anything",
            )),
            Ok(()) if self.connection.finished() => Step::Finished,
            // A connection for one request has ended with it, answered or refused.
            Ok(()) if !keepalive && books.ended => Step::Finished,
            Ok(()) => Step::Going,
        }
    }

    pub(super) fn closed(&self) -> Step {
        if self.connection.streams() == 0 {
            return Step::Finished;
        }
        Step::Failed(closed_fault(self.connection.goaway_code()))
    }

    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.connection.room()
    }

    #[inline]
    pub(super) fn begin(&mut self, request: &Request, started: Instant, replays: u8) {
        let exchange = Exchange { started, replays, ..Exchange::default() };
        self.last = self.connection.open(request, exchange);
        self.fresh.get_or_insert(self.last);
    }

    /// What was begun since the last stamp was sent at `now`.
    #[inline]
    pub(super) fn stamp(&mut self, now: Instant) {
        let Some(first) = self.fresh.take() else { return };
        for id in (first..=self.last).step_by(2) {
            if let Some(exchange) = self.connection.exchange(id).filter(|exchange| exchange.replays == 0) {
                exchange.started = now;
            }
        }
    }

    /// The bytes to be sent; the caller takes them out.
    #[inline]
    pub(super) fn output(&mut self, request: &Request) -> &mut Vec<u8> {
        self.connection.pump(request, PUMP);
        self.connection.output()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.connection.streams()
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        self.connection.exchanges().map(|exchange| exchange.started).min()
    }

    /// Gives up requests sent more than `timeout` ago.
    pub(super) fn expire(&mut self, books: &mut Books<'_>, timeout: Span) {
        let now = books.now;
        self.connection.cancel(|exchange| now.since(exchange.started) > timeout, books);
    }

    /// Effective M, once the server's settings are known.
    pub(super) fn limit(&self) -> Option<u32> {
        self.connection.settled().then(|| self.connection.limit())
    }

    pub(super) fn describe(&self) -> String {
        self.connection.describe()
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
    pub(super) ended: bool,
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
        exchange.differs |= self.expect.differs_at(exchange.body, bytes);
        exchange.body += bytes.len() as u64;
    }

    #[inline]
    fn complete(&mut self, exchange: Exchange) {
        self.served = true;
        self.ended = true;
        let Exchange { started, first_byte, status, body, differs, .. } = exchange;
        let unexpected: Option<Unexpected> = self.expect.unexpected(status, body, differs, self.head_request);
        self.record.completed(&Completion { started, first_byte, status, body, unexpected }, self.now);
    }

    #[cold]
    fn failed(&mut self, exchange: Exchange, failure: Failure) {
        self.ended = true;
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
            Failure::Reset(code) => reset_fault(code),
            Failure::Malformed(violation) => framing_fault(violation.kind(), &violation),
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

fn closed_fault(goaway: Option<ErrorCode>) -> Fault {
    let said = goaway.map_or(String::new(), |code| format!(" after GOAWAY ({})", code.name()));
    let text = format!("the connection was closed{said} before its responses were complete");
    fault(Phase::Interrupted, "closed-before-response", &text)
}

fn reset_fault(code: ErrorCode) -> Fault {
    let name = code.name();
    let text = format!("the server reset the stream ({name}, code {})", code.0);
    fault(Phase::Interrupted, &format!("reset-{name}"), &text)
}

/// Bytes of request bodies made ready for one send.
const PUMP: usize = 256 * 1024;
/// How often a request that was not processed is sent again. A server that takes one request a
/// connection still gets a hundred through.
const MOST_REPLAYS: u8 = 100;
