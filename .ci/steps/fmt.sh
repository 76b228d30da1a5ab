# Formatting, of the program and of the servers written in Rust and Go.
cargo fmt --check
for manifest in servers/*/Cargo.toml; do
    cargo fmt --check --manifest-path "$manifest"
done
unformatted=$(gofmt -l servers/go servers/go-quic)
if [[ -n $unformatted ]]; then
    echo "not formatted by gofmt: $unformatted" >&2
    exit 1
fi
