# Lints; also that the lock files are up to date.
cargo clippy --locked --all-targets -- -D warnings
cargo clippy --locked --manifest-path servers/rust-hyper/Cargo.toml --target-dir servers/rust-hyper/target -- -D warnings
