//! The streams of an HTTP/3 connection; what must hold stands beside it, in `proto::h3`.
//!
//! ```sh
//! cargo +nightly fuzz run h3_streams -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::h3::fuzz_streams(data));
