//! The HTTP/2 connection; what must hold stands beside it, in `proto::h2`.
//!
//! ```sh
//! cargo +nightly fuzz run h2_frames -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::h2::fuzz_frames(data));
