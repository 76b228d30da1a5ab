//! Owns the results file: its model, its format number, how it is stored, and the figures derived
//! from it. Everything `bench` prints about a run is a function of what is in here.

pub mod external;
pub mod handshake;
pub mod histogram;
pub mod journal;
mod key;
pub mod marks;
pub mod model;
mod plateau;
mod protocol;
pub(crate) mod quic;
pub mod schema;
pub mod stats;
pub mod store;
pub mod verdict;
pub mod version;
mod wait;

pub use key::CellKey;
pub use model::*;

/// Load average for each CPU above which a machine is called busy: a quarter of a task waiting or
/// running on each shows in a measurement.
pub const BUSY_LOAD: f64 = 0.25;
