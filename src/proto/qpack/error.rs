//! Owns the names of what ends a connection: sections and instructions that cannot be read.

use crate::proto::hpack::HuffmanError;
use crate::proto::hpack::integer::IntegerError;
use crate::proto::hpack::string::StringError;

/// What leaves the compression in doubt: a connection error (RFC 9204 §2.2, §6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum QpackError {
    /// An integer of a field section that is too large, or padded without end (RFC 9204 §4.1.1).
    #[error("a QPACK integer out of its range")]
    IntegerOverflow,
    /// The section ends inside a representation.
    #[error("a field section that ends in the middle of a field")]
    Truncated,
    /// A string literal that is no Huffman code (RFC 7541 §5.2).
    #[error("{0}")]
    Huffman(HuffmanError),
    /// An index beyond the static table, of an entry that was evicted, or of one that the Required Insert
    /// Count does not cover (RFC 9204 §2.2.1, §3.1, §3.2.4).
    #[error("a QPACK index that nothing stands at, or that the Required Insert Count does not cover")]
    Index,
    /// The dynamic table is used, whose capacity was advertised as 0 (RFC 9204 §3.2.3).
    #[error("a reference to the dynamic table, whose capacity was advertised as 0")]
    DynamicTableRefused,
    /// A Required Insert Count that no encoder can have written (RFC 9204 §4.5.1.1).
    #[error("a Required Insert Count that the advertised capacity rules out")]
    RequiredInsertCount,
    /// A Base below 0 or beyond all counts (RFC 9204 §4.5.1.2).
    #[error("a Base that is negative, or out of its range")]
    Base,
    /// More streams are blocked than was advertised (RFC 9204 §2.1.2).
    #[error("more blocked streams than the advertised SETTINGS_QPACK_BLOCKED_STREAMS")]
    BlockedStreams,
    /// An integer or a string of an encoder instruction that cannot be read (RFC 9204 §4.3).
    #[error("an instruction of the QPACK encoder that cannot be read")]
    EncoderSyntax,
    /// An encoder instruction that refers to nothing (RFC 9204 §4.3.2, §4.3.4).
    #[error("an instruction of the QPACK encoder that refers to an entry that is not there")]
    EncoderIndex,
    /// A capacity above the advertised one (RFC 9204 §4.3.1).
    #[error("a dynamic table capacity above the advertised SETTINGS_QPACK_MAX_TABLE_CAPACITY")]
    EncoderCapacity,
    /// An entry larger than the dynamic table (RFC 9204 §3.2.2).
    #[error("an insertion of an entry that is larger than the dynamic table")]
    EncoderEntry,
    /// An integer of a decoder instruction that is too large (RFC 9204 §4.4).
    #[error("an instruction of the QPACK decoder that cannot be read")]
    DecoderSyntax,
    /// A Section Acknowledgment or an Insert Count Increment, although nothing was ever inserted
    /// (RFC 9204 §4.4.1, §4.4.3).
    #[error("an acknowledgment of QPACK insertions that were never made")]
    DecoderAcknowledgment,
}

impl QpackError {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::IntegerOverflow => "qpack-integer-overflow",
            Self::Truncated => "qpack-truncated",
            Self::Huffman(_) => "qpack-huffman",
            Self::Index => "qpack-index",
            Self::DynamicTableRefused => "qpack-dynamic-table-refused",
            Self::RequiredInsertCount => "qpack-required-insert-count",
            Self::Base => "qpack-base",
            Self::BlockedStreams => "qpack-blocked-streams",
            Self::EncoderSyntax => "qpack-encoder-syntax",
            Self::EncoderIndex => "qpack-encoder-index",
            Self::EncoderCapacity => "qpack-encoder-capacity",
            Self::EncoderEntry => "qpack-encoder-entry",
            Self::DecoderSyntax => "qpack-decoder-syntax",
            Self::DecoderAcknowledgment => "qpack-decoder-acknowledgment",
        }
    }

    /// The error code of CONNECTION_CLOSE (RFC 9204 §6).
    pub fn code(self) -> u64 {
        match self {
            Self::EncoderSyntax | Self::EncoderIndex | Self::EncoderCapacity | Self::EncoderEntry => {
                ENCODER_STREAM_ERROR
            }
            Self::DecoderSyntax | Self::DecoderAcknowledgment => DECODER_STREAM_ERROR,
            _ => DECOMPRESSION_FAILED,
        }
    }
}

impl From<IntegerError> for QpackError {
    fn from(error: IntegerError) -> Self {
        match error {
            IntegerError::Truncated => Self::Truncated,
            IntegerError::Overflow => Self::IntegerOverflow,
        }
    }
}

impl From<StringError> for QpackError {
    fn from(error: StringError) -> Self {
        match error {
            StringError::Length(error) => error.into(),
            StringError::Truncated => Self::Truncated,
            StringError::Huffman(error) => Self::Huffman(error),
        }
    }
}

/// QPACK_DECOMPRESSION_FAILED
pub(in crate::proto) const DECOMPRESSION_FAILED: u64 = 0x200;
/// QPACK_ENCODER_STREAM_ERROR
pub(in crate::proto) const ENCODER_STREAM_ERROR: u64 = 0x201;
/// QPACK_DECODER_STREAM_ERROR
pub(in crate::proto) const DECODER_STREAM_ERROR: u64 = 0x202;
