//! Owns HPACK (RFC 7541) as a generator needs it: [`encode_request`] makes a request's field blocks once,
//! [`Decoder`] reads of each response what decides its fate, and steps over the rest.
//!
//! What the RFCs leave to the recipient is decided like this:
//!
//! | input | decision | source |
//! |---|---|---|
//! | a dynamic table size update behind a field | [`HpackError::TableSizeMisplaced`] | RFC 7541 §4.2 |
//! | more than two updates at the start of a block | accepted | RFC 7541 §4.2 says two are enough |
//! | an update above 4096, but not above an advertised size, before its acknowledgement | accepted | RFC 9113 §6.5.3 |
//! | an integer padded to at most nine octets | accepted | RFC 7541 §5.1 |
//! | a field section above the limit | ends the connection, so that nothing more is read of it | RFC 9113 §10.5.1 |
//! | `content-length: 42, 42`, or the same twice | accepted | RFC 9110 §8.6 |
//! | a Content-Length in a trailer section | not looked at | RFC 9110 §6.5.1 |
//! | a name outside of a token, but not ruled out by RFC 9113 §8.2.1 | accepted | RFC 9113 §8.2.1 |
//! | `te` in a response | accepted | RFC 9113 §8.2.2 |

mod decoder;
pub(in crate::proto) mod encoder;
mod error;
pub(in crate::proto) mod field;
mod fuzz;
pub(in crate::proto) mod huffman;
pub(in crate::proto) mod integer;
pub(in crate::proto) mod section;
pub(in crate::proto) mod string;
pub(in crate::proto) mod table;
#[cfg(test)]
mod tests;
pub(in crate::proto) mod texts;

pub use decoder::Decoder;
pub use encoder::{RequestBlock, encode_request, table_size_update};
pub use error::HpackError;
#[doc(hidden)]
pub use fuzz::fuzz_block;
pub use huffman::HuffmanError;
pub use section::{Kind, Malformed, Section};
