// Package origin is what the servers written in Go answer, and their listeners for TCP.
package origin

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

var bodies = map[string][]byte{
	"/":       []byte("Hello, World!\n"),
	"/upload": []byte("Hello, World!\n"),
	"/empty":  {},
	"/1k":     bytes.Repeat([]byte("x"), 1<<10),
	"/16k":    bytes.Repeat([]byte("x"), 1<<14),
	"/1m":     bytes.Repeat([]byte("x"), 1<<20),
}

func answer(w http.ResponseWriter, r *http.Request) {
	body, found := bodies[r.URL.Path]
	if r.Method == http.MethodPost {
		io.Copy(io.Discard, r.Body)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if !found {
		w.WriteHeader(http.StatusNotFound)
	}
	w.Write(body)
}

// NewServer makes a server of net/http for HTTP/1.1 and HTTP/2, over TLS and in cleartext.
func NewServer() *http.Server {
	// Without these a cleartext listener takes HTTP/2 for a malformed request.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	// Clients that break off a handshake are not worth a log line each.
	return &http.Server{
		Handler:           http.HandlerFunc(answer),
		Protocols:         &protocols,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
}

// Listen listens for TCP. A machine without IPv6 has no ::1, then there is no listener; 127.0.0.1 must be
// there.
func Listen(host, port string) net.Listener {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil && host != "::1" {
		log.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return listener
}

// Ended ends the program when a server ended for another reason than that it was asked to.
func Ended(err error) {
	if !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
