//! Owns what tests of more than one protocol ask of a run and of the books of both sides.

use bench::load::plan::LoadPlan;
use bench::results::Measurement;

use super::{Scripted, base64};

/// One connection with M requests in flight, so many in all, with a body to be sent.
pub(crate) fn upload(server: &Scripted, concurrency: u32, count: u64, body: &[u8]) -> LoadPlan {
    let mut plan = server.multiplexed(concurrency, count);
    plan.request.method = "POST".into();
    plan.request.body = base64(body);
    plan
}

/// `count` requests are ok and nothing else happened, by both sides' books.
pub(crate) fn all_ok(m: &Measurement, server: &Scripted, count: u64) {
    assert_eq!((m.requests.ok, m.requests.failed), (count, 0), "{:?}: {:?}", m.protocol, m.errors);
    assert_eq!(m.lifetime.ok, server.answered(), "{:?}", m.protocol);
    assert_eq!((m.connection.opened, m.connection.reopened), (1, 0), "{:?}", m.protocol);
    assert_eq!((server.goaways(), server.closes()), (vec![], vec![]), "{:?}", m.protocol);
}

/// Bytes that are at no place what they are at another.
pub(crate) fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}
