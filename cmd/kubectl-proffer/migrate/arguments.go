package migrate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
)

// defaultPort is the port of each plugin without --port.
const defaultPort = 6001

// settings are the values of a plugin's flags.
type settings struct {
	// pairs holds the pairs of --resource or --node-label.
	pairs *pairs
	port  int
	// portSet reports whether --port was given.
	portSet bool
	// logs are the flags of logging that were given, as they would be written.
	logs []string
}

// parse reads the arguments as the plugin does: with the same library, flags and values. The error
// names every argument that the plugin does not have.
func parse(p plugin, args []string) (*settings, error) {
	for _, argument := range args {
		if strings.Contains(argument, "$(") {
			return nil, fmt.Errorf("the argument %q refers to an environment variable: "+
				"write its value in a copy of the Deployment, and pass the copy with -f", argument)
		}
	}
	var unknown []string
	for {
		s := &settings{pairs: &pairs{}}
		flags := s.flags(p, unknown)
		err := flags.Parse(args)
		var missing *pflag.NotExistError
		switch {
		case errors.As(err, &missing) && !slices.Contains(unknown, missing.GetSpecifiedName()):
			unknown = append(unknown, missing.GetSpecifiedName())
			continue
		case errors.Is(err, pflag.ErrHelp):
			return nil, errors.New("the argument --help makes the plugin print its help and end: it offers nothing")
		case err != nil:
			return nil, fmt.Errorf("%s would not start with these arguments: %w", p, err)
		}
		if err := refuseUnknown(p, unknown, flags.Args()); err != nil {
			return nil, err
		}
		if len(s.pairs.values) == 0 {
			return nil, fmt.Errorf("%s would not start: its flag --%s is required", p, s.pairs.flag)
		}
		s.portSet = flags.Changed("port")
		flags.Visit(func(f *pflag.Flag) {
			if l, isLog := f.Value.(*logValue); isLog {
				s.logs = append(s.logs, l.String())
			}
		})
		return s, nil
	}
}

// flags defines the flags of the plugin, and the unknown ones, with any value or none, so that
// parsing goes on behind them.
func (s *settings) flags(p plugin, unknown []string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(string(p), pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.IntVar(&s.port, "port", defaultPort, "")
	switch p {
	case nodeLabelsResources:
		s.pairs.flag = "node-label"
		addLogFlags(flags)
	default:
		s.pairs.flag, s.pairs.check = "resource", checkQuantity
	}
	flags.Var(s.pairs, s.pairs.flag, "")
	for _, name := range unknown {
		f := &pflag.Flag{Name: name, Value: &logValue{}, NoOptDefVal: "true"}
		if len(name) == 1 {
			f.Shorthand = name
		}
		flags.AddFlag(f)
	}
	return flags
}

// addLogFlags adds flags of the names of klog's. Their values are not klog's own, which configure
// this process.
func addLogFlags(flags *pflag.FlagSet) {
	ofKlog := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(ofKlog)
	ofKlog.VisitAll(func(f *flag.Flag) {
		value := &logValue{name: f.Name}
		added := &pflag.Flag{Name: f.Name, Value: value}
		if len(f.Name) == 1 {
			added.Shorthand = f.Name
		}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			added.NoOptDefVal = "true"
		}
		flags.AddFlag(added)
	})
}

func refuseUnknown(p plugin, flags, words []string) error {
	var all []string
	for _, name := range slices.Sorted(slices.Values(flags)) {
		if len(name) == 1 {
			all = append(all, "-"+name)
		} else {
			all = append(all, "--"+name)
		}
	}
	all = append(all, words...)
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s has no such arguments: %s. Nothing was converted, because their meaning is not known: "+
		"remove them in a copy of the Deployment, and pass the copy with -f", p, strings.Join(all, ", "))
}

// logValue is the value of a flag that only affects what the plugin logs.
type logValue struct{ name, text string }

func (v *logValue) Set(text string) error { v.text = text; return nil }
func (v *logValue) Type() string          { return "string" }

// String returns the flag as it would be written.
func (v *logValue) String() string {
	if len(v.name) == 1 {
		return "-" + v.name + "=" + v.text
	}
	return "--" + v.name + "=" + v.text
}

// pairs is the value of --resource and of --node-label: name=value, several of them with commas
// between them. Of two pairs with one name the last counts.
type pairs struct {
	flag string
	// check, if not nil, checks a value.
	check func(string) error
	// values maps names to values.
	values map[string]string
	// from maps names to the argument that sets them, repeated lists the names set more than once.
	from     map[string]string
	repeated []string
}

func (p *pairs) String() string { return "" }
func (p *pairs) Type() string   { return "pairs" }

// Set adds the pairs of one argument.
func (p *pairs) Set(text string) error {
	if text == "" {
		return nil
	}
	if p.values == nil {
		p.values, p.from = map[string]string{}, map[string]string{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		parts := strings.Split(pair, "=")
		if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return fmt.Errorf("%q is not of the form name=value", pair)
		}
		name, value := parts[0], parts[1]
		if p.check != nil {
			if err := p.check(value); err != nil {
				return fmt.Errorf("%q: %w", pair, err)
			}
		}
		if old, twice := p.values[name]; twice && old != value {
			p.repeated = append(p.repeated, name)
		}
		p.values[name], p.from[name] = value, fmt.Sprintf("--%s=%s", p.flag, text)
	}
	return nil
}

func (p *pairs) names() []string { return slices.Sorted(maps.Keys(p.values)) }

func checkQuantity(text string) error {
	_, err := resource.ParseQuantity(text)
	return err
}
