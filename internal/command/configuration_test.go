package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	configv1alpha1 "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/plugin"
	"proffer.dev/proffer/test"
)

// custom is a program with plugins of its own.
func custom() Program {
	return Program{
		NodeFilters:     []Registered[plugin.NodeFilterFactory]{{Name: "Custom"}, {Name: "Other"}},
		ConsumerFilters: []Registered[plugin.ConsumerFilterFactory]{{Name: "Contract"}},
		SliceFilters:    []Registered[plugin.SliceFilterFactory]{{Name: "Project"}},
		Reconcilers:     []Registered[plugin.ReconcilerFactory]{{Name: "Audit"}},
	}
}

const header = "apiVersion: config.proffer.dev/v1alpha1\nkind: OperatorConfiguration\n"

// books begins a configuration file of MetaSync, before the arguments.
const books = header + "clusterID: milan\nreconcilers: [MetaSync]\npluginConfig:\n- name: MetaSync\n  args: "

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	test.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestTheConfigurationFileHoldsFlagsAndPlugins(t *testing.T) {
	path := write(t, header+`
clusterID: milan
flags:
  batch-period: 1s
  leader-elect: true
  grpc-bind-address: 127.0.0.1:7000
  publish-offers: true
  publish-offers-qps: 7
  offers-subject: ["User:{clusterID}", "Group:peers:{clusterID}"]
filters:
  nodes: [Custom, Basic, Affinity]
  slices: [Basic, Affinity, Project]
reconcilers: [Audit]
pluginConfig:
- name: Custom
  args: {most: 70}
`)
	o, err := parseFlags([]string{"--config=" + path, "--grpc-bind-address=:7001"}, io.Discard, custom())
	test.Must(t, err)
	if o.BatchPeriod != time.Second || !o.leaderElect || o.grpc != ":7001" || o.Tenants.QPS != 7 || len(o.Tenants.Subjects) != 2 {
		t.Errorf("options %+v", o)
	}
	p := o.Plugins
	if p.ClusterID != "milan" || len(p.NodeFilters) != 1 || len(p.ConsumerFilters) != 0 || len(p.Reconcilers) != 1 {
		t.Errorf("plugins %+v", p)
	}
	if diff := cmp.Diff(map[string]json.RawMessage{"Custom": json.RawMessage(`{"most":70}`)}, p.Args); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Other", "Contract"}, o.unused); diff != "" {
		t.Error(diff)
	}
	o, err = parseFlags(nil, io.Discard, custom())
	test.Must(t, err)
	if diff := cmp.Diff([]string{"Custom", "Other", "Contract", "Project", "Audit"}, o.unused); diff != "" {
		t.Errorf("without a file: %s", diff)
	}
}

// TestEveryFlagMayStandInTheConfigurationFile with its default, except those that make no sense there.
func TestEveryFlagMayStandInTheConfigurationFile(t *testing.T) {
	var o commandOptions
	for _, g := range o.flagGroups() {
		g.flags.VisitAll(func(f *pflag.Flag) {
			value, more := f.DefValue, ""
			switch {
			case f.Name == "other-served-class": // It has no effect alone.
				value, more = "gold", ", served-classes: list"
			case f.Value.Type() == "stringArray":
				value = "User:{clusterID}"
			}
			text, err := json.Marshal(value)
			test.Must(t, err)
			_, err = parseFlags([]string{"--config=" + write(t, header+"flags: {"+f.Name+": "+string(text)+more+"}")}, io.Discard, Program{})
			refused := err != nil && strings.HasSuffix(err.Error(), "flags: write --"+f.Name+" on the command line")
			if wanted := f.Name == "config" || f.Name == "help" || f.Name == "version"; refused != wanted || err != nil && !refused {
				t.Errorf("%s: %v", f.Name, err)
			}
		})
	}
}

func TestAMistakeInTheConfigurationFileIsOneLineThatSaysWhatToWrite(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "it has no kind and apiVersion: write kind: OperatorConfiguration and apiVersion: config.proffer.dev/v1alpha1"},
		{header + "---\nreconcilers: [Nonsense]", "it holds 2 documents: write one, because the others would not be read"},
		{"---\n" + header + "...\n---\n# nothing\n--- a: b", "it holds 2 documents: write one, because the others would not be read"},
		{"hello", "the file cannot be a string"},
		{"\xff\xfea\x00p\x00", "the file cannot be a string"},
		{header + "a: \x1b[31m", "yaml: control characters are not allowed"},
		{header + "flags: " + strings.Repeat("[", maxConfiguration/2), "yaml: line 3: exceeded max depth of 10000"},
		{header + laughs(), "yaml: document contains excessive aliasing"},
		{"kind: ConfigMap\napiVersion: v1", `it is a "ConfigMap" of "v1": write kind: OperatorConfiguration and apiVersion: config.proffer.dev/v1alpha1`},
		{header + "filter: {}", `unknown field "filter"`},
		{header + "filters: {node: []}", `unknown field "filters.node"`},
		{header + "Flags: {}", `unknown field "Flags"`},
		{header + "flags:\n- a", "flags cannot be an array"},
		{header + "reconcilers: Audit", "reconcilers cannot be a string"},
		{header + "flags: {a: {b: c}}", "the value of a flag must be text, a number, true or false, or a list of these"},
		{header + "a: [", "yaml: line 3: did not find expected node content"},
		{header + "kind: OperatorConfiguration", `yaml: unmarshal errors: line 3: key "kind" already set in map`},
		{header + "flags: {batch-peroid: 1s}", `flags: there is no flag "batch-peroid"; see proffer --help`},
		{header + "flags: {batch-period: soon}", "flags: --batch-period=soon: write a duration, such as 100ms"},
		{header + "flags: {leader-elect: maybe}", "flags: --leader-elect=maybe: write --leader-elect, or --leader-elect=false"},
		{header + "flags: {batch-period: [1s, 2s]}", "flags: batch-period has 2 values: write one"},
		{header + "flags: {offers-subject: []}", "flags: offers-subject has no value: write one, or leave it out"},
		{header + "flags: {batch-period: null}", "the value of a flag must be text, a number, true or false, or a list of these"},
		{header + "flags: {--leader-elect: true}", "flags: write leader-elect without dashes"},
		{header + "reconcilers: [" + strings.Repeat("a", 10_000) + "]", `reconcilers lists "` + strings.Repeat("a", 1024-len(`reconcilers lists "...`)) + "..."},
		{header + "flags: {help: true}", "flags: write --help on the command line"},
		{header + "filters: {nodes: [Basic]}", "filters.nodes leaves out Affinity: add it, since fields of policies have no effect without it"},
		{header + "filters: {nodes: [Basic, Affinity, Custom, Custom]}", "filters.nodes lists Custom twice: leave one of them out"},
		{header + "filters: {consumers: [Basic, Affinity, Custom]}", `filters.consumers lists "Custom", and there is no such filter: write Basic, Affinity or Contract`},
		{header + "reconcilers: [Audits]", `reconcilers lists "Audits", and there is no such reconciler: write Audit or MetaSync`},
		{header + "reconcilers: [Audit, Audit]", "reconcilers lists Audit twice: leave one of them out"},
		{header + "pluginConfig: [{name: Custom}]", `pluginConfig has arguments of "Custom", which is not a plugin that filters or reconcilers list`},
		{header + "reconcilers: [Audit]\npluginConfig: [{name: Audit}, {name: Audit}]", "pluginConfig lists Audit twice: leave one of them out"},
		{header + "reconcilers: [MetaSync]", "MetaSync: set clusterID in the configuration file: it is the name of this cluster in the tables"},
		{strings.Replace(books, "milan", `"milan "`, 1) + "{engine: MySQL, dsnFile: /a}", `MetaSync: clusterID is "milan ": write it without control characters, and without spaces at its ends`},
		{strings.Replace(books, "milan", `"mi\0lan"`, 1) + "{engine: MySQL, dsnFile: /a}", `MetaSync: clusterID is "mi\x00lan": write it without control characters, and without spaces at its ends`},
		{books + "{engine: Oracle}", `MetaSync: engine is "Oracle": write PostgreSQL, or MySQL, which is also for MariaDB`},
		{books + "{engine: MySQL}", "MetaSync: set dsnFile to the path of a file with the data source name, such as that of a mounted Secret"},
		{books + `{engine: PostgreSQL, dsnFile: "postgres://proffer:s3cr3t@db/proffer"}`, "MetaSync: " + noPath},
		{books + "{engine: PostgreSQL, dsnFile: host=db password=s3cr3t}", "MetaSync: " + noPath},
		{books + "{engine: MySQL, dsnFile: 'proffer:s3cr3t@tcp(db:3306)/proffer'}", "MetaSync: " + noPath},
		{books + "{engine: MySQL, dsn: a}", `MetaSync: unknown field "dsn"`},
		{books + "{engine: 1}", "MetaSync: engine cannot be a number"},
		{books + "[]", "MetaSync: args cannot be an array"},
		{books + "{engine: MySQL, dsnFile: /a, sampleSeconds: 0}", "MetaSync: sampleSeconds is 0: write 1 to 3600"},
		{books + "{engine: MySQL, dsnFile: /a, retentionDays: -1}", "MetaSync: retentionDays is -1: write 1 to 36500, or 0 to keep everything"},
		{books + "{engine: MySQL, dsnFile: /a, migrate: Never}", `MetaSync: migrate is "Never": write Auto or Manual`},
		{books + "{engine: MySQL, dsnFile: /a, tls: {certFile: /b}}", "MetaSync: tls.certFile and tls.keyFile belong together: set both, or neither"},
		{header + "#" + strings.Repeat("-", maxConfiguration), "it has more than 1048576 bytes"},
	} {
		path := write(t, tc.text)
		_, err := parseFlags([]string{"--config=" + path}, io.Discard, custom())
		if want := "--config=" + path + ": " + tc.want; err == nil || err.Error() != want {
			t.Errorf("%.200s\ngot  %v\nwant %s", tc.text, err, want)
		}
	}
	directory := t.TempDir()
	_, err := parseFlags([]string{"--config=" + directory}, io.Discard, Program{})
	if want := "--config=" + directory + ": read " + directory + ": is a directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = parseFlags([]string{"--config=/none"}, io.Discard, Program{})
	if want := "--config=/none: open /none: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = parseFlags([]string{"--config=" + write(t, header+"reconcilers: [Audit]")}, io.Discard, Program{})
	if want := `reconcilers lists "Audit", and there is no such reconciler: write MetaSync`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// laughs returns lists of ten times the list before, which would be a billion words.
func laughs() string {
	text := "flags:\n  a: &a0 [ha]\n"
	for i := range 9 {
		text += fmt.Sprintf("  a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return text
}

func TestTheConfigurationFileIsOneDocument(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "# nothing": 0, "---\n---\n": 0, "a: b": 1, "\ufeffa: b\n": 1, "%YAML 1.1\n---\na: b\n...\n": 1, "# a\n---\na: b\n---\n": 1,
		"a: |\n  ---\n  b\n": 1, "---a: b\n": 1, "--- a\n--- b\n": 2, "a: b\r\n---\r\nc: d\r\n": 2, "a: b\n...\nc": 2,
	} {
		if got := documents([]byte(text)); got != want {
			t.Errorf("%q has %d documents, want %d", text, got, want)
		}
	}
}

func TestPluginsMustHaveNamesOfTheirOwn(t *testing.T) {
	for want, p := range map[string]Program{
		`this program registers a plugin as "Basic": use another name`:    {NodeFilters: []Registered[plugin.NodeFilterFactory]{{Name: "Basic"}}},
		`this program registers a plugin as "": use another name`:         {Reconcilers: []Registered[plugin.ReconcilerFactory]{{}}},
		`this program registers a plugin as "MetaSync": use another name`: {Reconcilers: []Registered[plugin.ReconcilerFactory]{{Name: "MetaSync"}}},
		"this program registers A twice: use two names":                   {ConsumerFilters: []Registered[plugin.ConsumerFilterFactory]{{Name: "A"}, {Name: "A"}}},
	} {
		if _, err := parseFlags(nil, io.Discard, p); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTheNamesOfTheFileAreThoseOfItsType(t *testing.T) {
	if got := "apiVersion: " + configv1alpha1.APIVersion + "\nkind: " + configv1alpha1.Kind + "\n"; got != header {
		t.Errorf("got %q", got)
	}
}
