#!/bin/sh
# Makes a Python environment in the folder named first, of the packages that the file named second lists
# with their versions; nothing when it is of that list already.
set -eu
if cmp -s "$2" "$1/made-of"; then
    exit 0
fi
python3 -m venv --clear "$1"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: -r "$2"
cp "$2" "$1/made-of"
