//! The HTTP/1.1 response reader; what must hold stands beside it, in `proto::h1`.
//!
//! ```sh
//! cargo +nightly fuzz run h1_response -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::h1::fuzz_response(data));
