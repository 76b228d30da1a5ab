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

use bench::load::plan::LoadPlan;
use bench::results::Measurement;
use common::frame::Frame;
use common::hpack::{self, Literal};
use common::{Scripted, base64};

const MS: u64 = 1_000_000;

/// `:status: 200`.
const OK: (&str, &[u8]) = (":status", b"200");

/// One connection with M requests in flight, so many in all, with a body to be sent.
fn upload(server: &Scripted, concurrency: u32, count: u64, body: &[u8]) -> LoadPlan {
    let mut plan = server.multiplexed(concurrency, count);
    plan.request.method = "POST".into();
    plan.request.body = base64(body);
    plan
}

/// `count` requests are ok and nothing else happened, by both sides' books.
fn all_ok(m: &Measurement, server: &Scripted, count: u64) {
    assert_eq!((m.requests.ok, m.requests.failed), (count, 0), "{:?}: {:?}", m.protocol, m.errors);
    assert_eq!(m.lifetime.ok, server.answered(), "{:?}", m.protocol);
    assert_eq!((m.connection.opened, m.connection.reopened), (1, 0), "{:?}", m.protocol);
    assert_eq!(server.goaways(), [0u32; 0], "{:?}", m.protocol);
}

/// Bytes that are at no place what they are at another.
fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

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
