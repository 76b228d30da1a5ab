#!/usr/bin/env bash
# Puts `bench` on the PATH of the steps that follow.
#
# VERSION   a release (v0.1.0), `source` (built here by cargo) or `installed` (the one on the PATH); empty: the
#           release that this checkout is the source of
# RELEASES  where releases lie: RELEASES/v0.1.0/SHA256SUMS
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
version=${VERSION:-v$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)}

fail() {
    echo "::error::$1" >&2
    exit 2
}

case $version in
installed)
    folder=$(command -v bench) || fail "version is 'installed', but no bench is on the PATH"
    folder=${folder%/*}
    ;;
source)
    command -v cargo >/dev/null || fail "version is 'source', which needs cargo; install Rust in a step before"
    (cd "$root" && cargo build --release --locked)
    folder=$root/target/release
    ;;
v[0-9]*)
    archive=bench-$version-$(uname -m)-linux.tar.gz
    folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/bench.XXXXXX")
    for file in "$archive" SHA256SUMS; do
        curl --fail --silent --show-error --location --retry 3 --output "$folder/$file" "$RELEASES/$version/$file" ||
            fail "$RELEASES/$version/$file cannot be fetched; is there such a release? 'version: source' builds instead"
    done
    # Fails also when the archive is not in the list.
    (cd "$folder" && sha256sum --check --strict --ignore-missing SHA256SUMS) ||
        fail "$archive is not what SHA256SUMS of $version says"
    tar -xzf "$folder/$archive" -C "$folder"
    ;;
*)
    fail "version '$version' is none: take a release such as v0.1.0, 'source' or 'installed'"
    ;;
esac

"$folder/bench" --version
echo "$folder" >>"$GITHUB_PATH"
