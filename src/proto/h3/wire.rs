//! Owns a stand-in for QUIC: the streams of one connection in memory, for the fuzz target and the tests.

use std::collections::BTreeMap;

use super::request::Request;
use super::session::{Receiver, Session, Streams};
use super::stream::Stream;
use super::violation::{ErrorCode, Violation};
use crate::proto::exchange::{Failure, Responses};
use crate::proto::qpack;
use crate::proto::quic::{Application, ApplicationError, Progress};

/// A connection without packets.
pub(super) struct Wire<T> {
    pub(super) session: Session,
    pub(super) streams: Memory<T>,
    request: Request,
    next: u64,
}

/// The streams.
pub(super) struct Memory<T> {
    pub(super) open: BTreeMap<u64, Stream<T>>,
    /// Streams given up, with their codes.
    pub(super) abandoned: Vec<(u64, ErrorCode)>,
    /// Sent on the stream of this side's decoder.
    pub(super) instructions: Vec<u8>,
}

/// What arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event<'a> {
    /// Bytes of a stream of either kind, and whether they are the last.
    Data(u64, &'a [u8], bool),
    /// RESET_STREAM.
    Reset(u64, u64),
    /// STOP_SENDING.
    Stopped(u64, u64),
}

impl<T: Default> Wire<T> {
    pub(super) fn new(config: qpack::Config, request: Request) -> Self {
        let streams = Memory { open: BTreeMap::new(), abandoned: Vec::new(), instructions: Vec::new() };
        Self { session: Session::new(config), streams, request, next: 0 }
    }

    /// Opens a request stream.
    pub(super) fn open(&mut self, exchange: T) -> u64 {
        let id = self.next;
        self.next += 4;
        self.session.open += 1;
        self.streams.open.insert(id, Stream::new(exchange));
        id
    }

    /// Hands on what arrives, as the QUIC connection does after a datagram.
    pub(super) fn deliver<R: Responses<T>>(
        &mut self,
        event: Event<'_>,
        responses: &mut R,
    ) -> Result<(), Violation> {
        if let Err(error) = self.hand_on(event, responses) {
            let violation = self.session.violation.expect("it is noted");
            assert_eq!(error, violation.into());
            return Err(violation);
        }
        self.session.settle(&mut self.streams, DECODER_STREAM, &self.request, responses)
    }

    fn hand_on<R: Responses<T>>(
        &mut self,
        event: Event<'_>,
        responses: &mut R,
    ) -> Result<(), ApplicationError> {
        let mut receiver = Receiver { session: &mut self.session, request: &self.request, responses };
        let (Event::Data(id, ..) | Event::Reset(id, _) | Event::Stopped(id, _)) = event;
        if id & 3 != 0 {
            let unidirectional: &mut dyn Application<Stream<T>> = &mut receiver;
            return match event {
                Event::Data(id, bytes, fin) => unidirectional.uni_data(id, bytes, fin),
                Event::Reset(id, code) => unidirectional.uni_reset(id, code),
                Event::Stopped(id, code) => unidirectional.uni_stopped(id, code),
            };
        }
        let Some(stream) = self.streams.open.get_mut(&id) else { return Ok(()) };
        let progress = match event {
            Event::Data(id, bytes, fin) => receiver.data(stream, id, bytes, fin),
            Event::Reset(id, code) => receiver.reset(stream, id, code),
            Event::Stopped(id, code) => receiver.stopped(stream, id, code),
        };
        match progress? {
            Progress::More => {}
            Progress::Done => {
                self.streams.open.remove(&id);
            }
            Progress::Abandon(code) => {
                self.streams.abandon(id, ErrorCode(code));
            }
        }
        Ok(())
    }

    /// The connection ended.
    pub(super) fn closed(&mut self, responses: &mut impl Responses<T>) {
        for (id, stream) in std::mem::take(&mut self.streams.open) {
            self.session.given_up(id);
            responses.failed(stream.exchange, Failure::Closed);
        }
    }
}

impl<T> Streams<Stream<T>> for Memory<T> {
    fn stream(&mut self, id: u64) -> Option<&mut Stream<T>> {
        self.open.get_mut(&id)
    }

    fn open_from(&mut self, least: u64) -> Vec<u64> {
        self.open.range(least..).map(|(id, _)| *id).collect()
    }

    fn abandon(&mut self, id: u64, code: ErrorCode) -> Option<Stream<T>> {
        self.abandoned.push((id, code));
        self.open.remove(&id)
    }

    fn append(&mut self, id: u64, bytes: &[u8]) {
        assert_eq!(id, DECODER_STREAM, "nothing else is ever added to");
        self.instructions.extend_from_slice(bytes);
    }
}

/// This side's control stream is 2, its encoder's is 6.
const DECODER_STREAM: u64 = 10;
