#!/bin/sh
# The program, a release that PyPI carries, and the files it answers from. Caddy has no brotli encoder: it
# serves files that were encoded beforehand.
set -eu
here=$(dirname "$0")
sh "$here/../venv.sh" "$1/venv" "$here/requirements.txt"
sh "$here/../bodies.sh" "$1"
"$1/venv/bin/python" - "$1/text-16k" <<'END'
import brotli, sys

with open(sys.argv[1], "rb") as text, open(sys.argv[1] + ".br", "wb") as encoded:
    encoded.write(brotli.compress(text.read()))
END
