package command

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/test"
)

func TestDefaults(t *testing.T) {
	o, err := parseFlags(nil, io.Discard, Program{})
	test.Must(t, err)
	if o.MetricsAddress != ":8443" || o.ProbeAddress != ":8081" || o.PprofAddress != off || o.leaderElect ||
		o.BatchPeriod != 100*time.Millisecond || o.NodeGrace != 2*time.Minute || o.ServedClasses != "" {
		t.Errorf("got %+v", o)
	}
	want := []resourcereader.Endpoint{{Address: ":6001", Form: resourcereader.Pools}}
	if diff := cmp.Diff(want, o.Endpoints); diff != "" {
		t.Error(diff)
	}
}

func TestTheGRPCFlagsSelectAddressesAndForms(t *testing.T) {
	pools, flat := resourcereader.Pools, resourcereader.Flat
	for _, tc := range []struct {
		args string
		want []resourcereader.Endpoint
	}{
		{"--grpc-form=flat", []resourcereader.Endpoint{{Address: ":6001", Form: flat}}},
		{
			"--grpc-form=pools --grpc-bind-address=127.0.0.1:7000",
			[]resourcereader.Endpoint{{Address: "127.0.0.1:7000", Form: pools}},
		},
		{
			"--grpc-flat-bind-address=:6002",
			[]resourcereader.Endpoint{{Address: ":6001", Form: pools}, {Address: ":6002", Form: flat}},
		},
		{"--grpc-flat-bind-address=0", []resourcereader.Endpoint{{Address: ":6001", Form: pools}}},
		{"--grpc-bind-address=[::1]:6001", []resourcereader.Endpoint{{Address: "[::1]:6001", Form: pools}}},
	} {
		o, err := parseFlags(strings.Fields(tc.args), io.Discard, Program{})
		if err != nil {
			t.Errorf("%s: %v", tc.args, err)
			continue
		}
		if diff := cmp.Diff(tc.want, o.Endpoints); diff != "" {
			t.Errorf("%s: %s", tc.args, diff)
		}
	}
}

func TestValidFlagsAreAccepted(t *testing.T) {
	for _, args := range []string{
		"--batch-period=0", "--batch-period=0s", "--batch-period=1m", "--node-grace-period=0", "--node-grace-period=1h",
		"--metrics-bind-address=0 --health-probe-bind-address=0 --pprof-bind-address=0",
		"--metrics-bind-address= --health-probe-bind-address=",
		"--grpc-bind-address=127.0.0.1:6001 --metrics-bind-address=127.0.0.2:6001",
		"--grpc-bind-address=:0 --metrics-bind-address=:0",
		"--leader-elect --leader-election-namespace=proffer-system",
		"--served-classes=proffer-served-classes", "--served-classes=classes.v1",
		"--served-classes=", "--served-classes=classes --other-served-class=default --other-served-class=hpc",
		"--orchestrate --cluster-id=milan", "--orchestrate --cluster-id=milan --legacy-toggle",
		"--publish-offers", "--publish-offers --publish-offers-qps=1", "--publish-offers --publish-offers-qps=10000",
		"--publish-offers --offers-subject=Group:liqo:{clusterID} --offers-subject=User:{clusterID}",
		"--grpc-tls-cert=a --grpc-tls-key=b --grpc-client-ca=c",
		"--catalog-bind-address=:8444 --catalog-tls-cert-file=a --catalog-tls-key-file=b --catalog-anonymous",
		"--catalog-bind-address=127.0.0.1:8444", "--catalog-bind-address=[::1]:8444 --catalog-anonymous", "--catalog-bind-address=0",
		"--leader-elect=true", "--zap-log-level=debug --zap-devel", "--kubeconfig=/some/file", "--batch-period 1s",
	} {
		if _, err := parseFlags(strings.Fields(args), io.Discard, Program{}); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestAnInvalidFlagGetsOneLineThatSaysWhatToWrite(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"--no-such-flag", "there is no flag --no-such-flag; see proffer --help"},
		{"--orchestrate", "--orchestrate needs the ID of this cluster in Liqo: write --cluster-id too, as liqoctl info shows it"},
		{"--cluster-id=milan", "--cluster-id has no effect without --orchestrate: write --orchestrate too, or leave it out"},
		{"--legacy-toggle", "--legacy-toggle has no effect without --orchestrate: write --orchestrate too, or leave it out"},
		{
			"--orchestrate --cluster-id=Milan",
			`--cluster-id="Milan" is not a cluster ID: write it as liqoctl info shows it, such as milan`,
		},
		{
			"--publish-offers-qps=5",
			"--publish-offers-qps and --offers-subject have no effect without --publish-offers and --orchestrate: write one of these too, or leave them out",
		},
		{
			"--offers-subject=Group:{clusterID}",
			"--publish-offers-qps and --offers-subject have no effect without --publish-offers and --orchestrate: write one of these too, or leave them out",
		},
		{
			"--publish-offers --publish-offers-qps=fast",
			"--publish-offers-qps=fast: write a whole number, such as 20; see proffer --help",
		},
		{"--publish-offers --publish-offers-qps=0", "--publish-offers-qps=0 is not a rate: write a number from 1 to 10000"},
		{"--publish-offers --publish-offers-qps=10001", "--publish-offers-qps=10001 is not a rate: write a number from 1 to 10000"},
		{
			"--publish-offers --offers-subject=Group:all",
			`--offers-subject="Group:all": the name must contain {clusterID}: without it, every consumer could read the offers of all others`,
		},
		{
			"--publish-offers --offers-subject=User:{clusterID} --offers-subject=User:{clusterID}",
			`--offers-subject="User:{clusterID}" is written twice: leave one of them out`,
		},
		{
			"--publish-offers --offers-subject=User:{clusterID} --offers-subject=User:liqo-{clusterID}",
			`--offers-subject="User:{clusterID}" and "User:liqo-{clusterID}" can name the same subject for two consumers: write a character such as : next to {clusterID}`,
		},
		{
			"--publish-offers" + strings.Repeat(" --offers-subject=User:{clusterID}", 9),
			"--offers-subject is written 9 times: write it 1 to 8 times",
		},
		{"-leader-elect=true", "-leader-elect=true has one dash: write --leader-elect=true; see proffer --help"},
		{"-health-probe-bind-address=0", "has one dash: write --health-probe-bind-address=0"},
		{"-x", "there is no flag -x; see proffer --help"},
		{"--grpc-form", "--grpc-form has no value: write --grpc-form=VALUE"},
		{"serve", `"serve" is not a flag: write only flags, as --name=value`},
		{"--leader-elect false", `"false" is not a flag`},
		{"--leader-elect=maybe", `--leader-elect=maybe: write --leader-elect, or --leader-elect=false`},
		{"--batch-period=fast", `--batch-period=fast: write a duration, such as 100ms`},
		{"--batch-period=100", `--batch-period=100: write a duration, such as 100ms`},
		{"--batch-period=-1s", `--batch-period=-1s: write 0 to 1m0s, such as 100ms`},
		{"--batch-period=24h", `--batch-period=24h: write 0 to 1m0s`},
		{"--node-grace-period=2", `--node-grace-period=2: write a duration, such as 2m0s`},
		{"--node-grace-period=61m", `--node-grace-period=61m: write 0 to 1h0m0s, such as 2m0s`},
		{"--grpc-form=yaml", `--grpc-form=yaml: "yaml" is not a form of Liqo's protocol: write pools`},
		{
			"--grpc-bind-address=6001",
			`--grpc-bind-address="6001" is not an address to listen at: write host:port or :port, such as :6001`,
		},
		{"--grpc-bind-address=", `--grpc-bind-address="" is not an address`},
		{"--grpc-bind-address=0", `--grpc-bind-address="0" is not an address`},
		{"--grpc-bind-address=:66000", `--grpc-bind-address=":66000" is not an address`},
		{"--grpc-bind-address=:grpc", `--grpc-bind-address=":grpc" is not an address`},
		{"--grpc-flat-bind-address=localhost", `--grpc-flat-bind-address="localhost" is not an address`},
		{"--metrics-bind-address=8443", `--metrics-bind-address="8443" is not an address`},
		{"--health-probe-bind-address=:-1", `--health-probe-bind-address=":-1" is not an address`},
		{"--pprof-bind-address=yes", `--pprof-bind-address="yes" is not an address`},
		{
			"--grpc-flat-bind-address=:6001",
			`--grpc-bind-address=:6001 and --grpc-flat-bind-address=:6001 are the same address: write different ports`,
		},
		{
			"--metrics-bind-address=127.0.0.1:6001",
			`--grpc-bind-address=:6001 and --metrics-bind-address=127.0.0.1:6001 are the same address`,
		},
		{"--health-probe-bind-address=:8443", `are the same address`},
		{"--pprof-bind-address=localhost:8081", `are the same address`},
		{
			"--grpc-form=flat --grpc-flat-bind-address=:6002",
			`--grpc-form=flat and --grpc-flat-bind-address serve the flat form twice: leave one of them out`,
		},
		{"--grpc-tls-cert=a", `write --grpc-tls-key too`},
		{"--grpc-tls-key=a", `write --grpc-tls-cert too`},
		{"--grpc-client-ca=a", `write --grpc-tls-cert and --grpc-tls-key too`},
		{"--catalog-bind-address=8444", `--catalog-bind-address="8444" is not an address`},
		{"--catalog-bind-address=:8081 --catalog-tls-cert-file=a --catalog-tls-key-file=b", `are the same address`},
		{
			"--catalog-bind-address=:8444",
			`--catalog-bind-address=:8444 needs TLS: write --catalog-tls-cert-file and --catalog-tls-key-file too, or a loopback address such as 127.0.0.1:8444`,
		},
		{"--catalog-bind-address=localhost:8444", `needs TLS`},
		{"--catalog-bind-address=:8444 --catalog-tls-cert-file=a", `write --catalog-tls-key-file too`},
		{"--catalog-bind-address=:8444 --catalog-tls-key-file=a", `write --catalog-tls-cert-file too`},
		{"--catalog-anonymous", `have no effect without --catalog-bind-address`},
		{"--catalog-bind-address=0 --catalog-tls-cert-file=a", `have no effect without --catalog-bind-address`},
		{"--leader-election-namespace=n", `write --leader-elect too`},
		{
			"--served-classes=Classes",
			`--served-classes="Classes" is not the name of an AdmissionParams: write lower-case letters, digits, '-' and '.', such as proffer-served-classes`,
		},
		{
			"--served-classes=proffer-system/classes",
			`--served-classes="proffer-system/classes" is not the name of an AdmissionParams`,
		},
		{"--served-classes=" + strings.Repeat("c", 254), `is not the name of an AdmissionParams`},
		{"--other-served-class=default", `--other-served-class has no effect without --served-classes: write both, or leave it out`},
		{"--served-classes=a --other-served-class=Gold", `--other-served-class="Gold" is not a class: write at most 63 lower-case letters`},
		{"--served-classes=a --other-served-class=", `--other-served-class="" is not a class`},
		{"--zap-log-level=loud", `--zap-log-level=loud: `},
	} {
		_, err := parseFlags(strings.Fields(tc.args), io.Discard, Program{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %s", tc.args, err, tc.want)
		}
	}
}

func TestEmptyAnd0DisableOptionalAddresses(t *testing.T) {
	for _, args := range []string{
		"--metrics-bind-address= --health-probe-bind-address= --pprof-bind-address=",
		"--metrics-bind-address=0 --health-probe-bind-address=0 --pprof-bind-address=0",
	} {
		o, err := parseFlags(strings.Fields(args), io.Discard, Program{})
		if err != nil || o.MetricsAddress != off || o.ProbeAddress != off || o.PprofAddress != off {
			t.Errorf("%s: got %q, %q, %q, %v; controller-runtime takes only 0 for off",
				args, o.MetricsAddress, o.ProbeAddress, o.PprofAddress, err)
		}
	}
}
