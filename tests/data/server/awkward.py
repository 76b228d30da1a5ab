"""A server that is hard to stop: forks twice, in a session of its own, ignores SIGTERM, and lets
four workers do everything. A worker that ends is replaced.

Usage: awkward.py PORT. A client sends one line: `who` is answered with the worker's process id,
`quit` ends the worker, `burn N` uses N ms of CPU and is answered with the µs that it took.
"""

import os
import signal
import socket
import sys
import time


def burn(milliseconds):
    start = time.process_time()
    while time.process_time() - start < milliseconds / 1000:
        pass
    return round((time.process_time() - start) * 1e6)


def work(listener):
    while True:
        client, _ = listener.accept()
        with client, client.makefile("rw") as lines:
            order = lines.readline().strip()
            if order == "quit":
                os._exit(0)
            if order.startswith("burn "):
                lines.write(f"{burn(int(order[5:]))}\n")
            else:
                lines.write(f"{os.getpid()}\n")


def start_worker(listener):
    if os.fork() == 0:
        work(listener)


signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(64)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for _ in range(4):
    start_worker(listener)
while True:
    os.wait()
    start_worker(listener)
