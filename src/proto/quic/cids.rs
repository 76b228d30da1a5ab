//! Owns connection ids (RFC 9000 §5.1): those the peer is to use, and those it gave to be used.

use std::collections::VecDeque;

use super::packet::ConnectionId;
use super::parameters::Parameters;
use super::violation::Violation;

/// The ids of this side: 8 bytes of which the last two are the id's number, so that whoever shares a
/// socket finds the connection by the first six, whichever id the peer chose.
#[derive(Clone, Debug)]
pub(super) struct LocalCids {
    base: u64,
    seed: u64,
    issued: u64,
    most: u64,
    /// The numbers of those that the peer may use.
    live: [Option<u64>; 2],
}

impl LocalCids {
    /// Bytes of an id.
    pub(super) const LEN: usize = 8;

    /// Ids that begin with the first six bytes of `cid`.
    pub(super) fn new(cid: u64, seed: u64) -> Self {
        Self { base: cid & !NUMBER, seed, issued: 1, most: 2, live: [Some(0), None] }
    }

    /// The id with this number.
    pub(super) fn id(&self, sequence: u64) -> [u8; 8] {
        (self.base | (sequence & NUMBER)).to_be_bytes()
    }

    /// Whether the id is one of this connection.
    #[inline]
    pub(super) fn is_own(&self, id: &[u8]) -> bool {
        id.try_into().is_ok_and(|bytes| u64::from_be_bytes(bytes) & !NUMBER == self.base)
    }

    /// A further id for the peer, if it keeps one more.
    pub(super) fn issue(&mut self) -> Option<u64> {
        (self.issued < self.most.min(2)).then(|| {
            self.live[1] = Some(self.issued);
            self.issued += 1;
            self.issued - 1
        })
    }

    /// The peer uses the id no longer; the number of the one in its place. None when it said so before: a frame
    /// taken for lost comes again, and another id for each would be more than the peer keeps.
    ///
    /// # Errors
    /// When it was never issued.
    pub(super) fn retire(&mut self, sequence: u64) -> Result<Option<u64>, Violation> {
        if sequence >= self.issued {
            return Err(Violation::Protocol("RETIRE_CONNECTION_ID of an id that was not issued"));
        }
        let Some(place) = self.live.iter_mut().find(|live| **live == Some(sequence)) else {
            return Ok(None);
        };
        *place = Some(self.issued);
        self.issued += 1;
        Ok(Some(self.issued - 1))
    }

    /// The token of a stateless reset that goes with an id. This side sends none.
    pub(super) fn reset_token(&self, sequence: u64) -> [u8; 16] {
        let mut token = [0; 16];
        token[..8].copy_from_slice(&mix(self.seed ^ 1 ^ sequence << 8).to_be_bytes());
        token[8..].copy_from_slice(&mix(self.seed ^ 2 ^ sequence << 8).to_be_bytes());
        token
    }

    /// What a reserved transport parameter is made of.
    pub(super) fn noise(&self) -> u64 {
        mix(self.seed ^ 3)
    }

    /// The destination of the first Initial: 8 bytes that cannot be guessed (RFC 9000 §7.2).
    pub(super) fn unpredictable_id(&self) -> ConnectionId {
        ConnectionId::new(&mix(self.seed).to_be_bytes()).unwrap_or_default()
    }
}

/// The ids that the peer gave.
#[derive(Clone, Debug)]
pub(super) struct PeerCids {
    /// The one in use.
    current: ConnectionId,
    current_sequence: u64,
    current_token: Option<[u8; 16]>,
    handshake_source: ConnectionId,
    spare: VecDeque<(u64, ConnectionId, [u8; 16])>,
    retire_prior_to: u64,
    retired: VecDeque<u64>,
}

impl PeerCids {
    /// Before anything was heard.
    pub(super) fn new(original: ConnectionId) -> Self {
        Self {
            current: original,
            current_sequence: 0,
            current_token: None,
            handshake_source: original,
            spare: VecDeque::new(),
            retire_prior_to: 0,
            retired: VecDeque::new(),
        }
    }

    /// The destination of what is sent.
    #[inline]
    pub(super) fn current(&self) -> &ConnectionId {
        &self.current
    }

    /// The source id of the peer's first Initial.
    pub(super) fn handshake_source(&self) -> ConnectionId {
        self.handshake_source
    }

    /// A Retry came from this id.
    pub(super) fn retry(&mut self, source: ConnectionId) {
        self.current = source;
    }

    /// The peer's first Initial came from this id.
    pub(super) fn set_handshake_source(&mut self, source: ConnectionId) {
        (self.current, self.handshake_source) = (source, source);
    }

    /// Takes what the transport parameters say: the token of the first id. A preferred address is never gone to,
    /// so that its id is none.
    pub(super) fn set_parameters(&mut self, parameters: &Parameters) {
        if self.current_sequence == 0 {
            self.current_token = parameters.stateless_reset_token;
        }
    }

    /// Takes NEW_CONNECTION_ID.
    ///
    /// # Errors
    /// What it does against RFC 9000 §19.15.
    pub(super) fn add(
        &mut self,
        sequence: u64,
        retire_prior_to: u64,
        id: &[u8],
        token: [u8; 16],
    ) -> Result<(), Violation> {
        if self.current.is_empty() {
            return Err(Violation::Protocol("NEW_CONNECTION_ID from a peer that uses none"));
        }
        let Some(id) = ConnectionId::new(id) else {
            return Err(Violation::Protocol("a connection id of more than 20 bytes"));
        };
        let known =
            self.spare.iter().find(|(number, ..)| *number == sequence).map(|(_, id, token)| (*id, *token));
        let current = (sequence == self.current_sequence).then_some((self.current, token));
        match known.or(current) {
            Some(known) if known != (id, token) => {
                return Err(Violation::Protocol("NEW_CONNECTION_ID with another id of the same number"));
            }
            Some(_) => (),
            None if sequence < self.retire_prior_to => self.retired.push_back(sequence),
            None => self.spare.push_back((sequence, id, token)),
        }
        self.retire_up_to(retire_prior_to)?;
        if self.spare.len() as u64 + 1 > ACTIVE_LIMIT {
            return Err(Violation::ConnectionIdLimit);
        }
        Ok(())
    }

    fn retire_up_to(&mut self, prior_to: u64) -> Result<(), Violation> {
        if prior_to <= self.retire_prior_to {
            return Ok(());
        }
        self.retire_prior_to = prior_to;
        let retired = &mut self.retired;
        self.spare.retain(|(sequence, ..)| {
            if *sequence < prior_to {
                retired.push_back(*sequence);
            }
            *sequence >= prior_to
        });
        if self.current_sequence < prior_to {
            let Some((sequence, id, token)) = self.spare.pop_front() else {
                return Err(Violation::Protocol("every connection id is to be retired"));
            };
            self.retired.push_back(self.current_sequence);
            (self.current, self.current_sequence, self.current_token) = (id, sequence, Some(token));
        }
        Ok(())
    }

    /// The number of an id that the peer is to be told of that it is used no longer.
    pub(super) fn take_retired(&mut self) -> Option<u64> {
        self.retired.pop_front()
    }

    /// Whether these 16 bytes are the token of an id in use.
    pub(super) fn is_reset_token(&self, bytes: &[u8]) -> bool {
        self.current_token.is_some_and(|token| token == bytes)
            || self.spare.iter().any(|(.., token)| token == bytes)
    }
}

/// A bijection of 64 bits that leaves no likeness (the finaliser of SplitMix64).
pub(super) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

const NUMBER: u64 = 0xffff;
/// Ids of the peer that are kept: the active_connection_id_limit.
pub(super) const ACTIVE_LIMIT: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> PeerCids {
        PeerCids::new(ConnectionId::new(&[1; 8]).unwrap())
    }

    #[test]
    fn ids_replace_each_other_as_the_peer_says() {
        let mut peer = peer();
        peer.add(1, 0, &[2; 4], [2; 16]).unwrap();
        peer.add(1, 0, &[2; 4], [2; 16]).unwrap();
        assert_eq!((peer.current().to_vec(), peer.take_retired()), (vec![1; 8], None));
        peer.add(2, 1, &[3; 4], [3; 16]).unwrap();
        assert_eq!((peer.current().to_vec(), peer.take_retired()), (vec![2; 4], Some(0)));
        assert!(
            peer.is_reset_token(&[2; 16]) && peer.is_reset_token(&[3; 16]) && !peer.is_reset_token(&[0; 16])
        );
        // One that was retired before it came.
        peer.add(0, 0, &[9; 4], [9; 16]).unwrap();
        assert_eq!(peer.take_retired(), Some(0));
    }

    #[test]
    fn what_is_against_the_rules_is_named() {
        let kind = |result: Result<(), Violation>| result.unwrap_err().kind().to_owned();
        let mut peer = peer();
        peer.add(1, 0, &[2; 4], [2; 16]).unwrap();
        assert_eq!(kind(peer.add(1, 0, &[3; 4], [2; 16])), "protocol-violation");
        peer.add(2, 0, &[3; 4], [3; 16]).unwrap();
        peer.add(3, 0, &[4; 4], [4; 16]).unwrap();
        assert_eq!(kind(peer.add(4, 0, &[5; 4], [5; 16])), "connection-id-limit");
        let mut nameless = PeerCids::new(ConnectionId::default());
        assert_eq!(kind(nameless.add(1, 0, &[2; 4], [2; 16])), "protocol-violation");
        let mut local = LocalCids::new(7 << 16, 1);
        assert_eq!(local.retire(1).unwrap_err().kind(), "protocol-violation");
        assert_eq!((local.issue(), local.issue(), local.retire(0)), (Some(1), None, Ok(Some(2))));
        // The frame came again.
        assert_eq!((local.retire(0), local.retire(1)), (Ok(None), Ok(Some(3))));
        assert!(local.is_own(&local.id(2)) && !local.is_own(&[0; 8]) && !local.is_own(&[]));
    }
}
