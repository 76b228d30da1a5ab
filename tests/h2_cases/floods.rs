//! Servers that send without end: their connection ends, the run goes on, and memory does not grow.

use bench::load::plan::LoadPlan;
use bench::results::{Phase, Protocol};

use crate::common::answer::Answer;
use crate::common::frame::{self, Frame};
use crate::common::{Scripted, finish, in_a_process};
use crate::{MS, OK, headers};

/// What is sent again and again on stream `id`, until the client ends the connection, and the kind that
/// this is counted as.
type Flood = (&'static str, fn(u32) -> Vec<Frame>, fn(u32) -> Vec<Frame>);

fn nothing(_: u32) -> Vec<Frame> {
    Vec::new()
}

const FLOODS: &[Flood] = &[
    ("flood", nothing, |_| vec![Frame::ping([0; 8])]),
    ("flood", nothing, |_| vec![Frame::ping([0; 8]).flags(frame::ACK)]),
    ("flood", nothing, |_| vec![Frame::settings(&[])]),
    ("flood", nothing, |_| vec![Frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 1000)])]),
    ("flood", nothing, |_| vec![Frame::settings_ack()]),
    ("flood", nothing, |id| vec![Frame::priority(id)]),
    ("flood", nothing, |_| vec![Frame::new(0xee, 0, 0, b"unknown")]),
    ("flood", nothing, |_| vec![Frame::window_update(0, 1)]),
    ("flood", nothing, |id| vec![Frame::window_update(id, 1)]),
    ("flood", |id| vec![Frame::reset(id, frame::INTERNAL_ERROR)], |id| vec![Frame::reset(id, 2)]),
    ("flood", |id| vec![headers(id, &[OK])], |id| vec![Frame::data(id, b"", false)]),
    ("flood", |id| vec![headers(id, &[OK])], |id| vec![Frame::data(id, b"", false).padded(255)]),
    ("flood", |id| vec![Frame::data(id, b"early", false)], |id| vec![Frame::data(id, b"more", false)]),
    ("flood", |id| vec![Frame::data(id, b"early", false)], |id| vec![headers(id, &[OK])]),
    ("flood", |_| vec![Frame::goaway(0x7fff_ffff, 0)], |_| vec![Frame::goaway(0x7fff_ffff, 0)]),
    (
        "field-block-too-long",
        |id| vec![headers(id, &[OK]).flags(0)],
        |id| vec![Frame::continuation(id, b"", false)],
    ),
    (
        "field-block-too-long",
        |id| vec![headers(id, &[OK]).flags(0)],
        |id| vec![Frame::continuation(id, &[0; 16_384], false)],
    ),
];

fn flood((_, first, again): Flood) -> Scripted {
    Scripted::http2(Protocol::H2c, move |h2| {
        h2.settings(&[]);
        if h2.conn.index > 0 {
            return h2.always(&Answer::hello());
        }
        let Some(asked) = h2.request() else { return };
        let id = asked.stream;
        h2.send(&first(id));
        let flood: Vec<Frame> = (0..100).flat_map(|_| again(id)).collect();
        while h2.send(&flood) {}
    })
}

/// Ten requests. A flood that is not seen as one ends by time.
fn patient(server: &Scripted, concurrency: u32) -> LoadPlan {
    LoadPlan { timeout_ns: 3000 * MS, ..server.multiplexed(concurrency, 10) }
}

/// A flood ends as a violation of its connection, in little time.
#[test]
fn a_flood_ends_its_connection_and_not_the_run() {
    let mut wrong = Vec::new();
    for (row, &(kind, first, again)) in FLOODS.iter().enumerate() {
        let server = flood((kind, first, again));
        let m = finish(&server, &patient(&server, 1));
        assert_eq!((m.requests.ok + m.requests.failed, m.requests.unfinished), (10, 0));
        // What opens some floods is itself the end of a request.
        let ended_before = m.errors.iter().filter(|e| e.kind != kind && e.phase != Phase::Timeout).count();
        let flooded = m.errors.iter().any(|e| e.kind == kind && e.phase == Phase::Framing);
        if !flooded || m.errors.len() != 1 + ended_before || m.requests.failed > 2 {
            wrong.push(format!("row {row}, {kind}: {:?}", m.errors));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The memory of a generator that is flooded is that of one that is not, and the receive buffers of its
/// ring, which are as many whatever comes.
#[test]
fn memory_stays_flat_under_floods() {
    let peak = |server: &Scripted| {
        let m = in_a_process(&patient(server, 4));
        assert!(m.requests.ok > 0, "{:?}", m.errors);
        m.generator.peak_rss_kib
    };
    let calm = peak(&Scripted::http2(Protocol::H2c, |h2| {
        h2.settings(&[]);
        h2.always(&Answer::hello());
    }));
    for &row in FLOODS {
        let flooded = peak(&flood(row));
        assert!(flooded < calm + RING_KIB, "{}: {flooded} KiB, {calm} KiB without", row.0);
    }
}

/// More than the receive buffers take when all of them have been written to. A flood of a second that was
/// kept would take gigabytes.
const RING_KIB: u64 = 64 * 1024;
