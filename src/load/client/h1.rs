//! Owns the HTTP/1.1 exchange of one connection: one request at a time, and its response.

use super::{Expectation, Job, Step, fault, framing_fault};
use crate::load::record::{Completion, Fault, Record};
use crate::proto::h1::{Event, Head, Reader, Version, Violation};
use crate::results::Phase;
use crate::time::Instant;

/// The exchange under way.
#[derive(Debug)]
pub(super) struct Exchange {
    reader: Reader,
    pub(super) outstanding: bool,
    /// The first byte of the final response has arrived.
    begun: bool,
    pub(super) served: bool,
    /// Requests answered on this connection.
    carried: u32,
    differs: bool,
    head: Option<Head>,
    pub(super) version: Option<Version>,
    pub(super) started: Instant,
    first_byte: Instant,
    body: u64,
    /// Bytes of the request handed to the transport.
    pub(super) handed: usize,
}

impl Exchange {
    pub(super) fn new() -> Self {
        Self {
            reader: Reader::new(),
            outstanding: false,
            begun: false,
            served: false,
            carried: 0,
            differs: false,
            head: None,
            version: None,
            started: Instant::default(),
            first_byte: Instant::default(),
            body: 0,
            handed: 0,
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, head_request: bool, started: Instant) {
        debug_assert!(!self.outstanding, "one request at a time");
        self.outstanding = true;
        self.begun = false;
        self.started = started;
        self.head = None;
        self.body = 0;
        self.differs = false;
        self.handed = 0;
        self.reader.begin(head_request);
    }

    #[inline]
    pub(super) fn received(
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
                Ok(Event::Body(bytes)) => self.take_body(&job.expect, record, bytes),
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
                Err(violation) => return Step::Failed(broken(violation)),
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
            Err(violation) => Step::Failed(broken(violation)),
        }
    }

    /// Whether the connection may carry another request. An answer that came before the whole request
    /// was sent leaves one whose other half is in the middle of a message.
    #[inline]
    fn reusable(&self, job: &Job, sending: bool) -> bool {
        self.carried < job.requests_per_connection
            && self.head.is_some_and(|head| head.keep_alive)
            && !sending
            && self.handed >= job.request.image().len()
    }

    #[inline]
    fn take_body(&mut self, expect: &Expectation, record: &mut Record, bytes: &[u8]) {
        self.differs |= expect.take_body(record, self.body, bytes);
        self.body += bytes.len() as u64;
    }

    #[inline]
    fn complete(&mut self, job: &Job, record: &mut Record, now: Instant) {
        let Some(Head { status, .. }) = self.head else { return };
        let (body, differs) = (self.body, self.differs);
        let unexpected = job.expect.unexpected(status, body, differs, job.head_request);
        self.outstanding = false;
        self.served = true;
        self.carried = self.carried.saturating_add(1);
        let (started, first_byte) = (self.started, self.first_byte);
        record.completed(&Completion { started, first_byte, status, body, unexpected }, now);
    }

    pub(super) fn closed(&mut self, job: &Job, record: &mut Record, now: Instant) -> Step {
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
            Err(violation) => Step::Failed(broken(violation)),
        }
    }
}

#[cold]
fn broken(violation: Violation) -> Fault {
    framing_fault(violation.kind(), &violation)
}
