# The unit tests as users run the code: optimised, arithmetic unchecked.
cargo test --locked --release --lib
