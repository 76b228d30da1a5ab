// Command go-server answers with net/http: cleartext on HTTP_PORT, TLS with CERT and KEY on
// HTTPS_PORT, each for HTTP/1.1 and HTTP/2. The runtime takes its number of processors from GOMAXPROCS.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go-server/origin"
)

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	server := origin.NewServer()
	for _, host := range []string{"127.0.0.1", "::1"} {
		if plain := origin.Listen(host, os.Getenv("HTTP_PORT")); plain != nil {
			go func() { origin.Ended(server.Serve(plain)) }()
		}
		if tls := origin.Listen(host, os.Getenv("HTTPS_PORT")); tls != nil {
			go func() { origin.Ended(server.ServeTLS(tls, os.Getenv("CERT"), os.Getenv("KEY"))) }()
		}
	}
	<-stop.Done()
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	server.Shutdown(grace)
}
