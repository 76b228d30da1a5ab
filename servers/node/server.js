// Node's http and http2 modules: cleartext on HTTP_PORT, TLS with CERT and KEY on HTTPS_PORT, each
// for HTTP/1.1 and HTTP/2.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const http2 = require("node:http2");

const env = process.env;
const hello = Buffer.from("Hello, World!\n");
const bodies = new Map([
  ["/", hello],
  ["/upload", hello],
  ["/empty", Buffer.alloc(0)],
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
const keepAliveTimeout = 3_600_000;
// Node resets streams with ENHANCE_YOUR_CALM while answers of more than this, in MB, wait for a client
// to take them; the default of ten is less than what a client may ask for at once here.
const maxSessionMemory = 1000;
const sessions = new Set();

function createSecureServer() {
  const tls = { noDelay: true, cert: fs.readFileSync(env.CERT), key: fs.readFileSync(env.KEY) };
  const listener = http2.createSecureServer({ ...tls, maxSessionMemory, allowHTTP1: true }, answer);
  listener.keepAliveTimeout = keepAliveTimeout;
  return listener.on("session", track);
}

// A server of node:http2 in cleartext speaks HTTP/2 only, and one of node:http HTTP/1.1 only. So the
// listener of the latter hands over the connections that begin as HTTP/2 does.
function createServer() {
  const listener = http.createServer({ keepAliveTimeout, noDelay: true }, answer);
  const [serveHttp1] = listener.listeners("connection");
  const http2Server = http2.createServer({ maxSessionMemory }, answer).on("session", track);
  listener.removeAllListeners("connection");
  return listener.on("connection", (socket) => {
    beginsAsHttp2(socket, (yes) => {
      if (yes) http2Server.emit("connection", socket);
      else serveHttp1.call(listener, socket);
    });
  });
}

// The preface of RFC 9113, section 3.4, up to where no HTTP/1.1 method follows it any more.
const preface = Buffer.from("PRI ");
const prefaceTimeout = 60_000;

function beginsAsHttp2(socket, decide) {
  let start = Buffer.alloc(0);
  const cut = () => socket.destroy();
  const look = () => {
    const chunk = socket.read();
    if (chunk === null) return;
    start = Buffer.concat([start, chunk]);
    const length = Math.min(start.length, preface.length);
    const same = preface.compare(start, 0, length, 0, length) === 0;
    // A first segment may be shorter than the preface.
    if (same && length < preface.length) return;
    socket.off("readable", look).off("end", cut).off("error", cut).setTimeout(0, cut);
    socket.unshift(start);
    decide(same);
  };
  socket.on("readable", look).on("end", cut).on("error", cut).setTimeout(prefaceTimeout, cut);
}

function track(session) {
  sessions.add(session);
  session.once("close", () => sessions.delete(session));
}

const listeners = [];

for (const host of ["127.0.0.1", "::1"]) {
  for (const [port, create] of [
    [env.HTTP_PORT, createServer],
    [env.HTTPS_PORT, createSecureServer],
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
    listener.closeIdleConnections?.();
  }
  for (const session of sessions) session.close();
  // What is still open after a second is cut off.
  setTimeout(() => process.exit(0), 1000).unref();
});
