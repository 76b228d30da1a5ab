//! The generator against scripted HTTP/2 servers: what RFC 9113 allows and clients get wrong, what it
//! forbids, and what is only meant to harm. The books of both sides are compared; the scripted server
//! checks the client by the RFC with every frame.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod broken;
mod connections;
mod floods;
mod limits;
mod malformed;
mod windows;

use common::books::{all_ok, pattern, upload};
use common::frame::Frame;
use common::hpack::{self, Literal};

const MS: u64 = 1_000_000;

/// `:status: 200`.
const OK: (&str, &[u8]) = (":status", b"200");

/// A field as the encoder takes it.
fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.into(), value.into())
}

/// A block of these fields, each a literal that is not indexed.
fn block(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        hpack::literal(Literal::Plain, None, name, value, &mut block);
    }
    block
}

/// HEADERS of these fields; the body or the trailers follow.
fn headers(id: u32, fields: &[(&str, &[u8])]) -> Frame {
    Frame::headers(id, &block(fields), false)
}

/// HEADERS of these fields, with END_STREAM.
fn last_headers(id: u32, fields: &[(&str, &[u8])]) -> Frame {
    Frame::headers(id, &block(fields), true)
}
