//! The QPACK decoder; what must hold stands beside it, in `proto::qpack`.
//!
//! ```sh
//! cargo +nightly fuzz run qpack_section -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::qpack::fuzz_section(data));
