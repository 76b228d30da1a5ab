"""aioquic's server and its HTTP/3, on one asyncio loop: HTTP/3 on the UDP port HTTPS_PORT with CERT and KEY."""

import asyncio
import os
import signal
import socket
import sys
from collections import OrderedDict
from importlib.metadata import version

import uvloop
from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StreamReset

BODIES = {
    b"/": b"Hello, World!\n",
    b"/upload": b"Hello, World!\n",
    b"/empty": b"",
    b"/1k": b"x" * (1 << 10),
    b"/16k": b"x" * (1 << 14),
    b"/1m": b"x" * (1 << 20),
}
# aioquic sends datagrams of 1200 bytes by default.
DATAGRAM = 1350
IDLE_TIMEOUT = 120.0
# Sessions kept for clients that come back.
SESSIONS = 16 * 1024
# Asked of the kernel, which grants at most `net.core.rmem_max` and `wmem_max`.
SOCKET_BUFFER = 4 << 20


class Connection(QuicConnectionProtocol):
    """Requests in, answers out."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        # Requests that are not complete, by stream.
        self.requests = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        elif isinstance(event, StreamReset):
            self.requests.pop(event.stream_id, None)
        if self.http is None:
            return
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                # Those of a request that has begun are its trailers.
                self.requests.setdefault(part.stream_id, dict(part.headers))
            if isinstance(part, (HeadersReceived, DataReceived)) and part.stream_ended:
                self.answer(part.stream_id, self.requests.pop(part.stream_id))

    def answer(self, stream, request):
        body = BODIES.get(request[b":path"])
        status = b"200" if body is not None else b"404"
        body = body or b""
        length = b"%d" % len(body)
        if request[b":method"] == b"HEAD":
            body = b""
        fields = [(b":status", status), (b"content-type", b"text/plain"), (b"content-length", length)]
        self.http.send_headers(stream, fields, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)


class Sessions:
    """Tickets given out, each good for one connection, so that early data cannot be replayed."""

    def __init__(self):
        self.tickets = OrderedDict()

    def keep(self, ticket):
        self.tickets[ticket.ticket] = ticket
        if len(self.tickets) > SESSIONS:
            self.tickets.popitem(last=False)

    def take(self, label):
        return self.tickets.pop(label, None)


def bind(family, host, port):
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
    udp.setblocking(False)
    udp.bind((host, port))
    return udp


async def main():
    port = int(os.environ["HTTPS_PORT"])
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, is_client=False, idle_timeout=IDLE_TIMEOUT, max_datagram_size=DATAGRAM
    )
    configuration.load_cert_chain(os.environ["CERT"], os.environ["KEY"])
    sessions = Sessions()
    sockets = [bind(socket.AF_INET, "127.0.0.1", port)]
    try:
        sockets.append(bind(socket.AF_INET6, "::1", port))
    except OSError:
        pass  # A machine without IPv6 has no ::1.

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    servers = []
    for udp in sockets:
        _, server = await loop.create_datagram_endpoint(
            lambda: QuicServer(
                configuration=configuration,
                create_protocol=Connection,
                session_ticket_fetcher=sessions.take,
                session_ticket_handler=sessions.keep,
            ),
            sock=udp,
        )
        servers.append(server)
    await stop.wait()
    for server in servers:
        server.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        python = ".".join(map(str, sys.version_info[:3]))
        print(f"aioquic {version('aioquic')}, uvloop {version('uvloop')}, Python {python}")
    else:
        uvloop.run(main())
