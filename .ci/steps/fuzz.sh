# The fuzz targets compile; their corpus is replayed by the tests.
cargo check --manifest-path fuzz/Cargo.toml
