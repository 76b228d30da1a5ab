"""A server of many processes for tests of CPU figures: each answer costs 5 ms of CPU.

Usage: burning.py PORT LOG

It forks twice into a session of its own and its first process is gone. What is left forks workers that
accept from one listener, and replaces each one that ends, which a worker does after 60 answers. A worker
writes a line when it begins and before each answer: its process id, the time by CLOCK_MONOTONIC in
nanoseconds, and the CPU it has used so far in microseconds.
"""

import os
import resource
import socket
import sys
import time

WORKERS = 3
ANSWERS = 60
COST = 0.005


def burn():
    end = time.process_time() + COST
    while time.process_time() < end:
        for _ in range(500):
            pass


def report(log):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = round((usage.ru_utime + usage.ru_stime) * 1e6)
    os.write(log, f"{os.getpid()} {time.monotonic_ns()} {used}\n".encode())


def serve(listener, log):
    report(log)
    left = ANSWERS
    while left > 0:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while left > 0 and connection.recv(65536):
                left -= 1
                burn()
                report(log)
                close = b"" if left else b"connection: close\r\n"
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + close + b"content-length: 3\r\n\r\nhi\n")


def fork_worker(listener, log):
    if os.fork() == 0:
        try:
            serve(listener, log)
        finally:
            os._exit(0)


def master(port, log):
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    for _ in range(WORKERS):
        fork_worker(listener, log)
    while True:
        os.wait()
        fork_worker(listener, log)


if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        master(int(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
os._exit(0)
