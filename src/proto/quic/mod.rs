//! Owns QUIC version 1 as a client (RFC 9000, 9001, 9002), sans-I/O: datagrams and a time in; datagrams,
//! stream data and a deadline out. Handshake, key schedule and packet protection are rustls'.
//!
//! What is carried is the business of an [`Application`], which keeps a value of its own with each
//! bidirectional stream.

mod assembler;
mod cids;
mod connection;
mod frame;
mod fuzz;
mod keys;
mod packet;
mod parameters;
mod ranges;
mod recovery;
mod space;
mod streams;
mod transmit;
pub mod varint;
mod violation;

pub use connection::{Config, Connection, HandshakeSummary};
#[doc(hidden)]
pub use fuzz::{fuzz_frames, fuzz_packets};
pub use parameters::{ParameterError, Parameters, fuzz_parameters};
pub use violation::{Closed, Violation};

/// Where what arrives on streams goes.
pub trait Application<S> {
    /// Bytes of a bidirectional stream that this side opened, in order and without gaps; `fin`: they
    /// are the last.
    ///
    /// # Errors
    /// What ends the connection.
    fn data(
        &mut self,
        stream: &mut S,
        id: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Result<Progress, ApplicationError>;

    /// The peer reset its part of a bidirectional stream (RESET_STREAM).
    ///
    /// # Errors
    /// What ends the connection.
    fn reset(&mut self, stream: &mut S, id: u64, code: u64) -> Result<Progress, ApplicationError>;

    /// The peer wants no more of a bidirectional stream (STOP_SENDING); it was reset in this direction
    /// with the same code if it was not sent to its end.
    ///
    /// # Errors
    /// What ends the connection.
    fn stopped(&mut self, stream: &mut S, id: u64, code: u64) -> Result<Progress, ApplicationError>;

    /// Bytes of a unidirectional stream of the peer, in order and without gaps.
    ///
    /// # Errors
    /// What ends the connection.
    fn uni_data(&mut self, id: u64, bytes: &[u8], fin: bool) -> Result<(), ApplicationError>;

    /// The peer reset one of its unidirectional streams.
    ///
    /// # Errors
    /// What ends the connection.
    fn uni_reset(&mut self, id: u64, code: u64) -> Result<(), ApplicationError>;

    /// The peer wants no more of a unidirectional stream that this side opened (STOP_SENDING).
    ///
    /// # Errors
    /// What ends the connection.
    fn uni_stopped(&mut self, id: u64, code: u64) -> Result<(), ApplicationError>;
}

/// What becomes of a bidirectional stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More is expected.
    More,
    /// Nothing more is wanted of it: what still arrives is dropped, what is to be sent is still sent.
    Done,
    /// It is given up: RESET_STREAM and STOP_SENDING with this code go out, where they have a meaning.
    Abandon(u64),
}

/// An error of the application that ends the connection (CONNECTION_CLOSE of type 0x1d).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationError {
    /// Error code of the application.
    pub code: u64,
    /// Stable name of what was violated, in kebab-case.
    pub kind: &'static str,
    /// In words.
    pub text: String,
}

/// What the QUIC connection counted since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Health {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Of these: acknowledged after all.
    pub spurious_losses: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Retry packets honoured.
    pub retries: u64,
    /// Packets that could not be decrypted, or belonged elsewhere.
    pub stray_packets: u64,
    /// Packets received twice.
    pub duplicate_packets: u64,
    /// Key updates by either side.
    pub key_updates: u64,
}

impl Health {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            datagrams_sent: of(self.datagrams_sent, other.datagrams_sent),
            datagrams_received: of(self.datagrams_received, other.datagrams_received),
            packets_lost: of(self.packets_lost, other.packets_lost),
            spurious_losses: of(self.spurious_losses, other.spurious_losses),
            probe_timeouts: of(self.probe_timeouts, other.probe_timeouts),
            retries: of(self.retries, other.retries),
            stray_packets: of(self.stray_packets, other.stray_packets),
            duplicate_packets: of(self.duplicate_packets, other.duplicate_packets),
            key_updates: of(self.key_updates, other.key_updates),
        }
    }
}
