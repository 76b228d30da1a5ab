//! Owns what must hold of packets and frames whatever a server sends: the bodies of the fuzz targets.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::cids::LocalCids;
use super::frame::{Frame, Reader};
use super::keys::{InitialSuite, LevelKeys, seal};
use super::packet::{self, ConnectionId, LONG_NUMBER, LongType, Packet};
use super::space::Level;
use super::streams::Limits;
use super::varint;
use super::violation::Closed;
use super::{Application, ApplicationError, Config, Connection, Progress};
use crate::time::{Instant, Span};

/// Reads `data` as headers, as a packet number, and as what a server sends during the handshake, and panics when a
/// header leads beyond its packet, when a number is not the nearest, or when a connection that is over goes on.
///
/// For the handshake `data` is records, each of a byte, a length, also a byte, and as many bytes. Of the former, the
/// lowest 2 bits say what the bytes are: a whole packet; one without the connection ids and the version, which are
/// put in; or the frames of an Initial packet, which is sealed as the server would. Bit 2: the next packet
/// goes into the same datagram. Bit 3: the packet number is the last one once more. Bit 4: the client's deadline comes
/// first. Bit 5: the client sends what it has first.
pub fn fuzz_packets(data: &[u8]) {
    headers(data);
    numbers(data);
    handshake(data);
}

fn headers(mut bytes: &[u8]) {
    while let Some((destination, packet)) = packet::parse(bytes, LocalCids::LEN) {
        let end = match &packet {
            Packet::Short { number_at } => {
                assert_eq!(&destination[..], &bytes[1..*number_at]);
                bytes.len()
            }
            Packet::Long { number_at, end, .. } => {
                assert!(number_at <= end && *end <= bytes.len());
                let parse = |end| packet::parse(&bytes[..end], LocalCids::LEN);
                assert_eq!(
                    parse(*end),
                    Some((destination, packet.clone())),
                    "what is behind it changes nothing"
                );
                assert_eq!(parse(end - 1), None, "cut off");
                *end
            }
            Packet::Retry { token, .. } => {
                assert!(token.start <= token.end && token.end + 16 == bytes.len());
                packet::retry_is_genuine(bytes, &destination);
                bytes.len()
            }
            Packet::Versions { offered, .. } => {
                assert!(4 * offered.len() < bytes.len());
                bytes.len()
            }
        };
        bytes = &bytes[end..];
    }
}

/// The first 8 bytes say which number is expected, the next 4 which one comes.
fn numbers(data: &[u8]) {
    let Some((expected, rest)) = data.split_first_chunk() else { return };
    let Some((truncated, _)) = rest.split_first_chunk() else { return };
    let expected = u64::from_be_bytes(*expected) >> 2;
    for len in 1..=4 {
        let window = 1 << (8 * len);
        let truncated = u64::from(u32::from_be_bytes(*truncated)) & (window - 1);
        let number = packet::decode_number(expected, truncated, len);
        assert_eq!(number & (window - 1), truncated);
        let at_an_end = number < window || number > varint::MAX - window;
        assert!(number <= varint::MAX && (number.abs_diff(expected) <= window / 2 || at_an_end));
    }
}

fn handshake(mut records: &[u8]) {
    let mut server = Server::new();
    let mut datagram = Vec::new();
    while let &[what, length, ref rest @ ..] = records {
        let (bytes, behind) = rest.split_at(rest.len().min(length.into()));
        records = behind;
        if what & 1 << 4 != 0
            && let Some(deadline) = server.client.deadline()
        {
            server.now = server.now.max(deadline);
            if server.client.elapse(server.now).is_err() {
                return server.over();
            }
        }
        if what & 1 << 5 != 0 {
            server.take_datagrams();
        }
        match what & 3 {
            0 | 1 => datagram.extend_from_slice(bytes),
            2 => server.complete(bytes, &mut datagram),
            _ => server.seal(bytes, what & 1 << 3 != 0, &mut datagram),
        }
        if what & 1 << 2 == 0 {
            let closed = server.client.receive(server.now, &mut datagram, &mut Seen::default());
            datagram.clear();
            if closed.is_err() {
                return server.over();
            }
        }
    }
    server.take_datagrams();
}

/// A server that has seen the client's first packet.
struct Server {
    client: Connection<u64>,
    now: Instant,
    keys: LevelKeys,
    number: u64,
}

impl Server {
    fn new() -> Self {
        let mut client = client();
        let now = Instant::from_nanos(0);
        let mut first = Vec::new();
        client.transmit(now, &mut first, 1);
        let (original, _) = packet::parse(&first, LocalCids::LEN).expect("a client begins with a packet");
        let suite = InitialSuite::new(&TLS).expect("the suite that QUIC needs");
        Self { client, now, keys: suite.keys(&original), number: 0 }
    }

    /// Appends a packet to `out` that has a first byte and then, behind what is put in here, the other bytes.
    fn complete(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some((&first, rest)) = bytes.split_first() else { return };
        out.push(first);
        if first & 0x80 != 0 {
            out.extend_from_slice(&packet::V1.to_be_bytes());
            out.push(LocalCids::LEN as u8);
        }
        out.extend_from_slice(&self.client.local.id(0));
        if first & 0x80 != 0 {
            out.push(SERVER.len() as u8);
            out.extend_from_slice(SERVER);
        }
        out.extend_from_slice(rest);
    }

    /// Appends an Initial packet with these frames.
    fn seal(&mut self, frames: &[u8], again: bool, out: &mut Vec<u8>) {
        let start = out.len();
        let own = self.client.local.id(0);
        let length_at = packet::write_long(out, LongType::Initial, &own, SERVER, &[], self.number);
        let number_at = out.len() - LONG_NUMBER;
        out.extend_from_slice(frames);
        packet::set_length(out, length_at, LONG_NUMBER + frames.len() + 16);
        let keys = self.keys.remote.as_ref().expect("Initial keys are of both directions");
        seal(&*keys.header, &*keys.packet, out, (start, number_at, LONG_NUMBER), self.number);
        self.number += u64::from(!again);
    }

    /// What the client sends: datagrams that are not too long, and full with an Initial packet in front.
    fn take_datagrams(&mut self) {
        let mut out = Vec::new();
        let count = self.client.transmit(self.now, &mut out, 4);
        let segment = self.client.segment();
        assert!(count <= 4 && out.len() <= count * segment);
        for datagram in out.chunks(segment) {
            let server_len = SERVER.len();
            let (_, packet) = packet::parse(datagram, server_len).expect("a packet");
            let initial = matches!(packet, Packet::Long { kind: LongType::Initial, .. });
            assert!(!initial || datagram.len() >= 1200, "{} bytes", datagram.len());
        }
    }

    /// The connection has ended: nothing is waited for, and nothing is heard any more.
    fn over(&mut self) {
        assert_eq!(self.client.deadline(), None);
        self.take_datagrams();
        let mut datagram = Vec::new();
        self.seal(&[1, 0], false, &mut datagram);
        let received = self.client.health().datagrams_received;
        assert_eq!(self.client.receive(self.now, &mut datagram, &mut Seen::default()), Ok(()));
        assert_eq!(self.client.health().datagrams_received, received);
        assert_eq!(self.client.transmit(self.now, &mut Vec::new(), 4), 0);
    }
}

/// Reads `data` as the frames a server sends, and panics when it makes a difference whether they come in one packet
/// or in many, when a stream goes on after its end, when something is written that was not there to be
/// sent or that does not fit, or when more is kept to be sent than was asked for.
///
/// The lowest 3 bits of the first byte say how many requests the client has opened. Bit 3: the server's limits are
/// narrow. Bit 4: a request is longer than a packet. Then records follow, each of a byte and a length, also a byte.
/// The lowest 3 bits of the former are up to 3 for the frames of a packet, which follow, of 1-RTT or with bit 3 of a
/// Handshake packet. 4: the client sends a packet of 8 times the length. 5: it gives a request up. 6: it opens one.
/// 7: so many milliseconds pass.
pub fn fuzz_frames(data: &[u8]) {
    frames_alone(data);
    let Some((&setup, records)) = data.split_first() else { return };
    let expected = transcript(setup, records, false);
    assert_eq!(transcript(setup, records, true), expected, "each frame in a packet of its own");
}

/// What holds of frames whatever becomes of them.
fn frames_alone(payload: &[u8]) {
    let mut reader = Reader::new(payload);
    let mut left = payload.len();
    while let Ok(Some((_, frame))) = reader.next() {
        assert!(reader.left() < left, "a frame has bytes");
        let took = left - reader.left();
        left = reader.left();
        match frame {
            Frame::Ack(ack) => {
                let mut above = ack.largest.checked_add(2);
                let mut count = 0;
                for (low, high) in ack.ranges() {
                    assert!(low <= high && Some(high + 2) <= above, "ranges go down and do not touch");
                    above = Some(low);
                    count += 1;
                }
                assert!((1..=took).contains(&count));
            }
            Frame::Stream { offset, data, .. } | Frame::Crypto { offset, data } => {
                assert!(data.len() < took && offset + data.len() as u64 <= varint::MAX);
            }
            Frame::NewConnectionId { id, .. } => assert!(ConnectionId::new(id).is_some()),
            _ => {}
        }
    }
}

/// What was told of the streams, and how it ended.
#[derive(PartialEq, Eq, Debug)]
struct Transcript {
    told: Vec<Told>,
    open: Vec<u64>,
    outcome: Result<(), Closed>,
}

/// What happens when a server sends these records, with the frames of a packet together or `apart`.
fn transcript(setup: u8, mut records: &[u8], apart: bool) -> Transcript {
    let mut peer = Peer::new(setup);
    let mut outcome = Ok(());
    while let &[what, length, ref rest @ ..] = records
        && outcome.is_ok()
    {
        records = rest;
        match what & 7 {
            4 => peer.send(8 * usize::from(length)),
            5 => peer.give_up(u64::from(length & 7) << 2),
            6 => peer.open(),
            7 => outcome = peer.pass(Span::from_millis(length.into())),
            _ => {
                let (payload, behind) = rest.split_at(rest.len().min(length.into()));
                records = behind;
                let level = if what & 1 << 3 == 0 { Level::Data } else { Level::Handshake };
                outcome = peer.receive(level, payload, apart);
            }
        }
        peer.check();
    }
    let open = peer.client.iter().map(|(id, _)| id).collect();
    Transcript { told: peer.seen.told, open, outcome }
}

/// A client beyond its handshake, as its peer sees it.
struct Peer {
    client: Connection<u64>,
    now: Instant,
    image: Arc<[u8]>,
    seen: Seen,
    /// Bytes received.
    received: usize,
    /// Frames sent.
    sent: usize,
}

impl Peer {
    fn new(setup: u8) -> Self {
        let bit = |bit: u8| setup & 1 << bit != 0;
        let limits = if bit(3) {
            Limits { data: 100, bidi_data: 30, uni_data: 5, bidi: 4, uni: 2 }
        } else {
            Limits { data: 100_000, bidi_data: 10_000, uni_data: 1000, bidi: 100, uni: 3 }
        };
        let image = vec![b'x'; if bit(4) { 3000 } else { 40 }].into();
        let mut client = client();
        client.streams.set_limits(limits);
        for _ in 0..3 {
            client.open_uni(b"settings");
        }
        let now = Instant::from_nanos(0);
        let mut peer = Self { client, now, image, seen: Seen::default(), received: 0, sent: 0 };
        for _ in 0..setup & 7 {
            peer.open();
        }
        peer
    }

    fn open(&mut self) {
        if self.client.streams.room() > 0 {
            let next = self.seen.opened << 2;
            assert_eq!(self.client.open(next, &self.image), next);
            self.seen.opened += 1;
        }
    }

    fn receive(&mut self, level: Level, payload: &[u8], apart: bool) -> Result<(), Closed> {
        self.received += payload.len();
        if !apart || payload.is_empty() {
            return self.client.process(self.now, level, payload, &mut self.seen).map(|_| ());
        }
        let mut reader = Reader::new(payload);
        while reader.left() > 0 {
            let from = payload.len() - reader.left();
            let to = if reader.next().is_ok() { payload.len() - reader.left() } else { payload.len() };
            self.client.process(self.now, level, &payload[from..to], &mut self.seen)?;
            if to == payload.len() {
                break;
            }
        }
        Ok(())
    }

    fn give_up(&mut self, id: u64) {
        if let Some(kept) = self.client.abandon(id, 9) {
            assert!(kept == id && self.seen.given_up.insert(id));
        }
    }

    /// The client sends a packet of at most `room` bytes.
    fn send(&mut self, room: usize) {
        let mut out = Vec::new();
        let (flight, sent) = (&mut self.client.spaces[Level::Data as usize].flight, &mut self.sent);
        self.client.streams.write(&mut out, room, &mut |tracked| {
            flight.carry(tracked);
            *sent += 1;
        });
        assert!(out.len() <= room, "{} bytes for {room}", out.len());
        if out.is_empty() {
            return;
        }
        let size = out.len() as u16;
        flight.sent(self.now, size, true);
        self.client.congestion.sent(size.into());
        let mut reader = Reader::new(&out);
        while let Some((_, frame)) = reader.next().expect("frames that can be read") {
            let Frame::Stream { id, offset, data, fin } = frame else { continue };
            let whole: &[u8] = if id & 3 == 0 { &self.image } else { b"settings" };
            let end = offset as usize + data.len();
            assert_eq!(data, &whole[offset as usize..end], "stream {id} from {offset}");
            assert_eq!(fin, id & 3 == 0 && end == whole.len());
            assert!(id & 3 != 0 || id < self.seen.opened << 2);
        }
    }

    fn pass(&mut self, time: Span) -> Result<(), Closed> {
        self.now = self.now + time;
        if self.client.deadline().is_some_and(|deadline| deadline <= self.now) {
            return self.client.elapse(self.now);
        }
        Ok(())
    }

    fn check(&self) {
        let waiting = self.client.streams.pending.len();
        assert!(waiting <= 16 + self.received + 8 * self.sent, "{waiting} frames wait to be sent");
        assert!(self.client.iter().map(|(id, _)| id).is_sorted());
        assert!(self.client.iter().all(|(id, kept)| id == *kept && !self.seen.given_up.contains(&id)));
        assert!(!self.client.describe(2).is_empty());
    }
}

/// Something an application was told.
#[derive(PartialEq, Eq, Debug)]
enum Told {
    Data(u64, Vec<u8>, bool),
    Reset(u64, u64),
    Stopped(u64, u64),
}

/// An application that is told only what may be. What it says to data depends on the first byte of them.
#[derive(Default)]
struct Seen {
    told: Vec<Told>,
    /// Requests that were opened.
    opened: u64,
    /// Streams that were received to their end, or reset.
    ended: BTreeSet<u64>,
    /// Streams of which nothing more is wanted.
    given_up: BTreeSet<u64>,
}

impl Seen {
    /// Bytes, or their end, of a stream that has not ended.
    fn tell(&mut self, id: u64, bytes: &[u8], fin: bool) -> Result<(), ApplicationError> {
        assert!(fin || !bytes.is_empty(), "nothing is no news");
        assert!(!self.ended.contains(&id) && !self.given_up.contains(&id), "stream {id} goes on");
        self.told.push(Told::Data(id, bytes.to_vec(), fin));
        if fin {
            self.ended.insert(id);
        }
        match bytes.first() {
            Some(0xfd) => Err(ApplicationError { code: 7, kind: "told-to", text: String::new() }),
            _ => Ok(()),
        }
    }
}

impl Application<u64> for Seen {
    fn data(
        &mut self,
        kept: &mut u64,
        id: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Result<Progress, ApplicationError> {
        assert!(id == *kept && id < self.opened << 2);
        self.tell(id, bytes, fin)?;
        let progress = match bytes.first() {
            Some(0xff) => Progress::Abandon(8),
            Some(0xfe) => Progress::Done,
            _ => return Ok(Progress::More),
        };
        self.given_up.insert(id);
        Ok(progress)
    }

    fn reset(&mut self, kept: &mut u64, id: u64, code: u64) -> Result<Progress, ApplicationError> {
        assert!(id == *kept && !self.given_up.contains(&id) && self.ended.insert(id));
        self.told.push(Told::Reset(id, code));
        if code & 1 == 0 {
            return Ok(Progress::More);
        }
        self.given_up.insert(id);
        Ok(Progress::Abandon(code))
    }

    fn stopped(&mut self, kept: &mut u64, id: u64, code: u64) -> Result<Progress, ApplicationError> {
        assert!(id == *kept && !self.given_up.contains(&id));
        self.told.push(Told::Stopped(id, code));
        Ok(Progress::More)
    }

    fn uni_data(&mut self, id: u64, bytes: &[u8], fin: bool) -> Result<(), ApplicationError> {
        assert_eq!(id & 3, 3);
        self.tell(id, bytes, fin)
    }

    fn uni_reset(&mut self, id: u64, code: u64) -> Result<(), ApplicationError> {
        assert!(id & 3 == 3 && self.ended.insert(id));
        self.told.push(Told::Reset(id, code));
        Ok(())
    }

    fn uni_stopped(&mut self, id: u64, code: u64) -> Result<(), ApplicationError> {
        assert_eq!(id & 3, 2);
        self.told.push(Told::Stopped(id, code));
        Ok(())
    }
}

/// A connection that is not begun, to which the server may open 4 streams.
fn client() -> Connection<u64> {
    let name = ServerName::try_from("localhost").expect("a valid name");
    let config = Config { uni_streams: 4, ..Config::default() };
    let tls = Arc::clone(&TLS);
    Connection::new(&config, tls, name, 7 << 16, 1, Instant::from_nanos(0)).expect("TLS begins")
}

/// Made once. No handshake comes so far that a certificate is looked at.
static TLS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3 with the suites of the provider");
    Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
});

/// The server's connection id.
const SERVER: &[u8] = b"server";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn integers(kind: u8, values: &[u64]) -> Vec<u8> {
        let mut out = vec![kind];
        for value in values {
            varint::write(&mut out, *value);
        }
        out
    }

    /// Frames that mean something more often than bytes at random.
    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let id = prop_oneof![4 => (0..5_u64).prop_map(|number| number << 2), 3 => 0..24_u64];
        let offset = prop_oneof![4 => 0..40_u64, 1 => Just(varint::MAX - 3), 1 => Just(16 << 20)];
        let data = prop_oneof![
            4 => prop::collection::vec(0..9_u8, 0..20),
            1 => prop::collection::vec(0xfd..=0xff_u8, 1..4),
        ];
        let stream = (0..8_u8, id.clone(), offset.clone(), data).prop_map(|(bits, id, offset, data)| {
            let with_offset: &[u64] = if bits & 4 == 0 { &[id] } else { &[id, offset] };
            let mut out = integers(0x08 | bits, with_offset);
            if bits & 2 != 0 {
                varint::write(&mut out, data.len() as u64);
            }
            [out, data].concat()
        });
        let ack = (0..6_u64, 0..3_u64, 0..3_u64).prop_map(|(largest, first, more)| {
            let gaps = [0, 0].repeat(more as usize);
            integers(0x02, &[&[largest, 0, more, first][..], &gaps].concat())
        });
        prop_oneof![
            8 => stream,
            4 => ack,
            2 => (id.clone(), 0..4_u64, offset.clone()).prop_map(|(id, code, size)| integers(4, &[id, code, size])),
            2 => (id.clone(), 0..4_u64).prop_map(|(id, code)| integers(5, &[id, code])),
            1 => (offset, 0..3_usize).prop_map(|(at, len)| [integers(6, &[at, len as u64]), vec![2; len]].concat()),
            2 => (0..4000_u64).prop_map(|max| integers(0x10, &[max])),
            2 => (id, 0..4000_u64).prop_map(|(id, max)| integers(0x11, &[id, max])),
            1 => (0..10_u64).prop_map(|max| integers(0x12, &[max])),
            1 => (0..10_u64).prop_map(|max| integers(0x13, &[max])),
            1 => (0..6_u64, 0..6_u64, 1..9_u8).prop_map(|(sequence, prior, len)| {
                let id = vec![sequence as u8; usize::from(len) + 16];
                [integers(0x18, &[sequence, prior]), vec![len], id].concat()
            }),
            1 => (0..3_u64).prop_map(|sequence| integers(0x19, &[sequence])),
            1 => Just(vec![0x1a, 1, 2, 3, 4, 5, 6, 7, 8]),
            1 => Just(vec![0x1e]),
            1 => Just(vec![0x00, 0x00, 0x01]),
            1 => prop::collection::vec(any::<u8>(), 0..6),
        ]
    }

    fn record() -> impl Strategy<Value = Vec<u8>> {
        let packet = (0..16_u8, prop::collection::vec(frame(), 0..6)).prop_map(|(what, frames)| {
            let payload = frames.concat();
            [&[what & !4, payload.len() as u8], &payload[..payload.len().min(255)]].concat()
        });
        prop_oneof![
            4 => packet,
            2 => (0..40_u8).prop_map(|length| vec![4, length]),
            1 => (5..8_u8, any::<u8>()).prop_map(|(what, length)| vec![what, length]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn no_frames_are_too_strange(setup: u8, records in prop::collection::vec(record(), 0..16)) {
            fuzz_frames(&[&[setup], &records.concat()[..]].concat());
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_frames(&bytes);
            fuzz_packets(&bytes);
        }

        /// Datagrams of the handshake that are packets more often than bytes at random.
        #[test]
        fn no_handshake_is_too_strange(
            packets in prop::collection::vec((0..64_u8, prop::collection::vec(frame(), 0..4)), 0..10),
        ) {
            let records = packets.into_iter().map(|(what, frames)| {
                let payload = frames.concat();
                [&[what, payload.len() as u8], &payload[..payload.len().min(255)]].concat()
            });
            fuzz_packets(&records.collect::<Vec<_>>().concat());
        }

        #[test]
        fn no_header_is_too_strange(
            first: u8, version in prop_oneof![3 => Just(1_u32), 1 => Just(0), 1 => any::<u32>()],
            ids in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..22), 2),
            rest in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes = vec![first];
            bytes.extend(version.to_be_bytes());
            for id in ids {
                bytes.push(id.len() as u8);
                bytes.extend(id);
            }
            bytes.extend(rest);
            headers(&bytes);
        }
    }
}
