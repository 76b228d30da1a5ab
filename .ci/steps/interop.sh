# Each server in servers/, none skipped: with this variable a missing one is a failure.
export BENCH_REQUIRE_SERVERS=1
cargo test --locked --release --test interop
