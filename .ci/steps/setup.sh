# Installs what the other steps need and the machine lacks: a C and C++ compiler for libraries with
# native code, the servers under test, and what tests of processes are written in.
missing=()
need() {
    command -v "$1" >/dev/null || missing+=("$2")
}
need cc gcc
need c++ g++
need git git
need python3 python3
need node nodejs
need go golang-go
need npm npm
need shellcheck shellcheck
# The action fetches releases by the one, and its tests keep comments by the other.
need curl curl
need jq jq
need nginx nginx
need h2o h2o
# scenarios/encodings.toml asks nginx for brotli, whose module Debian has apart.
if ! dpkg -s libnginx-mod-http-brotli-filter >/dev/null 2>&1; then
    missing+=(libnginx-mod-http-brotli-filter)
fi
# quiche brings BoringSSL, and bindings to it that are made while it is built.
need cmake cmake
need clang clang
need clang libclang-dev
# Caddy and aioquic come from PyPI, into environments of their own.
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

if ((${#missing[@]} > 0)); then
    echo "installing ${missing[*]}"
    root=()
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "cannot install ${missing[*]}: run as root, or install them first" >&2
            exit 1
        fi
        root=(sudo)
    fi
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

# `servers/go-quic` is built by Go 1.26 or newer. From 1.21 on Go fetches what a module asks for.
go_version=$(go env GOVERSION)
if [[ $go_version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] < 21)); then
    echo "$go_version is too old for servers/go-quic: put 1.26 or newer on PATH, or one from 1.21 on that fetches it" >&2
    exit 1
fi

cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
cargo clippy --version >/dev/null 2>&1 || rustup component add clippy

# The step `workflows` lints with this version.
actionlint=1.7.12
if [[ $(target/tools/actionlint -version 2>/dev/null | head -n 1) != "v$actionlint" ]]; then
    GOBIN=$PWD/target/tools go install "github.com/rhysd/actionlint/cmd/actionlint@v$actionlint"
fi
