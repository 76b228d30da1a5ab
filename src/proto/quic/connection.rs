//! Owns a QUIC connection of a client: its handshake, its packet number spaces, its end. What leaves it is
//! made in [`super::transmit`].

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, KeyChange, Version};
use rustls::{ClientConfig, HandshakeKind};

use super::cids::{ACTIVE_LIMIT, LocalCids, PeerCids};
use super::frame::{Ack, Frame, Reader};
use super::keys::{InitialSuite, LevelKeys, OneRtt, uncover};
use super::packet::{self, ConnectionId, LongType, Packet};
use super::parameters::Parameters;
use super::recovery::{Congestion, RoundTrip};
use super::space::{LEVELS, Level, MAX_ACK_DELAY, Space};
use super::streams::{CONNECTION_WINDOW, Limits, STREAM_WINDOW, Streams, Tracked};
use super::violation::{Closed, Violation};
use super::{Application, ApplicationError, Health};
use crate::proto::tls::kind_of;
use crate::time::{Instant, Span};

/// Settings of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest UDP payload to send, 1200 to 65507 bytes (RFC 9000 §14).
    pub payload: u16,
    /// Unidirectional streams the peer may have open at once.
    pub uni_streams: u64,
    /// Spread what is sent over the round-trip time (RFC 9002 §7.7).
    pub pacing: bool,
    /// Packets after which keys are updated; `None`: before the limit of the cipher (RFC 9001 §6.6).
    pub key_update_after: Option<u64>,
    /// The connection ends when nothing was heard for so long.
    pub idle_timeout: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            payload: SMALLEST_PAYLOAD,
            uni_streams: 32,
            pacing: false,
            key_update_after: None,
            idle_timeout: Span::from_secs(60),
        }
    }
}

/// A connection; `S` is what the application keeps with each bidirectional stream it opened.
#[derive(Debug)]
pub struct Connection<S> {
    pub(super) config: Config,
    tls: ClientConnection,
    suite: InitialSuite,
    /// The TLS bytes of this side go out on this level.
    tls_level: Level,
    pub(super) spaces: [Space; 3],
    pub(super) one_rtt: Option<OneRtt>,
    pub(super) streams: Streams<S>,
    pub(super) rtt: RoundTrip,
    pub(super) congestion: Congestion,
    pub(super) probe_count: u32,
    pub(super) local: LocalCids,
    pub(super) peer: PeerCids,
    original: ConnectionId,
    retried: Option<ConnectionId>,
    pub(super) token: Vec<u8>,
    pub(super) params: Option<Parameters>,
    /// What early data is sent under.
    remembered: Option<Box<Parameters>>,
    early: Early,
    established: bool,
    /// The peer is known to have completed the handshake (HANDSHAKE_DONE).
    pub(super) confirmed: bool,
    /// A packet of the peer was accepted.
    heard: bool,
    pub(super) closing: Option<Closed>,
    over: bool,
    last_heard: Instant,
    /// The first packet since then that asks for an answer.
    pub(super) asked: Option<Instant>,
    pub(super) challenges: Vec<[u8; 8]>,
    pub(super) pace: Pace,
    pub(super) health: Health,
}

/// What became of early data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Early {
    None,
    Offered,
    Accepted,
    Rejected,
}

/// When the next datagrams may leave, with pacing.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Pace {
    pub(super) until: Option<Instant>,
    pub(super) allowance: u64,
    pub(super) at: Instant,
}

/// What kind of handshake a connection had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeSummary {
    /// With a ticket of an earlier connection.
    pub resumed: bool,
    /// `Some(true)`: early data was accepted; `Some(false)`: it was sent and not accepted.
    pub early: Option<bool>,
}

impl<S> Connection<S> {
    /// A connection that is not begun; [`Connection::transmit`] begins it. `cid` is the connection id
    /// the peer is to use; its lowest 16 bits are replaced by the number of the id, of which the peer gets
    /// several. `seed` makes what is to be unpredictable.
    ///
    /// # Errors
    /// When TLS cannot begin.
    pub fn new(
        config: &Config,
        tls: Arc<ClientConfig>,
        name: ServerName<'static>,
        cid: u64,
        seed: u64,
        now: Instant,
    ) -> Result<Self, rustls::Error> {
        let local = LocalCids::new(cid, seed);
        let suite = InitialSuite::new(&tls)?;
        let parameters = own_parameters(config, &local);
        let tls = ClientConnection::new(tls, Version::V1, name, parameters)?;
        let original = local.unpredictable_id();
        let payload = config.payload.max(SMALLEST_PAYLOAD);
        let mut connection = Self {
            config: Config { payload, ..config.clone() },
            tls,
            suite,
            tls_level: Level::Initial,
            spaces: [Space::new(), Space::new(), Space::new()],
            one_rtt: None,
            streams: Streams::new(config.uni_streams),
            rtt: RoundTrip::default(),
            congestion: Congestion::new(payload.into()),
            probe_count: 0,
            local,
            peer: PeerCids::new(original),
            original,
            retried: None,
            token: Vec::new(),
            params: None,
            remembered: None,
            early: Early::None,
            established: false,
            confirmed: false,
            heard: false,
            closing: None,
            over: false,
            last_heard: now,
            asked: None,
            challenges: Vec::new(),
            pace: Pace { at: now, ..Pace::default() },
            health: Health::default(),
        };
        connection.spaces[0].keys = Some(connection.suite.keys(&original));
        connection.write_tls();
        connection.begin_early_data();
        Ok(connection)
    }

    /// 0-RTT keys and the limits remembered from the connection that the ticket is of.
    fn begin_early_data(&mut self) {
        let Some(local) = self.tls.zero_rtt_keys() else { return };
        let remembered =
            self.tls.quic_transport_parameters().and_then(|bytes| Parameters::decode(bytes).ok());
        let Some(remembered) = remembered else { return };
        self.streams.set_limits(limits(&remembered));
        self.remembered = Some(Box::new(remembered));
        self.spaces[Level::Data as usize].keys = Some(LevelKeys { local, remote: None });
        self.early = Early::Offered;
    }

    /// Moves what TLS has to say to the spaces, with the keys it comes to.
    fn write_tls(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let change = self.tls.write_hs(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                return;
            }
            self.spaces[self.tls_level as usize].queue_crypto(&bytes);
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.spaces[Level::Handshake as usize].keys = Some(keys.into());
                    self.tls_level = Level::Handshake;
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.one_rtt = Some(OneRtt::new(keys, next, self.config.key_update_after));
                    self.tls_level = Level::Data;
                }
                None => (),
            }
        }
    }

    /// Takes one UDP datagram in, which is decrypted in place.
    ///
    /// # Errors
    /// The connection is over; [`Connection::transmit`] may still have its CONNECTION_CLOSE.
    pub fn receive<A: Application<S>>(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
        application: &mut A,
    ) -> Result<(), Closed> {
        if self.over {
            return Ok(());
        }
        self.health.datagrams_received += 1;
        let done = self.receive_packets(now, datagram, application);
        if let Err(closed) = &done {
            self.end(closed.clone());
        }
        done
    }

    fn receive_packets<A: Application<S>>(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
        application: &mut A,
    ) -> Result<(), Closed> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let Some((destination, parsed)) = packet::parse(rest, LocalCids::LEN) else {
                self.health.stray_packets += 1;
                return Ok(());
            };
            let end = match parsed {
                Packet::Long { end, .. } => end,
                _ => rest.len(),
            };
            let (bytes, after) = rest.split_at_mut(end);
            rest = after;
            if !self.local.is_own(&destination) {
                return self.stray(bytes);
            }
            match parsed {
                Packet::Short { number_at } => self.receive_short(now, bytes, number_at, application)?,
                Packet::Long { kind, source, number_at, .. } => {
                    self.receive_long(now, bytes, kind, source, number_at, application)?;
                }
                Packet::Retry { source, token } => {
                    let token = bytes[token].to_vec();
                    self.receive_retry(bytes, source, token);
                }
                Packet::Versions { source, offered } => self.receive_versions(source, offered)?,
            }
        }
        Ok(())
    }

    /// A packet that cannot be used, unless it says that the peer has forgotten the connection.
    #[cold]
    fn stray(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        if bytes.len() >= SHORTEST_RESET
            && bytes[0] & 0x80 == 0
            && self.peer.is_reset_token(&bytes[bytes.len() - 16..])
        {
            return Err(Closed::StatelessReset);
        }
        self.health.stray_packets += 1;
        Ok(())
    }

    #[inline]
    fn receive_short<A: Application<S>>(
        &mut self,
        now: Instant,
        bytes: &mut [u8],
        number_at: usize,
        application: &mut A,
    ) -> Result<(), Closed> {
        // Decrypting a packet that is none spoils it, and its end may be a token.
        let mut tail = [0; 16];
        if let Some(at) = bytes.len().checked_sub(16) {
            tail.copy_from_slice(&bytes[at..]);
        }
        let space = &self.spaces[Level::Data as usize];
        let Some(keys) = &mut self.one_rtt else { return self.stray(bytes) };
        let Some((len, truncated)) = keys.uncover(bytes, number_at) else { return self.stray(bytes) };
        let number = packet::decode_number(space.expected(), truncated, len);
        let first = bytes[0];
        let phase = first & 4 != 0;
        let (header, body) = bytes.split_at_mut(number_at + len);
        let phase_before = keys.phase;
        let Some(plain) = keys.open(number, phase, header, body)? else {
            if let Some(at) = bytes.len().checked_sub(16) {
                bytes[at..].copy_from_slice(&tail);
                bytes[0] &= 0x7f;
            }
            return self.stray(bytes);
        };
        keys.received(number, phase);
        self.health.key_updates += u64::from(keys.phase != phase_before);
        if first & 0x18 != 0 {
            return Err(Violation::Protocol("reserved bits of a packet that are not 0").into());
        }
        if space.is_duplicate(number) {
            self.health.duplicate_packets += 1;
            return Ok(());
        }
        let eliciting = self.process(now, Level::Data, &body[..plain], application)?;
        self.accept(now, Level::Data, number, eliciting);
        Ok(())
    }

    fn receive_long<A: Application<S>>(
        &mut self,
        now: Instant,
        bytes: &mut [u8],
        kind: LongType,
        source: ConnectionId,
        number_at: usize,
        application: &mut A,
    ) -> Result<(), Closed> {
        let level = match kind {
            LongType::Initial => Level::Initial,
            LongType::Handshake => Level::Handshake,
            // A server never sends it.
            LongType::ZeroRtt => return self.stray(bytes),
        };
        let space = &mut self.spaces[level as usize];
        let Some(keys) = space.keys.as_ref().and_then(|keys| keys.remote.as_ref()) else {
            // Of a level that is over, or that has no keys yet.
            self.health.stray_packets += u64::from(self.one_rtt.is_none());
            return Ok(());
        };
        if self.heard && source != self.peer.handshake_source() {
            return self.stray(bytes);
        }
        let Some((len, truncated)) = uncover(&*keys.header, bytes, number_at) else {
            return self.stray(bytes);
        };
        let number = packet::decode_number(space.expected(), truncated, len);
        let first = bytes[0];
        let (header, body) = bytes.split_at_mut(number_at + len);
        let Ok(plain) = keys.packet.decrypt_in_place(number, header, body) else {
            self.health.stray_packets += 1;
            return Ok(());
        };
        let plain = plain.len();
        if first & 0x0c != 0 {
            return Err(Violation::Protocol("reserved bits of a packet that are not 0").into());
        }
        if space.is_duplicate(number) {
            self.health.duplicate_packets += 1;
            return Ok(());
        }
        if !self.heard {
            self.heard = true;
            self.peer.set_handshake_source(source);
        }
        let eliciting = self.process(now, level, &body[..plain], application)?;
        self.accept(now, level, number, eliciting);
        Ok(())
    }

    #[inline]
    fn accept(&mut self, now: Instant, level: Level, number: u64, eliciting: bool) {
        self.spaces[level as usize].received(number, eliciting, now, level);
        self.last_heard = now;
        self.asked = None;
    }

    fn receive_retry(&mut self, bytes: &[u8], source: ConnectionId, token: Vec<u8>) {
        // One is honoured, and only before anything else was heard (RFC 9000 §17.2.5).
        let usable = !self.heard
            && self.retried.is_none()
            && !token.is_empty()
            && source != self.original
            && packet::retry_is_genuine(bytes, &self.original);
        if !usable {
            self.health.stray_packets += 1;
            return;
        }
        self.health.retries += 1;
        self.retried = Some(source);
        self.token = token;
        self.peer.retry(source);
        let congestion = &mut self.congestion;
        let initial = &mut self.spaces[0];
        initial.flight.abandon(|sent| congestion.gone(sent), |_| ());
        initial.rewind_crypto();
        initial.keys = Some(self.suite.keys(&source));
        // Early data goes out again as well; packet numbers go on.
        let streams = &mut self.streams;
        self.spaces[Level::Data as usize]
            .flight
            .abandon(|sent| congestion.gone(sent), |tracked| streams.lost(tracked));
        self.probe_count = 0;
    }

    fn receive_versions(&mut self, source: ConnectionId, offered: Vec<u32>) -> Result<(), Closed> {
        // It answers the first packet alone, echoes its id, and would not be sent if it listed version 1.
        let believable = !self.heard && self.retried.is_none() && source == self.original;
        if !believable || offered.contains(&packet::V1) {
            self.health.stray_packets += 1;
            return Ok(());
        }
        Err(Closed::Versions(offered))
    }

    /// Handles the frames of a packet; true when it asks for an acknowledgement.
    #[inline]
    pub(super) fn process<A: Application<S>>(
        &mut self,
        now: Instant,
        level: Level,
        payload: &[u8],
        application: &mut A,
    ) -> Result<bool, Closed> {
        if payload.is_empty() {
            return Err(Violation::Protocol("a packet without a frame").into());
        }
        let mut reader = Reader::new(payload);
        let mut eliciting = false;
        while let Some((kind, frame)) = reader.next()? {
            match frame {
                Frame::Stream { id, offset, data, fin } if level == Level::Data => {
                    eliciting = true;
                    self.streams.receive(id, offset, data, fin, application)?;
                }
                Frame::Ack(ack) => self.on_ack(now, level, &ack)?,
                Frame::Padding => (),
                frame => {
                    eliciting |= !matches!(frame, Frame::Close { .. });
                    self.on_frame(level, kind, frame, application)?;
                }
            }
        }
        Ok(eliciting)
    }

    fn on_frame<A: Application<S>>(
        &mut self,
        level: Level,
        kind: u64,
        frame: Frame<'_>,
        application: &mut A,
    ) -> Result<(), Closed> {
        match frame {
            Frame::Ping => return Ok(()),
            Frame::Crypto { offset, data } => return self.on_crypto(level, offset, data),
            Frame::Close { application: false, code, reason } => return Err(by_peer(false, code, reason)),
            _ if level != Level::Data => {
                let what = "a frame that does not belong into a packet of the handshake";
                return Err(Violation::Protocol(what).into());
            }
            Frame::Close { application, code, reason } => return Err(by_peer(application, code, reason)),
            Frame::ResetStream { id, code, final_size } => {
                return self.streams.receive_reset(id, code, final_size, application);
            }
            Frame::StopSending { id, code } => return self.streams.receive_stop(id, code, application),
            Frame::MaxData(max) => self.streams.receive_max_data(max),
            Frame::MaxStreamData { id, max } => self.streams.receive_max_stream_data(id, max)?,
            Frame::MaxStreams { bidi, max } => self.streams.receive_max_streams(bidi, max),
            Frame::NewConnectionId { sequence, retire_prior_to, id, reset_token } => {
                self.peer.add(sequence, retire_prior_to, id, reset_token)?;
                self.retire_cids()?;
            }
            Frame::RetireConnectionId(sequence) => {
                if let Some(fresh) = self.local.retire(sequence)? {
                    self.streams.pending.push_back(Tracked::NewCid(fresh));
                }
            }
            Frame::PathChallenge(data) => {
                // One answer is enough for many of them.
                if self.challenges.len() < MOST_CHALLENGES {
                    self.challenges.push(data);
                }
            }
            Frame::HandshakeDone => self.confirm(),
            Frame::Blocked | Frame::NewToken(_) => (),
            Frame::PathResponse => {
                return Err(Violation::Protocol("PATH_RESPONSE without a PATH_CHALLENGE").into());
            }
            Frame::Padding | Frame::Ack(_) | Frame::Stream { .. } => {
                return Err(Violation::Frame { kind, what: "a frame out of place" }.into());
            }
        }
        Ok(())
    }

    fn retire_cids(&mut self) -> Result<(), Violation> {
        while let Some(sequence) = self.peer.take_retired() {
            self.streams.pending.push_back(Tracked::Retire(sequence));
        }
        let waiting = self.streams.pending.iter().filter(|p| matches!(p, Tracked::Retire(_))).count();
        if waiting > MOST_RETIRING {
            return Err(Violation::Protocol("connection ids retired faster than that can be acknowledged"));
        }
        Ok(())
    }

    fn on_crypto(&mut self, level: Level, offset: u64, data: &[u8]) -> Result<(), Closed> {
        let tls = &mut self.tls;
        let fed = self.spaces[level as usize].receive_crypto(offset, data, |bytes| {
            tls.read_hs(bytes).map_err(|error| Violation::Tls {
                kind: kind_of(&error),
                alert: tls.alert().map_or(INTERNAL_ERROR, u8::from),
                text: error.to_string(),
            })
        });
        fed?;
        self.write_tls();
        if !self.established && !self.tls.is_handshaking() && self.one_rtt.is_some() {
            self.establish()?;
        }
        Ok(())
    }

    /// The handshake is complete: what the peer allows holds from now on.
    fn establish(&mut self) -> Result<(), Closed> {
        let bytes = self.tls.quic_transport_parameters().unwrap_or_default();
        let bad = |error: &dyn std::fmt::Display| Violation::Parameters(error.to_string());
        let parameters = Parameters::decode(bytes).map_err(|error| bad(&error))?;
        let source = self.peer.handshake_source();
        parameters
            .validate_ids(&source, &self.original, self.retried.as_deref())
            .map_err(|error| bad(&error))?;
        self.peer.set_parameters(&parameters);
        let granted = limits(&parameters);
        if self.early == Early::Offered {
            if self.tls.is_early_data_accepted() {
                self.early = Early::Accepted;
                let remembered = self.remembered.take();
                if remembered.is_some_and(|remembered| parameters.reduced_from(&remembered).is_some()) {
                    return Err(
                        Violation::Protocol("limits below those that early data was sent under").into()
                    );
                }
                self.streams.set_limits(granted);
            } else {
                self.reject_early_data(granted);
            }
        } else {
            self.streams.set_limits(granted);
        }
        self.spaces[Level::Data as usize].keys = None;
        let most = u16::try_from(parameters.max_udp_payload_size.min(65_507)).unwrap_or(u16::MAX);
        self.config.payload = self.config.payload.min(most).max(SMALLEST_PAYLOAD);
        self.params = Some(parameters);
        self.established = true;
        Ok(())
    }

    fn reject_early_data(&mut self, granted: Limits) {
        self.early = Early::Rejected;
        let congestion = &mut self.congestion;
        self.spaces[Level::Data as usize].flight.abandon(|sent| congestion.gone(sent), |_| ());
        self.streams.rewind(granted);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// The peer has completed the handshake as well: its keys are not needed any more.
    fn confirm(&mut self) {
        if self.confirmed {
            return;
        }
        self.confirmed = true;
        self.discard(Level::Initial);
        self.discard(Level::Handshake);
        if let Some(fresh) = self.local.issue() {
            self.streams.pending.push_back(Tracked::NewCid(fresh));
        }
    }

    /// Drops the keys of a level and what is under way on it.
    pub(super) fn discard(&mut self, level: Level) {
        let congestion = &mut self.congestion;
        let space = &mut self.spaces[level as usize];
        if space.keys.take().is_some() {
            space.flight.abandon(|sent| congestion.gone(sent), |_| ());
            (space.probes, space.unacked, space.ack_due, space.ack_now) = (0, 0, None, false);
            self.probe_count = 0;
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Instant, level: Level, ack: &Ack<'_>) -> Result<(), Violation> {
        let limited = self.congestion.in_flight * 2 >= self.congestion.window;
        let (congestion, streams) = (&mut self.congestion, &mut self.streams);
        let space = &mut self.spaces[level as usize];
        let mut known = None;
        let acked = space.flight.acknowledge(
            ack.ranges(),
            |sent| congestion.acked(sent, limited),
            |tracked| match tracked {
                Tracked::Ack(largest) => known = known.max(Some(largest)),
                tracked => streams.acknowledged(tracked),
            },
        )?;
        if let Some(known) = known {
            space.forget_up_to(known);
        }
        self.health.spurious_losses += acked.spurious;
        if !acked.any {
            return Ok(());
        }
        if let Some(sent) = acked.sample {
            let delay = self.ack_delay(level, ack.delay);
            self.rtt.sample(now.since(sent), delay);
        }
        if level == Level::Data
            && let Some(keys) = &mut self.one_rtt
        {
            keys.acknowledged(ack.largest, now);
        }
        // Until the server has proved that it knows this side's address, it may be unable to answer probes.
        if level != Level::Initial {
            self.probe_count = 0;
        }
        self.detect_lost(now, level);
        Ok(())
    }

    fn ack_delay(&self, level: Level, delay: u64) -> Span {
        let Some(params) = self.params.as_ref().filter(|_| level == Level::Data) else { return Span::ZERO };
        let micros = delay.saturating_mul(1 << params.ack_delay_exponent.min(20)).min(1 << 40);
        let delay = Span::from_micros(micros);
        if self.confirmed { delay.min(self.peer_ack_delay()) } else { delay }
    }

    /// The longest the peer waits before it acknowledges.
    pub(super) fn peer_ack_delay(&self) -> Span {
        self.params.as_ref().map_or(MAX_ACK_DELAY, |params| Span::from_millis(params.max_ack_delay))
    }

    fn detect_lost(&mut self, now: Instant, level: Level) {
        let delay = self.rtt.loss_delay();
        let (congestion, streams) = (&mut self.congestion, &mut self.streams);
        let space = &mut self.spaces[level as usize];
        let (mut count, mut crypto) = (0, Vec::new());
        let span = space.flight.detect_lost(
            now,
            delay,
            |sent| {
                congestion.gone(sent);
                count += 1;
            },
            |tracked| match tracked {
                Tracked::Crypto { offset, len } => crypto.push((offset, len)),
                tracked => streams.lost(tracked),
            },
        );
        for (offset, len) in crypto {
            space.crypto_lost(offset, len);
        }
        self.health.packets_lost += count;
        let Some((first, last)) = span else { return };
        self.congestion.lost(last, now);
        let persistent = 3 * (self.rtt.probe_timeout() + self.peer_ack_delay()).as_nanos();
        if self.rtt.latest.is_some() && last.since(first).as_nanos() > persistent {
            self.congestion.collapse();
        }
    }

    /// What is due at `now` is done: losses, probes, delayed acknowledgements, the idle timeout.
    ///
    /// # Errors
    /// The connection is over.
    pub fn elapse(&mut self, now: Instant) -> Result<(), Closed> {
        if self.over {
            return Ok(());
        }
        if now >= self.idle_at() {
            self.over = true;
            return Err(Closed::Idle);
        }
        if self.keep_alive_at().is_some_and(|at| now >= at) {
            self.streams.pending.push_back(Tracked::Ping);
            // It is the next packet that asks.
            self.asked = Some(now);
        }
        for level in LEVELS {
            let space = &mut self.spaces[level as usize];
            if space.ack_due.is_some_and(|due| now >= due) {
                space.ack_now = true;
            }
            if space.flight.loss_at.is_some_and(|at| now >= at) {
                self.detect_lost(now, level);
            }
        }
        if let Some((at, level)) = self.probe_at()
            && now >= at
        {
            self.probe(level);
        }
        Ok(())
    }

    /// Sends the oldest packets under way once more, or something that asks for an answer.
    fn probe(&mut self, level: Level) {
        self.probe_count += 1;
        self.health.probe_timeouts += 1;
        let streams = &mut self.streams;
        let space = &mut self.spaces[level as usize];
        let mut crypto = Vec::new();
        let found = space.flight.oldest(2, |tracked| match tracked {
            Tracked::Crypto { offset, len } => crypto.push((offset, len)),
            tracked => streams.lost(tracked),
        });
        for (offset, len) in crypto {
            space.crypto_lost(offset, len);
        }
        space.probes = found.clamp(1, 2) as u8;
    }

    /// When to probe, and on which level (RFC 9002 §A.8).
    fn probe_at(&self) -> Option<(Instant, Level)> {
        if self.spaces.iter().any(|space| space.flight.loss_at.is_some()) {
            return None;
        }
        let doublings = self.probe_count.min(MOST_DOUBLINGS);
        let base = Span::from_nanos(self.rtt.probe_timeout().as_nanos() << doublings);
        let mut first: Option<(Instant, Level)> = None;
        for level in LEVELS {
            let flight = &self.spaces[level as usize].flight;
            if flight.eliciting == 0 || (level == Level::Data && !self.confirmed) {
                continue;
            }
            let delay = match level {
                Level::Data => Span::from_nanos(self.peer_ack_delay().as_nanos() << doublings),
                _ => Span::ZERO,
            };
            let at = flight.last_eliciting + base + delay;
            if first.is_none_or(|first| at < first.0) {
                first = Some((at, level));
            }
        }
        if first.is_none() && !self.confirmed {
            // The server may wait for leave to send more (RFC 9002 §6.2.2.1).
            let level = if self.spaces[1].keys.is_some() { Level::Handshake } else { Level::Initial };
            let last = LEVELS.map(|level| self.spaces[level as usize].flight.last_eliciting);
            let anchor = last.into_iter().fold(self.last_heard, Instant::max);
            return self.spaces[level as usize].keys.is_some().then_some((anchor + base, level));
        }
        first
    }

    fn idle_after(&self) -> Span {
        let theirs = self.params.as_ref().map_or(0, |params| params.max_idle_timeout);
        let agreed = match Span::from_millis(theirs.min(u64::from(u32::MAX))) {
            theirs if theirs.is_zero() => self.config.idle_timeout,
            theirs => theirs.min(self.config.idle_timeout),
        };
        agreed.max(Span::from_nanos(3 * self.rtt.probe_timeout().as_nanos()))
    }

    fn idle_at(&self) -> Instant {
        self.asked.map_or(self.last_heard, |asked| asked.max(self.last_heard)) + self.idle_after()
    }

    /// While answers are waited for, the connection is kept from being idle (RFC 9000 §10.1.2).
    fn keep_alive_at(&self) -> Option<Instant> {
        let wanted = self.confirmed && self.streams.open_count() > 0 && self.asked.is_none();
        wanted.then(|| self.last_heard + Span::from_nanos(self.idle_after().as_nanos() / 2))
    }

    /// When [`Connection::elapse`] is to be called next.
    pub fn deadline(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let spaces = self.spaces.iter().flat_map(|space| [space.ack_due, space.flight.loss_at]);
        let rest = [self.probe_at().map(|(at, _)| at), self.keep_alive_at(), self.pace.until];
        spaces.chain(rest).flatten().chain([self.idle_at()]).min()
    }

    /// The handshake is complete (not: confirmed).
    #[inline]
    pub fn established(&self) -> bool {
        self.established
    }

    /// Streams may be opened before the handshake is complete: their data goes out as 0-RTT.
    pub fn has_early_data(&self) -> bool {
        self.early == Early::Offered && !self.established
    }

    /// The peer has completed the handshake as well (HANDSHAKE_DONE, RFC 9001 §4.1.2).
    pub fn confirmed(&self) -> bool {
        self.confirmed
    }

    /// Its kind of handshake, once that is complete.
    pub fn handshake(&self) -> Option<HandshakeSummary> {
        let resumed = self.tls.handshake_kind() == Some(HandshakeKind::Resumed);
        let early = match self.early {
            Early::Accepted => Some(true),
            Early::Rejected => Some(false),
            Early::None | Early::Offered => None,
        };
        self.established.then_some(HandshakeSummary { resumed, early })
    }

    /// The TLS session, for what was negotiated.
    pub fn tls(&self) -> &rustls::CommonState {
        &self.tls
    }

    /// The peer's transport parameters, once the handshake is complete.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.params.as_ref()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn round_trip(&self) -> Option<Span> {
        self.rtt.latest.map(|_| self.rtt.smoothed)
    }

    /// Bidirectional streams that the peer's limit lets this side open now.
    #[inline]
    pub fn room(&self) -> u64 {
        if (self.established || self.early == Early::Offered) && !self.over { self.streams.room() } else { 0 }
    }

    /// Bidirectional streams that the peer lets be open at one time: its initial_max_streams_bidi
    /// (RFC 9000 §18.2), the remembered one before the handshake is complete.
    pub fn stream_limit(&self) -> u64 {
        match &self.params {
            Some(parameters) => parameters.initial_max_streams_bidi,
            None => self.streams.limits.bidi,
        }
    }

    /// Opens a bidirectional stream, sends `image` on it and ends it. To be called when there is room; the
    /// image is the same for all streams of a connection.
    #[inline]
    pub fn open(&mut self, stream: S, image: &Arc<[u8]>) -> u64 {
        self.streams.open(stream, image)
    }

    /// Opens a unidirectional stream and sends `bytes`. It is never ended.
    pub fn open_uni(&mut self, bytes: &[u8]) -> u64 {
        self.streams.open_uni(bytes)
    }

    /// Sends more on a unidirectional stream.
    pub fn append(&mut self, id: u64, bytes: &[u8]) {
        self.streams.append(id, bytes);
    }

    /// Gives a bidirectional stream up (RESET_STREAM, STOP_SENDING) and returns what was kept with it;
    /// `None` when it is over.
    pub fn abandon(&mut self, id: u64, code: u64) -> Option<S> {
        self.streams.abandon(id, code)
    }

    /// What is kept with a bidirectional stream that is not done.
    #[inline]
    pub fn stream(&mut self, id: u64) -> Option<&mut S> {
        self.streams.state(id)
    }

    /// Every bidirectional stream that is not done, in order of opening.
    pub fn streams(&mut self) -> impl Iterator<Item = (u64, &mut S)> {
        self.streams.states()
    }

    /// The same to look at.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &S)> {
        self.streams.iter()
    }

    /// Ends the connection with an error of the application; [`Connection::transmit`] has its
    /// CONNECTION_CLOSE.
    pub fn close(&mut self, error: &ApplicationError) {
        if !self.over {
            self.end(Closed::Application(error.clone()));
        }
    }

    fn end(&mut self, closed: Closed) {
        self.over = true;
        if matches!(closed, Closed::Violation(_) | Closed::Application(_)) {
            self.closing = Some(closed);
        }
    }

    /// A datagram was too large for the path (EMSGSIZE): from now on they are of the least size that every
    /// path takes.
    pub fn shrink(&mut self) {
        self.config.payload = SMALLEST_PAYLOAD;
    }

    /// Windows and states of the streams, in words: at most `most` streams.
    pub fn describe(&self, most: usize) -> String {
        let state = if self.established { "" } else { "the handshake is not complete; " };
        format!(
            "{state}{} of {} bytes of the congestion window in flight, {}",
            self.congestion.in_flight,
            self.congestion.window,
            self.streams.describe(most)
        )
    }

    /// What was counted so far.
    pub fn health(&self) -> Health {
        self.health
    }
}

fn by_peer(application: bool, code: u64, reason: &[u8]) -> Closed {
    let reason = String::from_utf8_lossy(&reason[..reason.len().min(MOST_REASON)]);
    let reason = reason.chars().filter(|character| !character.is_control()).collect();
    Closed::ByPeer { application, code, reason }
}

/// The transport parameters of this side (RFC 9000 §18.2), encoded.
fn own_parameters(config: &Config, local: &LocalCids) -> Vec<u8> {
    let parameters = Parameters {
        max_idle_timeout: config.idle_timeout.as_nanos() / 1_000_000,
        max_udp_payload_size: 65_507,
        initial_max_data: CONNECTION_WINDOW,
        initial_max_stream_data_bidi_local: STREAM_WINDOW,
        initial_max_stream_data_bidi_remote: STREAM_WINDOW,
        initial_max_stream_data_uni: STREAM_WINDOW,
        initial_max_streams_uni: config.uni_streams,
        active_connection_id_limit: ACTIVE_LIMIT,
        initial_source_connection_id: Some(local.id(0).to_vec()),
        grease_quic_bit: true,
        ..Parameters::default()
    };
    parameters.encode(local.noise())
}

fn limits(parameters: &Parameters) -> Limits {
    Limits {
        data: parameters.initial_max_data,
        bidi_data: parameters.initial_max_stream_data_bidi_remote,
        uni_data: parameters.initial_max_stream_data_uni,
        bidi: parameters.initial_max_streams_bidi,
        uni: parameters.initial_max_streams_uni,
    }
}

/// Least UDP payload that every path of QUIC takes (RFC 9000 §14).
pub(super) const SMALLEST_PAYLOAD: u16 = 1200;
const SHORTEST_RESET: usize = 21;
const MOST_CHALLENGES: usize = 4;
const MOST_RETIRING: usize = 64;
const MOST_DOUBLINGS: u32 = 10;
const MOST_REASON: usize = 200;
/// The alert internal_error (RFC 8446 §6).
const INTERNAL_ERROR: u8 = 80;
