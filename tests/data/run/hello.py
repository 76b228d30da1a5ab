"""An HTTP/1.1 server for tests of `bench run`: answers every request with `hi`.

Usage: hello.py PORT TLS_PORT CERT KEY [die-after=N] [wrong-after=N] [encode=HOW]
With die-after, the process ends with status 7 once it has answered N requests; with wrong-after, it answers `ho` from then
on. With encode, a request that accepts
gzip gets it: `well`; with another body inside (`wrong`); in other bytes each time (`varying`), or in others from the
tenth answer on, every second time (`drifting`); of 65 MiB (`bomb`); or under the name of a coding that nobody knows (`unknown`).
"""

import gzip
import os
import socket
import ssl
import sys
import threading

RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi\n"
port, tls_port, cert, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
options = dict(word.split("=", 1) for word in sys.argv[5:])
die_after = int(options.get("die-after", 0))
wrong_after = int(options.get("wrong-after", 0))
encode = options.get("encode")
bodies = {"wrong": b"ho\n", "bomb": bytes(65 << 20)}
answered = 0


def encoded(time=0):
    name = b"snappy" if encode == "unknown" else b"gzip"
    # The time of the file is part of the format (RFC 1952).
    body = gzip.compress(bodies.get(encode, b"hi\n"), 9, mtime=time)
    return b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n%s" % (name, len(body), body)


once = encoded() if encode else RESPONSE


def response(request):
    if wrong_after and answered > wrong_after:
        return RESPONSE.replace(b"hi", b"ho")
    if not encode or b"accept-encoding: gzip" not in request.lower():
        return RESPONSE
    changed = encode == "varying" or (encode == "drifting" and answered >= 10 and answered % 2 == 0)
    return encoded(answered) if changed else once


def serve(connection, context):
    global answered
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pending = b""
        while data := connection.recv(65536):
            pending += data
            *requests, pending = pending.split(b"\r\n\r\n")
            for request in requests:
                answered += 1
                if die_after and answered > die_after:
                    print("this is the end", flush=True)
                    os._exit(7)
                connection.sendall(response(request))
                if b"connection: close" in request.lower():
                    return
    except OSError:
        pass
    finally:
        connection.close()


def listen(port, context):
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, context), daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
threading.Thread(target=listen, args=(tls_port, context), daemon=True).start()
listen(port, None)
