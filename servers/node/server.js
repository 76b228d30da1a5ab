// Node's http and https modules: cleartext on HTTP_PORT, TLS with CERT and KEY on HTTPS_PORT.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");

const env = process.env;
const bodies = new Map([
  ["/", Buffer.from("Hello, World!\n")],
  ["/1k", Buffer.alloc(1 << 10, "x")],
  ["/16k", Buffer.alloc(1 << 14, "x")],
  ["/1m", Buffer.alloc(1 << 20, "x")],
]);

function answer(request, response) {
  if (request.method === "POST") {
    request.on("end", () => send(request, response)).resume();
  } else {
    send(request, response);
  }
}

function send(request, response) {
  const body = bodies.get(request.url);
  response.writeHead(body ? 200 : 404, {
    "Content-Type": "text/plain",
    "Content-Length": body ? body.length : 0,
  });
  response.end(body);
}

// The default of five seconds would close connections that wait between two cells.
const options = { keepAliveTimeout: 3_600_000, noDelay: true };
const tls = { ...options, cert: fs.readFileSync(env.CERT), key: fs.readFileSync(env.KEY) };
const listeners = [];

for (const host of ["127.0.0.1", "::1"]) {
  for (const [port, create] of [
    [env.HTTP_PORT, () => http.createServer(options, answer)],
    [env.HTTPS_PORT, () => https.createServer(tls, answer)],
  ]) {
    const listener = create();
    listener.on("error", (error) => {
      // A machine without IPv6 has no ::1; 127.0.0.1 must be there.
      if (host !== "::1") throw error;
    });
    listener.listen({ host, port, backlog: 4096 });
    listeners.push(listener);
  }
}

process.once("SIGTERM", () => {
  for (const listener of listeners) {
    listener.close();
    listener.closeIdleConnections();
  }
  // What is still open after a second is cut off.
  setTimeout(() => process.exit(0), 1000).unref();
});
