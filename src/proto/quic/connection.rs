//! Owns a QUIC connection of a client: its packet number spaces, its streams, its end.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::{Application, ApplicationError, Health};
use crate::time::Instant;

/// Settings of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest UDP payload to send, at least 1200 bytes.
    pub payload: u16,
    /// Unidirectional streams the peer may open.
    pub uni_streams: u64,
}

/// A connection; `S` is what the application keeps with each bidirectional stream it opened.
#[derive(Debug)]
pub struct Connection<S> {
    streams: Vec<S>,
}

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closed {
    /// Stable name in kebab-case.
    pub kind: String,
    /// In words.
    pub text: String,
}

impl<S> Connection<S> {
    /// A connection that is not begun; [`Connection::transmit`] begins it. `cid` is the connection id
    /// the peer is to use, 8 bytes; `seed` makes the rest.
    ///
    /// # Errors
    /// When TLS cannot begin.
    pub fn new(
        _config: &Config,
        _tls: Arc<ClientConfig>,
        _name: ServerName<'static>,
        _cid: u64,
        _seed: u64,
        _now: Instant,
    ) -> Result<Self, rustls::Error> {
        unimplemented!()
    }

    /// Takes one UDP datagram in, which is decrypted in place.
    ///
    /// # Errors
    /// The connection is over; [`Connection::transmit`] may still have its CONNECTION_CLOSE.
    pub fn receive(
        &mut self,
        _now: Instant,
        _datagram: &mut [u8],
        _application: &mut impl Application<S>,
    ) -> Result<(), Closed> {
        unimplemented!()
    }

    /// What is due at `now` is done: losses, probes, delayed acknowledgements, the idle timeout.
    ///
    /// # Errors
    /// The connection is over.
    pub fn elapse(&mut self, _now: Instant) -> Result<(), Closed> {
        unimplemented!()
    }

    /// When [`Connection::elapse`] is to be called next.
    pub fn deadline(&self) -> Option<Instant> {
        unimplemented!()
    }

    /// Appends datagrams to `out`, at most `most`: all of [`Connection::segment`] bytes except the last,
    /// which may be shorter. Returns how many; 0: nothing to send now.
    pub fn transmit(&mut self, _now: Instant, _out: &mut Vec<u8>, _most: usize) -> usize {
        unimplemented!()
    }

    /// The handshake is complete (not: confirmed).
    pub fn established(&self) -> bool {
        unimplemented!()
    }

    /// Streams may be opened before the handshake is complete: their data goes out as 0-RTT.
    pub fn has_early_data(&self) -> bool {
        unimplemented!()
    }

    /// Bidirectional streams that the peer's limit lets this side open now.
    pub fn room(&self) -> u64 {
        unimplemented!()
    }

    /// Bidirectional streams that the peer lets be open at one time: its initial_max_streams_bidi
    /// (RFC 9000 §18.2), the remembered one before the handshake is complete.
    pub fn stream_limit(&self) -> u64 {
        unimplemented!()
    }

    /// Opens a bidirectional stream, sends `image` on it and ends it. To be called when there is room.
    pub fn open(&mut self, _stream: S, _image: &Arc<[u8]>) -> u64 {
        unimplemented!()
    }

    /// Opens a unidirectional stream and sends `bytes`. It is never ended.
    pub fn open_uni(&mut self, _bytes: &[u8]) -> u64 {
        unimplemented!()
    }

    /// Sends more on a unidirectional stream.
    pub fn append(&mut self, _id: u64, _bytes: &[u8]) {
        unimplemented!()
    }

    /// Gives a bidirectional stream up (RESET_STREAM, STOP_SENDING) and returns what was kept with it;
    /// `None` when it is over.
    pub fn abandon(&mut self, _id: u64, _code: u64) -> Option<S> {
        unimplemented!()
    }

    /// What is kept with a bidirectional stream that is not done.
    pub fn stream(&mut self, _id: u64) -> Option<&mut S> {
        unimplemented!()
    }

    /// Every bidirectional stream that is not done, in order of opening.
    pub fn streams(&mut self) -> impl Iterator<Item = (u64, &mut S)> {
        self.streams.iter_mut().map(|stream| (0, stream))
    }

    /// Ends the connection with an error of the application, or with `code` for none.
    pub fn close(&mut self, _error: &ApplicationError) {
        unimplemented!()
    }

    /// What was counted so far.
    pub fn health(&self) -> Health {
        unimplemented!()
    }
}
