//! Owns the course of a case: the clock, the path, and the turns of both sides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bench::proto::quic::Health;
use bench::time::Instant;
use quinn_proto::{ConnectionError, VarInt};

use crate::case::{Case, Kind, Path};
use crate::client::{Client, GOODBYE, Outcome};
use crate::common::random::Random;
use crate::common::socket::client_config;
use crate::server::{CLOSED, RESET, Server};

/// How a case came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    outcomes: Vec<Outcome>,
    health: Health,
    /// Microseconds that it took.
    took: u64,
}

/// Runs a case, and panics where it does not come out as it must.
pub(crate) fn run(case: &Case) -> Ended {
    let mut tls = client_config(&[b"test"]);
    tls.enable_early_data = case.kind == Kind::Early;
    let tls = Arc::new(tls);
    let mut server = Server::new(case);
    let mut clock = Clock { start: std::time::Instant::now(), now: 1_000_000 };
    if case.kind == Kind::Early {
        // A connection over a good path, for its ticket.
        let seed = case.seed + (1 << 40);
        let first = Case { seed, requests: 1, concurrency: 1, path: Path::good(), ..case.clone() };
        let ended = World::new(&first, &mut clock, &mut server, Arc::clone(&tls)).run();
        assert_eq!(ended.outcomes, [Outcome::Answered]);
        server.peers.clear();
    }
    World::new(case, &mut clock, &mut server, tls).run()
}

impl Path {
    fn good() -> Self {
        Self {
            delay: 10,
            jitter: 0,
            loss: 0,
            duplication: 0,
            corruption: 0,
            largest: 65_527,
            dark: Vec::new(),
        }
    }
}

/// The time, in microseconds for the path and the client, and as the server reads it.
struct Clock {
    start: std::time::Instant,
    now: u64,
}

impl Clock {
    fn client(&self) -> Instant {
        Instant::from_nanos(self.now * 1000)
    }

    fn server(&self) -> std::time::Instant {
        self.start + Duration::from_micros(self.now)
    }
}

struct World<'a, 'b> {
    case: &'a Case,
    clock: &'b mut Clock,
    began: u64,
    server: &'b mut Server,
    client: Client<'a>,
    random: Random,
    /// Datagrams on their way, by arrival and order: to the server or not, and their bytes.
    path: BTreeMap<(u64, u64), (bool, Vec<u8>)>,
    sent: u64,
}

impl<'a, 'b> World<'a, 'b> {
    fn new(
        case: &'a Case,
        clock: &'b mut Clock,
        server: &'b mut Server,
        tls: Arc<rustls::ClientConfig>,
    ) -> Self {
        let client = Client::new(case, tls, clock.client());
        let random = Random::new(case.seed ^ 0x9a7);
        let began = clock.now;
        Self { case, clock, began, server, client, random, path: BTreeMap::new(), sent: 0 }
    }

    fn run(mut self) -> Ended {
        let mut turns = 0u64;
        loop {
            turns += 1;
            assert!(turns < MOST_TURNS, "it goes round in circles: {}", self.state());
            self.client_turn();
            self.server.work(self.clock.server());
            for datagram in std::mem::take(&mut self.server.out) {
                self.send(false, datagram);
            }
            if self.over() {
                return self.check();
            }
            let next = self.next().unwrap_or_else(|| panic!("nothing is left to happen: {}", self.state()));
            self.clock.now = self.clock.now.max(next);
            assert!(self.clock.now - self.began < MOST_TIME, "it does not end: {}", self.state());
            self.arrive();
            if self.client.connection.deadline().is_some_and(|at| at <= self.clock.client()) {
                self.client.elapse(self.clock.client());
            }
        }
    }

    /// All requests are over, and the goodbye is on its way.
    fn over(&self) -> bool {
        self.client.closed.is_some() || (self.client.closing && self.goodbye_arrived())
    }

    fn goodbye_arrived(&self) -> bool {
        self.server.peers.values().all(|peer| peer.lost.is_some()) || self.path.is_empty()
    }

    fn client_turn(&mut self) {
        loop {
            self.client.work();
            let mut out = Vec::new();
            let count = self.client.connection.transmit(self.clock.client(), &mut out, self.case.burst);
            assert_eq!(count == 0, out.is_empty());
            assert!(count <= self.case.burst);
            if count == 0 {
                return;
            }
            let segment = self.client.connection.segment();
            assert_eq!(out.len().div_ceil(segment), count, "{} bytes by {segment}", out.len());
            for datagram in out.chunks(segment) {
                assert!(datagram.len() <= usize::from(self.case.payload).max(1200));
                self.send(true, datagram.to_vec());
            }
        }
    }

    fn send(&mut self, to_server: bool, mut datagram: Vec<u8>) {
        let (path, at) = (&self.case.path, self.clock.now - self.began);
        let dark = path.dark.iter().any(|dark| dark.contains(&at));
        if dark || datagram.len() > path.largest || self.random.chance(path.loss) {
            return;
        }
        if self.random.chance(path.corruption) {
            let place = self.random.below(datagram.len() as u64) as usize;
            datagram[place] ^= 1 << self.random.below(8);
        }
        for _ in 0..1 + u64::from(self.random.chance(path.duplication)) {
            let arrival = self.clock.now + path.delay + self.random.below(path.jitter);
            self.sent += 1;
            self.path.insert((arrival, self.sent), (to_server, datagram.clone()));
        }
    }

    /// When the next thing happens.
    fn next(&mut self) -> Option<u64> {
        let arrival = self.path.first_key_value().map(|((at, _), _)| *at);
        let client = self.client.connection.deadline().map(|at| at.as_nanos().div_ceil(1000));
        let start = self.clock.start;
        let server =
            self.server.deadline().map(|at| at.duration_since(start).as_nanos().div_ceil(1000) as u64);
        [arrival, client, server].into_iter().flatten().min()
    }

    /// Delivers what has arrived by now.
    fn arrive(&mut self) {
        while let Some(entry) = self.path.first_entry()
            && entry.key().0 <= self.clock.now
        {
            let (to_server, mut datagram) = entry.remove();
            if to_server {
                self.server.receive(self.clock.server(), &datagram);
            } else {
                self.client.receive(self.clock.client(), &mut datagram);
            }
        }
    }

    fn check(mut self) -> Ended {
        let case = self.case;
        if let Some(closed) = self.client.closed.clone() {
            assert!(case.is_mortal(), "the connection ended: {closed} ({})\n{}", closed.kind(), self.state());
            let closed_by_server = format!("closed-0x{CLOSED:x}");
            let expected: &[&str] = match case.kind {
                Kind::Ending => &["idle-timeout"],
                // One side may give up before the other.
                Kind::Terrible => &["idle-timeout", "stateless-reset"],
                // What the server says about its end may be lost.
                _ => &[&closed_by_server, "stateless-reset"],
            };
            assert!(expected.contains(&&closed.kind()[..]), "{closed} ({})", closed.kind());
        }
        let outcomes: Vec<Outcome> = self
            .client
            .books
            .outcomes
            .iter()
            .enumerate()
            .map(|(number, outcome)| outcome.clone().unwrap_or_else(|| panic!("{number} is not over")))
            .collect();
        for (number, outcome) in outcomes.iter().enumerate() {
            match outcome {
                Outcome::Answered => (),
                Outcome::Reset(code) => {
                    assert!(case.server.resets > 0 && *code == u64::from(RESET), "{number}: {code:#x}");
                }
                Outcome::Abandoned => assert!(case.abandoned > 0, "{number}"),
                Outcome::Lost => assert!(self.client.closed.is_some(), "{number}"),
            }
        }
        let health = self.client.connection.health();
        assert!(health.retries <= u64::from(case.server.retry), "one Retry is enough");
        assert!(health.retries == 1 || !case.server.retry || !self.client.connection.established());
        let clean = case.kind == Kind::Good;
        if self.client.closed.is_none() {
            assert_eq!(outcomes.len() as u64, case.requests);
            let seen: u64 = self.server.peers.values().map(|peer| peer.whole).sum();
            assert!(case.kind == Kind::Hostile || seen == case.requests, "{seen} arrived");
            for peer in self.server.peers.values().filter(|_| clean) {
                let said = VarInt::from_u64(GOODBYE).expect("in range");
                let orderly = matches!(&peer.lost,
                    Some(ConnectionError::ApplicationClosed(close)) if close.error_code == said);
                assert!(orderly, "{:?}", peer.lost);
            }
        }
        if clean {
            assert_eq!((health.stray_packets, health.duplicate_packets), (0, 0));
        }
        Ended { outcomes, health, took: self.clock.now - self.began }
    }

    fn state(&mut self) -> String {
        format!(
            "after {} µs, {} requests, {} open, closing {}: {}; {:?}",
            self.clock.now - self.began,
            self.client.books.outcomes.len(),
            self.client.books.open,
            self.client.closing,
            self.client.connection.describe(5),
            self.client.connection.health(),
        )
    }
}

/// In microseconds; no case takes nearly as long.
const MOST_TIME: u64 = 2_000_000_000;
const MOST_TURNS: u64 = 500_000;
