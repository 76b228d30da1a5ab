//! Owns the generator: a [`plan::LoadPlan`] in, one [`Measurement`] out.
//!
//! [`run`] starts one worker thread for each of the plan's threads, lets them connect, tells them
//! when the window opens and closes, and merges their records once they are done.

pub mod batch;
pub mod client;
pub mod gate;
mod measure;
pub mod pacing;
pub mod plan;
pub mod quic;
pub mod record;
mod tickets;
mod tls;
pub mod uring;
pub mod worker;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

use self::client::{Bodies, Expectation, Job, Request};
use self::gate::{Edges, Gate, Meeting};
use self::plan::{Event, Limit, LoadPlan};
use self::uring::{Address, Config, DatagramOptions, Ring, RingError};
use self::worker::{Assignment, Outcome, Worker};
use crate::clock;
use crate::proto::h1::{HeadMemo, encode_request};
use crate::proto::request::EncodeError;
use crate::proto::{h2, h3, qpack, quic as transport};
use crate::results::{Finding, FindingLevel, Measurement, Resumption, SocketMode, WaitMode};
use crate::time::Span;

/// Why there is no measurement: the plan or the machine, never the server.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A value of the plan.
    #[error("{0}")]
    Plan(String),
    /// A request that cannot be put on the wire.
    #[error("{0}")]
    Request(#[from] EncodeError),
    /// The ring.
    #[error("{0}")]
    Ring(#[from] RingError),
    /// The TLS settings.
    #[error("{0}")]
    Tls(String),
    /// Too few file descriptors.
    #[error(
        "{connections} connections need {needed} file descriptors, and the hard limit is {limit}; raise it with \
         `ulimit -Hn {needed}` (or LimitNOFILE of the service), or use fewer connections"
    )]
    Descriptors {
        /// Connections asked for.
        connections: u32,
        /// Descriptors needed.
        needed: u64,
        /// Hard limit.
        limit: u64,
    },
    /// The kernel stopped taking operations, or a thread could not be started.
    #[error("{0}")]
    System(String),
}

/// Ends a run from another thread.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Gate>);

impl Control {
    /// A control for one run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run: its window closes now, and what was measured is reported.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Runs a plan; `on_event` is told what happens, [`Event::Measurement`] excepted.
///
/// # Errors
/// [`LoadError`] when nothing could be measured; a server that fails is measured.
pub fn run(
    plan: &LoadPlan,
    control: &Control,
    on_event: &mut dyn FnMut(Event),
) -> Result<Measurement, LoadError> {
    validate(plan)?;
    let prepared = Prepared::new(plan)?;
    let threads = plan.threads.clamp(1, plan.connections);
    let gate = &*control.0;
    let outcomes = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for index in 0..threads {
            let prepared = &prepared;
            let spawned = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn_scoped(scope, move || work(plan, prepared, index, threads, gate));
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    gate.abort();
                    return Err(LoadError::System(format!("cannot start a worker thread: {error}")));
                }
            }
        }
        conduct(plan, &prepared, gate, threads as usize, on_event);
        handles
            .into_iter()
            .map(|handle| {
                handle.join().unwrap_or_else(|_| Err(LoadError::System("a worker panicked".into())))
            })
            .collect()
    });
    let outcomes: Vec<Outcome> = outcomes?;
    if let (Limit::Requests(_), Some(closed)) =
        (plan.limit, outcomes.iter().filter_map(|o| Some(o.window?.1)).max())
    {
        on_event(Event::WindowClosed { closed_at_ns: closed.as_nanos() });
    }
    measure::measurement(plan, &prepared, threads, gate.stopped(), outcomes)
}

/// Tries the kernel's `io_uring` out: which features the generator would use, or why it cannot run.
/// A container's filter shows only this way.
pub fn kernel_finding() -> Finding {
    let nowhere = Address::Tcp((Ipv4Addr::LOCALHOST, 9).into());
    let config = Config {
        slots: 1,
        connect_timeout: Span::from_secs(1),
        addresses: vec![nowhere],
        receptions: 1,
        datagrams: true,
    };
    let check = "io-uring-features".to_owned();
    match Ring::new(&config) {
        Ok(mut ring) => {
            // Opening a UDP socket shows what such sockets can do, and sends nothing. Without one at
            // all, the rest is still worth telling.
            let options = DatagramOptions { gso: Some(1200), gro: true, ..DatagramOptions::default() };
            let _ = ring.open_datagrams(0, 0, &options);
            let features = ring.features().by_name();
            let list = |wanted: bool| {
                let named = features.iter().filter(|(_, used)| **used == wanted);
                named.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
            };
            let (used, missing) = (list(true), list(false));
            if missing.is_empty() {
                return Finding { check, level: FindingLevel::Ok, found: used, remedy: None };
            }
            let remedy =
                Some("a newer kernel lowers the generator's own cost (all features: Linux 6.15)".into());
            Finding {
                check,
                level: FindingLevel::Warn,
                found: format!("{used}; not here: {missing}"),
                remedy,
            }
        }
        Err(error) => Finding {
            check,
            level: FindingLevel::Bad,
            found: error.to_string(),
            // The message says what to do.
            remedy: None,
        },
    }
}

/// What is worked out once and shared by the workers, read-only.
struct Prepared {
    request: Request,
    expect: Expectation,
    tls: Option<tls::Settings>,
    address: Address,
    sources: Vec<Ipv4Addr>,
    poll: bool,
}

impl Prepared {
    fn new(plan: &LoadPlan) -> Result<Self, LoadError> {
        let decode = |what: &str, text: &str| {
            BASE64_STANDARD
                .decode(text)
                .map_err(|error| LoadError::Plan(format!("{what} is not base64: {error}")))
        };
        let body = decode("request.body", &plan.request.body)?;
        let request = encode(plan, &body)?;
        let expected = plan.expect.body.as_deref().map(|text| decode("expect.body", text)).transpose()?;
        let expect = Expectation {
            status: plan.expect.status,
            body: match expected {
                expected if plan.sample => Bodies::Sampled(expected),
                Some(expected) => Bodies::Compared(expected),
                None => Bodies::Counted,
            },
            length: plan.expect.length,
        };
        let tls = plan.protocol.is_tls().then(|| tls::Settings::new(plan)).transpose()?;
        let address = choose_address(plan)?;
        let sources = source_addresses(plan, &address);
        Ok(Self { request, expect, tls, address, sources, poll: polls(plan) })
    }
}

/// Encodes the request once for all connections.
fn encode(plan: &LoadPlan, body: &[u8]) -> Result<Request, EncodeError> {
    let (request, target) = (&plan.request, &plan.target);
    let (path, authority) = (&target.path, &target.authority);
    if plan.protocol.is_http1() {
        return encode_request(&request.method, path, authority, &request.headers, body, plan.keepalive)
            .map(Request::H1);
    }
    let scheme = plan.protocol.scheme();
    if plan.protocol.is_quic() {
        let request = h3::Request::new(&request.method, scheme, path, authority, &request.headers, body)?;
        let quic = transport::Config {
            payload: plan.quic.payload,
            pacing: plan.quic.pacing,
            key_update_after: plan.quic.key_update_after,
            ..transport::Config::default()
        };
        let config = h3::Config { most: plan.concurrency, qpack: qpack::Config::default(), quic };
        return Ok(Request::H3(Arc::new(request), Arc::new(config)));
    }
    h2::Request::new(&request.method, scheme, path, authority, &request.headers, body)
        .map(|request| Request::H2(Arc::new(request)))
}

fn validate(plan: &LoadPlan) -> Result<(), LoadError> {
    let bad = |text: String| Err(LoadError::Plan(text));
    if plan.connections == 0 || plan.threads == 0 {
        return bad("connections and threads are at least 1".into());
    }
    if plan.concurrency == 0 {
        return bad("at least one request at a time is needed on a connection".into());
    }
    if plan.concurrency > 1 && plan.protocol.is_http1() {
        return bad(format!(
            "HTTP/1.1 carries one request at a time on a connection, and {} were asked for; use more connections instead",
            plan.concurrency
        ));
    }
    if plan.concurrency > 1 && !plan.keepalive {
        return bad(format!(
            "a connection for each request carries one, and {} at a time were asked for; use more connections instead",
            plan.concurrency
        ));
    }
    match plan.requests_per_connection {
        Some(0) => return bad("a connection carries at least one request".into()),
        Some(most) if most > 1 && !plan.keepalive => {
            return bad(format!(
                "a connection for each request carries one, and {most} were asked for; keep connections alive"
            ));
        }
        _ => (),
    }
    validate_resumption(plan)?;
    if plan.sample && (plan.connections, plan.limit, plan.warmup_ns) != (1, Limit::Requests(1), 0) {
        return bad("a response is sampled of one request on one connection, without a warm-up".into());
    }
    let in_flight = u64::from(plan.connections) * u64::from(plan.concurrency);
    if plan.concurrency > 1 && in_flight > MOST_IN_FLIGHT {
        return bad(format!(
            "{} x {} requests at once are more than {MOST_IN_FLIGHT}, the most that are useful on one machine; use fewer",
            plan.connections, plan.concurrency
        ));
    }
    match plan.limit {
        Limit::DurationNs(0) | Limit::Requests(0) => {
            return bad("a window of nothing measures nothing".into());
        }
        _ => (),
    }
    let shared = plan.protocol.is_quic() && plan.quic.socket == SocketMode::Shared;
    let sockets = if shared { plan.threads } else { plan.connections };
    let (needed, limit) = (u64::from(sockets) + SPARE_DESCRIPTORS, raise_fd_limit());
    if needed > limit {
        return Err(LoadError::Descriptors { connections: plan.connections, needed, limit });
    }
    Ok(())
}

fn validate_resumption(plan: &LoadPlan) -> Result<(), LoadError> {
    let text = match plan.resumption {
        Resumption::Ticket | Resumption::ZeroRtt if !plan.protocol.is_tls() => {
            "without TLS there are no sessions to resume; leave resumption off, or use h1s, h2 or h3"
        }
        Resumption::ZeroRtt if !plan.protocol.is_quic() => {
            "early data (0rtt) is sent over QUIC only; use h3, or resume with tickets"
        }
        _ => return Ok(()),
    };
    Err(LoadError::Plan(text.into()))
}

/// Requests after which a connection is replaced.
fn requests_per_connection(plan: &LoadPlan) -> Option<u32> {
    if plan.keepalive { plan.requests_per_connection } else { Some(1) }
}

/// Raises the soft limit of open files to the hard one and returns it (getrlimit(2)).
fn raise_fd_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// The first address that takes a connection; of several only, since one needs no choice.
fn choose_address(plan: &LoadPlan) -> Result<Address, LoadError> {
    let addresses = plan
        .target
        .addresses
        .iter()
        .map(|text| text.parse())
        .collect::<Result<Vec<Address>, _>>()
        .map_err(LoadError::Plan)?;
    let Some(first) = addresses.first() else {
        return Err(LoadError::Plan("the target has no address".into()));
    };
    if addresses.len() == 1 {
        return Ok(first.clone());
    }
    let timeout = Span::from_nanos(plan.connect_timeout_ns.max(1)).into();
    let answers = |address: &&Address| match address {
        Address::Tcp(address) if plan.protocol.is_quic() => answers_quic(*address),
        Address::Tcp(address) => TcpStream::connect_timeout(address, timeout).is_ok(),
        Address::Unix(path) => UnixStream::connect(path).is_ok(),
    };
    Ok(addresses.iter().find(answers).unwrap_or(first).clone())
}

/// Whether a QUIC server answers there. It is asked for a version that does not exist, to which every server
/// says which ones it has (RFC 9000 §6.1), and keeps nothing.
fn answers_quic(address: SocketAddr) -> bool {
    let any = SocketAddr::new(
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() },
        0,
    );
    let asked = || -> std::io::Result<usize> {
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(QUIC_ANSWER.into()))?;
        let mut datagram = [0; 1200];
        // A long header of a reserved version, with two connection ids of 8 bytes.
        datagram[..6].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]);
        datagram[14] = 8;
        socket.send(&datagram)?;
        socket.recv(&mut datagram)
    };
    asked().is_ok()
}

/// Loopback has 2^24 addresses: connections spread over some of them do not run out of ports, nor
/// does the kernel have to search long for a free one.
fn source_addresses(plan: &LoadPlan, address: &Address) -> Vec<Ipv4Addr> {
    let many = requests_per_connection(plan).is_some() || plan.connections > 10_000;
    match address {
        Address::Tcp(SocketAddr::V4(v4)) if v4.ip().is_loopback() && many => {
            (1..=LOOPBACK_SOURCES).map(|last| Ipv4Addr::new(127, 0, 0, last)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether workers poll: `auto` does so when each has a CPU of its own and little is in flight.
fn polls(plan: &LoadPlan) -> bool {
    let own_cpus = if plan.cpus.is_empty() {
        let allowed = affinity().len();
        let online = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
        let online = usize::try_from(online.unwrap_or(1)).unwrap_or(1);
        allowed >= plan.threads as usize && allowed < online
    } else {
        plan.cpus.len() >= plan.threads as usize
    };
    let in_flight = u64::from(plan.connections) * u64::from(plan.concurrency) / u64::from(plan.threads);
    match plan.wait {
        WaitMode::Poll => true,
        WaitMode::Sleep => false,
        WaitMode::Auto => own_cpus && in_flight <= POLL_IN_FLIGHT,
    }
}

fn affinity() -> Vec<usize> {
    match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect(),
        Err(_) => Vec::new(),
    }
}

fn work(
    plan: &LoadPlan,
    prepared: &Prepared,
    index: u32,
    threads: u32,
    gate: &Gate,
) -> Result<Outcome, LoadError> {
    let result = build_worker(plan, prepared, index, threads, gate)
        .and_then(|worker| worker.run().map_err(|error| LoadError::System(format!("io_uring: {error}"))));
    if result.is_err() {
        gate.abort();
    }
    result
}

fn build_worker<'a>(
    plan: &LoadPlan,
    prepared: &Prepared,
    index: u32,
    threads: u32,
    gate: &'a Gate,
) -> Result<Worker<'a>, LoadError> {
    if let Some(cpu) = plan.cpus.get(index as usize % plan.cpus.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(*cpu as usize).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).map_err(|error| {
            LoadError::Plan(format!("cannot pin a worker to CPU {cpu}: {}", error.desc()))
        })?;
    }
    let connections = share(u64::from(plan.connections), index, threads) as u32;
    let ring = Ring::new(&Config {
        slots: connections,
        connect_timeout: Span::from_nanos(plan.connect_timeout_ns),
        addresses: vec![prepared.address.clone()],
        receptions: connections.saturating_mul(if plan.protocol.is_quic() { plan.concurrency } else { 1 }),
        datagrams: plan.protocol.is_quic(),
    })?;
    let mut memo = HeadMemo::default();
    if plan.sample {
        memo.transcribe();
    }
    let job = Job {
        request: prepared.request.clone(),
        concurrency: plan.concurrency,
        head_request: plan.request.method == "HEAD",
        requests_per_connection: requests_per_connection(plan).unwrap_or(u32::MAX),
        resumption: plan.resumption,
        expect: prepared.expect.clone(),
        alpn: plan.protocol.alpn().unwrap_or_default(),
        tls: prepared.tls.as_ref().map(|tls| (Arc::clone(&tls.config), tls.name.clone())),
        sample: plan.sample,
        memo,
    };
    let assignment = Assignment {
        connections,
        budget: match plan.limit {
            Limit::DurationNs(_) => None,
            Limit::Requests(count) => Some(share(count, index, threads)),
        },
        drain: Span::from_nanos(plan.drain_ns),
        timeout: Span::from_nanos(plan.timeout_ns),
        connect_timeout: Span::from_nanos(plan.connect_timeout_ns),
        keepalive: plan.keepalive,
        replaces: requests_per_connection(plan).is_some(),
        poll: prepared.poll,
        poll_limit: (plan.wait == WaitMode::Auto).then_some(POLL_LIMIT),
        batch: plan.batch,
        sources: prepared.sources.clone(),
        quic: plan.protocol.is_quic().then(|| plan.quic.clone()),
    };
    Worker::new(ring, job, assignment, gate).map_err(|fault| LoadError::Tls(fault.text))
}

/// The part of `total` that falls to worker `index`; the parts add up to `total`.
fn share(total: u64, index: u32, threads: u32) -> u64 {
    let (index, threads) = (u64::from(index), u64::from(threads));
    total / threads + u64::from(index < total % threads)
}

/// Tells the workers when to begin, open and close, and the listener what happens.
fn conduct(
    plan: &LoadPlan,
    prepared: &Prepared,
    gate: &Gate,
    workers: usize,
    on_event: &mut dyn FnMut(Event),
) {
    let arrived = gate.await_arrivals(Meeting::Connected, workers);
    let nothing_up = plan.keepalive && arrived.up == 0;
    if nothing_up || gate.stopped() {
        gate.release(Meeting::Connected, None);
        gate.release(Meeting::Quiet, None);
        return;
    }
    on_event(Event::Connected {
        up: arrived.up,
        of: plan.connections,
        address: prepared.address.to_string(),
    });
    let warmup = Span::from_nanos(plan.warmup_ns);
    // The listener has this long to get ready for the opening edge; a warm-up is long enough.
    let lead = if warmup > LEAD { Span::ZERO } else { LEAD };
    let begins = clock::now() + lead;
    let opens = begins + warmup;
    let closes = match plan.limit {
        Limit::DurationNs(length) => Some(opens + Span::from_nanos(length)),
        Limit::Requests(_) => None,
    };
    let quiet_first = closes.is_none() && !warmup.is_zero();
    let announce = |opens: crate::time::Instant, on_event: &mut dyn FnMut(Event)| {
        on_event(Event::Window {
            opens_at_ns: opens.as_nanos(),
            closes_at_ns: closes.map(|at| at.as_nanos()),
        });
    };
    if !quiet_first {
        announce(opens, on_event);
        gate.release(Meeting::Connected, Some(Edges { begins, opens, closes }));
        return;
    }
    gate.release(Meeting::Connected, Some(Edges { begins, opens, closes }));
    gate.await_arrivals(Meeting::Quiet, workers);
    let opens = clock::now() + LEAD;
    announce(opens, on_event);
    gate.release(Meeting::Quiet, Some(Edges { begins: opens, opens, closes }));
}

/// Descriptors besides the sockets: the ring, an eventfd, standard streams, a socket on its way into
/// the ring, for each of many workers.
const SPARE_DESCRIPTORS: u64 = 128;
/// C·M at most: beyond it memory and the time to begin them all are what is measured.
const MOST_IN_FLIGHT: u64 = 1_000_000;
const LOOPBACK_SOURCES: u8 = 32;
/// Requests in flight on one worker up to which `auto` polls: with more, an answer is nearly always
/// there already, and sleeping for several costs less than asking for each.
const POLL_IN_FLIGHT: u64 = 12;
/// How long an address is given to answer, of which there are several.
const QUIC_ANSWER: Span = Span::from_millis(300);
/// `auto` stops polling for an answer that takes longer: a wake-up no longer shows in it.
const POLL_LIMIT: Span = Span::from_millis(1);
const LEAD: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, threads) in [(1, 1), (10, 3), (3, 3), (1_000_001, 7)] {
            let shares: Vec<u64> = (0..threads).map(|index| share(total, index, threads)).collect();
            assert_eq!(shares.iter().sum::<u64>(), total);
            assert!(shares.iter().max().unwrap_or(&0) - shares.iter().min().unwrap_or(&0) <= 1);
        }
    }
}
