#!/bin/sh
# The program, a release that PyPI carries, and the files it answers from.
set -eu
here=$(dirname "$0")
sh "$here/../venv.sh" "$1/venv" "$here/requirements.txt"
sh "$here/../bodies.sh" "$1"
