//! Owns one connection as the event loop sees it: what was received in, what is to be sent out, and
//! the requests that were answered meanwhile. Sans-I/O: the loop moves the bytes and tells the time.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::record::{Completion, Fault, Record, Unexpected};
use crate::proto::h1::{Event, Head, HeadMemo, Reader, Version, Violation};
use crate::proto::tls::{Tls, TlsError, TlsState};
use crate::results::{Negotiated, Phase};
use crate::time::Instant;

/// What all connections of a worker have in common.
#[derive(Debug)]
pub struct Job {
    /// The request, encoded.
    pub request: Vec<u8>,
    /// Its method is HEAD.
    pub head_request: bool,
    /// False: a connection carries one request, whatever the server would allow.
    pub keepalive: bool,
    /// What an ok response is.
    pub expect: Expectation,
    /// TLS settings and server name; `None`: cleartext.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The last response head seen by any connection.
    pub memo: HeadMemo,
}

/// What an ok response is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expectation {
    /// Exactly this status; `None`: any 2xx or 3xx.
    pub status: Option<u16>,
    /// Exactly this body.
    pub body: Option<Vec<u8>>,
    /// Exactly this many body bytes.
    pub length: Option<u64>,
}

/// Bytes to send.
#[derive(PartialEq, Eq, Debug)]
pub enum Transmit {
    /// The request image, from this offset to its end.
    Request(usize),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// What a call did to the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// It goes on.
    Going,
    /// The handshake is complete: requests may be sent.
    Established,
    /// It did its last exchange and is to be replaced.
    Finished,
    /// It failed and is to be replaced.
    Failed(Fault),
}

/// One connection.
///
/// The loop calls [`Client::connected`] once TCP is up, [`Client::received`] and [`Client::closed`]
/// for what arrives, [`Client::begin`] while [`Client::room`] is positive, and after each of them
/// sends what [`Client::transmit`] gives until it gives nothing; [`Client::sent`] tells that a
/// transmit was done. A client serves one connection; the next one takes a new client.
#[derive(Debug)]
pub struct Client {
    tls: Option<Box<Tls>>,
    out: Vec<u8>,
    established: bool,
    sending: bool,
    http: Exchange,
}

/// The HTTP/1.1 exchange under way.
#[derive(Debug)]
struct Exchange {
    reader: Reader,
    outstanding: bool,
    /// The first byte of the final response has arrived.
    begun: bool,
    served: bool,
    body_matches: bool,
    head: Option<Head>,
    version: Option<Version>,
    started: Instant,
    first_byte: Instant,
    body: u64,
    /// Bytes of the request handed to the transport.
    handed: usize,
}

impl Client {
    /// A client of a connection that is not up yet.
    ///
    /// # Errors
    /// A fault when TLS cannot begin.
    pub fn new(job: &Job) -> Result<Self, Fault> {
        let tls = match &job.tls {
            Some((config, name)) => {
                Some(Box::new(Tls::new(Arc::clone(config), name.clone()).map_err(|e| tls_fault(&e))?))
            }
            None => None,
        };
        let http = Exchange {
            reader: Reader::new(),
            outstanding: false,
            begun: false,
            served: false,
            body_matches: true,
            head: None,
            version: None,
            started: Instant::default(),
            first_byte: Instant::default(),
            body: 0,
            handed: 0,
        };
        Ok(Self { tls, out: Vec::new(), established: false, sending: false, http })
    }

    /// TCP is up.
    pub fn connected(&mut self) -> Step {
        match &mut self.tls {
            None => {
                self.established = true;
                Step::Established
            }
            Some(tls) => match tls.handle(&mut [], &mut self.out, |_| ()) {
                Ok(_) => Step::Going,
                Err(error) => Step::Failed(tls_fault(&error)),
            },
        }
    }

    /// Bytes arrived; `input` may be changed. Answered requests are written to `record`.
    #[inline]
    pub fn received(&mut self, job: &mut Job, record: &mut Record, now: Instant, input: &mut [u8]) -> Step {
        if self.tls.is_none() {
            return self.http.received(job, record, now, input, self.sending);
        }
        self.received_tls(job, record, now, input)
    }

    fn received_tls(&mut self, job: &mut Job, record: &mut Record, now: Instant, input: &mut [u8]) -> Step {
        let Some(tls) = &mut self.tls else { return Step::Going };
        let mut step = Step::Going;
        let state = {
            let (http, step, sending) = (&mut self.http, &mut step, self.sending);
            tls.handle(input, &mut self.out, |plain| {
                if *step == Step::Going {
                    *step = http.received(job, record, now, plain, sending);
                }
            })
        };
        if step != Step::Going {
            return step;
        }
        match state {
            Err(error) => Step::Failed(tls_fault(&error)),
            Ok(TlsState::Handshaking) => Step::Going,
            Ok(TlsState::Established) if !self.established => match self.check_alpn() {
                Ok(()) => {
                    self.established = true;
                    Step::Established
                }
                Err(fault) => Step::Failed(fault),
            },
            Ok(TlsState::Established) => Step::Going,
            Ok(TlsState::PeerClosed) => self.http.closed(job, record, now),
        }
    }

    /// The peer closed the connection.
    pub fn closed(&mut self, job: &Job, record: &mut Record, now: Instant) -> Step {
        if self.tls.is_none() {
            return self.http.closed(job, record, now);
        }
        // A close_notify would have been handled when it came. Without one the end of a
        // close-delimited body cannot be told from a cut (RFC 9112 §9.8).
        if self.established && !self.http.outstanding {
            return Step::Finished;
        }
        let phase = if self.established { Phase::Read } else { Phase::Tls };
        Step::Failed(fault(
            phase,
            "closed-without-close-notify",
            "the connection was closed without close_notify",
        ))
    }

    /// How many requests may be begun now.
    #[inline]
    pub fn room(&self) -> u32 {
        u32::from(self.established && !self.http.outstanding)
    }

    /// Begins a request, which [`Client::transmit`] will give once the connection is established.
    /// With a connection for each request this is called when the connection is begun.
    #[inline]
    pub fn begin(&mut self, job: &Job, now: Instant) {
        let http = &mut self.http;
        debug_assert!(!http.outstanding, "one request at a time");
        http.outstanding = true;
        http.begun = false;
        http.started = now;
        http.head = None;
        http.body = 0;
        http.body_matches = true;
        http.handed = 0;
        http.reader.begin(job.head_request);
    }

    /// The request under way was sent at `now`.
    #[inline]
    pub fn stamp(&mut self, now: Instant) {
        self.http.started = now;
    }

    /// What to send next; nothing while a send is under way.
    #[inline]
    pub fn transmit(&mut self, job: &Job) -> Option<Transmit> {
        if self.sending {
            return None;
        }
        let http = &mut self.http;
        let unsent = self.established && http.outstanding && http.handed < job.request.len();
        if self.tls.is_none() {
            return unsent.then(|| {
                self.sending = true;
                Transmit::Request(http.handed)
            });
        }
        self.transmit_tls(job, unsent)
    }

    fn transmit_tls(&mut self, job: &Job, unsent: bool) -> Option<Transmit> {
        if let (Some(tls), true) = (&mut self.tls, unsent) {
            let end = job.request.len().min(self.http.handed + SEAL_CHUNK);
            // Cannot fail once established; should the keys be used up, the request times out and the
            // connection is replaced.
            if tls.seal(&job.request[self.http.handed..end], &mut self.out).is_ok() {
                self.http.handed = end;
            }
        }
        if self.out.is_empty() {
            return None;
        }
        self.sending = true;
        Some(Transmit::Bytes(std::mem::take(&mut self.out)))
    }

    /// A transmit is done: `bytes` of a request image, or all of [`Transmit::Bytes`], whose memory
    /// comes back in `spare`.
    #[inline]
    pub fn sent(&mut self, bytes: usize, spare: Option<Vec<u8>>) {
        self.sending = false;
        match spare {
            None => self.http.handed += bytes,
            Some(mut spare) if self.out.is_empty() => {
                spare.clear();
                self.out = spare;
            }
            Some(_) => (),
        }
    }

    /// The bytes last told as sent are still being sent.
    pub fn resume_sending(&mut self) {
        self.sending = true;
    }

    /// When the request under way was sent.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.http.outstanding.then_some(self.http.started)
    }

    /// A request is under way.
    pub fn outstanding(&self) -> bool {
        self.http.outstanding
    }

    /// A response was completed on this connection.
    pub fn served(&self) -> bool {
        self.http.served
    }

    /// What was negotiated, once a response was seen.
    pub fn negotiated(&self) -> Option<Negotiated> {
        let agreed = self.tls.as_ref().map(|tls| tls.agreed());
        let http = match self.http.version? {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        };
        Some(match agreed {
            None => Negotiated { http: http.into(), alpn: None, tls: None, cipher: None, group: None },
            Some(agreed) => Negotiated {
                http: http.into(),
                alpn: agreed.alpn,
                tls: agreed.version,
                cipher: agreed.cipher,
                group: agreed.group,
            },
        })
    }

    fn check_alpn(&self) -> Result<(), Fault> {
        let Some(alpn) = self.tls.as_ref().and_then(|tls| tls.agreed().alpn) else { return Ok(()) };
        if alpn == "http/1.1" {
            return Ok(());
        }
        Err(fault(
            Phase::Tls,
            "wrong-protocol",
            &format!("asked for http/1.1 by ALPN, the server chose {alpn}"),
        ))
    }
}

impl Exchange {
    #[inline]
    fn received(
        &mut self,
        job: &mut Job,
        record: &mut Record,
        now: Instant,
        mut input: &[u8],
        sending: bool,
    ) -> Step {
        if self.outstanding && !self.begun {
            self.begun = true;
            self.first_byte = now;
        }
        while !input.is_empty() {
            match self.reader.next(&mut job.memo, &mut input) {
                Ok(Event::Body(bytes)) => self.take_body(&job.expect, bytes),
                Ok(Event::End) => {
                    self.complete(job, record, now);
                    if !self.reusable(job, sending) {
                        return Step::Finished;
                    }
                }
                Ok(Event::Head(head)) => {
                    self.head = Some(head);
                    self.version = Some(head.version);
                }
                Ok(Event::Interim(_)) => {
                    record.now().interim += 1;
                    // The first byte of the final response is still to come, or is here too.
                    self.begun = !input.is_empty();
                    self.first_byte = now;
                }
                Ok(Event::NeedMore) => break,
                Err(violation) => return Step::Failed(violation_fault(violation)),
            }
        }
        // A response without a body ends with its head, and says so without further input.
        self.finish_empty(job, record, now, sending)
    }

    #[inline]
    fn finish_empty(&mut self, job: &mut Job, record: &mut Record, now: Instant, sending: bool) -> Step {
        if !self.outstanding {
            return Step::Going;
        }
        match self.reader.next(&mut job.memo, &mut &[][..]) {
            Ok(Event::End) => {
                self.complete(job, record, now);
                if self.reusable(job, sending) { Step::Going } else { Step::Finished }
            }
            Ok(_) => Step::Going,
            Err(violation) => Step::Failed(violation_fault(violation)),
        }
    }

    /// Whether the connection may carry another request. An answer that came before the whole request
    /// was sent leaves one whose other half is in the middle of a message.
    #[inline]
    fn reusable(&self, job: &Job, sending: bool) -> bool {
        job.keepalive
            && self.head.is_some_and(|head| head.keep_alive)
            && !sending
            && self.handed >= job.request.len()
    }

    #[inline]
    fn take_body(&mut self, expect: &Expectation, bytes: &[u8]) {
        if let Some(expected) = &expect.body {
            let from = usize::try_from(self.body).unwrap_or(usize::MAX);
            self.body_matches &= from
                .checked_add(bytes.len())
                .and_then(|to| expected.get(from..to))
                .is_some_and(|part| part == bytes);
        }
        self.body += bytes.len() as u64;
    }

    #[inline]
    fn complete(&mut self, job: &Job, record: &mut Record, now: Instant) {
        let Some(head) = self.head else { return };
        let expect = &job.expect;
        let status_ok = match expect.status {
            Some(status) => head.status == status,
            None => (200..400).contains(&head.status),
        };
        let unexpected = if !status_ok {
            Some(Unexpected::Status(head.status))
        } else if job.head_request {
            None
        } else if expect.length.is_some_and(|length| length != self.body)
            || expect.body.as_ref().is_some_and(|body| body.len() as u64 != self.body)
        {
            Some(Unexpected::Length(self.body))
        } else if !self.body_matches {
            Some(Unexpected::Body)
        } else {
            None
        };
        self.outstanding = false;
        self.served = true;
        let completion = Completion {
            started: self.started,
            first_byte: self.first_byte,
            status: head.status,
            body: self.body,
            unexpected,
        };
        record.completed(&completion, now);
    }

    fn closed(&mut self, job: &Job, record: &mut Record, now: Instant) -> Step {
        if !self.outstanding {
            return Step::Finished;
        }
        match self.reader.close() {
            Ok(true) => {
                self.complete(job, record, now);
                Step::Finished
            }
            Ok(false) => Step::Failed(fault(
                Phase::Read,
                "closed-before-response",
                "the connection was closed before a response",
            )),
            Err(violation) => Step::Failed(violation_fault(violation)),
        }
    }
}

/// A fault of this phase and kind.
pub fn fault(phase: Phase, kind: &str, text: &str) -> Fault {
    Fault { phase, kind: kind.into(), text: text.into() }
}

fn tls_fault(error: &TlsError) -> Fault {
    fault(Phase::Tls, &error.kind(), &error.to_string())
}

#[cold]
fn violation_fault(violation: Violation) -> Fault {
    fault(Phase::Framing, violation.kind(), &violation.to_string())
}

/// Plaintext sealed for one send.
const SEAL_CHUNK: usize = 256 * 1024;
