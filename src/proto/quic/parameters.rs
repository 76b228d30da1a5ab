//! Owns transport parameters (RFC 9000 §7.4, §18): their coding, what a server may say in them.

use super::varint;

/// The parameters of one side, with what holds where it leaves one out. Those that only a server sends are
/// absent from a client's. A preferred address is checked and left: a client need not move to it (§9.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Silence in milliseconds after which the connection is given up; 0: never.
    pub max_idle_timeout: u64,
    /// Longest UDP payload that is received, at least 1200 bytes.
    pub max_udp_payload_size: u64,
    /// Bytes that may be sent on all streams together.
    pub initial_max_data: u64,
    /// Bytes that may be sent on a bidirectional stream that the sender of the parameter opened.
    pub initial_max_stream_data_bidi_local: u64,
    /// The same on one that its receiver opened.
    pub initial_max_stream_data_bidi_remote: u64,
    /// Bytes that may be sent on a unidirectional stream.
    pub initial_max_stream_data_uni: u64,
    /// Bidirectional streams that may be opened, at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// Unidirectional streams that may be opened, at most 2^60.
    pub initial_max_streams_uni: u64,
    /// Delays in ACK frames are in units of 2 to this power, in microseconds; at most 20.
    pub ack_delay_exponent: u64,
    /// Longest delay of an acknowledgement in milliseconds, below 2^14.
    pub max_ack_delay: u64,
    /// The connection is not to move to another address.
    pub disable_active_migration: bool,
    /// Connection ids that are stored, at least 2.
    pub active_connection_id_limit: u64,
    /// Source connection id of the first Initial packet of the sender of the parameter.
    pub initial_source_connection_id: Option<Vec<u8>>,
    /// Destination connection id of the first Initial packet of the client; of a server only.
    pub original_destination_connection_id: Option<Vec<u8>>,
    /// Source connection id of the Retry packet; of a server that sent one only.
    pub retry_source_connection_id: Option<Vec<u8>>,
    /// What a stateless reset of the handshake's connection id ends with (§10.3); of a server only.
    pub stateless_reset_token: Option<[u8; 16]>,
    /// The fixed bit of packets may be sent as 0 (RFC 9287).
    pub grease_quic_bit: bool,
}

/// What is wrong with parameters: an error of type TRANSPORT_PARAMETER_ERROR (0x08).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParameterError {
    /// The last one is not whole.
    #[error("they end in the middle of one")]
    Cut,
    /// One is there more than once (§7.4).
    #[error("parameter 0x{0:x} is there twice")]
    Twice(u64),
    /// A value of a length that this one does not have.
    #[error("{0} has another length")]
    Length(&'static str),
    /// A value out of its range.
    #[error("{0} is out of its range")]
    Range(&'static str),
    /// One that authenticates the connection ids is absent (§7.3).
    #[error("{0} is missing")]
    Missing(&'static str),
    /// One of them is not the id that was used.
    #[error("{0} is not the one that was used")]
    Mismatch(&'static str),
    /// There was no Retry packet that this could be about.
    #[error("{0} is there, though there was no Retry")]
    Unasked(&'static str),
}

impl Default for Parameters {
    /// What holds when nothing is said (§18.2).
    fn default() -> Self {
        Self {
            max_idle_timeout: 0,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: 25,
            disable_active_migration: false,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            original_destination_connection_id: None,
            retry_source_connection_id: None,
            stateless_reset_token: None,
            grease_quic_bit: false,
        }
    }
}

impl Parameters {
    /// Reads the parameters of a server. Unknown ones, of which some are always sent to keep readers
    /// tolerant (§18.1), are ignored.
    ///
    /// # Errors
    /// What is malformed, out of range, or there twice.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, ParameterError> {
        let mut parameters = Self::default();
        let mut seen = Vec::new();
        while !bytes.is_empty() {
            let id = take_varint(&mut bytes)?;
            let length = usize::try_from(take_varint(&mut bytes)?).map_err(|_| ParameterError::Cut)?;
            let (value, rest) = bytes.split_at_checked(length).ok_or(ParameterError::Cut)?;
            bytes = rest;
            seen.push(id);
            parameters.set(id, value)?;
        }
        // Sorted, since a hostile server has room for thousands.
        seen.sort_unstable();
        match seen.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ParameterError::Twice(pair[0])),
            None => Ok(parameters),
        }
    }

    fn set(&mut self, id: u64, value: &[u8]) -> Result<(), ParameterError> {
        if let Some((_, name, range)) = INTEGERS.iter().find(|(known, ..)| *known == id) {
            let (number, used) = varint::read(value).ok_or(ParameterError::Length(name))?;
            if used != value.len() {
                return Err(ParameterError::Length(name));
            }
            if !range.contains(&number) {
                return Err(ParameterError::Range(name));
            }
            if let Some(field) = self.integer(id) {
                *field = number;
            }
            return Ok(());
        }
        match id {
            ORIGINAL_DESTINATION => {
                self.original_destination_connection_id = Some(cid(ORIGINAL_NAME, value)?);
            }
            INITIAL_SOURCE => self.initial_source_connection_id = Some(cid(INITIAL_NAME, value)?),
            RETRY_SOURCE => self.retry_source_connection_id = Some(cid(RETRY_NAME, value)?),
            RESET_TOKEN => {
                let token = value.try_into().map_err(|_| ParameterError::Length("stateless_reset_token"))?;
                self.stateless_reset_token = Some(token);
            }
            NO_MIGRATION => self.disable_active_migration = flag("disable_active_migration", value)?,
            GREASE_BIT => self.grease_quic_bit = flag("grease_quic_bit", value)?,
            PREFERRED_ADDRESS => check_preferred_address(value)?,
            _ => (),
        }
        Ok(())
    }

    /// The field of an integer parameter.
    fn integer(&mut self, id: u64) -> Option<&mut u64> {
        Some(match id {
            0x01 => &mut self.max_idle_timeout,
            0x03 => &mut self.max_udp_payload_size,
            0x04 => &mut self.initial_max_data,
            0x05 => &mut self.initial_max_stream_data_bidi_local,
            0x06 => &mut self.initial_max_stream_data_bidi_remote,
            0x07 => &mut self.initial_max_stream_data_uni,
            0x08 => &mut self.initial_max_streams_bidi,
            0x09 => &mut self.initial_max_streams_uni,
            0x0a => &mut self.ack_delay_exponent,
            0x0b => &mut self.max_ack_delay,
            0x0e => &mut self.active_connection_id_limit,
            _ => return None,
        })
    }

    /// The parameters as they are sent: those that differ from what holds without them, and a reserved one
    /// (§18.1) whose id and value `grease` decides.
    pub fn encode(&self, grease: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        let (mut theirs, mut without) = (self.clone(), Self::default());
        for (id, ..) in INTEGERS {
            let (value, default) = (theirs.integer(*id), without.integer(*id));
            if let Some(value) = value.filter(|value| default.is_some_and(|default| **value != *default)) {
                varint::write(&mut out, *id);
                varint::write(&mut out, varint::len(*value) as u64);
                varint::write(&mut out, *value);
            }
        }
        let mut add = |id: u64, value: Option<&[u8]>| {
            if let Some(value) = value {
                varint::write(&mut out, id);
                varint::write(&mut out, value.len() as u64);
                out.extend_from_slice(value);
            }
        };
        add(ORIGINAL_DESTINATION, self.original_destination_connection_id.as_deref());
        add(INITIAL_SOURCE, self.initial_source_connection_id.as_deref());
        add(RETRY_SOURCE, self.retry_source_connection_id.as_deref());
        add(RESET_TOKEN, self.stateless_reset_token.as_ref().map(|token| &token[..]));
        add(NO_MIGRATION, self.disable_active_migration.then_some(&[]));
        add(GREASE_BIT, self.grease_quic_bit.then_some(&[]));
        let noise = grease.to_be_bytes();
        add(reserved(grease), Some(&noise[..(grease % 9) as usize]));
        out
    }

    /// Checks that the server speaks of the connection ids that were used (§7.3): `source` of its first
    /// Initial packet, `original` of the client's first Initial packet, `retry` of a Retry packet that was
    /// honoured.
    ///
    /// # Errors
    /// Which of them is missing, another, or not to be there.
    pub fn validate_ids(
        &self,
        source: &[u8],
        original: &[u8],
        retry: Option<&[u8]>,
    ) -> Result<(), ParameterError> {
        let same = |name, said: Option<&[u8]>, used: &[u8]| match said {
            None => Err(ParameterError::Missing(name)),
            Some(said) if said == used => Ok(()),
            Some(_) => Err(ParameterError::Mismatch(name)),
        };
        same(INITIAL_NAME, self.initial_source_connection_id.as_deref(), source)?;
        same(ORIGINAL_NAME, self.original_destination_connection_id.as_deref(), original)?;
        match (self.retry_source_connection_id.as_deref(), retry) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(ParameterError::Unasked(RETRY_NAME)),
            (said, Some(used)) => same(RETRY_NAME, said, used),
        }
    }

    /// The first parameter by which these allow less than `remembered`, which a server that takes early
    /// data must not do (§7.4.1).
    pub fn reduced_from(&self, remembered: &Self) -> Option<&'static str> {
        let (mut now, mut then) = (self.clone(), remembered.clone());
        let reduced = INTEGERS.iter().find(|(id, ..)| {
            LIMITS.contains(id)
                && now.integer(*id).zip(then.integer(*id)).is_some_and(|(now, then)| now < then)
        });
        reduced.map(|(_, name, _)| *name)
    }
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, ParameterError> {
    let (value, used) = varint::read(bytes).ok_or(ParameterError::Cut)?;
    *bytes = &bytes[used..];
    Ok(value)
}

fn cid(name: &'static str, value: &[u8]) -> Result<Vec<u8>, ParameterError> {
    if value.len() > LONGEST_CID { Err(ParameterError::Length(name)) } else { Ok(value.to_vec()) }
}

/// A parameter that says something by being there.
fn flag(name: &'static str, value: &[u8]) -> Result<bool, ParameterError> {
    if value.is_empty() { Ok(true) } else { Err(ParameterError::Length(name)) }
}

/// IPv4 address and port, IPv6 address and port, a connection id with its length, a reset token (figure
/// 22). A server with connection ids of no bytes has none to give.
fn check_preferred_address(value: &[u8]) -> Result<(), ParameterError> {
    let name = "preferred_address";
    let length = usize::from(*value.get(ADDRESSES).ok_or(ParameterError::Length(name))?);
    if !(1..=LONGEST_CID).contains(&length) {
        return Err(ParameterError::Range(name));
    }
    if value.len() != ADDRESSES + 1 + length + 16 { Err(ParameterError::Length(name)) } else { Ok(()) }
}

/// A reserved id: 31 N + 27 (§18.1).
fn reserved(grease: u64) -> u64 {
    grease % ((varint::MAX - 27) / 31 + 1) * 31 + 27
}

/// What must hold of parameters whatever the bytes: the body of the fuzz target.
pub fn fuzz_parameters(data: &[u8]) {
    let Ok(parameters) = Parameters::decode(data) else { return };
    assert!(parameters.max_udp_payload_size >= 1200 && parameters.active_connection_id_limit >= 2);
    assert!(parameters.ack_delay_exponent <= 20 && parameters.max_ack_delay < 1 << 14);
    let streams = parameters.initial_max_streams_bidi.max(parameters.initial_max_streams_uni);
    assert!(streams <= MOST_STREAMS);
    let again = parameters.encode(data.len() as u64);
    assert_eq!(Parameters::decode(&again).as_ref(), Ok(&parameters), "what is written is read as it was");
    assert_eq!(parameters.reduced_from(&parameters), None);
}

type Range = std::ops::RangeInclusive<u64>;

/// The parameters that are integers: id, name, what they may be.
const INTEGERS: &[(u64, &str, Range)] = &[
    (0x01, "max_idle_timeout", 0..=varint::MAX),
    (0x03, "max_udp_payload_size", 1200..=varint::MAX),
    (0x04, "initial_max_data", 0..=varint::MAX),
    (0x05, "initial_max_stream_data_bidi_local", 0..=varint::MAX),
    (0x06, "initial_max_stream_data_bidi_remote", 0..=varint::MAX),
    (0x07, "initial_max_stream_data_uni", 0..=varint::MAX),
    (0x08, "initial_max_streams_bidi", 0..=MOST_STREAMS),
    (0x09, "initial_max_streams_uni", 0..=MOST_STREAMS),
    (0x0a, "ack_delay_exponent", 0..=20),
    (0x0b, "max_ack_delay", 0..=(1 << 14) - 1),
    (0x0e, "active_connection_id_limit", 2..=varint::MAX),
];
/// Those of them that a server must not reduce when it takes early data (§7.4.1).
const LIMITS: [u64; 7] = [0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0e];
const ORIGINAL_DESTINATION: u64 = 0x00;
const RESET_TOKEN: u64 = 0x02;
const NO_MIGRATION: u64 = 0x0c;
const PREFERRED_ADDRESS: u64 = 0x0d;
const INITIAL_SOURCE: u64 = 0x0f;
const RETRY_SOURCE: u64 = 0x10;
const GREASE_BIT: u64 = 0x2ab2;
const ORIGINAL_NAME: &str = "original_destination_connection_id";
const INITIAL_NAME: &str = "initial_source_connection_id";
const RETRY_NAME: &str = "retry_source_connection_id";
/// Streams of one type at most (§4.6).
const MOST_STREAMS: u64 = 1 << 60;
/// Bytes of a connection id at most (§17.2).
const LONGEST_CID: usize = 20;
/// Bytes of a preferred address in front of its connection id.
const ADDRESSES: usize = 4 + 2 + 16 + 2;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;

    fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        varint::write(&mut out, id);
        varint::write(&mut out, value.len() as u64);
        out.extend_from_slice(value);
        out
    }

    fn integer(id: u64, value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::write(&mut bytes, value);
        parameter(id, &bytes)
    }

    #[test]
    fn nothing_said_is_what_the_rfc_says() {
        let without = Parameters::decode(&[]).unwrap();
        assert_eq!(without, Parameters::default());
        let Parameters { max_udp_payload_size, ack_delay_exponent, max_ack_delay, .. } = without;
        assert_eq!((max_udp_payload_size, ack_delay_exponent, max_ack_delay), (65_527, 3, 25));
        assert_eq!((without.active_connection_id_limit, without.max_idle_timeout), (2, 0));
    }

    #[test]
    fn every_parameter_is_read() {
        let mut bytes = Vec::new();
        for (id, value) in [
            (0x01, 30_000),
            (0x03, 1472),
            (0x04, 1 << 20),
            (0x05, 5),
            (0x06, 6),
            (0x07, 7),
            (0x08, 100),
            (0x09, 3),
            (0x0a, 4),
            (0x0b, 26),
            (0x0e, 8),
        ] {
            bytes.extend(integer(id, value));
        }
        for (id, value) in [(0x00, &[1; 8][..]), (0x02, &[2; 16]), (0x0c, &[]), (0x0f, &[3; 20])] {
            bytes.extend(parameter(id, value));
        }
        for (id, value) in [(0x10, &[][..]), (0x2ab2, &[]), (27, b"grease"), (0x20, &[0]), (0x11, &[0; 8])] {
            bytes.extend(parameter(id, value));
        }
        let expected = Parameters {
            max_idle_timeout: 30_000,
            max_udp_payload_size: 1472,
            initial_max_data: 1 << 20,
            initial_max_stream_data_bidi_local: 5,
            initial_max_stream_data_bidi_remote: 6,
            initial_max_stream_data_uni: 7,
            initial_max_streams_bidi: 100,
            initial_max_streams_uni: 3,
            ack_delay_exponent: 4,
            max_ack_delay: 26,
            disable_active_migration: true,
            active_connection_id_limit: 8,
            initial_source_connection_id: Some(vec![3; 20]),
            original_destination_connection_id: Some(vec![1; 8]),
            retry_source_connection_id: Some(Vec::new()),
            stateless_reset_token: Some([2; 16]),
            grease_quic_bit: true,
        };
        assert_eq!(Parameters::decode(&bytes), Ok(expected));
    }

    #[test]
    fn what_is_against_the_rules_is_named() {
        use ParameterError::{Cut, Length, Range, Twice};
        let preferred = |cid: usize, length: usize| {
            let mut value = vec![0; ADDRESSES];
            value.push(cid as u8);
            value.resize(length, 7);
            parameter(0x0d, &value)
        };
        let cases: Vec<(Vec<u8>, ParameterError)> = vec![
            (vec![0x01], Cut),
            (vec![0x01, 0x02, 0x00], Cut),
            (vec![0x40], Cut),
            (vec![0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Cut),
            ([integer(0x04, 1), integer(0x04, 1)].concat(), Twice(0x04)),
            ([parameter(58, b"a"), integer(0x04, 1), parameter(58, b"b")].concat(), Twice(58)),
            // An id of two bytes is no other id for it.
            ([integer(0x04, 1), vec![0x40, 0x04, 0x01, 0x01]].concat(), Twice(0x04)),
            (parameter(0x04, &[]), Length("initial_max_data")),
            (parameter(0x04, &[0x01, 0x00]), Length("initial_max_data")),
            (parameter(0x04, &[0x40]), Length("initial_max_data")),
            (integer(0x03, 1199), Range("max_udp_payload_size")),
            (integer(0x08, (1 << 60) + 1), Range("initial_max_streams_bidi")),
            (integer(0x09, (1 << 60) + 1), Range("initial_max_streams_uni")),
            (integer(0x0a, 21), Range("ack_delay_exponent")),
            (integer(0x0b, 1 << 14), Range("max_ack_delay")),
            (integer(0x0e, 1), Range("active_connection_id_limit")),
            (parameter(0x0c, &[0]), Length("disable_active_migration")),
            (parameter(0x2ab2, &[0]), Length("grease_quic_bit")),
            (parameter(0x02, &[0; 15]), Length("stateless_reset_token")),
            (parameter(0x00, &[0; 21]), Length("original_destination_connection_id")),
            (parameter(0x0f, &[0; 21]), Length("initial_source_connection_id")),
            (parameter(0x10, &[0; 21]), Length("retry_source_connection_id")),
            (parameter(0x0d, &[0; ADDRESSES]), Length("preferred_address")),
            (preferred(0, ADDRESSES + 17), Range("preferred_address")),
            (preferred(21, ADDRESSES + 17 + 21), Range("preferred_address")),
            (preferred(8, ADDRESSES + 17 + 7), Length("preferred_address")),
            (preferred(8, ADDRESSES + 17 + 9), Length("preferred_address")),
        ];
        for (bytes, error) in cases {
            assert_eq!(Parameters::decode(&bytes), Err(error), "{bytes:02x?}");
        }
    }

    #[test]
    fn the_ends_of_the_ranges_are_in_them() {
        let ends = [
            integer(0x03, 1200),
            integer(0x08, 1 << 60),
            integer(0x09, 1 << 60),
            integer(0x0a, 20),
            integer(0x0b, (1 << 14) - 1),
            integer(0x0e, 2),
            integer(0x01, varint::MAX),
            parameter(0x0d, &[&[0; ADDRESSES][..], &[20], &[7; 36]].concat()),
        ]
        .concat();
        assert!(Parameters::decode(&ends).is_ok());
    }

    #[test]
    fn ids_are_those_that_were_used() {
        use ParameterError::{Mismatch, Missing, Unasked};
        let (source, original, retry) = (&b"source"[..], &b"original"[..], &b"retry"[..]);
        let said = |source: Option<&[u8]>, original: Option<&[u8]>, retry: Option<&[u8]>| Parameters {
            initial_source_connection_id: source.map(<[u8]>::to_vec),
            original_destination_connection_id: original.map(<[u8]>::to_vec),
            retry_source_connection_id: retry.map(<[u8]>::to_vec),
            ..Parameters::default()
        };
        let (some, other) = ((Some(source), Some(original), Some(retry)), Some(&b"other"[..]));
        for (parameters, used, expected) in [
            (said(some.0, some.1, None), None, Ok(())),
            (said(some.0, some.1, some.2), Some(retry), Ok(())),
            (said(None, some.1, None), None, Err(Missing(INITIAL_NAME))),
            (said(other, some.1, None), None, Err(Mismatch(INITIAL_NAME))),
            (said(Some(&[]), some.1, None), None, Err(Mismatch(INITIAL_NAME))),
            (said(some.0, None, None), None, Err(Missing(ORIGINAL_NAME))),
            (said(some.0, other, None), None, Err(Mismatch(ORIGINAL_NAME))),
            (said(some.0, some.1, None), Some(retry), Err(Missing(RETRY_NAME))),
            (said(some.0, some.1, other), Some(retry), Err(Mismatch(RETRY_NAME))),
            (said(some.0, some.1, some.2), None, Err(Unasked(RETRY_NAME))),
        ] {
            assert_eq!(parameters.validate_ids(source, original, used), expected, "{parameters:?}");
        }
        // A server may have connection ids of no bytes.
        assert_eq!(said(Some(&[]), some.1, None).validate_ids(&[], original, None), Ok(()));
    }

    #[test]
    fn a_reduced_limit_is_named() {
        let then = Parameters::decode(
            &[0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0e].map(|id| integer(id, 10)).concat(),
        )
        .unwrap();
        assert_eq!(then.reduced_from(&then), None);
        for (id, name, _) in INTEGERS {
            let mut now = then.clone();
            if let Some(value) = now.integer(*id) {
                *value = value.saturating_sub(1);
            }
            let expected = LIMITS.contains(id).then_some(*name);
            assert_eq!(now.reduced_from(&then), expected, "{name}");
        }
    }

    #[test]
    fn reserved_ids_are_reserved_and_fit() {
        for grease in [0, 1, 30, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let id = reserved(grease);
            assert!(id <= varint::MAX && id % 31 == 27, "{id}");
        }
    }

    fn any_parameters() -> impl Strategy<Value = Parameters> {
        let number = || 0..=varint::MAX;
        let cid = || of(vec(any::<u8>(), 0..=LONGEST_CID));
        let numbers = (number(), 1200..=varint::MAX, number(), number(), number(), number());
        let ranges = (0..=MOST_STREAMS, 0..=MOST_STREAMS, 0..=20u64, 0..1u64 << 14, 2..=varint::MAX);
        (numbers, ranges, cid(), cid(), cid(), of(any::<[u8; 16]>()), any::<(bool, bool)>()).prop_map(
            |(numbers, ranges, initial, original, retry, token, flags)| Parameters {
                max_idle_timeout: numbers.0,
                max_udp_payload_size: numbers.1,
                initial_max_data: numbers.2,
                initial_max_stream_data_bidi_local: numbers.3,
                initial_max_stream_data_bidi_remote: numbers.4,
                initial_max_stream_data_uni: numbers.5,
                initial_max_streams_bidi: ranges.0,
                initial_max_streams_uni: ranges.1,
                ack_delay_exponent: ranges.2,
                max_ack_delay: ranges.3,
                active_connection_id_limit: ranges.4,
                disable_active_migration: flags.0,
                initial_source_connection_id: initial,
                original_destination_connection_id: original,
                retry_source_connection_id: retry,
                stateless_reset_token: token,
                grease_quic_bit: flags.1,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(parameters in any_parameters(), grease in any::<u64>()) {
            let bytes = parameters.encode(grease);
            prop_assert_eq!(Parameters::decode(&bytes), Ok(parameters));
            // A part of them is cut in the middle of one, or less is said.
            for end in 0..bytes.len() {
                fuzz_parameters(&bytes[..end]);
            }
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..300)) {
            fuzz_parameters(&bytes);
        }

        #[test]
        fn no_values_are_too_strange(parts in vec((0u64..0x20, vec(any::<u8>(), 0..50)), 0..8)) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(id, value)| parameter(*id, value)).collect();
            fuzz_parameters(&bytes);
        }
    }
}
