// Package dashboard is the command kubectl proffer dashboard: the operator's pages in a browser, with
// the caller's own rights.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

const (
	// headerTimeout bounds the reading of a request's header, requestTimeout a whole request and its
	// answer.
	headerTimeout  = 5 * time.Second
	requestTimeout = time.Minute
	// maxHeader bounds the header of a request in bytes.
	maxHeader = 32 << 10
)

type dashboardOptions struct {
	port      int
	noBrowser bool
}

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	var o dashboardOptions
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Open the operator's pages in a browser",
		Long: `Open the operator's pages in a browser: what needs you, classes, consumers, policies, and a form
that rehearses a policy. The pages refresh themselves.

The command listens on 127.0.0.1 until Ctrl-C, and asks the operator by way of the API server with
your own rights. The address that it prints works once: the browser that opens it gets a cookie, and
everybody else on this machine is refused.

It needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator, and for the form Role
` + operatorclient.Simulator.Role + `.`,
		Example: `  # Open the pages
  kubectl proffer dashboard

  # Print the address only, with a port of your choice
  kubectl proffer dashboard --no-browser --port 8001`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), flags, streams)
		},
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "The port on 127.0.0.1, 0 for a free one.")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "Print the address, and open no browser.")
	return cmd
}

func (o *dashboardOptions) run(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams,
) error {
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port=%d is no port: write 1 to 65535, or 0 for a free one", o.port)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, account, err := flags.FirstClient(ctx, operatorclient.Simulator, operatorclient.Reader)
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: o.port})
	if err != nil {
		return fmt.Errorf("listening: %w: choose another port with --port", err)
	}
	p := newProxy(client, listener.Addr().String())
	if account == operatorclient.Reader {
		fmt.Fprintf(streams.ErrOut, "The form that rehearses a policy will be refused: it needs Role %s.\n",
			operatorclient.Simulator.Role)
	}
	fmt.Fprintf(streams.Out, "The dashboard is at %s\nThe address works once. Press Ctrl-C to end.\n", p.address())
	if !o.noBrowser {
		if err := open(ctx, p.address()); err != nil {
			fmt.Fprintf(streams.ErrOut, "No browser was opened (%v): open the address yourself.\n", err)
		}
	}
	return serve(ctx, newGuard(listener), p)
}

// serve serves until the context ends, and then closes all connections at once.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeader, ConnContext: identify, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: requestTimeout,
	}
	closed := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer closed()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the dashboard: %w", err)
	}
	return nil
}

// open starts the browser of the desktop, and does not wait for it.
func open(ctx context.Context, address string) error {
	program, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no display")
		}
	}
	// The browser outlives the command.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
