# Lints; also that the lock files are up to date. The servers' as they are built, so that what they need is
# built once.
cargo clippy --locked --all-targets -- -D warnings
for manifest in servers/*/Cargo.toml; do
    cargo clippy --locked --release --all-features --manifest-path "$manifest" --target-dir "${manifest%/*}/target" -- -D warnings
done
