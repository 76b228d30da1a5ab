//! UDP in the ring against plain sockets on loopback: segmentation, coalescing, drops, errors.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use bench::load::uring::{
    Address, Completion, Config, DatagramOptions, DatagramSocket, MOST_SEGMENTS, Op, Ring,
};
use bench::time::Span;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};

const GENERATION: u32 = 5;
const SEGMENT: u16 = 1200;

/// A ring with one UDP socket, connected to a plain socket and that to it.
struct Pair {
    ring: Ring,
    socket: DatagramSocket,
    peer: UdpSocket,
    completions: Vec<Completion>,
}

impl Pair {
    fn new(options: &DatagramOptions) -> Self {
        Self::over(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)
    }

    fn over(address: SocketAddr, options: &DatagramOptions) -> Self {
        let peer = UdpSocket::bind(address).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut ring = ring(vec![Address::Tcp(peer.local_addr().unwrap())]);
        let socket = ring.open_datagrams(0, 0, options).unwrap();
        let mut pair = Self { ring, socket, peer, completions: Vec::new() };
        // The first datagram tells the peer where to send.
        pair.send(b"hello");
        let mut buffer = [0; 16];
        let (length, from) = pair.peer.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"hello");
        pair.peer.connect(from).unwrap();
        pair
    }

    fn send(&mut self, bytes: &[u8]) {
        self.ring.send_datagrams(0, 0, GENERATION, bytes.to_vec()).unwrap();
        self.ring.enter(0, Span::ZERO, None).unwrap();
    }

    fn receive(&mut self) {
        self.ring.recv_datagrams(0, 0, GENERATION).unwrap();
        self.ring.enter(0, Span::ZERO, None).unwrap();
    }

    fn peer_receives(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_536];
        let length = self.peer.recv(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    }

    /// The next completion, waited for.
    fn next(&mut self) -> Completion {
        let mut tries = 0..1000;
        while self.completions.is_empty() {
            assert!(tries.next().is_some(), "nothing completes");
            self.ring.enter(1, Span::ZERO, Some(Span::from_millis(10))).unwrap();
            self.ring.reap(&mut self.completions);
        }
        self.completions.remove(0)
    }

    /// The next reception: bytes, segment, drops, whether more follows.
    fn reception(&mut self) -> (Vec<u8>, usize, Option<u32>, bool) {
        let completion = self.next();
        assert_eq!(completion.token.op, Op::RecvDatagrams, "{completion:?}");
        assert_eq!((completion.token.slot, completion.token.generation), (0, GENERATION));
        let datagrams = self.ring.datagrams(&completion).expect("a whole reception");
        let got = (datagrams.bytes.to_vec(), datagrams.segment, datagrams.dropped, completion.more);
        self.ring.recycle(completion.buffer.unwrap());
        got
    }
}

fn ring(addresses: Vec<Address>) -> Ring {
    let config =
        Config { slots: 1, connect_timeout: Span::from_secs(1), addresses, receptions: 64, datagrams: true };
    Ring::new(&config).unwrap()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7) as u8).collect()
}

fn options() -> DatagramOptions {
    DatagramOptions { gso: Some(SEGMENT), gro: true, ..DatagramOptions::default() }
}

#[test]
fn a_long_send_arrives_as_segments() {
    let mut pair = Pair::new(&options());
    assert!(pair.socket.gso, "Linux 4.18 has UDP_SEGMENT");
    for length in [1, 1199, 1200, 1201, 2400, 3 * 1200 + 17, MOST_SEGMENTS * 1000] {
        let sent = bytes(length);
        pair.send(&sent);
        for expected in sent.chunks(usize::from(SEGMENT)) {
            assert_eq!(pair.peer_receives(), expected, "of {length} bytes");
        }
    }
}

#[test]
fn without_segmentation_a_send_is_a_datagram() {
    let mut pair = Pair::new(&DatagramOptions::default());
    assert!(!pair.socket.gso && !pair.socket.gro);
    pair.send(&bytes(5000));
    assert_eq!(pair.peer_receives(), bytes(5000));
}

#[test]
fn several_sends_of_one_submission_all_leave() {
    let mut pair = Pair::new(&options());
    for round in 0..50u8 {
        for part in 0..20u8 {
            let mut spare = pair.ring.send_datagrams(0, 0, GENERATION, vec![round, part]).unwrap();
            spare.clear();
        }
        pair.ring.enter(0, Span::ZERO, None).unwrap();
        pair.ring.reap(&mut pair.completions);
        for part in 0..20u8 {
            assert_eq!(pair.peer_receives(), [round, part]);
        }
    }
    assert!(pair.completions.iter().all(|completion| completion.token.op == Op::Wake), "no send failed");
}

#[test]
fn memory_comes_back() {
    let mut pair = Pair::new(&options());
    let mut grown = 0;
    let mut spare = Vec::new();
    for _ in 0..100 {
        grown += usize::from(spare.capacity() == 0);
        spare.clear();
        spare.extend_from_slice(b"again");
        spare = pair.ring.send_datagrams(0, 0, GENERATION, spare).unwrap();
        pair.ring.enter(0, Span::ZERO, None).unwrap();
        pair.ring.reap(&mut pair.completions);
        assert_eq!(pair.peer_receives(), b"again");
    }
    assert!(grown <= 4, "{grown} sends had no memory to use again");
}

#[test]
fn datagrams_sent_together_are_received_together() {
    for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
        let mut pair = Pair::over(address, &options());
        assert!(pair.socket.gro, "Linux 5.0 has UDP_GRO");
        pair.receive();
        let mut expect = |segment: i32, length: usize, expected: usize| {
            let sent = bytes(length);
            setsockopt(&pair.peer, sockopt::UdpGsoSegment, &segment).unwrap();
            pair.peer.send(&sent).unwrap();
            let (got, segment, dropped, more) = pair.reception();
            let all = got.len() == sent.len() && got == sent;
            assert_eq!((got.len(), all, segment, dropped, more), (length, true, expected, None, true));
        };
        expect(1200, 2 * 1200, 1200);
        // The last is shorter.
        expect(1200, 3 * 1200 + 17, 1200);
        // A single one is not coalesced.
        expect(1200, 700, 700);
        // The most that the loopback device (below gso_max_size 65536, its header of 14 bytes included) takes whole
        // over IPv6.
        expect(1024, 65_473, 1024);
    }
}

#[test]
fn without_coalescing_each_datagram_is_a_reception() {
    let mut pair = Pair::new(&DatagramOptions::default());
    pair.receive();
    for length in [1, 1200, 65_507] {
        pair.peer.send(&bytes(length)).unwrap();
        assert_eq!(pair.reception(), (bytes(length), length, None, true));
    }
}

#[test]
fn an_empty_datagram_ends_the_receive_and_the_next_one_goes_on() {
    let mut pair = Pair::new(&options());
    pair.receive();
    pair.peer.send(b"").unwrap();
    assert_eq!(pair.reception(), (Vec::new(), 1, None, false));
    pair.receive();
    pair.peer.send(b"after").unwrap();
    assert_eq!(pair.reception(), (b"after".to_vec(), 5, None, true));
}

#[test]
fn the_kernels_drops_are_told() {
    let mut pair = Pair::new(&DatagramOptions { receive_buffer: 1, ..options() });
    assert!(pair.socket.overflow);
    assert!((1..100_000).contains(&pair.socket.receive_buffer), "{:?}", pair.socket);
    let sent = 500;
    for _ in 0..sent {
        pair.peer.send(&bytes(1000)).unwrap();
    }
    pair.receive();
    let mut received = 0;
    // What the socket holds arrives first, then what is sent once there is room tells of the drops.
    let dropped = loop {
        pair.peer.send(b"one more").unwrap();
        let (got, _, dropped, _) = pair.reception();
        received += u32::from(got.len() == 1000);
        if got == b"one more" {
            break dropped.expect("datagrams were dropped");
        }
    };
    assert!(dropped > 0);
    // Of those sent meanwhile some may have been dropped as well.
    assert!(received + dropped >= sent, "{received} received, {dropped} dropped of {sent}");
}

#[test]
fn buffers_are_what_was_asked_for_or_less_and_are_told() {
    let small = Pair::new(&DatagramOptions { receive_buffer: 64 << 10, send_buffer: 64 << 10, ..options() });
    assert_eq!((small.socket.receive_buffer, small.socket.send_buffer), (128 << 10, 128 << 10));
    let default = Pair::new(&options());
    let kernels = |name: &str| -> u32 {
        std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap().trim().parse().unwrap()
    };
    assert_eq!(default.socket.receive_buffer, kernels("rmem_default"));
    assert_eq!(default.socket.send_buffer, kernels("wmem_default"));
    assert!(default.socket.mtu.is_some_and(|mtu| mtu >= 1280), "{:?}", default.socket);
}

#[test]
fn a_port_without_a_socket_refuses() {
    let mut pair = Pair::new(&options());
    let closed = pair.peer.local_addr().unwrap();
    pair.receive();
    drop(std::mem::replace(&mut pair.peer, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()));
    pair.send(b"is anybody there?");
    let refused = pair.next();
    assert_eq!((refused.token.op, refused.result), (Op::RecvDatagrams, -(Errno::ECONNREFUSED as i32)));
    assert!(!refused.more && refused.buffer.is_none() && pair.ring.datagrams(&refused).is_none());
    // The socket lives: it receives again once there is somebody.
    let back = UdpSocket::bind(closed).unwrap();
    pair.receive();
    pair.send(b"and now?");
    let mut buffer = [0; 16];
    let (length, from) = back.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"and now?");
    back.send_to(b"yes", from).unwrap();
    assert_eq!(pair.reception().0, b"yes");
}

#[test]
fn a_refusal_met_by_a_send_gives_its_bytes_back() {
    let mut pair = Pair::new(&options());
    drop(std::mem::replace(&mut pair.peer, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()));
    // The first finds no receiver, the second finds that out; with two in one submission it has to be
    // told which.
    pair.ring.send_datagrams(0, 0, GENERATION, b"first".to_vec()).unwrap();
    pair.ring.send_datagrams(0, 0, GENERATION, b"second".to_vec()).unwrap();
    let refused = pair.next();
    assert_eq!((refused.token.op, refused.result), (Op::SendDatagrams, -(Errno::ECONNREFUSED as i32)));
    assert_eq!((refused.token.slot, refused.token.generation), (0, GENERATION));
    assert_eq!(pair.ring.unsent_datagrams(&refused).as_deref(), Some(&b"second"[..]));
    assert_eq!(pair.ring.unsent_datagrams(&refused), None);
}

#[test]
fn what_is_too_long_is_not_sent() {
    // More segments than any kernel takes.
    let tiny = DatagramOptions { gso: Some(1), ..DatagramOptions::default() };
    let mut pair = Pair::new(&options());
    pair.ring.open_datagrams(0, 0, &tiny).unwrap();
    pair.send(&bytes(129));
    let failed = pair.next();
    assert_eq!(failed.token.op, Op::SendDatagrams);
    assert!([-(Errno::EINVAL as i32), -(Errno::EMSGSIZE as i32)].contains(&failed.result), "{failed:?}");
    assert_eq!(pair.ring.unsent_datagrams(&failed), Some(bytes(129)));
}

#[test]
fn a_receive_out_of_buffers_is_taken_up_again() {
    // Larger than all that is sent, so that the socket drops nothing.
    let mut pair = Pair::new(&DatagramOptions { receive_buffer: 1 << 20, gro: false, ..options() });
    pair.receive();
    let mut held = Vec::new();
    let mut sent = 0u8;
    // As many buffers as there are, each filled and none given back.
    loop {
        pair.peer.send(&[sent]).unwrap();
        sent += 1;
        let completion = pair.next();
        if completion.result == -(Errno::ENOBUFS as i32) {
            assert!(!completion.more);
            break;
        }
        held.push(completion);
    }
    assert_eq!(held.len(), 64, "the least that a ring has");
    for (at, completion) in held.into_iter().enumerate() {
        assert_eq!(pair.ring.datagrams(&completion).unwrap().bytes, [at as u8]);
        pair.ring.recycle(completion.buffer.unwrap());
    }
    pair.receive();
    // Nothing was lost meanwhile.
    assert_eq!(pair.reception().0, [sent - 1]);
    pair.peer.send(b"on").unwrap();
    assert_eq!(pair.reception().0, b"on");
}

#[test]
fn a_released_receive_ends() {
    let mut pair = Pair::new(&options());
    pair.receive();
    pair.ring.release_datagrams(0, GENERATION).unwrap();
    let ended = pair.next();
    assert_eq!(
        (ended.token.op, ended.result, ended.more),
        (Op::RecvDatagrams, -(Errno::ECANCELED as i32), false)
    );
    pair.ring.close(0).unwrap();
    pair.ring.send_datagrams(0, 0, GENERATION, b"to nobody".to_vec()).unwrap();
    let failed = pair.next();
    assert_eq!((failed.token.op, failed.result), (Op::SendDatagrams, -(Errno::EBADF as i32)));
}

#[test]
fn a_shared_socket_has_the_file_behind_the_slots() {
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut ring = ring(vec![Address::Tcp(peer.local_addr().unwrap())]);
    let source = Ipv4Addr::new(127, 0, 0, 5);
    ring.open_datagrams(1, 0, &DatagramOptions { source: Some(source), ..options() }).unwrap();
    ring.send_datagrams(1, 0, GENERATION, b"shared".to_vec()).unwrap();
    ring.enter(0, Span::ZERO, None).unwrap();
    let mut buffer = [0; 16];
    let (length, from) = peer.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from.ip()), (&b"shared"[..], source.into()));
    assert!(ring.open_datagrams(2, 0, &options()).is_err(), "there is no third file");
}

#[test]
fn datagrams_need_an_address_of_ip() {
    let mut ring = ring(vec![Address::Unix("/nowhere".into())]);
    let error = ring.open_datagrams(0, 0, &options()).unwrap_err();
    assert_eq!(error.to_string(), "UDP needs an IP address and a port");
}

#[test]
fn features_name_what_sockets_can_do() {
    let mut pair = Pair::new(&DatagramOptions::default());
    let used = |ring: &Ring, name: &str| ring.features().by_name().get(name).copied();
    assert_eq!(used(&pair.ring, "udp_gso"), Some(false), "not asked for");
    pair.ring.open_datagrams(0, 0, &options()).unwrap();
    for name in ["udp_gso", "udp_gro", "udp_overflow"] {
        assert_eq!(used(&pair.ring, name), Some(true), "{name}");
    }
    assert_eq!(used(&ring(Vec::new()), "udp_gso"), None, "nothing is said where nothing was tried");
}
