# The main job, end to end. The report goes where it does not change the working tree.
mkdir -p target/quick
cargo run --locked --release -- run scenarios/quick.toml --out target/quick
