"""An awkward server for the sampler's tests: a wrapper that double-forks into a session of its own.

`process_tree.py` is the supervisor: the child subreaper, which starts a shell, which starts
`process_tree.py serve`, which forks twice and is gone. What is left is the master. It takes commands
from standard input, one a line, and answers each with one line once it is done:

    start N           fork N workers, which ignore SIGTERM
    burn W SECONDS    worker W uses that much CPU in a thread that then ends
    spin W SECONDS    worker W uses that much CPU in its first thread
    replace W         worker W exits, is waited for, and a new one takes its place
    dismiss W         worker W exits, and is waited for
    orphan SECONDS    a grandchild is orphaned, uses that much CPU and exits
    ignore            children are no longer waited for (SIGCHLD is ignored)
    udp               the master opens a UDP socket with a small receive buffer, and tells its port
    drain             all that lies in that buffer is read, and counted
    used              seconds of CPU that master, workers, and all that were waited for say they used
"""

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

PR_SET_CHILD_SUBREAPER = 36


def used(who=resource.RUSAGE_SELF):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(2000):
            pass


def burn(seconds):
    thread = threading.Thread(target=spin, args=(seconds,))
    thread.start()
    thread.join()


class Worker:
    def __init__(self):
        command_end, self.commands = os.pipe()
        self.replies, reply_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            try:
                self.serve(os.fdopen(command_end), reply_end)
            finally:
                os._exit(0)
        os.close(command_end)
        os.close(reply_end)
        self.replies = os.fdopen(self.replies)

    @staticmethod
    def serve(commands, replies):
        for line in commands:
            verb, *arguments = line.split()
            answer = 0.0
            if verb == "burn":
                burn(float(arguments[0]))
            elif verb == "spin":
                spin(float(arguments[0]))
            elif verb == "used":
                answer = used()
            else:
                return
            os.write(replies, f"{answer}\n".encode())

    def ask(self, command):
        self.tell(command)
        return float(self.replies.readline())

    def tell(self, command):
        os.write(self.commands, f"{command}\n".encode())

    def dismiss(self):
        self.tell("exit")
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # SIGCHLD is ignored: it is gone by now, and nobody was credited.


def orphan(seconds):
    """Starts a grandchild whose parent is gone; returns what it says it used."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            burn(seconds)
            os.write(write_end, f"{used()}\n".encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    # The end of the file comes when the grandchild has ended, the number before it.
    with os.fdopen(read_end) as reply:
        return float(reply.read())


def listen():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    udp.setblocking(False)
    udp.bind(("127.0.0.1", 0))
    return udp


def drain(udp):
    count = 0
    while True:
        try:
            udp.recv(65536)
        except BlockingIOError:
            return count
        count += 1


def serve():
    workers, orphans, udp = {}, 0.0, None
    for line in sys.stdin:
        verb, *arguments = line.split()
        answer = "ok"
        if verb == "start":
            workers.update((name, Worker()) for name in map(str, range(int(arguments[0]))))
        elif verb in ("burn", "spin"):
            workers[arguments[0]].ask(f"{verb} {arguments[1]}")
        elif verb == "replace":
            workers[arguments[0]].dismiss()
            workers[arguments[0]] = Worker()
        elif verb == "dismiss":
            workers.pop(arguments[0]).dismiss()
        elif verb == "orphan":
            orphans += orphan(float(arguments[0]))
        elif verb == "ignore":
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        elif verb == "udp":
            udp = listen()
            answer = udp.getsockname()[1]
        elif verb == "drain":
            answer = drain(udp)
        elif verb == "used":
            live = sum(worker.ask("used") for worker in workers.values())
            answer = used() + used(resource.RUSAGE_CHILDREN) + orphans + live
        print(answer, flush=True)
    for worker in workers.values():
        worker.tell("exit")


def supervise():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # The second command keeps the shell from turning into the first.
    script = '"$0" "$1" serve; exit 0'
    subprocess.Popen(["sh", "-c", script, sys.executable, __file__])
    # The workers' ends of the pipes are theirs alone.
    os.close(0)
    os.close(1)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if sys.argv[1:] == ["serve"]:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            serve()
    os._exit(0)
supervise()
