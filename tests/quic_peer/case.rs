//! Owns cases: what a seed makes of the path, the server and the requests.

use std::ops::Range;

use crate::common::random::Random;

/// What cases are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Delay, and nothing else.
    Good,
    /// Some of everything a path can do.
    Bad,
    /// Much of it.
    Terrible,
    /// Bad, and dark for some time.
    Dark,
    /// Dark for ever from some time on.
    Ending,
    /// Bad, with a server that resets streams, stops them, or closes.
    Hostile,
    /// Bad, and the requests leave as early data.
    Early,
}

/// One run of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    pub(crate) path: Path,
    /// Requests in all, and at one time.
    pub(crate) requests: u64,
    pub(crate) concurrency: u64,
    /// Bytes of each request's body.
    pub(crate) upload: usize,
    /// Bytes of the answers to the first, the second, ..., and then from the beginning.
    pub(crate) answers: Vec<usize>,
    /// Requests that the client gives up, by tenths of a percent.
    pub(crate) abandoned: u64,
    pub(crate) server: Server,
    /// Largest datagram of the client.
    pub(crate) payload: u16,
    pub(crate) key_update_after: Option<u64>,
    pub(crate) pacing: bool,
    /// Datagrams that the client makes at a time.
    pub(crate) burst: usize,
}

/// What the server allows and does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) retry: bool,
    pub(crate) streams: u32,
    pub(crate) stream_window: u32,
    pub(crate) window: u32,
    /// Bytes that it writes at a time.
    pub(crate) piece: usize,
    /// It updates its keys after so many requests.
    pub(crate) key_updates: Option<u64>,
    /// Requests that it resets, and of which it wants no more, by tenths of a percent.
    pub(crate) resets: u64,
    pub(crate) stops: u64,
    /// It closes after so many requests.
    pub(crate) closes: Option<u64>,
    pub(crate) mtu: u16,
}

/// What happens to datagrams, by tenths of a percent. Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) delay: u64,
    /// Added to the delay, at random: what was sent later may arrive earlier.
    pub(crate) jitter: u64,
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    pub(crate) corruption: u64,
    /// Larger ones are lost.
    pub(crate) largest: usize,
    /// Everything is lost.
    pub(crate) dark: Vec<Range<u64>>,
}

impl Case {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let mut random = Random::new(seed ^ ((kind as u64) << 48));
        let random = &mut random;
        let concurrency = random.pick(&[1, 1, 2, 5, 20, 64]);
        let mut upload = random.pick(&[0, 0, 10, 1000, 5000, 40_000, 200_000]);
        // Windows that are small beside what they have to carry make a case long and no better.
        let stream_window = random.pick(&[1200, 10_000, 100_000, 1 << 20]).max(upload as u32 / 40);
        let path = path(kind, random);
        let downloads = [0, 1, 14, 500, 1500, 20_000, 100_000, 500_000];
        let mut answers: Vec<usize> = (0..1 + random.below(4)).map(|_| random.pick(&downloads)).collect();
        let mut requests = concurrency * (1 + random.below(6));
        if kind == Kind::Terrible {
            // A path that loses so much carries some kilobytes in a second, of the clock that is not real.
            requests = requests.min(20);
            upload = upload.min(20_000);
            answers.iter_mut().for_each(|answer| *answer = (*answer).min(20_000));
        }
        Self {
            kind,
            seed,
            payload: random.pick(&[1200, 1200, 1350, 1452]).min(path.largest as u16),
            path,
            requests,
            concurrency,
            upload,
            answers,
            abandoned: if kind == Kind::Hostile { random.pick(&[0, 0, 50, 300]) } else { 0 },
            server: server(kind, random, stream_window),
            key_update_after: random.pick(&[None, None, Some(10), Some(100)]),
            pacing: random.chance(300),
            burst: random.pick(&[1, 4, 10, 40]),
        }
    }

    /// What the answer to a request has as its body.
    pub(crate) fn answer(&self, number: u64) -> usize {
        self.answers[number as usize % self.answers.len()]
    }

    /// The server may end the connection, or the path does: requests may be lost.
    pub(crate) fn is_mortal(&self) -> bool {
        matches!(self.kind, Kind::Ending | Kind::Terrible) || self.server.closes.is_some()
    }
}

fn path(kind: Kind, random: &mut Random) -> Path {
    let delay = random.pick(&[10, 500, 5000, 40_000]);
    let mut path = Path {
        delay,
        jitter: 0,
        loss: 0,
        duplication: 0,
        corruption: 0,
        largest: random.pick(&[1252, 1452, 2000, 65_527]),
        dark: Vec::new(),
    };
    if kind == Kind::Good {
        return path;
    }
    path.loss = random.pick(&[0, 5, 20, 50]);
    path.jitter = random.pick(&[0, delay / 4, delay]);
    path.duplication = random.pick(&[0, 10, 100]);
    path.corruption = random.pick(&[0, 0, 10]);
    match kind {
        Kind::Terrible => {
            path.loss = random.pick(&[50, 100, 200]);
            path.jitter = delay * 2;
            path.corruption = random.pick(&[0, 20, 50]);
        }
        Kind::Dark => {
            let mut at = random.below(200_000);
            for _ in 0..1 + random.below(3) {
                let end = at + random.pick(&[1000, 50_000, 500_000, 3_000_000]);
                path.dark.push(at..end);
                at = end + random.below(1_000_000);
            }
        }
        Kind::Ending => path.dark.push(random.below(400_000)..u64::MAX),
        _ => (),
    }
    path
}

fn server(kind: Kind, random: &mut Random, stream_window: u32) -> Server {
    let hostile = kind == Kind::Hostile;
    Server {
        retry: random.chance(200),
        streams: random.pick(&[1, 3, 100]),
        stream_window,
        window: stream_window.max(random.pick(&[10_000, 100_000, 4 << 20])),
        piece: random.pick(&[1, 100, 1000, 20_000, 1 << 20]).max(100 * usize::from(!random.chance(50))),
        key_updates: random.pick(&[None, None, Some(1), Some(7)]),
        resets: if hostile { random.pick(&[0, 100, 500]) } else { 0 },
        stops: if hostile { random.pick(&[0, 100, 500]) } else { 0 },
        closes: (hostile && random.chance(400)).then(|| 1 + random.below(10)),
        mtu: random.pick(&[1200, 1252]),
    }
}

/// The byte of a request's body at a place.
pub(crate) fn asked_byte(at: usize) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

/// The byte of an answer's body at a place.
pub(crate) fn answer_byte(number: u64, at: usize) -> u8 {
    (at ^ (at >> 7)).wrapping_add(number as usize * 7) as u8
}

/// What the server says on a stream of its own.
pub(crate) const SERVER_SAYS: &[u8] = &[0x5a; 5000];
/// What the client says on a stream of its own.
pub(crate) const CLIENT_SAYS: &[u8] = b"a few words of the client";
