//! The generator against scripted HTTP/3 servers: what RFC 9114, 9204 and 9000 allow and clients get
//! wrong, what they forbid, and what is only meant to harm. The books of both sides are compared; the
//! scripted server checks the client by the RFC with every frame.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod broken;
mod connections;
mod foreign;
mod handshakes;
mod limits;
mod malformed;
mod transport;
mod windows;

use common::h3::H3;
use common::h3::wire;

const MS: u64 = 1_000_000;

/// `:status: 200`.
const OK: (&str, &[u8]) = (":status", b"200");

/// Answers with `Hello, World!` in frames of this test's, in front of which and behind which others stand.
fn hello_frames() -> [Vec<u8>; 2] {
    [wire::headers(&[OK, ("content-length", b"14")]), wire::data(b"Hello, World!\n")]
}

/// Sends an answer made by hand.
fn send_answer(h3: &mut H3, id: u32, bytes: &[u8]) -> bool {
    h3.count_answer();
    h3.send(id, bytes, true)
}
