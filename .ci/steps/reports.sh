# Every committed report is what its results render to.
shopt -s nullglob
reports=(reports/*.json)
if ((${#reports[@]} == 0)); then
    echo "no results in reports/ to render; commit those of scenarios/http.toml" >&2
    exit 1
fi
cargo run --locked --release -- report --check "${reports[@]}"
