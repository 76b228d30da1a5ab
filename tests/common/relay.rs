//! Owns a UDP relay that stands between a client and a server on loopback, and does to each datagram what
//! a policy says: what `tc netem` does, where the kernel has it not.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::h3::endpoint::runtime;
use super::random::Random;

/// The way a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// What becomes of a datagram: each is sent on after its delay; none: it is lost.
pub(crate) type Fate = Vec<(Duration, Vec<u8>)>;

/// A relay that runs until it is dropped.
pub(crate) struct Relay {
    /// Where clients send to.
    pub(crate) address: SocketAddr,
    pub(crate) tally: Arc<Tally>,
    tasks: Arc<Mutex<Vec<AbortHandle>>>,
}

/// What a relay did, in datagrams.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) seen: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) added: AtomicU64,
}

type Policy = Arc<Mutex<dyn FnMut(Way, &[u8]) -> Fate + Send>>;

impl Relay {
    pub(crate) fn start(server: SocketAddr, policy: impl FnMut(Way, &[u8]) -> Fate + Send + 'static) -> Self {
        let (tally, tasks) = (Arc::<Tally>::default(), Arc::<Mutex<Vec<AbortHandle>>>::default());
        let listening = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listening.local_addr().expect("a bound socket has an address");
        let _entered = runtime().enter();
        let relaying = Relaying {
            server,
            policy: Arc::new(Mutex::new(policy)),
            tally: Arc::clone(&tally),
            tasks: Arc::clone(&tasks),
        };
        relaying.spawn(relaying.clone().listen(for_the_runtime(listening)));
        Self { address, tally, tasks }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        super::lock(&self.tasks).iter().for_each(AbortHandle::abort);
    }
}

#[derive(Clone)]
struct Relaying {
    server: SocketAddr,
    policy: Policy,
    tally: Arc<Tally>,
    tasks: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Relaying {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        super::lock(&self.tasks).push(runtime().spawn(task).abort_handle());
    }

    async fn listen(self, listening: Arc<UdpSocket>) {
        let mut clients: HashMap<SocketAddr, mpsc::UnboundedSender<(Instant, Vec<u8>)>> = HashMap::new();
        let mut buffer = vec![0; 65_536];
        loop {
            // A client that is gone makes the kernel say so on this socket; others are still there.
            let Ok((length, client)) = listening.recv_from(&mut buffer).await else { continue };
            let to_server = clients.entry(client).or_insert_with(|| self.client(&listening, client));
            self.decide(Way::ToServer, &buffer[..length], to_server);
        }
    }

    /// What is needed for a client that was not seen before.
    fn client(
        &self,
        listening: &Arc<UdpSocket>,
        client: SocketAddr,
    ) -> mpsc::UnboundedSender<(Instant, Vec<u8>)> {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let upstream = for_the_runtime(socket);
        let (to_server, queued) = mpsc::unbounded_channel();
        self.spawn(deliver(queued, Arc::clone(&upstream), self.server));
        let (to_client, queued) = mpsc::unbounded_channel();
        self.spawn(deliver(queued, Arc::clone(listening), client));
        let relaying = self.clone();
        self.spawn(async move {
            let mut buffer = vec![0; 65_536];
            loop {
                let Ok((length, _)) = upstream.recv_from(&mut buffer).await else { continue };
                relaying.decide(Way::ToClient, &buffer[..length], &to_client);
            }
        });
        to_server
    }

    fn decide(&self, way: Way, datagram: &[u8], queue: &mpsc::UnboundedSender<(Instant, Vec<u8>)>) {
        let fate = super::lock(&self.policy)(way, datagram);
        self.tally.seen.fetch_add(1, Ordering::Relaxed);
        match fate.len() as u64 {
            0 => self.tally.lost.fetch_add(1, Ordering::Relaxed),
            count => self.tally.added.fetch_add(count - 1, Ordering::Relaxed),
        };
        let now = Instant::now();
        for (delay, datagram) in fate {
            let _ = queue.send((now + delay, datagram));
        }
    }
}

fn for_the_runtime(socket: std::net::UdpSocket) -> Arc<UdpSocket> {
    socket.set_nonblocking(true).expect("sockets can be made not to block");
    Arc::new(UdpSocket::from_std(socket).expect("a socket for the runtime"))
}

/// Sends each datagram when its time has come; of those of one instant, the first first.
async fn deliver(
    mut queued: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    socket: Arc<UdpSocket>,
    to: SocketAddr,
) {
    let mut waiting = BTreeMap::new();
    let mut count = 0u64;
    loop {
        let next = waiting.first_key_value().map(|((at, _), _)| *at);
        tokio::select! {
            arrived = queued.recv() => {
                let Some((at, datagram)) = arrived else { return };
                waiting.insert((at, count), datagram);
                count += 1;
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                if let Some((_, datagram)) = waiting.pop_first() {
                    let _ = socket.send_to(&datagram, to).await;
                }
            }
        }
    }
}

/// A path with faults, in tenths of a percent of its datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairment {
    pub(crate) seed: u64,
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// These are overtaken by the next ones.
    pub(crate) reordering: u64,
    pub(crate) corruption: u64,
    /// One way.
    pub(crate) delay: Duration,
}

impl Impairment {
    /// The policy that makes a path such.
    pub(crate) fn policy(self) -> impl FnMut(Way, &[u8]) -> Fate + Send + 'static {
        let mut random = Random::new(self.seed);
        move |_, datagram| {
            if random.chance(self.loss) {
                return Vec::new();
            }
            let mut datagram = datagram.to_vec();
            if random.chance(self.corruption) && !datagram.is_empty() {
                let at = random.below(datagram.len() as u64) as usize;
                datagram[at] ^= 1 << random.below(8);
            }
            let late = if random.chance(self.reordering) { Duration::from_millis(5) } else { Duration::ZERO };
            let mut fate = vec![(self.delay + late, datagram)];
            if random.chance(self.duplication) {
                let again = (self.delay + Duration::from_millis(random.below(4)), fate[0].1.clone());
                fate.push(again);
            }
            fate
        }
    }
}

/// A datagram sent on at once.
pub(crate) fn at_once(datagram: &[u8]) -> (Duration, Vec<u8>) {
    (Duration::ZERO, datagram.to_vec())
}
