package helm

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/test/process"
)

// TestTheOperatorTakesTheFlagsOfTheChart adds --version, with which the operator checks all flags and
// exits.
func TestTheOperatorTakesTheFlagsOfTheChart(t *testing.T) {
	program, err := process.Build(t.Context(), t.TempDir())
	must(t, err)
	for name, values := range map[string]string{
		"without values":        "",
		"with every component":  "{catalog: {enabled: true}, catalogHTTP: {enabled: true}, flat: {enabled: true}, tls: {enabled: true}, servedClasses: {enabled: true}}",
		"with all of catalog":   "{catalog: {enabled: true, qps: 100, subjects: ['User:{clusterID}', 'Group:liqo:{clusterID}']}}",
		"with a public catalog": "{catalogHTTP: {enabled: true, anonymous: true}}",
		"with the flat form":    "{grpc: {form: flat}, log: {level: debug, format: console}, batchPeriod: 60s}",
		"with a log of level 3": "{log: {level: 3}, batchPeriod: 60000ms}",
		"with errors alone":     "{log: {level: error}, batchPeriod: '0'}",
		"with a flag repeated":  "{extraArgs: [--grpc-bind-address=:7001, --zap-time-encoding=epoch]}",
	} {
		t.Run(name, func(t *testing.T) {
			args := slices.Concat(containerOf(t, template(t, "--values", writeValues(t, values))).args, []string{"--version"})
			out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "proffer ") {
				t.Errorf("proffer %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
}
