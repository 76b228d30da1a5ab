//! Owns one connection as the event loop sees it: what was received in, what is to be sent out, and
//! the requests that were answered meanwhile. Sans-I/O: the loop moves the bytes and tells the time.

mod exchange;
mod h1;
mod h2;
mod h3;

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::record::{Fault, Record, Unexpected};
use crate::proto::exchange::Transcript;
use crate::proto::h1::{HeadMemo, Version};
use crate::proto::h2 as http2;
use crate::proto::h3 as http3;
use crate::proto::quic::{HandshakeSummary, Health};
use crate::proto::tls::{Tls, TlsError, TlsState};
use crate::results::{HeaderField, Negotiated, Phase, Resumption, Stall};
use crate::time::{Instant, Span};

/// What all connections of a worker have in common.
#[derive(Debug)]
pub struct Job {
    /// The request, encoded.
    pub request: Request,
    /// Its method is HEAD.
    pub head_request: bool,
    /// M: the most requests in flight on a connection; 1 for HTTP/1.1.
    pub concurrency: u32,
    /// Requests after which a connection is replaced, whatever the server would allow; `u32::MAX`: never.
    pub requests_per_connection: u32,
    /// What connections make of earlier ones' sessions.
    pub resumption: Resumption,
    /// What an ok response is.
    pub expect: Expectation,
    /// The protocol's name in ALPN (RFC 7301); empty without TLS.
    pub alpn: &'static str,
    /// TLS settings and server name; `None`: cleartext.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The response is kept: there is one request on one connection.
    pub sample: bool,
    /// The last HTTP/1.1 response head seen by any connection.
    pub memo: HeadMemo,
}

/// A request, encoded for its protocol.
#[derive(Clone, Debug)]
pub enum Request {
    /// HTTP/1.1: its bytes.
    H1(Vec<u8>),
    /// HTTP/2.
    H2(Arc<http2::Request>),
    /// HTTP/3, with the settings of its connections.
    H3(Arc<http3::Request>, Arc<http3::Config>),
}

impl Request {
    /// The bytes that are the same each time; none when they differ by stream.
    pub fn image(&self) -> &[u8] {
        match self {
            Self::H1(bytes) => bytes,
            Self::H2(_) | Self::H3(..) => &[],
        }
    }
}

/// What an ok response is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expectation {
    /// Exactly this status; `None`: any 2xx or 3xx.
    pub status: Option<u16>,
    /// What is done with the bytes of bodies.
    pub body: Bodies,
    /// Exactly this many body bytes.
    pub length: Option<u64>,
}

/// What is done with the bytes of bodies. One choice, so that it is made once for each piece.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Bodies {
    /// They are counted.
    #[default]
    Counted,
    /// They are to be these.
    Compared(Vec<u8>),
    /// They are kept in the record, and are to be these where any are given.
    Sampled(Option<Vec<u8>>),
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

/// A request that the server did not process, to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replay {
    /// When it was sent first.
    pub started: Instant,
    /// How often it was sent before.
    pub replays: u8,
}

/// What a client needs from outside when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Birth {
    /// The time.
    pub now: Instant,
    /// The connection id of a QUIC connection; its last 16 bits are not used.
    pub connection_id: u64,
    /// What is to be unpredictable is made from this.
    pub seed: u64,
}

/// One connection.
///
/// The loop calls [`Client::connected`] once TCP is up, [`Client::received`] and [`Client::closed`]
/// for what arrives, [`Client::begin`] while [`Client::room`] is positive, and after each of them
/// sends what [`Client::transmit`] gives until it gives nothing; [`Client::sent`] tells that a
/// transmit was done. A client serves one connection; [`Client::successor`] makes the next one, which
/// takes over the requests that are to be sent again.
///
/// A connection of datagrams has other calls for the bytes: [`Client::received_datagram`],
/// [`Client::datagrams`], and for its timers [`Client::deadline`] and [`Client::elapse`].
#[derive(Debug)]
pub struct Client {
    tls: Option<Box<Tls>>,
    out: Vec<u8>,
    established: bool,
    sending: bool,
    last_received: Instant,
    stall_told: bool,
    replays: Vec<Replay>,
    http: Http,
}

#[derive(Debug)]
enum Http {
    H1(h1::Exchange),
    H2(Box<h2::Exchanges>),
    H3(Box<h3::Exchanges>),
}

impl Client {
    /// A client of a connection that is not up yet.
    ///
    /// # Errors
    /// A fault when TLS cannot begin.
    pub fn new(job: &Job, birth: Birth) -> Result<Self, Fault> {
        let tls = match &job.tls {
            // QUIC has TLS inside.
            Some(_) if matches!(job.request, Request::H3(..)) => None,
            Some((config, name)) => {
                let tls = Tls::new(Arc::clone(config), name.clone());
                Some(Box::new(tls.map_err(|error| tls_fault(&error, job))?))
            }
            None => None,
        };
        let http = match &job.request {
            Request::H1(_) => Http::H1(h1::Exchange::new()),
            Request::H2(_) => Http::H2(Box::new(h2::Exchanges::new(job))),
            Request::H3(_, config) => Http::H3(Box::new(h3::Exchanges::new(job, config, birth)?)),
        };
        Ok(Self {
            tls,
            out: Vec::new(),
            established: false,
            sending: false,
            last_received: Instant::default(),
            stall_told: false,
            replays: Vec::new(),
            http,
        })
    }

    /// The client of the connection that takes this one's place.
    ///
    /// # Errors
    /// A fault when TLS cannot begin.
    pub fn successor(&mut self, job: &Job, birth: Birth) -> Result<Self, Fault> {
        let replays = std::mem::take(&mut self.replays);
        Ok(Self { replays, ..Self::new(job, birth)? })
    }

    /// TCP is up.
    pub fn connected(&mut self, job: &Job, now: Instant) -> Step {
        self.last_received = now;
        if self.is_datagrams() {
            // The socket is there at once, and the handshake is still to come.
            return Step::Going;
        }
        match &mut self.tls {
            None => {
                self.established = true;
                Step::Established
            }
            Some(tls) => match tls.handle(&mut [], &mut self.out, |_| ()) {
                Ok(_) => Step::Going,
                Err(error) => Step::Failed(tls_fault(&error, job)),
            },
        }
    }

    /// Bytes arrived; `input` may be changed. Answered requests are written to `record`.
    #[inline]
    pub fn received(&mut self, job: &mut Job, record: &mut Record, now: Instant, input: &mut [u8]) -> Step {
        self.last_received = now;
        if self.tls.is_none() {
            return self.http.received(job, record, &mut self.replays, now, input, self.sending);
        }
        self.received_tls(job, record, now, input)
    }

    fn received_tls(&mut self, job: &mut Job, record: &mut Record, now: Instant, input: &mut [u8]) -> Step {
        let Some(tls) = &mut self.tls else { return Step::Going };
        let mut step = Step::Going;
        let state = {
            let (http, replays) = (&mut self.http, &mut self.replays);
            let (step, sending, job) = (&mut step, self.sending, &mut *job);
            tls.handle(input, &mut self.out, |plain| {
                if *step == Step::Going {
                    *step = http.received(job, record, replays, now, plain, sending);
                }
            })
        };
        if step != Step::Going {
            return step;
        }
        match state {
            Err(error) => Step::Failed(tls_fault(&error, job)),
            Ok(TlsState::Handshaking) => Step::Going,
            Ok(TlsState::Established) if !self.established => match self.check_alpn(job) {
                Ok(()) => {
                    self.established = true;
                    record.handshake(self.tls.as_ref().is_some_and(|tls| tls.resumed()));
                    Step::Established
                }
                Err(fault) => Step::Failed(fault),
            },
            Ok(TlsState::Established) => Step::Going,
            Ok(TlsState::PeerClosed) => self.http.closed(job, record, now),
        }
    }

    /// It sends and receives datagrams.
    #[inline]
    pub fn is_datagrams(&self) -> bool {
        matches!(self.http, Http::H3(_))
    }

    /// A datagram arrived, which is decrypted in place. Answered requests are written to `record`.
    #[inline]
    pub fn received_datagram(
        &mut self,
        job: &mut Job,
        record: &mut Record,
        now: Instant,
        datagram: &mut [u8],
    ) -> Step {
        self.last_received = now;
        let (Http::H3(exchanges), Request::H3(request, _)) = (&mut self.http, &job.request) else {
            return Step::Going;
        };
        let mut books = books(job, record, &mut self.replays, now);
        exchanges.received(request, datagram, &mut books, job.alpn)
    }

    /// Appends datagrams to `out`, at most `most`: all of [`Client::segment`] bytes but the last. Returns
    /// how many.
    #[inline]
    pub fn datagrams(&mut self, now: Instant, out: &mut Vec<u8>, most: usize) -> usize {
        match &mut self.http {
            Http::H3(exchanges) => exchanges.transmit(now, out, most),
            Http::H1(_) | Http::H2(_) => 0,
        }
    }

    /// Bytes of a full datagram.
    pub fn segment(&self) -> usize {
        match &self.http {
            Http::H3(exchanges) => exchanges.segment(),
            Http::H1(_) | Http::H2(_) => 0,
        }
    }

    /// When [`Client::elapse`] is to be called; connections of datagrams alone have timers of their own.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.http {
            Http::H3(exchanges) => exchanges.deadline(),
            Http::H1(_) | Http::H2(_) => None,
        }
    }

    /// Does what is due at `now`.
    pub fn elapse(&mut self, job: &Job, now: Instant) -> Step {
        match &mut self.http {
            Http::H3(exchanges) => exchanges.elapse(now, job.alpn),
            Http::H1(_) | Http::H2(_) => Step::Going,
        }
    }

    /// A datagram was too large for the path.
    pub fn shrink(&mut self) {
        if let Http::H3(exchanges) = &mut self.http {
            exchanges.shrink();
        }
    }

    /// The connection is given up in order; its last datagram says so.
    pub fn close(&mut self) {
        if let Http::H3(exchanges) = &mut self.http {
            exchanges.close();
        }
    }

    /// What QUIC counted on this connection.
    pub fn health(&self) -> Option<Health> {
        match &self.http {
            Http::H3(exchanges) => Some(exchanges.health()),
            Http::H1(_) | Http::H2(_) => None,
        }
    }

    /// Smoothed round-trip time, and the longest the server waits before it acknowledges.
    pub fn timing(&self) -> Option<(Span, Span)> {
        match &self.http {
            Http::H3(exchanges) => exchanges.round_trip().zip(exchanges.max_ack_delay()),
            Http::H1(_) | Http::H2(_) => None,
        }
    }

    /// The kind of handshake a QUIC connection had, once it is complete: requests may be sent. One datagram may
    /// bring both the end of the handshake and the end of the connection.
    pub fn quic_handshake(&self) -> Option<HandshakeSummary> {
        match &self.http {
            Http::H3(exchanges) => exchanges.handshake(),
            Http::H1(_) | Http::H2(_) => None,
        }
    }

    /// The peer closed the connection.
    pub fn closed(&mut self, job: &Job, record: &mut Record, now: Instant) -> Step {
        let frames_end_bodies = matches!(self.http, Http::H2(_)) && self.established;
        if self.tls.is_none() || frames_end_bodies {
            return self.http.closed(job, record, now);
        }
        // A close_notify would have been handled when it came. Without one the end of a
        // close-delimited body cannot be told from a cut (RFC 9112 §9.8).
        if self.established && self.http.in_flight() == 0 {
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
        if let Http::H3(exchanges) = &self.http {
            return exchanges.room();
        }
        if !self.established {
            return 0;
        }
        match &self.http {
            Http::H1(exchange) => u32::from(!exchange.outstanding),
            Http::H2(exchanges) => exchanges.room(),
            Http::H3(_) => 0,
        }
    }

    /// Begins a request, which [`Client::transmit`] will give once the connection is established.
    /// With a connection for each request this is called when the connection is begun.
    #[inline]
    pub fn begin(&mut self, job: &Job, now: Instant) {
        self.http.begin(job, Replay { started: now, replays: 0 });
    }

    /// Begins a request again that was not processed, as [`Client::has_replays`] tells.
    pub fn begin_again(&mut self, job: &Job) {
        if !self.replays.is_empty() {
            // In the order they were sent first, so that none is put off for ever.
            let replay = self.replays.remove(0);
            self.http.begin(job, replay);
        }
    }

    /// The requests begun since the last stamp were sent at `now`.
    #[inline]
    pub fn stamp(&mut self, now: Instant) {
        match &mut self.http {
            Http::H1(exchange) => exchange.started = now,
            Http::H2(exchanges) => exchanges.stamp(now),
            Http::H3(exchanges) => exchanges.stamp(now),
        }
    }

    /// What to send next; nothing while a send is under way.
    #[inline]
    pub fn transmit(&mut self, job: &Job) -> Option<Transmit> {
        if self.sending {
            return None;
        }
        match (&mut self.http, &job.request) {
            (Http::H1(exchange), Request::H1(image)) => {
                let unsent = self.established && exchange.outstanding && exchange.handed < image.len();
                if self.tls.is_none() {
                    return unsent.then(|| {
                        self.sending = true;
                        Transmit::Request(exchange.handed)
                    });
                }
                if unsent {
                    let end = image.len().min(exchange.handed + SEAL_CHUNK);
                    if seal(self.tls.as_mut(), &image[exchange.handed..end], &mut self.out) {
                        exchange.handed = end;
                    }
                }
            }
            (Http::H2(exchanges), Request::H2(request)) if self.established => {
                let output = exchanges.output(request);
                if self.tls.is_none() {
                    std::mem::swap(output, &mut self.out);
                } else if !output.is_empty() && seal(self.tls.as_mut(), output, &mut self.out) {
                    output.clear();
                }
            }
            _ => (),
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
        match (spare, &mut self.http) {
            (None, Http::H1(exchange)) => exchange.handed += bytes,
            (Some(mut spare), _) if self.out.is_empty() => {
                spare.clear();
                self.out = spare;
            }
            _ => (),
        }
    }

    /// The bytes last told as sent are still being sent.
    pub fn resume_sending(&mut self) {
        self.sending = true;
    }

    /// When the oldest request under way was sent.
    pub fn waiting_since(&self) -> Option<Instant> {
        let under_way = match &self.http {
            Http::H1(exchange) => exchange.outstanding.then_some(exchange.started),
            Http::H2(exchanges) => exchanges.oldest(),
            Http::H3(exchanges) => exchanges.oldest(),
        };
        under_way.into_iter().chain(self.replays.iter().map(|replay| replay.started)).min()
    }

    /// Requests that would fail with the connection.
    pub fn in_flight(&self) -> u32 {
        self.http.in_flight()
    }

    /// Requests wait to be sent again.
    pub fn has_replays(&self) -> bool {
        !self.replays.is_empty()
    }

    /// A response was completed on this connection.
    pub fn served(&self) -> bool {
        match &self.http {
            Http::H1(exchange) => exchange.served,
            Http::H2(exchanges) => exchanges.served,
            Http::H3(exchanges) => exchanges.served,
        }
    }

    /// Effective M, where the server has a say in it and has said it.
    pub fn limit(&self) -> Option<u32> {
        match &self.http {
            Http::H1(_) => None,
            Http::H2(exchanges) => exchanges.limit(),
            Http::H3(exchanges) => exchanges.limit(),
        }
    }

    /// Ends what was sent more than `timeout` ago.
    pub fn expire(&mut self, job: &Job, record: &mut Record, now: Instant, timeout: Span) -> Step {
        let is_late = |started: Instant| now.since(started) > timeout;
        self.replays.retain(|replay| {
            if is_late(replay.started) {
                record.failed(&late(), 1);
            }
            !is_late(replay.started)
        });
        match &mut self.http {
            Http::H1(exchange) if exchange.outstanding && is_late(exchange.started) => Step::Failed(late()),
            Http::H1(_) => Step::Going,
            Http::H3(exchanges) => {
                exchanges.expire(&mut books(job, record, &mut self.replays, now), timeout);
                if exchanges.spent() && self.replays.is_empty() { Step::Finished } else { Step::Going }
            }
            Http::H2(exchanges) => {
                exchanges.expire(&mut books(job, record, &mut self.replays, now), timeout);
                if exchanges.limit().is_none() {
                    // Without the server's limits no second stream may be opened, ever.
                    return Step::Failed(fault(Phase::Timeout, "settings", "no SETTINGS within the timeout"));
                }
                if exchanges.spent() && self.replays.is_empty() { Step::Finished } else { Step::Going }
            }
        }
    }

    /// The server has allowed no stream at all for two seconds.
    pub fn barred(&self, now: Instant) -> Option<Fault> {
        let none_left = match &self.http {
            Http::H3(exchanges) => exchanges.out_of_streams(),
            Http::H1(_) | Http::H2(_) => self.limit() == Some(0),
        };
        let barred = none_left && self.in_flight() == 0;
        (barred && now.since(self.last_received) >= STALLED).then(|| {
            let text = if self.is_datagrams() {
                "the server lets no further stream be opened (no MAX_STREAMS after the last one)"
            } else {
                "the server allows no concurrent streams (SETTINGS_MAX_CONCURRENT_STREAMS is 0)"
            };
            fault(Phase::Refused, "no-streams-allowed", text)
        })
    }

    /// What a connection waits for on which nothing arrived for two seconds with requests in flight;
    /// told once for each time.
    pub fn stall(&mut self, now: Instant) -> Option<Stall> {
        let idle = now.since(self.last_received);
        let stalled = self.in_flight() > 0 && idle >= STALLED;
        let tell = stalled && !self.stall_told;
        self.stall_told = stalled;
        tell.then(|| Stall {
            in_flight: self.in_flight(),
            idle_us: idle.as_nanos() / 1000,
            state: match &self.http {
                Http::H1(_) if self.sending => "the request is not sent to its end".into(),
                Http::H1(_) => "the request is sent, its response is not complete".into(),
                Http::H2(exchanges) => exchanges.describe(),
                Http::H3(exchanges) => exchanges.describe(),
            },
        })
    }

    /// What was negotiated, once a response was seen.
    pub fn negotiated(&self) -> Option<Negotiated> {
        let http = match &self.http {
            Http::H1(exchange) => match exchange.version? {
                Version::Http10 => "HTTP/1.0",
                Version::Http11 => "HTTP/1.1",
            },
            Http::H2(exchanges) if exchanges.served => "HTTP/2",
            Http::H3(exchanges) if exchanges.served => return Some(exchanges.negotiated()),
            Http::H2(_) | Http::H3(_) => return None,
        };
        let mut negotiated =
            Negotiated { http: http.into(), alpn: None, tls: None, cipher: None, group: None };
        if let Some(tls) = &self.tls {
            let agreed = tls.agreed();
            (negotiated.alpn, negotiated.tls) = (agreed.alpn, agreed.version);
            (negotiated.cipher, negotiated.group) = (agreed.cipher, agreed.group);
        }
        Some(negotiated)
    }

    /// Status and fields of the response, where it is sampled and its head has come.
    pub fn head(&self, job: &Job) -> Option<(u16, Vec<HeaderField>)> {
        let Transcript { status, fields } = match &self.http {
            Http::H1(_) => job.memo.transcript(),
            Http::H2(exchanges) => exchanges.transcript().cloned(),
            Http::H3(exchanges) => exchanges.transcript().cloned(),
        }?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let field = |(name, value): &(Vec<u8>, Vec<u8>)| HeaderField { name: text(name), value: text(value) };
        Some((status, fields.iter().map(field).collect()))
    }

    /// HTTP/1.1 needs no ALPN, HTTP/2 over TLS is only by ALPN (RFC 9113 §3.2).
    fn check_alpn(&self, job: &Job) -> Result<(), Fault> {
        let wanted = job.alpn;
        let chosen = self.tls.as_ref().and_then(|tls| tls.agreed().alpn);
        match chosen.as_deref() {
            None if matches!(job.request, Request::H1(_)) => Ok(()),
            Some(chosen) if chosen == wanted => Ok(()),
            chosen => Err(wrong_protocol(wanted, &format!("the server chose {}", chosen.unwrap_or("none")))),
        }
    }
}

impl Http {
    #[inline]
    fn received(
        &mut self,
        job: &mut Job,
        record: &mut Record,
        replays: &mut Vec<Replay>,
        now: Instant,
        input: &[u8],
        sending: bool,
    ) -> Step {
        match (self, &job.request) {
            (Self::H1(exchange), _) => exchange.received(job, record, now, input, sending),
            (Self::H2(exchanges), Request::H2(request)) => {
                exchanges.received(request, input, &mut books(job, record, replays, now))
            }
            // The client is made from the job, and datagrams come in by a call of their own.
            (Self::H2(_) | Self::H3(_), _) => Step::Going,
        }
    }

    fn closed(&mut self, job: &Job, record: &mut Record, now: Instant) -> Step {
        match self {
            Self::H1(exchange) => exchange.closed(job, record, now),
            Self::H2(exchanges) => exchanges.closed(),
            Self::H3(_) => Step::Going,
        }
    }

    #[inline]
    fn begin(&mut self, job: &Job, Replay { started, replays }: Replay) {
        match (self, &job.request) {
            (Self::H1(exchange), _) => exchange.begin(job.head_request, started),
            (Self::H2(exchanges), Request::H2(request)) => exchanges.begin(request, started, replays),
            (Self::H3(exchanges), Request::H3(request, _)) => exchanges.begin(request, started, replays),
            (Self::H2(_) | Self::H3(_), _) => (),
        }
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        match self {
            Self::H1(exchange) => u32::from(exchange.outstanding),
            Self::H2(exchanges) => exchanges.in_flight(),
            Self::H3(exchanges) => exchanges.in_flight(),
        }
    }
}

impl Expectation {
    /// Takes `bytes` at this offset of a body: whether they are others than expected.
    #[inline]
    fn take_body(&self, record: &mut Record, offset: u64, bytes: &[u8]) -> bool {
        match &self.body {
            Bodies::Counted => false,
            Bodies::Compared(expected) => differ_at(expected, offset, bytes),
            Bodies::Sampled(expected) => {
                record.sample_body(bytes);
                expected.as_ref().is_some_and(|expected| differ_at(expected, offset, bytes))
            }
        }
    }

    /// What of a complete response is not as expected.
    #[inline]
    fn unexpected(&self, status: u16, body: u64, differs: bool, head_request: bool) -> Option<Unexpected> {
        let status_ok = match self.status {
            Some(expected) => status == expected,
            None => (200..400).contains(&status),
        };
        if !status_ok {
            Some(Unexpected::Status(status))
        } else if head_request {
            None
        } else if self.length.is_some_and(|length| length != body)
            || self.body.expected().is_some_and(|expected| expected.len() as u64 != body)
        {
            Some(Unexpected::Length(body))
        } else if differs {
            Some(Unexpected::Body)
        } else {
            None
        }
    }
}

impl Bodies {
    #[inline]
    fn expected(&self) -> Option<&[u8]> {
        match self {
            Self::Counted => None,
            Self::Compared(expected) => Some(expected),
            Self::Sampled(expected) => expected.as_deref(),
        }
    }
}

/// Whether `bytes` at this offset of a body are others than expected.
#[inline]
fn differ_at(expected: &[u8], offset: u64, bytes: &[u8]) -> bool {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let part = from.checked_add(bytes.len()).and_then(|to| expected.get(from..to));
    part != Some(bytes)
}

#[inline]
fn books<'a>(
    job: &'a Job,
    record: &'a mut Record,
    replays: &'a mut Vec<Replay>,
    now: Instant,
) -> exchange::Books<'a> {
    let (expect, head_request) = (&job.expect, job.head_request);
    exchange::Books { expect, head_request, record, replays, now, served: false }
}

/// Appends `plain` to `out` as TLS records. This cannot fail once established; should the keys be used
/// up, requests time out and the connection is replaced.
fn seal(tls: Option<&mut Box<Tls>>, plain: &[u8], out: &mut Vec<u8>) -> bool {
    tls.is_some_and(|tls| tls.seal(plain, out).is_ok())
}

/// A fault of this phase and kind.
pub fn fault(phase: Phase, kind: &str, text: &str) -> Fault {
    Fault { phase, kind: kind.into(), text: text.into() }
}

/// The fault of a violation of HTTP, by its name and in words.
#[cold]
fn framing_fault(kind: &str, violation: &impl std::fmt::Display) -> Fault {
    fault(Phase::Framing, kind, &violation.to_string())
}

fn late() -> Fault {
    fault(Phase::Timeout, "response", "no response within the timeout")
}

fn tls_fault(error: &TlsError, job: &Job) -> Fault {
    if error.is_no_common_protocol() {
        return wrong_protocol(job.alpn, "the server has no protocol in common");
    }
    fault(Phase::Tls, &error.kind(), &error.to_string())
}

fn wrong_protocol(wanted: &str, answer: &str) -> Fault {
    fault(Phase::Tls, "wrong-protocol", &format!("asked for {wanted} by ALPN, {answer}"))
}

/// Plaintext sealed for one send.
const SEAL_CHUNK: usize = 256 * 1024;
/// A connection with requests in flight is worth a word when nothing came for so long.
const STALLED: Span = Span::from_secs(2);
