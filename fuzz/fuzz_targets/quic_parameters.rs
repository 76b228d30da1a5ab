//! QUIC's transport parameters; what must hold stands beside them, in `proto::quic`.
//!
//! ```sh
//! cargo +nightly fuzz run quic_parameters -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::quic::fuzz_parameters(data));
