// Bun.serve: cleartext on HTTP_PORT, TLS with CERT and KEY on HTTPS_PORT, each for HTTP/1.1 and HTTP/2, and
// HTTP/3 on the UDP port HTTPS_PORT. One JavaScript thread.

const filled = new Uint8Array(1 << 20).fill("x".charCodeAt(0));
const hello = new TextEncoder().encode("Hello, World!\n");
const empty = new Uint8Array(0);
const bodies = new Map([
  ["/", hello],
  ["/upload", hello],
  ["/empty", empty],
  ["/1k", filled.subarray(0, 1 << 10)],
  ["/16k", filled.subarray(0, 1 << 14)],
  ["/1m", filled],
]);

async function answer(request) {
  if (request.method === "POST") {
    for await (const _ of request.body ?? []);
  }
  const body = bodies.get(new URL(request.url).pathname);
  return new Response(body ?? empty, {
    status: body === undefined ? 404 : 200,
    headers: { "content-type": "text/plain", "content-length": String((body ?? empty).length) },
  });
}

const { CERT, KEY, HTTP_PORT, HTTPS_PORT } = process.env;
const tls = { cert: await Bun.file(CERT).text(), key: await Bun.file(KEY).text() };
// Connections are kept through pauses of half a minute; by default they end after 10 s.
const settings = { fetch: answer, http2: true, idleTimeout: 120, development: false };
const servers = [];
for (const hostname of ["127.0.0.1", "::1"]) {
  try {
    servers.push(Bun.serve({ ...settings, hostname, port: HTTP_PORT }));
    servers.push(Bun.serve({ ...settings, hostname, port: HTTPS_PORT, tls, http3: true }));
  } catch (error) {
    // A machine without IPv6 has no ::1; 127.0.0.1 must be there.
    if (hostname !== "::1") throw error;
  }
}

process.on("SIGTERM", () => {
  for (const server of servers) server.stop(true);
  process.exit(0);
});
