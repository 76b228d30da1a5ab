#!/bin/sh
# Starts h2o with the configuration named. As root h2o would become nobody, who cannot read folders
# that are root's alone; otherwise it must not be told whom to become.
set -eu
if [ "$(id -u)" -eq 0 ]; then
    echo "user: root" >>"$1"
fi
exec h2o-h3 --conf "$1"
