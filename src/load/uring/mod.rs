//! Owns everything unsafe in the program: the `io_uring` instance of a worker, the memory it shares
//! with the kernel, and the sockets in it. The rest of the program sees safe calls only.
//!
//! The rule that makes them safe: whatever a submitted operation points at (addresses, request
//! images, bytes being sent, receive buffers) is owned by the [`Ring`] and lives as long as it does,
//! or until the operation's completion was taken.

#![allow(unsafe_code, reason = "the one place where memory is shared with the kernel")]

mod buffers;
mod datagrams;
mod features;
mod ring;
mod socket;
mod token;

pub use datagrams::{DatagramOptions, DatagramSocket, Datagrams, MOST_DATAGRAM_BYTES, MOST_SEGMENTS};
pub use features::{DatagramFeatures, Features, RingError};
pub use ring::{Completion, Config, ImageId, Ring, Waker};
pub use socket::Address;
pub use token::{Op, Token};
