# Formatting, of the program and of the server written in Rust.
cargo fmt --check
cargo fmt --check --manifest-path servers/rust-hyper/Cargo.toml
