//! Owns the protocols, sans-I/O: bytes and a time in; bytes, events and deadlines out. No socket,
//! file, thread or clock is touched below this module.

pub mod exchange;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod hpack;
pub mod qpack;
pub mod quic;
pub mod request;
pub mod tls;
