// Package command is the command line of the operator: it reads flags, and runs package
// internal/operator with what they say.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/plugin"
)

// Program holds the additions of a program to the operator.
type Program struct {
	// Version is the version of the program. If it is empty, the version in Go's build information is
	// used.
	Version string
	// The plugins that the configuration file may switch on.
	NodeFilters     []Registered[plugin.NodeFilterFactory]
	ConsumerFilters []Registered[plugin.ConsumerFilterFactory]
	SliceFilters    []Registered[plugin.SliceFilterFactory]
	Reconcilers     []Registered[plugin.ReconcilerFactory]
}

// Registered is the factory of a plugin with the name that it is registered by.
type Registered[F any] struct {
	Name    string
	Factory F
}

// printVersion is the command that prints the version, as the flag does.
const printVersion = "version"

// exitUsage is the exit code for an invalid command line.
const exitUsage = 2

// Run runs the operator until SIGINT or SIGTERM, and returns the exit code of the process.
func Run(args []string, p Program) int { return run(args, p) }

// run is Run, for tests with more options.
func run(args []string, p Program, with ...func(*commandOptions)) int {
	if len(args) > 0 && args[0] == migrateDatabase {
		return runMigrate(args[1:], p)
	}
	if len(args) == 1 && args[0] == printVersion {
		args = []string{"--" + printVersion}
	}
	o, err := parseFlags(args, os.Stdout, p)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "proffer:", err)
		return exitUsage
	case o.version:
		fmt.Println("proffer", VersionOf(p.Version))
		return 0
	}
	for _, f := range with {
		f(&o)
	}
	// The kubeconfig is loaded before a logger is set: controller-runtime would log a missing
	// kubeconfig with a stack trace, and returns the same error.
	config, err := loadConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proffer:", err)
		return 1
	}
	logger := zap.New(zap.UseFlagOptions(&o.zap), zap.WriteTo(visible.Writer{To: os.Stderr}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	for _, name := range o.unused {
		logger.Info("A plugin of this program is not used: the file of --config does not list it", "plugin", name)
	}
	if err := runOperator(ctrl.SetupSignalHandler(), config, o, p); err != nil {
		fmt.Fprintln(os.Stderr, "proffer:", err)
		return 1
	}
	return 0
}

// runOperator runs the operator until the context ends.
func runOperator(ctx context.Context, config *rest.Config, o commandOptions, p Program) error {
	out := o.Options
	out.Version = VersionOf(p.Version)
	if o.leaderElect {
		out.LeaderElection = &o.election
	}
	return o.inUse(operator.Run(ctx, config, out))
}

// loadConfig returns the configuration of the client of the API server.
func loadConfig() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no API server is configured: " +
			"write --kubeconfig=FILE or set KUBECONFIG; only a Pod needs neither")
	case err != nil && strings.Contains(err.Error(), "unknown anchor"): // The error repeats the text, such as a token.
		return nil, errors.New("reading the kubeconfig of --kubeconfig=FILE or KUBECONFIG: " +
			"a text in it begins with *, and names no anchor of YAML: write it in quotes")
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig of --kubeconfig=FILE or KUBECONFIG: %w", err)
	}
	return config, nil
}

// VersionOf returns the version that was set, or else the version in Go's build information.
func VersionOf(version string) string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unknown"
}
