//! Owns packet protection (RFC 9001 §5, §6): sealing and opening packets, and the succession of 1-RTT keys.

use rustls::quic::{
    DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, PacketKeySet, Secrets, Suite, Version,
};
use rustls::{CipherSuite, ClientConfig, Error, Side};

use super::violation::Violation;
use crate::time::{Instant, Span};

/// Protects the packet that begins at `start` of `out`, whose header has a packet number of `number_len`
/// bytes at `number_at`: encrypts what follows the number, appends the tag, hides the number.
#[inline]
pub(super) fn seal(
    header: &dyn HeaderProtectionKey,
    packet: &dyn PacketKey,
    out: &mut Vec<u8>,
    (start, number_at, number_len): (usize, usize, usize),
    number: u64,
) {
    let body_at = number_at + number_len;
    let (head, body) = out.split_at_mut(body_at);
    // Sealing fails for bodies of gigabytes alone, and hiding for samples of another length.
    let Ok(tag) = packet.encrypt_in_place(number, &head[start..], body) else { return };
    out.extend_from_slice(tag.as_ref());
    let (head, rest) = out[start..].split_at_mut(number_at - start);
    let (number, sample) = rest.split_at_mut(SAMPLE_OFFSET);
    let Some(sample) = sample.get(..header.sample_len()) else { return };
    let _ = header.encrypt_in_place(sample, &mut head[0], &mut number[..number_len]);
}

/// Takes the protection off the header of a packet and returns length and truncated value of its packet
/// number; `None`: the packet is too short.
#[inline]
pub(super) fn uncover(
    header: &dyn HeaderProtectionKey,
    packet: &mut [u8],
    number_at: usize,
) -> Option<(usize, u64)> {
    let (head, rest) = packet.split_at_mut_checked(number_at)?;
    let (number, sample) = rest.split_at_mut_checked(SAMPLE_OFFSET)?;
    let sample = sample.get(..header.sample_len())?;
    header.decrypt_in_place(sample, head.first_mut()?, number).ok()?;
    let len = usize::from(head[0] & 3) + 1;
    Some((len, number[..len].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))))
}

/// The 1-RTT keys in use, those before and those after.
pub(super) struct OneRtt {
    header: [Box<dyn HeaderProtectionKey>; 2],
    local: Box<dyn PacketKey>,
    remote: Box<dyn PacketKey>,
    previous: Option<Box<dyn PacketKey>>,
    next: PacketKeySet,
    secrets: Secrets,
    /// The key phase bit of the keys in use.
    pub phase: bool,
    /// Number of the first packet sent with them.
    began: u64,
    /// Lowest packet number received with them.
    lowest: u64,
    /// Packets sent with them.
    used: u64,
    /// When a packet sent with them was first acknowledged.
    acked: Option<Instant>,
    update_after: u64,
    forged: u64,
}

impl OneRtt {
    /// Keys fresh from the handshake, which are to be updated after so many packets, or before their
    /// limit.
    pub(super) fn new(keys: Keys, mut secrets: Secrets, update_after: Option<u64>) -> Self {
        let Keys { local, remote } = keys;
        let limit = local.packet.confidentiality_limit();
        let next = secrets.next_packet_keys();
        Self {
            header: [local.header, remote.header],
            local: local.packet,
            remote: remote.packet,
            previous: None,
            next,
            secrets,
            phase: false,
            began: 0,
            lowest: 0,
            used: 0,
            acked: None,
            update_after: update_after.unwrap_or(u64::MAX).min(limit / 2),
            forged: 0,
        }
    }

    /// Protects a packet as [`seal`] does.
    #[inline]
    pub(super) fn seal(&mut self, out: &mut Vec<u8>, places: (usize, usize, usize), number: u64) {
        self.used += 1;
        seal(&*self.header[0], &*self.local, out, places, number);
    }

    /// As [`uncover`] does.
    #[inline]
    pub(super) fn uncover(&self, packet: &mut [u8], number_at: usize) -> Option<(usize, u64)> {
        uncover(&*self.header[1], packet, number_at)
    }

    /// Opens the packet with this number, of this key phase; how long its payload is. `None`: it is not
    /// genuine, and its bytes are spoilt.
    ///
    /// # Errors
    /// When the keys are used up, or the peer updates them out of turn.
    #[inline]
    pub(super) fn open(
        &mut self,
        number: u64,
        phase: bool,
        header: &[u8],
        body: &mut [u8],
    ) -> Result<Option<usize>, Violation> {
        if phase == self.phase {
            return match self.remote.decrypt_in_place(number, header, body) {
                Ok(plain) => Ok(Some(plain.len())),
                Err(_) => self.forged(),
            };
        }
        self.open_other(number, header, body)
    }

    #[cold]
    fn open_other(
        &mut self,
        number: u64,
        header: &[u8],
        body: &mut [u8],
    ) -> Result<Option<usize>, Violation> {
        if let Some(previous) = self.previous.as_ref().filter(|_| number < self.lowest) {
            return match previous.decrypt_in_place(number, header, body) {
                Ok(plain) => Ok(Some(plain.len())),
                Err(_) => self.forged(),
            };
        }
        let Ok(plain) = self.next.remote.decrypt_in_place(number, header, body) else { return self.forged() };
        let len = plain.len();
        if self.used == 0 && self.previous.is_some() {
            return Err(Violation::KeyUpdate);
        }
        self.rotate();
        self.lowest = number;
        Ok(Some(len))
    }

    fn forged(&mut self) -> Result<Option<usize>, Violation> {
        self.forged += 1;
        if self.forged >= self.remote.integrity_limit() { Err(Violation::AeadLimit) } else { Ok(None) }
    }

    fn rotate(&mut self) {
        let next = std::mem::replace(&mut self.next, self.secrets.next_packet_keys());
        self.local = next.local;
        self.previous = Some(std::mem::replace(&mut self.remote, next.remote));
        self.phase = !self.phase;
        (self.began, self.used, self.acked) = (u64::MAX, 0, None);
    }

    /// Updates the keys before packet `number` is sent when it is time and allowed; true when done.
    #[inline]
    pub(super) fn update_if_due(
        &mut self,
        number: u64,
        confirmed: bool,
        now: Instant,
        pause: impl Fn() -> Span,
    ) -> bool {
        if self.began == u64::MAX {
            self.began = number;
        }
        if self.used < self.update_after || !confirmed {
            return false;
        }
        // Between two updates the peer has time to drop the keys before (RFC 9001 §6.5).
        let Some(acked) = self.acked else { return false };
        if self.previous.is_some() && now < acked + pause() {
            return false;
        }
        self.rotate();
        self.began = number;
        // What is received from now on with the other phase bit is of the keys before.
        self.lowest = u64::MAX;
        true
    }

    /// A packet was received with the keys in use.
    #[inline]
    pub(super) fn received(&mut self, number: u64, phase: bool) {
        if phase == self.phase && number < self.lowest {
            self.lowest = number;
        }
    }

    /// A packet that was sent is acknowledged.
    #[inline]
    pub(super) fn acknowledged(&mut self, number: u64, now: Instant) {
        if number >= self.began {
            self.acked.get_or_insert(now);
        }
    }
}

impl std::fmt::Debug for OneRtt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneRtt").field("phase", &self.phase).field("used", &self.used).finish_non_exhaustive()
    }
}

/// What the keys of Initial packets are made with (RFC 9001 §5.2).
#[derive(Clone, Copy)]
pub(super) struct InitialSuite(Suite);

impl InitialSuite {
    /// From the provider of a configuration.
    ///
    /// # Errors
    /// When it has no TLS_AES_128_GCM_SHA256, which QUIC needs whatever is negotiated.
    pub(super) fn new(config: &ClientConfig) -> Result<Self, Error> {
        let suites = &config.crypto_provider().cipher_suites;
        let suite = suites.iter().find(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
        let suite = suite.and_then(|suite| suite.tls13()?.quic_suite());
        suite.map(Self).ok_or_else(|| Error::General("QUIC needs TLS_AES_128_GCM_SHA256".into()))
    }

    /// The keys that go with the destination of the client's first Initial, or of the one after Retry.
    pub(super) fn keys(&self, destination: &[u8]) -> LevelKeys {
        self.0.keys(destination, Side::Client, Version::V1).into()
    }
}

impl std::fmt::Debug for InitialSuite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InitialSuite")
    }
}

/// Keys of Initial, Handshake and 0-RTT packets.
pub(super) struct LevelKeys {
    /// For what is sent.
    pub local: DirectionalKeys,
    /// For what is received; 0-RTT has none.
    pub remote: Option<DirectionalKeys>,
}

impl From<Keys> for LevelKeys {
    fn from(keys: Keys) -> Self {
        Self { local: keys.local, remote: Some(keys.remote) }
    }
}

impl std::fmt::Debug for LevelKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LevelKeys").finish_non_exhaustive()
    }
}

/// Where the sample begins, counted from the packet number's first byte (RFC 9001 §5.4.2).
const SAMPLE_OFFSET: usize = 4;

#[cfg(test)]
mod tests {
    use rustls::crypto::cipher::{AeadKey, Iv};
    use rustls::crypto::ring::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256};

    use super::super::packet::tests::hex;
    use super::super::packet::{LongType, Packet, decode_number, parse};
    use super::*;

    fn initial(side: Side) -> Keys {
        let suite = TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite()).unwrap();
        suite.keys(&hex(DESTINATION), side, Version::V1)
    }

    /// RFC 9001 §A.2. The tag vouches for every byte between what is compared.
    #[test]
    fn the_clients_initial_of_the_rfc_is_sealed() {
        let keys = LevelKeys::from(initial(Side::Client)).local;
        let mut packet = hex("c300000001088394c8f03e5157080000449e00000002");
        packet.extend(hex(CLIENT_HELLO));
        packet.resize(22 + 1162, 0);
        seal(&*keys.header, &*keys.packet, &mut packet, (0, 18, 4), 2);
        assert_eq!(packet.len(), 1200);
        assert_eq!(
            packet[..38],
            hex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b")
        );
        assert_eq!(packet[1200 - 16..], hex("e221af44860018ab0856972e194cd934"));
    }

    /// RFC 9001 §A.3, and none of its bytes can be another.
    #[test]
    fn the_servers_initial_of_the_rfc_is_opened() {
        let keys = LevelKeys::from(initial(Side::Client)).remote.unwrap();
        let genuine = hex(SERVER_INITIAL);
        let (destination, parsed) = parse(&genuine, 8).unwrap();
        let Packet::Long { kind: LongType::Initial, source, number_at, end } = parsed else {
            panic!("an Initial: {parsed:?}");
        };
        assert_eq!((destination.len(), &*source, end), (0, &hex("f067a5502a4262b5")[..], genuine.len()));
        let open = |mut packet: Vec<u8>| {
            let (len, number) = uncover(&*keys.header, &mut packet, number_at)?;
            let (header, body) = packet.split_at_mut(number_at + len);
            let plain = keys.packet.decrypt_in_place(number, header, body).ok()?;
            Some((len, number, plain.to_vec()))
        };
        assert_eq!(open(genuine.clone()), Some((2, 1, hex(SERVER_HELLO))));
        for at in 0..genuine.len() {
            let mut forged = genuine.clone();
            forged[at] ^= 0x10;
            assert_eq!(open(forged), None, "byte {at}");
        }
        // And sealing it is the way back.
        let keys = initial(Side::Server).local;
        let mut packet = b"before".to_vec();
        packet.extend(hex("c1000000010008f067a5502a4262b50040750001"));
        packet.extend(hex(SERVER_HELLO));
        seal(&*keys.header, &*keys.packet, &mut packet, (6, 6 + 18, 2), 1);
        assert_eq!(packet[6..], genuine);
    }

    /// RFC 9001 §A.5: a short header, a packet number of 3 bytes, the shortest payload there is.
    #[test]
    fn the_short_packet_of_the_rfc_is_sealed_and_uncovered() {
        let secret = |text: &str| AeadKey::from(<[u8; 32]>::try_from(hex(text)).unwrap());
        let quic = TLS13_CHACHA20_POLY1305_SHA256.tls13().and_then(|suite| suite.quic).unwrap();
        let key = secret("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
        let iv = <[u8; 12]>::try_from(hex("e0459b3474bdd0e44a41c144")).unwrap();
        let packet_key = quic.packet_key(key, Iv::from(iv));
        let header_key = quic.header_protection_key(secret(
            "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
        ));
        let mut packet = hex("4200bff401");
        seal(&*header_key, &*packet_key, &mut packet, (0, 1, 3), 654_360_564);
        assert_eq!(packet, hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));
        assert_eq!(uncover(&*header_key, &mut packet.clone(), 1), Some((3, 0xbff4)));
        assert_eq!(decode_number(654_360_563, 0xbff4, 3), 654_360_564);
        // A byte less, and there is no whole sample.
        packet.pop();
        assert_eq!(uncover(&*header_key, &mut packet, 1), None);
    }

    /// Of the client's first Initial packet.
    const DESTINATION: &str = "8394c8f03e515708";
    /// Its CRYPTO frame.
    const CLIENT_HELLO: &str = "\
        060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c000004130113\
        02010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
        04616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce1\
        5d43e994ec74d748002b0003020304000d0010000e0403050306030203080408050806002d00020101001c0002400100\
        3900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075300901100f088394c8f03e51570806\
        048000ffff";
    /// ACK and CRYPTO frame of the server's answer.
    const SERVER_HELLO: &str = "\
        02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200\
        130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00\
        020304";
    const SERVER_INITIAL: &str = "\
        cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb3\
        8cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84\
        022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee";
}
