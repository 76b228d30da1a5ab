//! `bench`: a reproducible benchmark harness for HTTP servers.
//!
//! The modules stand in the order of their layers: one may use only what its row in
//! `docs/architecture.md` lists, and nothing that stands below it. `tests/layering.rs` holds the
//! table to the code.

pub mod time;

pub mod units;

pub mod clock;

pub mod proto;

pub mod results;

pub mod compare;

pub mod scenario;

pub mod load;

pub mod sampler;

pub mod server;

pub mod run;

pub mod report;

pub mod git;

pub mod cli;
