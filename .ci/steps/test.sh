# The tests, as the README runs them: checked arithmetic, debug assertions. With this variable no server of
# tests/interop.rs may be missing.
export BENCH_REQUIRE_SERVERS=1
cargo test
