// Command custom-monitor is an external resource monitor of Liqo v0.9 and v0.10, with a source of
// amounts of its own: a JSON file that may change at any time.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"proffer.dev/proffer/proto/resourcereader"

	"example.com/custom-monitor/monitor"
)

// reloadPeriod is the time between two readings of the file.
const reloadPeriod = time.Second

func main() {
	listen := flag.String("listen", ":7001", "address to listen at")
	amounts := flag.String("amounts", "amounts.json", "file with the amounts of each consumer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *listen, *amounts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, address, file string) error {
	m := monitor.New()
	if err := m.Load(file); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	resourcereader.RegisterResourceReaderServer(server, m)
	go reload(ctx, m, file)
	// Subscriptions end with the client only, so the server does not wait for them.
	context.AfterFunc(ctx, server.Stop)
	log.Println("listening at", listener.Addr())
	return server.Serve(listener)
}

// reload reads the file again and again. A file that is wrong changes nothing.
func reload(ctx context.Context, m *monitor.Monitor, file string) {
	ticker := time.NewTicker(reloadPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := m.Load(file); err != nil {
				log.Println(err)
			}
		}
	}
}
