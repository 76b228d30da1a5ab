//! Owns the HTTP/3 exchanges of one connection, and what ends a QUIC connection as a fault.

use super::exchange::{Books, Exchange, closed_fault};
use super::{Birth, Job, Step, fault, framing_fault, wrong_protocol};
use crate::load::record::Fault;
use crate::proto::exchange::Transcript;
use crate::proto::h3::{Config, Connection, Ended, ErrorCode, Request};
use crate::proto::quic::{Closed, HandshakeSummary, Health, Violation};
use crate::results::{Negotiated, Phase, Resumption};
use crate::time::{Instant, Span};

/// The exchanges under way.
#[derive(Debug)]
pub(super) struct Exchanges {
    connection: Connection<Exchange>,
    /// The first stream begun since the last stamp.
    fresh: Option<u64>,
    last: u64,
    pub(super) served: bool,
    /// Requests that may still be begun on it; `u32::MAX`: any number.
    left: u32,
    established: bool,
    /// Tickets are wanted: a connection that has done its work stays until it has what the server gives at
    /// the end of the handshake, but no longer than until this.
    wants_tickets: bool,
    lingers_until: Option<Instant>,
}

impl Exchanges {
    /// # Errors
    /// A fault when TLS cannot begin.
    pub(super) fn new(job: &Job, config: &Config, birth: Birth) -> Result<Self, Fault> {
        let Some((tls, name)) = &job.tls else {
            return Err(fault(Phase::Quic, "no-tls", "HTTP/3 has no form without TLS"));
        };
        let mut connection =
            Connection::new(config, tls.clone(), name.clone(), birth.connection_id, birth.seed, birth.now)
                .map_err(|error| fault(Phase::Quic, "tls", &error.to_string()))?;
        if job.sample {
            connection.transcribe();
        }
        Ok(Self {
            connection,
            fresh: None,
            last: 0,
            served: false,
            left: job.requests_per_connection,
            established: false,
            wants_tickets: job.resumption != Resumption::Off,
            lingers_until: None,
        })
    }

    /// Takes a datagram in; requests to be sent again are added to `replays`.
    #[inline]
    pub(super) fn received(
        &mut self,
        request: &Request,
        datagram: &mut [u8],
        books: &mut Books<'_>,
        alpn: &str,
    ) -> Step {
        let done = self.connection.receive(books.now, request, datagram, books);
        self.established = self.connection.quic().established();
        self.served |= books.served;
        match done {
            Err(ended) => self.ended(&ended, alpn),
            Ok(()) if self.connection.finished() && !self.served => Step::Failed(fault(
                Phase::Refused,
                "goaway",
                "the server ended the connection (GOAWAY) before it answered anything",
            )),
            Ok(()) if self.connection.finished() => Step::Finished,
            // A connection for so many requests has ended with the last, answered or refused.
            Ok(()) if self.spent() => self.done(books.now),
            Ok(()) => Step::Going,
        }
    }

    /// It has done its work. Tickets come behind the handshake's end, which with early data comes after the
    /// answer.
    fn done(&mut self, now: Instant) -> Step {
        if !self.wants_tickets || self.connection.quic().confirmed() {
            return Step::Finished;
        }
        let until = *self.lingers_until.get_or_insert(now + LINGER);
        if now >= until { Step::Finished } else { Step::Going }
    }

    /// It has carried all the requests it may.
    #[inline]
    pub(super) fn spent(&self) -> bool {
        self.left == 0 && self.connection.streams() == 0
    }

    /// Does what is due at `now`.
    pub(super) fn elapse(&mut self, now: Instant, alpn: &str) -> Step {
        if self.lingers_until.is_some_and(|until| now >= until) {
            return Step::Finished;
        }
        match self.connection.elapse(now) {
            Ok(()) => Step::Going,
            Err(ended) => self.ended(&ended, alpn),
        }
    }

    #[cold]
    fn ended(&self, ended: &Ended, alpn: &str) -> Step {
        let Ended::Quic(closed) = ended else { return Step::Failed(framing_fault(&ended.kind(), ended)) };
        let quic = |phase| Step::Failed(fault(phase, &ended.kind(), &closed.to_string()));
        match closed {
            Closed::ByPeer { application: false, code: NO_APPLICATION_PROTOCOL, .. } => {
                Step::Failed(wrong_protocol(alpn, "the server has no protocol in common"))
            }
            Closed::Violation(Violation::Tls { alert: 120, .. }) => {
                Step::Failed(wrong_protocol(alpn, "the server chose none"))
            }
            Closed::Violation(Violation::Tls { .. }) => quic(Phase::Tls),
            Closed::ByPeer { application: false, code: 0x100..=0x1ff, .. } if !self.established => {
                quic(Phase::Tls)
            }
            Closed::ByPeer { code, application, .. } => {
                let orderly =
                    if *application { ErrorCode::NO_ERROR.0 == *code } else { *code == TRANSPORT_NO_ERROR };
                match (orderly, self.connection.streams()) {
                    (true, 0) if self.established => Step::Finished,
                    (true, 1..) => Step::Failed(closed_fault(Some("CONNECTION_CLOSE"))),
                    (_, 1..) if self.established => quic(Phase::Interrupted),
                    _ => quic(Phase::Quic),
                }
            }
            Closed::Idle if self.connection.streams() == 0 && self.established => Step::Finished,
            _ => quic(Phase::Quic),
        }
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
        for id in (first..=self.last).step_by(4) {
            if let Some(exchange) = self.connection.exchange(id) {
                exchange.stamp(now);
            }
        }
    }

    /// Appends at most `most` datagrams to `out`; how many.
    #[inline]
    pub(super) fn transmit(&mut self, now: Instant, out: &mut Vec<u8>, most: usize) -> usize {
        self.connection.transmit(now, out, most)
    }

    pub(super) fn segment(&self) -> usize {
        self.connection.quic().segment()
    }

    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        match (self.connection.deadline(), self.lingers_until) {
            (Some(at), Some(until)) => Some(at.min(until)),
            (at, until) => at.or(until),
        }
    }

    pub(super) fn shrink(&mut self) {
        self.connection.shrink();
    }

    pub(super) fn close(&mut self) {
        self.connection.close();
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

    /// The server lets no stream be opened, now that all those it allowed are over.
    pub(super) fn out_of_streams(&self) -> bool {
        self.established && self.lingers_until.is_none() && self.connection.quic().room() == 0
    }

    /// Effective M, once the server's limits are known.
    pub(super) fn limit(&self) -> Option<u32> {
        self.connection.settled().then(|| self.connection.limit())
    }

    pub(super) fn handshake(&self) -> Option<HandshakeSummary> {
        self.connection.quic().handshake()
    }

    pub(super) fn health(&self) -> Health {
        self.connection.quic().health()
    }

    pub(super) fn round_trip(&self) -> Option<Span> {
        self.connection.quic().round_trip()
    }

    /// The longest the server waits before it acknowledges, by its own word.
    pub(super) fn max_ack_delay(&self) -> Option<Span> {
        self.connection.quic().parameters().map(|parameters| Span::from_millis(parameters.max_ack_delay))
    }

    pub(super) fn negotiated(&self) -> Negotiated {
        let tls = self.connection.quic().tls();
        let name = |text: &dyn std::fmt::Debug| format!("{text:?}");
        Negotiated {
            http: "HTTP/3".into(),
            alpn: tls.alpn_protocol().map(|alpn| String::from_utf8_lossy(alpn).into_owned()),
            tls: tls.protocol_version().map(|_| "TLSv1.3".into()),
            cipher: tls.negotiated_cipher_suite().map(|suite| name(&suite.suite())),
            group: tls.negotiated_key_exchange_group().map(|group| name(&group.name())),
        }
    }

    pub(super) fn transcript(&self) -> Option<&Transcript> {
        self.connection.transcript()
    }

    pub(super) fn describe(&self) -> String {
        self.connection.describe()
    }
}

/// CRYPTO_ERROR with the alert no_application_protocol (RFC 9001 §8.1).
const NO_APPLICATION_PROTOCOL: u64 = 0x178;
const TRANSPORT_NO_ERROR: u64 = 0;
/// A server that says no HANDSHAKE_DONE for so long is not waited for.
const LINGER: Span = Span::from_millis(100);
