//! Owns QPACK (RFC 9204) as a generator needs it: [`encode_section`] makes a request's field section once,
//! [`Decoder`] reads of each response what decides its fate, and steps over the rest. Integers, strings, the
//! Huffman code and the meaning of fields are those of HPACK.
//!
//! What the RFC leaves to the recipient is decided like this:
//!
//! | input | decision | source |
//! |---|---|---|
//! | a Required Insert Count above what the section needs | accepted | RFC 9204 §2.2.1 |
//! | any Base in a section without dynamic references, unless negative | accepted | RFC 9204 §4.5.1.2 |
//! | a field section above the limit | that response fails, the connection goes on | RFC 9114 §4.2.2 |
//! | an insertion that evicts an entry not yet acknowledged | accepted; a later reference is not | RFC 9204 §2.1.1 |
//! | a Stream Cancellation | ignored: this side's encoder inserts nothing | RFC 9204 §4.4.2 |

mod decoder;
mod encoder;
mod error;
mod fuzz;
mod peer;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Config, Decoded, Decoder};
pub use encoder::encode_section;
pub use error::QpackError;
#[doc(hidden)]
pub use fuzz::fuzz_section;
pub use peer::PeerDecoder;
