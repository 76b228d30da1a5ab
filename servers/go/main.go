// Command go-server answers with net/http: cleartext on HTTP_PORT, TLS with CERT and KEY on
// HTTPS_PORT, each for HTTP/1.1 and HTTP/2. The runtime takes its number of processors from GOMAXPROCS.
package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
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

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	// Without these a cleartext listener takes HTTP/2 for a malformed request.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	// Clients that break off a handshake are not worth a log line each.
	server := &http.Server{
		Handler:           http.HandlerFunc(answer),
		Protocols:         &protocols,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	serve := func(err error) {
		if !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		if plain := listen(host, os.Getenv("HTTP_PORT")); plain != nil {
			go func() { serve(server.Serve(plain)) }()
		}
		if tls := listen(host, os.Getenv("HTTPS_PORT")); tls != nil {
			go func() { serve(server.ServeTLS(tls, os.Getenv("CERT"), os.Getenv("KEY"))) }()
		}
	}
	<-stop.Done()
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	server.Shutdown(grace)
}

// A machine without IPv6 has no ::1, then there is no listener; 127.0.0.1 must be there.
func listen(host, port string) net.Listener {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil && host != "::1" {
		log.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return listener
}
