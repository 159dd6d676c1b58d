package helm

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// TestTheOperatorTakesTheFlagsOfTheChart adds --version, with which the operator checks all flags and
// exits.
func TestTheOperatorTakesTheFlagsOfTheChart(t *testing.T) {
	program, err := process.Build(t.Context(), t.TempDir())
	test.Must(t, err)
	for name, values := range map[string]string{
		"without values":        "",
		"with every component":  "{configuration: {clusterID: milan}, accounting: {enabled: true}, catalog: {enabled: true}, catalogHTTP: {enabled: true}, flat: {enabled: true}, tls: {enabled: true}, servedClasses: {enabled: true}, slicePodGuard: {enabled: true}}",
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

// TestTheOperatorTakesTheConfigurationOfTheChart runs a command that ends where it would read the data
// source name.
func TestTheOperatorTakesTheConfigurationOfTheChart(t *testing.T) {
	program, err := process.Build(t.Context(), t.TempDir())
	test.Must(t, err)
	for name, values := range map[string]string{
		"the least":      "{configuration: {clusterID: milan}, accounting: {enabled: true}}",
		"everything":     "{configuration: {clusterID: milan}, accounting: {enabled: true, engine: MySQL, ca: true, migrate: Manual, sampleSeconds: 3600, retentionDays: 36500}}",
		"a file as well": "{configuration: {clusterID: milan, flags: {zap-log-level: debug, publish-offers-qps: 10000}, filters: {nodes: [Affinity, Basic]}}, accounting: {enabled: true}}",
		"only a file": "{configuration: {clusterID: milan, reconcilers: [MetaSync], pluginConfig: [{name: MetaSync, args: " +
			"{engine: PostgreSQL, dsnFile: /etc/proffer/database/dsn, retentionDays: 36500}}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := unstructured.NestedString(template(t, "--values", writeValues(t, values))["ConfigMap/"+namespace+"/proffer-configuration"].Object, "data", "config.yaml")
			test.Must(t, err)
			out, err := exec.CommandContext(t.Context(), program, "migrate-database", "--config="+writeValues(t, text)).CombinedOutput()
			if err == nil || string(out) != "proffer: changing the tables: open /etc/proffer/database/dsn: no such file or directory\n" {
				t.Errorf("%v\n%s\nwith the file\n%s", err, out, text)
			}
		})
	}
}

func TestLargeNumbersInTheConfigurationStayWhole(t *testing.T) {
	text, _, err := unstructured.NestedString(template(t, "--values", writeValues(t, "configuration: {flags: {zap-log-level: 3}, pluginConfig: [{name: A, args: {most: 12000000}}]}"))["ConfigMap/"+namespace+"/proffer-configuration"].Object,
		"data", "config.yaml")
	test.Must(t, err)
	if !strings.Contains(text, "12000000") {
		t.Errorf("the file is\n%s", text)
	}
}
