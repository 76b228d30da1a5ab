//! Owns packet protection (RFC 9001 §5, §6): sealing and opening packets, and the succession of 1-RTT keys.

use rustls::quic::{
    DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, PacketKeySet, Secrets, Suite, Version,
};
use rustls::{CipherSuite, ClientConfig, Error, Side};

use super::violation::Violation;

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
    /// A packet sent with them was acknowledged.
    acked: bool,
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
            acked: false,
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
        (self.began, self.used, self.acked) = (u64::MAX, 0, false);
    }

    /// Updates the keys before packet `number` is sent when it is time and allowed; true when done.
    #[inline]
    pub(super) fn update_if_due(&mut self, number: u64, confirmed: bool) -> bool {
        if self.began == u64::MAX {
            self.began = number;
        }
        if self.used < self.update_after || !self.acked || !confirmed {
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
    pub(super) fn acknowledged(&mut self, number: u64) {
        self.acked |= number >= self.began;
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
