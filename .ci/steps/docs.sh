# Documentation builds, and its links lead somewhere.
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps
