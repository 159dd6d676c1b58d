// Command lab runs clusters with the real Liqo for a person: it starts them, says what to type next, and runs a
// shell in their network. When the shell ends, everything ends.
package main

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/slices/broker"
	"proffer.dev/proffer/test/slices/lab"
	"proffer.dev/proffer/test/slices/pair"
)

// tours are the labs by the argument that selects one.
var tours = map[string]lab.Tour{"pair": pair.Tour, "broker": broker.Tour}

func main() {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	if len(os.Args) != 2 || tours[os.Args[1]].Start == nil {
		fmt.Fprintln(os.Stderr, "lab: write lab pair or lab broker")
		os.Exit(2)
	}
	code, err := tours[os.Args[1]].Guide()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		code = 1
	}
	os.Exit(code)
}
