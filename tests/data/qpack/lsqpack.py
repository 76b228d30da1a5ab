"""Makes lsqpack.txt: response sections as the encoder of ls-qpack writes them, with the dynamic table in use.

    python3 -m venv venv && venv/bin/pip install pylsqpack==1.0.0
    venv/bin/python lsqpack.py > lsqpack.txt

A session is one connection: `session CAPACITY BLOCKED` has what the decoder advertised. Then `encoder HEX` is what
came on the encoder stream, and `section STREAM HEX` a section, which is followed by its fields, `= NAME: VALUE`.
The encoder learns what arrived from ls-qpack's own decoder, a few sections late, so that unacknowledged
insertions are referred to where blocked streams allow it.
"""

import random

import pylsqpack

FIELDS = [
    (b"content-type", [b"text/plain", b"application/json", b"text/html; charset=utf-8"]),
    (b"content-length", [b"14", b"0", b"1048576"]),
    (b"server", [b"nginx", b"caddy", b"an invented server/1.2.3 with a long name"]),
    (b"date", [b"Mon, 30 Nov 2026 18:%02d:%02d GMT" % (m, s) for m in range(2) for s in range(3)]),
    (b"etag", [b'"%x"' % n for n in range(40)]),
    (b"x-request-id", [b"%032x" % (n * 0x123456789ABCDEF) for n in range(60)]),
    (b"x-cache", [b"HIT", b"MISS"]),
    (b"set-cookie", [b"session=%d; HttpOnly" % n for n in range(8)]),
    (b"x-empty", [b""]),
]


def response(dice):
    status = dice.choice([b"200", b"200", b"200", b"404", b"418", b"503"])
    names = dice.sample(FIELDS, dice.randint(0, 6))
    return [(b":status", status)] + [(name, dice.choice(values)) for name, values in names]


def session(seed, capacity, blocked, count):
    dice = random.Random(seed)
    encoder, decoder = pylsqpack.Encoder(), pylsqpack.Decoder(capacity, blocked)
    print(f"session {capacity} {blocked}")
    settings = encoder.apply_settings(capacity, blocked)
    if settings:
        print("encoder", settings.hex())
        decoder.feed_encoder(settings)
    late = []
    for number in range(count):
        fields = response(dice)
        instructions, section = encoder.encode(4 * number, fields)
        if instructions:
            print("encoder", instructions.hex())
            decoder.feed_encoder(instructions)
        control, decoded = decoder.feed_header(4 * number, section)
        assert decoded == fields
        print("section", 4 * number, section.hex())
        for name, value in fields:
            print("=", name.decode() + ":", value.decode("latin-1"))
        late.append(control)
        if len(late) > dice.randint(0, 3):
            encoder.feed_decoder(b"".join(late))
            late = []


for seed, (capacity, blocked) in enumerate([(0, 0), (4096, 0), (4096, 100), (220, 4), (600, 100), (64, 1)]):
    session(seed, capacity, blocked, 24)
