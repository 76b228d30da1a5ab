//! Owns transport parameters (RFC 9000 §18.2). Stand-in until the whole is here.

use super::varint;

/// The parameters of a server.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    pub max_idle_timeout: u64,
    pub max_udp_payload_size: u64,
    pub initial_max_data: u64,
    pub initial_max_stream_data_bidi_remote: u64,
    pub initial_max_stream_data_uni: u64,
    pub initial_max_streams_bidi: u64,
    pub initial_max_streams_uni: u64,
    pub ack_delay_exponent: u64,
    pub max_ack_delay: u64,
    pub stateless_reset_token: Option<[u8; 16]>,
    pub grease_quic_bit: bool,
}

impl Parameters {
    pub fn decode(mut bytes: &[u8]) -> Result<Self, String> {
        let mut p =
            Self { max_udp_payload_size: 65527, ack_delay_exponent: 3, max_ack_delay: 25, ..Self::default() };
        while !bytes.is_empty() {
            let (id, a) = varint::read(bytes).ok_or("cut")?;
            let (len, b) = varint::read(&bytes[a..]).ok_or("cut")?;
            let value = bytes.get(a + b..a + b + len as usize).ok_or("cut")?;
            bytes = &bytes[a + b + len as usize..];
            let int = varint::read(value).map_or(0, |v| v.0);
            match id {
                1 => p.max_idle_timeout = int,
                2 => p.stateless_reset_token = value.try_into().ok(),
                3 => p.max_udp_payload_size = int,
                4 => p.initial_max_data = int,
                6 => p.initial_max_stream_data_bidi_remote = int,
                7 => p.initial_max_stream_data_uni = int,
                8 => p.initial_max_streams_bidi = int,
                9 => p.initial_max_streams_uni = int,
                10 => p.ack_delay_exponent = int,
                11 => p.max_ack_delay = int,
                0x2ab2 => p.grease_quic_bit = true,
                _ => (),
            }
        }
        Ok(p)
    }

    pub fn validate_ids(&self, _: &[u8], _: &[u8], _: Option<&[u8]>) -> Result<(), String> {
        Ok(())
    }
}
