// Command go-quic answers with quic-go's http3: HTTP/3 on the UDP port HTTPS_PORT, and net/http with
// HTTP/1.1 and HTTP/2 on the TCP port of the same number, both with CERT and KEY. The runtime takes its
// number of processors from GOMAXPROCS.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"go-server/origin"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		printVersion()
		return
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	port, cert, key := os.Getenv("HTTPS_PORT"), os.Getenv("CERT"), os.Getenv("KEY")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		log.Fatal(err)
	}
	tcp := origin.NewServer()
	quicServer := &http3.Server{
		Handler:   tcp.Handler,
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig: &quic.Config{
			Allow0RTT: true,
			// By default 100, which is less than cells ask for.
			MaxIncomingStreams: 256,
			// By default 30 s, as long as the pauses that a connection must survive.
			MaxIdleTimeout: 2 * time.Minute,
		},
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		if listener := origin.Listen(host, port); listener != nil {
			go func() { origin.Ended(tcp.ServeTLS(listener, cert, key)) }()
		}
		// A machine without IPv6 has no ::1; 127.0.0.1 must be there.
		socket, err := net.ListenPacket("udp", net.JoinHostPort(host, port))
		if err == nil {
			go func() { origin.Ended(quicServer.Serve(socket)) }()
		} else if host != "::1" {
			log.Fatal(err)
		}
	}
	<-stop.Done()
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// The one would wait for clients as long as there is time, and leave none to the other.
	quicServer.Close()
	tcp.Shutdown(grace)
}

func printVersion() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/quic-go/quic-go" {
			fmt.Println("quic-go", module.Version+",", runtime.Version())
		}
	}
}
