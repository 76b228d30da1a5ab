//! Packet headers of QUIC, packet numbers and a handshake; what must hold stands beside it, in `proto::quic`.
//!
//! ```sh
//! cargo +nightly fuzz run quic_packets -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bench::proto::quic::fuzz_packets(data));
