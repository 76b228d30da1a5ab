//! Owns one HTTP/3 connection over QUIC: datagrams in, datagrams out, responses told to a [`Responses`].

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::MAX_FIELD_SECTION;
use super::frame::{self, kind, setting, stream as role};
use super::request::Request;
use super::session::{Receiver, Session, Streams};
use super::stream::Stream;
use super::violation::{ErrorCode, Violation};
use crate::proto::exchange::{Failure, Responses, Transcript};
use crate::proto::qpack;
use crate::proto::quic::{self, ApplicationError, varint};
use crate::time::Instant;

/// What this side tells the server, and how far it goes.
#[derive(Clone, Debug)]
pub struct Config {
    /// M: the most streams open at one time, at least 1.
    pub most: u32,
    /// What the server's QPACK encoder may do.
    pub qpack: qpack::Config,
    /// The connection below.
    pub quic: quic::Config,
}

/// One connection.
///
/// [`Connection::transmit`] begins it. Feed what arrived to [`Connection::receive`], call
/// [`Connection::elapse`] at [`Connection::deadline`] and [`Connection::open`] while [`Connection::room`]
/// is positive, and after each of them send what [`Connection::transmit`] gives.
#[derive(Debug)]
pub struct Connection<T> {
    most: u32,
    quic: quic::Connection<Stream<T>>,
    session: Session,
    /// The stream of this side's QPACK decoder.
    decoder_stream: u64,
    /// The server's limit was told.
    told: bool,
}

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ended {
    /// By QUIC: either side closed it, or it timed out.
    #[error("{0}")]
    Quic(quic::Closed),
    /// The server broke a rule of HTTP/3.
    #[error("{0}")]
    Http(Violation),
}

impl Ended {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(&self) -> String {
        match self {
            Self::Quic(quic::Closed::ByPeer { application: true, code, .. }) => {
                format!("closed-{}", ErrorCode(*code).name())
            }
            Self::Quic(closed) => closed.kind(),
            Self::Http(violation) => violation.kind().into(),
        }
    }
}

impl<T: Default> Connection<T> {
    /// A connection that is not begun, with its control, encoder and decoder streams ready to be sent. `cid`
    /// is the connection id the server is to use; `seed` makes what else is random.
    ///
    /// # Errors
    /// When TLS cannot begin.
    pub fn new(
        config: &Config,
        tls: Arc<ClientConfig>,
        name: ServerName<'static>,
        cid: u64,
        seed: u64,
        now: Instant,
    ) -> Result<Self, rustls::Error> {
        let mut quic = quic::Connection::new(&config.quic, tls, name, cid, seed, now)?;
        quic.open_uni(&control_stream(config.qpack, seed));
        quic.open_uni(&stream_type(role::QPACK_ENCODER));
        let decoder_stream = quic.open_uni(&stream_type(role::QPACK_DECODER));
        let session = Session::new(config.qpack);
        Ok(Self { most: config.most, quic, session, decoder_stream, told: false })
    }

    /// Heads are kept in words from now on: to be called before anything is received.
    pub fn transcribe(&mut self) {
        self.session.decoder.transcribe();
    }

    /// The last head of a final response in words, where that is wanted.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.session.decoder.transcript()
    }

    /// The connection below.
    #[inline]
    pub fn quic(&self) -> &quic::Connection<Stream<T>> {
        &self.quic
    }

    /// Streams that are open.
    #[inline]
    pub fn streams(&self) -> u32 {
        self.session.open
    }

    /// Effective M: how many streams may be open at one time, by this side's limit and the server's
    /// initial_max_streams_bidi.
    pub fn limit(&self) -> u32 {
        u32::try_from(self.quic.stream_limit()).unwrap_or(u32::MAX).min(self.most)
    }

    /// True once the server's limits are known, which the handshake has.
    pub fn settled(&self) -> bool {
        self.quic.established()
    }

    /// How many streams may be opened now.
    #[inline]
    pub fn room(&self) -> u32 {
        if self.session.goaway().is_some() || !(self.quic.established() || self.quic.has_early_data()) {
            return 0;
        }
        let by_server = u32::try_from(self.quic.room()).unwrap_or(u32::MAX);
        self.most.saturating_sub(self.session.open).min(by_server)
    }

    /// True when no stream is open and none can be opened any more.
    #[inline]
    pub fn finished(&self) -> bool {
        self.session.goaway().is_some() && self.session.open == 0
    }

    /// Opens a stream with the request; [`Connection::room`] was positive. Returns its identifier.
    #[inline]
    pub fn open(&mut self, request: &Request, exchange: T) -> u64 {
        self.session.open += 1;
        self.quic.open(Stream::new(exchange), request.image())
    }

    /// Takes one UDP datagram in, which is decrypted in place.
    ///
    /// # Errors
    /// The connection is over; [`Connection::transmit`] may still have its CONNECTION_CLOSE.
    #[inline]
    pub fn receive(
        &mut self,
        now: Instant,
        request: &Request,
        datagram: &mut [u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Ended> {
        let mut receiver = Receiver { session: &mut self.session, request, responses };
        let received = self.quic.receive(now, datagram, &mut receiver);
        if let Err(closed) = received {
            return Err(self.session.violation.map_or(Ended::Quic(closed), Ended::Http));
        }
        if let Err(violation) = self.session.settle(&mut self.quic, self.decoder_stream, request, responses) {
            self.quic.close(&violation.into());
            return Err(Ended::Http(violation));
        }
        if !self.told && self.quic.established() {
            self.told = true;
            responses.limit(self.limit());
        }
        Ok(())
    }

    /// What is due at `now` is done.
    ///
    /// # Errors
    /// The connection is over.
    pub fn elapse(&mut self, now: Instant) -> Result<(), Ended> {
        self.quic.elapse(now).map_err(Ended::Quic)
    }

    /// When [`Connection::elapse`] is to be called next.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.quic.deadline()
    }

    /// Appends at most `most` datagrams to `out`, as [`quic::Connection::transmit`].
    #[inline]
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>, most: usize) -> usize {
        self.quic.transmit(now, out, most)
    }

    /// A datagram was too large for the path (EMSGSIZE).
    pub fn shrink(&mut self) {
        self.quic.shrink();
    }

    /// Ends the connection in order (H3_NO_ERROR); [`Connection::transmit`] has its CONNECTION_CLOSE.
    pub fn close(&mut self) {
        let code = ErrorCode::NO_ERROR;
        self.quic.close(&ApplicationError { code: code.0, kind: code.name(), text: String::new() });
    }

    /// The connection ended: what is open fails.
    pub fn closed(&mut self, responses: &mut impl Responses<T>) {
        self.give_up(|_| true, Failure::Closed, responses);
    }

    /// Gives up the streams that `which` picks (H3_REQUEST_CANCELLED).
    pub fn cancel(&mut self, which: impl Fn(&T) -> bool, responses: &mut impl Responses<T>) {
        self.give_up(which, Failure::Cancelled, responses);
        self.session.flush(&mut self.quic, self.decoder_stream);
    }

    fn give_up(&mut self, which: impl Fn(&T) -> bool, failure: Failure, responses: &mut impl Responses<T>) {
        let open = self.quic.streams();
        let picked: Vec<u64> = open.filter(|(_, stream)| which(&stream.exchange)).map(|(id, _)| id).collect();
        for id in picked {
            if let Some(stream) = Streams::abandon(&mut self.quic, id, ErrorCode::REQUEST_CANCELLED) {
                self.session.given_up(id);
                responses.failed(stream.exchange, failure.clone());
            }
        }
    }

    /// What the caller keeps with each open stream, in order of opening.
    pub fn exchanges(&self) -> impl Iterator<Item = &T> {
        self.quic.iter().map(|(_, stream)| &stream.exchange)
    }

    /// The same for the stream of this identifier.
    #[inline]
    pub fn exchange(&mut self, id: u64) -> Option<&mut T> {
        self.quic.stream(id).map(|stream| &mut stream.exchange)
    }

    /// The identifier of the last GOAWAY, of which streams from it on were not processed. It has no error
    /// code (RFC 9114 §7.2.6).
    pub fn goaway(&self) -> Option<u64> {
        self.session.goaway()
    }

    /// States of the streams in words, for whoever asks why nothing moves.
    pub fn describe(&self) -> String {
        use std::fmt::Write;
        let mut text = format!(
            "{}; {}; streams open {} of {}, {} more allowed now",
            self.quic.describe(0),
            if self.session.has_settings() { "settings received" } else { "no settings received" },
            self.session.open,
            self.limit(),
            self.quic.room(),
        );
        for (id, stream) in self.quic.iter().take(DESCRIBED) {
            // A String takes whatever is written.
            let _ = write!(text, "; stream {id}: {}", stream.describe());
        }
        text
    }
}

/// The start of this side's control stream: its type and SETTINGS, with one that means nothing, so that
/// servers stay used to ignoring what they do not know (RFC 9114 §7.2.4.1).
fn control_stream(config: qpack::Config, seed: u64) -> Vec<u8> {
    let mut settings = Vec::new();
    for (id, value) in [
        (setting::QPACK_MAX_TABLE_CAPACITY, config.table_capacity.into()),
        (setting::QPACK_BLOCKED_STREAMS, config.blocked_streams.into()),
        (setting::MAX_FIELD_SECTION_SIZE, MAX_FIELD_SECTION.into()),
        (frame::reserved(seed), seed >> 32),
    ] {
        varint::write(&mut settings, id);
        varint::write(&mut settings, value);
    }
    let mut out = stream_type(role::CONTROL);
    frame::write(&mut out, kind::SETTINGS, &settings);
    out
}

fn stream_type(kind: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(&mut out, kind);
    out
}

/// Streams named by [`Connection::describe`].
const DESCRIBED: usize = 8;
