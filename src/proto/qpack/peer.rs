//! Owns the reading of the peer's decoder stream (RFC 9204 §4.4).

use super::QpackError;

/// What the peer's decoder says to an encoder that never inserts: only cancellations have a meaning.
#[derive(Clone, Copy, Default, Debug)]
pub struct PeerDecoder {
    /// Octets of a stream identifier that have come, while more are to come.
    octets: u8,
}

impl PeerDecoder {
    /// Takes bytes of the decoder stream, whatever way they are split.
    ///
    /// # Errors
    /// An acknowledgment of what was never sent, or an integer that is too long.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        for &octet in bytes {
            if self.octets > 0 {
                self.octets = if octet & 0x80 == 0 { 0 } else { self.octets + 1 };
                if self.octets > MOST_OCTETS {
                    return Err(QpackError::DecoderSyntax);
                }
            } else if octet & 0xc0 == STREAM_CANCELLATION {
                self.octets = u8::from(octet & 0x3f == 0x3f);
            } else {
                return Err(QpackError::DecoderAcknowledgment);
            }
        }
        Ok(())
    }
}

const STREAM_CANCELLATION: u8 = 0x40;
/// A first octet and nine more: enough for 62 bits (RFC 9204 §4.1.1).
const MOST_OCTETS: u8 = 9;
