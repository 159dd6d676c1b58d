// Command proffer is the operator: it watches, works out offers, and serves them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// version is set by the linker.
var version string

// misuse is the exit code for a command line that makes no sense.
const misuse = 2

func main() { os.Exit(operate(os.Args[1:])) }

// operate runs the operator until it is told to end, and returns the exit code of the process.
func operate(args []string, with ...func(*options)) int {
	o, err := parseFlags(args, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "proffer:", err)
		return misuse
	case o.version:
		fmt.Println("proffer", versionOf())
		return 0
	}
	for _, f := range with {
		f(&o)
	}
	logger := zap.New(zap.UseFlagOptions(&o.zap))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "proffer:", err)
		return 1
	}
	return 0
}

// versionOf is the version that make built, or else what Go knows of the build.
func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unknown"
}
