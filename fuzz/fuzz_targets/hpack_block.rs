//! The HPACK decoder; what must hold stands beside it, in `proto::hpack`.
//!
//! ```sh
//! cargo +nightly fuzz run hpack_block -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::hpack::fuzz_block(data));
