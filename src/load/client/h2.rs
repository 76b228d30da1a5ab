//! Owns the HTTP/2 exchanges of one connection.

use super::exchange::{Books, Exchange, closed_fault};
use super::{Job, Step, fault, framing_fault};
use crate::proto::exchange::Transcript;
use crate::proto::h2::{Config, Connection, Request};
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
    /// Requests that may still be begun on it; `u32::MAX`: any number.
    left: u32,
}

impl Exchanges {
    pub(super) fn new(job: &Job) -> Self {
        let mut connection = Connection::new(Config::new(job.concurrency.max(1)));
        if job.sample {
            connection.transcribe();
        }
        Self { connection, fresh: None, last: 0, served: false, left: job.requests_per_connection }
    }

    /// Takes bytes in; requests to be sent again are added to `replays`.
    #[inline]
    pub(super) fn received(&mut self, request: &Request, input: &[u8], books: &mut Books<'_>) -> Step {
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
            // A connection for so many requests has ended with the last, answered or refused.
            Ok(()) if self.spent() => Step::Finished,
            Ok(()) => Step::Going,
        }
    }

    /// It has carried all the requests it may.
    #[inline]
    pub(super) fn spent(&self) -> bool {
        self.left == 0 && self.connection.streams() == 0
    }

    pub(super) fn closed(&self) -> Step {
        if self.connection.streams() == 0 {
            return Step::Finished;
        }
        let said = self.connection.goaway_code().map(|code| format!("GOAWAY ({})", code.name()));
        Step::Failed(closed_fault(said.as_deref()))
    }

    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.connection.room().min(self.left)
    }

    #[inline]
    pub(super) fn begin(&mut self, request: &Request, started: Instant, replays: u8) {
        self.last = self.connection.open(request, Exchange::new(started, replays));
        self.fresh.get_or_insert(self.last);
        if self.left != u32::MAX {
            self.left -= 1;
        }
    }

    /// What was begun since the last stamp was sent at `now`.
    #[inline]
    pub(super) fn stamp(&mut self, now: Instant) {
        let Some(first) = self.fresh.take() else { return };
        for id in (first..=self.last).step_by(2) {
            if let Some(exchange) = self.connection.exchange(id) {
                exchange.stamp(now);
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

    pub(super) fn transcript(&self) -> Option<&Transcript> {
        self.connection.transcript()
    }

    pub(super) fn describe(&self) -> String {
        self.connection.describe()
    }
}

/// Bytes of request bodies made ready for one send.
const PUMP: usize = 256 * 1024;
