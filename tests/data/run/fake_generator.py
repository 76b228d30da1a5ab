"""A generator for tests of `bench run`: reads a plan and speaks the event protocol, well or badly.

Usage: fake_generator.py BEHAVIOUR, which is how it treats the plan of a cell; a readiness probe (one
request) is always answered as by a server that is ready, except by `refuse`, and by `http1-only` for HTTP/2.
"""

import json
import signal
import sys
import time

behaviour = sys.argv[1]
plan = json.load(sys.stdin)
probe = plan["limit"] == {"requests": 1}


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def measurement(opened, closed, ok, errors=()):
    version = {"h2c": "HTTP/2", "h2": "HTTP/2", "h3": "HTTP/3"}.get(plan["protocol"], "HTTP/1.1")
    alpn = {"h1s": "http/1.1", "h2": "h2", "h3": "h3"}.get(plan["protocol"])
    negotiated = {"http": version, "alpn": alpn, "tls": alpn and "TLSv1.3", "cipher": None, "group": None}
    resumed = 0 if plan["resumption"] == "off" else ok
    handshakes = {
        "full": ok - resumed,
        "resumed": resumed,
        "early_accepted": ok if plan["resumption"] == "0rtt" else 0,
        "early_rejected": 0,
    }
    count = {"started": ok, "carried_in": 0, "ok": ok, "failed": 0, "unfinished": 0, "oldest_unfinished_us": None}
    length = (closed - opened) / 1e9
    duration = plan["limit"].get("duration_ns")
    say(
        "measurement",
        url=plan["target"]["url"],
        protocol=plan["protocol"],
        negotiated=negotiated if ok else None,
        addresses=plan["target"]["addresses"],
        threads=plan["threads"],
        connections=plan["connections"],
        concurrency=plan["concurrency"],
        keepalive=plan["keepalive"],
        requests_per_connection=plan["requests_per_connection"],
        resumption=plan["resumption"],
        window={
            "opened_at_ns": opened,
            "closed_at_ns": closed,
            "length_s": length,
            "asked_s": None if duration is None else duration / 1e9,
            "asked_requests": plan["limit"].get("requests"),
            "warmup_s": plan["warmup_ns"] / 1e9,
            "warmup_requests_per_second": None,
        },
        interrupted=False,
        requests=count,
        requests_per_second=ok / length,
        transfer={"received_bytes": 0, "sent_bytes": 0, "body_bytes": 0},
        latency_us=None,
        first_byte_us=None,
        in_flight=None,
        statuses={"200": ok},
        interim_responses=0,
        errors=list(errors),
        connection={
            "attempted": 1,
            "opened": 1,
            "reopened": 0,
            "failed": 0,
            "peak": 1,
            "stalled": 0,
            "setup_us": None,
            "handshakes": alpn and handshakes,
        },
        seconds=[],
        generator={
            "engine": "fake",
            "features": {},
            "wait": plan["wait"],
            "waited": "sleep",
            "tls": None,
            "cpu_user_us_per_request": None,
            "cpu_system_us_per_request": None,
            "completions_per_wait": None,
            "threads": [],
            "peak_rss_kib": 0,
        },
        lifetime=count,
        warnings=[],
    )


def measure():
    opened = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    closed = opened + plan["limit"].get("duration_ns", 1_000_000)
    say("window", opens_at_ns=opened, closes_at_ns=closed)
    while (now := time.clock_gettime_ns(time.CLOCK_MONOTONIC)) < closed:
        time.sleep((closed - now) / 1e9)
    measurement(opened, closed, 100)


if behaviour == "refuse":
    say("error", message="io_uring is refused here; ask the container's owner")
    sys.exit(2)
if behaviour == "http1-only" and plan["protocol"] == "h2c":
    opened = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    example = "the server answered in HTTP/1.1"
    error = {"phase": "framing", "kind": "wrong-protocol", "count": 1, "requests": 1, "example": example}
    measurement(opened, opened + 1_000_000, 0, [error])
    sys.exit(1)
if probe or behaviour in ("good", "http1-only"):
    measure()
elif behaviour == "silent":
    print("out of luck", file=sys.stderr)
    sys.exit(3)
elif behaviour == "garbage":
    print('{"event": "window", "opens', flush=True)
    time.sleep(3600)
elif behaviour == "hang":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)
elif behaviour == "endless-line":
    while True:
        sys.stdout.write("x" * 65536)
elif behaviour == "error":
    say("error", message="too many open files")
    sys.exit(2)
