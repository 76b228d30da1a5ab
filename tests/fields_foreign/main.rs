//! Own HPACK and QPACK against other implementations: sections they encode are decoded here, requests encoded here
//! are decoded there.

mod fields;
mod hpack;
mod qpack;
