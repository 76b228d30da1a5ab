# The tests, as the README runs them: checked arithmetic, debug assertions.
cargo test
