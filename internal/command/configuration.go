package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/metasync"
	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/internal/plugins/filters"
)

// maxConfiguration bounds the configuration file in bytes.
const maxConfiguration = 1 << 20

// onCommandLine are the flags that the configuration file cannot hold.
var onCommandLine = []string{"config", "help", "version"}

// readConfiguration reads a configuration file.
func readConfiguration(path string) (*config.OperatorConfiguration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxConfiguration+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfiguration {
		return nil, fmt.Errorf("it has more than %d bytes", maxConfiguration)
	}
	if n := documents(text); n > 1 {
		return nil, fmt.Errorf("it holds %d documents: write one, because the others would not be read", n)
	}
	text, err = yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " ")) // In one line.
	}
	c := &config.OperatorConfiguration{}
	if err := unmarshal(text, c, "the file"); err != nil {
		return nil, err
	}
	if c.APIVersion == "" && c.Kind == "" {
		return nil, fmt.Errorf("it has no kind and apiVersion: write kind: %s and apiVersion: %s",
			config.Kind, config.APIVersion)
	}
	if c.APIVersion != config.APIVersion || c.Kind != config.Kind {
		return nil, fmt.Errorf("it is a %q of %q: write kind: %s and apiVersion: %s",
			kube.Shorten(c.Kind, kube.MaxShown), kube.Shorten(c.APIVersion, kube.MaxShown), config.Kind, config.APIVersion)
	}
	return c, nil
}

// unmarshal reads JSON in which each field must be known. The error is one line, which calls the whole
// by this name.
func unmarshal(text []byte, into any, whole string) error {
	problems, err := kubejson.UnmarshalStrict(text, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		article := "a"
		if strings.HasPrefix(wrong.Value, "a") || strings.HasPrefix(wrong.Value, "o") { // array or object
			article = "an"
		}
		return fmt.Errorf("%s cannot be %s %s", cmp.Or(wrong.Field, whole), article, wrong.Value)
	}
	if err = errors.Join(err, errors.Join(problems...)); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// documents counts the documents of a YAML file that are not empty. A line that begins with --- or ...
// ends a document wherever it stands.
func documents(text []byte) (n int) {
	inside := false
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) > 0 && (string(words[0]) == "---" || string(words[0]) == "...") && line[0] == words[0][0] {
			inside, words = false, words[1:]
		}
		if inside || len(words) == 0 || words[0][0] == '#' || words[0][0] == '%' {
			continue // A directive stands before a document.
		}
		inside = true
		n++
	}
	return n
}

// setFlags sets the flags of the configuration file that are not on the command line.
func setFlags(all *pflag.FlagSet, c *config.OperatorConfiguration) error {
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		values, flag := c.Flags[name], all.Lookup(name)
		switch {
		case flag == nil && all.Lookup(strings.TrimLeft(name, "-")) != nil:
			return fmt.Errorf("flags: write %s without dashes", strings.TrimLeft(name, "-"))
		case flag == nil:
			return fmt.Errorf("flags: there is no flag %q; see proffer --help", kube.Shorten(name, kube.MaxShown))
		case slices.Contains(onCommandLine, name):
			return fmt.Errorf("flags: write --%s on the command line", name)
		case flag.Changed:
			continue
		case len(values) == 0:
			return fmt.Errorf("flags: %s has no value: write one, or leave it out", name)
		case len(values) != 1 && flag.Value.Type() != "stringArray":
			return fmt.Errorf("flags: %s has %d values: write one", name, len(values))
		}
		for _, value := range values {
			if err := all.Set(name, value); err != nil {
				return fmt.Errorf("flags: %w", whatToWrite(err))
			}
		}
	}
	return nil
}

// check returns an error if plugins are registered by names that cannot be used.
func (p *Program) check() error {
	for _, names := range p.registered() {
		for i, name := range names {
			switch {
			case name == "" || filters.BuiltIn(name) || name == metasync.Name:
				return fmt.Errorf("this program registers a plugin as %q: use another name", name)
			case slices.Contains(names[:i], name):
				return fmt.Errorf("this program registers %s twice: use two names", name)
			}
		}
	}
	return nil
}

// registered are the names of the filters of nodes, of consumers and of slices, and of the reconcilers.
func (p *Program) registered() [4][]string {
	return [4][]string{
		namesOf(p.NodeFilters), namesOf(p.ConsumerFilters), namesOf(p.SliceFilters), namesOf(p.Reconcilers),
	}
}

func namesOf[F any](all []Registered[F]) []string {
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

// plugins returns the plugins that the configuration switches on. The error says what to write.
func (p *Program) plugins(c *config.OperatorConfiguration) (operator.Plugins, error) {
	out := operator.Plugins{
		ClusterID: c.ClusterID, Filters: c.Filters,
		NodeFilters:     factories(p.NodeFilters, c.Filters.Nodes),
		ConsumerFilters: factories(p.ConsumerFilters, c.Filters.Consumers),
		SliceFilters:    factories(p.SliceFilters, c.Filters.Slices),
		Reconcilers:     factories(p.Reconcilers, c.Reconcilers),
		Args:            map[string]json.RawMessage{},
	}
	registered := p.registered()
	if err := cmp.Or(
		filters.CheckOrder("filters.nodes", c.Filters.Nodes, registered[0]),
		filters.CheckOrder("filters.consumers", c.Filters.Consumers, registered[1]),
		filters.CheckOrder("filters.slices", c.Filters.Slices, registered[2]),
	); err != nil {
		return out, err
	}
	known := slices.Concat(registered[3], []string{metasync.Name})
	for i, name := range c.Reconcilers {
		switch {
		case slices.Contains(c.Reconcilers[:i], name):
			return out, fmt.Errorf("reconcilers lists %s twice: leave one of them out", name)
		case !slices.Contains(known, name):
			return out, fmt.Errorf("reconcilers lists %q, and there is no such reconciler: write %s",
				name, strings.Join(known, " or "))
		}
	}
	listed := slices.Concat(c.Filters.Nodes, c.Filters.Consumers, c.Filters.Slices, c.Reconcilers)
	for _, of := range c.PluginConfig {
		if _, twice := out.Args[of.Name]; twice {
			return out, fmt.Errorf("pluginConfig lists %s twice: leave one of them out", of.Name)
		}
		if !slices.Contains(listed, of.Name) || filters.BuiltIn(of.Name) {
			return out, fmt.Errorf("pluginConfig has arguments of %q, "+
				"which is not a plugin that filters or reconcilers list", of.Name)
		}
		out.Args[of.Name] = of.Args
	}
	var err error
	if slices.Contains(c.Reconcilers, metasync.Name) {
		if out.MetaSync, err = metaSync(out.Args[metasync.Name], c.ClusterID); err != nil {
			err = fmt.Errorf("%s: %w", metasync.Name, err)
		}
	}
	return out, err
}

// metaSync reads the arguments of MetaSync.
func metaSync(text json.RawMessage, clusterID string) (*metasync.Options, error) {
	args := config.MetaSyncArgs{}
	if len(text) > 0 {
		if err := unmarshal(text, &args, "args"); err != nil {
			return nil, err
		}
	}
	return metasync.NewOptions(args, clusterID)
}

// factories returns the factories of these names.
func factories[F any](all []Registered[F], names []string) map[string]F {
	out := map[string]F{}
	for _, r := range all {
		if slices.Contains(names, r.Name) {
			out[r.Name] = r.Factory
		}
	}
	return out
}

// unused are the plugins that are registered and that the configuration does not list.
func (p *Program) unused(c *config.OperatorConfiguration) []string {
	var unused []string
	listed := [...][]string{c.Filters.Nodes, c.Filters.Consumers, c.Filters.Slices, c.Reconcilers}
	for i, registered := range p.registered() {
		for _, name := range registered {
			if !slices.Contains(listed[i], name) {
				unused = append(unused, name)
			}
		}
	}
	return unused
}
