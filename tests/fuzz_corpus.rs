//! Replays the committed corpus of every fuzz target, so that what a fuzzer once found, or was given to
//! start from, is checked wherever the tests run.

use std::{fs, path::Path};

#[test]
fn h1_response() {
    replay("h1_response", 20, bench::proto::h1::fuzz_response);
}

#[test]
fn hpack_block() {
    replay("hpack_block", 20, bench::proto::hpack::fuzz_block);
}

#[test]
fn h2_frames() {
    replay("h2_frames", 20, bench::proto::h2::fuzz_frames);
}

#[test]
fn qpack_section() {
    replay("qpack_section", 20, bench::proto::qpack::fuzz_section);
}

#[test]
fn h3_streams() {
    replay("h3_streams", 20, bench::proto::h3::fuzz_streams);
}

#[test]
fn quic_parameters() {
    replay("quic_parameters", 20, bench::proto::quic::fuzz_parameters);
}

/// Calls `target` with each file of its corpus, of which there are at least so many.
fn replay(corpus: &str, at_least: usize, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(corpus);
    let mut seeds = 0;
    for entry in fs::read_dir(&directory).expect("the corpus is part of the repository") {
        let path = entry.expect("an entry of a readable directory").path();
        println!("{}", path.display()); // Shown when the target panics.
        target(&fs::read(&path).expect("a readable seed"));
        seeds += 1;
    }
    assert!(seeds >= at_least, "{} holds {seeds} seeds", directory.display());
}
