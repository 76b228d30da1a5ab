//! The generator against scripted HTTP/3 servers: what RFC 9114, 9204 and 9000 allow and clients get
//! wrong, what they forbid, and what is only meant to harm. The books of both sides are compared; the
//! scripted server checks the client by the RFC with every frame.

#[path = "../common/mod.rs"]
mod common;

mod foreign;
