//! Owns the state of a connection that is not a request's: the peer's control, encoder and decoder streams,
//! streams that wait for insertions, GOAWAY (RFC 9114 §5.2, §6.2, §7.2; RFC 9204 §4.2).

use super::control::Control;
use super::frame::{Partial, stream as role};
use super::request::Request;
use super::stream::{Fault, Reader, Stream};
use super::violation::{ErrorCode, Violation};
use super::{MAX_FIELD_SECTION, MAX_IDLE_FRAMES};
use crate::proto::exchange::{Failure, Responses};
use crate::proto::qpack::{self, Decoder, PeerDecoder, QpackError};
use crate::proto::quic::{self, Application, ApplicationError, Progress};

/// Where the streams of a connection are: what [`Session`] needs of QUIC between datagrams.
pub(super) trait Streams<S> {
    /// What is kept with an open request stream.
    fn stream(&mut self, id: u64) -> Option<&mut S>;
    /// Request streams that are open, from this identifier on, in order.
    fn open_from(&mut self, least: u64) -> Vec<u64>;
    /// Gives a request stream up.
    fn abandon(&mut self, id: u64, code: ErrorCode) -> Option<S>;
    /// Sends more on a unidirectional stream of this side.
    fn append(&mut self, id: u64, bytes: &[u8]);
}

impl<S> Streams<S> for quic::Connection<S> {
    fn stream(&mut self, id: u64) -> Option<&mut S> {
        self.stream(id)
    }

    fn open_from(&mut self, least: u64) -> Vec<u64> {
        self.streams().map(|(id, _)| id).filter(|id| *id >= least).collect()
    }

    fn abandon(&mut self, id: u64, code: ErrorCode) -> Option<S> {
        self.abandon(id, code.0)
    }

    fn append(&mut self, id: u64, bytes: &[u8]) {
        self.append(id, bytes);
    }
}

/// What is known of a connection besides its request streams.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) decoder: Decoder,
    peer_decoder: PeerDecoder,
    control: Control,
    incoming: Vec<Incoming>,
    /// Streams whose field section waits for insertions, at most as many as was advertised.
    blocked: Vec<Blocked>,
    /// Request streams that are open.
    pub(super) open: u32,
    /// Frames and streams in a row that moved no request on.
    idle: u32,
    /// What [`Session::settle`] has to see to came in.
    unsettled: bool,
    /// What ended the connection.
    pub(super) violation: Option<Violation>,
}

/// A unidirectional stream of the peer.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    id: u64,
    role: Role,
    /// Of its type, or of a frame's.
    partial: Partial,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// Its type has not come.
    Untyped,
    Control,
    Encoder,
    Decoder,
    /// Of a type nobody knows: read and dropped.
    Ignored,
}

#[derive(Clone, Copy, Debug)]
struct Blocked {
    stream: u64,
    required: u64,
}

impl Session {
    pub(super) fn new(config: qpack::Config) -> Self {
        Self {
            decoder: Decoder::new(config, MAX_FIELD_SECTION),
            peer_decoder: PeerDecoder::default(),
            control: Control::default(),
            incoming: Vec::new(),
            blocked: Vec::new(),
            open: 0,
            idle: 0,
            unsettled: false,
            violation: None,
        }
    }

    /// The server's SETTINGS have come.
    pub(super) fn has_settings(&self) -> bool {
        self.control.has_settings()
    }

    /// The identifier of the last GOAWAY: streams from it on were not processed.
    #[inline]
    pub(super) fn goaway(&self) -> Option<u64> {
        self.control.goaway()
    }

    /// One more frame or stream that moved no request on.
    pub(super) fn idle(&mut self) -> Result<(), Violation> {
        self.idle += 1;
        if self.idle > MAX_IDLE_FRAMES { Err(Violation::Flood) } else { Ok(()) }
    }

    /// A request was moved on.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.idle = 0;
    }

    /// A field section of this stream waits for insertions.
    pub(super) fn block(&mut self, stream: u64, required: u64) -> Result<(), QpackError> {
        let most = usize::try_from(self.decoder.config().blocked_streams).unwrap_or(usize::MAX);
        if self.blocked.len() >= most {
            return Err(QpackError::BlockedStreams);
        }
        self.blocked.push(Blocked { stream, required });
        // The insertions may have come while the stream was read, and are then not heard of again.
        self.unsettled = true;
        Ok(())
    }

    /// A request stream ended with its response.
    #[inline]
    pub(super) fn completed(&mut self) {
        self.open -= 1;
    }

    /// A request stream ended without its response: none of its field sections are read any more.
    #[cold]
    pub(super) fn given_up(&mut self, id: u64) {
        self.open -= 1;
        self.blocked.retain(|blocked| blocked.stream != id);
        self.decoder.cancel(id);
        self.unsettled = true;
    }

    /// Sees to what came of one stream and concerns others: blocked sections whose insertions have come,
    /// streams that a GOAWAY leaves out, instructions for the peer's encoder on the stream `out`.
    ///
    /// # Errors
    /// A connection error, which is also kept.
    #[inline]
    pub(super) fn settle<T: Default, R: Responses<T>>(
        &mut self,
        streams: &mut impl Streams<Stream<T>>,
        out: u64,
        request: &Request,
        responses: &mut R,
    ) -> Result<(), Violation> {
        if !std::mem::take(&mut self.unsettled) && !self.decoder.has_output() {
            return Ok(());
        }
        let done = self.unblock(streams, request, responses);
        if let Err(violation) = done {
            self.violation = Some(violation);
            return done;
        }
        self.refuse(streams, responses);
        self.flush(streams, out);
        Ok(())
    }

    #[cold]
    fn unblock<T: Default, R: Responses<T>>(
        &mut self,
        streams: &mut impl Streams<Stream<T>>,
        request: &Request,
        responses: &mut R,
    ) -> Result<(), Violation> {
        // A stream may block again with its trailers, or be unblocked while others are read.
        while let Some(at) =
            self.blocked.iter().position(|blocked| blocked.required <= self.decoder.inserted())
        {
            let id = self.blocked.remove(at).stream;
            let Some(stream) = streams.stream(id) else { continue };
            let mut reader = Reader { session: self, id, head: request.is_head(), responses };
            let done = reader.unblock(stream);
            let code = match done {
                Ok(false) => continue,
                Ok(true) => {
                    self.completed();
                    responses.complete(std::mem::take(&mut stream.exchange));
                    ErrorCode::NO_ERROR
                }
                Err(Fault::Stream(violation)) => {
                    self.given_up(id);
                    responses.failed(std::mem::take(&mut stream.exchange), violation.into());
                    violation.code()
                }
                Err(Fault::Connection(violation)) => return Err(violation),
            };
            streams.abandon(id, code);
        }
        Ok(())
    }

    /// Streams that were not processed may be sent again (RFC 9114 §5.2).
    #[cold]
    fn refuse<T, R: Responses<T>>(&mut self, streams: &mut impl Streams<Stream<T>>, responses: &mut R) {
        let fresh = self.control.take_goaways();
        let Some(least) = self.control.goaway().filter(|_| fresh > 0) else { return };
        for _ in 0..fresh {
            responses.goaway();
        }
        for id in streams.open_from(least) {
            if let Some(stream) = streams.abandon(id, ErrorCode::REQUEST_CANCELLED) {
                self.given_up(id);
                responses.failed(stream.exchange, Failure::Refused);
            }
        }
    }

    /// Sends what the decoder has to say.
    pub(super) fn flush<S>(&mut self, streams: &mut impl Streams<S>, out: u64) {
        let output = self.decoder.output();
        if !output.is_empty() {
            streams.append(out, output);
            output.clear();
        }
    }

    fn incoming(&mut self, id: u64, mut bytes: &[u8], fin: bool) -> Result<(), Violation> {
        let at = match self.incoming.iter().position(|incoming| incoming.id == id) {
            Some(at) => at,
            None => {
                self.idle()?;
                self.incoming.push(Incoming { id, role: Role::Untyped, partial: Partial::default() });
                self.incoming.len() - 1
            }
        };
        if self.incoming[at].role == Role::Untyped
            && let Some(kind) = self.incoming[at].partial.integer(&mut bytes)
        {
            self.incoming[at].role = self.role(kind)?;
        }
        match self.incoming[at].role {
            Role::Control => {
                let idle = self.control.receive(&mut self.incoming[at].partial, bytes)?;
                for _ in 0..idle {
                    self.idle()?;
                }
                self.unsettled = true;
            }
            Role::Encoder => {
                self.decoder.receive(bytes)?;
                self.unsettled = true;
            }
            Role::Decoder => self.peer_decoder.receive(bytes)?,
            Role::Untyped | Role::Ignored => {}
        }
        if fin { self.incoming_closed(id) } else { Ok(()) }
    }

    /// What a stream of this type is for.
    fn role(&self, kind: u64) -> Result<Role, Violation> {
        let role = match kind {
            role::CONTROL => Role::Control,
            role::QPACK_ENCODER => Role::Encoder,
            role::QPACK_DECODER => Role::Decoder,
            role::PUSH => return Err(Violation::Push),
            _ => return Ok(Role::Ignored),
        };
        let taken = self.incoming.iter().any(|incoming| incoming.role == role);
        if taken { Err(Violation::RepeatedStream) } else { Ok(role) }
    }

    /// A stream of the peer ended. One that ends before its type has come is no fault (RFC 9114 §6.2).
    fn incoming_closed(&mut self, id: u64) -> Result<(), Violation> {
        let Some(at) = self.incoming.iter().position(|incoming| incoming.id == id) else { return Ok(()) };
        match self.incoming.swap_remove(at).role {
            Role::Untyped | Role::Ignored => Ok(()),
            Role::Control | Role::Encoder | Role::Decoder => Err(Violation::ClosedCriticalStream),
        }
    }

    /// Notes a connection error and gives it to QUIC.
    #[cold]
    fn end(&mut self, violation: Violation) -> ApplicationError {
        self.violation = Some(violation);
        violation.into()
    }
}

/// Takes what arrives on the streams of a connection.
pub(super) struct Receiver<'a, R> {
    pub(super) session: &'a mut Session,
    pub(super) request: &'a Request,
    pub(super) responses: &'a mut R,
}

impl<T: Default, R: Responses<T>> Application<Stream<T>> for Receiver<'_, R> {
    #[inline]
    fn data(
        &mut self,
        stream: &mut Stream<T>,
        id: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Result<Progress, ApplicationError> {
        let head = self.request.is_head();
        let mut reader = Reader { session: self.session, id, head, responses: self.responses };
        match reader.read(stream, bytes, fin) {
            Ok(false) => Ok(Progress::More),
            Ok(true) => {
                self.session.completed();
                self.responses.complete(std::mem::take(&mut stream.exchange));
                Ok(Progress::Done)
            }
            Err(Fault::Stream(violation)) => {
                self.session.given_up(id);
                self.responses.failed(std::mem::take(&mut stream.exchange), violation.into());
                Ok(Progress::Abandon(violation.code().0))
            }
            Err(Fault::Connection(violation)) => Err(self.session.end(violation)),
        }
    }

    #[cold]
    fn reset(&mut self, stream: &mut Stream<T>, id: u64, code: u64) -> Result<Progress, ApplicationError> {
        self.session.given_up(id);
        self.responses.failed(std::mem::take(&mut stream.exchange), ErrorCode(code).into());
        Ok(Progress::Abandon(ErrorCode::REQUEST_CANCELLED.0))
    }

    /// The server answers, or has answered, without reading all of the request (RFC 9114 §4.1.1); should it not
    /// want to answer, it says so by a reset of its own part.
    #[cold]
    fn stopped(&mut self, _: &mut Stream<T>, _: u64, _: u64) -> Result<Progress, ApplicationError> {
        Ok(Progress::More)
    }

    #[cold]
    fn uni_data(&mut self, id: u64, bytes: &[u8], fin: bool) -> Result<(), ApplicationError> {
        self.session.incoming(id, bytes, fin).map_err(|violation| self.session.end(violation))
    }

    #[cold]
    fn uni_reset(&mut self, id: u64, _: u64) -> Result<(), ApplicationError> {
        self.session.incoming_closed(id).map_err(|violation| self.session.end(violation))
    }

    /// All that this side opens have to stay (RFC 9114 §6.2.1, RFC 9204 §4.2).
    #[cold]
    fn uni_stopped(&mut self, _: u64, _: u64) -> Result<(), ApplicationError> {
        Err(self.session.end(Violation::ClosedCriticalStream))
    }
}
