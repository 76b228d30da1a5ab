# Lints; also that the lock files are up to date. The servers' as they are built, so that what they need is
# built once.
cargo clippy --locked --all-targets -- -D warnings
for manifest in servers/*/Cargo.toml; do
    features=--all-features
    # Its libraries for TLS exclude each other.
    [[ $manifest != servers/rust-hyper/* ]] || features=--features=h3
    cargo clippy --locked --release "$features" --manifest-path "$manifest" --target-dir "${manifest%/*}/target" -- -D warnings
done
