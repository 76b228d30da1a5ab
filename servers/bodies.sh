#!/bin/sh
# Makes the files behind /, /empty, /1k, /16k and /1m in the folder named, for servers that answer
# from disk.
set -eu
mkdir -p "$1"
printf 'Hello, World!\n' >"$1/hello"
for file in empty:0 1k:1024 16k:16384 1m:1048576; do
    head -c "${file#*:}" /dev/zero | tr '\0' x >"$1/${file%:*}"
done
