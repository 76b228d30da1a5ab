#!/bin/sh
# A start script as found in the wild: it starts the server and ends.
python3 "$(dirname "$0")/awkward.py" "$1"
echo "wrapper: started"
