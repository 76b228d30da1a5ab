"""Does nothing until its standard input ends."""

import sys

print("idle", flush=True)
sys.stdin.read()
