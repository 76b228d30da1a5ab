//! Owns the names of what ends a connection: field blocks that cannot be read.

use super::{huffman::HuffmanError, integer::IntegerError, section::TooLarge, string::StringError};

/// A field block that leaves the dynamic table in doubt: a connection error of type
/// COMPRESSION_ERROR (RFC 9113 §4.3), or, for [`HpackError::ListTooLarge`], more than was advertised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum HpackError {
    /// An integer of 2^32 or more, or padded without end (RFC 7541 §5.1).
    #[error("an HPACK integer that does not fit in 32 bits")]
    IntegerOverflow,
    /// The block ends inside a representation.
    #[error("a field block that ends in the middle of a field")]
    Truncated,
    /// Index 0, or one beyond the end of the dynamic table (RFC 7541 §2.3.3, §6.1).
    #[error("an HPACK index that nothing stands at")]
    Index,
    /// A string literal that is no Huffman code (RFC 7541 §5.2).
    #[error("{0}")]
    Huffman(#[from] HuffmanError),
    /// A dynamic table size update above SETTINGS_HEADER_TABLE_SIZE (RFC 7541 §6.3).
    #[error("a dynamic table size update above the advertised SETTINGS_HEADER_TABLE_SIZE")]
    TableSize,
    /// A dynamic table size update behind the first field of its block (RFC 7541 §4.2).
    #[error("a dynamic table size update behind a field")]
    TableSizeMisplaced,
    /// A smaller SETTINGS_HEADER_TABLE_SIZE was acknowledged, and the block after that does not start
    /// with a dynamic table size update down to it (RFC 9113 §4.3.1).
    #[error("a smaller SETTINGS_HEADER_TABLE_SIZE was acknowledged, and not followed")]
    TableSizeIgnored,
    /// A field section of more than the advertised SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 §6.5.2).
    #[error("a field section above the advertised SETTINGS_MAX_HEADER_LIST_SIZE")]
    ListTooLarge,
}

impl HpackError {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::IntegerOverflow => "hpack-integer-overflow",
            Self::Truncated => "hpack-truncated",
            Self::Index => "hpack-index",
            Self::Huffman(_) => "hpack-huffman",
            Self::TableSize => "hpack-table-size",
            Self::TableSizeMisplaced => "hpack-table-size-misplaced",
            Self::TableSizeIgnored => "hpack-table-size-ignored",
            Self::ListTooLarge => "header-list-too-large",
        }
    }
}

impl From<IntegerError> for HpackError {
    fn from(error: IntegerError) -> Self {
        match error {
            IntegerError::Truncated => Self::Truncated,
            IntegerError::Overflow => Self::IntegerOverflow,
        }
    }
}

impl From<StringError> for HpackError {
    fn from(error: StringError) -> Self {
        match error {
            StringError::Length(error) => error.into(),
            StringError::Truncated => Self::Truncated,
            StringError::Huffman(error) => error.into(),
        }
    }
}

impl From<TooLarge> for HpackError {
    fn from(TooLarge: TooLarge) -> Self {
        Self::ListTooLarge
    }
}
